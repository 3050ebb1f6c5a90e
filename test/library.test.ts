import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import * as library from '../src/index.ts';

const PAGE = readFileSync(new URL('../docs/reference/library.md', import.meta.url), 'utf8');

const read = (file: string) => readFileSync(new URL(`../${file}`, import.meta.url), 'utf8');

/** Lines may be broken anywhere. */
const unspaced = (text: string) =>
  text.replace(/,?\s+/g, (space) => (space.includes(',') ? ',' : ''));

/** The signatures of the library's functions, from the declarations that the package has. */
function signatures(): readonly string[] {
  const exports = [
    ...read('dist/index.d.ts').matchAll(/^export \{([^}]*)\} from '\.\/(.+)\.ts';/gm),
  ];
  return exports.flatMap(([, names = '', module = '']) => {
    const declarations = read(`dist/${module}.d.ts`);
    return names.split(',').flatMap((name) => {
      const start = `^export declare (function ${name.trim()}\\(.*?;)$(?!\\n[ }])`;
      const found = new RegExp(start, 'ms').exec(declarations)?.[1];
      return found === undefined ? [] : [found];
    });
  });
}

describe('docs/reference/library.md', () => {
  it('names every value that the library has, and no other', () => {
    const cells = [...PAGE.matchAll(/^\| \[?(`[^|\]]+)(?:\]\([^)]*\))? \|/gm)].map(
      ([, cell = '']) => cell,
    );
    const named = cells.flatMap((cell) => cell.split(', ').map((name) => name.replaceAll('`', '')));
    expect(named.sort()).toEqual(Object.keys(library).sort());
  });

  it('has the signature of every function, and no other', () => {
    const blocks = [...PAGE.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, block = '']) => block);
    const shown = blocks.flatMap((block) => block.split(/^(?=function )/m)).map(unspaced);
    const functions = Object.entries(library).filter(
      ([name, value]) => typeof value === 'function' && name !== 'EvictdError',
    );
    const declared = signatures();
    expect(declared).toHaveLength(functions.length);
    const missing = declared.filter((signature) => !shown.includes(unspaced(signature)));
    expect(missing).toEqual([]);
    expect(shown).toHaveLength(declared.length);
  });

  it('has an example with each of them', () => {
    const examples = [...PAGE.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code = '']) => code);
    const imported = examples.flatMap((code) =>
      (/import \{([^}]*)\} from 'evictd'/.exec(code)?.[1] ?? '')
        .split(',')
        .map((name) => name.trim()),
    );
    // scripts/guide.mjs runs them, see guide.test.ts.
    expect(Object.keys(library).filter((name) => !imported.includes(name))).toEqual([]);
  });
});

describe('admitPod', () => {
  it('answers as the kubelet words it', () => {
    const pod = { metadata: { name: 'web', namespace: 'default', uid: '' }, spec: {} };
    expect(library.admitPod(pod, [])).toEqual({ admit: true, reason: '', message: '' });
    expect(library.admitPod(pod, ['DiskPressure', 'MemoryPressure'])).toEqual({
      admit: false,
      reason: 'Evicted',
      message: 'The node had condition: [DiskPressure MemoryPressure]. ',
    });
    expect(library.admitPod(pod, ['MemoryPressure', 'DiskPressure']).message).toBe(
      'The node had condition: [DiskPressure MemoryPressure]. ',
    );
  });
});

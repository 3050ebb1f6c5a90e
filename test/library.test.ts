import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import * as library from '../src/index.ts';

const PAGE = readFileSync(new URL('../docs/reference/library.md', import.meta.url), 'utf8');

describe('docs/reference/library.md', () => {
  it('names every value that the library has, and no other', () => {
    const cells = [...PAGE.matchAll(/^\| (`[^|]+) \|/gm)].map(([, cell = '']) => cell);
    const named = cells.flatMap((cell) => cell.split(', ').map((name) => name.replaceAll('`', '')));
    expect(named.sort()).toEqual(Object.keys(library).sort());
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
  });
});

import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const ROOT = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const FIXTURES = path.join(ROOT, 'test/fixtures/boundaries');
const TIMEOUT_MS = 60_000;

/** The folders of src/ that the rules know; one that is not here would escape most of them. */
const FOLDERS = [
  'actions',
  'commands',
  'config',
  'core',
  'daemon',
  'kernel',
  'native',
  'ports',
  'runtimes',
  'simulation',
  'sources',
  'state',
  'surfaces',
];
const ROOT_FILES = ['daemon.ts', 'index.ts', 'main.ts'];

interface Cruise {
  readonly modules: readonly {
    readonly source: string;
    readonly dependencies: readonly {
      readonly module: string;
      readonly couldNotResolve: boolean;
    }[];
  }[];
  readonly summary: {
    readonly violations: readonly {
      readonly from: string;
      readonly to: string;
      readonly rule: { readonly name: string };
      readonly cycle?: readonly { readonly name: string }[];
    }[];
    readonly ruleSetUsed: {
      readonly forbidden: readonly { readonly name: string; readonly comment?: string }[];
    };
  };
}

/** Runs the tool as `npm run check` does, in `directory`, whose `src` it cruises. */
async function cruise(directory: string): Promise<Cruise> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [
      path.join(ROOT, 'node_modules/dependency-cruiser/bin/dependency-cruise.mjs'),
      ...['--config', path.join(ROOT, '.dependency-cruiser.mjs')],
      ...['--output-type', 'json', 'src'],
    ],
    { cwd: directory, maxBuffer: 64 * 1024 * 1024, timeout: TIMEOUT_MS },
  );
  return JSON.parse(stdout) as Cruise;
}

async function typescriptFiles(directory: string): Promise<string[]> {
  const names = await readdir(path.join(directory, 'src'), { recursive: true });
  return names
    .filter((name) => name.endsWith('.ts'))
    .map((name) => `src/${name}`)
    .sort();
}

describe('src/', () => {
  let result: Cruise;
  beforeAll(async () => {
    result = await cruise(ROOT);
  }, TIMEOUT_MS);

  it('is seen whole by dependency-cruiser', async () => {
    const files = await typescriptFiles(ROOT);
    expect(files.length).toBeGreaterThan(10);
    const cruised = result.modules.map((module) => module.source);
    expect(files.filter((file) => !cruised.includes(file))).toEqual([]);
  });

  it('has no import that cannot be resolved, which no rule would match', () => {
    const unresolved = result.modules.flatMap(({ source, dependencies }) =>
      dependencies
        .filter((dependency) => dependency.couldNotResolve)
        .map((dependency) => `${source} -> ${dependency.module}`),
    );
    expect(unresolved).toEqual([]);
  });

  it('breaks no rule', () => {
    const broken = result.summary.violations.map(
      ({ rule, from, to }) => `${rule.name}: ${from} -> ${to}`,
    );
    expect(broken).toEqual([]);
  });

  it('has only the folders and root files that the rules name', async () => {
    const entries = await readdir(path.join(ROOT, 'src'), { withFileTypes: true });
    const unknown = entries
      .filter(({ name }) => !FOLDERS.includes(name) && !ROOT_FILES.includes(name))
      .map(({ name }) => name);
    expect(unknown).toEqual([]);
  });
});

describe('a wrong import', () => {
  let result: Cruise;
  let files: { readonly file: string; readonly breaks: string | undefined }[];
  beforeAll(async () => {
    result = await cruise(FIXTURES);
    files = await Promise.all(
      (await typescriptFiles(FIXTURES)).map(async (file) => {
        const text = await readFile(path.join(FIXTURES, file), 'utf8');
        return { file, breaks: /^\/\/ breaks: (\S+)$/m.exec(text)?.[1] };
      }),
    );
  }, TIMEOUT_MS);

  it('is reported by exactly the rule that the fixture names, and no right one is', () => {
    const reported = (file: string) => {
      const names = result.summary.violations
        .filter(({ from, cycle }) => from === file || cycle?.some(({ name }) => name === file))
        .map(({ rule }) => rule.name);
      return [...new Set(names)].join(' and ');
    };
    const expected = files.map(({ file, breaks }) => `${file}: ${breaks ?? ''}`);
    expect(files.map(({ file }) => `${file}: ${reported(file)}`)).toEqual(expected);
  });

  it('has a fixture for every rule', () => {
    const rules = new Set(result.summary.ruleSetUsed.forbidden.map(({ name }) => name));
    const broken = new Set(files.flatMap(({ breaks }) => breaks ?? []));
    expect([...broken].sort()).toEqual([...rules].sort());
  });

  it('is told what to do instead', () => {
    const silent = result.summary.ruleSetUsed.forbidden.filter(
      ({ comment }) => (comment ?? '').length < 40,
    );
    expect(silent).toEqual([]);
  });
});

describe('a global in the core', () => {
  const BANNED = {
    Date: 'Date.now()',
    performance: 'performance.now()',
    setTimeout: 'setTimeout(String, 1)',
    setInterval: 'setInterval(String, 1)',
    setImmediate: 'setImmediate(String)',
    queueMicrotask: 'queueMicrotask(String)',
    process: 'process.pid',
    console: 'console.log',
    fetch: 'fetch',
    globalThis: 'globalThis',
    global: 'global',
  };
  let directory: string;

  beforeAll(async () => {
    directory = await mkdtemp(path.join(tmpdir(), 'evictd-boundaries-'));
    const biome = JSON.parse(await readFile(path.join(ROOT, 'biome.json'), 'utf8'));
    // The copy is no git checkout.
    await writeFile(path.join(directory, 'biome.json'), JSON.stringify({ ...biome, vcs: {} }));
    await mkdir(path.join(directory, 'src/core'), { recursive: true });
    const lines = Object.values(BANNED).map((use, at) => `export const use${at} = ${use};\n`);
    await writeFile(path.join(directory, 'src/core/planted.ts'), lines.join(''));
    await mkdir(path.join(directory, 'src/sources'), { recursive: true });
    await cp(
      path.join(directory, 'src/core/planted.ts'),
      path.join(directory, 'src/sources/planted.ts'),
    );
  });
  afterAll(async () => {
    await rm(directory, { recursive: true, force: true });
  });

  it(
    'is reported by Biome, and is allowed elsewhere',
    async () => {
      const output = await promisify(execFile)(
        process.execPath,
        [path.join(ROOT, 'node_modules/@biomejs/biome/bin/biome'), 'lint', '--reporter=json', '.'],
        { cwd: directory, timeout: TIMEOUT_MS },
      ).catch((error: { stdout: string }) => error);
      const report = JSON.parse(output.stdout) as {
        readonly diagnostics: readonly {
          readonly category: string;
          readonly location: { readonly path: string; readonly start: { readonly line: number } };
        }[];
      };
      const reported = report.diagnostics
        .filter(({ category }) => category === 'lint/style/noRestrictedGlobals')
        .map(({ location }) => `${location.path}:${location.start.line}`);
      expect(reported).toEqual(Object.keys(BANNED).map((_, at) => `src/core/planted.ts:${at + 1}`));
    },
    TIMEOUT_MS,
  );
});

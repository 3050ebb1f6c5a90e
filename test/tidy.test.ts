import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

/** Modules of the core that hold types alone, so that there is nothing to test. */
const TYPES_ONLY = ['decision', 'kubernetes', 'pod', 'policy'];

/** This file names what it looks for. */
const SELF = 'test/tidy.test.ts';

interface Line {
  readonly file: string;
  readonly number: number;
  readonly text: string;
}

interface Rule {
  readonly name: string;
  /** What to do instead. */
  readonly instead: string;
  readonly pattern: RegExp;
  /** Which files it holds for. */
  readonly files: RegExp;
  readonly except?: RegExp;
  readonly breaks: readonly string[];
  readonly keeps: readonly string[];
}

/** Rules for single lines that neither Biome nor dependency-cruiser has. */
const RULES: readonly Rule[] = [
  {
    name: 'no line is longer than 120 columns',
    instead: 'break it; the formatter leaves long strings and comments alone',
    pattern: /^.{121,}$/u,
    files: /./,
    breaks: ['x'.repeat(121)],
    keeps: ['x'.repeat(120), 'ß'.repeat(120)],
  },
  {
    name: 'no test is focused, skipped or left for later',
    instead: 'delete it, or use describeWith() of test/support/skip.ts, which says why',
    pattern: /\b(it|test|describe|suite)(\.\w+)*\.(only|skip|todo)\b/,
    files: /^test\//,
    breaks: ["it.only('x')", "describe.skip('x')", "it.concurrent.todo('x')"],
    keeps: ["describe.skipIf(true)('x')", 'it.each([])'],
  },
  {
    name: 'a TODO carries the number of its issue',
    instead: 'file an issue and write TODO(#N), or do it',
    pattern: /\b(TODO|FIXME|XXX)\b(?!\(#\d+\))/,
    files: /./,
    breaks: ['// TODO: later', '// FIXME(me)'],
    keeps: ['// TODO(#12): later', 'const TODOS = 1;'],
  },
  {
    name: 'a Subject is made in daemon.ts and daemon/ alone',
    instead: 'derive the stream from its sources with operators',
    pattern: /\bnew (Behavior|Replay|Async)?Subject\b/,
    files: /^src\//,
    except: /^src\/daemon(\.ts$|\/)/,
    breaks: ['new Subject<void>()', 'new BehaviorSubject(1)', 'new ReplaySubject(1)'],
    keeps: ['new SubjectAccess()', 'a renewed Subject'],
  },
  {
    name: 'no debounceTime',
    instead:
      'a poll restarts it: keep first-observed times and one timer, as src/core/step.ts does',
    pattern: /\bdebounceTime\b/,
    files: /^src\//,
    breaks: ["import { debounceTime } from 'rxjs';"],
    keeps: ['auditTime(10, scheduler)'],
  },
  {
    name: 'the core takes no chance',
    instead: 'take the number as an argument',
    pattern: /\bMath\.random\b|\bcrypto\b/,
    files: /^src\/core\//,
    breaks: ['Math.random()', 'crypto.randomUUID()'],
    keeps: ['Math.min(1, 2)'],
  },
  {
    name: 'tests of the core use virtual time',
    instead: 'use the TestScheduler of test/support/marbles.ts',
    pattern: /\b(setTimeout|setInterval|setImmediate)\s*\(|['"](node:)?timers(\/promises)?['"]/,
    files: /^test\/core\/|\.marbles\./,
    breaks: ['setTimeout(done, 10)', "from 'node:timers/promises'"],
    keeps: ['timer(10, scheduler)', 'no setTimeout here'],
  },
  {
    name: 'no path of one machine',
    instead: 'make it relative to the checkout, or take it from the environment',
    pattern: /(^|[^\w.])\/(work|farm|home|Users)\//,
    files: /./,
    breaks: ["'/work/main'", '/farm/x', '"/home/me/evictd"'],
    keeps: ['./work/x', '/sys/fs/cgroup/memory/', 'src/work/x'],
  },
  {
    name: 'only commands write to the standard streams',
    instead: 'return the text, or emit it: surfaces/log.ts logs, commands/ print',
    pattern: /\bprocess\.(stdout|stderr)\.write\b|\bconsole\.\w+/,
    files: /^src\//,
    except: /^src\/(commands\/|main\.ts$)/,
    breaks: ["process.stdout.write('x')", 'console.error(error)'],
    keeps: ['process.stdout.isTTY', 'consoleLike.log'],
  },
];

/** Every text file of ours, whether it is committed yet or not. */
const FILES = execFileSync(
  'git',
  [
    ...['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--'],
    ...['src', 'native', 'test', 'bench', 'scripts'],
  ],
  { cwd: ROOT, encoding: 'utf8' },
)
  .split('\0')
  .filter((file) => /\.(ts|mts|mjs|js|cc|c|h|sh)$/.test(file))
  .filter((file) => file !== SELF && !file.startsWith('test/fixtures/'))
  // A file that was deleted but not yet committed is listed too.
  .filter((file) => existsSync(path.join(ROOT, file)));

const LINES: readonly Line[] = FILES.flatMap((file) =>
  readFileSync(path.join(ROOT, file), 'utf8')
    .split('\n')
    .map((text, at) => ({ file, number: at + 1, text })),
);

const json = (file: string) => JSON.parse(readFileSync(path.join(ROOT, file), 'utf8'));

describe('house rules', () => {
  it('are looked for somewhere', () => {
    expect(FILES.length).toBeGreaterThan(20);
  });

  describe.each(RULES)('$name', ({ instead, pattern, files, except, breaks, keeps }) => {
    it('holds', () => {
      const broken = LINES.filter(({ file }) => files.test(file) && !except?.test(file))
        .filter(({ text }) => pattern.test(text))
        .map(({ file, number, text }) => `${file}:${number}: ${text.trim()}`);
      expect(broken, instead).toEqual([]);
    });

    it('sees what breaks it and nothing else', () => {
      expect(breaks.filter((text) => !pattern.test(text))).toEqual([]);
      expect(keeps.filter((text) => pattern.test(text))).toEqual([]);
    });
  });

  it('a module of the core has a test of its name', () => {
    const modules = readdirSync(path.join(ROOT, 'src/core')).map((file) =>
      file.replace(/\.ts$/, ''),
    );
    const tests = readdirSync(path.join(ROOT, 'test/core'));
    const tested = (name: string) =>
      tests.some((file) => file.startsWith(`${name}.`) && file.endsWith('.test.ts'));
    expect(modules.filter((name) => !TYPES_ONLY.includes(name) && !tested(name))).toEqual([]);
    expect(TYPES_ONLY.filter((name) => !modules.includes(name))).toEqual([]);
  });

  it('a module of the core without a test has no value', () => {
    const value = /^export (async )?(const|let|function|class|default|\{|\*)/m;
    const withValue = TYPES_ONLY.filter((name) =>
      value.test(readFileSync(path.join(ROOT, `src/core/${name}.ts`), 'utf8')),
    );
    expect(withValue).toEqual([]);
  });

  it('dependencies are pinned to one version', () => {
    const manifest = json('package.json') as Record<string, Record<string, string>>;
    const ranges = ['dependencies', 'devDependencies', 'optionalDependencies', 'overrides']
      .flatMap((kind) => Object.entries(manifest[kind] ?? {}))
      .filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version));
    expect(ranges).toEqual([]);
  });

  it('the lock file names no registry', () => {
    const { packages } = json('package-lock.json') as {
      readonly packages: Record<string, { readonly resolved?: string; readonly version?: string }>;
    };
    expect(Object.keys(packages).length).toBeGreaterThan(1);
    const resolved = Object.entries(packages)
      .filter(([, entry]) => entry.resolved !== undefined)
      .map(([name]) => name);
    expect(resolved).toEqual([]);
  });

  it('the lock file belongs to the manifest', () => {
    const manifest = json('package.json') as Record<string, unknown>;
    const locked = (json('package-lock.json') as { packages: Record<string, typeof manifest> })
      .packages[''];
    for (const key of ['name', 'version', 'license', 'dependencies', 'devDependencies']) {
      expect(locked?.[key], key).toEqual(manifest[key]);
    }
  });
});

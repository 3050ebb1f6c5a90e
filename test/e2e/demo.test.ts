import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { MEMORY_HIERARCHY } from '../support/cgroup.ts';
import { report } from '../support/counts.ts';
import { describeWith } from '../support/skip.ts';
import { until, within } from '../support/wait.ts';

/** The real command on the real kernel, as `npm run demo` starts it: dist/ must be built. */
const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
/** A demo takes 8 s; each of its steps has a limit of its own. */
const DEMO_LIMIT_MS = 90_000;

const CLOSING = new RegExp(
  [
    '^leak was evicted: SIGKILL',
    '(about \\d+ ms|within 1 ms|\\(a poll was quicker\\) about \\d+ ms before)',
    "and dead \\d+(\\.\\d)? ms after the kernel's event,",
    'at most \\d+\\.\\dMi past the threshold; web, cache and batch live$',
  ].join(' '),
);

/** Hides or shows the cursor. */
const CURSOR = new RegExp(`${String.fromCharCode(27)}\\[\\?25[lh]`);

interface Run {
  readonly child: ChildProcess;
  output(): string;
  errors(): string;
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null }>;
}

let temporary: string;
const running: ChildProcess[] = [];

function start(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Run {
  // Its temporary files are where the test can see them, and its children can be told by that.
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env, TMPDIR: temporary },
  });
  running.push(child);
  const texts = { output: '', errors: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    texts.output += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    texts.errors += text;
  });
  return {
    child,
    output: () => texts.output,
    errors: () => texts.errors,
    ended: new Promise((resolve) => {
      child.once('close', (code, signal) => resolve({ code, signal }));
    }),
  };
}

const startPlain = () => start(process.execPath, [MAIN, 'demo', '--plain']);
const endOf = ({ ended }: Run) => within(ended, DEMO_LIMIT_MS, 'the demo ends');
const isSaid = (run: Run, text: string) =>
  until(`the demo says ${text}`, () => run.output().includes(text), {
    limitMs: DEMO_LIMIT_MS,
    describe: () => run.output() + run.errors(),
  });

/** The cgroup that the demo said it made. */
function nodeOf(run: Run): string {
  return /evictd-demo-\d+/.exec(run.output())?.[0] ?? 'no node was named';
}

const nodeNames = () => readdirSync(MEMORY_HIERARCHY);

/** The processes that have the test's own TMPDIR: the demo, and all that it started. */
function processes(): readonly string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => environmentOf(pid).split('\0').includes(`TMPDIR=${temporary}`));
}

function environmentOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1');
  } catch {
    return '';
  }
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1');
  } catch {
    return '';
  }
}

function expectNothingLeft(run: Run): void {
  expect(nodeNames()).not.toContain(nodeOf(run));
  expect(processes()).toEqual([]);
  expect(readdirSync(temporary)).toEqual([]);
}

describeWith({ root: true, cgroupV1: true, programs: ['script'] }, 'evictd demo', () => {
  beforeEach(() => {
    temporary = mkdtempSync(path.join(tmpdir(), 'evictd-demo-test-'));
  });

  afterEach(async () => {
    for (const child of running.splice(0)) child.kill('SIGKILL');
    await until('no process is left', () => processes().length === 0, { limitMs: 10_000 });
    rmSync(temporary, { recursive: true });
  });

  it('shows an eviction, says so, and leaves nothing behind', async () => {
    const run = startPlain();
    expect(await endOf(run), run.output() + run.errors()).toEqual({ code: 0, signal: null });
    const lines = run.output().trimEnd().split('\n');
    const closing = lines.at(-1) ?? '';
    expect(closing).toMatch(CLOSING);
    report(closing);
    const told = lines.slice(0, -1);
    expect(told.filter((line) => !/^ +\+\d+\.\d{3} s {2}\w+ +\S/.test(line))).toEqual([]);
    const times = told.map((line) => Number(/\+(\S+)/.exec(line)?.[1]));
    expect(times).toEqual(times.toSorted((one, other) => one - other));
    const story = [
      /demo +a node of 512Mi/,
      /evictd +ready/,
      /leak +grows/,
      /kernel +event: the node's usage crossed 448Mi/,
      /leak +ended: by SIGKILL/,
      /MemoryPressure is False/,
    ].map((pattern) => told.findIndex((line) => pattern.test(line)));
    expect(story).not.toContain(-1);
    expect(story).toEqual(story.toSorted((one, other) => one - other));
    expect(run.output()).toMatch(
      /woken by (the kernel|a timer), evicts leak: The node was low on resource: memory\./,
    );
    expect(run.errors()).toBe('');
    expectNothingLeft(run);
  });

  it.each([
    ['SIGINT', 130, 'a node of 512Mi'],
    ['SIGTERM', 143, 'evictd  ready'],
    ['SIGHUP', 129, 'leak    grows'],
  ] as const)('on %s ends with %i and leaves nothing behind', async (signal, code, said) => {
    const run = startPlain();
    await isSaid(run, said);
    expect(nodeNames()).toContain(nodeOf(run));
    run.child.kill(signal);
    expect(await endOf(run)).toEqual({ code, signal: null });
    expect(run.output()).not.toContain('was evicted');
    expectNothingLeft(run);
  });

  it('takes its processes with it when it is killed', async () => {
    const run = startPlain();
    await isSaid(run, 'leak    grows');
    const node = path.join(MEMORY_HIERARCHY, nodeOf(run));
    expect(processes().length).toBeGreaterThan(5);
    run.child.kill('SIGKILL');
    await endOf(run);
    await until('its children have ended', () => processes().length === 0, { limitMs: 10_000 });
    // The empty cgroups are all that is left.
    execFileSync('find', [node, '-depth', '-type', 'd', '-exec', 'rmdir', '{}', ';']);
  });

  it('says what is missing, and replays a recorded run', async () => {
    const run = start(process.execPath, [MAIN, 'demo'], { EVICTD_NATIVE_PATH: 'none' });
    expect(await endOf(run)).toEqual({ code: 10, signal: null });
    const lines = run.output().trimEnd().split('\n');
    expect(lines.filter((line) => !/^replay[ :]/.test(line))).toEqual([]);
    expect(lines.at(-1)).toMatch(/^replay: leak was evicted with/);
    expect(run.errors()).toMatch(
      /the native addon is missing.*\[EVICTD_UNSUPPORTED\]\n.*replay.*\[EVICTD_REPLAYED\]\n$/,
    );
    expect(nodeNames().filter((name) => name.startsWith('evictd-demo-'))).toEqual([]);
    expect(readdirSync(temporary)).toEqual([]);
  });

  it('ends a replay on a signal, and gives the terminal back', async () => {
    const command = `stty cols 90 rows 30; exec '${process.execPath}' '${MAIN}' demo`;
    const env = { TERM: 'xterm', NO_COLOR: '1', EVICTD_NATIVE_PATH: 'none' };
    const run = start('script', ['-qec', command, '/dev/null'], env);
    await isSaid(run, 'REPLAY of a recorded run');
    const [shown] = processes().filter((pid) => commandOf(pid).endsWith('\0demo\0'));
    process.kill(Number(shown), 'SIGINT');
    expect(await endOf(run)).toEqual({ code: 130, signal: null });
    const [, drawn, after, ...more] = run.output().split(CURSOR);
    expect(drawn).toContain('REPLAY of a recorded run');
    expect([after?.trim(), more]).toEqual(['', []]);
  });

  it('draws on a terminal and gives it back', async () => {
    const command = `stty cols 90 rows 30; exec '${process.execPath}' '${MAIN}' demo`;
    const run = start('script', ['-qec', command, '/dev/null'], { TERM: 'xterm', NO_COLOR: '' });
    expect(await endOf(run), run.errors()).toEqual({ code: 0, signal: null });
    const [before, drawn, after, ...more] = run.output().split(CURSOR);
    expect(before).toBe('');
    expect(drawn).toContain('evicts above 448Mi ▲');
    expect(drawn).toMatch(/node +\S*█+░+┃░+/);
    expect(after?.trimEnd()).toMatch(CLOSING);
    expect(more).toEqual([]);
    expectNothingLeft(run);
  });
});

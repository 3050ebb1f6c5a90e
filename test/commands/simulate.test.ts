/** `evictd simulate` as it is built, in processes of its own. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { simulateCommand } from '../../src/commands/simulate.ts';
import { simulate } from '../../src/simulation/engine.ts';
import type { SimulationResult } from '../../src/simulation/scenario.ts';
import { scenario, shortage } from '../support/stories.ts';

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const LIMIT = { timeout: 60_000 } as const;
const MAX_BUFFER = 256 * 2 ** 20;

let directory: string;
let files: Readonly<Record<'shortage' | 'calm' | 'yaml' | 'wrong' | 'batch' | 'config', string>>;

beforeAll(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'evictd-simulate-'));
  const write = (name: string, text: string): string => {
    const file = path.join(directory, name);
    writeFileSync(file, text);
    return file;
  };
  const config = { evictionHard: { 'memory.available': 'x' } };
  const lines = [
    JSON.stringify(shortage()),
    '',
    '{"name": "x"}',
    '   ',
    'no json',
    JSON.stringify(scenario({ config })),
    JSON.stringify(scenario()),
  ];
  files = {
    shortage: write('shortage.json', JSON.stringify(shortage(), null, 2)),
    calm: write('calm.json', JSON.stringify(scenario())),
    yaml: write(
      'calm.yaml',
      JSON.stringify(scenario()).replaceAll('{', '{ ').replace('"calm"', 'calm'),
    ),
    wrong: write('wrong.json', '{"name": "x"}'),
    batch: write('batch.jsonl', lines.join('\n')),
    config: write('config.json', JSON.stringify(scenario({ config }))),
  };
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

function run(args: readonly string[], input = '') {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, 'simulate', ...args], {
    ...LIMIT,
    maxBuffer: MAX_BUFFER,
    input,
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

const printed = (...results: readonly unknown[]): string =>
  results.map((result) => `${JSON.stringify(result)}\n`).join('');

describe('evictd simulate FILE', LIMIT, () => {
  it('prints the result in one line, in the order of its fields', () => {
    const { status, stdout, stderr } = run([files.shortage]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toBe(printed(simulate(shortage())));
    const [calm] = (JSON.parse(stdout) as SimulationResult).ticks;
    const order = ['at', 'nodeConditions', 'reclaim', 'events', 'evicted', 'admit'];
    expect(Object.keys(calm ?? {})).toEqual(order);
  });

  it('reads YAML, and standard input', () => {
    expect(run([files.yaml]).stdout).toBe(printed(simulate(scenario())));
    expect(run(['-'], JSON.stringify(scenario())).stdout).toBe(printed(simulate(scenario())));
  });

  it('prints one result after the other', () => {
    const { status, stdout } = run([files.calm, files.shortage, files.calm]);
    expect(status).toBe(0);
    const [calm, short] = [scenario(), shortage()].map((one) => simulate(one));
    expect(stdout).toBe(printed(calm, short, calm));
  });

  it('says in one line what cannot be read, and runs the others', () => {
    const missing = path.join(directory, 'missing');
    const { status, stdout, stderr } = run([files.wrong, files.calm, missing]);
    expect(status).toBe(2);
    expect(stdout).toBe(printed(simulate(scenario())));
    expect(stderr).toBe(
      `evictd: ${files.wrong}: description: is missing [EVICTD_SCENARIO]\n` +
        `evictd: ${missing}: no such file [EVICTD_SCENARIO]\n`,
    );
  });

  it('says so of a quantity that only the simulation reads', () => {
    const overhead = { memory: '5 Gi' };
    const pods = [{ metadata: { name: 'a', namespace: 'b', uid: 'c' }, spec: { overhead } }];
    const { status, stdout, stderr } = run(['-'], JSON.stringify(scenario({ pods })));
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toMatch(/^evictd: standard input: pods\[0\].*"5 Gi".* \[EVICTD_SCENARIO\]\n$/);
  });

  it('takes a configuration error for a result', () => {
    const { status, stdout, stderr } = run([files.config]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(JSON.parse(stdout)).toEqual({
      name: 'calm',
      error: expect.stringContaining('evictionHard: memory.available "x"'),
      ticks: [],
    });
  });

  it('has flags take the place of the configuration', () => {
    const flags = { '--compatibility': ['kubelet'], '--eviction-hard': ['memory.available<5Gi'] };
    const { stdout } = run([
      files.calm,
      ...Object.entries(flags).map(([name, value]) => `${name}=${value}`),
    ]);
    const result = simulate(scenario(), { flags });
    expect(result.ticks[0]?.evicted).toHaveLength(1);
    expect(stdout).toBe(printed(result));
  });

  it('tells the story, with its reasons, and the difference', () => {
    expect(run(['--format', 'text', files.shortage]).stdout).toMatch(
      /\nin the end: evicted: .+\n$/,
    );
    expect(run(['--explain', files.shortage]).stdout).toContain('within its request');
    expect(run(['--diff', '--eviction-soft=', files.shortage]).stdout).toContain(
      'what would have happened with --eviction-soft=: ',
    );
  });
});

describe('evictd simulate --batch FILE', LIMIT, () => {
  it('prints a result for each line that is not blank, whatever the others are', () => {
    const { status, stdout, stderr } = run(['--batch', files.batch]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const results = stdout.trimEnd().split('\n');
    expect(results).toEqual([
      JSON.stringify(simulate(shortage())),
      '{"error":"description: is missing","ticks":[]}',
      expect.stringMatching(/^\{"error":"no JSON: .+","ticks":\[\]\}$/),
      expect.stringMatching(/^\{"name":"calm","error":".+","ticks":\[\]\}$/),
      JSON.stringify(simulate(scenario())),
    ]);
  });

  it('answers a line before the next one is there', async () => {
    const child = spawn(process.execPath, [MAIN, 'simulate', '--batch', '-'], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    try {
      for (const one of [scenario(), shortage()]) {
        child.stdin.write(`${JSON.stringify(one)}\n`);
        const [answer] = (await once(child.stdout, 'data')) as [Buffer];
        expect(String(answer)).toBe(printed(simulate(one)));
      }
      child.stdin.end();
      expect(await once(child, 'exit')).toEqual([0, null]);
    } finally {
      child.kill('SIGKILL');
    }
  });

  const COUNT = 500;
  const many = (): string => `${JSON.stringify(shortage())}\n`.repeat(COUNT);

  it('loses nothing where its reader is slow', async () => {
    const file = path.join(directory, 'many.jsonl');
    writeFileSync(file, many());
    const child = spawn(process.execPath, [MAIN, 'simulate', '--batch', file], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      // What is not read fills the pipe, and more than a pipe holds waits in the process.
      const exited = once(child, 'exit');
      let text = '';
      for await (const chunk of child.stdout.setEncoding('utf8')) text += chunk;
      expect(await exited).toEqual([0, null]);
      expect(text).toBe(printed(simulate(shortage())).repeat(COUNT));
    } finally {
      child.kill('SIGKILL');
    }
  });

  it('ends quietly when its reader has gone', () => {
    const file = path.join(directory, 'gone.jsonl');
    writeFileSync(file, many());
    const shell = '"$0" "$1" simulate --batch "$2" | head -n 1; echo "$PIPESTATUS"';
    const { stdout, stderr } = spawnSync('bash', ['-c', shell, process.execPath, MAIN, file], {
      ...LIMIT,
      maxBuffer: MAX_BUFFER,
      encoding: 'utf8',
    });
    expect(stderr).toBe('');
    expect(stdout).toBe(`${printed(simulate(shortage()))}0\n`);
  });

  it('says that standard output cannot be written', () => {
    const { status, stderr } = spawnSync(process.execPath, [MAIN, 'simulate', files.calm], {
      ...LIMIT,
      maxBuffer: MAX_BUFFER,
      stdio: ['ignore', openSync('/dev/full', 'w'), 'pipe'],
      encoding: 'utf8',
    });
    expect(status).toBe(1);
    expect(stderr).toMatch(/^evictd: standard output: .*ENOSPC.* \[EVICTD_OUTPUT\]\n$/);
  });

  it('fails where the file cannot be read', () => {
    const { status, stdout, stderr } = run(['--batch', path.join(directory, 'missing')]);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toMatch(/missing: no such file \[EVICTD_SCENARIO\]\n$/);
  });
});

describe('simulateCommand', () => {
  it.each<[Parameters<typeof simulateCommand>[0], readonly string[], string, RegExp]>([
    [{}, [], 'EVICTD_USAGE', /^expected a FILE/],
    [{ '--batch': ['a'] }, ['b'], 'EVICTD_USAGE', /not both/],
    [{}, ['-', '-'], 'EVICTD_USAGE', /only once/],
    [{ '--explain': ['true'], '--diff': ['true'] }, ['a'], 'EVICTD_USAGE', /not both/],
    [{ '--batch': ['a'], '--format': ['text'] }, [], 'EVICTD_USAGE', /prints JSON/],
    [{ '--explain': ['true'], '--format': ['json'] }, ['a'], 'EVICTD_USAGE', /print text/],
    [{ '--diff': ['true'] }, ['a'], 'EVICTD_USAGE', /needs a flag/],
    [{ '--format': ['xml'] }, ['a'], 'EVICTD_CHOICE', /json, text/],
    [{ '--diff': ['x'] }, ['a'], 'EVICTD_CHOICE', /true, false/],
    [{ '--eviction-hard': ['memory.available<x'] }, ['a'], 'EVICTD_QUANTITY', /quantity/],
    [{ '--eviction-hard': ['memry.available<1'] }, ['a'], 'EVICTD_SIGNAL', /./],
    [{ '--compatibility': ['kublet'] }, ['a'], 'EVICTD_CHOICE', /evictd/],
  ])('refuses %j %j before anything is read', async (values, operands, code, message) => {
    await expect(simulateCommand(values, operands)).rejects.toMatchObject({
      code,
      exitStatus: 2,
      message: expect.stringMatching(message),
    });
  });
});

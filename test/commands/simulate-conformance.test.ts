/** Every conformance case through the built command, as `compare.mjs` of the cases compares. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type {
  AdmittedPod,
  EvictedPod,
  Scenario,
  SimulationResult,
  TickResult,
} from '../../src/simulation/scenario.ts';

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const CASES = fileURLToPath(new URL('../fixtures/conformance', import.meta.url));
const SINGLE_FILES = 20;
const TIMEOUT_MS = 120_000;

interface Case {
  readonly scenario: Scenario;
  readonly expected: SimulationResult;
}

function readCases(): readonly Case[] {
  const named = path.join(CASES, 'named');
  const texts = [
    ...readdirSync(named)
      .sort()
      .map((file) => readFileSync(path.join(named, file), 'utf8')),
    ...readFileSync(path.join(CASES, 'random.jsonl'), 'utf8').trimEnd().split('\n'),
  ];
  return texts.map((text) => JSON.parse(text) as Case);
}

/** What is compared of a result; the ranking where the expected result has it. */
function compared(result: SimulationResult, { ticks }: SimulationResult) {
  return {
    name: result.name,
    isError: result.error !== undefined,
    ticks: result.ticks.map((tick, index) => comparedTick(tick, ticks[index])),
  };
}

function comparedTick(tick: Partial<TickResult>, expected: Partial<TickResult> | undefined) {
  return {
    at: tick.at,
    nodeConditions: tick.nodeConditions ?? [],
    reclaim: tick.reclaim ?? [],
    events: tick.events ?? [],
    evicted: (tick.evicted ?? []).map((evicted: Partial<EvictedPod>) => ({
      annotations: {},
      killFailed: false,
      ...evicted,
    })),
    admit: (tick.admit ?? []).map((admitted: Partial<AdmittedPod>) => ({
      reason: '',
      message: '',
      ...admitted,
    })),
    ...(expected?.ranked === undefined ? {} : { ranked: tick.ranked }),
  };
}

describe('evictd simulate --compatibility kubelet', () => {
  const cases = readCases();
  let directory: string;
  beforeAll(() => {
    directory = mkdtempSync(path.join(tmpdir(), 'evictd-conformance-'));
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  function simulated(args: readonly string[]): readonly SimulationResult[] {
    const command = [MAIN, 'simulate', '--compatibility', 'kubelet', ...args];
    const { status, stdout, stderr } = spawnSync(process.execPath, command, {
      encoding: 'utf8',
      maxBuffer: 256 * 2 ** 20,
      timeout: TIMEOUT_MS,
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    return stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as SimulationResult);
  }

  function write(name: string, texts: readonly string[]): string {
    const file = path.join(directory, name);
    writeFileSync(file, texts.join('\n'));
    return file;
  }

  function expectAgreement(some: readonly Case[], results: readonly SimulationResult[]): void {
    expect(results).toHaveLength(some.length);
    for (const [index, { expected }] of some.entries()) {
      const result = results[index];
      if (result === undefined) throw new Error(`no result of ${expected.name}`);
      expect(compared(result, expected), expected.name).toEqual(compared(expected, expected));
    }
  }

  it(
    'agrees with the kubelet on every case, in a batch',
    () => {
      expect(cases.length).toBeGreaterThan(300);
      const file = write(
        'all.jsonl',
        cases.map(({ scenario }) => JSON.stringify(scenario)),
      );
      expectAgreement(cases, simulated(['--batch', file]));
    },
    TIMEOUT_MS,
  );

  it(
    'agrees with it in files of their own',
    () => {
      const every = Math.ceil(cases.length / SINGLE_FILES);
      const some = cases.filter((_, index) => index % every === 0);
      expect(some.length).toBeGreaterThan(SINGLE_FILES / 2);
      const results = some.flatMap(({ scenario }, index) =>
        simulated([write(`${index}.json`, [JSON.stringify(scenario, null, 2)])]),
      );
      expectAgreement(some, results);
    },
    TIMEOUT_MS,
  );
});

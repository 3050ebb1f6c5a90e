import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { simulate } from '../../src/simulation/engine.ts';
import type { Scenario, TickResult } from '../../src/simulation/scenario.ts';

/** Scenarios with what the eviction manager of Kubernetes v1.32 did. */
const CASES = path.join(path.dirname(fileURLToPath(import.meta.url)), '../fixtures/conformance');

interface Result {
  readonly name?: string;
  readonly error?: string;
  readonly ticks?: readonly Partial<TickResult>[];
}

interface Case {
  readonly scenario: Scenario;
  readonly expected: Result;
}

const named = path.join(CASES, 'named');
const NAMED = readdirSync(named)
  .sort()
  .map((file) => JSON.parse(readFileSync(path.join(named, file), 'utf8')) as Case);
const RANDOM = readFileSync(path.join(CASES, 'random.jsonl'), 'utf8')
  .split('\n')
  .filter((line) => line.trim() !== '')
  .map((line) => JSON.parse(line) as Case);

/**
 * What of `result` is compared with `other`: what is left out is filled in, what only evictd tells is
 * left out. Of an error only that there is one; of a ranking only where both have one.
 */
function compared(result: Result, other: Result): unknown {
  const { name, error, ticks = [] } = result;
  if (error !== undefined && error !== '') return { name, isError: true };
  return {
    name,
    isError: false,
    ticks: ticks.map((tick, index) => {
      const isRanked = tick.ranked !== undefined && other.ticks?.[index]?.ranked !== undefined;
      return {
        at: tick.at,
        nodeConditions: tick.nodeConditions ?? [],
        reclaim: tick.reclaim ?? [],
        events: (tick.events ?? []).map(({ object, type, reason, message }) => ({
          ...{ object, type, reason, message },
        })),
        evicted: (tick.evicted ?? []).map((one) => ({
          pod: one.pod,
          gracePeriodSeconds: one.gracePeriodSeconds,
          reason: one.reason,
          message: one.message,
          annotations: one.annotations ?? {},
          killFailed: one.killFailed ?? false,
        })),
        admit: (tick.admit ?? []).map(({ pod, admit, reason, message }) => ({
          ...{ pod, admit, reason: reason ?? '', message: message ?? '' },
        })),
        ...(isRanked ? { ranked: tick.ranked } : {}),
      };
    }),
  };
}

const byKubelet = (scenario: Scenario): Result =>
  simulate(scenario, { flags: { '--compatibility': ['kubelet'] } });

describe.each([
  ['a named case', NAMED, 106],
  ['a random case', RANDOM, 200],
] as const)('the kubelet’s rules: %s', (_, cases, count) => {
  it('is there, and each has a name of its own', () => {
    expect(new Set(cases.map(({ scenario }) => scenario.name)).size).toBe(count);
    expect(cases).toHaveLength(count);
  });

  it.each(cases.map((one) => [one.scenario.name, one] as const))('%s', (_, one) => {
    const { scenario, expected } = one;
    const actual = byKubelet(scenario);
    expect(compared(actual, expected)).toStrictEqual(compared(expected, actual));
  });
});

describe('the comparison', () => {
  const tick: TickResult = {
    at: '0s',
    nodeConditions: ['MemoryPressure'],
    reclaim: ['images'],
    events: [{ object: 'node', type: 'Warning', reason: 'Evicted', message: 'm' }],
    evicted: [
      { pod: 'a', gracePeriodSeconds: 1, reason: 'r', message: 'm', annotations: { k: 'v' } },
    ],
    ranked: ['a', 'b'],
    admit: [{ pod: 'c', admit: false, reason: 'r', message: 'm' }],
  };
  const result = (...ticks: readonly Partial<TickResult>[]): Result => ({ name: 'x', ticks });
  const agree = (one: Result, other: Result): boolean =>
    JSON.stringify(compared(one, other)) === JSON.stringify(compared(other, one));
  const [event] = tick.events;
  const [evicted] = tick.evicted;
  const [admitted] = tick.admit;

  it.each<[string, Result]>([
    ['the name', { ...result(tick), name: 'y' }],
    ['an error', { ...result(), error: 'e' }],
    ['no tick', result()],
    ['a tick more', result(tick, tick)],
    ['at', result({ ...tick, at: '0' })],
    ['a condition', result({ ...tick, nodeConditions: [] })],
    ['the order of collections', result({ ...tick, reclaim: ['containers', 'images'] })],
    ['an event', result({ ...tick, events: [] })],
    ['its object', result({ ...tick, events: [{ ...event, object: 'a' } as never] })],
    ['its message', result({ ...tick, events: [{ ...event, message: 'm ' } as never] })],
    ['nobody evicted', result({ ...tick, evicted: [] })],
    ['the grace', result({ ...tick, evicted: [{ ...evicted, gracePeriodSeconds: 0 } as never] })],
    ['the annotations', result({ ...tick, evicted: [{ ...evicted, annotations: {} } as never] })],
    [
      'a kill that failed',
      result({ ...tick, evicted: [{ ...evicted, killFailed: true } as never] }),
    ],
    ['the ranking', result({ ...tick, ranked: ['b', 'a'] })],
    ['nobody admitted', result({ ...tick, admit: [] })],
    ['whether one is', result({ ...tick, admit: [{ ...admitted, admit: true } as never] })],
    ['why not', result({ ...tick, admit: [{ ...admitted, message: '' } as never] })],
  ])('sees a difference: %s', (_, other) => {
    expect(agree(result(tick), other)).toBe(false);
  });

  it.each<[string, Result, Result]>([
    ['the same', result(tick), result({ ...tick })],
    ['the text of an error', { ...result(), error: 'a' }, { ...result(), error: 'b' }],
    ['what only evictd tells', result(tick), result({ ...tick, evictd: { why: 'noCandidate' } })],
    [
      'no ranking on one side',
      result(tick),
      result(Object.fromEntries(Object.entries(tick).filter(([key]) => key !== 'ranked')) as never),
    ],
    [
      'lists that are left out',
      result({ at: '0s' }),
      result({ at: '0s', nodeConditions: [], reclaim: [], events: [], evicted: [], admit: [] }),
    ],
  ])('sees none: %s', (_, one, other) => {
    expect(agree(one, other)).toBe(true);
  });
});

import { describe, expect, it } from 'vitest';
import { PASSED_OVER_LIMIT } from '../../src/core/observe.ts';
import type { ReadSample } from '../../src/core/pipeline.ts';
import { RULE_SETS } from '../../src/core/rules.ts';
import type { Signal } from '../../src/core/signal.ts';
import { INITIAL_STATE, type Sample, type State } from '../../src/core/state.ts';
import { step } from '../../src/core/step.ts';
import { thresholdId } from '../../src/core/threshold.ts';
import {
  MI,
  outcome,
  policy,
  sample,
  softThreshold,
  threshold,
  value,
} from '../support/builders.ts';
import { LEAK, lastOf, SOFT, said, say, story, WEB, withPods } from './stories.ts';

const BOTH_RULES = ['kubelet', 'evictd'] as const;

describe('a soft threshold', () => {
  const only = policy({ thresholds: [softThreshold()], maxPodGracePeriodSeconds: 10 });

  it('is acted on when its grace has passed, not before', () => {
    const results = story(
      only,
      sample(1000, 150 * MI, withPods),
      sample(30_999, 150 * MI, withPods),
      sample(31_000, 150 * MI, withPods),
    );
    expect(said(results)).toStrictEqual(['none calm', 'none calm', 'evict leak']);
    expect(results[2]?.decision).toMatchObject({ hard: false, gracePeriodMs: 10_000 });
    // The condition holds from the first reading on; the wake-up is the end of the grace.
    expect(results[0]?.conditions).toStrictEqual(['MemoryPressure']);
    expect(results.map(({ wakeAtMs }) => wakeAtMs)).toStrictEqual([31_000, 31_000, 331_000]);
  });

  it('is forgotten when the pressure is gone during its grace', () => {
    const results = story(
      only,
      sample(0, 150 * MI, withPods),
      sample(20_000, 200 * MI, withPods),
      sample(30_000, 250 * MI, withPods),
    );
    expect(said(results)).toStrictEqual(['none calm', 'none calm', 'none calm']);
    expect(results[1]?.state.firstObserved.size).toBe(0);
  });

  it('has its whole grace again when the pressure comes back', () => {
    const results = story(
      only,
      sample(0, 150 * MI, withPods),
      sample(29_999, 200 * MI, withPods),
      sample(30_000, 150 * MI, withPods),
      sample(59_999, 150 * MI, withPods),
      sample(60_000, 150 * MI, withPods),
    );
    expect(said(results).slice(2)).toStrictEqual(['none calm', 'none calm', 'evict leak']);
  });

  it('without a grace period is due at once, as a hard one is', () => {
    const zero = policy({
      thresholds: [softThreshold({ gracePeriodMs: 0 })],
      maxPodGracePeriodSeconds: 60,
      hardEvictionGracePeriodSeconds: 1,
    });
    const { decision } = lastOf(zero, sample(0, 150 * MI, withPods));
    expect(decision).toMatchObject({ kind: 'evict', hard: true, gracePeriodMs: 1000 });
  });

  it('gives way to a hard one that is due too', () => {
    const { decision } = lastOf(
      SOFT,
      sample(0, 150 * MI, withPods),
      sample(30_000, 50 * MI, withPods),
    );
    expect(decision).toMatchObject({ hard: true, cause: { level: 100 * MI } });
  });
});

describe('the outcome of an eviction', () => {
  const refused = (
    reason:
      | 'pressureGone'
      | 'podGone'
      | 'podReplaced'
      | 'protected'
      | 'nothingToKill'
      | 'unsupported',
  ) => outcome('leak', { kind: 'refused', reason });

  it.each([
    // what it ended as, for how long the pod is passed over
    ['evicted', outcome('leak'), undefined],
    ['refused, pressure gone', refused('pressureGone'), undefined],
    ['refused, pod gone', refused('podGone'), 60_000],
    ['refused, pod made again', refused('podReplaced'), 60_000],
    ['refused, protected', refused('protected'), 60_000],
    ['refused, nothing to kill yet', refused('nothingToKill'), 1000],
    ['refused, unsupported', refused('unsupported'), 60_000],
    ['timed out', outcome('leak', { kind: 'timedOut', reason: 'deadline' }), 60_000],
    ['still dying', outcome('leak', { kind: 'timedOut', reason: 'stillDying' }), 60_000],
    ['failed', outcome('leak', { kind: 'failed', error: 'EPERM' }), 60_000],
  ] as const)('%s: the pod is passed over or not', (_, ended, passedOverMs) => {
    const { decision, state } = lastOf(
      policy(),
      sample(0, 50 * MI, withPods),
      sample(5, 50 * MI, { ...withPods, outcome: ended }),
    );
    expect(say(decision)).toBe(passedOverMs === undefined ? 'evict leak' : 'evict batch');
    const passedOver = passedOverMs === undefined ? [] : [[LEAK.id, 5 + passedOverMs]];
    expect([...state.passedOver]).toStrictEqual(passedOver);
  });

  it('passes a pod over for 60 s, and wakes up at their end', () => {
    const failed = outcome('leak', { kind: 'failed', error: 'EPERM' });
    const both = [WEB, LEAK].map((one) => (one === WEB ? { ...WEB, protectedBecause: 'x' } : one));
    const results = story(
      policy(),
      sample(0, 50 * MI, { pods: both }),
      sample(5, 50 * MI, { pods: both, outcome: failed }),
      sample(60_004, 50 * MI, { pods: both }),
      sample(60_005, 50 * MI, { pods: both }),
    );
    expect(said(results)).toStrictEqual([
      'evict leak',
      'none noCandidate',
      'none noCandidate',
      'evict leak',
    ]);
    expect(results[1]?.wakeAtMs).toBe(60_005);
    expect(results[3]?.state.passedOver.size).toBe(0);
  });

  it('is no reason to wake up once nothing is due', () => {
    const failed = outcome('leak', { kind: 'failed', error: 'EPERM' });
    const by = policy({ pressureTransitionPeriodMs: 0 });
    const result = lastOf(
      by,
      sample(0, 50 * MI, withPods),
      sample(5, 200 * MI, { outcome: failed }),
    );
    expect(result.state.passedOver.size).toBe(1);
    expect(result.wakeAtMs).toBeUndefined();
  });

  it('remembers a limited number of pods, the latest', () => {
    let { state } = lastOf(policy(), sample(0, 50 * MI, withPods));
    const passedOver = new Map(
      Array.from({ length: PASSED_OVER_LIMIT }, (_, at) => [`old-${at}`, 1000 + at] as const),
    );
    state = { ...state, passedOver };
    const failed = outcome('leak', { kind: 'failed', error: 'EPERM' });
    const result = step(policy(), state, sample(1, 200 * MI, { outcome: failed }));
    const ids = [...result.state.passedOver.keys()];
    expect(ids).toHaveLength(PASSED_OVER_LIMIT);
    expect([ids[0], ids.at(-1)]).toStrictEqual(['old-1', LEAK.id]);
  });
});

describe('a signal that could not be read', () => {
  it('keeps what was known of it, and decides nothing', () => {
    const results = story(
      SOFT,
      sample(0, 150 * MI, withPods),
      sample(10_000, undefined, withPods),
      sample(29_999, undefined, withPods),
      sample(30_000, 150 * MI, withPods),
    );
    expect(said(results)).toStrictEqual(['none calm', 'none calm', 'none calm', 'evict leak']);
    expect(results[1]?.state).toStrictEqual({ ...results[0]?.state, metAtMs: 10_000 });
    expect(results[1]?.wakeAtMs).toBe(30_000);
  });

  it('keeps a hard threshold met, but evicts nobody for it', () => {
    const results = story(
      policy(),
      sample(0, 50 * MI),
      sample(1, undefined, withPods),
      sample(2, 50 * MI, withPods),
    );
    expect(said(results)).toStrictEqual(['observePods', 'none calm', 'evict leak']);
    expect(results[1]?.state.due.map(thresholdId)).toStrictEqual(['hard:memory.available']);
  });

  it('becomes due for no grace that ends unseen: pressure that is gone asks for no reclaim', () => {
    const by = policy({ thresholds: [softThreshold({ minimumReclaim: value('50Mi') })] });
    const results = story(
      by,
      sample(0, 150 * MI, withPods),
      sample(31_000, undefined, withPods),
      sample(32_000, 210 * MI, withPods),
    );
    expect(said(results)).toStrictEqual(['none calm', 'none calm', 'none calm']);
    expect(results[1]?.state.due).toStrictEqual([]);
    expect(results[2]?.state.met).toStrictEqual([]);
  });

  it('holds the condition for the transition period after the last reading', () => {
    const results = story(
      policy({ pressureTransitionPeriodMs: 1000 }),
      sample(0, 50 * MI),
      sample(999, undefined),
      sample(1000, undefined),
    );
    expect(results.map(({ conditions }) => conditions.length)).toStrictEqual([1, 1, 0]);
  });

  it('was never read: nothing is known, nothing is done', () => {
    const { state, decision, conditions, wakeAtMs } = lastOf(
      policy(),
      sample(0, undefined, withPods),
    );
    expect(state).toStrictEqual(INITIAL_STATE);
    expect([say(decision), conditions, wakeAtMs]).toStrictEqual(['none calm', [], undefined]);
  });
});

describe('a signal that could not be read, by the kubelet’s rules', () => {
  const by = policy({ rules: RULE_SETS.kubelet, thresholds: [softThreshold()] });
  const missing = (nowMs: number) => sample(nowMs, undefined, { ...withPods, isComplete: true });

  it('is calm, and has its whole grace again', () => {
    const results = story(
      by,
      sample(0, 150 * MI, withPods),
      missing(10_000),
      sample(20_000, 150 * MI, withPods),
      sample(49_999, 150 * MI, withPods),
      sample(50_000, 150 * MI, withPods),
    );
    expect(said(results)).toStrictEqual([
      'none calm',
      'none calm',
      'none calm',
      'none calm',
      'evict leak',
    ]);
    expect(results[1]?.state.met).toStrictEqual([]);
    expect(results[1]?.state.firstObserved.size).toBe(0);
  });

  it('keeps its condition for the transition period all the same', () => {
    const results = story(
      policy({ rules: RULE_SETS.kubelet, pressureTransitionPeriodMs: 1000 }),
      sample(0, 50 * MI, withPods),
      missing(999),
      missing(1000),
    );
    expect(results.map(({ conditions }) => conditions.length)).toStrictEqual([1, 1, 0]);
  });

  it('that was not asked for keeps what was known of it', () => {
    const results = story(
      by,
      sample(0, 150 * MI, withPods),
      sample(10_000, undefined, withPods),
      sample(30_000, 150 * MI, withPods),
    );
    expect(said(results)).toStrictEqual(['none calm', 'none calm', 'evict leak']);
  });

  it('keeps all by evictd’s own rules, though it was asked for', () => {
    const own = { ...by, rules: RULE_SETS.evictd };
    const results = story(
      own,
      sample(0, 150 * MI, withPods),
      missing(10_000),
      sample(30_000, 150 * MI, withPods),
    );
    expect(said(results)).toStrictEqual(['none calm', 'none calm', 'evict leak']);
  });
});

describe('where nothing at all was read', () => {
  const unread = (nowMs: number): Sample => ({ nowMs, observations: undefined, ...withPods });

  it.each([
    ['kubelet', ['MemoryPressure', 'MemoryPressure', 'MemoryPressure', '']],
    ['evictd', ['MemoryPressure', 'MemoryPressure', '', '']],
  ] as const)('by the rules of %s conditions stay, or end in time', (rules, expected) => {
    const results = story(
      policy({ rules: RULE_SETS[rules], pressureTransitionPeriodMs: 1000 }),
      sample(0, 50 * MI, { pods: [] }),
      unread(999),
      unread(1000),
      sample(1001, 500 * MI),
    );
    expect(results.map(({ conditions }) => conditions.join())).toStrictEqual(expected);
  });

  it.each(BOTH_RULES)('by the rules of %s all that is known stays, and nobody goes', (rules) => {
    const by = policy({ rules: RULE_SETS[rules], thresholds: [softThreshold()] });
    const results = story(
      by,
      sample(0, 150 * MI, withPods),
      unread(10_000),
      unread(31_000),
      sample(31_001, 150 * MI, withPods),
    );
    expect(said(results)).toStrictEqual(['none calm', 'none calm', 'none calm', 'evict leak']);
    expect(results[2]?.state).toStrictEqual(results[0]?.state);
  });
});

describe('C26: when it was last collected for images', () => {
  const images = ['imagefs.available', 'imagefs.inodesFree'] as const;
  const signals = [...images, 'nodefs.available' as const];
  const times = new Map(signals.map((signal) => [signal, 7]));
  const short = signals.map((signal) => threshold({ signal }));
  const by = policy({ layout: 'splitImagefs', thresholds: short });
  const inFlight = (signal: Signal | undefined) => ({
    podId: LEAK.id,
    podName: LEAK.name,
    signal,
    hard: true,
  });
  const known = (state: Partial<State>, given: Sample, policyOf = by) =>
    [
      ...step(
        policyOf,
        { ...INITIAL_STATE, met: short, due: short, collectedAtMs: times, ...state },
        given,
      ).state.collectedAtMs.keys(),
    ].length;
  const gone = (overrides: Partial<ReadSample> = {}) =>
    sample(1, 500 * MI, { outcome: outcome('leak'), ...overrides });
  const failed = outcome('leak', { kind: 'failed', error: 'EPERM' });
  const awaited = { spaceAwaited: { sinceMs: 0, untilMs: 3000, highest: new Map() } };

  it.each<[string, Partial<State>, Sample, number]>([
    ['is forgotten after an eviction for them', { inFlight: inFlight(images[0]) }, gone(), 1],
    [
      'stays while the victim holds its space',
      { inFlight: inFlight(images[0]) },
      gone({ spaceHeld: true }),
      3,
    ],
    [
      'stays where the eviction failed',
      { inFlight: inFlight(images[0]) },
      gone({ outcome: failed }),
      3,
    ],
    ['stays after an eviction for memory', { inFlight: inFlight('memory.available') }, gone(), 3],
    ['stays after one for a limit of the pod’s own', { inFlight: inFlight(undefined) }, gone(), 3],
    [
      'is forgotten after one for memory that ends the wait for space',
      { ...awaited, inFlight: inFlight('memory.available') },
      gone(),
      1,
    ],
    ['stays while space is awaited', awaited, sample(2999, 500 * MI), 3],
    ['is forgotten once it has come back', awaited, sample(3000, 500 * MI), 1],
    ['stays without any of that', {}, sample(3000, 500 * MI), 3],
  ])('%s', (_, state, given, expected) => {
    expect(known(state, given)).toBe(expected);
    expect(known(state, given, { ...by, rules: RULE_SETS.kubelet })).toBe(3);
    expect(known(state, given, { ...by, layout: 'dedicatedImagefs' })).toBe(3);
  });
});

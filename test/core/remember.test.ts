import { describe, expect, it } from 'vitest';
import type { ReadSample } from '../../src/core/pipeline.ts';
import { RULE_SETS } from '../../src/core/rules.ts';
import { INITIAL_STATE, type Sample } from '../../src/core/state.ts';
import { thresholdId } from '../../src/core/threshold.ts';
import {
  GI,
  MI,
  observation,
  outcome,
  pod,
  policy,
  sample,
  threshold,
  value,
} from '../support/builders.ts';
import { LEAK, lastOf, said, story, withPods } from './stories.ts';

const BOTH_RULES = ['kubelet', 'evictd'] as const;

describe('figures that bear a time', () => {
  const at = (nowMs: number, statsTimeNs: bigint | undefined, rest: Partial<ReadSample> = {}) => ({
    nowMs,
    observations: [observation(50 * MI, { atMs: nowMs, statsTimeNs })],
    ...withPods,
    ...rest,
  });
  const gone = { nowMs: 1, observations: undefined, outcome: outcome('leak') };

  it.each([
    // by whose rules, the time before, the time now, what is done
    ['kubelet', 100n, 101n, 'evict leak'],
    ['kubelet', 100n, 100n, 'none calm'],
    // The clock was set back (k/k#54130).
    ['kubelet', 100n, 99n, 'none calm'],
    ['kubelet', 100n, undefined, 'evict leak'],
    ['kubelet', undefined, 100n, 'evict leak'],
    ['kubelet', undefined, undefined, 'evict leak'],
    ['evictd', 100n, 101n, 'evict leak'],
    ['evictd', 100n, 100n, 'none calm'],
    ['evictd', 100n, 99n, 'evict leak'],
    ['evictd', 100n, undefined, 'evict leak'],
    ['evictd', undefined, 100n, 'evict leak'],
    ['evictd', undefined, undefined, 'evict leak'],
  ] as const)('by the rules of %s: %s, then %s: %s', (rules, before, now, expected) => {
    const by = policy({ rules: RULE_SETS[rules] });
    const results = story(by, at(0, before), gone, at(2, now));
    expect(said(results)).toStrictEqual(['evict leak', 'none calm', expected]);
    // What is old still counts for conditions.
    expect(results[2]?.conditions).toStrictEqual(['MemoryPressure']);
    expect(results[2]?.state.met.map(thresholdId)).toStrictEqual(['hard:memory.available']);
  });

  it.each([
    ['kubelet', true, 'evict leak'],
    ['evictd', true, 'none calm'],
    // Where not all was asked for, what is missing is none that could not be read.
    ['kubelet', undefined, 'none calm'],
    ['evictd', undefined, 'none calm'],
  ] as const)(
    'that were not read in between: by the rules of %s, all asked for: %s: %s',
    (rules, isComplete, expected) => {
      const by = policy({ rules: RULE_SETS[rules] });
      const missing = sample(2, undefined, isComplete && { isComplete });
      const results = story(by, at(0, 100n), gone, missing, at(3, 100n));
      expect(said(results).at(-1)).toBe(expected);
    },
  );

  it.each([
    ['kubelet', 100n],
    ['evictd', 200n],
  ] as const)('from after a collection are remembered or not: %s', (rules, expected) => {
    const signal = 'nodefs.available';
    const by = policy({
      rules: RULE_SETS[rules],
      thresholds: [threshold({ signal, value: value('1Gi') })],
      ranksDisk: true,
      reclaims: ['containers', 'images'],
    });
    const full = (nowMs: number, statsTimeNs: bigint): Sample => ({
      nowMs,
      isComplete: true,
      observations: [observation(MI, { signal, capacity: 100 * GI, statsTimeNs })],
      pods: [],
    });
    const { state } = lastOf(by, full(0, 100n), { ...full(1, 200n), reclaimed: true });
    expect(state.statsTimesNs.get(signal)).toBe(expected);
  });

  it.each([
    ['evictd', 100n, 99n, true],
    ['evictd', 100n, 100n, false],
    ['evictd', 100n, 101n, false],
    ['evictd', 100n, undefined, false],
    ['evictd', undefined, 99n, false],
    ['kubelet', 100n, 99n, false],
  ] as const)(
    'by the rules of %s: %s, then %s: it is said that a clock was set back: %s',
    (rules, before, now, isSaid) => {
      const by = policy({ rules: RULE_SETS[rules] });
      const calm = (nowMs: number, statsTimeNs: bigint | undefined): Sample => ({
        nowMs,
        observations: [observation(500 * MI, { atMs: nowMs, statsTimeNs })],
      });
      const results = story(by, calm(0, before), calm(1, now), calm(2, now));
      const event = {
        type: 'Warning',
        reason: 'ClockSetBack',
        message: 'Figures are older than the ones before: the clock of their source was set back',
      };
      // Once: from then on the new time counts.
      expect(results.map(({ events }) => events)).toStrictEqual([[], isSaid ? [event] : [], []]);
    },
  );

  it('says nothing of a clock where nothing was read', () => {
    const results = story(policy(), at(0, 100n), gone);
    expect(results[1]?.events).toStrictEqual([]);
  });

  it.each(BOTH_RULES)('by the rules of %s are not forgotten where nothing was read', (rules) => {
    const by = policy({ rules: RULE_SETS[rules] });
    const results = story(
      by,
      at(0, 100n),
      gone,
      { nowMs: 2, observations: undefined },
      at(3, 100n),
    );
    expect(said(results).at(-1)).toBe('none calm');
  });

  it.each([
    ['kubelet', 'none calm'],
    ['evictd', 'evict batch'],
  ] as const)('an eviction by them came to nothing: by the rules of %s %s', (rules, expected) => {
    const by = policy({ rules: RULE_SETS[rules] });
    const failed = outcome('leak', { kind: 'failed', error: 'EPERM' });
    const results = story(by, at(0, 100n), at(1, 100n, { outcome: failed }));
    expect(said(results)).toStrictEqual(['evict leak', expected]);
  });

  it('a kill that fails for another reason than a signal makes none of them new', () => {
    const overLimits = [{ pod: LEAK, message: '' }];
    const failed = outcome('leak', { kind: 'failed', error: 'EPERM' });
    const results = story(
      policy(),
      at(0, 100n, { overLimits }),
      at(1, 100n, { outcome: failed, overLimits: [] }),
    );
    expect(said(results)).toStrictEqual(['evict leak', 'none calm']);
  });

  it('of one signal say nothing of another', () => {
    const pids = threshold({ signal: 'pid.available', value: value('100') });
    const by = policy({ thresholds: [threshold(), pids] });
    const few = observation(5, { signal: 'pid.available', capacity: 500, statsTimeNs: 100n });
    const counted = [pod('bomb', { pids: 450 })];
    const results = story(by, at(0, 100n), {
      ...at(1, 100n, { pods: counted, outcome: outcome('leak') }),
      observations: [...at(1, 100n).observations, few],
    });
    expect(said(results)).toStrictEqual(['evict leak', 'evict bomb']);
  });

  it('a failed eviction makes those of its own signal new, no others', () => {
    const pids = threshold({ signal: 'pid.available', value: value('100') });
    const by = policy({ thresholds: [threshold(), pids] });
    const few = observation(5, { signal: 'pid.available', capacity: 500, statsTimeNs: 100n });
    const both = [...at(0, 100n).observations, few];
    const failed = outcome('leak', { kind: 'failed', error: 'EPERM' });
    const { state } = lastOf(
      by,
      { nowMs: 0, observations: both, ...withPods },
      { nowMs: 1, observations: undefined, outcome: failed },
    );
    expect([...state.statsTimesNs]).toStrictEqual([['pid.available', 100n]]);
  });

  it.each(BOTH_RULES)('by the rules of %s a time after none is new', (rules) => {
    const by = policy({ rules: RULE_SETS[rules] });
    const results = story(by, at(0, 100n), gone, at(2, undefined), gone, at(4, 100n));
    expect(said(results)).toStrictEqual([
      'evict leak',
      'none calm',
      'evict leak',
      'none calm',
      'evict leak',
    ]);
  });

  it('without a time nothing is remembered, or made anew', () => {
    const { state } = lastOf(policy(), sample(0, 500 * MI), sample(1, 50 * MI, withPods));
    expect(state.statsTimesNs).toBe(INITIAL_STATE.statsTimesNs);
  });
});

describe('a dry run', () => {
  it('says once for each burst of pressure whom it would evict', () => {
    const dryRun = outcome('leak', { kind: 'refused', reason: 'dryRun' });
    const results = story(
      policy(),
      sample(0, 50 * MI, withPods),
      sample(1, 50 * MI, { ...withPods, outcome: dryRun }),
      sample(2, 40 * MI, withPods),
      sample(3, undefined, withPods),
      sample(4, 40 * MI, withPods),
      sample(5, 200 * MI, withPods),
      sample(1003, 50 * MI, withPods),
      sample(1004, 200 * MI, withPods),
      sample(2003, 50 * MI, withPods),
    );
    expect(said(results)).toStrictEqual([
      'evict leak',
      'none said',
      'none said',
      'none calm',
      'none said',
      'none calm',
      // Less than a second later it is the same burst.
      'none said',
      'none calm',
      'evict leak',
    ]);
    expect(results[1]?.state.passedOver.size).toBe(0);
  });
});

describe('what is remembered of pressure under which nobody may be evicted', () => {
  it('C26: counts those whose end would free nothing, but no protected ones', () => {
    const signal = 'pid.available';
    const by = policy({ thresholds: [threshold({ signal, value: value('100') })] });
    const none = pod('none', { pids: 0 });
    const guarded = pod('guarded', { pids: 0, protectedBecause: 'configured' });
    const { state } = lastOf(by, {
      nowMs: 0,
      observations: [observation(5, { signal, capacity: 500 })],
      pods: [none, guarded],
    });
    expect(state.impossible).toMatchObject({
      pods: 2,
      protectedPods: 1,
      passedOverPods: 0,
      helplessPods: 1,
    });
  });
});

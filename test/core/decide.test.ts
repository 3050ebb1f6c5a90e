import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { victimGraceSeconds } from '../../src/core/decide.ts';
import type { ReadSample } from '../../src/core/pipeline.ts';
import type { PodObservation } from '../../src/core/pod.ts';
import { RECLAIM_FUNCTIONS } from '../../src/core/reclaim.ts';
import { RULE_SETS } from '../../src/core/rules.ts';
import { INITIAL_STATE, type OverLimit, type Sample } from '../../src/core/state.ts';
import { step } from '../../src/core/step.ts';
import {
  GI,
  MI,
  observation,
  outcome,
  pod,
  policy,
  sample,
  softThreshold,
  threshold,
  value,
} from '../support/builders.ts';
import { BATCH, LEAK, lastOf, PODS, said, say, story, WEB, withPods } from './stories.ts';

const BOTH_RULES = ['kubelet', 'evictd'] as const;

describe('minimum reclaim', () => {
  it.each([
    ['a quantity', '50Mi', 150 * MI],
    ['a percentage of the capacity', '25%', 356 * MI],
  ])('%s is to be regained beyond the threshold', (_, reclaim, regainedAt) => {
    const by = policy({ thresholds: [threshold({ minimumReclaim: value(reclaim) })] });
    const results = story(
      by,
      // Above the threshold it asks for nothing before something was due.
      sample(0, 100 * MI, withPods),
      sample(1, 50 * MI, withPods),
      sample(2, 100 * MI, { pods: [WEB, BATCH], outcome: outcome('leak') }),
      sample(3, regainedAt - 1, { pods: [WEB], outcome: outcome('batch') }),
      sample(4, regainedAt, { pods: [], outcome: outcome('web') }),
      // And nothing any more afterwards.
      sample(5, 100 * MI, { pods: PODS }),
    );
    expect(said(results)).toStrictEqual([
      'none calm',
      'evict leak',
      'evict batch',
      'evict web',
      'none calm',
      'none calm',
    ]);
    expect(results[1]?.decision).toMatchObject({ cause: { level: 100 * MI, reclaiming: false } });
    expect(results[2]?.decision).toMatchObject({ cause: { level: regainedAt, reclaiming: true } });
  });

  it('is not asked for while a soft threshold is in its grace', () => {
    const by = policy({ thresholds: [softThreshold({ minimumReclaim: value('50Mi') })] });
    const results = story(by, sample(0, 150 * MI, withPods), sample(1, 200 * MI, withPods));
    expect(results[1]?.state.met).toStrictEqual([]);
  });
});

describe('one eviction is in flight', () => {
  it('from its decision to its outcome', () => {
    const results = story(
      policy(),
      sample(0, 50 * MI, withPods),
      sample(1, 40 * MI, withPods),
      // Another pod's outcome is none of its own.
      sample(2, 30 * MI, { ...withPods, outcome: outcome('web') }),
      sample(3, 200 * MI, withPods),
      sample(4, 50 * MI, { pods: [WEB, BATCH], outcome: outcome('leak') }),
    );
    expect(said(results)).toStrictEqual([
      'evict leak',
      'none evicting',
      'none evicting',
      'none evicting',
      'evict batch',
    ]);
  });

  it('an outcome without an eviction changes nothing', () => {
    const stray = sample(0, 200 * MI, {
      outcome: outcome('leak', { kind: 'failed', error: 'EPERM' }),
    });
    expect(lastOf(policy(), stray).state).toStrictEqual({
      ...INITIAL_STATE,
      observations: stray.observations,
    });
  });

  it('when the pressure is gone with the outcome, nothing follows', () => {
    const { decision, state } = lastOf(
      policy(),
      sample(0, 50 * MI, withPods),
      sample(1, 300 * MI, { ...withPods, outcome: outcome('leak') }),
    );
    expect(say(decision)).toBe('none calm');
    expect(state.inFlight).toBeUndefined();
  });
});

describe('escalation', () => {
  const by = policy({
    thresholds: [threshold(), softThreshold()],
    maxPodGracePeriodSeconds: 60,
    hardEvictionGracePeriodSeconds: 2,
  });
  const untilSoftEviction = [sample(0, 150 * MI, withPods), sample(30_000, 150 * MI, withPods)];

  it('cuts the grace of a soft victim once, when a hard threshold is met', () => {
    const results = story(
      by,
      ...untilSoftEviction,
      sample(40_000, 100 * MI),
      sample(40_001, 99 * MI),
      sample(40_002, 98 * MI),
      sample(40_003, 150 * MI),
      sample(40_004, 50 * MI, withPods),
      sample(40_005, 50 * MI, { pods: [WEB, BATCH], outcome: outcome('leak') }),
    );
    expect(said(results)).toStrictEqual([
      'none calm',
      'evict leak',
      'none evicting',
      'escalate leak',
      'none evicting',
      'none evicting',
      'none evicting',
      'evict batch',
    ]);
    expect(results[3]?.decision).toStrictEqual({
      kind: 'escalate',
      podId: LEAK.id,
      podName: 'leak',
      gracePeriodMs: 2000,
      cause: {
        threshold: threshold(),
        observation: { signal: 'memory.available', capacity: GI, available: 99 * MI, atMs: 40_001 },
        level: 100 * MI,
        reclaiming: false,
      },
      message: 'The node was low on resource: memory. Threshold quantity: 100Mi, available: 99Mi.',
    });
    expect(results[3]?.state.inFlight).toMatchObject({ podName: 'leak', hard: true });
    expect(results[7]?.decision).toMatchObject({ hard: true });
  });

  it('needs no pods, and comes with the very next reading', () => {
    expect(said(story(by, ...untilSoftEviction, sample(30_000, 50 * MI))).at(-1)).toBe(
      'escalate leak',
    );
  });

  it('comes of PIDs too, while memory that is only softly short goes before them', () => {
    const pids = threshold({ signal: 'pid.available', value: value('10') });
    const both = { ...by, thresholds: [...by.thresholds, pids] };
    const few = observation(5, { signal: 'pid.available', capacity: 1000, atMs: 40_000 });
    const results = story(both, ...untilSoftEviction, {
      nowMs: 40_000,
      observations: [observation(150 * MI, { atMs: 40_000 }), few],
    });
    expect(said(results).at(-1)).toBe('escalate leak');
    expect(results.at(-1)?.decision).toMatchObject({ cause: { threshold: pids } });
  });

  it('is not for a hard victim', () => {
    const results = story(by, sample(0, 50 * MI, withPods), sample(1, 0, withPods));
    expect(said(results)).toStrictEqual(['evict leak', 'none evicting']);
  });

  it('waits for a reading: one that failed decides nothing', () => {
    const results = story(
      by,
      ...untilSoftEviction,
      sample(40_000, undefined),
      sample(40_001, 50 * MI),
    );
    expect(said(results).slice(2)).toStrictEqual(['none evicting', 'escalate leak']);
  });
});

describe('candidates', () => {
  it('a protected pod is never one, though it ranks first', () => {
    const guarded = { ...LEAK, protectedBecause: 'holds evictd itself' };
    expect(say(lastOf(policy(), sample(0, 0, { pods: [guarded, WEB, BATCH] })).decision)).toBe(
      'evict batch',
    );
    expect(say(lastOf(policy(), sample(0, 0, { pods: [guarded] })).decision)).toBe(
      'none noCandidate',
    );
  });

  it('there are none on an empty node', () => {
    const { decision, wakeAtMs } = lastOf(policy(), sample(0, 0, { pods: [] }));
    expect(say(decision)).toBe('none noCandidate');
    expect(wakeAtMs).toBe(300_000);
  });

  it('are looked for again after a second while there are none, or when the pressure is new', () => {
    const guarded = [{ ...LEAK, protectedBecause: 'holds evictd itself' }];
    const results = story(
      policy(),
      sample(0, 50 * MI, { pods: guarded }),
      sample(999, 50 * MI),
      sample(1000, 50 * MI),
      sample(1001, 50 * MI, { pods: guarded }),
      sample(1100, 200 * MI),
      // Wavering right at the threshold is not yet new pressure.
      sample(1250, 50 * MI),
      sample(1251, 50 * MI),
      sample(1252, 50 * MI, { pods: guarded }),
      sample(1400, 200 * MI),
      sample(1502, 200 * MI),
      sample(1503, 50 * MI),
    );
    expect(said(results)).toStrictEqual([
      'none noCandidate',
      'none noCandidate',
      'observePods',
      'none noCandidate',
      'none calm',
      'none noCandidate',
      'observePods',
      'none noCandidate',
      'none calm',
      'none calm',
      'observePods',
    ]);
  });

  it('are looked for again at once when clearly less is available than when there were none', () => {
    const guarded = [{ ...LEAK, protectedBecause: 'configured' }];
    // The threshold is 100Mi: an eighth of it is 12.5Mi.
    const results = story(
      policy(),
      sample(0, 60 * MI, { pods: guarded }),
      sample(50, 48 * MI),
      sample(100, 47.5 * MI),
      sample(101, 47.5 * MI, { pods: guarded }),
      // Counted from there: what wavers brings nothing new.
      sample(150, 60 * MI),
      sample(200, 36 * MI),
      sample(250, 35 * MI),
      sample(251, 35 * MI, { pods: [{ ...LEAK, id: 'another', name: 'another' }, ...guarded] }),
    );
    expect(said(results)).toStrictEqual([
      'none noCandidate',
      'none noCandidate',
      'observePods',
      'none noCandidate',
      'none noCandidate',
      'none noCandidate',
      'observePods',
      'evict another',
    ]);
  });

  it('are looked for by each signal’s own figures', () => {
    const allocatable = threshold({ signal: 'allocatableMemory.available', value: value('1Gi') });
    const by = policy({ thresholds: [threshold(), allocatable] });
    const guarded = [{ ...LEAK, protectedBecause: 'configured' }];
    const low = (nowMs: number, node: number, pods: number): Sample => ({
      nowMs,
      observations: [
        observation(node, { atMs: nowMs }),
        observation(pods, { signal: 'allocatableMemory.available', capacity: 2 * GI, atMs: nowMs }),
      ],
    });
    const results = story(
      by,
      { ...low(0, 500 * MI, 900 * MI), pods: guarded },
      // Of the node's memory less is available than of the pods' then; that is no fall.
      low(100, 90 * MI, 900 * MI),
    );
    expect(said(results)).toStrictEqual(['none noCandidate', 'none noCandidate']);
  });

  it.each<[string, number, number]>([
    ['the same burst', 1499, 0],
    ['a new one', 1500, 1500],
  ])('their lack is found once in each burst of pressure: %s', (_, nowMs, foundAtMs) => {
    const guarded = [{ ...LEAK, protectedBecause: 'configured' }, WEB];
    const failed = outcome('web', { kind: 'failed', error: 'EPERM' });
    const refused = [{ ...LEAK, protectedBecause: 'configured' }];
    const results = story(
      policy(),
      sample(-5, 50 * MI, { pods: guarded }),
      sample(0, 40 * MI, { pods: guarded, outcome: failed }),
      sample(100, 40 * MI),
      sample(500, 40 * MI, { pods: refused }),
      sample(501, 200 * MI),
      sample(nowMs, 50 * MI, { pods: refused }),
    );
    expect(results.map(({ state }) => state.impossible?.atMs)).toStrictEqual([
      undefined,
      0,
      0,
      0,
      0,
      foundAtMs,
    ]);
    expect(results[1]?.state.impossible).toMatchObject({
      atMs: 0,
      cause: { level: 100 * MI, observation: { available: 40 * MI } },
      pods: 2,
      protectedPods: 1,
      passedOverPods: 1,
    });
  });

  it('that come are evicted in the turn that lists them', () => {
    const guarded = { ...LEAK, protectedBecause: 'holds no process' };
    const pods = [guarded];
    const results = story(
      policy(),
      sample(0, 50 * MI, { pods }),
      sample(50, 50 * MI, { pods: [LEAK] }),
      sample(60, 50 * MI, { outcome: outcome('leak') }),
      sample(61, 50 * MI, { pods }),
    );
    expect(said(results)).toStrictEqual([
      'none noCandidate',
      'evict leak',
      'observePods',
      'none noCandidate',
    ]);
    // Still the same burst.
    expect(results[3]?.state.impossible).toBe(results[0]?.state.impossible);
  });

  it('do not depend on the order in which pods are listed', () => {
    const some = ['a', 'b', 'c', 'd', 'e', 'f'];
    const listed = fc.array(
      fc.record({
        priority: fc.integer({ min: 0, max: 2 }),
        workingSetBytes: fc.constantFrom(undefined, MI, 2 * MI),
        protectedBecause: fc.constantFrom(undefined, undefined, 'reason'),
      }),
      { maxLength: some.length },
    );
    const orders = listed
      .map((all) => all.map((fields, at) => pod(some[at] ?? '', fields)))
      .chain((pods) =>
        fc.tuple(fc.constant(pods), fc.shuffledSubarray(pods, { minLength: pods.length })),
      );
    fc.assert(
      fc.property(orders, ([pods, shuffled]) => {
        const one = lastOf(policy(), sample(0, 0, { pods }));
        expect(lastOf(policy(), sample(0, 0, { pods: shuffled }))).toStrictEqual(one);
        if (one.decision.kind === 'evict') {
          expect(one.decision.pod.protectedBecause).toBeUndefined();
        } else {
          expect(pods.every(({ protectedBecause }) => protectedBecause !== undefined)).toBe(true);
        }
      }),
    );
  });
});

describe('after an eviction for PIDs', () => {
  const signal = 'pid.available';
  const by = policy({ thresholds: [threshold({ signal, value: value('100') })] });
  const low = (nowMs: number, available: number, rest: Partial<ReadSample> = {}): ReadSample => ({
    nowMs,
    observations: [observation(available, { signal, capacity: 500, atMs: nowMs })],
    ...rest,
  });
  const BOMB = pod('bomb', { pids: 450 });
  const SMALL = pod('small', { pids: 11 });
  const ended = outcome('bomb');

  it('nobody goes who has too few for two seconds: what has ended is not yet waited for', () => {
    const pods = [SMALL];
    const results = story(
      by,
      low(0, 0, { pods: [BOMB, SMALL] }),
      low(200, 1, { outcome: ended, pods }),
      low(2199, 1, { pods }),
      low(2200, 1, { pods }),
    );
    expect(said(results)).toStrictEqual([
      'evict bomb',
      'none evicting',
      'none evicting',
      'evict small',
    ]);
    expect(results[1]?.wakeAtMs).toBe(2200);
    expect(results[2]?.state.impossible).toBeUndefined();
  });

  it('a second one that has them goes at once', () => {
    const second = pod('second', { pids: 240 });
    const results = story(
      by,
      low(0, 0, { pods: [BOMB, SMALL, second] }),
      low(200, 1, { outcome: ended, pods: [SMALL, second] }),
    );
    expect(said(results)).toStrictEqual(['evict bomb', 'evict second']);
  });

  it('memory is no matter of that', () => {
    const both = policy({ thresholds: [...by.thresholds, threshold()] });
    const results = story(both, low(0, 0, { pods: [BOMB, SMALL] }), {
      ...low(200, 1, { outcome: ended, pods: [SMALL] }),
      observations: [observation(50 * MI, { atMs: 200 }), ...low(200, 1).observations],
    });
    expect(said(results)).toStrictEqual(['evict bomb', 'evict small']);
  });

  it('nobody is there: impossible, as ever', () => {
    const results = story(
      by,
      low(0, 0, { pods: [BOMB] }),
      low(200, 1, { outcome: ended, pods: [] }),
    );
    expect(said(results)).toStrictEqual(['evict bomb', 'none noCandidate']);
  });

  it('nobody goes who has none of the node’s PIDs, whatever the priority', () => {
    const far = pod('far', { pids: 0, priority: -10 });
    expect(said(story(by, low(0, 0, { pods: [far, SMALL] })))).toStrictEqual(['evict small']);
    expect(said(story(by, low(0, 0, { pods: [far] })))).toStrictEqual(['none noCandidate']);
    // The kubelet has no such rule.
    const kubelet = { ...by, rules: RULE_SETS.kubelet };
    expect(said(story(kubelet, low(0, 0, { pods: [far, SMALL] })))).toStrictEqual(['evict far']);
  });

  it('a pod that could not be counted has too few', () => {
    const results = story(
      by,
      low(0, 0, { pods: [BOMB] }),
      low(200, 1, { outcome: ended, pods: [pod('unknown')] }),
    );
    expect(said(results)).toStrictEqual(['evict bomb', 'none evicting']);
  });
});

describe('disk pressure', () => {
  const disk = threshold({ signal: 'nodefs.available', value: value('1Gi') });
  const full = (nowMs: number) =>
    observation(MI, { signal: 'nodefs.available', capacity: 100 * GI, atMs: nowMs });
  const by = policy({ thresholds: [threshold(), disk] });

  it('is a node condition, and nobody is evicted for it', () => {
    const pods = [pod('leak')];
    const { decision, conditions, state } = lastOf(by, {
      nowMs: 0,
      observations: [observation(500 * MI), full(0)],
      pods,
    });
    expect(decision).toMatchObject({
      kind: 'none',
      why: 'noReclaim',
      cause: { threshold: disk, level: GI, observation: { available: MI } },
    });
    expect(conditions).toStrictEqual(['DiskPressure']);
    expect(state.impossible).toBeUndefined();
  });

  it('does not stand in the way of what an eviction helps', () => {
    const thresholds = [disk, threshold({ signal: 'pid.available', value: value('50') })];
    const { decision, conditions } = lastOf(policy({ thresholds }), {
      nowMs: 0,
      observations: [full(0), observation(10, { signal: 'pid.available', capacity: 500 })],
      pods: [pod('calm', { pids: 2 }), pod('bomb', { pids: 450 })],
    });
    expect(decision).toMatchObject({ kind: 'evict', pod: { name: 'bomb' } });
    expect(conditions).toStrictEqual(['DiskPressure', 'PIDPressure']);
  });

  it('cuts nobody’s grace', () => {
    const soft = softThreshold({ gracePeriodMs: 1000 });
    const soften = policy({ thresholds: [soft, disk], maxPodGracePeriodSeconds: 30 });
    const pods = [pod('leak')];
    const decisions = story(soften, sample(0, 150 * MI), sample(1000, 150 * MI, { pods }), {
      nowMs: 1100,
      observations: [observation(150 * MI, { atMs: 1100 }), full(1100)],
    }).map(({ decision }) => decision);
    expect(decisions.map(({ kind }) => kind)).toStrictEqual(['none', 'evict', 'none']);
    expect(decisions[2]).toStrictEqual({ kind: 'none', why: 'evicting' });
  });
});

describe('disk pressure where it is known what pods use', () => {
  const disk = threshold({
    signal: 'nodefs.available',
    value: value('1Gi'),
    minimumReclaim: value('500Mi'),
  });
  const ranks = policy({ thresholds: [disk], ranksDisk: true });
  const reclaims = policy({ thresholds: [disk], ranksDisk: true, reclaims: RECLAIM_FUNCTIONS });
  const parts = (bytes: number) => ({ bytes, inodes: 1 });
  const onDisk = (bytes: number): Partial<PodObservation> => ({
    disk: { root: parts(bytes), logs: parts(0), localVolumes: parts(0) },
  });
  const BIG = pod('big', { ...onDisk(3 * GI), workingSetBytes: MI });
  const SMALL = pod('small', { ...onDisk(1), workingSetBytes: 900 * MI });
  const pods = [SMALL, BIG];
  const nodefs = (availableBytes: number, nowMs: number, statsTimeNs?: bigint) =>
    observation(availableBytes, {
      signal: 'nodefs.available',
      capacity: 100 * GI,
      atMs: nowMs,
      statsTimeNs,
    });
  const at = (nowMs: number, availableMi: number, rest: Partial<ReadSample> = {}): ReadSample => ({
    nowMs,
    observations: [nodefs(availableMi * MI, nowMs)],
    ...rest,
  });

  it('evicts who uses most of the disk, whatever memory is used', () => {
    expect(lastOf(ranks, at(0, 900, { pods })).decision).toMatchObject({
      kind: 'evict',
      pod: { name: 'big' },
      cause: { level: GI },
    });
  });

  describe('and dead containers and unused images can be collected', () => {
    it('collects before it asks for pods, and says what for', () => {
      const { decision, state, events, ranked } = lastOf(reclaims, at(0, 900));
      expect(decision).toMatchObject({
        kind: 'reclaim',
        functions: ['containers', 'images'],
        cause: { threshold: disk, level: GI, observation: { available: 900 * MI } },
      });
      expect(state.reclaiming?.threshold).toBe(disk);
      expect(state.inFlight).toBeUndefined();
      expect(ranked).toBeUndefined();
      expect(events).toStrictEqual([
        {
          type: 'Warning',
          reason: 'EvictionThresholdMet',
          message: 'Attempting to reclaim ephemeral-storage',
        },
      ]);
    });

    it.each([
      ['single', 'nodefs.available', 'kubelet', 'reclaim containers images'],
      ['splitImagefs', 'imagefs.available', 'kubelet', 'reclaim images'],
      ['splitImagefs', 'containerfs.available', 'evictd', 'reclaim containers'],
      // Its logs lie on nodefs; the kubelet collects nothing for it.
      ['dedicatedImagefs', 'nodefs.available', 'evictd', 'reclaim containers'],
      ['dedicatedImagefs', 'nodefs.available', 'kubelet', 'evict big'],
      ['single', 'memory.available', 'kubelet', 'evict small'],
      ['single', 'pid.available', 'evictd', 'none noCandidate'],
    ] as const)('with %s for %s by the rules of %s: %s', (layout, signal, rules, expected) => {
      const by = policy({
        thresholds: [threshold({ signal, value: value('1Gi') })],
        rules: RULE_SETS[rules],
        layout,
        ranksDisk: true,
        reclaims: RECLAIM_FUNCTIONS,
      });
      const counted = pods.map((one) => ({ ...one, pids: 0 }));
      const low = observation(MI, { signal, capacity: 100 * GI });
      const { decision } = lastOf(by, { nowMs: 0, observations: [low], pods: counted });
      expect(say(decision)).toBe(expected);
    });

    it.each(BOTH_RULES)('by the rules of %s does nothing until it has ended', (rules) => {
      const by = { ...reclaims, rules: RULE_SETS[rules] };
      const results = story(by, at(0, 900, { pods }), at(1, 100, { pods }), at(2, 2000, { pods }));
      expect(said(results)).toStrictEqual([
        'reclaim containers images',
        'none reclaiming',
        'none reclaiming',
      ]);
      expect(results.map(({ events }) => events.length)).toStrictEqual([1, 0, 0]);
    });

    it.each(BOTH_RULES)('by the rules of %s nobody goes where that was enough', (rules) => {
      const by = { ...reclaims, rules: RULE_SETS[rules] };
      const results = story(by, at(0, 900), at(1, 1524, { pods, reclaimed: true }));
      expect(said(results)).toStrictEqual(['reclaim containers images', 'none reclaimed']);
      expect(results[1]?.state.reclaiming).toBeUndefined();
      expect(results[1]?.events).toStrictEqual([]);
      expect(results[1]?.ranked).toBeUndefined();
    });

    it.each(BOTH_RULES)(
      'by the rules of %s somebody goes where the minimum reclaim is a byte short',
      (rules) => {
        const by = { ...reclaims, rules: RULE_SETS[rules] };
        const short: ReadSample = {
          ...at(1, 0, { pods, reclaimed: true }),
          observations: [nodefs(1524 * MI - 1, 1)],
        };
        const results = story(by, at(0, 900), short);
        expect(said(results)).toStrictEqual(['reclaim containers images', 'evict big']);
        expect(results[1]?.state.reclaiming).toBeUndefined();
        // What it is for was said before it began.
        expect(results.map(({ events }) => events.length)).toStrictEqual([1, 0]);
      },
    );

    it('describes the eviction by figures from after it; the kubelet by those from before', () => {
      const available = (rules: (typeof BOTH_RULES)[number]) => {
        const by = { ...reclaims, rules: RULE_SETS[rules] };
        const { decision, state } = lastOf(by, at(0, 900), at(1, 950, { pods, reclaimed: true }));
        return [
          decision.kind === 'evict' && decision.message.replace(/^.*available: (\w+)\..*$/, '$1'),
          state.observations.map((one) => one.available / MI),
        ];
      };
      expect(available('evictd')).toStrictEqual(['950Mi', [950]]);
      expect(available('kubelet')).toStrictEqual(['900Mi', [900]]);
    });

    it('asks for pods where the sample after it has none, and goes on from there', () => {
      const results = story(
        reclaims,
        at(0, 900),
        at(1, 950, { reclaimed: true }),
        at(1, 950, { pods, reclaimed: true }),
      );
      expect(said(results)).toStrictEqual([
        'reclaim containers images',
        'observePods',
        'evict big',
      ]);
    });

    it.each([
      ['kubelet', 'evict big'],
      ['evictd', 'none reclaimed'],
    ] as const)('another resource that is short: by the rules of %s %s', (rules, expected) => {
      const memory = softThreshold({ value: value('500Mi') });
      const by = { ...reclaims, thresholds: [memory, disk], rules: RULE_SETS[rules] };
      const both = (nowMs: number, availableMi: number): ReadSample => ({
        nowMs,
        observations: [observation(400 * MI, { atMs: nowMs }), nodefs(availableMi * MI, nowMs)],
        pods,
      });
      const results = story(by, both(0, 900), { ...both(1, 5000), reclaimed: true });
      expect(said(results)).toStrictEqual(['reclaim containers images', expected]);
    });

    it('to the kubelet a signal that was not read after it is not short', () => {
      const images = threshold({ signal: 'imagefs.available', value: value('1Gi') });
      const by = { ...reclaims, thresholds: [disk, images], rules: RULE_SETS.kubelet };
      const results = story(by, at(0, 900), at(1, 5000, { pods, reclaimed: true }));
      expect(said(results)).toStrictEqual(['reclaim containers images', 'none reclaimed']);
    });

    it.each([
      ['kubelet', 'evict big'],
      ['evictd', 'none unmeasured'],
    ] as const)('nothing could be read after it: by the rules of %s %s', (rules, expected) => {
      const by = { ...reclaims, rules: RULE_SETS[rules] };
      const unread: Sample = { nowMs: 1, observations: undefined, pods, reclaimed: true };
      expect(said(story(by, at(0, 900), unread))).toStrictEqual([
        'reclaim containers images',
        expected,
      ]);
    });

    it.each([
      ['evictd', 100n, 'none unmeasured'],
      ['evictd', 99n, 'evict big'],
      ['evictd', 101n, 'evict big'],
      // The kubelet looks only at whether it was enough.
      ['kubelet', 100n, 'evict big'],
    ] as const)(
      'by the rules of %s figures of %d after those of 100 (k/k#41032): %s',
      (rules, timeNs, expected) => {
        const by = { ...reclaims, rules: RULE_SETS[rules] };
        const results = story(
          by,
          { nowMs: 0, observations: [nodefs(900 * MI, 0, 100n)], pods },
          { nowMs: 1, observations: [nodefs(900 * MI, 1, timeNs)], pods, reclaimed: true },
        );
        expect(said(results)).toStrictEqual(['reclaim containers images', expected]);
      },
    );

    it('what could not be measured after it is decided by the next figures, without another', () => {
      const figures = (nowMs: number, timeNs: bigint, rest: Partial<ReadSample> = {}) => ({
        nowMs,
        observations: [nodefs(900 * MI, nowMs, timeNs)],
        pods,
        ...rest,
      });
      const results = story(
        reclaims,
        figures(0, 100n),
        figures(0, 100n, { reclaimed: true }),
        figures(10_000, 100n),
        figures(20_000, 101n),
        figures(20_001, 102n, { outcome: outcome('big') }),
      );
      expect(said(results)).toStrictEqual([
        'reclaim containers images',
        'none unmeasured',
        'none calm',
        'evict big',
        'reclaim containers images',
      ]);
    });

    it('where nobody is evicted for disk it is all that is done', () => {
      const by = { ...reclaims, ranksDisk: false };
      const results = story(by, at(0, 900), at(1, 950, { pods, reclaimed: true }));
      expect(said(results)).toStrictEqual(['reclaim containers images', 'none noReclaim']);
    });

    it.each([
      ['evictd', 0, 'evict small'],
      ['evictd', 1, 'evict small'],
      ['evictd', 9999, 'evict small'],
      ['evictd', 10_000, 'reclaim containers images'],
      ['kubelet', 0, 'reclaim containers images'],
      ['kubelet', 10_000, 'reclaim containers images'],
    ] as const)('by the rules of %s %d ms after it began: %s', (rules, nowMs, expected) => {
      const results = story(
        { ...reclaims, rules: RULE_SETS[rules] },
        at(0, 900, { pods }),
        at(0, 950, { pods, reclaimed: true }),
        at(nowMs, 950, { pods: [SMALL], outcome: outcome('big') }),
      );
      expect(said(results)).toStrictEqual(['reclaim containers images', 'evict big', expected]);
    });

    describe('and something else becomes short while that runs', () => {
      const memory = threshold({ value: value('500Mi') });
      const pids = threshold({ signal: 'pid.available', value: value('100') });
      const images = threshold({ signal: 'imagefs.available', value: value('1Gi') });
      const soft = softThreshold({ value: value('800Mi') });
      const by = { ...reclaims, thresholds: [memory, soft, pids, images, disk] };
      const withMemory = (nowMs: number, memoryMi: number, rest: Partial<ReadSample> = {}) => ({
        ...at(nowMs, 900, rest),
        observations: [nodefs(900 * MI, nowMs), observation(memoryMi * MI, { atMs: nowMs })],
        pods,
      });
      const counted = pods.map((one) => ({ ...one, pids: one === BIG ? 500 : 1 }));

      it.each(BOTH_RULES)('by the rules of %s memory does not wait for it', (rules) => {
        const results = story(
          { ...by, rules: RULE_SETS[rules] },
          at(0, 900),
          withMemory(1, 400),
          withMemory(2, 400, { outcome: outcome('small') }),
          withMemory(3, 900),
        );
        expect(said(results)).toStrictEqual([
          'reclaim containers images',
          'evict small',
          'evict small',
          'none evicting',
        ]);
        expect(results.map(({ events }) => events.map(({ message }) => message))).toStrictEqual([
          ['Attempting to reclaim ephemeral-storage'],
          ['Attempting to reclaim memory'],
          rules === 'kubelet' ? ['Attempting to reclaim memory'] : [],
          [],
        ]);
        expect(results.at(-1)?.state.reclaiming?.threshold).toBe(disk);
      });

      it('a soft threshold of it acts when its grace is over', () => {
        const results = story(
          by,
          withMemory(0, 700),
          withMemory(29_999, 700),
          withMemory(30_000, 700),
        );
        expect(said(results)).toStrictEqual([
          'reclaim containers images',
          'none reclaiming',
          'evict small',
        ]);
      });

      it('nor do PIDs; another disk does', () => {
        const low = (signal: 'pid.available' | 'imagefs.available'): Sample => ({
          nowMs: 1,
          observations: [observation(5, { signal, capacity: 10 * GI })],
          pods: counted,
        });
        expect(said(story(by, at(0, 900), low('pid.available')))).toStrictEqual([
          'reclaim containers images',
          'evict big',
        ]);
        expect(said(story(by, at(0, 900), low('imagefs.available')))).toStrictEqual([
          'reclaim containers images',
          'none reclaiming',
        ]);
      });

      it('asks for pods where there are none, and says nobody where nobody may go', () => {
        const { pods: _, ...without } = withMemory(1, 400);
        const results = story(by, at(0, 900), without, { ...withMemory(2, 400), pods: [] });
        expect(said(results)).toStrictEqual([
          'reclaim containers images',
          'observePods',
          'none noCandidate',
        ]);
      });

      it('a dry run names nobody a second time', () => {
        const results = story(
          by,
          at(0, 900),
          withMemory(1, 400),
          withMemory(2, 400, { outcome: outcome('small', { kind: 'refused', reason: 'dryRun' }) }),
        );
        expect(said(results)).toStrictEqual([
          'reclaim containers images',
          'evict small',
          'none said',
        ]);
      });

      it('and its end comes while a pod is in flight: the disk is decided by new figures after that', () => {
        const results = story(
          by,
          at(0, 900),
          withMemory(1, 400),
          at(2, 950, { reclaimed: true }),
          at(3, 950, { pods: [BIG], outcome: outcome('small') }),
        );
        expect(said(results)).toStrictEqual([
          'reclaim containers images',
          'evict small',
          'none evicting',
          'evict big',
        ]);
        expect(results[2]?.state.reclaiming).toBeUndefined();
      });

      it.each([
        ['evictd', 'evict small'],
        ['kubelet', 'evict big'],
      ] as const)('in the sample after it: by the rules of %s %s', (rules, expected) => {
        const results = story(
          { ...by, rules: RULE_SETS[rules] },
          at(0, 900),
          withMemory(1, 400, { reclaimed: true }),
        );
        expect(said(results)).toStrictEqual(['reclaim containers images', expected]);
        expect(results[1]?.state.reclaiming).toBeUndefined();
      });

      it('the grace of a soft victim is not cut by what is being collected for', () => {
        const graceful = { ...by, thresholds: [soft, disk, images], maxPodGracePeriodSeconds: 60 };
        const patient = { pods: [pod('patient', { ...onDisk(1), gracePeriodSeconds: 60 })] };
        const results = story(
          graceful,
          { ...withMemory(0, 700), ...patient },
          { ...withMemory(30_000, 700), ...patient },
          at(30_001, 900, patient),
          { ...at(30_002, 900), observations: [observation(5, { signal: 'imagefs.available' })] },
        );
        expect(said(results)).toStrictEqual([
          'reclaim containers images',
          'evict patient',
          'none evicting',
          'escalate patient',
        ]);
      });
    });

    it.each([
      ['gone', [], 'none reclaimed'],
      ['lower', [threshold({ ...disk, value: value('100Mi') })], 'none reclaimed'],
      ['higher', [threshold({ ...disk, value: value('3Gi') })], 'evict big'],
    ] as const)(
      'its threshold is %s by the settings that hold at its end',
      (_, thresholds, expected) => {
        const { state } = lastOf(reclaims, at(0, 900));
        const after = at(1, 2000, { pods, reclaimed: true });
        const { decision } = step({ ...reclaims, thresholds }, state, after);
        expect(say(decision)).toBe(expected);
      },
    );

    it.each([
      ['single', 'nodefs.available', ['containers'], 'reclaim containers'],
      ['single', 'nodefs.available', ['images'], 'reclaim images'],
      // Layers alone, which lie elsewhere.
      ['dedicatedImagefs', 'nodefs.available', ['images'], 'none noCandidate'],
      ['dedicatedImagefs', 'nodefs.available', [], 'none noCandidate'],
      ['splitImagefs', 'containerfs.available', ['images'], 'evict big'],
      // What a pod leaves there would stay.
      ['splitImagefs', 'imagefs.available', ['containers'], 'none noReclaim'],
    ] as const)(
      'with %s for %s, where %j can be collected: %s',
      (layout, signal, can, expected) => {
        const by = {
          ...reclaims,
          layout,
          reclaims: can,
          thresholds: [threshold({ ...disk, signal })],
        };
        const low = observation(MI, { signal, capacity: 100 * GI });
        const { decision } = lastOf(by, { nowMs: 0, observations: [low], pods });
        expect(say(decision)).toBe(expected);
      },
    );

    it('was for one signal: for another it is done at once', () => {
      const inodes = threshold({ signal: 'nodefs.inodesFree', value: value('100') });
      const by = { ...reclaims, thresholds: [disk, inodes] };
      const few = observation(5, { signal: 'nodefs.inodesFree', capacity: 1000, atMs: 2 });
      const results = story(by, at(0, 900), at(1, 5000, { reclaimed: true }), {
        nowMs: 2,
        observations: [nodefs(5 * GI, 2), few],
      });
      expect(said(results)).toStrictEqual([
        'reclaim containers images',
        'none reclaimed',
        'reclaim containers images',
      ]);
      expect([...(results[2]?.state.collectedAtMs ?? [])]).toStrictEqual([
        ['nodefs.inodesFree', 2],
      ]);
    });

    it.each([
      ['was enough', 5000, [], 'reclaim containers images'],
      ['was not enough', 900, [], 'evict small'],
      // Nothing was read at its end, and enough right after.
      [
        'is found out to have been enough',
        undefined,
        [at(2, 5000, { pods })],
        'reclaim containers images',
      ],
      ['is found out not to have been enough', undefined, [at(2, 900, { pods })], 'evict small'],
    ] as const)('one that %s: what follows within 10 s', (_, endMi, between, expected) => {
      const end =
        endMi === undefined
          ? { nowMs: 1, observations: [observation(5 * GI)], pods, reclaimed: true as const }
          : at(1, endMi, { reclaimed: true, pods });
      const gone = { outcome: outcome('big'), pods: [SMALL] };
      const results = story(reclaims, at(0, 900), end, ...between, at(4000, 900, gone));
      const last = results.at(-1);
      expect(last && say(last.decision)).toBe(expected);
    });

    it('ends enough beside a shortage of memory, for which a pod goes first', () => {
      const memoryToo = { ...reclaims, thresholds: [disk, threshold({ value: value('1Gi') })] };
      const results = story(
        memoryToo,
        at(0, 900),
        {
          nowMs: 1,
          observations: [nodefs(5 * GI, 1), observation(0, { atMs: 1 })],
          pods,
          reclaimed: true,
        },
        {
          nowMs: 2,
          observations: [nodefs(900 * MI, 2), observation(5 * GI, { atMs: 2 })],
          pods,
          outcome: outcome('small'),
        },
      );
      expect(said(results)).toStrictEqual([
        'reclaim containers images',
        'evict small',
        'reclaim containers images',
      ]);
    });
  });
});

describe('C26: a filesystem of images alone', () => {
  const signal = 'imagefs.available';
  const by = policy({
    thresholds: [threshold({ signal, value: value('1Gi') })],
    layout: 'splitImagefs',
    ranksDisk: true,
    reclaims: RECLAIM_FUNCTIONS,
  });
  const kubelet = { ...by, rules: RULE_SETS.kubelet };
  const own = (name: string, exclusiveImageBytes: number | undefined, priority = 0) =>
    pod(name, { exclusiveImageBytes, priority });
  const SMALL = own('small', GI);
  const LARGE = own('large', 5 * GI);
  const NONE = own('none', 0, -10);
  const pods = [NONE, SMALL, LARGE];
  const at = (nowMs: number, rest: Partial<ReadSample> = {}): ReadSample => ({
    nowMs,
    observations: [observation(MI, { signal, capacity: 100 * GI, atMs: nowMs })],
    pods,
    ...rest,
  });

  it('evicts who has most of its own, in words of its own', () => {
    const results = story(by, at(0), at(1, { reclaimed: true }));
    expect(said(results)).toStrictEqual(['reclaim images', 'evict large']);
    expect(results[1]?.decision).toMatchObject({
      message: expect.stringMatching(/The pod alone was using images of 5Gi\.$/),
      annotations: {},
    });
  });

  it('goes by priority to the kubelet, whose words are of local storage', () => {
    const results = story(kubelet, at(0), at(1, { reclaimed: true }));
    expect(said(results)).toStrictEqual(['reclaim images', 'evict none']);
    expect(results[1]?.decision).toMatchObject({
      message: expect.stringContaining('The pod was using an unknown amount'),
    });
  });

  it('says that nobody’s end would help', () => {
    const results = story(by, at(0), at(1, { reclaimed: true, pods: [NONE] }));
    expect(said(results)).toStrictEqual(['reclaim images', 'none noCandidate']);
    expect(results[1]?.state.impossible).toMatchObject({ pods: 1, helplessPods: 1 });
    expect(said(story(kubelet, at(0), at(1, { reclaimed: true, pods: [NONE] })))).toStrictEqual([
      'reclaim images',
      'evict none',
    ]);
  });

  it('collects what the victim leaves before the next one goes, however soon', () => {
    const results = story(
      by,
      at(0),
      at(1, { reclaimed: true }),
      at(2, { pods: [NONE, SMALL], outcome: outcome('large') }),
      at(3, { pods: [NONE, SMALL], reclaimed: true }),
    );
    expect(said(results)).toStrictEqual([
      'reclaim images',
      'evict large',
      'reclaim images',
      'evict small',
    ]);
  });

  it('collects once its containers are gone; until then what else nobody uses, at most each 10 s', () => {
    const rest = { pods: [NONE, SMALL] };
    const held = { ...rest, spaceHeld: true } as const;
    const results = story(
      by,
      at(0),
      at(1, { reclaimed: true }),
      at(2, { ...held, outcome: outcome('large') }),
      at(10_000, held),
      at(10_001, { ...held, reclaimed: true }),
      at(11_000, held),
      // It is gone, and has settled by the last one.
      at(12_000, rest),
      at(15_000, rest),
      at(15_001, { ...rest, reclaimed: true }),
    );
    expect(said(results)).toStrictEqual([
      'reclaim images',
      'evict large',
      'none spaceHeld',
      'reclaim images',
      'none spaceHeld',
      'none spaceHeld',
      'none spaceHeld',
      'reclaim images',
      'evict small',
    ]);
  });

  it('looks again where the containers went while it was collecting', () => {
    const rest = { pods: [NONE, SMALL] };
    const held = { ...rest, spaceHeld: true } as const;
    const before = [
      at(0),
      at(1, { reclaimed: true }),
      at(2, { ...held, outcome: outcome('large') }),
      at(10_000, held),
      // Until 13 s nothing has come back.
      at(13_000, rest),
    ] as const;
    const results = story(
      by,
      ...before,
      at(13_001, { ...rest, reclaimed: true }),
      at(13_002, { ...rest, reclaimed: true }),
    );
    expect(said(results).slice(3)).toStrictEqual([
      'reclaim images',
      'none reclaiming',
      'reclaim images',
      'evict small',
    ]);
    // Where none may be removed any more by then, nobody goes.
    const { state } = lastOf(by, ...before);
    const off = { ...by, reclaims: [] };
    const { decision } = step(off, state, at(13_001, { ...rest, reclaimed: true }));
    expect(say(decision)).toBe('none noReclaim');
  });

  it('does not wait for figures of what pods wrote', () => {
    const old = { atMs: -1, isCut: false, deletedBytes: 0 };
    const results = story(
      by,
      at(0),
      at(1, { reclaimed: true, pods: pods.map((one) => ({ ...one, diskSeen: old })) }),
    );
    expect(said(results)).toStrictEqual(['reclaim images', 'evict large']);
  });
});

describe('pods over a limit of their own storage', () => {
  const over = (one: PodObservation): OverLimit => ({ pod: one, message: `${one.name} is over. ` });
  const [A, B] = [pod('a', { priority: 9 }), pod('b')];
  const guarded = pod('guarded', { protectedBecause: 'critical priority' });
  const endOf = (nowMs: number, name: string): Sample => ({
    nowMs,
    observations: undefined,
    outcome: outcome(name),
  });

  it.each(BOTH_RULES)('by the rules of %s go one after the other, as they come', (rules) => {
    const by = policy({ rules: RULE_SETS[rules], hardEvictionGracePeriodSeconds: 1 });
    const results = story(
      by,
      sample(0, 500 * MI, { overLimits: [over(guarded), over(A), over(B)] }),
      endOf(1, 'a'),
      endOf(2, 'b'),
    );
    expect(said(results)).toStrictEqual(['evict a', 'evict b', 'none calm']);
    expect(results[0]?.decision).toStrictEqual({
      kind: 'evict',
      pod: A,
      hard: true,
      gracePeriodMs: 1000,
      gracePeriodSeconds: 1,
      cause: undefined,
      message: 'a is over. ',
      annotations: {},
      condition: undefined,
    });
    expect(results[0]?.state.inFlight).toStrictEqual({
      podId: A.id,
      podName: 'a',
      signal: undefined,
      hard: true,
    });
    expect(results.map(({ events }) => events)).toStrictEqual([[], [], []]);
    expect(results[0]?.conditions).toStrictEqual([]);
  });

  it('go before anything else, and never beside another eviction', () => {
    const results = story(
      policy(),
      sample(0, 50 * MI, { ...withPods, overLimits: [over(A)] }),
      sample(1, 50 * MI, { ...withPods, overLimits: [over(B)] }),
      sample(2, 50 * MI, { ...withPods, outcome: outcome('a'), overLimits: [] }),
    );
    expect(said(results)).toStrictEqual(['evict a', 'none evicting', 'evict leak']);
    expect(results[0]?.conditions).toStrictEqual(['MemoryPressure']);
  });

  it('a hard threshold does not escalate what goes at once', () => {
    const results = story(
      policy(),
      sample(0, 500 * MI, { overLimits: [over(A)] }),
      sample(1, 50 * MI, withPods),
    );
    expect(said(results)).toStrictEqual(['evict a', 'none evicting']);
  });

  it('nobody goes who is protected', () => {
    const { decision } = lastOf(policy(), sample(0, 500 * MI, { overLimits: [over(guarded)] }));
    expect(say(decision)).toBe('none calm');
  });

  it('are those of the last sample that says anything of them', () => {
    const results = story(
      policy(),
      sample(0, 500 * MI, { overLimits: [over(A), over(B)] }),
      sample(1, 500 * MI, { outcome: outcome('a'), overLimits: [] }),
      sample(2, 500 * MI, { overLimits: [over(A), over(B)] }),
      sample(3, 500 * MI, { outcome: outcome('a') }),
    );
    expect(said(results)).toStrictEqual(['evict a', 'none calm', 'evict a', 'evict b']);
  });

  it.each([
    ['evicted', outcome('a'), 'evict b'],
    ['failed', outcome('a', { kind: 'failed', error: 'EPERM' }), 'evict b'],
  ] as const)(
    'one that is seen above its limit while it goes does not go again: %s',
    (_, ended, expected) => {
      const results = story(
        policy(),
        sample(0, 500 * MI, { overLimits: [over(A)] }),
        sample(1, 500 * MI, { overLimits: [over(A), over(B)] }),
        { nowMs: 2, observations: undefined, outcome: ended },
      );
      expect(said(results)).toStrictEqual(['evict a', 'none evicting', expected]);
    },
  );

  it('one that could not be killed is passed over for 60 s', () => {
    const failed = outcome('a', { kind: 'failed', error: 'EPERM' });
    const again = { overLimits: [over(A)] };
    const results = story(
      policy(),
      sample(0, 500 * MI, again),
      sample(1, 500 * MI, { ...again, outcome: failed }),
      sample(60_000, 500 * MI, again),
      sample(60_001, 500 * MI, { overLimits: [over({ ...A, atMs: 60_001 })] }),
    );
    expect(said(results)).toStrictEqual(['evict a', 'none calm', 'none calm', 'evict a']);
  });

  it.each([
    ['evictd', 1000, 'evict b'],
    ['evictd', 1001, 'none calm'],
    ['kubelet', 1001, 'evict b'],
  ] as const)(
    'by the rules of %s the next one, by figures %d ms old: %s',
    (rules, ms, expected) => {
      const results = story(
        policy({ rules: RULE_SETS[rules] }),
        sample(0, 500 * MI, { overLimits: [over(A), over(B)] }),
        { nowMs: ms, observations: undefined, outcome: outcome('a') },
      );
      expect(said(results)).toStrictEqual(['evict a', expected]);
    },
  );

  it('one that cannot be killed does not hold up the next', () => {
    const failed = outcome('a', { kind: 'failed', error: 'EPERM' });
    const results = story(policy(), sample(0, 500 * MI, { overLimits: [over(A), over(B)] }), {
      nowMs: 1,
      observations: undefined,
      outcome: failed,
    });
    expect(said(results)).toStrictEqual(['evict a', 'evict b']);
    expect([...(results[1]?.state.passedOver.keys() ?? [])]).toStrictEqual([A.id]);
  });
});

describe('victimGraceSeconds', () => {
  it.each([
    ['hard, the policy’s, whatever the pod asks', true, 60, 1, 30, 1],
    ['hard, none', true, 60, 0, 30, 0],
    ['soft, no longest: none', false, 0, 1, 30, 0],
    ['soft, the pod’s where it is shorter', false, 60, 1, 30, 30],
    ['soft, equal', false, 30, 1, 30, 30],
    ['soft, the longest where the pod asks for more', false, 10, 1, 30, 10],
    ['soft, the pod wants none', false, 60, 1, 0, 0],
    ['soft, the pod has none of its own: the longest', false, 60, 1, undefined, 60],
    ['soft, negative: the pod’s own', false, -1, 1, 3600, 3600],
    ['soft, negative, the pod wants none', false, -1, 1, 0, 0],
    ['soft, negative, the pod has none: 30', false, -1, 1, undefined, 30],
  ])('%s', (_, hard, longest, ofHard, ofPod, expected) => {
    const by = policy({
      maxPodGracePeriodSeconds: longest,
      hardEvictionGracePeriodSeconds: ofHard,
    });
    expect(victimGraceSeconds(by, hard, pod('leak', { gracePeriodSeconds: ofPod }))).toBe(expected);
  });

  it.each([
    ['hard', true, -1, 30, 1],
    ['soft, the shorter', false, 60, 30, 30],
    ['soft, the longest', false, 10, 30, 10],
    ['soft, negative: as it is', false, -1, 30, -1],
    ['soft, more negative', false, -60, 0, -60],
    ['soft, negative, the pod has none of its own', false, -1, undefined, -1],
  ])('by the kubelet’s rules: %s', (_, hard, longest, ofPod, expected) => {
    const by = policy({
      rules: RULE_SETS.kubelet,
      maxPodGracePeriodSeconds: longest,
      hardEvictionGracePeriodSeconds: 1,
    });
    expect(victimGraceSeconds(by, hard, pod('leak', { gracePeriodSeconds: ofPod }))).toBe(expected);
  });

  it('a negative one is told as it is, and no time is waited', () => {
    const by = policy({
      rules: RULE_SETS.kubelet,
      thresholds: [softThreshold()],
      maxPodGracePeriodSeconds: -1,
    });
    const pods = [pod('leak', { gracePeriodSeconds: 30 })];
    const at = (nowMs: number) => sample(nowMs, 150 * MI, { pods });
    expect(lastOf(by, at(0), at(30_000)).decision).toMatchObject({
      kind: 'evict',
      gracePeriodSeconds: -1,
      gracePeriodMs: 0,
    });
    const own = { ...by, rules: RULE_SETS.evictd };
    expect(lastOf(own, at(0), at(30_000)).decision).toMatchObject({
      kind: 'evict',
      gracePeriodSeconds: 30,
      gracePeriodMs: 30_000,
    });
  });
});

describe('an eviction for a disk', () => {
  const low = (nowMs: number, available = 50 * MI): Sample => ({
    nowMs,
    observations: [observation(available, { signal: 'imagefs.available', atMs: nowMs })],
  });
  const onDisk = (name: string, bytes: number, seenAtMs?: number) =>
    pod(name, {
      disk: {
        root: { bytes, inodes: 1 },
        logs: { bytes: 0, inodes: 0 },
        localVolumes: { bytes: 0, inodes: 0 },
      },
      ...(seenAtMs === undefined
        ? {}
        : { diskSeen: { atMs: seenAtMs, isCut: false, deletedBytes: 0 } }),
    });
  const signal = 'imagefs.available';
  const by = (rules: keyof typeof RULE_SETS, extra: Parameters<typeof policy>[0] = {}) =>
    policy({
      thresholds: [threshold({ signal })],
      ranksDisk: true,
      rules: RULE_SETS[rules],
      ...extra,
    });
  const fat = onDisk('fat', 300 * MI);
  const slim = onDisk('slim', MI);

  it('C24: never of a pod that has nothing there, and none is awaited of one that had', () => {
    const volumes = { ...slim, ...onDisk('bound', 0) };
    const pods = [{ ...onDisk('elsewhere', 0), priority: -1 }, volumes];
    const results = story(by('evictd'), { ...low(0), pods });
    expect(said(results)).toStrictEqual(['none noCandidate']);
    expect(results[0]?.state.impossible).toMatchObject({ pods: 2, helplessPods: 2 });
    expect(said(story(by('kubelet'), { ...low(0), pods }))).toStrictEqual(['evict elsewhere']);
  });

  it('goes on as soon as somebody takes what there is', () => {
    const held = { pods: [slim], spaceHeld: true } as const;
    const own = (rules: keyof typeof RULE_SETS) =>
      said(
        story(
          by(rules),
          { ...low(0), pods: [fat, slim] },
          { ...low(1000, 48 * MI), ...held, outcome: outcome('fat') },
          // The last that the dead one wrote.
          { ...low(2000, 40 * MI), ...held },
          { ...low(3000, 36 * MI), ...held },
          { ...low(4000, 35 * MI), ...held },
        ),
      );
    const waits = ['evict fat', 'none spaceHeld', 'none spaceHeld', 'none spaceHeld'];
    expect(own('evictd')).toStrictEqual([...waits, 'evict slim']);
    expect(own('kubelet')).toStrictEqual([...waits, 'none spaceHeld']);
  });

  it('is the last one as long as its space is held', () => {
    const held = { pods: [slim], spaceHeld: true } as const;
    const own = (rules: keyof typeof RULE_SETS) =>
      said(
        story(
          by(rules),
          { ...low(0), pods: [fat, slim] },
          { ...low(1000), ...held, outcome: outcome('fat') },
          { ...low(20_000), ...held },
          { ...low(31_000), ...held },
        ),
      );
    const expected = ['evict fat', 'none spaceHeld', 'none spaceHeld', 'evict slim'];
    expect(own('evictd')).toStrictEqual(expected);
    expect(own('kubelet')).toStrictEqual(expected);
  });

  it('is followed by another once what came back is not enough', () => {
    const results = story(
      by('evictd'),
      { ...low(0), pods: [fat, slim] },
      { ...low(1000), pods: [slim], spaceHeld: true, outcome: outcome('fat') },
      { ...low(2000), pods: [slim] },
      { ...low(3000, 60 * MI), pods: [slim] },
      { ...low(5999, 60 * MI), pods: [slim] },
      { ...low(6000, 60 * MI), pods: [slim] },
    );
    expect(said(results)).toStrictEqual([
      'evict fat',
      'none spaceHeld',
      'none spaceHeld',
      'none spaceHeld',
      'none spaceHeld',
      'evict slim',
    ]);
  });

  it('holds up none for memory, nor for PIDs', () => {
    for (const [other, order] of [
      ['memory.available', 'memory'],
      ['pid.available', 'PIDs'],
    ] as const) {
      const both = by('evictd', {
        thresholds: [threshold({ signal }), threshold({ signal: other, value: value('100') })],
      });
      const results = story(
        both,
        { ...low(0), pods: [fat, slim] },
        { ...low(1000), pods: [slim], spaceHeld: true, outcome: outcome('fat') },
        {
          ...low(2000),
          observations: [
            observation(50 * MI, { signal, atMs: 2000 }),
            observation(50, { signal: other, capacity: 1000, atMs: 2000 }),
          ],
          pods: [{ ...slim, pids: 60 }],
          spaceHeld: true,
        },
      );
      expect(said(results), order).toStrictEqual(['evict fat', 'none spaceHeld', 'evict slim']);
    }
  });

  it('is by figures from after the threshold was met', () => {
    const pods = (seenAtMs: number) => [onDisk('fat', MI, seenAtMs), onDisk('slim', 2 * MI, 1500)];
    const story_ = (rules: keyof typeof RULE_SETS, seenAtMs: number, nowMs: number) =>
      said(
        story(
          by(rules),
          { ...low(0, 500 * MI), pods: pods(0) },
          { ...low(1000), pods: pods(999) },
          { ...low(nowMs), pods: pods(seenAtMs) },
        ),
      );
    expect(story_('evictd', 999, 2000)).toStrictEqual([
      'none calm',
      'none oldFigures',
      'none oldFigures',
    ]);
    expect(story_('evictd', 1000, 2000).at(-1)).toBe('evict slim');
    // A runtime that tells nothing new holds nobody up for ever.
    expect(story_('evictd', 999, 15_999).at(-1)).toBe('none oldFigures');
    expect(story_('evictd', 999, 16_000).at(-1)).toBe('evict slim');
    expect(story_('kubelet', 999, 2000)[1]).toBe('evict slim');
  });

  it('does not wait for figures of who may not go, or of whom there are none', () => {
    const old = { ...onDisk('kept', MI, 0), protectedBecause: 'configured' };
    const last = lastOf(
      by('evictd'),
      { ...low(0, 500 * MI), pods: [] },
      { ...low(1000), pods: [old, pod('unknown'), onDisk('fat', 300 * MI, 1000)] },
    );
    expect(say(last.decision)).toBe('evict fat');
  });
});

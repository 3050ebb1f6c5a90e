import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Decision } from '../../src/core/decision.ts';
import type { Policy } from '../../src/core/policy.ts';
import {
  INITIAL_STATE,
  PASSED_OVER_LIMIT,
  type Sample,
  type StepResult,
  step,
  victimGraceSeconds,
} from '../../src/core/step.ts';
import { thresholdId } from '../../src/core/threshold.ts';
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

/** Goes through the samples in order. */
function story(by: Policy, ...samples: readonly Sample[]): readonly StepResult[] {
  let state = INITIAL_STATE;
  return samples.map((one) => {
    const result = step(by, state, one);
    ({ state } = result);
    return result;
  });
}

/** The result of the last sample. */
function lastOf(by: Policy, ...samples: readonly Sample[]): StepResult {
  const last = story(by, ...samples).at(-1);
  if (last === undefined) throw new Error('a story has a sample');
  return last;
}

/** A decision in a few words: `evict leak`, `none calm`. */
function say(decision: Decision): string {
  switch (decision.kind) {
    case 'none':
      return `none ${decision.why}`;
    case 'observePods':
      return 'observePods';
    case 'evict':
      return `evict ${decision.pod.name}`;
    case 'escalate':
      return `escalate ${decision.podName}`;
  }
}

const said = (results: readonly StepResult[]) => results.map(({ decision }) => say(decision));

/** `leak` goes first, then `batch`; `web` is the innocent bystander, known to be within its request. */
const LEAK = pod('leak', { workingSetBytes: 300 * MI });
const BATCH = pod('batch', { workingSetBytes: 20 * MI });
const WEB = pod('web', {
  priority: 1000,
  qosClass: 'Guaranteed',
  workingSetBytes: 100 * MI,
  memoryRequestNano: BigInt(128 * MI) * 1_000_000_000n,
});
const PODS = [WEB, BATCH, LEAK];
const withPods = { pods: PODS };
const SOFT = policy({ thresholds: [threshold(), softThreshold()] });

describe('a hard threshold', () => {
  it.each([
    ['a byte above', 100 * MI + 1, 'none calm'],
    ['equal', 100 * MI, 'none calm'],
    ['a byte below', 100 * MI - 1, 'evict leak'],
    ['nothing left', 0, 'evict leak'],
  ])('available %s', (_, available, expected) => {
    const { decision, state } = lastOf(policy(), sample(0, available, withPods));
    expect(say(decision)).toBe(expected);
    expect(state.met.map(thresholdId)).toStrictEqual(
      expected === 'none calm' ? [] : ['hard:memory.available'],
    );
  });

  it('says everything about the eviction that it decides', () => {
    const { decision, state, conditions } = lastOf(policy(), sample(7, 50 * MI, withPods));
    expect(decision).toStrictEqual({
      kind: 'evict',
      pod: LEAK,
      hard: true,
      gracePeriodMs: 0,
      cause: {
        threshold: threshold(),
        observation: { signal: 'memory.available', capacity: GI, available: 50 * MI, atMs: 7 },
        level: 100 * MI,
        reclaiming: false,
      },
      message:
        'The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. ' +
        'The pod was using 300Mi, request is 0.',
    });
    expect(state.inFlight).toStrictEqual({
      podId: LEAK.id,
      podName: 'leak',
      signal: 'memory.available',
      hard: true,
    });
    expect(conditions).toStrictEqual(['MemoryPressure']);
  });

  it('asks for pods where the sample has none, and remembers no eviction then', () => {
    const { decision, state } = lastOf(policy(), sample(0, 50 * MI));
    expect(decision).toMatchObject({ kind: 'observePods', cause: { level: 100 * MI } });
    expect(state.inFlight).toBeUndefined();
  });

  it('as a percentage follows the capacity', () => {
    const tenth = policy({ thresholds: [threshold({ value: value('10%') })] });
    const at = (capacity: number): Sample => ({
      ...sample(0, undefined, withPods),
      observations: [{ signal: 'memory.available', capacity, available: 100 * MI, atMs: 0 }],
    });
    expect(said(story(tenth, at(1000 * MI), at(1001 * MI)))).toStrictEqual([
      'none calm',
      'evict leak',
    ]);
  });

  it('gives the policy’s hard grace', () => {
    const patient = policy({ hardEvictionGracePeriodSeconds: 3 });
    const { decision } = lastOf(patient, sample(0, 50 * MI, withPods));
    expect(decision).toMatchObject({ hard: true, gracePeriodMs: 3000 });
  });
});

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

describe('node conditions', () => {
  const by = policy({ pressureTransitionPeriodMs: 60_000 });

  it('hold until the transition period after the last reading that was met', () => {
    const results = story(
      by,
      sample(0, 200 * MI, withPods),
      sample(1000, 50 * MI, withPods),
      sample(2000, 50 * MI, withPods),
      sample(3000, 200 * MI, { outcome: outcome('leak') }),
      sample(61_999, 200 * MI),
      sample(62_000, 200 * MI),
    );
    expect(results.map(({ conditions }) => conditions.join())).toStrictEqual([
      '',
      'MemoryPressure',
      'MemoryPressure',
      'MemoryPressure',
      'MemoryPressure',
      '',
    ]);
    expect(results.map(({ wakeAtMs }) => wakeAtMs)).toStrictEqual([
      undefined,
      61_000,
      62_000,
      62_000,
      62_000,
      undefined,
    ]);
  });

  it('end with the pressure where there is no transition period', () => {
    const results = story(
      policy({ pressureTransitionPeriodMs: 0 }),
      sample(0, 50 * MI, withPods),
      sample(1, 200 * MI, { outcome: outcome('leak') }),
    );
    expect(results.map(({ conditions }) => conditions)).toStrictEqual([['MemoryPressure'], []]);
    expect(results.map(({ wakeAtMs }) => wakeAtMs)).toStrictEqual([undefined, undefined]);
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

describe('after an eviction for PIDs', () => {
  const signal = 'pid.available';
  const by = policy({ thresholds: [threshold({ signal, value: value('100') })] });
  const low = (nowMs: number, available: number, rest: Partial<Sample> = {}): Sample => ({
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
});

describe('any run of samples', () => {
  const steps = fc.array(
    fc.record({
      afterMs: fc.integer({ min: 0, max: 40_000 }),
      available: fc.constantFrom(undefined, 0, 99 * MI, 100 * MI, 199 * MI, 200 * MI, 300 * MI),
      ends: fc.constantFrom('no', 'evicted', 'failed', 'pressureGone'),
      hasPods: fc.boolean(),
    }),
    { maxLength: 60 },
  );

  it('has at most one eviction in flight, spares the protected, waits for soft graces', () => {
    const by = policy({
      thresholds: [threshold({ minimumReclaim: value('50Mi') }), softThreshold()],
      maxPodGracePeriodSeconds: 10,
    });
    const guarded = pod('guarded', { priority: -1, protectedBecause: 'reason' });
    fc.assert(
      fc.property(steps, (moves) => {
        let state = INITIAL_STATE;
        let nowMs = 0;
        let inFlight: string | undefined;
        let softSinceMs: number | undefined;
        for (const { afterMs, available, ends, hasPods } of moves) {
          nowMs += afterMs;
          const ended = endingOf(inFlight, ends);
          if (ended !== undefined) inFlight = undefined;
          const {
            decision,
            wakeAtMs,
            state: next,
          } = step(by, state, {
            ...sample(nowMs, available),
            ...(hasPods ? { pods: [...PODS, guarded] } : {}),
            ...(ended === undefined ? {} : { outcome: ended }),
          });
          state = next;
          if (available !== undefined && available >= 200 * MI) softSinceMs = undefined;
          else if (available !== undefined) softSinceMs ??= nowMs;
          if (wakeAtMs !== undefined) expect(wakeAtMs).toBeGreaterThan(nowMs);
          if (decision.kind === 'evict') {
            expect(inFlight).toBeUndefined();
            expect(available).toBeDefined();
            expect(decision.pod.name).not.toBe('guarded');
            if (!decision.hard)
              expect(nowMs - (softSinceMs ?? nowMs)).toBeGreaterThanOrEqual(30_000);
            inFlight = decision.pod.name;
          }
          if (decision.kind === 'escalate') expect(decision.podName).toBe(inFlight);
        }
      }),
      { numRuns: 300 },
    );
  });
});

function endingOf(name: string | undefined, ends: string) {
  if (name === undefined || ends === 'no') return undefined;
  if (ends === 'failed') return outcome(name, { kind: 'failed', error: 'EPERM' });
  if (ends === 'pressureGone') return outcome(name, { kind: 'refused', reason: 'pressureGone' });
  return outcome(name);
}

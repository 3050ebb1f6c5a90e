import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EvictionOutcome, EvictionRecord } from '../../src/core/decision.ts';
import type { ImageMemory } from '../../src/core/image-gc.ts';
import {
  beforeAnything,
  CLOCK_SLACK_MS,
  changeOf,
  interrupted,
  isSameBoot,
  type Kept,
  type Moment,
  refreshMs,
  restored,
  resumedEviction,
  snapshotOf,
  valueKey,
} from '../../src/core/persistence.ts';
import type { Policy } from '../../src/core/policy.ts';
import {
  KEPT_IMAGE_ID,
  KEPT_IMAGES,
  parseSnapshot,
  type Snapshot,
} from '../../src/core/snapshot.ts';
import { INITIAL_STATE, type InFlight, type State } from '../../src/core/state.ts';
import { step } from '../../src/core/step.ts';
import {
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

const SOFT = softThreshold();
const HARD = threshold();
const BY = policy({ thresholds: [HARD, SOFT] });
const PERIOD_MS = BY.pressureTransitionPeriodMs;

/** The daemon's own clock is 500 ms behind the boot's. */
const moment = (nowMs: number, overrides: Partial<Moment> = {}): Moment => ({
  nowMs,
  bootMs: nowMs + 500,
  wallMs: 1_000_000 + nowMs,
  bootId: 'this',
  ...overrides,
});

const record = (overrides: Partial<EvictionRecord> = {}): EvictionRecord => ({
  podId: 'id-of-leak',
  podName: 'leak',
  hard: true,
  gracePeriodMs: 0,
  message: 'The node was low on resource: memory.',
  decidedAtMs: 9000,
  outcome: undefined,
  ...overrides,
});

const IN_FLIGHT: InFlight = {
  podId: 'id-of-leak',
  podName: 'leak',
  signal: 'memory.available',
  hard: true,
};

const NONE: Kept['evictions'] = [];

const kept = (state: Partial<State> = {}, evictions: Kept['evictions'] = NONE): Kept => ({
  state: { ...INITIAL_STATE, ...state },
  evictions,
});

/** At 10 s: the soft threshold is met since 4 s. */
const MIDDLE: Partial<State> = {
  met: [SOFT],
  firstObserved: new Map([['soft:memory.available', 4000]]),
  conditionsObserved: new Map([['MemoryPressure', 10_000]]),
  conditions: ['MemoryPressure'],
};

const everywhere = () => true;
const nowhere = () => false;

/** Through JSON, as it goes. */
function passed(from: Kept, at: Moment, unsavedMs = 0): Snapshot {
  const parsed = parseSnapshot(JSON.parse(JSON.stringify(snapshotOf(from, at, unsavedMs))));
  if ('fault' in parsed) throw new Error(parsed.fault);
  return parsed.snapshot;
}

function restart(
  from: Kept,
  to: { readonly by?: Policy; readonly at?: Moment; readonly unsavedMs?: number } = {},
): Kept {
  const { by = BY, at = moment(30_000), unsavedMs } = to;
  return restored(passed(from, moment(10_000), unsavedMs), by, at, everywhere);
}

describe('a grace', () => {
  it('goes on where it was: no time counts in which evictd did not run', () => {
    const { state } = restart(kept(MIDDLE));
    expect(state.met).toStrictEqual([SOFT]);
    expect(state.due).toStrictEqual([]);
    expect(state.firstObserved).toStrictEqual(new Map([['soft:memory.available', 24_000]]));
    // 30 s, of which 6 were over.
    const at = (nowMs: number) => step(BY, state, sample(nowMs, 150 * MI));
    expect(at(30_000).wakeAtMs).toBe(54_000);
    expect(at(53_999).state.due).toStrictEqual([]);
    expect(at(54_000).state.due).toStrictEqual([SOFT]);
  });

  it.each([
    ['gone at the first reading', 500 * MI, []],
    ['still there', 150 * MI, [SOFT]],
    // A filesystem is measured only later.
    ['not read yet', undefined, [SOFT]],
  ])('of pressure that is %s', (_, available, met) => {
    const { state } = restart(kept(MIDDLE));
    expect(step(BY, state, sample(30_000, available)).state.met).toStrictEqual(met);
  });

  it.each<[string, Partial<typeof SOFT>, boolean]>([
    ['the same', {}, true],
    ['the same value in other words', { value: value('204800Ki') }, true],
    ['another minimum reclaim', { minimumReclaim: value('1Mi') }, true],
    ['another value', { value: value('201Mi') }, false],
    ['a percentage', { value: value('20%') }, false],
    ['another grace', { gracePeriodMs: 30_001 }, false],
    ['another signal', { signal: 'nodefs.available' }, false],
    ['hard', { kind: 'hard' }, false],
  ])('of a threshold that is now %s', (_, change, isKept) => {
    const now = { ...SOFT, ...change };
    const { state } = restart(kept(MIDDLE), { by: policy({ thresholds: [now] }) });
    expect(state.met).toStrictEqual(isKept ? [now] : []);
  });

  it('counts from the first reading where it has none', () => {
    const { state } = restart(kept({ met: [SOFT] }));
    expect(state.firstObserved).toStrictEqual(new Map([['soft:memory.available', 30_000]]));
  });

  it('is dropped by another boot', () => {
    const { state } = restart(kept({ ...MIDDLE, due: [SOFT] }), {
      at: moment(100, { bootId: 'another' }),
    });
    expect(state).toMatchObject({ met: [], due: [] });
    expect(state.firstObserved.size).toBe(0);
  });
});

describe('a threshold that is due', () => {
  const reclaiming = threshold({ minimumReclaim: value('50Mi') });
  const by = policy({ thresholds: [reclaiming] });
  const from = kept({
    met: [reclaiming],
    due: [reclaiming],
    firstObserved: new Map([['hard:memory.available', 9000]]),
  });

  it('stays so until its minimum reclaim is regained too', () => {
    const { state } = restart(from, { by });
    const at = (available: number) => step(by, state, sample(30_000, available)).state.due;
    expect(at(150 * MI - 1)).toStrictEqual([reclaiming]);
    expect(at(150 * MI)).toStrictEqual([]);
  });
});

describe('a condition', () => {
  const at = (lastMs: number, met: readonly (typeof SOFT)[] = []): Kept =>
    kept({
      met,
      firstObserved: new Map(met.map(() => ['soft:memory.available', 4000])),
      conditionsObserved: new Map([['MemoryPressure', lastMs]]),
      conditions: ['MemoryPressure'],
    });

  it('holds for what is left of its period: the time in between counts', () => {
    const { state } = restart(at(8000));
    expect(state.conditionsObserved).toStrictEqual(new Map([['MemoryPressure', 8000]]));
    expect(state.conditions).toStrictEqual(['MemoryPressure']);
    const later = (nowMs: number) => step(BY, state, sample(nowMs, 500 * MI)).conditions;
    expect(later(8000 + PERIOD_MS - 1)).toStrictEqual(['MemoryPressure']);
    expect(later(8000 + PERIOD_MS)).toStrictEqual([]);
  });

  it('counts the time that the machine was suspended', () => {
    const { state } = restart(at(8000), { at: moment(30_000, { bootMs: 90_500 }) });
    expect(state.conditionsObserved).toStrictEqual(new Map([['MemoryPressure', -52_000]]));
  });

  it('that was still caused may have been observed until it would have been written again', () => {
    const { state } = restart(at(10_000, [SOFT]), { unsavedMs: 1500 });
    expect(state.conditionsObserved).toStrictEqual(new Map([['MemoryPressure', 11_500]]));
  });

  it('was observed now at the latest', () => {
    const { state } = restart(at(10_000, [SOFT]), { unsavedMs: 60_000 });
    expect(state.conditionsObserved).toStrictEqual(new Map([['MemoryPressure', 30_000]]));
  });

  it('whose period is over does not hold', () => {
    const { state } = restart(at(8000), { at: moment(8000 + PERIOD_MS) });
    expect(state.conditions).toStrictEqual([]);
  });

  it('of another boot holds for one period from here, if it held', () => {
    const another = moment(100, { bootId: 'another' });
    const { state } = restart(at(8000), { at: another });
    expect(state.conditionsObserved).toStrictEqual(new Map([['MemoryPressure', 100]]));
    expect(state.conditions).toStrictEqual(['MemoryPressure']);
    const over = kept({ conditionsObserved: new Map([['MemoryPressure', 8000]]) });
    expect(restart(over, { at: another }).state.conditionsObserved.size).toBe(0);
  });

  it('is not held for no time', () => {
    const by = policy({ thresholds: [SOFT], pressureTransitionPeriodMs: 0 });
    for (const bootId of ['this', 'another']) {
      const { state } = restart(at(10_000, [SOFT]), { by, at: moment(30_000, { bootId }) });
      expect(step(by, state, sample(30_000, 500 * MI)).conditions).toStrictEqual([]);
    }
  });

  it('never holds for less than its period after it was last observed', () => {
    const ms = fc.integer({ min: 0, max: 1_000_000 });
    fc.assert(
      fc.property(ms, ms, ms, ms, (observedMs, ranMs, unsavedMs, downMs) => {
        const savedMs = observedMs + ranMs;
        const from = snapshotOf(at(observedMs), moment(savedMs), unsavedMs);
        const nowMs = savedMs + downMs;
        const { state } = restored(from, BY, moment(nowMs), nowhere);
        const isHeld = state.conditions.includes('MemoryPressure');
        expect(isHeld).toBe(nowMs < observedMs + PERIOD_MS);
      }),
    );
  });
});

describe('C35: a restart with a tighter threshold', () => {
  const inodes = (percent: string) =>
    policy({
      thresholds: [
        threshold({
          signal: 'nodefs.inodesFree',
          value: value(percent),
          minimumReclaim: value('1%'),
        }),
      ],
      ranksDisk: true,
    });
  const reading = (nowMs: number, free: number) => [
    observation(free, { signal: 'nodefs.inodesFree', capacity: 100_000, atMs: nowMs }),
  ];
  const disk = { bytes: 0, inodes: 2500 };
  const none = { bytes: 0, inodes: 0 };
  const pods = Array.from({ length: 12 }, (_, at) =>
    pod(`pod-${at}`, { disk: { root: disk, logs: none, localVolumes: none } }),
  );

  it('the condition holds, and one pod after the other goes until threshold and reclaim are regained', () => {
    const loose = inodes('5%');
    const before = step(loose, INITIAL_STATE, {
      nowMs: 1000,
      observations: reading(1000, 4000),
      pods,
    });
    expect(before.decision.kind).toBe('evict');
    const ended = step(loose, before.state, {
      nowMs: 2000,
      observations: reading(2000, 6500),
      pods: pods.slice(1),
      outcome: outcome('pod-0'),
    });
    expect(ended.decision).toMatchObject({ kind: 'none', why: 'calm' });
    const snapshot = passed({ state: ended.state, evictions: [] }, moment(2000));

    const tight = inodes('15%');
    let { state } = restored(snapshot, tight, moment(9000), everywhere);
    expect(state.conditions).toStrictEqual(['DiskPressure']);
    let left = pods.slice(1);
    let free = 6500;
    const gone: string[] = [];
    let last: string | undefined;
    for (let nowMs = 9000; nowMs < 9000 + 60_000; nowMs += 1000) {
      const result = step(tight, state, {
        nowMs,
        observations: reading(nowMs, free),
        pods: left,
        ...(last === undefined ? {} : { outcome: outcome(last) }),
      });
      state = result.state;
      last = undefined;
      expect(result.conditions).toStrictEqual(['DiskPressure']);
      if (result.decision.kind !== 'evict') continue;
      const { name } = result.decision.pod;
      expect(gone).not.toContain(name);
      gone.push(name);
      left = left.filter((one) => one.name !== name);
      free += 2500;
      last = name;
    }
    // 15,000 and 1,000 of them are free after the fourth.
    expect(gone).toHaveLength(4);
    expect(free).toBe(16_500);
  });
});

describe('the history', () => {
  const all: readonly EvictionOutcome[] = [
    outcome('leak', { kind: 'evicted', chargedBytes: 4096 }, { processes: 2 }),
    outcome('leak', { kind: 'evicted' }),
    outcome('leak', { kind: 'refused', reason: 'protected', detail: 'why' }),
    outcome('leak', { kind: 'refused', reason: 'dryRun' }),
    outcome('leak', { kind: 'timedOut', reason: 'deadline', remaining: 3, detail: 'frozen' }),
    outcome('leak', { kind: 'failed', error: 'EPERM' }),
  ].map((one) => ({
    ...one,
    timing: {
      decidedAtMs: 9000,
      firstSignalAtMs: 9001,
      killedAtMs: 9002,
      emptyAtMs: 9010,
      endedAtMs: 9030,
    },
  }));

  it('comes back as it was, with the wall clock’s times', () => {
    const records = all.map((one) => record({ outcome: one }));
    const { evictions } = restart(kept({}, records));
    expect(evictions).toStrictEqual(records.map((one) => ({ ...one, decidedWallMs: 1_009_000 })));
    // Twice over: what was first noted stands, whatever the wall clock has been set to since.
    const again = restart(kept({}, evictions), { at: moment(30_000, { wallMs: 5 }) });
    expect(again.evictions).toStrictEqual(evictions);
  });

  it('leaves out stages that were not reached', () => {
    const refused = outcome('leak', { kind: 'refused', reason: 'podGone' });
    const timing = { ...refused.timing, decidedAtMs: 9000, endedAtMs: 9000 };
    const one = record({ outcome: { ...refused, timing } });
    expect(restart(kept({}, [one])).evictions).toStrictEqual([
      { ...one, decidedWallMs: 1_009_000 },
    ]);
  });

  it('of another boot is told by the wall clock', () => {
    const at = moment(100, { bootId: 'another', wallMs: 2_000_000 });
    const [one] = restart(kept({}, [record({ outcome: all[0] })]), { at }).evictions;
    expect(one).toMatchObject({
      decidedWallMs: 1_009_000,
      decidedAtMs: 100 - (2_000_000 - 1_009_000),
      outcome: { kind: 'evicted', timing: { firstSignalAtMs: 100 - 991_000 + 1 } },
    });
  });

  it('of a wall clock that was set back is not of the future', () => {
    const at = moment(100, { bootId: 'another', wallMs: 5 });
    expect(restart(kept({}, [record({ outcome: all[0] })]), { at }).evictions[0]).toMatchObject({
      decidedAtMs: 100,
    });
  });

  it('keeps the last hundred, and texts of a limited length', () => {
    const records = Array.from({ length: 101 }, (_, at) =>
      record({
        podName: `${at}-${'x'.repeat(3000)}`,
        message: 'y'.repeat(3000),
        outcome: outcome('leak', { kind: 'failed', error: 'z'.repeat(3000) }),
      }),
    );
    const { evictions } = snapshotOf(kept({}, records), moment(10_000), 0);
    expect(evictions).toHaveLength(100);
    expect(evictions[0]?.podName).toMatch(/^1-x+…$/);
    expect(evictions[0]?.podName).toHaveLength(2001);
    expect(evictions[0]?.message).toHaveLength(2001);
    expect(evictions[0]?.outcome).toMatchObject({ error: `${'z'.repeat(2000)}…` });
  });
});

describe('the eviction in flight', () => {
  const running = kept({ inFlight: IN_FLIGHT }, [
    record({ podId: 'id-of-web', outcome: outcome('web') }),
    record(),
  ]);
  const same = passed(running, moment(10_000));

  it('is still in flight where its pod is there', () => {
    const { state, evictions } = restored(same, BY, moment(30_000), (id) => id === 'id-of-leak');
    expect(state.inFlight).toStrictEqual(IN_FLIGHT);
    expect(evictions.map(({ outcome: one }) => one?.kind)).toStrictEqual(['evicted', undefined]);
    expect(step(BY, state, sample(30_000, 50 * MI)).decision).toMatchObject({ why: 'evicting' });
  });

  it.each<[string, Snapshot, Moment, () => boolean]>([
    ['its pod is gone', same, moment(30_000), nowhere],
    ['of another boot', same, moment(30_000, { bootId: 'another' }), everywhere],
    [
      'none is said to be',
      { ...same, inFlight: undefined } as unknown as Snapshot,
      moment(30_000),
      everywhere,
    ],
  ])('has ended as interrupted where %s', (_, snapshot, at, isListed) => {
    const { state, evictions } = restored(snapshot, BY, at, isListed);
    expect(state.inFlight).toBeUndefined();
    expect(evictions[1]?.outcome).toMatchObject({ kind: 'refused', reason: 'interrupted' });
  });

  it('is none without a record that is open', () => {
    const from = kept({ inFlight: IN_FLIGHT }, [record({ outcome: outcome('leak') })]);
    expect(restart(from).state.inFlight).toBeUndefined();
  });

  it('may be for no signal', () => {
    const from = kept({ inFlight: { ...IN_FLIGHT, signal: undefined } }, [record()]);
    expect(restart(from).state.inFlight).toStrictEqual({ ...IN_FLIGHT, signal: undefined });
  });

  it('that was interrupted lets the next one be decided at once', () => {
    const { state } = restored(same, BY, moment(30_000), everywhere);
    const ended = interrupted(record(), 9000, 30_000);
    const next = step(BY, state, sample(30_001, 50 * MI, { pods: [pod('leak')], outcome: ended }));
    expect(next.decision).toMatchObject({ kind: 'evict', pod: { name: 'leak' } });
  });
});

describe('resumedEviction', () => {
  const state: State = {
    ...INITIAL_STATE,
    observations: [observation(50 * MI)],
    due: [SOFT, HARD],
    inFlight: IN_FLIGHT,
  };
  const LEAK = pod('leak');
  const seen = { state, pods: [pod('web'), LEAK], nowMs: 20_000 };

  it('takes up the pod again, for what is due now', () => {
    expect(resumedEviction(seen, record())).toStrictEqual({
      kind: 'evict',
      pod: LEAK,
      hard: true,
      gracePeriodMs: 0,
      gracePeriodSeconds: 0,
      cause: {
        threshold: HARD,
        observation: observation(50 * MI),
        level: 100 * MI,
        reclaiming: false,
      },
      message: 'The node was low on resource: memory.',
      annotations: {},
      condition: undefined,
    });
  });

  it.each([
    [30_000, 19_000, 19],
    [11_001, 1, 1],
    [11_000, 0, 0],
    [0, 0, 0],
  ])('of a grace of %d ms leaves %d', (gracePeriodMs, left, seconds) => {
    expect(resumedEviction(seen, record({ gracePeriodMs }))).toMatchObject({
      gracePeriodMs: left,
      gracePeriodSeconds: seconds,
    });
  });

  it('goes on for the minimum reclaim', () => {
    const due = [threshold({ minimumReclaim: value('50Mi') })];
    const regained = { ...state, due, observations: [observation(120 * MI)] };
    expect(resumedEviction({ ...seen, state: regained }, record())?.cause).toMatchObject({
      level: 150 * MI,
      reclaiming: true,
    });
  });

  it.each<[string, Partial<typeof seen>]>([
    ['nothing is in flight', { state: { ...state, inFlight: undefined } }],
    ['its pod is gone', { pods: [pod('web')] }],
    ['its pod is protected', { pods: [{ ...LEAK, protectedBecause: 'configured' }] }],
    ['nothing is due', { state: { ...state, due: [] } }],
    [
      'another signal is due',
      { state: { ...state, due: [threshold({ signal: 'pid.available' })] } },
    ],
    ['its signal was not read', { state: { ...state, observations: [] } }],
    [
      'it was for no signal',
      { state: { ...state, inFlight: { ...IN_FLIGHT, signal: undefined } } },
    ],
  ])('does not where %s', (_, change) => {
    expect(resumedEviction({ ...seen, ...change }, record())).toBeUndefined();
  });
});

describe('isSameBoot', () => {
  it.each([
    ['this', 1000, true],
    ['another', 1000, false],
    ['this', 1500 + CLOCK_SLACK_MS, true],
    ['this', 1501 + CLOCK_SLACK_MS, false],
    ['', 1000, false],
  ])('of %j, written at %d ms: %j', (bootId, savedAtMs, expected) => {
    expect(isSameBoot({ bootId, savedAtMs }, moment(1000))).toBe(expected);
    expect(isSameBoot({ bootId, savedAtMs }, moment(1000, { bootId: '' }))).toBe(false);
  });
});

describe('valueKey', () => {
  it.each([
    ['quantity 1073741824000000000n', value('1Gi')],
    ['percentage 10000000000n', value('10%')],
    ['fraction 0.5', { kind: 'fraction', fraction: 0.5, text: '50%' } as const],
  ])('%s', (key, one) => {
    expect(valueKey(one)).toBe(key);
  });
});

describe('images', () => {
  const IMAGES: ImageMemory = new Map([
    ['old', { firstSeenAtMs: 1000, lastUsedAtMs: 9000, wasThere: true }],
    ['new', { firstSeenAtMs: 8000, lastUsedAtMs: undefined, wasThere: false }],
  ]);
  const from: Kept = { ...kept(), images: IMAGES };
  const times = (images: ImageMemory | undefined) =>
    images &&
    [...images].map(([id, { firstSeenAtMs, lastUsedAtMs, wasThere }]) => [
      id,
      firstSeenAtMs,
      lastUsedAtMs,
      wasThere,
    ]);

  it('are as old as they were, and older by the time in which evictd did not run', () => {
    expect(times(restart(from).images)).toStrictEqual([
      ['old', 1000, 9000, true],
      ['new', 8000, undefined, false],
    ]);
  });

  it('of another boot by the wall clock, and no younger where that was set back', () => {
    const boot = { bootId: 'next', bootMs: 100 };
    const later = moment(50, { ...boot, wallMs: 1_000_000 + 70_000 });
    // Written at 10 s by the first clock, 60 s before.
    expect(times(restart(from, { at: later }).images)).toStrictEqual([
      ['old', 50 - 69_000, 50 - 61_000, true],
      ['new', 50 - 62_000, undefined, false],
    ]);
    const back = moment(50, { ...boot, wallMs: 5 });
    expect(times(restart(from, { at: back }).images)).toStrictEqual([
      ['old', 50 - 9000, 50 - 1000, true],
      ['new', 50 - 2000, undefined, false],
    ]);
  });

  it('are not known where they were not before', () => {
    expect(restart(kept()).images).toBeUndefined();
    expect(snapshotOf(kept(), moment(1), 0)).not.toHaveProperty('images');
  });

  it('are kept up to a number, and with ids of a length that such have', () => {
    const times = { firstSeenAtMs: 1, lastUsedAtMs: undefined, wasThere: false };
    const many = new Map([
      ['x'.repeat(KEPT_IMAGE_ID + 1), times] as const,
      ['x'.repeat(KEPT_IMAGE_ID), times] as const,
      ...Array.from({ length: KEPT_IMAGES }, (_, index) => [`${index}`, times] as const),
    ]);
    const { images } = snapshotOf({ ...kept(), images: many }, moment(1), 0);
    expect(images?.seen.map(({ id }) => id.length)[0]).toBe(KEPT_IMAGE_ID);
    expect(images?.seen).toHaveLength(KEPT_IMAGES);
  });

  it('are written when they change, and not since they were read', () => {
    expect(changeOf(from, { ...from, images: new Map(IMAGES) })).toBe('threshold');
    expect(changeOf(from, from)).toBe('none');
    expect(changeOf(beforeAnything(from), from)).toBe('none');
  });
});

describe('refreshMs', () => {
  it.each<[string, Partial<State>, number, number | undefined]>([
    ['nothing is met', {}, 300_000, undefined],
    ['a grace runs', { met: [SOFT, HARD], due: [HARD] }, 300_000, 1000],
    ['all is due', { met: [HARD], due: [HARD] }, 300_000, 10_000],
    ['the period is short', { met: [HARD], due: [HARD] }, 29_999, 1000],
    ['there is none', { met: [HARD], due: [HARD] }, 0, 1000],
    ['the period is long', { met: [HARD], due: [HARD] }, 7_200_000, 60_000],
  ])('%s', (_, state, periodMs, expected) => {
    expect(refreshMs({ ...INITIAL_STATE, ...state }, periodMs)).toBe(expected);
  });
});

describe('changeOf', () => {
  const written = kept({ ...MIDDLE, inFlight: IN_FLIGHT }, []);
  const now = (state: Partial<State>): Kept => ({
    ...written,
    state: { ...written.state, ...state },
  });

  it.each<[string, Kept, string]>([
    ['nothing', now({}), 'none'],
    [
      'readings and times',
      now({ metAtMs: 5, met: [SOFT], conditions: ['MemoryPressure'] }),
      'none',
    ],
    ['a threshold', now({ met: [] }), 'threshold'],
    ['another threshold', now({ met: [HARD] }), 'threshold'],
    ['the end of a grace', now({ due: [SOFT] }), 'threshold'],
    ['a condition', now({ conditions: [] }), 'eviction'],
    ['an eviction', { ...written, evictions: [record()] }, 'eviction'],
    ['its end', now({ inFlight: undefined }), 'eviction'],
    ['its escalation', now({ inFlight: { ...IN_FLIGHT, hard: false } }), 'eviction'],
  ])('%s', (_, after, expected) => {
    expect(changeOf(written, after)).toBe(expected);
  });

  it.each<[string, Partial<State>, string]>([
    ['while something is met', { met: [SOFT] }, 'none'],
    ['once nothing is', {}, 'threshold'],
  ])('a condition that was observed since, %s', (_, state, expected) => {
    const before = kept({ ...state, conditionsObserved: new Map([['MemoryPressure', 1]]) }, NONE);
    const after = kept({ ...state, conditionsObserved: new Map([['MemoryPressure', 2]]) }, NONE);
    expect(changeOf(before, after)).toBe(expected);
    expect(changeOf(kept(state, NONE), after)).toBe(expected);
    expect(changeOf(before, before)).toBe('none');
  });

  it.each<[string, Kept, string]>([
    ['nothing', kept(), 'none'],
    ['what a former run left', kept({}, [record()]), 'none'],
    ['a threshold', kept({ met: [SOFT] }), 'threshold'],
    ['a condition', kept({ conditions: ['DiskPressure'] }), 'eviction'],
  ])('at first: %s', (_, first, expected) => {
    expect(changeOf(beforeAnything(first), first)).toBe(expected);
  });
});

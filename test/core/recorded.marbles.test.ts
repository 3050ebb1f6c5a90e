import { from, map, takeUntil, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { evictionPipeline, type Turn } from '../../src/core/pipeline.ts';
import { recordedTurn, worthRecording } from '../../src/core/recorded.ts';
import {
  MI,
  observation,
  outcome,
  pod,
  policy,
  softThreshold,
  threshold,
  value,
} from '../support/builders.ts';
import { marbles } from '../support/marbles.ts';

const LEAK = pod('leak', { workingSetBytes: 300 * MI, gracePeriodSeconds: 3, pids: 7 });

const BY = policy({ thresholds: [threshold(), softThreshold()] });

/** What is chosen of the turns of a pipeline that polls each ms; the available Mi by time. */
function chosen(
  available: readonly number[],
  intervalMs: number,
  podsIntervalMs = 1000,
  by = BY,
  seen = LEAK,
  wakeups = 'w',
): Turn[] {
  const turns: Turn[] = [];
  marbles(({ scheduler, hot }) => {
    evictionPipeline(
      {
        wakeups$: hot(wakeups),
        outcomes$: hot('-'),
        read: () => [observation((available[scheduler.now()] ?? 500) * MI)],
        readPods: () => [seen],
        pollAfterMs: () => 1,
        podsIntervalMs,
      },
      () => by,
      scheduler,
    )
      .pipe(worthRecording(intervalMs), takeUntil(timer(available.length, scheduler)))
      .subscribe((turn) => turns.push(turn));
  });
  return turns;
}

const times = (turns: readonly Turn[]) => turns.map(({ sample }) => sample.nowMs);

describe('worthRecording', () => {
  it('takes the first, then one each interval while nothing happens', () => {
    expect(times(chosen(Array<number>(10).fill(500), 4))).toEqual([0, 4, 8]);
  });

  it('takes those with pods', () => {
    expect(times(chosen(Array<number>(10).fill(500), 100, 3))).toEqual([0, 3, 6, 9]);
  });

  describe('of a filesystem, which is read at a pace of its own', () => {
    const disk = threshold({ signal: 'nodefs.available', value: value('100Mi') });
    const by = { ...BY, thresholds: [...BY.thresholds, disk] };
    const full = (availableMi: number) =>
      observation(availableMi * MI, { signal: 'nodefs.available' });
    /** Each ms: memory, and of the disk what there is by time. */
    const ofDisk = (
      at: Readonly<Record<number, number>>,
      { forMs = 10, before, wakes = '-' }: { forMs?: number; before?: Turn; wakes?: string } = {},
    ): Turn[] => {
      const turns: Turn[] = [];
      marbles(({ scheduler, hot }) => {
        evictionPipeline(
          {
            wakeups$: hot('w'),
            outcomes$: hot('-'),
            reclaimed$: hot(wakes),
            read: () => {
              const now = at[scheduler.now()];
              return [observation(500 * MI), ...(now === undefined ? [] : [full(now)])];
            },
            readPods: () => [LEAK],
            pollAfterMs: () => 1,
            podsIntervalMs: 1000,
          },
          () => by,
          scheduler,
        )
          .pipe(worthRecording(4, before), takeUntil(timer(forMs, scheduler)))
          .subscribe((turn) => turns.push(turn));
      });
      return turns;
    };
    const told = (turns: readonly Turn[]) =>
      turns.map(({ sample: { nowMs, observations } }) => [
        nowMs,
        observations.find(({ signal }) => signal === 'nodefs.available')?.available,
      ]);

    it('has what was read last with the next turn that is taken', () => {
      expect(told(ofDisk({ 1: 400, 3: 300, 6: 200 }))).toEqual([
        [0, undefined],
        [4, 300 * MI],
        [8, 200 * MI],
      ]);
    });

    it('has what was known before with the first, if that is not old', () => {
      const [known] = ofDisk({ 0: 400 }, { forMs: 1 });
      expect(told(ofDisk({}, { before: known as Turn, forMs: 5 }))).toEqual([
        [0, 400 * MI],
        [4, undefined],
      ]);
      const old = { ...(known as Turn), sample: { ...(known as Turn).sample, nowMs: 60_001 } };
      expect(told(ofDisk({}, { before: old, forMs: 1 }))).toEqual([[0, undefined]]);
    });

    it('has the end of a collection with the next turn, where its own decided by others', () => {
      const [first] = ofDisk({ 0: 400 }, { forMs: 1 }) as [Turn];
      const { pods: _, ...sample } = first.sample;
      const at = (nowMs: number, more: Partial<Turn['sample']> = {}): Turn => ({
        ...first,
        sample: { ...sample, nowMs, observations: [observation(500 * MI)], ...more },
      });
      const end: Turn = {
        ...at(2, { reclaimed: true, observations: [full(350)] }),
        decision: { kind: 'none', why: 'oldFigures' },
      };
      const turns: Turn[] = [];
      from([first, at(1), end, at(3), at(4)])
        .pipe(worthRecording(100))
        .subscribe((turn) => turns.push(turn));
      expect(told(turns)).toEqual([
        [0, 400 * MI],
        [3, 350 * MI],
      ]);
      expect(turns.map((turn) => recordedTurn(turn).reclaimed)).toEqual([undefined, true]);
    });

    it('names the namespace of a pod that a runtime has', () => {
      const [first] = ofDisk({}, { forMs: 1 }) as [Turn];
      const names = [() => 'shop', () => undefined].map(
        (namespaceOf) => recordedTurn(first, namespaceOf).pods?.[0]?.namespace,
      );
      expect(names).toEqual(['shop', undefined]);
    });

    it('has what is short where it was read alone, and the last time that it was', () => {
      // Nobody is evicted for it: it is a node condition.
      const short = told(ofDisk({ 1: 50, 2: 40, 5: 30, 6: 500 }));
      expect(short).toEqual([
        [0, undefined],
        [1, 50 * MI],
        [2, 40 * MI],
        [5, 30 * MI],
        [6, 500 * MI],
      ]);
    });
  });

  it('takes the first of other thresholds that are met, and the last before it', () => {
    const soft = [500, 500, 500, 500, 150, 150, 150, 150, 500, 500];
    expect(times(chosen(soft, 100))).toEqual([0, 3, 4, 7, 8]);
  });

  it('takes those that clear a node condition', () => {
    const soft = [500, 500, 150, 500, 500, 500, 500, 500, 500];
    const by = { ...BY, pressureTransitionPeriodMs: 4 };
    expect(times(chosen(soft, 100, 1000, by))).toEqual([0, 1, 2, 3, 6]);
  });

  it('leaves out those that found nobody by an earlier ranking', () => {
    const spared = { ...LEAK, protectedBecause: 'configured' };
    const turns = chosen([500, 50, 50, 50, 50, 500], 1, 1000, BY, spared, 'wwwwww');
    expect(times(turns)).toEqual([0, 1, 5]);
  });

  it('leaves out those that waited for newer figures of disk use, unless an eviction ended', () => {
    const disk = {
      root: { bytes: 300 * MI, inodes: 1 },
      logs: { bytes: 0, inodes: undefined },
      localVolumes: { bytes: 0, inodes: 0 },
    };
    const seen = { ...LEAK, disk, diskSeen: { atMs: 0, isCut: false, deletedBytes: 0 } };
    const signal = 'nodefs.available' as const;
    const by = policy({ thresholds: [threshold({ signal })], ranksDisk: true });
    const turns: Turn[] = [];
    marbles(({ scheduler, hot }) => {
      evictionPipeline(
        {
          wakeups$: hot('ww-w'),
          outcomes$: hot('--o').pipe(map(() => outcome('other'))),
          read: () => [observation((scheduler.now() === 0 ? 500 : 50) * MI, { signal })],
          readPods: () => [seen],
          pollAfterMs: () => 1000,
          podsIntervalMs: 1000,
        },
        () => by,
        scheduler,
      )
        .pipe(worthRecording(100), takeUntil(timer(5, scheduler)))
        .subscribe((turn) => turns.push(turn));
    });
    expect(times(turns)).toEqual([0, 2]);
    expect(turns[1]?.decision).toEqual({ kind: 'none', why: 'oldFigures' });
    expect(recordedTurn(turns[1] as Turn).pods?.[0]?.disk).toEqual({
      root: { bytes: 300 * MI, inodes: 1 },
      logs: { bytes: 0, inodes: null },
      localVolumes: { bytes: 0, inodes: 0 },
    });
  });

  it('takes decisions, and no turn twice', () => {
    const turns = chosen([500, 150, 50, 500], 100);
    expect(times(turns)).toEqual([0, 1, 2, 3]);
    expect(turns.map(({ decision }) => decision.kind)).toEqual(['none', 'none', 'evict', 'none']);
  });
});

describe('recordedTurn', () => {
  const [calm, evicting] = chosen([500, 50], 100) as [Turn, Turn];

  it('has the counters, the pods and the decision, as JSON can hold them', () => {
    expect(recordedTurn(evicting)).toEqual({
      kind: 'turn',
      atMs: 1,
      reason: 'due',
      signals: [{ signal: 'memory.available', capacity: 1024 * MI, available: 50 * MI }],
      pods: [
        {
          id: 'id-of-leak',
          name: 'leak',
          priority: 0,
          qosClass: 'BestEffort',
          memoryRequest: '0',
          workingSetBytes: 300 * MI,
          pids: 7,
          gracePeriodSeconds: 3,
          protected: null,
        },
      ],
      calm: false,
      decision: { kind: 'evict', podId: 'id-of-leak', gracePeriodMs: 0 },
      outcome: null,
    });
    expect(recordedTurn(calm)).toMatchObject({
      calm: true,
      reason: 'start',
      decision: { kind: 'none', why: 'calm' },
    });
  });

  it('has what images take that a pod alone uses, where that is known', () => {
    const pods = [pod('a', { exclusiveImageBytes: 0 }), pod('b')];
    const turn: Turn = { ...calm, sample: { ...calm.sample, pods } };
    const [known, unknown] = recordedTurn(turn).pods ?? [];
    expect(known).toMatchObject({ exclusiveImageBytes: 0 });
    expect(unknown).not.toHaveProperty('exclusiveImageBytes');
  });

  it('has null for what is not known', () => {
    const unknown = pod('x', { workingSetBytes: undefined, protectedBecause: 'configured' });
    const turn: Turn = { ...calm, sample: { ...calm.sample, pods: [unknown] } };
    expect(recordedTurn(turn).pods).toMatchObject([
      { workingSetBytes: null, pids: null, gracePeriodSeconds: null, protected: 'configured' },
    ]);
    const { pods: _, ...unread } = calm.sample;
    expect(recordedTurn({ ...calm, sample: unread }).pods).toBeNull();
  });

  it('says that the space of what was evicted is still held', () => {
    const turn: Turn = { ...calm, sample: { ...calm.sample, spaceHeld: true } };
    expect(recordedTurn(turn).spaceHeld).toBe(true);
    expect(recordedTurn(calm)).not.toHaveProperty('spaceHeld');
  });

  it.each([
    ['evicted', outcome('leak')],
    ['timedOut', outcome('leak', { kind: 'timedOut', reason: 'deadline' })],
    ['failed', outcome('leak', { kind: 'failed', error: 'EPERM' })],
    ['nothingToKill', outcome('leak', { kind: 'refused', reason: 'nothingToKill' })],
    ['pressureGone', outcome('leak', { kind: 'refused', reason: 'pressureGone' })],
    ['dryRun', outcome('leak', { kind: 'refused', reason: 'dryRun' })],
    ['failed', outcome('leak', { kind: 'refused', reason: 'podGone' })],
  ] as const)('has the outcome %s', (kind, ended) => {
    const turn: Turn = { ...calm, sample: { ...calm.sample, outcome: ended } };
    expect(recordedTurn(turn).outcome).toEqual({ podId: 'id-of-leak', kind });
  });

  it.each([
    [{ kind: 'observePods' }, { kind: 'observePods' }],
    [{ kind: 'reclaim' }, { kind: 'reclaim' }],
    [
      { kind: 'escalate', podId: 'id-of-leak', gracePeriodMs: 1000 },
      { kind: 'escalate', podId: 'id-of-leak', gracePeriodMs: 1000 },
    ],
  ])('has the decision %o', (decision, recorded) => {
    const turn = { ...calm, decision } as unknown as Turn;
    expect(recordedTurn(turn).decision).toEqual(recorded);
  });
});

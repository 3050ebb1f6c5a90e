import { describe, expect, it } from 'vitest';
import {
  afterEviction,
  type Comebacks,
  FIRST_HOLD_MS,
  LAST_HOLD_MS,
  type Need,
  NO_COMEBACKS,
  OWNER_LIMIT,
  orderedByComebacks,
  ownershipOf,
  STRAIGHT_BACK_MS,
  withReturns,
} from '../../src/core/hold-off.ts';
import type { PodObservation } from '../../src/core/pod.ts';
import { rankWithReasons } from '../../src/core/rank.ts';
import { RULE_SETS } from '../../src/core/rules.ts';
import type { Signal } from '../../src/core/signal.ts';
import { MI, outcome, pod, policy, sample } from '../support/builders.ts';
import { said, story } from './stories.ts';

/** A pod of an owner; each generation is another pod. */
const of = (owner: string, generation = 1, overrides: Partial<PodObservation> = {}) =>
  pod(owner, { id: `${owner}-${generation}`, owner, ...overrides });

const evictedFor = (signal: Signal | undefined, generation = 1) => ({
  podId: `leak-${generation}`,
  podName: 'leak',
  signal,
});

const MEMORY = evictedFor('memory.available');

const evictedAt = (atMs: number) => ({
  siblings: new Set(),
  evictedAtMs: atMs,
  heldUntilMs: atMs,
});

const BY_ITSELF = { owner: 'leak', siblings: [] } as const;

describe('what is remembered', () => {
  it('is the eviction, and that another pod of the owner is there', () => {
    const evicted = afterEviction(NO_COMEBACKS, BY_ITSELF, MEMORY, 100);
    expect([...evicted]).toEqual([
      ['leak', { ...MEMORY, ...evictedAt(100), returns: 0, backAtMs: undefined }],
    ]);
    const back = withReturns(evicted, [of('other'), of('leak', 2), pod('x')], 150);
    expect([...back]).toEqual([
      ['leak', { ...MEMORY, ...evictedAt(100), returns: 1, backAtMs: 150 }],
    ]);
    // It is counted once.
    expect(withReturns(back, [of('leak', 2)], 160)).toBe(back);
  });

  it.each<[string, PodObservation]>([
    ['the evicted pod itself, still listed', of('leak', 1)],
    ['one that may not be evicted', of('leak', 2, { protectedBecause: 'holds no process' })],
    ['a pod of another owner', of('web', 2)],
    ['a pod of nobody’s', pod('leak', { id: 'leak-2' })],
    ['a pod of the owner that was there before', of('leak', 7)],
  ])('is no return of %s', (_, seen) => {
    const ownership = { ...BY_ITSELF, siblings: ['leak-7'] };
    const evicted = afterEviction(NO_COMEBACKS, ownership, MEMORY, 0);
    expect(withReturns(evicted, [seen], 1)).toBe(evicted);
  });

  it('is forgotten after a while, and is no return from then on', () => {
    const evicted = afterEviction(NO_COMEBACKS, BY_ITSELF, MEMORY, 0);
    expect(withReturns(evicted, [], STRAIGHT_BACK_MS - 1)).toBe(evicted);
    expect(withReturns(evicted, [of('leak', 2)], STRAIGHT_BACK_MS).size).toBe(0);
  });

  it('holds an owner off for longer each time', () => {
    let comebacks: Comebacks = NO_COMEBACKS;
    const held: number[] = [];
    for (let generation = 1; generation <= 9; generation += 1) {
      comebacks = afterEviction(
        comebacks,
        BY_ITSELF,
        evictedFor('memory.available', generation),
        0,
      );
      held.push(comebacks.get('leak')?.heldUntilMs ?? Number.NaN);
      comebacks = withReturns(comebacks, [of('leak', generation + 1)], 0);
    }
    expect(held).toEqual([0, 10, 20, 40, 80, 160, 300, 300, 300].map((seconds) => seconds * 1000));
    expect([held[1], held.at(-1)]).toEqual([FIRST_HOLD_MS, LAST_HOLD_MS]);
    expect(comebacks.get('leak')?.returns).toBe(9);
  });

  it('is of so many owners, those that were evicted last', () => {
    let comebacks: Comebacks = NO_COMEBACKS;
    for (let at = 0; at < OWNER_LIMIT; at += 1) {
      comebacks = afterEviction(comebacks, { owner: `o${at}`, siblings: [] }, MEMORY, at);
    }
    comebacks = afterEviction(comebacks, { owner: 'o0', siblings: [] }, MEMORY, OWNER_LIMIT);
    comebacks = afterEviction(comebacks, { owner: 'new', siblings: [] }, MEMORY, OWNER_LIMIT);
    expect(comebacks.size).toBe(OWNER_LIMIT);
    expect([comebacks.has('o0'), comebacks.has('o1'), comebacks.has('new')]).toEqual([
      true,
      false,
      true,
    ]);
  });
});

describe('ownershipOf', () => {
  it('is the owner with its other pods', () => {
    const [one, two] = [of('web', 1), of('web', 2)];
    expect(ownershipOf(one, [one, of('leak'), two, pod('x')])).toEqual({
      owner: 'web',
      siblings: ['web-2'],
    });
    expect(ownershipOf(one)).toEqual({ owner: 'web', siblings: [] });
    expect(ownershipOf(pod('x'), [one])).toBeUndefined();
  });
});

describe('the order of those that may be evicted', () => {
  const MISSING: Need = { signal: 'memory.available', missing: 50 * MI };

  /** The names in their order; `leak` has come back after `returns` evictions before the last. */
  function order(
    pods: readonly PodObservation[],
    {
      returns = 0,
      need = MISSING,
      nowMs = 1,
      signal = 'memory.available',
    }: {
      readonly returns?: number;
      readonly need?: Need;
      readonly nowMs?: number;
      readonly signal?: Signal | 'none';
    } = {},
  ): readonly string[] {
    let comebacks: Comebacks = NO_COMEBACKS;
    for (let generation = 0; generation <= returns; generation += 1) {
      comebacks = afterEviction(
        comebacks,
        BY_ITSELF,
        { ...MEMORY, podId: `g${generation}`, signal: signal === 'none' ? undefined : signal },
        0,
      );
      comebacks = withReturns(comebacks, [of('leak', generation)], 0);
    }
    const ranked = rankWithReasons(need.signal, pods);
    return orderedByComebacks(ranked, comebacks, need, nowMs).map(({ pod: one }) => one.name);
  }

  const usage = (mib: number, overrides: Partial<PodObservation> = {}) => ({
    workingSetBytes: mib * MI,
    pids: 10,
    ...overrides,
  });
  const LEAK = of('leak', 99, usage(20));
  const BIG = pod('big', usage(200));
  const MIDDLE = pod('middle', usage(100));
  const SMALL = pod('small', usage(10));

  it('has who came straight back before his equals', () => {
    expect(order([BIG, SMALL, LEAK])).toEqual(['leak', 'big', 'small']);
  });

  it('has him after them while he is held off', () => {
    expect(order([BIG, LEAK, SMALL], { returns: 1 })).toEqual(['big', 'small', 'leak']);
    const isOver = { returns: 1, nowMs: FIRST_HOLD_MS };
    expect(order([BIG, LEAK, SMALL], isOver)).toEqual(['leak', 'big', 'small']);
  });

  it('leaves him in his place where his end alone is enough', () => {
    const enough = of('leak', 99, usage(50));
    expect(order([BIG, enough, SMALL], { returns: 1 })).toEqual(['big', 'leak', 'small']);
    const unknown = of('leak', 99, { workingSetBytes: undefined });
    expect(order([BIG, SMALL, unknown], { returns: 1 })).toEqual(['big', 'small', 'leak']);
  });

  it('moves him among his equals alone', () => {
    const low = pod('low', usage(5, { priority: -1 }));
    const kept = pod('kept', usage(5, { memoryRequestNano: 10n ** 18n }));
    expect(order([kept, BIG, LEAK, low])).toEqual(['low', 'leak', 'big', 'kept']);
    expect(order([kept, BIG, LEAK, low], { returns: 1 })).toEqual(['low', 'big', 'leak', 'kept']);
  });

  it('moves several in the order that they have', () => {
    const other = of('leak', 98, usage(30));
    expect(order([BIG, LEAK, other, MIDDLE])).toEqual(['leak', 'leak', 'big', 'middle']);
  });

  it('is that of the ranking where he went for something else, or nobody has come back', () => {
    expect(order([BIG, LEAK], { signal: 'pid.available' })).toEqual(['big', 'leak']);
    expect(order([BIG, LEAK], { signal: 'none' })).toEqual(['big', 'leak']);
    const evicted = afterEviction(NO_COMEBACKS, BY_ITSELF, MEMORY, 0);
    const ranked = rankWithReasons('memory.available', [BIG, LEAK]);
    expect(orderedByComebacks(ranked, evicted, MISSING, 1)).toBe(ranked);
    expect(orderedByComebacks(ranked, NO_COMEBACKS, MISSING, 1)).toBe(ranked);
  });

  it.each<[Signal, number, readonly string[]]>([
    ['pid.available', 10, ['big', 'leak', 'small']],
    ['pid.available', 11, ['big', 'small', 'leak']],
    ['allocatableMemory.available', 20 * MI, ['big', 'leak', 'small']],
    ['nodefs.available', 1, ['big', 'small', 'leak']],
  ])('goes by what %s has back of him: %d', (signal, missing, expected) => {
    const pods = [
      pod('big', usage(200, { pids: 20, disk: disk(200) })),
      of('leak', 99, usage(20, { disk: disk(20) })),
      pod('small', usage(10, { pids: 5, disk: disk(10) })),
    ];
    expect(order(pods, { returns: 1, need: { signal, missing }, signal })).toEqual(expected);
  });

  it('takes PIDs that were not counted for none', () => {
    const pods = [pod('big', { pids: 9 }), of('leak', 99, { pids: undefined })];
    const need: Need = { signal: 'pid.available', missing: 1 };
    expect(order(pods, { returns: 1, need, signal: 'pid.available' })).toEqual(['big', 'leak']);
  });
});

function disk(mib: number) {
  const none = { bytes: 0, inodes: 0 };
  return { root: { bytes: mib * MI, inodes: 1 }, logs: none, localVolumes: none };
}

describe('by the policy', () => {
  const WEB = pod('web', { workingSetBytes: 200 * MI });
  const leak = (generation: number, mib = 100) =>
    of('leak', generation, { workingSetBytes: mib * MI, priority: -1 });
  /** Its equal, so that nothing but its return puts it first. */
  const equal = (generation: number, mib = 100) =>
    of('leak', generation, { workingSetBytes: mib * MI });
  const gone = (generation: number, ending?: Parameters<typeof outcome>[1]) => ({
    ...outcome('leak', ending),
    podId: `leak-${generation}`,
  });

  it('who comes straight back goes before who uses more', () => {
    const results = story(
      policy(),
      sample(0, 50 * MI, { pods: [WEB, leak(1)] }),
      sample(100, 150 * MI, { outcome: gone(1) }),
      sample(5000, 50 * MI, { pods: [WEB, equal(2)] }),
    );
    expect(said(results)).toStrictEqual(['evict leak', 'none calm', 'evict leak']);
    expect(results.at(-1)?.state.comebacks.get('leak')).toMatchObject({ returns: 1 });
  });

  it('and after the second time is not taken again and again while it frees too little', () => {
    const results = story(
      policy(),
      sample(0, 50 * MI, { pods: [WEB, leak(1)] }),
      sample(100, 50 * MI, { pods: [WEB, equal(2)], outcome: gone(1) }),
      sample(200, 60 * MI, { pods: [WEB, equal(3, 30)], outcome: gone(2) }),
      sample(300, 50 * MI, { pods: [equal(3, 30)], outcome: outcome('web') }),
      // Nobody else is left: it is not passed over.
      sample(400, 50 * MI, { pods: [equal(4, 30)], outcome: gone(3) }),
    );
    expect(said(results)).toStrictEqual([
      'evict leak',
      'evict leak',
      'evict web',
      'evict leak',
      'evict leak',
    ]);
  });

  it('a replica that stayed is none that has come back', () => {
    const results = story(
      policy(),
      sample(0, 50 * MI, { pods: [WEB, leak(1), equal(7)] }),
      sample(100, 50 * MI, { pods: [WEB, equal(7)], outcome: gone(1) }),
      // Another takes the place of the one that went; the replica is in its own.
      sample(200, 50 * MI, { pods: [equal(7), equal(2, 20)], outcome: outcome('web') }),
    );
    expect(said(results)).toStrictEqual(['evict leak', 'evict web', 'evict leak']);
    expect(results[1]?.state.comebacks.get('leak')).toMatchObject({ returns: 0 });
    expect(results[2]?.decision).toMatchObject({ pod: { id: 'leak-2' } });
  });

  it('an eviction that came to nothing is none', () => {
    const results = story(
      policy(),
      sample(0, 50 * MI, { pods: [leak(1)] }),
      sample(100, 50 * MI, {
        pods: [leak(1)],
        outcome: gone(1, { kind: 'failed', error: 'EPERM' }),
      }),
    );
    expect(results.at(-1)?.state.comebacks.size).toBe(0);
  });

  it('by the kubelet’s rules nothing is remembered', () => {
    const results = story(
      policy({ rules: RULE_SETS.kubelet }),
      sample(0, 50 * MI, { pods: [WEB, leak(1)] }),
      sample(100, 150 * MI, { outcome: gone(1) }),
      sample(5000, 50 * MI, { pods: [WEB, equal(2)] }),
    );
    expect(said(results)).toStrictEqual(['evict leak', 'none calm', 'evict web']);
    expect(results.at(-1)?.state.comebacks.size).toBe(0);
  });
});

import { describe, expect, it } from 'vitest';
import { RULE_SETS } from '../../src/core/rules.ts';
import type { Signal } from '../../src/core/signal.ts';
import {
  awaitsSpace,
  SPACE_HELD_MOST_MS,
  SPACE_SETTLES_MS,
  spaceAwaitedAfter,
} from '../../src/core/space.ts';
import { INITIAL_STATE, type Sample, type State } from '../../src/core/state.ts';
import { MI, observation, policy, threshold } from '../support/builders.ts';

const OWN = policy();
const KUBELET = policy({ rules: RULE_SETS.kubelet });
const NONE = new Map();
const disk = (available: number) =>
  observation(available, { signal: 'imagefs.available', capacity: 1000 * MI });
const memory = (available: number) => observation(available);

const next = (
  spaceAwaited: State['spaceAwaited'],
  sample: Partial<Sample> & { readonly nowMs: number },
) =>
  spaceAwaitedAfter(
    { ...INITIAL_STATE, spaceAwaited, observations: [disk(10 * MI), memory(10 * MI)] },
    { observations: [], ...sample },
  );

describe('spaceAwaitedAfter', () => {
  it('awaits what is held, and a while longer', () => {
    expect(next(undefined, { nowMs: 100, spaceHeld: true })).toStrictEqual({
      sinceMs: 100,
      untilMs: 100 + SPACE_SETTLES_MS,
      highest: NONE,
    });
  });

  it('awaits it half a minute', () => {
    const held = { sinceMs: 100, untilMs: 200, highest: NONE };
    const nowMs = 3_600_000;
    expect(next(held, { nowMs, spaceHeld: true })).toStrictEqual({
      sinceMs: 100,
      untilMs: 100 + SPACE_HELD_MOST_MS,
      highest: NONE,
    });
    expect(next(held, { nowMs: 1000, spaceHeld: true })?.untilMs).toBe(1000 + SPACE_SETTLES_MS);
  });

  it('what is no longer held is awaited to the end of its time', () => {
    const held = {
      sinceMs: 100,
      untilMs: 5000,
      highest: new Map([['imagefs.available', 11 * MI]] as const),
    } as const;
    expect(next(held, { nowMs: 4999 })).toBe(held);
    expect(next(held, { nowMs: 5000 })).toBeUndefined();
    expect(next(undefined, { nowMs: 5000 })).toBeUndefined();
  });

  it('and longer as long as a disk gives more back', () => {
    const held = {
      sinceMs: 100,
      untilMs: 5000,
      highest: new Map([['imagefs.available', 11 * MI]] as const),
    } as const;
    const rising = next(held, { nowMs: 4000, observations: [disk(11 * MI)] });
    expect(rising).toStrictEqual({ ...held, untilMs: 4000 + SPACE_SETTLES_MS });
    expect(next(held, { nowMs: 4000, observations: [disk(10 * MI)] })).toBe(held);
    expect(next(held, { nowMs: 4000, observations: [memory(11 * MI)] })).toBe(held);
    expect(next(held, { nowMs: 4000, observations: undefined })).toBe(held);
  });
});

describe('the most that was available meanwhile', () => {
  const seen = (one: State['spaceAwaited']) => [...(one?.highest ?? [])];
  it('is that of each disk, from the second reading on', () => {
    const first = next(undefined, { nowMs: 0, spaceHeld: true, observations: [disk(9 * MI)] });
    expect(seen(first)).toEqual([]);
    const observations = [disk(8 * MI), memory(99 * MI)];
    const second = next(first, { nowMs: 1000, spaceHeld: true, observations });
    expect(seen(second)).toEqual([['imagefs.available', 8 * MI]]);
    const third = next(second, { nowMs: 2000, spaceHeld: true, observations: [disk(7 * MI)] });
    expect(third?.highest).toBe(second?.highest);
    // Also after it is gone, whether or not more has come back than before.
    const fourth = next(third, { nowMs: 3000, observations: [disk(9 * MI)] });
    expect(seen(fourth)).toEqual([['imagefs.available', 9 * MI]]);
    expect(fourth?.untilMs).toBe(third?.untilMs);
  });
});

describe('awaitsSpace', () => {
  const state: State = {
    ...INITIAL_STATE,
    spaceAwaited: {
      sinceMs: 0,
      untilMs: 100,
      highest: new Map([['imagefs.available', 80 * MI]] as const),
    },
  };
  const short = (signal: Signal, available = 80 * MI) => ({
    threshold: threshold({ signal }),
    observation: observation(available, { signal, capacity: 1000 * MI }),
  });
  it('is for disks alone, until its time is over', () => {
    expect(awaitsSpace(OWN, state, short('imagefs.available'), 99)).toBe(true);
    expect(awaitsSpace(OWN, state, short('nodefs.inodesFree'), 99)).toBe(true);
    expect(awaitsSpace(OWN, state, short('imagefs.available'), 100)).toBe(false);
    expect(awaitsSpace(OWN, state, short('memory.available'), 0)).toBe(false);
    expect(awaitsSpace(OWN, state, short('pid.available'), 0)).toBe(false);
    expect(awaitsSpace(OWN, INITIAL_STATE, short('imagefs.available'), 0)).toBe(false);
  });

  it.each([
    // Of 100Mi an eighth is 12.5Mi; of 8Mi, where there was no more, 1Mi.
    [120, 107.5, false],
    [120, 107.6, true],
    [80, 70, false],
    [80, 70.1, true],
    [80, 90, true],
    [8, 7, false],
    [8, 7.1, true],
    [0, 0, true],
  ])('of %s Mi there are %s: awaited %s, by the kubelet’s rules always', (most, now, awaited) => {
    const highest = new Map([['imagefs.available', most * MI]] as const);
    const held: State = { ...state, spaceAwaited: { sinceMs: 0, untilMs: 100, highest } };
    const low = short('imagefs.available', now * MI);
    expect(awaitsSpace(OWN, held, low, 99)).toBe(awaited);
    expect(awaitsSpace(KUBELET, held, low, 99)).toBe(true);
  });
});

import { describe, expect, it } from 'vitest';
import { RULE_SETS } from '../../src/core/rules.ts';
import {
  awaitsSpace,
  SPACE_HELD_MOST_MS,
  SPACE_SETTLES_MS,
  spaceAwaitedAfter,
} from '../../src/core/space.ts';
import { INITIAL_STATE, type Sample, type State } from '../../src/core/state.ts';
import { MI, observation, policy } from '../support/builders.ts';

const OWN = policy();
const KUBELET = policy({ rules: RULE_SETS.kubelet });
const disk = (available: number) =>
  observation(available, { signal: 'imagefs.available', capacity: 1000 * MI });
const memory = (available: number) => observation(available);

const next = (
  spaceAwaited: State['spaceAwaited'],
  sample: Partial<Sample> & { readonly nowMs: number },
  by = OWN,
) =>
  spaceAwaitedAfter(
    by,
    { ...INITIAL_STATE, spaceAwaited, observations: [disk(10 * MI), memory(10 * MI)] },
    { observations: [], ...sample },
  );

describe('spaceAwaitedAfter', () => {
  it('awaits what is held, and a while longer', () => {
    expect(next(undefined, { nowMs: 100, spaceHeld: true })).toStrictEqual({
      sinceMs: 100,
      untilMs: 100 + SPACE_SETTLES_MS,
    });
  });

  it('awaits it for ever, by the kubelet’s rules half a minute', () => {
    const held = { sinceMs: 100, untilMs: 200 };
    const nowMs = 3_600_000;
    expect(next(held, { nowMs, spaceHeld: true })?.untilMs).toBe(nowMs + SPACE_SETTLES_MS);
    expect(next(held, { nowMs, spaceHeld: true }, KUBELET)).toStrictEqual({
      sinceMs: 100,
      untilMs: 100 + SPACE_HELD_MOST_MS,
    });
    expect(next(held, { nowMs: 1000, spaceHeld: true }, KUBELET)?.untilMs).toBe(
      1000 + SPACE_SETTLES_MS,
    );
  });

  it('what is no longer held is awaited to the end of its time', () => {
    const held = { sinceMs: 100, untilMs: 5000 };
    expect(next(held, { nowMs: 4999 })).toBe(held);
    expect(next(held, { nowMs: 5000 })).toBeUndefined();
    expect(next(undefined, { nowMs: 5000 })).toBeUndefined();
  });

  it('and longer as long as a disk gives more back', () => {
    const held = { sinceMs: 100, untilMs: 5000 };
    const rising = next(held, { nowMs: 4000, observations: [disk(11 * MI)] });
    expect(rising).toStrictEqual({ sinceMs: 100, untilMs: 4000 + SPACE_SETTLES_MS });
    expect(next(held, { nowMs: 4000, observations: [disk(10 * MI)] })).toBe(held);
    expect(next(held, { nowMs: 4000, observations: [memory(11 * MI)] })).toBe(held);
    expect(next(held, { nowMs: 4000, observations: undefined })).toBe(held);
  });
});

describe('awaitsSpace', () => {
  const state: State = { ...INITIAL_STATE, spaceAwaited: { sinceMs: 0, untilMs: 100 } };
  it('is for disks alone, until its time is over', () => {
    expect(awaitsSpace(state, 'imagefs.available', 99)).toBe(true);
    expect(awaitsSpace(state, 'nodefs.inodesFree', 99)).toBe(true);
    expect(awaitsSpace(state, 'imagefs.available', 100)).toBe(false);
    expect(awaitsSpace(state, 'memory.available', 0)).toBe(false);
    expect(awaitsSpace(state, 'pid.available', 0)).toBe(false);
    expect(awaitsSpace(INITIAL_STATE, 'imagefs.available', 0)).toBe(false);
  });
});

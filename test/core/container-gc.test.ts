import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  CONTAINER_GC,
  CONTAINER_GC_UNDER_PRESSURE,
  containersToCollect,
  type DeadContainer,
} from '../../src/core/container-gc.ts';

const dead = (id: string, endedAtMs: number, owner = 'default/web/main'): DeadContainer => ({
  id,
  owner,
  endedAtMs,
});
const taken = (...args: Parameters<typeof containersToCollect>): readonly string[] =>
  containersToCollect(...args).map(({ id }) => id);

const SOME = [dead('b', 20), dead('a', 10), dead('c', 30), dead('d', 5, 'default/db/main')];

describe('containersToCollect', () => {
  it('keeps the latest of each owner, and takes the oldest first', () => {
    expect(taken(SOME, CONTAINER_GC, 100)).toStrictEqual(['a', 'b']);
  });

  it('takes all under pressure', () => {
    expect(taken(SOME, CONTAINER_GC_UNDER_PRESSURE, 100)).toStrictEqual(['d', 'a', 'b', 'c']);
  });

  it('keeps what ended just now, which does not count among those that stay', () => {
    const policy = { minimumAgeMs: 80, mostPerOwner: 1 };
    expect(taken(SOME, policy, 100)).toStrictEqual(['a']);
    expect(taken(SOME, policy, 101)).toStrictEqual(['a']);
    expect(taken(SOME, policy, 110)).toStrictEqual(['a', 'b']);
  });

  it('takes none where all may stay', () => {
    expect(taken(SOME, { minimumAgeMs: 0, mostPerOwner: -1 }, 100)).toStrictEqual([]);
  });

  it('is the same for any order of what it is given', () => {
    const several = [...SOME, dead('e', 20), dead('f', 30)];
    fc.assert(
      fc.property(fc.shuffledSubarray(several, { minLength: several.length }), (shuffled) => {
        expect(taken(shuffled, CONTAINER_GC, 100)).toStrictEqual(taken(several, CONTAINER_GC, 100));
      }),
    );
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  CONTAINER_GC,
  CONTAINER_GC_UNDER_PRESSURE,
  type ContainerGcPolicy,
  type DeadContainer,
  type DeadSandbox,
  judgeContainers,
  judgeSandboxes,
} from '../../src/core/container-gc.ts';

const dead = (id: string, endedAtMs: number, owner = 'default/web/main'): DeadContainer => ({
  id,
  owner,
  endedAtMs,
});
const taken = (...args: Parameters<typeof judgeContainers>): readonly string[] =>
  judgeContainers(...args).taken.map(({ id }) => id);
const keptOf = (...args: Parameters<typeof judgeContainers>): readonly string[] =>
  judgeContainers(...args).kept.map(({ dead: { id }, why }) => `${id}: ${why}`);

const SOME = [dead('b', 20), dead('a', 10), dead('c', 30), dead('d', 5, 'default/db/main')];

describe('judgeContainers', () => {
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

  it('says why each of the others stays', () => {
    const policy = { minimumAgeMs: 80, mostPerOwner: 1 };
    expect(keptOf(SOME, policy, 101)).toStrictEqual(['b: latest', 'c: fresh', 'd: latest']);
    const all = { minimumAgeMs: 0, mostPerOwner: -1 };
    expect(keptOf(SOME, all, 100)).toHaveLength(SOME.length);
    expect(keptOf(SOME, CONTAINER_GC_UNDER_PRESSURE, 100)).toStrictEqual([]);
  });

  it('keeps the latest attempt of what may have been started again, also under pressure', () => {
    const living = SOME.map((one) => ({ ...one, ofLivingPod: one.owner === 'default/web/main' }));
    expect(taken(living, CONTAINER_GC_UNDER_PRESSURE, 100)).toStrictEqual(['d', 'a', 'b']);
    expect(keptOf(living, CONTAINER_GC_UNDER_PRESSURE, 100)).toStrictEqual(['c: latest']);
    expect(taken(living, { minimumAgeMs: 0, mostPerOwner: 2 }, 100)).toStrictEqual(['a']);
  });

  it('leaves the list that it was given alone', () => {
    const given = [...SOME];
    judgeContainers(given, CONTAINER_GC, 100);
    expect(given).toStrictEqual(SOME);
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

describe('judgeSandboxes', () => {
  const sandbox = (id: string, endedAtMs: number, ...containers: string[]): DeadSandbox => ({
    ...dead(id, endedAtMs, 'default/web'),
    containers,
  });
  const told = (policy: ContainerGcPolicy, ...sandboxes: readonly DeadSandbox[]) => {
    const { taken: go, kept } = judgeSandboxes(sandboxes, policy, 100, (id) => id !== 'gone');
    return [go.map(({ id }) => id), kept.map(({ dead: { id }, why }) => `${id}: ${why}`)];
  };

  it('takes those of which nothing is left', () => {
    expect(
      told(
        CONTAINER_GC_UNDER_PRESSURE,
        sandbox('a', 1),
        sandbox('b', 2, 'gone'),
        sandbox('c', 3, 'x'),
      ),
    ).toStrictEqual([['a', 'b'], ['c: holds containers']]);
  });

  it('and keeps the latest where containers do', () => {
    expect(
      told(CONTAINER_GC, sandbox('a', 1), sandbox('b', 2, 'x'), sandbox('c', 3)),
    ).toStrictEqual([['a'], ['c: latest', 'b: holds containers']]);
  });
});

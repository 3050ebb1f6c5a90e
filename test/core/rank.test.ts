import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PodObservation } from '../../src/core/pod.ts';
import {
  byExceedingRequest,
  byName,
  byPriority,
  byUsageOverRequest,
  compareText,
  isEvictedFor,
  orderedBy,
  rankPods,
} from '../../src/core/rank.ts';
import type { Signal } from '../../src/core/signal.ts';
import { GI, MI, pod } from '../support/builders.ts';

const nano = (bytes: number): bigint => BigInt(bytes) * 1_000_000_000n;
const uses = (workingSetBytes: number | undefined, requestBytes: number, priority = 0) => ({
  workingSetBytes,
  memoryRequestNano: nano(requestBytes),
  priority,
});

const names = (pods: readonly PodObservation[]) =>
  rankPods('memory.available', pods).map(({ name }) => name);

describe('rankPods for PIDs', () => {
  const ranked = (pods: Record<string, Partial<PodObservation>>) =>
    rankPods(
      'pid.available',
      Object.entries(pods).map(([name, fields]) => pod(name, fields)),
    ).map(({ name }) => name);

  it('is by priority, then by tasks, whatever memory they use', () => {
    expect(
      ranked({
        large: { pids: 3, workingSetBytes: 900 * MI },
        bomb: { pids: 450, workingSetBytes: MI },
        system: { pids: 4000, priority: 1 },
      }),
    ).toStrictEqual(['bomb', 'large', 'system']);
  });

  it('has those that could not be counted last, then by name', () => {
    expect(ranked({ b: {}, a: { pids: undefined }, one: { pids: 1 } })).toStrictEqual([
      'one',
      'a',
      'b',
    ]);
  });
});

describe('rankPods for disk', () => {
  it.each(['nodefs.available', 'imagefs.inodesFree', 'containerfs.available'] as const)(
    'is none yet: by name for %s, and nobody is evicted for it',
    (signal) => {
      const pods = [pod('b', { priority: -1 }), pod('a')];
      expect(rankPods(signal, pods).map(({ name }) => name)).toStrictEqual(['a', 'b']);
      expect(isEvictedFor(signal)).toBe(false);
    },
  );

  it('is not what memory and PIDs have', () => {
    expect(['memory.available', 'allocatableMemory.available', 'pid.available'] as const).toSatisfy(
      (signals: readonly Signal[]) => signals.every(isEvictedFor),
    );
  });
});

describe('rankPods for memory', () => {
  it.each<[string, Record<string, Partial<PodObservation>>, readonly string[]]>([
    [
      'priority comes before usage (k/k#78561): over a request of 0 goes before within 1Gi',
      {
        low: { ...uses(900 * MI, GI, 0), qosClass: 'Guaranteed' },
        hi: uses(50 * MI, 0, 1000),
      },
      ['hi', 'low'],
    ],
    [
      'a pod without figures comes after the known offender, whatever its priority (k/k#123591)',
      { quiet: { ...uses(undefined, 10 * GI, -5), qosClass: 'Burstable' }, big: uses(500 * MI, 0) },
      ['big', 'quiet'],
    ],
    [
      'and before one that is known to be within its request',
      { calm: uses(50 * MI, 100 * MI, -1000), quiet: uses(undefined, 0, 1000) },
      ['quiet', 'calm'],
    ],
    [
      'nobody has figures: lowest priority, then name',
      { b: uses(undefined, 0, 0), a: uses(undefined, GI, 0), low: uses(undefined, 0, -1) },
      ['low', 'a', 'b'],
    ],
    [
      'of two offenders the lower priority goes, though it is over by less',
      { important: uses(900 * MI, 0, 10), batch: uses(1 * MI, 0, 0) },
      ['batch', 'important'],
    ],
    [
      'of equal priority the one most over its request, not the one that uses most',
      { large: uses(900 * MI, 850 * MI), small: uses(100 * MI, 0) },
      ['small', 'large'],
    ],
    [
      'within the request the one nearest to it goes first',
      { far: uses(10 * MI, 500 * MI), near: uses(499 * MI, 500 * MI) },
      ['near', 'far'],
    ],
    [
      'exactly its request is within it',
      { exact: uses(100 * MI, 100 * MI, 0), over: uses(100 * MI + 1, 100 * MI, 1000) },
      ['over', 'exact'],
    ],
    [
      'a request is compared in nano-bytes',
      {
        under: { workingSetBytes: 100, memoryRequestNano: 100_000_000_001n, priority: -1 },
        over: { workingSetBytes: 100, memoryRequestNano: 99_999_999_999n, priority: 1 },
      },
      ['over', 'under'],
    ],
    ['all alike: by name', { web: {}, cache: {}, batch: {} }, ['batch', 'cache', 'web']],
    [
      'a protected pod has its rank too',
      { guarded: { ...uses(900 * MI, 0), protectedBecause: 'evictd itself' }, leak: uses(MI, 0) },
      ['guarded', 'leak'],
    ],
    ['nobody', {}, []],
  ])('%s', (_, pods, expected) => {
    const list = Object.entries(pods).map(([name, fields]) => pod(name, fields));
    expect(names(list)).toStrictEqual(expected);
    expect(names(list.toReversed())).toStrictEqual(expected);
  });

  it('leaves the list that it was given alone', () => {
    const list = [pod('b'), pod('a')];
    rankPods('memory.available', list);
    expect(list.map(({ name }) => name)).toStrictEqual(['b', 'a']);
  });
});

/** Few values each, so that ties are common. */
const anyPod = fc
  .record({
    name: fc.constantFrom('a', 'b', 'ä', ''),
    id: fc.constantFrom('1', '2', '3'),
    priority: fc.constantFrom(-2_147_483_648, 0, 1000, 2_000_001_000),
    memoryRequestNano: fc.constantFrom(0n, 1n, nano(100)),
    workingSetBytes: fc.constantFrom(undefined, 0, 1, 100, 101, Number.MAX_SAFE_INTEGER),
  })
  .map(({ name, ...fields }) => pod(name, fields));

describe('the order of pods', () => {
  const order = orderedBy(byExceedingRequest, byPriority, byUsageOverRequest, byName);

  it('is antisymmetric, and only a pod itself is its equal', () => {
    fc.assert(
      fc.property(anyPod, anyPod, (a, b) => {
        expect(Math.sign(order(a, b)) + Math.sign(order(b, a))).toBe(0);
        expect(order(a, a)).toBe(0);
        if (a.name !== b.name || a.id !== b.id) expect(order(a, b)).not.toBe(0);
      }),
    );
  });

  it('is transitive', () => {
    fc.assert(
      fc.property(anyPod, anyPod, anyPod, (a, b, c) => {
        if (order(a, b) < 0 && order(b, c) < 0) expect(order(a, c)).toBeLessThan(0);
      }),
      { numRuns: 2000 },
    );
  });

  it('does not depend on the order in which pods are listed', () => {
    const some = fc.uniqueArray(anyPod, { selector: ({ id, name }) => `${id} ${name}` });
    fc.assert(
      fc.property(
        some.chain((pods) =>
          fc.tuple(fc.constant(pods), fc.shuffledSubarray(pods, { minLength: pods.length })),
        ),
        ([pods, shuffled]) => {
          expect(rankPods('memory.available', shuffled)).toStrictEqual(
            rankPods('memory.available', pods),
          );
        },
      ),
    );
  });
});

describe('orderedBy', () => {
  it('of nothing tells nobody apart', () => {
    expect(orderedBy()(pod('a'), pod('b'))).toBe(0);
  });

  it('asks the next comparator only when the ones before see no difference', () => {
    const never = () => {
      throw new Error('asked');
    };
    expect(orderedBy(byName, never)(pod('a'), pod('b'))).toBeLessThan(0);
    expect(() => orderedBy(byName, never)(pod('a'), pod('a'))).toThrow('asked');
  });
});

describe('byUsageOverRequest', () => {
  it('tells nothing of a pod whose usage is unknown', () => {
    const unknown = pod('a', { workingSetBytes: undefined });
    expect(byUsageOverRequest(unknown, pod('b'))).toBe(0);
    expect(byUsageOverRequest(pod('b'), unknown)).toBe(0);
  });
});

describe('byName', () => {
  it('tells a pod from one made again under its name', () => {
    const [first, again] = [pod('web', { id: '1' }), pod('web', { id: '2' })];
    expect(byName(first, again)).toBeLessThan(0);
    expect(byName(again, first)).toBeGreaterThan(0);
  });
});

describe('compareText', () => {
  it.each([
    ['a', 'b', -1],
    ['b', 'a', 1],
    ['a', 'a', 0],
    // By code unit: no locale moves a capital or an umlaut.
    ['B', 'a', -1],
    ['z', 'ä', -1],
    ['pod-10', 'pod-9', -1],
    ['', 'a', -1],
  ])('%j and %j give %d', (left, right, expected) => {
    expect(compareText(left, right)).toBe(expected);
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FilesystemLayout } from '../../src/core/layout.ts';
import type { DiskPart, PodObservation } from '../../src/core/pod.ts';
import type { Policy } from '../../src/core/policy.ts';
import {
  byCut,
  byName,
  byPriority,
  byStanding,
  byUsage,
  countsImages,
  freesSomething,
  isEvictedFor,
  orderedBy,
  podComparator,
  type Ranked,
  type Ranking,
  rankPods,
  rankWithReasons,
} from '../../src/core/rank.ts';
import { RULE_SETS } from '../../src/core/rules.ts';
import { type FilesystemName, SIGNAL_NAMES, type Signal } from '../../src/core/signal.ts';
import { GI, MI, pod, policy } from '../support/builders.ts';

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

const KUBELET: Ranking = { layout: 'single', rules: RULE_SETS.kubelet };
const EVICTD: Ranking = { layout: 'single', rules: RULE_SETS.evictd };

/** What a pod uses of each part of the disk; what is left out is none. */
const onDisk = (
  parts: Partial<Record<DiskPart, readonly [bytes: number, inodes: number]>>,
): Pick<PodObservation, 'disk'> => {
  const of = (part: DiskPart) => {
    const [bytes, inodes] = parts[part] ?? [0, 0];
    return { bytes, inodes };
  };
  return { disk: { root: of('root'), logs: of('logs'), localVolumes: of('localVolumes') } };
};

describe('inodes that nobody counts', () => {
  it('are an unknown use', () => {
    const uncounted = pod('uncounted', onDisk({ root: [900 * MI, 0] }));
    const disk = uncounted.disk && {
      ...uncounted.disk,
      logs: { bytes: 0, inodes: undefined },
    };
    const pods = [{ ...uncounted, disk }, pod('one', onDisk({ root: [MI, 1] }))];
    const [first, second] = rankWithReasons('nodefs.inodesFree', pods, EVICTD);
    expect([first?.pod.name, second?.pod.name]).toStrictEqual(['one', 'uncounted']);
    expect([second?.standing, second?.usageNano]).toStrictEqual(['unknown', undefined]);
    expect(rankPods('nodefs.available', pods, EVICTD)[0]?.name).toBe('uncounted');
  });
});

describe('isEvictedFor', () => {
  const DISK_SIGNALS = SIGNAL_NAMES.filter((signal) => /fs\./.test(signal));
  const OTHERS = SIGNAL_NAMES.filter((signal) => !DISK_SIGNALS.includes(signal));

  it.each(DISK_SIGNALS)('%s: where it is known what pods use of the disks', (signal) => {
    expect(isEvictedFor(signal, policy({ ranksDisk: true }))).toBe(true);
    expect(isEvictedFor(signal, policy({ ranksDisk: false }))).toBe(false);
  });

  it.each(OTHERS)('%s: always', (signal) => {
    expect(isEvictedFor(signal, policy({ ranksDisk: true }))).toBe(true);
    expect(isEvictedFor(signal, policy({ ranksDisk: false }))).toBe(true);
  });
});

describe('rankPods for disk', () => {
  /** The parts can be told from their sum. */
  const one = pod('one', onDisk({ root: [1, 10], logs: [2, 20], localVolumes: [4, 40] }));

  it.each<[FilesystemLayout, FilesystemName, number]>([
    ['single', 'nodefs', 7],
    ['single', 'imagefs', 7],
    ['single', 'containerfs', 7],
    ['dedicatedImagefs', 'nodefs', 6],
    ['dedicatedImagefs', 'imagefs', 1],
    ['dedicatedImagefs', 'containerfs', 1],
    ['splitImagefs', 'nodefs', 7],
    ['splitImagefs', 'imagefs', 0],
    ['splitImagefs', 'containerfs', 7],
    ['separateContainerfs', 'nodefs', 6],
    ['separateContainerfs', 'imagefs', 0],
    ['separateContainerfs', 'containerfs', 1],
  ])('with %s counts what lies on %s', (layout, name, expected) => {
    for (const rules of [RULE_SETS.kubelet, RULE_SETS.evictd]) {
      const used = (signal: Signal) =>
        rankWithReasons(signal, [one], { layout, rules })[0]?.usageNano;
      // By evictd's rules there are images to count, of which nothing is known here.
      const isUnknown = expected === 0 && rules === RULE_SETS.evictd;
      expect(used(`${name}.available`)).toBe(isUnknown ? undefined : nano(expected));
      expect(used(`${name}.inodesFree`)).toBe(isUnknown ? undefined : nano(10 * expected));
    }
  });

  const disk = (bytes: number, inodes: number, requestBytes: number, priority = 0) => ({
    ...onDisk({ root: [bytes, inodes] }),
    ephemeralStorageRequestNano: nano(requestBytes),
    priority,
  });

  it.each<[string, Signal, Ranking, Record<string, Partial<PodObservation>>, readonly string[]]>([
    [
      'over the request before within it, whatever the priority',
      'nodefs.available',
      EVICTD,
      { within: disk(5 * GI, 1, 6 * GI, -1), over: disk(2, 1, 1, 1000) },
      ['over', 'within'],
    ],
    [
      'exactly the request is within it',
      'nodefs.available',
      KUBELET,
      { exact: disk(100, 1, 100, -1), over: disk(101, 1, 100, 1000) },
      ['over', 'exact'],
    ],
    [
      'of equal priority the one most over its request, not the one that uses most',
      'imagefs.available',
      EVICTD,
      { large: disk(9 * GI, 1, 8 * GI), small: disk(2 * GI, 1, 0) },
      ['small', 'large'],
    ],
    [
      'without a request all are over it: lowest priority, most bytes, name',
      'containerfs.available',
      KUBELET,
      {
        b: onDisk({ logs: [5, 1] }),
        a: onDisk({ localVolumes: [5, 1] }),
        most: onDisk({ root: [6, 1] }),
        low: { ...onDisk({ root: [1, 1] }), priority: -1 },
      },
      ['low', 'most', 'a', 'b'],
    ],
    [
      'inodes alone, whatever the bytes and their request',
      'nodefs.inodesFree',
      EVICTD,
      { bytes: disk(9 * GI, 10, 0), files: disk(1, 11, GI) },
      ['files', 'bytes'],
    ],
    [
      'to the kubelet inodes less the bytes that are requested',
      'nodefs.inodesFree',
      KUBELET,
      { bytes: disk(9 * GI, 10, 0), files: disk(1, 11, GI) },
      ['bytes', 'files'],
    ],
    [
      'who has no inode at all exceeds nothing',
      'imagefs.inodesFree',
      KUBELET,
      { none: disk(0, 0, 0, -1), one: disk(0, 1, 0, 1000) },
      ['one', 'none'],
    ],
    [
      'unknown after the known offender (k/k#123591), before who is within',
      'nodefs.available',
      EVICTD,
      {
        calm: disk(1, 1, 2, -5),
        quiet: { ephemeralStorageRequestNano: nano(10 * GI), priority: -10 },
        big: disk(500 * MI, 1, 0, 5),
      },
      ['big', 'quiet', 'calm'],
    ],
    [
      'unknown before all to the kubelet',
      'nodefs.inodesFree',
      KUBELET,
      { big: disk(500 * MI, 100, 0, -1000), quiet: { priority: 1000 } },
      ['quiet', 'big'],
    ],
    [
      'nothing of pods lies there: all are alike',
      'imagefs.available',
      { ...KUBELET, layout: 'splitImagefs' },
      { b: disk(9 * GI, 1, 0), a: disk(1, 1, 0), low: disk(0, 0, 0, -1) },
      ['low', 'a', 'b'],
    ],
  ])('%s', (_, signal, ranking, pods, expected) => {
    const list = Object.entries(pods).map(([name, fields]) => pod(name, fields));
    const ranked = (some: readonly PodObservation[]) =>
      rankPods(signal, some, ranking).map(({ name }) => name);
    expect(ranked(list)).toStrictEqual(expected);
    expect(ranked(list.toReversed())).toStrictEqual(expected);
  });
});

describe('rankPods where what a pod uses could not be added up to the end', () => {
  const NONE = { bytes: 0, inodes: 0 };
  const CUT = { isLeast: true, isCut: true } as const;
  const using = (name: string, root: object, fields: Partial<PodObservation> = {}) =>
    pod(name, { disk: { root: { ...NONE, ...root }, logs: NONE, localVolumes: NONE }, ...fields });
  const requests = { ephemeralStorageRequestNano: nano(10 * MI) };
  const pods = [
    using('large', { bytes: 90 * MI, inodes: 90 }),
    using('small', { bytes: 11 * MI, inodes: 11 }),
    using('evil', { bytes: MI, inodes: 2, ...CUT }),
    using('worse', { bytes: 2 * MI, inodes: 1, ...CUT }),
    using('important', { bytes: MI, inodes: 1, ...CUT }, { priority: 1 }),
    using('asked', { bytes: MI, inodes: 0, ...CUT }, requests),
    using('elsewhere', { bytes: 10 * MI, inodes: 0 }, requests),
    pod('unknown'),
  ];
  const ranked = (signal: Signal, rules: Ranking['rules']) =>
    rankWithReasons(signal, pods, { layout: 'dedicatedImagefs', rules }).map(
      ({ pod: { name }, standing }) => `${name} ${standing}`,
    );

  it('it goes before its equals, above its request as far as that is known', () => {
    expect(ranked('imagefs.available', RULE_SETS.evictd)).toStrictEqual([
      'worse exceeds',
      'evil exceeds',
      'large exceeds',
      'small exceeds',
      'important exceeds',
      'asked unknown',
      'unknown unknown',
      'elsewhere within',
    ]);
    expect(ranked('imagefs.inodesFree', RULE_SETS.evictd)).toStrictEqual([
      'evil exceeds',
      'worse exceeds',
      'large exceeds',
      'small exceeds',
      'important exceeds',
      'asked unknown',
      'unknown unknown',
      'elsewhere within',
    ]);
  });

  it('where it lies on another filesystem that makes no difference', () => {
    const [first] = rankWithReasons('nodefs.available', pods, OWN_DEDICATED);
    expect(first).toMatchObject({ standing: 'unknown', isCut: false });
  });

  it('to the kubelet it is what was found', () => {
    expect(ranked('imagefs.available', RULE_SETS.kubelet)).toStrictEqual([
      'unknown unknown',
      'large exceeds',
      'small exceeds',
      'worse exceeds',
      'evil exceeds',
      'important exceeds',
      'elsewhere within',
      'asked within',
    ]);
  });

  it('a figure just at the request may be more', () => {
    const near = using('near', { bytes: 10 * MI, ...CUT }, requests);
    const [only] = rankWithReasons('imagefs.available', [near], OWN_DEDICATED);
    expect(only).toMatchObject({ standing: 'unknown', isCut: true });
  });
});

const OWN_DEDICATED: Ranking = { layout: 'dedicatedImagefs', rules: RULE_SETS.evictd };

describe('byCut', () => {
  it('has what was cut first, and all else as equals', () => {
    const one = (isCut?: boolean) => ({ isCut }) as Ranked;
    expect(byCut(one(true), one(false))).toBeLessThan(0);
    expect(byCut(one(), one(true))).toBeGreaterThan(0);
    expect(byCut(one(), one(false))).toBe(0);
    expect(byCut(one(true), one(true))).toBe(0);
  });
});

describe('C26: rankPods for a filesystem of images alone', () => {
  const own = (exclusiveImageBytes: number | undefined, priority = 0) => ({
    ...onDisk({ root: [9 * GI, 9] }),
    ephemeralStorageRequestNano: nano(100 * GI),
    exclusiveImageBytes,
    priority,
  });
  const list = [
    pod('none', own(0, -10)),
    pod('unknown', own(undefined, -10)),
    pod('precious', own(50 * GI, 5)),
    pod('small', own(GI)),
    pod('large', own(5 * GI)),
  ];
  const ranked = (signal: Signal, ranking: Ranking) =>
    rankPods(signal, list, ranking).map(({ name }) => name);
  const BY_IMAGES = ['large', 'small', 'precious', 'unknown', 'none'];
  const BY_PRIORITY = ['none', 'unknown', 'large', 'small', 'precious'];

  it.each(['imagefs.available', 'imagefs.inodesFree'] as const)('%s', (signal) => {
    for (const layout of ['splitImagefs', 'separateContainerfs'] as const) {
      expect(ranked(signal, { ...EVICTD, layout })).toStrictEqual(BY_IMAGES);
      expect(ranked(signal, { ...KUBELET, layout })).toStrictEqual(BY_PRIORITY);
    }
  });

  it.each<[FilesystemLayout, Signal, boolean]>([
    ['splitImagefs', 'imagefs.available', true],
    ['splitImagefs', 'imagefs.inodesFree', true],
    ['splitImagefs', 'nodefs.available', false],
    ['splitImagefs', 'containerfs.available', false],
    ['separateContainerfs', 'imagefs.available', true],
    ['dedicatedImagefs', 'imagefs.available', false],
    ['single', 'imagefs.available', false],
    ['splitImagefs', 'memory.available', false],
    ['splitImagefs', 'pid.available', false],
  ])('with %s images count for %s: %s; never to the kubelet', (layout, signal, expected) => {
    expect(countsImages(signal, { ...EVICTD, layout })).toBe(expected);
    expect(countsImages(signal, { ...KUBELET, layout })).toBe(false);
  });

  it('goes for it only where images may be removed afterwards', () => {
    const by = (overrides: Partial<Policy>) =>
      isEvictedFor(
        'imagefs.available',
        policy({ ranksDisk: true, layout: 'splitImagefs', reclaims: ['images'], ...overrides }),
      );
    expect(by({})).toBe(true);
    expect(by({ reclaims: ['containers'] })).toBe(false);
    expect(by({ ranksDisk: false })).toBe(false);
    expect(by({ reclaims: [], rules: RULE_SETS.kubelet })).toBe(true);
    expect(by({ reclaims: [], layout: 'dedicatedImagefs' })).toBe(true);
  });

  it.each<[Signal, number | undefined, number | undefined, boolean, boolean]>([
    // signal, PIDs, bytes of images: by evictd's rules, by the kubelet's
    ['imagefs.available', 1, 0, false, true],
    ['imagefs.available', 0, 1, true, true],
    ['imagefs.available', 0, undefined, true, true],
    ['nodefs.available', 0, 0, true, true],
    ['memory.available', 0, 0, true, true],
    ['pid.available', 0, 1, false, true],
    ['pid.available', 1, 0, true, true],
    ['pid.available', undefined, 0, true, true],
  ])(
    '%s: the end of %s tasks with %s bytes frees something: %s',
    (signal, pids, bytes, own, kubelet) => {
      const one = { pids, exclusiveImageBytes: bytes };
      expect(freesSomething(one, signal, { ...EVICTD, layout: 'splitImagefs' })).toBe(own);
      expect(freesSomething(one, signal, { ...KUBELET, layout: 'splitImagefs' })).toBe(kubelet);
    },
  );

  const NONE = { bytes: 0, inodes: 0 };
  it.each<[Signal, PodObservation['disk'], boolean]>([
    ['imagefs.available', { root: { bytes: 1, inodes: 0 }, logs: NONE, localVolumes: NONE }, true],
    ['nodefs.available', { root: { bytes: 9, inodes: 9 }, logs: NONE, localVolumes: NONE }, false],
    ['nodefs.inodesFree', { root: { bytes: 9, inodes: 9 }, logs: NONE, localVolumes: NONE }, false],
    ['nodefs.available', { root: NONE, logs: { bytes: 0, inodes: 1 }, localVolumes: NONE }, false],
    ['nodefs.inodesFree', { root: NONE, logs: { bytes: 0, inodes: 1 }, localVolumes: NONE }, true],
    [
      'nodefs.inodesFree',
      { root: NONE, logs: NONE, localVolumes: { ...NONE, inodes: undefined } },
      true,
    ],
    [
      'nodefs.available',
      { root: NONE, logs: NONE, localVolumes: { ...NONE, isLeast: true } },
      true,
    ],
    [
      'imagefs.available',
      { root: NONE, logs: NONE, localVolumes: { ...NONE, isLeast: true } },
      false,
    ],
    ['nodefs.available', undefined, true],
    ['memory.available', { root: NONE, logs: NONE, localVolumes: NONE }, true],
  ])('%s: the end of who uses %j of the disks frees something: %s', (signal, disk, own) => {
    const one = { pids: 1, exclusiveImageBytes: 0, disk };
    expect(freesSomething(one, signal, { ...EVICTD, layout: 'dedicatedImagefs' })).toBe(own);
    expect(freesSomething(one, signal, { ...KUBELET, layout: 'dedicatedImagefs' })).toBe(true);
  });
});

describe('rankPods by the kubelet’s rules', () => {
  const ranked = (signal: Signal, pods: Record<string, Partial<PodObservation>>) =>
    rankPods(
      signal,
      Object.entries(pods).map(([name, fields]) => pod(name, fields)),
      KUBELET,
    ).map(({ name }) => name);

  it('puts a pod without figures before all others', () => {
    expect(
      ranked('memory.available', {
        big: uses(500 * MI, 0, -10),
        quiet: uses(undefined, 10 * GI, 1000),
        calm: uses(1, 2, -20),
      }),
    ).toStrictEqual(['quiet', 'big', 'calm']);
  });

  it('of PIDs looks at the priority first, then at who could not be counted', () => {
    expect(
      ranked('pid.available', {
        bomb: { pids: 450 },
        unknown: { pids: undefined },
        low: { pids: 1, priority: -1 },
      }),
    ).toStrictEqual(['low', 'unknown', 'bomb']);
  });
});

describe('rankWithReasons', () => {
  it('tells of each why it stands where it does', () => {
    const pods = [
      pod('calm', uses(50, 100)),
      pod('quiet', uses(undefined, 0)),
      pod('big', uses(300, 100)),
    ];
    expect(
      rankWithReasons('memory.available', pods).map(({ pod: { name }, standing, usageNano }) => [
        name,
        standing,
        usageNano,
      ]),
    ).toStrictEqual([
      ['big', 'exceeds', nano(200)],
      ['quiet', 'unknown', undefined],
      ['calm', 'within', nano(-50)],
    ]);
  });

  it('nobody exceeds a request of PIDs', () => {
    const pods = [pod('bomb', { pids: 450 }), pod('unknown')];
    expect(
      rankWithReasons('pid.available', pods).map(({ standing, usageNano }) => [
        standing,
        usageNano,
      ]),
    ).toStrictEqual([
      ['within', nano(450)],
      ['within', undefined],
    ]);
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

describe.each(['kubelet', 'evictd'] as const)('the order of pods by the rules of %s', (rules) => {
  const ranking: Ranking = { layout: 'single', rules: RULE_SETS[rules] };
  const order = podComparator('memory.available', ranking);

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
          expect(rankPods('memory.available', shuffled, ranking)).toStrictEqual(
            rankPods('memory.available', pods, ranking),
          );
        },
      ),
    );
  });
});

/** A pod with its place for memory. */
const placed = (name: string, fields: Partial<PodObservation> = {}): Ranked => {
  const [ranked] = rankWithReasons('memory.available', [pod(name, fields)]);
  if (ranked === undefined) throw new Error('one pod has one place');
  return ranked;
};

describe('orderedBy', () => {
  it('of nothing tells nobody apart', () => {
    expect(orderedBy()(placed('a'), placed('b'))).toBe(0);
  });

  it('asks the next comparator only when the ones before see no difference', () => {
    const never = () => {
      throw new Error('asked');
    };
    expect(orderedBy(byName, never)(placed('a'), placed('b'))).toBeLessThan(0);
    expect(() => orderedBy(byName, never)(placed('a'), placed('a'))).toThrow('asked');
  });
});

describe('byPriority', () => {
  it('the lowest first', () => {
    const [low, high] = [placed('z', { priority: -1 }), placed('a', { priority: 1000 })];
    expect(byPriority(low, high)).toBeLessThan(0);
    expect(byPriority(high, low)).toBeGreaterThan(0);
    expect(byPriority(low, low)).toBe(0);
  });
});

describe('byStanding', () => {
  const [over, unknown, within] = [
    placed('a', uses(2, 1)),
    placed('b', uses(undefined, 1)),
    placed('c', uses(1, 1)),
  ];

  it.each([
    ['evictd', [over, unknown, within]],
    ['kubelet', [unknown, over, within]],
  ] as const)('%s: in this order, and nothing else counts', (rules, expected) => {
    const order = byStanding(RULE_SETS[rules]);
    expect([within, unknown, over].sort(order)).toStrictEqual(expected);
    expect(order(over, placed('other', uses(900, 0, -5)))).toBe(0);
  });
});

describe('byUsage', () => {
  const [more, less, unknown] = [
    placed('a', uses(200, 100)),
    placed('b', uses(900, 850)),
    placed('c', uses(undefined, 0)),
  ];

  it.each([
    ['evictd', [more, less, unknown]],
    ['kubelet', [unknown, more, less]],
  ] as const)('%s: most over the request first, and where the unknown stand', (rules, expected) => {
    const order = byUsage(RULE_SETS[rules]);
    expect([less, unknown, more].sort(order)).toStrictEqual(expected);
    expect([unknown, more, less].sort(order)).toStrictEqual(expected);
  });

  it('tells nothing of two that are unknown', () => {
    const other = placed('other', uses(undefined, 5));
    for (const rules of [RULE_SETS.kubelet, RULE_SETS.evictd]) {
      expect(byUsage(rules)(unknown, other)).toBe(0);
    }
  });
});

describe('byName', () => {
  it('tells a pod from one made again under its name', () => {
    const [first, again] = [placed('web', { id: '1' }), placed('web', { id: '2' })];
    expect(byName(first, again)).toBeLessThan(0);
    expect(byName(again, first)).toBeGreaterThan(0);
  });
});

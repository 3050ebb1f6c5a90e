/**
 * Faults that users reported of other eviction daemons, as scenarios with the outcome that is right, by
 * both rule sets where they differ. C numbers are those of the list of cases; sources are repositories and
 * numbers (k/k is kubernetes/kubernetes).
 */
import { describe, expect, it } from 'vitest';
import { settingsFromFlags } from '../../src/config/check.ts';
import type { ImageEntry, ScenarioExtension } from '../../src/simulation/scenario.ts';
import { GI, MI } from '../support/builders.ts';
import {
  conditions,
  podCase,
  type RoundCase,
  run,
  scenarioOf,
  summaryCase,
  victims,
} from '../support/scenarios.ts';

const BOTH = ['kubelet', 'evictd'] as const;
const disk = (availableBytes: number, capacityBytes: number) => ({ availableBytes, capacityBytes });
const memory = (available: number, capacity = 8 * GI) => ({ available, capacity });
const stamp = (ms: number): string => new Date(Date.UTC(2026, 0, 1) + ms).toISOString();

describe('C01 (k/k#99094): minimum reclaim after a collection', () => {
  const config = {
    evictionSoft: { 'imagefs.available': '10Gi' },
    evictionSoftGracePeriod: { 'imagefs.available': '30s' },
    evictionMinimumReclaim: { 'imagefs.available': '5Gi' },
    evictionMaxPodGracePeriod: 60,
    evictionPressureTransitionPeriod: '5m',
  };
  const use = { a: { rootfsBytes: 4 * GI } };
  const at = (seconds: number, available: number): RoundCase => ({
    at: seconds,
    imagefs: disk(available, 100 * GI),
    use,
  });
  const after = summaryCase({ imagefs: disk(12 * GI, 100 * GI), use });
  const scenario = scenarioOf(
    'c01',
    config,
    [podCase('a', { grace: 45 })],
    [
      at(0, 9 * GI),
      { ...at(30, 9 * GI), summaryAfterReclaim: after },
      at(40, 16 * GI),
      at(329, 16 * GI),
      at(331, 16 * GI),
    ],
    { dedicatedImageFs: true },
  );

  it.each(BOTH)('collects, then evicts with the shorter grace; %s', (rules) => {
    const result = run(scenario, rules);
    expect(victims(result)).toStrictEqual([[], ['a'], [], [], []]);
    expect(result.ticks[1]?.reclaim).toStrictEqual(['containers', 'images']);
    expect(result.ticks[1]?.evicted[0]?.gracePeriodSeconds).toBe(45);
    // Met last at 30 s.
    expect(conditions(result)).toStrictEqual([
      'DiskPressure',
      'DiskPressure',
      'DiskPressure',
      'DiskPressure',
      '',
    ]);
  });
});

describe('C02 (k/k#56152): minimum reclaim counts to threshold and reclaim', () => {
  it.each(BOTH)('goes on until 1224Mi are there: five of ten pods of 50Mi; %s', (rules) => {
    const names = Array.from({ length: 10 }, (_, n) => `p${n}`);
    const use = Object.fromEntries(names.map((name) => [name, { memoryBytes: 50 * MI }]));
    const rounds = Array.from({ length: 7 }, (_, n) => ({
      at: n,
      memory: memory((1000 + 50 * Math.min(n, 5)) * MI),
      use,
    }));
    const config = {
      evictionHard: { 'memory.available': '1Gi' },
      evictionMinimumReclaim: { 'memory.available': '200Mi' },
    };
    const result = run(
      scenarioOf(
        'c02',
        config,
        names.map((name) => podCase(name)),
        rounds,
      ),
      rules,
    );
    expect(victims(result)).toStrictEqual([['p0'], ['p1'], ['p2'], ['p3'], ['p4'], [], []]);
  });

  it.each(BOTH)('ends at 4.5Gi for 4Gi and 500Mi of nodefs, to the byte; %s', (rules) => {
    const level = 4 * GI + 500 * MI;
    const config = {
      evictionHard: { 'nodefs.available': '4Gi' },
      evictionMinimumReclaim: { 'nodefs.available': '500Mi' },
    };
    const at = (seconds: number, available: number): RoundCase => ({
      at: seconds,
      nodefs: disk(available, 100 * GI),
      use: { a: { logsBytes: GI }, b: { logsBytes: GI }, c: { logsBytes: GI } },
    });
    const rounds = [at(0, 4 * GI - 1), at(20, level - 1), at(40, level), at(60, level - 1)];
    const pods = ['a', 'b', 'c'].map((name) => podCase(name));
    const result = run(scenarioOf('c02b', config, pods, rounds), rules);
    expect(victims(result)).toStrictEqual([['a'], ['b'], [], []]);
  });
});

describe('C04 (k/k#115516): flapping', () => {
  const cycle = (n: number): readonly RoundCase[] => [
    { at: n * 330, nodefs: disk(9.9 * GI, 100 * GI) },
    { at: n * 330 + 10, nodefs: disk(10.1 * GI, 100 * GI) },
    { at: n * 330 + 299, nodefs: disk(10.1 * GI, 100 * GI) },
    { at: n * 330 + 300, nodefs: disk(10.1 * GI, 100 * GI) },
    { at: n * 330 + 320, nodefs: disk(10.1 * GI, 100 * GI) },
  ];
  const rounds = [0, 1, 2, 3].flatMap(cycle);
  const config = {
    evictionHard: { 'nodefs.available': '10%' },
    evictionPressureTransitionPeriod: '5m',
  };

  it.each(BOTH)('without minimum reclaim flips in each cycle; %s', (rules) => {
    const held = conditions(run(scenarioOf('c04', config, [], rounds), rules));
    const oneCycle = ['DiskPressure', 'DiskPressure', 'DiskPressure', '', ''];
    expect(held).toStrictEqual([...oneCycle, ...oneCycle, ...oneCycle, ...oneCycle]);
  });

  it('is told after the third time, once; by evictd’s rules', () => {
    const told = (rules: (typeof BOTH)[number]): readonly unknown[] =>
      run(scenarioOf('c04', config, [], rounds), rules).ticks.flatMap(
        ({ at, evictd }) => evictd?.flapping?.map((flap) => ({ at, ...flap })) ?? [],
      );
    expect(told('evictd')).toStrictEqual([
      { at: '660s', condition: 'DiskPressure', kind: 'began', count: 3, since: '0s' },
    ]);
    expect(told('kubelet')).toStrictEqual([]);
  });

  it.each(BOTH)('with a minimum reclaim of 2% stays; %s', (rules) => {
    const damped = { ...config, evictionMinimumReclaim: { 'nodefs.available': '2%' } };
    const held = conditions(run(scenarioOf('c04b', damped, [], rounds), rules));
    expect(new Set(held)).toStrictEqual(new Set(['DiskPressure']));
  });
});

describe('C06: a transition period of 0s', () => {
  const config = {
    evictionHard: { 'memory.available': '1Gi' },
    evictionPressureTransitionPeriod: '0s',
  };
  const rounds = [
    { at: 0, memory: memory(GI / 2) },
    { at: 1, memory: memory(2 * GI) },
    { at: 299, memory: memory(2 * GI) },
    { at: 300, memory: memory(2 * GI) },
  ];

  it('means 5m to the kubelet, and says so', () => {
    const result = run(scenarioOf('c06', config, [], rounds), 'kubelet');
    expect(conditions(result)).toStrictEqual([
      'MemoryPressure',
      'MemoryPressure',
      'MemoryPressure',
      '',
    ]);
    expect(result.evictd?.warnings.join()).toContain('means 5m0s to the kubelet');
  });

  it('means 0 by evictd’s rules', () => {
    const result = run(scenarioOf('c06', config, [], rounds), 'evictd');
    expect(conditions(result)).toStrictEqual(['MemoryPressure', '', '', '']);
  });
});

describe('C07: a soft threshold with a grace of 0s', () => {
  it.each([
    ['kubelet', 1],
    ['evictd', 0],
  ] as const)('is a hard one, with a warning; %s', (rules, gracePeriodSeconds) => {
    const config = {
      evictionSoft: { 'memory.available': '1Gi' },
      evictionSoftGracePeriod: { 'memory.available': '0s' },
      evictionMaxPodGracePeriod: 60,
    };
    const round = { at: 0, memory: memory(GI / 2), use: { a: { memoryBytes: GI } } };
    const result = run(scenarioOf('c07', config, [podCase('a', { grace: 30 })], [round]), rules);
    expect(victims(result)).toStrictEqual([['a']]);
    expect(result.ticks[0]?.evicted[0]?.gracePeriodSeconds).toBe(gracePeriodSeconds);
    expect(result.evictd?.warnings.join()).toContain('acts like a hard one');
  });
});

describe('C10 (k/k#121809): dropped defaults', () => {
  it('are named, and kept with --merge-default-eviction-settings', () => {
    const dropped = settingsFromFlags({
      '--eviction-hard': ['memory.available<200Mi'],
      '--compatibility': ['kubelet'],
    });
    expect(dropped.settings.policy.thresholds.map(({ signal }) => signal)).toStrictEqual([
      'memory.available',
    ]);
    for (const signal of [
      'nodefs.available',
      'nodefs.inodesFree',
      'imagefs.available',
      'imagefs.inodesFree',
    ]) {
      expect(dropped.warnings.join()).toContain(signal);
    }
    const kept = settingsFromFlags({
      '--eviction-hard': ['memory.available<200Mi'],
      '--merge-default-eviction-settings': ['true'],
      '--imagefs-path': ['/images'],
    });
    expect(kept.settings.policy.thresholds.map(({ signal }) => signal)).toStrictEqual([
      'memory.available',
      'nodefs.available',
      'nodefs.inodesFree',
      'imagefs.available',
      'imagefs.inodesFree',
    ]);
  });
});

describe('C11 (k/k#54130): the clock is set', () => {
  const at = (seconds: number, statsMs: number, available: number): RoundCase => ({
    at: seconds,
    memory: { ...memory(available), time: stamp(statsMs) },
    use: { a: { memoryBytes: GI }, b: { memoryBytes: GI } },
  });
  const config = { evictionHard: { 'memory.available': '1Gi' } };
  const pods = [podCase('a'), podCase('b')];
  const HOUR = 3_600_000;
  const back = scenarioOf('c11', config, pods, [
    at(100, 100_000, 4 * GI),
    at(110, 110_000, 4 * GI),
    at(120, 120_000 - HOUR, GI / 2),
    at(130, 130_000 - HOUR, GI / 2),
  ]);

  it('back an hour: the kubelet waits, evictd decides at the next sample and warns once', () => {
    expect(victims(run(back, 'kubelet'))).toStrictEqual([[], [], [], ['a']]);
    const result = run(back, 'evictd');
    expect(victims(result)).toStrictEqual([[], [], ['a'], ['b']]);
    const warnings = result.ticks.flatMap(({ events }) =>
      events.filter(({ reason }) => reason === 'ClockSetBack'),
    );
    expect(warnings).toHaveLength(1);
  });

  it.each(BOTH)('on a day: neither a grace nor a transition period elapses; %s', (rules) => {
    const DAY = 24 * HOUR;
    const soft = {
      evictionSoft: { 'memory.available': '1Gi' },
      evictionSoftGracePeriod: { 'memory.available': '60s' },
      evictionPressureTransitionPeriod: '5m',
    };
    const wallClockStep = { evictd: { wallClockStep: '24h' } };
    const on = scenarioOf('c11b', soft, pods, [
      at(0, 0, GI / 2),
      { ...at(30, 30_000 + DAY, GI / 2), ...wallClockStep },
      { ...at(40, 40_000 + DAY, 4 * GI), ...wallClockStep },
      { ...at(329, 329_000 + DAY, 4 * GI), ...wallClockStep },
    ]);
    const result = run(on, rules);
    expect(victims(result)).toStrictEqual([[], [], [], []]);
    expect(conditions(result)[3]).toBe('MemoryPressure');
  });
});

describe('C12 (k/k#114332): usage above the capacity', () => {
  const capacity = 32_879_017_984;
  const config = { evictionHard: { 'memory.available': '100Mi' } };
  const round = (at: number): RoundCase => ({
    at,
    memory: { available: -37_414_240_256, capacity },
    use: { a: { memoryBytes: GI }, b: { memoryBytes: GI } },
    evictd: { memAvailableBytes: 20 * GI },
  });
  const scenario = scenarioOf('c12', config, [podCase('a'), podCase('b')], [round(0), round(10)]);

  it('has the kubelet evict one pod after the other', () => {
    expect(victims(run(scenario, 'kubelet'))).toStrictEqual([['a'], ['b']]);
  });

  it('is refused by evictd, which takes what the kernel could free', () => {
    const result = run(scenario, 'evictd');
    expect(victims(result)).toStrictEqual([[], []]);
    expect(conditions(result)).toStrictEqual(['', '']);
    expect(result.ticks.map(({ evictd }) => evictd?.refused)).toStrictEqual([
      ['memory.available'],
      ['memory.available'],
    ]);
  });

  it('k/k#52386: without a second source nothing is known, and nothing is done', () => {
    const available = -2_097_758_044_639_028 * 1024;
    const huge = { at: 0, memory: { available, capacity }, use: { a: { memoryBytes: GI } } };
    expect(
      victims(run(scenarioOf('c12b', config, [podCase('a')], [huge]), 'evictd')),
    ).toStrictEqual([[]]);
  });
});

describe('C14 (k/k#43916): active page cache', () => {
  const round: RoundCase = {
    at: 0,
    memory: memory(2 * GI, 32 * GI),
    use: { a: { memoryBytes: 5 * GI } },
    evictd: { memAvailableBytes: 21 * GI },
  };
  const config = { evictionHard: { 'memory.available': '4Gi' } };
  const pods = [podCase('a')];

  it.each(BOTH)('workingset evicts as the peer does; %s', (rules) => {
    expect(victims(run(scenarioOf('c14', config, pods, [round]), rules))).toStrictEqual([['a']]);
  });

  it.each(BOTH)('memavailable does nothing; %s', (rules) => {
    const kernel = { ...config, memorySource: 'memavailable' };
    expect(victims(run(scenarioOf('c14b', kernel, pods, [round]), rules))).toStrictEqual([[]]);
  });
});

describe('C15 (k/k#123591): a pod without stats', () => {
  const config = { evictionHard: { 'nodefs.available': '1Gi' } };
  const big = podCase('big');
  const quiet = podCase('quiet', { priority: 1000, storageRequest: '10Gi' });
  const round = (use: NonNullable<RoundCase['use']>): RoundCase => ({
    at: 0,
    nodefs: disk(750 * MI, 100 * GI),
    use,
  });

  it.each([[[big, quiet]], [[quiet, big]]])('in either order', (pods) => {
    const scenario = scenarioOf('c15', config, pods, [round({ big: { rootfsBytes: 500 * MI } })]);
    expect(victims(run(scenario, 'kubelet'))).toStrictEqual([['quiet']]);
    expect(victims(run(scenario, 'evictd'))).toStrictEqual([['big']]);
  });

  it('and where nobody has stats: the lowest priority, with the reason', () => {
    const result = run(scenarioOf('c15b', config, [quiet, big], [round({})]), 'evictd');
    expect(victims(result)).toStrictEqual([['big']]);
    expect(result.ticks[0]?.evicted[0]?.message).toContain('usage of the pod is unknown');
  });
});

describe('C18: a volume without used bytes', () => {
  it.each(BOTH)('does not end the run, and its limit is not checked; %s', (rules) => {
    const pod = podCase('a', { volumes: [{ name: 'v', emptyDir: { sizeLimit: '1Mi' } }] });
    const round = { at: 0, nodefs: disk(GI, GI), use: { a: { volumes: [{ name: 'v' }] } } };
    const result = run(scenarioOf('c18', {}, [pod], [round]), rules);
    expect(result.error).toBeUndefined();
    expect(victims(result)).toStrictEqual([[]]);
  });
});

describe('C19 (k/k#41032): figures from before a collection', () => {
  const config = { evictionHard: { 'imagefs.available': '15%' } };
  const use = { a: { rootfsBytes: 4 * GI } };
  const figures = (percent: number, statsMs: number) => ({
    imagefs: { ...disk(percent * GI, 100 * GI), time: stamp(statsMs) },
    use,
  });
  const at = (seconds: number, percent: number, statsMs: number): RoundCase => ({
    at: seconds,
    ...figures(percent, statsMs),
    // The collection frees 40 %, and the cache goes on to say 14.
    summaryAfterReclaim: summaryCase(figures(percent, statsMs)),
  });
  const cached = [0, 10, 20, 30, 40, 50].map((seconds) => at(seconds, 14, 0));
  const story = (last: number) =>
    scenarioOf('c19', config, [podCase('a')], [...cached, at(60, last, 60_000)], {
      dedicatedImageFs: true,
    });

  it('have the kubelet evict a pod although enough is there', () => {
    expect(victims(run(story(40), 'kubelet'))).toStrictEqual([['a'], [], [], [], [], [], []]);
  });

  it('decide nothing by evictd’s rules, and nothing is collected again for them', () => {
    const result = run(story(40), 'evictd');
    expect(victims(result).flat()).toStrictEqual([]);
    expect(result.ticks.map(({ reclaim }) => reclaim.length)).toStrictEqual([2, 0, 0, 0, 0, 0, 0]);
  });

  it('decide nothing, but those that follow do: the collection was not enough', () => {
    expect(victims(run(story(14), 'evictd'))).toStrictEqual([[], [], [], [], [], [], ['a']]);
  });

  it.each([
    ['kubelet', ['a'], undefined],
    ['evictd', [], 2],
  ] as const)('space that is still coming back is waited for; %s', (rules, gone, readings) => {
    const round = {
      ...at(0, 14, 0),
      summaryAfterReclaim: summaryCase(figures(14.5, 1000)),
      evictd: {
        summariesSettling: [summaryCase(figures(20, 2000)), summaryCase(figures(40, 3000))],
      },
    };
    const settling = scenarioOf('c19b', config, [podCase('a')], [round], {
      dedicatedImageFs: true,
    });
    const result = run(settling, rules);
    expect(victims(result)).toStrictEqual([gone]);
    expect(result.ticks[0]?.evictd?.settlingReadings).toBe(readings);
  });
});

describe('C26: images on a filesystem of their own', () => {
  const config = { evictionHard: { 'imagefs.available': '15%' } };
  const names = ['idle', 'small', 'large', 'precious'] as const;
  const pods = names.map((name) =>
    podCase(name, { priority: { idle: -10, small: 0, large: 0, precious: 100 }[name] }),
  );
  const image = (id: string, gibibytes: number, ...usedBy: readonly string[]): ImageEntry => ({
    id,
    sizeBytes: gibibytes * GI,
    age: '1h',
    usedBy: usedBy.map((name) => `default/${name}`),
  });
  const IMAGES = [
    image('base', 50, 'idle', 'small'),
    image('of-small', 1, 'small'),
    image('of-large', 5, 'large'),
    image('of-precious', 20, 'precious'),
  ];
  const use = Object.fromEntries(names.map((name) => [name, { rootfsBytes: 9 * GI }]));
  const at = (
    seconds: number,
    available: number,
    after: number,
    images: readonly ImageEntry[] = IMAGES,
  ): RoundCase => ({
    at: seconds,
    imagefs: disk(available * GI, 100 * GI),
    use,
    summaryAfterReclaim: summaryCase({ imagefs: disk(after * GI, 100 * GI), use }),
    evictd: { images },
  });
  const split = (rounds: readonly RoundCase[], evictd: ScenarioExtension = {}) =>
    scenarioOf('c26', config, pods, rounds, { dedicatedImageFs: true, splitImageFs: true, evictd });
  const impossible = ({ ticks }: ReturnType<typeof run>) =>
    ticks.flatMap(({ events }) =>
      events.filter(({ reason }) => reason === 'EvictionImpossible').map(({ message }) => message),
    );

  it('has the kubelet go by priority alone, and free nothing', () => {
    const result = run(split([at(0, 10, 10)]), 'kubelet');
    expect(victims(result)).toStrictEqual([['idle']]);
    expect(result.ticks[0]?.reclaim).toStrictEqual(['images']);
  });

  it('has evictd take the largest that nobody else uses, and collect it before anybody else goes', () => {
    const result = run(split([at(0, 10, 10), at(1, 10, 15), at(2, 15, 15)]), 'evictd');
    expect(victims(result)).toStrictEqual([['large'], [], []]);
    expect(result.ticks.map(({ reclaim }) => reclaim)).toStrictEqual([['images'], ['images'], []]);
    expect(result.ticks.map(({ evictd }) => evictd?.images)).toStrictEqual([
      undefined,
      ['of-large'],
      undefined,
    ]);
    expect(result.ticks[0]?.evicted[0]?.message).toBe(
      'The node was low on resource: ephemeral-storage. Threshold quantity: 15Gi, available: 10Gi. ' +
        'The pod alone was using images of 5Gi.',
    );
  });

  it('has evictd go on with what is exclusive by then', () => {
    // With `small` gone the base is that of `idle` alone; the highest priority comes last.
    const rounds = [0, 1, 2, 3, 4].map((seconds) => at(seconds, 10, 10));
    const result = run(split(rounds), 'evictd');
    expect(victims(result)).toStrictEqual([['large'], ['small'], ['idle'], ['precious'], []]);
    expect(impossible(result)).toStrictEqual([
      'The node was low on resource: ephemeral-storage, and no pod may be evicted: ' +
        '0 pods, 0 protected, 0 passed over',
    ]);
  });

  it.each<[string, Partial<ImageEntry>]>([
    ['others use', { inUse: true }],
    ['are pinned', { pinned: true }],
    ['are fresh', { age: '1m59s' }],
  ])('says that no end would help where all images %s', (_, fields) => {
    const images = IMAGES.map((one) => ({ ...one, ...fields }));
    const round = at(0, 10, 10, images);
    const result = run(split([round, { ...round, at: 30 }]), 'evictd');
    expect(victims(result)).toStrictEqual([[], []]);
    expect(impossible(result)).toStrictEqual([
      'The node was low on resource: ephemeral-storage, and no pod may be evicted: ' +
        '4 pods, 0 protected, 0 passed over, 4 whose end would free nothing',
    ]);
    expect(victims(run(split([round]), 'kubelet'))).toStrictEqual([['idle']]);
  });

  it('has nobody go where no image may be removed', () => {
    const result = run(split([at(0, 10, 10)], { reclaims: false }), 'evictd');
    expect(victims(result)).toStrictEqual([[]]);
    expect(result.ticks[0]?.evictd?.why).toBe('noReclaim');
    expect(conditions(result)).toStrictEqual(['DiskPressure']);
  });

  it('has a pod of unknown images go after those that are known to have some', () => {
    const known = [image('of-precious', 1, 'precious')];
    const rounds = [at(0, 10, 10, known), at(1, 10, 10, [])];
    const result = run(split(rounds), 'evictd');
    expect(victims(result)).toStrictEqual([['precious'], ['idle']]);
    expect(result.ticks[1]?.evicted[0]?.message).toContain('is unknown.');
  });

  it.each(['kubelet', 'evictd'] as const)(
    'goes by writable layers where they lie there too; %s',
    (rules) => {
      const joined = scenarioOf('c26b', config, pods, [at(0, 10, 10)], { dedicatedImageFs: true });
      expect(victims(run(joined, rules))).toStrictEqual([['idle']]);
    },
  );
});

describe('C27 (k/k#78561): priority before usage', () => {
  it.each(BOTH)('over a request of 0 goes before within 1Gi; %s', (rules) => {
    const low = podCase('low', { memoryRequest: '1Gi', memoryLimit: '1Gi' });
    const hi = podCase('hi', { priority: 1000 });
    const round = {
      at: 0,
      memory: memory(100 * MI),
      use: { low: { memoryBytes: 900 * MI }, hi: { memoryBytes: 50 * MI } },
    };
    const config = { evictionHard: { 'memory.available': '600Mi' } };
    const result = run(scenarioOf('c27', config, [low, hi], [round]), rules);
    expect(victims(result)).toStrictEqual([['hi']]);
    expect(result.ticks[0]?.ranked?.at(-1)).toBe('default/low');
  });
});

describe('C28 (k/k#128604): a memory-backed emptyDir', () => {
  const m = podCase('m', { volumes: [{ name: 'shm', emptyDir: { medium: 'Memory' } }] });
  const d = podCase('d');
  const use = {
    m: { memoryBytes: 6 * GI, volumes: [{ name: 'shm', usedBytes: 5 * GI }] },
    d: { memoryBytes: 5.5 * GI, rootfsBytes: GI },
  };

  it.each(BOTH)('is no disk use; %s', (rules) => {
    const config = { evictionHard: { 'nodefs.available': '10%' } };
    const round = { at: 0, nodefs: disk(5 * GI, 100 * GI), use };
    expect(victims(run(scenarioOf('c28', config, [m, d], [round]), rules))).toStrictEqual([['d']]);
  });

  it.each(BOTH)('is in its memory once; %s', (rules) => {
    const config = { evictionHard: { 'memory.available': '1Gi' } };
    const more = { ...use, d: { memoryBytes: 6 * GI + 1 } };
    const round = { at: 0, memory: memory(GI / 2), use: more };
    expect(victims(run(scenarioOf('c28b', config, [m, d], [round]), rules))).toStrictEqual([['d']]);
  });
});

describe('C29 (k/k#99280): a container’s limit with a dedicated imagefs', () => {
  const pod = podCase('a', { storageLimit: '1Gi' });
  const round = {
    at: 0,
    nodefs: disk(50 * GI, 100 * GI),
    use: { a: { rootfsBytes: 5 * GI, logsBytes: MI } },
  };
  const scenario = scenarioOf('c29', {}, [pod], [round], { dedicatedImageFs: true });

  it('has the kubelet look at logs alone', () => {
    expect(victims(run(scenario, 'kubelet'))).toStrictEqual([[]]);
  });

  it('counts the writable layer by evictd’s rules', () => {
    const result = run(scenario, 'evictd');
    expect(victims(result)).toStrictEqual([['a']]);
    expect(result.ticks[0]?.evicted[0]?.message).toBe(
      'Container main exceeded its local ephemeral storage limit "1Gi". ',
    );
  });
});

describe('C32 (kubernetes/kubelet#42): the grace of a soft victim', () => {
  it.each([
    ['kubelet', -1, 30, -1],
    ['evictd', -1, 30, 30],
    ['kubelet', 0, 30, 0],
    ['evictd', 0, 30, 0],
    ['kubelet', 60, 30, 30],
    ['evictd', 60, 30, 30],
    ['kubelet', 10, 30, 10],
    ['evictd', 10, 30, 10],
    ['kubelet', 20, undefined, 20],
    ['evictd', 20, undefined, 20],
  ] as const)('%s: longest %s, the pod’s %s: %s', (rules, longest, grace, expected) => {
    const config = {
      evictionSoft: { 'memory.available': '1Gi' },
      evictionSoftGracePeriod: { 'memory.available': '1s' },
      evictionMaxPodGracePeriod: longest,
    };
    const rounds = [0, 1].map((at) => ({
      at,
      memory: memory(GI / 2),
      use: { a: { memoryBytes: GI } },
    }));
    const pod = podCase('a', grace === undefined ? {} : { grace });
    const result = run(scenarioOf('c32', config, [pod], rounds), rules);
    expect(result.ticks[1]?.evicted[0]?.gracePeriodSeconds).toBe(expected);
  });

  it.each([
    ['kubelet', 1],
    ['evictd', 0],
  ] as const)('%s: hard, %s s', (rules, expected) => {
    const round = { at: 0, memory: memory(GI / 2), use: { a: { memoryBytes: GI } } };
    const config = { evictionHard: { 'memory.available': '1Gi' } };
    const result = run(scenarioOf('c32b', config, [podCase('a', { grace: 30 })], [round]), rules);
    expect(result.ticks[0]?.evicted[0]?.gracePeriodSeconds).toBe(expected);
  });
});

describe('C33: a kill that fails', () => {
  const config = { evictionHard: { 'memory.available': '1Gi' } };
  const use = { a: { memoryBytes: 3 * GI }, b: { memoryBytes: 2 * GI }, c: { memoryBytes: GI } };
  const pods = ['a', 'b', 'c'].map((name) => podCase(name));
  const rounds = [
    { at: 0, memory: memory(GI / 2), use, killFails: ['default/a'] },
    { at: 10, memory: memory(GI / 2), use },
  ];
  const scenario = scenarioOf('c33', config, pods, rounds);

  it('counts to the kubelet', () => {
    expect(victims(run(scenario, 'kubelet'))).toStrictEqual([['a!'], ['a']]);
  });

  it('is followed by the next candidate in the same pass, and passed over by evictd', () => {
    expect(victims(run(scenario, 'evictd'))).toStrictEqual([['a!', 'b'], ['c']]);
  });

  it('has each candidate tried once in a pass', () => {
    const all = [
      { ...rounds[0], at: 0, killFails: pods.map(({ metadata }) => `default/${metadata.name}`) },
    ];
    const result = run(scenarioOf('c33b', config, pods, all as readonly RoundCase[]), 'evictd');
    expect(victims(result)).toStrictEqual([['a!', 'b!', 'c!']]);
  });
});

describe('C34 (k/k#126542): only protected pods are left', () => {
  it('collects, says so once in a burst, and does nothing else', () => {
    const pods = [
      podCase('critical', { priority: 2_000_001_000 }),
      podCase('static', { static: true }),
    ];
    const use = { critical: { logsBytes: 9 * GI }, static: { logsBytes: 9 * GI } };
    const rounds = [0, 10, 20].map((at) => ({ at, nodefs: disk(GI, 100 * GI), use }));
    const config = { evictionHard: { 'nodefs.available': '10%' } };
    const result = run(scenarioOf('c34', config, pods, rounds), 'evictd');
    expect(victims(result)).toStrictEqual([[], [], []]);
    expect(result.ticks[0]?.reclaim).toStrictEqual(['containers', 'images']);
    const events = result.ticks.flatMap(({ events }) => events.map(({ reason }) => reason));
    expect(events.filter((reason) => reason === 'EvictionImpossible')).toHaveLength(1);
    expect(events.filter((reason) => reason === 'EvictionThresholdMet')).toHaveLength(1);
  });
});

describe('C35 (k/k#78580): a tighter threshold', () => {
  it('evicts one by one until it is regained with its reclaim, the pressure going on', () => {
    const names = Array.from({ length: 12 }, (_, n) => `p${String(n).padStart(2, '0')}`);
    const use = Object.fromEntries(names.map((name) => [name, { inodes: 2 }]));
    const inodes = (free: number) => ({ inodes: 100, inodesFree: free });
    const tight = {
      evictionHard: { 'nodefs.inodesFree': '15%' },
      evictionMinimumReclaim: { 'nodefs.inodesFree': '1%' },
    };
    const rounds: readonly RoundCase[] = [
      { at: 0, nodefs: inodes(10), use },
      { at: 10, nodefs: inodes(10), use, evictd: { config: tight } },
      { at: 20, nodefs: inodes(12), use },
      { at: 30, nodefs: inodes(14), use },
      { at: 40, nodefs: inodes(16), use },
      { at: 50, nodefs: inodes(16), use },
    ];
    const config = { evictionHard: { 'nodefs.inodesFree': '5%' } };
    const pods = names.map((name) => podCase(name));
    const result = run(scenarioOf('c35', config, pods, rounds), 'evictd');
    expect(victims(result)).toStrictEqual([[], ['p00'], ['p01'], ['p02'], [], []]);
    expect(conditions(result)[5]).toBe('DiskPressure');
  });
});

describe('C37 (systemd PR#23755): the first candidate has nothing to kill', () => {
  it('is looked at, then the next is taken', () => {
    const round = {
      at: 0,
      memory: memory(GI / 2),
      use: { empty: { memoryBytes: 3 * GI }, leak: { memoryBytes: 2 * GI } },
    };
    const scenario = scenarioOf(
      'c37',
      { evictionHard: { 'memory.available': '1Gi' } },
      [podCase('empty'), podCase('leak')],
      [round],
      { evictd: { kills: { 'default/empty': { outcome: 'nothingToKill' } } } },
    );
    expect(victims(run(scenario, 'evictd'))).toStrictEqual([['empty!', 'leak']]);
  });
});

describe('C42 (earlyoom#210): a process that is never to be killed', () => {
  it('protects its pod, however large it is', () => {
    const round = {
      at: 0,
      memory: memory(GI / 2),
      use: { db: { memoryBytes: 6 * GI }, small: { memoryBytes: MI } },
    };
    const scenario = scenarioOf(
      'c42',
      { evictionHard: { 'memory.available': '1Gi' } },
      [podCase('db'), podCase('small')],
      [round, { ...round, at: 10 }],
      { evictd: { protected: { 'default/db': 'oom_score_adj -1000' } } },
    );
    expect(victims(run(scenario, 'evictd'))).toStrictEqual([['small'], []]);
  });
});

describe('a soft victim in its grace', () => {
  const config = {
    evictionHard: { 'memory.available': '1Gi' },
    evictionSoft: { 'memory.available': '2Gi' },
    evictionSoftGracePeriod: { 'memory.available': '1s' },
    evictionMaxPodGracePeriod: 60,
  };
  const at = (seconds: number, available: number): RoundCase => ({
    at: seconds,
    memory: memory(available),
    use: { a: { memoryBytes: 3 * GI }, b: { memoryBytes: 2 * GI } },
  });
  const pods = [podCase('a', { grace: 60 }), podCase('b', { grace: 60 })];
  const kills = { 'default/a': { takes: '2s' } };

  it('keeps others waiting for as long as it takes', () => {
    const rounds = [at(0, 1.5 * GI), at(1, 1.5 * GI), at(62, 1.5 * GI), at(64, 1.5 * GI)];
    const result = run(scenarioOf('grace', config, pods, rounds, { evictd: { kills } }), 'evictd');
    expect(victims(result)).toStrictEqual([[], ['a'], [], ['b']]);
    expect(result.ticks[3]?.evictd?.ended).toStrictEqual([
      { pod: 'default/a', at: '1m3s', outcome: 'evicted' },
    ]);
  });

  it('has it cut when a hard threshold is crossed', () => {
    const rounds = [at(0, 1.5 * GI), at(1, 1.5 * GI), at(5, GI / 2), at(8, GI / 2)];
    const result = run(scenarioOf('cut', config, pods, rounds, { evictd: { kills } }), 'evictd');
    expect(victims(result)).toStrictEqual([[], ['a'], [], ['b']]);
    expect(result.ticks[2]?.evictd?.escalated).toStrictEqual(['default/a']);
    expect(result.ticks[3]?.evictd?.ended?.[0]?.at).toBe('7s');
  });

  it('is over at once to the kubelet, which takes no notice of how long a kill takes', () => {
    const rounds = [at(0, 1.5 * GI), at(1, 1.5 * GI), at(2, 1.5 * GI)];
    const result = run(
      scenarioOf('kubelet', config, pods, rounds, { evictd: { kills } }),
      'kubelet',
    );
    expect(victims(result)).toStrictEqual([[], ['a'], ['b']]);
  });
});

describe('a collection by evictd’s rules', () => {
  const config = {
    evictionHard: { 'imagefs.available': '10Gi' },
    evictionMinimumReclaim: { 'imagefs.available': '2Gi' },
  };
  const imagefs = (available: number) => ({ imagefs: disk(available, 100 * GI) });
  const use = { a: { rootfsBytes: GI } };
  const image = (id: string, sizeBytes: number, lastUsed: string, more = {}) => ({
    id,
    sizeBytes,
    age: '240h',
    lastUsed,
    ...more,
  });
  const images = [
    image('recent', 9 * GI, '1h'),
    image('old', 2 * GI, '48h'),
    image('older', 2 * GI, '72h'),
    image('pinned', 9 * GI, '96h', { pinned: true }),
    image('used', 9 * GI, '96h', { inUse: true }),
    image('fresh', 9 * GI, '96h', { age: '1m' }),
  ];

  it('takes the least recently used images until threshold and reclaim are regained', () => {
    const round: RoundCase = { at: 0, ...imagefs(9 * GI), use, evictd: { images } };
    const after = { ...round, summaryAfterReclaim: summaryCase({ ...imagefs(13 * GI), use }) };
    const scenario = scenarioOf('images', config, [podCase('a')], [after], {
      dedicatedImageFs: true,
    });
    const own = run(scenario, 'evictd');
    expect(own.ticks[0]?.evictd?.images).toStrictEqual(['older', 'old']);
    expect(victims(own)).toStrictEqual([[]]);
    const kubelet = run(scenario, 'kubelet');
    expect(kubelet.ticks[0]?.evictd?.images).toStrictEqual(['fresh', 'older', 'old', 'recent']);
  });

  it('awaits what still comes back, and evicts where that is not enough', () => {
    const settling = (...steps: readonly number[]) =>
      steps.map((available) => summaryCase({ ...imagefs(available), use }));
    const outcome = (...steps: readonly number[]) => {
      const round: RoundCase = {
        at: 0,
        ...imagefs(9 * GI),
        use,
        summaryAfterReclaim: summaryCase({ ...imagefs(10 * GI), use }),
        evictd: { summariesSettling: settling(...steps) },
      };
      const scenario = scenarioOf('settle', config, [podCase('a')], [round], {
        dedicatedImageFs: true,
      });
      const result = run(scenario, 'evictd');
      return [victims(result)[0]?.length, result.ticks[0]?.evictd?.settlingReadings];
    };
    expect(outcome(11 * GI, 12 * GI, 12 * GI)).toStrictEqual([0, 3]);
    expect(outcome(11 * GI, 11 * GI, 20 * GI)).toStrictEqual([1, 2]);
  });

  it('does not decide by figures that are no newer (k/k#41032)', () => {
    const time = stamp(0);
    const old = { availableBytes: 14 * GI, capacityBytes: 100 * GI, time };
    const round: RoundCase = { at: 0, imagefs: old, use };
    const fifteen = { evictionHard: { 'imagefs.available': '15%' } };
    const scenario = scenarioOf('stale', fifteen, [podCase('a')], [round, { ...round, at: 50 }]);
    expect(victims(run(scenario, 'evictd'))).toStrictEqual([[], []]);
  });
});

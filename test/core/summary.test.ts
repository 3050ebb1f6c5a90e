import { describe, expect, it } from 'vitest';
import type { KubernetesPod, PodStats, Summary } from '../../src/core/kubernetes.ts';
import { podSpec } from '../../src/core/pod-spec.ts';
import { RULE_SETS } from '../../src/core/rules.ts';
import {
  type SummaryReading,
  statsByPod,
  summaryObservations,
  summaryPods,
} from '../../src/core/summary.ts';
import { GI, MI } from '../support/builders.ts';
import {
  container,
  containerStats,
  kubernetesPod,
  memorySummary,
  podStats,
} from '../support/kubernetes.ts';

const read = (summary: Summary, rest: Partial<SummaryReading> = {}) =>
  summaryObservations({
    summary,
    nowMs: 7,
    rules: RULE_SETS.evictd,
    memorySource: 'workingset',
    memAvailableBytes: undefined,
    ...rest,
  });

/** `signal available/capacity`, of each that could be read. */
const told = (summary: Summary, rest: Partial<SummaryReading> = {}) =>
  read(summary, rest).observations.map(
    ({ signal, available, capacity }) => `${signal} ${available}/${capacity}`,
  );

const FS = { availableBytes: 10, capacityBytes: 100, inodesFree: 1, inodes: 20 };
const TIME = '2026-01-01T00:00:00.000000001Z';

describe('summaryObservations', () => {
  it('reads all nine signals', () => {
    const summary: Summary = {
      node: {
        memory: { availableBytes: 30, workingSetBytes: 70, time: TIME },
        systemContainers: [
          { name: 'kubelet', memory: { availableBytes: 1, workingSetBytes: 1 } },
          { name: 'pods', memory: { availableBytes: 20, workingSetBytes: 30 } },
        ],
        fs: FS,
        runtime: {
          imageFs: { ...FS, availableBytes: 11, inodesFree: 2 },
          containerFs: { ...FS, availableBytes: 12, inodesFree: 3 },
        },
        rlimit: { maxpid: 1000, curproc: 900 },
      },
    };
    expect(told(summary)).toStrictEqual([
      'memory.available 30/100',
      'allocatableMemory.available 20/50',
      'nodefs.available 10/100',
      'nodefs.inodesFree 1/20',
      'imagefs.available 11/100',
      'imagefs.inodesFree 2/20',
      'containerfs.available 12/100',
      'containerfs.inodesFree 3/20',
      'pid.available 100/1000',
    ]);
    expect(read(summary).refused).toStrictEqual([]);
    expect(read(summary).observations[0]).toStrictEqual({
      signal: 'memory.available',
      available: 30,
      capacity: 100,
      atMs: 7,
      statsTimeNs: 1_767_225_600_000_000_001n,
    });
  });

  it.each<[string, Summary['node'], readonly string[]]>([
    ['nothing', null, []],
    ['nothing either', {}, []],
    ['parts that are null', { memory: null, fs: null, runtime: null, rlimit: null }, []],
    ['no container of all pods', { systemContainers: [{ name: 'kubelet' }] }, []],
    ['containers that are null', { systemContainers: null }, []],
    ['all pods without memory', { systemContainers: [{ name: 'pods', memory: null }] }, []],
    ['no available memory', { memory: { workingSetBytes: 1 } }, []],
    ['no working set', { memory: { availableBytes: 1, workingSetBytes: null } }, []],
    ['bytes only', { fs: { availableBytes: 1, capacityBytes: 2 } }, ['nodefs.available 1/2']],
    ['inodes only', { fs: { inodesFree: 1, inodes: 2 } }, ['nodefs.inodesFree 1/2']],
    ['no capacity', { fs: { availableBytes: 1, inodesFree: 1 } }, []],
    [
      'no filesystem of containers',
      { runtime: { imageFs: FS, containerFs: null } },
      ['imagefs.available 10/100', 'imagefs.inodesFree 1/20'],
    ],
    ['no number of processes', { rlimit: { maxpid: 100 } }, []],
    ['no limit of processes', { rlimit: { curproc: 100, maxpid: null } }, []],
  ])('leaves out what is missing: %s', (_, node, expected) => {
    expect(told({ node })).toStrictEqual(expected);
    expect(told({ node }, { rules: RULE_SETS.kubelet })).toStrictEqual(expected);
  });

  it('knows nothing of what has no capacity, but to the kubelet', () => {
    const node = {
      fs: { availableBytes: 0, capacityBytes: 0, inodesFree: 1, inodes: 2 },
      rlimit: { maxpid: 0, curproc: 0 },
    };
    const inodes = 'nodefs.inodesFree 1/2';
    expect(told({ node })).toStrictEqual([inodes]);
    expect(told({ node }, { rules: RULE_SETS.kubelet })).toStrictEqual([
      'nodefs.available 0/0',
      inodes,
      'pid.available 0/0',
    ]);
  });

  it.each<[string | null | undefined, bigint | undefined]>([
    ['0001-01-01T00:00:00Z', undefined],
    [undefined, undefined],
    [null, undefined],
    ['', undefined],
    ['yesterday', undefined],
    ['1970-01-01T00:00:00Z', 0n],
    ['1970-01-01T01:00:00.5+01:00', 500_000_000n],
  ])('of the time %s', (time, expected) => {
    const memory = {
      availableBytes: 1,
      workingSetBytes: 1,
      ...(time === undefined ? {} : { time }),
    };
    const rlimit = { maxpid: 2, curproc: 1, ...(time === undefined ? {} : { time }) };
    const times = read({ node: { memory, rlimit } }).observations.map((one) => one.statsTimeNs);
    expect(times).toStrictEqual([expected, expected]);
  });

  describe('of figures that cannot be true', () => {
    // C12 (k/k#114332): the working set is above the capacity.
    const impossible: Summary = {
      node: { memory: { availableBytes: -37_414_240_256, workingSetBytes: 70_293_258_240 } },
    };
    const CAPACITY = 32_879_017_984;

    it('refuses them, and has none in their place', () => {
      expect(read(impossible)).toStrictEqual({
        observations: [],
        refused: ['memory.available'],
      });
    });

    it('takes a second source where there is one', () => {
      expect(told(impossible, { memAvailableBytes: 20 * GI })).toStrictEqual([
        `memory.available ${20 * GI}/${CAPACITY}`,
      ]);
      expect(read(impossible, { memAvailableBytes: 20 * GI }).refused).toStrictEqual([
        'memory.available',
      ]);
    });

    it.each([-1, CAPACITY + 1])('refuses a second source of %d as well', (memAvailableBytes) => {
      expect(told(impossible, { memAvailableBytes })).toStrictEqual([]);
    });

    it.each([0, CAPACITY])('takes one of %d', (memAvailableBytes) => {
      expect(told(impossible, { memAvailableBytes })).toHaveLength(1);
    });

    it('acts on them by the kubelet’s rules', () => {
      const rest = { rules: RULE_SETS.kubelet, memAvailableBytes: 20 * GI };
      expect(told(impossible, rest)).toStrictEqual([`memory.available -37414240256/${CAPACITY}`]);
      expect(read(impossible, rest).refused).toStrictEqual([]);
    });

    it('has no second source of anything but the node’s memory, and keeps what is true', () => {
      const summary: Summary = {
        node: {
          memory: { availableBytes: 1, workingSetBytes: 1 },
          systemContainers: [{ name: 'pods', memory: { availableBytes: 5, workingSetBytes: -1 } }],
          fs: { availableBytes: 101, capacityBytes: 100 },
          rlimit: { maxpid: 10, curproc: 11 },
        },
      };
      expect(told(summary, { memAvailableBytes: 2 })).toStrictEqual(['memory.available 1/2']);
      expect(read(summary).refused).toStrictEqual([
        'allocatableMemory.available',
        'nodefs.available',
        'pid.available',
      ]);
    });
  });

  describe('with memavailable as the source', () => {
    // C14 (k/k#43916): active page cache counts as used.
    const cached = memorySummary(100 * MI);
    const rest = { memorySource: 'memavailable', memAvailableBytes: 700 * MI } as const;

    it('takes what the kernel could free', () => {
      expect(told(cached, rest)).toStrictEqual([`memory.available ${700 * MI}/${GI}`]);
      expect(told(cached, { memAvailableBytes: 700 * MI })).toStrictEqual([
        `memory.available ${100 * MI}/${GI}`,
      ]);
    });

    it('takes the working set where that is not known', () => {
      expect(told(cached, { memorySource: 'memavailable' })).toStrictEqual([
        `memory.available ${100 * MI}/${GI}`,
      ]);
    });

    it('is of the node, not of all pods', () => {
      const pods = { node: { systemContainers: [{ name: 'pods', ...cached.node }] } };
      expect(told(pods, rest)).toStrictEqual([`allocatableMemory.available ${100 * MI}/${GI}`]);
    });
  });
});

describe('statsByPod', () => {
  it('is by uid; of two of one uid the last counts', () => {
    const [a, b, again] = [podStats('a'), podStats('b'), podStats('a', { containers: [] })];
    expect([...statsByPod({ pods: [a, b, again] })]).toStrictEqual([
      ['uid-of-a', again],
      ['uid-of-b', b],
    ]);
  });

  it.each([{}, { pods: null }, { pods: [] }])('of %j is empty', (summary) => {
    expect(statsByPod(summary).size).toBe(0);
  });
});

describe('summaryPods', () => {
  const seen = (
    spec: KubernetesPod['spec'],
    stats: Omit<PodStats, 'podRef'> | undefined,
    rules: keyof typeof RULE_SETS = 'evictd',
  ) => {
    const pod = kubernetesPod('web', spec);
    const pods = stats === undefined ? [] : [podStats('web', stats)];
    const [one] = summaryPods([podSpec(pod, RULE_SETS[rules])], statsByPod({ pods }), {
      rules: RULE_SETS[rules],
      nowMs: 7,
    });
    if (one === undefined) throw new Error('one pod is seen as one');
    return one;
  };

  it('keeps the order of the pods, and what they are', () => {
    const specs = ['b', 'a'].map((name) =>
      podSpec(
        kubernetesPod(name, {
          priority: 2_000_000_000,
          terminationGracePeriodSeconds: 9,
          containers: [container('main', { memory: 1, 'ephemeral-storage': 2 })],
        }),
        RULE_SETS.evictd,
      ),
    );
    const stats = statsByPod({ pods: [podStats('a', { memory: { workingSetBytes: 5 } })] });
    const pods = summaryPods(specs, stats, { rules: RULE_SETS.evictd, nowMs: 7 });
    expect(pods.map(({ name, hasStats }) => [name, hasStats])).toStrictEqual([
      ['default/b', false],
      ['default/a', true],
    ]);
    expect(pods[1]).toMatchObject({
      id: 'uid-of-a',
      name: 'default/a',
      priority: 2_000_000_000,
      qosClass: 'Burstable',
      memoryRequestNano: 1_000_000_000n,
      ephemeralStorageRequestNano: 2_000_000_000n,
      gracePeriodSeconds: 9,
      protectedBecause: 'critical priority',
      workingSetBytes: 5,
      pidsAre: 'processes',
      atMs: 7,
    });
  });

  it.each<[string, Omit<PodStats, 'podRef'> | undefined, keyof typeof RULE_SETS, unknown, unknown]>(
    [
      ['no stats', undefined, 'evictd', undefined, undefined],
      ['no stats', undefined, 'kubelet', undefined, undefined],
      // What is missing in the stats is 0 to the kubelet.
      ['stats of nothing', {}, 'evictd', undefined, undefined],
      ['stats of nothing', {}, 'kubelet', 0, 0],
      ['null', { memory: null, process_stats: null }, 'evictd', undefined, undefined],
      ['null', { memory: { workingSetBytes: null }, process_stats: {} }, 'kubelet', 0, 0],
      [
        'figures',
        { memory: { workingSetBytes: 5 }, process_stats: { process_count: 6 } },
        'evictd',
        5,
        6,
      ],
      [
        'zeros',
        { memory: { workingSetBytes: 0 }, process_stats: { process_count: 0 } },
        'evictd',
        0,
        0,
      ],
    ],
  )('of %s (%j) by the rules of %s', (_, stats, rules, workingSetBytes, pids) => {
    const one = seen({}, stats, rules);
    expect([one.workingSetBytes, one.pids]).toStrictEqual([workingSetBytes, pids]);
    expect(one.hasStats).toBe(stats !== undefined);
  });

  const used = (usedBytes: number, inodesUsed: number) => ({ usedBytes, inodesUsed });
  const nothing = { bytes: 0, inodes: 0 };

  it('adds up what of it lies on disk: layers, logs, local volumes', () => {
    const spec: KubernetesPod['spec'] = {
      volumes: [
        { name: 'cache', emptyDir: {} },
        { name: 'shm', emptyDir: { medium: 'Memory' } },
        { name: 'host', hostPath: {} },
        { name: 'untold', configMap: {} },
      ],
    };
    const stats: Omit<PodStats, 'podRef'> = {
      containers: [
        { name: 'main', rootfs: used(1, 10), logs: used(2, 20) },
        { name: 'other', rootfs: used(3, 30), logs: null },
        { name: 'bare' },
      ],
      volume: [
        { name: 'cache', ...used(100, 1000) },
        { name: 'shm', ...used(5 * GI, 1) },
        { name: 'host', usedBytes: 200 },
        { name: 'unknown', ...used(7, 7) },
      ],
    };
    for (const rules of ['kubelet', 'evictd'] as const) {
      expect(seen(spec, stats, rules).disk).toStrictEqual({
        root: { bytes: 4, inodes: 40, isLeast: true },
        logs: { bytes: 2, inodes: 20, isLeast: true },
        localVolumes: { bytes: 300, inodes: 1000, isLeast: true },
      });
      const told = {
        containers: [{ name: 'main', rootfs: used(1, 10), logs: used(2, 20) }],
        volume: [{ name: 'cache', ...used(100, 1000) }],
      };
      expect(seen(spec, told, rules).disk).toStrictEqual({
        root: { bytes: 1, inodes: 10 },
        logs: { bytes: 2, inodes: 20 },
        localVolumes: { bytes: 100, inodes: 1000 },
      });
    }
  });

  it.each<[string, Omit<PodStats, 'podRef'> | undefined, keyof typeof RULE_SETS, boolean]>([
    ['no stats', undefined, 'kubelet', false],
    ['no stats', undefined, 'evictd', false],
    ['neither containers nor volumes', {}, 'kubelet', true],
    ['neither containers nor volumes', {}, 'evictd', false],
    ['null', { containers: null, volume: null }, 'evictd', false],
    ['a container', { containers: [{ name: 'main' }] }, 'evictd', true],
    ['a volume', { volume: [{ name: 'v' }] }, 'evictd', true],
  ])('of %s (%j) by the rules of %s the disk is known: %s', (_, stats, rules, isKnown) => {
    const own = stats?.containers ? { ...nothing, isLeast: true } : nothing;
    const expected = { root: own, logs: own, localVolumes: nothing };
    expect(seen({}, stats, rules).disk).toStrictEqual(isKnown ? expected : undefined);
  });

  it('tells of its containers what they use of a resource, and what they request', () => {
    const one = seen(
      {
        containers: [
          container('main', { memory: '64Mi', 'ephemeral-storage': '1Gi' }),
          container('dark'),
        ],
      },
      {
        containers: [
          containerStats('main', { memory: 5, rootfs: 10, logs: 20 }),
          containerStats('dark', { rootfs: 10 }),
          containerStats('stranger', { memory: 5 }),
        ],
      },
    );
    const zero = { nano: 0n, format: 'decimal' };
    expect(one.containers?.('memory')).toStrictEqual([
      {
        name: 'main',
        request: { nano: BigInt(64 * MI) * 1_000_000_000n, format: 'binary' },
        usedBytes: 5,
      },
      { name: 'dark', request: zero, usedBytes: undefined },
    ]);
    expect(one.containers?.('ephemeral-storage')).toStrictEqual([
      {
        name: 'main',
        request: { nano: BigInt(GI) * 1_000_000_000n, format: 'binary' },
        usedBytes: 30,
      },
      { name: 'dark', request: zero, usedBytes: undefined },
    ]);
  });

  it.each([undefined, {}, { containers: null }])('of %j tells of no container', (stats) => {
    expect(seen({}, stats).containers?.('memory')).toStrictEqual([]);
  });
});

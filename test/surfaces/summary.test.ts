import { describe, expect, it } from 'vitest';
import type { Turn } from '../../src/core/pipeline.ts';
import type { PodObservation } from '../../src/core/pod.ts';
import { podSpec } from '../../src/core/pod-spec.ts';
import { rankPods } from '../../src/core/rank.ts';
import { RULE_SETS } from '../../src/core/rules.ts';
import { INITIAL_STATE } from '../../src/core/state.ts';
import { statsByPod, summaryObservations, summaryPods } from '../../src/core/summary.ts';
import type {
  ContainerUse,
  DiskFacts,
  PartUse,
  RuntimeFilesystems,
} from '../../src/ports/disk-usage.ts';
import type { FilesystemState } from '../../src/ports/filesystem.ts';
import type { RuntimePod } from '../../src/ports/pod-directory.ts';
import { EMPTY_MODEL, type Model } from '../../src/surfaces/status.ts';
import { podList, type SummaryContext, summaryDocument } from '../../src/surfaces/summary.ts';
import { GI, MI, observation, pod, reading } from '../support/builders.ts';
import { runtimeContainer, runtimePod } from '../support/runtime-pods.ts';

const NODE = '8:1';
const IMAGES = '8:2';
const WALL_MS = Date.parse('2026-01-01T12:00:00Z');

function filesystem(name: FilesystemState['name'], device: string, inodes = 1000): FilesystemState {
  const path = `/${name}`;
  return {
    name,
    path,
    reading: {
      path,
      atMs: 9000,
      capacityBytes: 100 * GI,
      availableBytes: 40 * GI,
      // 5 GiB are the reserve for root.
      usedBytes: 55 * GI,
      inodes,
      inodesFree: inodes / 2,
      device,
      mountDevice: device,
      source: '',
      type: 'ext4',
      mountPoint: path,
    },
    error: undefined,
    stale: false,
  };
}

const part = (
  bytes: number,
  device: string | undefined,
  inodes: number | undefined = 1,
): PartUse => ({
  bytes,
  inodes,
  atMs: 8000,
  device,
  type: undefined,
  cut: undefined,
});

const use = (fields: Partial<ContainerUse>): ContainerUse => ({
  layer: undefined,
  logs: undefined,
  volumes: new Map(),
  trouble: undefined,
  ...fields,
});

interface Scene {
  readonly pods?: readonly PodObservation[];
  readonly known?: Readonly<Record<string, RuntimePod>>;
  readonly uses?: Readonly<Record<string, ContainerUse>>;
  readonly filesystems?: readonly FilesystemState[];
  readonly told?: Partial<RuntimeFilesystems>;
}

const NOTHING_TOLD = {
  imageBytes: undefined,
  imageInodes: undefined,
  containerBytes: undefined,
  containerInodes: undefined,
};

function scene({
  pods = [],
  known = {},
  uses = {},
  filesystems = FILESYSTEMS,
  told = {},
}: Scene = {}) {
  const state = {
    ...INITIAL_STATE,
    observations: [
      observation(300 * MI, { capacity: GI, atMs: 9500 }),
      observation(100 * MI, { signal: 'allocatableMemory.available', capacity: GI, atMs: 9500 }),
      observation(900, { signal: 'pid.available', capacity: 1000, atMs: 9500 }),
    ],
  };
  const model: Model = {
    ...EMPTY_MODEL,
    turn: { state } as unknown as Turn,
    readings: [reading({ usageBytes: 800 * MI })],
    filesystems,
    pods,
  };
  const disks: DiskFacts = {
    filesystems: { imagefs: [], containerfs: [], ...NOTHING_TOLD, ...told },
    containers: new Map(Object.entries(uses)),
    unaccounted: new Map(),
  };
  const context: SummaryContext = {
    nodeName: 'worker-1',
    disks,
    podOf: (id) => known[id],
    nowMs: 10_000,
    wallMs: WALL_MS,
  };
  return { model, context };
}

const FILESYSTEMS = [
  filesystem('nodefs', NODE),
  filesystem('imagefs', IMAGES),
  filesystem('containerfs', IMAGES, 0),
];
const READ_AT = '2026-01-01T11:59:59.500Z';
const MEASURED_AT = '2026-01-01T11:59:59.000Z';
const FOUND_AT = '2026-01-01T11:59:58.000Z';

describe('the node of a summary', () => {
  it('has memory, filesystems and PIDs as the kubelet has them', () => {
    const told = {
      imageBytes: 5 * MI,
      imageInodes: 77,
      containerBytes: 6 * MI,
      containerInodes: 88,
    };
    const { model, context } = scene({ told });
    const fs = {
      time: MEASURED_AT,
      availableBytes: 40 * GI,
      capacityBytes: 100 * GI,
    };
    const inodes = { inodesFree: 500, inodes: 1000 };
    expect(summaryDocument(model, context).node).toStrictEqual({
      nodeName: 'worker-1',
      memory: {
        time: READ_AT,
        availableBytes: 300 * MI,
        usageBytes: 800 * MI,
        workingSetBytes: GI - 300 * MI,
      },
      systemContainers: [
        {
          name: 'pods',
          memory: { time: READ_AT, availableBytes: 100 * MI, workingSetBytes: GI - 100 * MI },
        },
      ],
      fs: { ...fs, ...inodes, usedBytes: 55 * GI, inodesUsed: 500 },
      runtime: {
        imageFs: { ...fs, ...inodes, usedBytes: 5 * MI, inodesUsed: 77 },
        containerFs: { ...fs, usedBytes: 6 * MI, inodesUsed: 88 },
      },
      rlimit: { time: READ_AT, maxpid: 1000, curproc: 100 },
    });
  });

  it('never has all that a filesystem holds as what images and layers use', () => {
    const { model, context } = scene({ told: { imageBytes: 5 * MI } });
    const fs = { time: MEASURED_AT, availableBytes: 40 * GI, capacityBytes: 100 * GI };
    expect(summaryDocument(model, context).node?.runtime).toStrictEqual({
      imageFs: { ...fs, inodesFree: 500, inodes: 1000, usedBytes: 5 * MI },
      containerFs: fs,
    });
  });

  it('leaves out what is not known', () => {
    const { context } = scene();
    const unread = { ...filesystem('nodefs', NODE), reading: undefined };
    const document = summaryDocument(
      { ...EMPTY_MODEL, filesystems: [unread] },
      { ...context, disks: undefined },
    );
    expect(document).toStrictEqual({ node: { nodeName: 'worker-1', runtime: {} }, pods: [] });
  });
});

const CACHE = new Map([['cache', part(7 * MI, NODE)]]);
const WEB: RuntimePod = runtimePod('sandbox-1', {
  namespace: 'shop',
  name: 'shop/web',
  uid: 'u-1',
  containers: [
    runtimeContainer('c1', { name: 'app' }),
    runtimeContainer('c0', { name: 'app', isRunning: false }),
    runtimeContainer('c2', { name: 'proxy' }),
  ],
});
const SEEN = pod('shop/web', {
  id: 'kubepods/web@1',
  workingSetBytes: 30 * MI,
  pids: 4,
  priority: 5,
  gracePeriodSeconds: 20,
  memoryRequestNano: BigInt(64 * MI) * 1_000_000_000n,
  qosClass: 'Burstable',
  atMs: 9500,
  // 3 MiB of the layers are deleted and open.
  disk: {
    root: { bytes: 18 * MI, inodes: 13 },
    logs: { bytes: 2 * MI, inodes: 1 },
    localVolumes: { bytes: 7 * MI, inodes: 1 },
  },
  diskSeen: { atMs: 8000, isCut: false, deletedBytes: 3 * MI },
});
const KNOWN = scene({
  pods: [SEEN],
  known: { [SEEN.id]: WEB },
  uses: {
    c1: use({ layer: part(10 * MI, undefined, 8), logs: part(2 * MI, NODE), volumes: CACHE }),
    c0: use({ layer: part(MI, undefined, 2) }),
    c2: use({ layer: part(4 * MI, undefined, 2), volumes: CACHE }),
  },
});

describe('a pod of a summary', () => {
  it('has what its containers and volumes use, and sums that say the same', () => {
    const [stats] = summaryDocument(KNOWN.model, KNOWN.context).pods ?? [];
    expect(stats).toStrictEqual({
      podRef: { name: 'web', namespace: 'shop', uid: 'u-1' },
      memory: { time: READ_AT, workingSetBytes: 30 * MI },
      containers: [
        {
          name: 'app',
          rootfs: { time: FOUND_AT, usedBytes: 14 * MI, inodesUsed: 11 },
          logs: { time: FOUND_AT, usedBytes: 2 * MI, inodesUsed: 1 },
        },
        {
          name: 'proxy',
          rootfs: { time: FOUND_AT, usedBytes: 4 * MI, inodesUsed: 2 },
          logs: { time: FOUND_AT, usedBytes: 0, inodesUsed: 0 },
        },
      ],
      volume: [{ name: 'cache', time: FOUND_AT, usedBytes: 7 * MI, inodesUsed: 1 }],
      'ephemeral-storage': { time: FOUND_AT, usedBytes: 27 * MI, inodesUsed: 15 },
      process_stats: { process_count: 4 },
    });
  });

  it('has the memory of its containers where each has its own', () => {
    const containers: PodObservation['containers'] = (resource, how) =>
      resource === 'memory' && how === 'exact'
        ? [
            { name: 'app', request: { nano: 0n, format: 'binary' }, usedBytes: 20 * MI },
            { name: 'proxy', request: { nano: 0n, format: 'binary' }, usedBytes: MI, atMs: 10_000 },
          ]
        : undefined;
    const one = { ...KNOWN.model, pods: [{ ...SEEN, containers }] };
    const [stats] = summaryDocument(one, KNOWN.context).pods ?? [];
    expect(stats?.containers?.map(({ memory }) => memory)).toEqual([
      { time: READ_AT, workingSetBytes: 20 * MI },
      { time: '2026-01-01T12:00:00.000Z', workingSetBytes: MI },
    ]);
  });

  it('of Docker has on its root what lies with the layers', () => {
    const volumes = new Map([['data', part(50 * MI, IMAGES)]]);
    const seen = pod('web', {
      id: 'docker/web@1',
      disk: {
        root: { bytes: 63 * MI, inodes: 3 },
        logs: { bytes: 0, inodes: 0 },
        localVolumes: { bytes: 0, inodes: 0 },
      },
    });
    const { model, context } = scene({
      pods: [seen],
      known: { [seen.id]: runtimePod('web') },
      uses: { web: use({ layer: part(10 * MI, IMAGES), logs: part(3 * MI, IMAGES), volumes }) },
    });
    const [stats] = summaryDocument(model, context).pods ?? [];
    expect(stats?.podRef).toEqual({ name: 'web', namespace: 'default', uid: 'web' });
    expect(stats?.containers).toMatchObject([
      { name: 'web', rootfs: { usedBytes: 63 * MI, inodesUsed: 3 }, logs: { usedBytes: 0 } },
    ]);
    expect(stats?.volume).toMatchObject([{ name: 'data', usedBytes: 0 }]);
  });

  it('that is a cgroup has no more than its memory', () => {
    const seen = pod('leak', { id: 'leak@1', workingSetBytes: undefined });
    const { model, context } = scene({ pods: [seen] });
    expect(summaryDocument(model, context).pods).toStrictEqual([
      {
        podRef: { name: 'leak', namespace: 'cgroup', uid: 'leak@1' },
        containers: [{ name: 'main' }],
        volume: [],
      },
    ]);
  });

  it('has no inodes where nobody counts them', () => {
    const none = { bytes: MI, inodes: undefined };
    const seen = pod('x', {
      id: 'x@1',
      disk: { root: none, logs: { bytes: 0, inodes: 0 }, localVolumes: none },
    });
    const { model, context } = scene({ pods: [seen] });
    const [stats] = summaryDocument(model, context).pods ?? [];
    expect(stats?.containers?.[0]?.rootfs).toEqual({
      time: expect.any(String),
      usedBytes: MI,
    });
    expect(stats?.['ephemeral-storage']).not.toHaveProperty('inodesUsed');
    expect(stats?.volume).toMatchObject([{ name: 'volumes', usedBytes: MI }]);
    expect(podList(model, context).items[0]?.spec.volumes).toEqual([
      { name: 'volumes', emptyDir: {} },
    ]);
  });

  it('has a uid of its own, whatever another claims', () => {
    const pods = ['a', 'b'].map((name) => pod(name, { id: `${name}@1` }));
    const claims = runtimePod('same');
    const { model, context } = scene({ pods, known: { 'a@1': claims, 'b@1': claims } });
    const uids = (summaryDocument(model, context).pods ?? []).map(({ podRef }) => podRef.uid);
    expect(uids).toEqual(['same', 'b@1']);
    expect(podList(model, context).items.map(({ metadata }) => metadata.uid)).toEqual(uids);
  });
});

describe('the list of pods', () => {
  it('has what evictd decides by', () => {
    const spared = pod('kept', { id: 'kept@1', protectedBecause: 'configured' });
    const { model, context } = KNOWN;
    const { items, ...head } = podList({ ...model, pods: [SEEN, spared] }, context);
    expect(head).toEqual({ kind: 'PodList', apiVersion: 'v1' });
    expect(items).toStrictEqual([
      {
        metadata: { name: 'web', namespace: 'shop', uid: 'u-1' },
        spec: {
          containers: [
            { name: 'app', resources: { requests: { memory: '64Mi' } } },
            { name: 'proxy' },
          ],
          volumes: [{ name: 'cache', emptyDir: {} }],
          priority: 5,
          terminationGracePeriodSeconds: 20,
        },
        status: { qosClass: 'Burstable' },
      },
      {
        metadata: {
          name: 'kept',
          namespace: 'cgroup',
          uid: 'kept@1',
          annotations: { 'kubernetes.io/config.source': 'file' },
        },
        spec: { containers: [{ name: 'main' }], volumes: [], priority: 0 },
        status: { qosClass: 'BestEffort' },
      },
    ]);
  });
});

describe('what reads a kubelet', () => {
  it('sees the same signals and ranks the same pods', () => {
    const other = pod('other', {
      id: 'other@1',
      disk: {
        root: { bytes: 15 * MI, inodes: 3 },
        logs: { bytes: 9 * MI, inodes: 3 },
        localVolumes: { bytes: MI, inodes: 1 },
      },
    });
    const model = { ...KNOWN.model, pods: [SEEN, other] };
    const rules = RULE_SETS.evictd;
    const summary = summaryDocument(model, KNOWN.context);
    const { observations } = summaryObservations({
      summary,
      nowMs: 0,
      rules,
      memorySource: 'workingset',
      memAvailableBytes: undefined,
    });
    const figures = observations.map(({ signal, available, capacity }) => [
      signal,
      available,
      capacity,
    ]);
    expect(figures).toEqual([
      ['memory.available', 300 * MI, GI],
      ['allocatableMemory.available', 100 * MI, GI],
      ['nodefs.available', 40 * GI, 100 * GI],
      ['nodefs.inodesFree', 500, 1000],
      ['imagefs.available', 40 * GI, 100 * GI],
      ['imagefs.inodesFree', 500, 1000],
      ['containerfs.available', 40 * GI, 100 * GI],
      ['pid.available', 900, 1000],
    ]);
    const specs = podList(model, KNOWN.context).items.map((item) => podSpec(item, rules));
    const read = summaryPods(specs, statsByPod(summary), { rules, nowMs: 0 });
    const ranking = { layout: 'dedicatedImagefs', rules } as const;
    for (const signal of ['imagefs.available', 'nodefs.available', 'imagefs.inodesFree'] as const) {
      const namesOf = (pods: readonly PodObservation[]) =>
        rankPods(signal, pods, ranking).map(({ name }) => name.replace(/^.*\//, ''));
      expect(namesOf(read), signal).toEqual(namesOf(model.pods));
    }
  });
});

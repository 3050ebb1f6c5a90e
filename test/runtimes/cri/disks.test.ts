import { describe, expect, it } from 'vitest';
import type { CriClient } from '../../../src/runtimes/cri/client.ts';
import { criDisks } from '../../../src/runtimes/cri/disks.ts';
import { criRemains } from '../../../src/runtimes/cri/remains.ts';

const NOW_MS = 1_700_000_000_000;
const SNAPSHOTS = '/run/c/root/io.containerd.snapshotter.v1.overlayfs';

const usage = (fields: object = {}) => ({
  timestamp: String(BigInt(NOW_MS - 400) * 1_000_000n),
  fsId: { mountpoint: SNAPSHOTS },
  usedBytes: { value: '41977856' },
  inodesUsed: { value: '1507' },
  ...fields,
});

type Answers = Readonly<Record<string, unknown>>;

/** What a runtime answers to each call; a function is given the request. */
function clientOf(answers: Answers) {
  const calls: string[] = [];
  const deadlines = new Map<string, (number | undefined)[]>();
  const client: CriClient = {
    call: (method, request, deadlineMs) => {
      calls.push(method);
      deadlines.set(method, [...(deadlines.get(method) ?? []), deadlineMs]);
      const answer = answers[method];
      const value = typeof answer === 'function' ? answer(request) : answer;
      return value instanceof Error ? Promise.reject(value) : Promise.resolve(value as never);
    },
    close: () => undefined,
  };
  return { client, calls, deadlines };
}

function disksOf(answers: Answers, mountinfo = '') {
  const { client, calls, deadlines } = clientOf(answers);
  let reads = 0;
  let nowMs = NOW_MS;
  const disks = criDisks({
    client,
    kubeletRootDir: '/var/lib/kubelet',
    podLogsDir: '/var/log/pods',
    wallClock: () => nowMs,
    mountinfo: () => {
      reads += 1;
      return Promise.resolve(mountinfo);
    },
  });
  const later = (byMs: number): void => {
    nowMs += byMs;
  };
  return { disks, calls, deadlines, later, mountReads: () => reads };
}

const LATE = Object.assign(new Error('4 DEADLINE_EXCEEDED'), { code: 4 });

const missing = (): Error => Object.assign(new Error('5 NOT_FOUND'), { code: 5 });

const listed = (...ids: readonly string[]): Answers => ({
  ListContainers: { containers: ids.map((id) => ({ id })) },
  ListContainerStats: {
    stats: ids.map((id) => ({ attributes: { id }, writableLayer: usage() })),
  },
  ContainerStatus: { status: { logPath: '', mounts: [] } },
});

describe('the filesystems that a runtime tells by CRI', () => {
  const of = (
    imageFilesystems: readonly unknown[],
    containerFilesystems: readonly unknown[] = [],
  ) => disksOf({ ImageFsInfo: { imageFilesystems, containerFilesystems } }).disks.filesystems();

  it('are those of the images, and the directory above stands for them', async () => {
    expect(await of([usage()])).toStrictEqual({
      imagefs: [SNAPSHOTS, '/run/c/root'],
      containerfs: [SNAPSHOTS, '/run/c/root'],
      imageBytes: 41_977_856,
      imageInodes: 1507,
      containerBytes: 41_977_856,
      containerInodes: 1507,
    });
  });

  it('are two where layers lie elsewhere', async () => {
    const layers = usage({
      fsId: { mountpoint: '/layers/x' },
      usedBytes: { value: '4096' },
      inodesUsed: { value: '3' },
    });
    const found = await of([usage(), usage({ fsId: { mountpoint: '/other' } })], [layers]);
    expect(found).toMatchObject({
      imagefs: [SNAPSHOTS, '/run/c/root'],
      containerfs: ['/layers/x', '/layers'],
      imageBytes: 41_977_856,
      containerBytes: 4096,
      containerInodes: 3,
    });
  });

  it.each([
    ['nothing', []],
    ['no place', [usage({ fsId: null })]],
    ['a relative path', [usage({ fsId: { mountpoint: 'a/b' } })]],
    ['a path with NUL', [usage({ fsId: { mountpoint: '/a\0b' } })]],
  ])('%s is none', async (_, filesystems) => {
    expect(await of(filesystems)).toMatchObject({ imagefs: [], containerfs: [] });
  });

  it('the root of the host stands for nothing', async () => {
    const found = await of([usage({ fsId: { mountpoint: '/images/' }, usedBytes: null })]);
    expect(found).toMatchObject({ imagefs: ['/images/'], imageBytes: undefined });
  });
});

describe('the containers that a runtime tells by CRI', () => {
  it('have their layer with its age', async () => {
    const { disks } = disksOf(listed('a'));
    expect(await disks.containers()).toStrictEqual([
      {
        id: 'a',
        layer: { kind: 'told', bytes: 41_977_856, inodes: 1507, ageMs: 400, place: undefined },
        logs: undefined,
        volumes: [],
      },
    ]);
  });

  it('have none where the runtime does not say, nor inodes', async () => {
    const stats = [
      { attributes: { id: 'b' }, writableLayer: usage({ inodesUsed: null }) },
      { attributes: { id: 'c' }, writableLayer: null },
      { attributes: null, writableLayer: usage() },
    ];
    const { disks } = disksOf({ ...listed('a', 'b', 'c'), ListContainerStats: { stats } });
    const layers = (await disks.containers()).map(({ layer }) => layer);
    expect(layers).toMatchObject([undefined, { bytes: 41_977_856, inodes: undefined }, undefined]);
  });

  it.each([
    ['a/main/0.log', 'a/main'],
    ['a/main.log', 'a/main.log'],
    ['main.log', 'main.log'],
  ])('have logs at %s: %s is looked at', async (name, below) => {
    const status = { logPath: `/var/log/pods/${name}`, mounts: [] };
    const { disks } = disksOf({ ...listed('a'), ContainerStatus: { status } });
    const [container] = await disks.containers();
    expect(container?.logs).toStrictEqual({ root: '/var/log/pods', below });
  });

  it.each(['/etc/shadow', '/var/log/pods/../../etc/shadow', 'pods/a', '/var/log/pods'])(
    'logs at %s are not looked at',
    async (logPath) => {
      const { disks } = disksOf({
        ...listed('a'),
        ContainerStatus: { status: { logPath, mounts: [] } },
      });
      expect((await disks.containers())[0]?.logs).toBeUndefined();
    },
  );

  it('have the emptyDir volumes that are mounted, each once', async () => {
    const own = '/var/lib/kubelet/pods/u-1/volumes';
    const mounts = [
      `${own}/kubernetes.io~empty-dir/cache`,
      `${own}/kubernetes.io~empty-dir/cache/sub/path`,
      `${own}/kubernetes.io~empty-dir/..`,
      `${own}/kubernetes.io~empty-dir/`,
      `${own}/kubernetes.io~configmap/settings`,
      '/var/lib/kubelet/pods/u-1/etc-hosts',
      '/data',
    ].map((hostPath) => ({ hostPath }));
    const { disks } = disksOf({
      ...listed('a'),
      ContainerStatus: { status: { logPath: '', mounts } },
    });
    const below = 'pods/u-1/volumes/kubernetes.io~empty-dir/cache';
    expect((await disks.containers())[0]?.volumes).toStrictEqual([
      { name: 'cache', place: { root: '/var/lib/kubelet', below } },
    ]);
  });

  it('are asked for their details once, those that are gone not at all', async () => {
    const statuses: string[] = [];
    let ids = ['a', 'b'];
    const answers = {
      get ListContainers() {
        return listed(...ids)['ListContainers'];
      },
      ListContainerStats: { stats: [] },
      ContainerStatus: ({ containerId }: { readonly containerId: string }) => {
        statuses.push(containerId);
        return containerId === 'b' ? missing() : { status: { logPath: '', mounts: [] } };
      },
    };
    const { disks } = disksOf(answers);
    await disks.containers();
    await disks.containers();
    ids = ['a', 'c'];
    expect((await disks.containers()).map(({ id }) => id)).toEqual(['a', 'c']);
    expect(statuses).toEqual(['a', 'b', 'c']);
  });

  it('cannot be told where the runtime is away', async () => {
    const away = Object.assign(new Error('14 UNAVAILABLE'), { code: 14 });
    const { disks } = disksOf({ ...listed('a'), ContainerStatus: away });
    await expect(disks.containers()).rejects.toBe(away);
  });

  it('are told where one does not tell its details, which is asked again after a while', async () => {
    const statuses: string[] = [];
    const answers = {
      ...listed('a', 'b'),
      ContainerStatus: ({ containerId }: { readonly containerId: string }) => {
        statuses.push(containerId);
        const status = { logPath: `/var/log/pods/p/${containerId}/0.log`, mounts: [] };
        return containerId === 'a' ? LATE : { status };
      },
    };
    const { disks, later } = disksOf(answers);
    const expected = [
      { id: 'a', layer: { kind: 'told' }, logs: undefined, isUntold: true },
      { id: 'b', layer: { kind: 'told' }, logs: { below: 'p/b' } },
    ];
    expect(await disks.containers()).toMatchObject(expected);
    later(29_999);
    expect(await disks.containers()).toMatchObject(expected);
    expect(statuses).toEqual(['a', 'b']);
    later(1);
    expect(await disks.containers()).toMatchObject(expected);
    expect(statuses).toEqual(['a', 'b', 'a']);
  });

  it('that do not tell their details do not hold up the others for long', async () => {
    const ids = Array.from({ length: 20 }, (_, index) => `c${index}`);
    const { disks, calls } = disksOf({ ...listed(...ids), ContainerStatus: LATE });
    expect(await disks.containers()).toHaveLength(20);
    expect(calls.filter((method) => method === 'ContainerStatus')).toHaveLength(8);
    await disks.containers();
    expect(calls.filter((method) => method === 'ContainerStatus')).toHaveLength(16);
  });

  describe('whose layer is an overlay', () => {
    const mount = (id: string, upper: string) =>
      `36 25 0:57 / /run/c/state/k8s.io/${id}/rootfs rw - overlay overlay ` +
      `rw,lowerdir=/l1:/l2,upperdir=${upper},workdir=/w`;
    const MOUNTS = [
      '1 0 8:1 / / rw - ext4 /dev/sda1 rw',
      mount('id-a', `${SNAPSHOTS}/snapshots/7/fs`),
      mount('id-b', '/etc'),
      mount('id-c', `${SNAPSHOTS}/../../../etc`),
    ].join('\n');
    const placesOf = async (disks: ReturnType<typeof disksOf>['disks']) =>
      (await disks.containers()).map(({ layer }) =>
        layer?.kind === 'told' ? layer.place?.below : 'at',
      );

    it('have its directory, where that lies below the runtime’s root', async () => {
      const answers = {
        ...listed('id-a', 'id-b', 'id-c', 'id-d'),
        ImageFsInfo: { imageFilesystems: [usage()], containerFilesystems: [] },
      };
      const { disks, mountReads } = disksOf(answers, MOUNTS);
      // The root is not known yet.
      expect(await placesOf(disks)).toEqual(Array(4).fill(undefined));
      expect(mountReads()).toBe(0);
      await disks.filesystems();
      const below = 'io.containerd.snapshotter.v1.overlayfs/snapshots/7/fs';
      for (let round = 0; round < 5; round += 1) {
        expect(await placesOf(disks)).toEqual([below, undefined, undefined, undefined]);
      }
      // It may not be mounted yet: but it is not looked for without end.
      expect(mountReads()).toBe(3);
    });

    it('is walked as long as what is told of all layers does not come', async () => {
      const below = 'io.containerd.snapshotter.v1.overlayfs/snapshots/7/fs';
      const at = { root: '/run/c/root', below };
      let stats: unknown = LATE;
      const answers = {
        ...listed('id-a', 'id-b'),
        ImageFsInfo: { imageFilesystems: [usage()], containerFilesystems: [] },
        get ListContainerStats() {
          return stats;
        },
      };
      const { disks, deadlines, later } = disksOf(answers, MOUNTS);
      await disks.filesystems();
      const layers = async () => (await disks.containers()).map(({ layer }) => layer);
      // Of what has no place nothing is known.
      expect(await layers()).toStrictEqual([{ kind: 'at', place: at }, undefined]);
      stats = listed('id-a', 'id-b')['ListContainerStats'];
      const told = { kind: 'told', bytes: 41_977_856, inodes: 1507, ageMs: 400 };
      expect(await layers()).toStrictEqual([
        { ...told, place: at },
        { ...told, place: undefined },
      ]);
      stats = LATE;
      later(20_000);
      expect(await layers()).toStrictEqual([
        { ...told, ageMs: 20_400, place: at },
        { ...told, ageMs: 20_400, place: undefined },
      ]);
      await layers();
      // Nobody waits twice for what hangs.
      expect(deadlines.get('ListContainerStats')).toEqual([2000, 250, 2000, 250]);
    });
  });
});

describe('what a dead sandbox leaves', () => {
  const POD = { id: 'p', name: 'shop/web' } as Parameters<
    ReturnType<typeof criRemains>['remove']
  >[0];
  const stateOf = (items: readonly string[], containers: readonly (readonly [string, string])[]) =>
    criRemains(
      clientOf({
        ListPodSandbox: { items: items.map((id) => ({ id })) },
        ListContainers: {
          containers: containers.map(([podSandboxId, state]) => ({ podSandboxId, state })),
        },
      }).client,
    ).stateOf(POD);

  it.each([
    [
      ['p'],
      [
        ['p', 'CONTAINER_EXITED'],
        ['other', 'CONTAINER_RUNNING'],
      ],
      'dead',
    ],
    [['p'], [], 'dead'],
    [
      ['p'],
      [
        ['p', 'CONTAINER_EXITED'],
        ['p', 'CONTAINER_RUNNING'],
      ],
      'running',
    ],
    [['other'], [['p', 'CONTAINER_RUNNING']], 'gone'],
  ] as const)('%j with %j is %s', async (items, containers, expected) => {
    expect(await stateOf(items, containers)).toBe(expected);
  });

  it('is removed; what is gone already is no failure, all else is', async () => {
    const containers = [
      { id: 'c1', metadata: { name: 'main' }, podSandboxId: 'p', state: 'CONTAINER_EXITED' },
      { id: 'c2', metadata: { name: 'main' }, podSandboxId: 'other', state: 'CONTAINER_RUNNING' },
    ];
    const removed: string[] = [];
    const remove = (answer: unknown) =>
      criRemains(
        clientOf({ ListContainers: { containers }, RemovePodSandbox: answer }).client,
      ).remove(POD, ({ what, id, name }) => removed.push(`${what} ${id} ${name}`));
    await remove({});
    expect(removed.splice(0)).toEqual(['container c1 shop/web/main', 'sandbox p shop/web']);
    await remove(missing());
    expect(removed).toEqual([]);
    const deadline = Object.assign(new Error('4 DEADLINE_EXCEEDED'), { code: 4 });
    await expect(remove(deadline)).rejects.toBe(deadline);
  });
});

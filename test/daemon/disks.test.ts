import { describe, expect, it } from 'vitest';
import { loadSettings } from '../../src/config/load.ts';
import type { Settings } from '../../src/config/settings.ts';
import { imagesSeen, type ListedImage } from '../../src/core/image-gc.ts';
import type { FilesystemName } from '../../src/core/signal.ts';
import { thresholdId } from '../../src/core/threshold.ts';
import { createDisks, USAGE_EACH_MS, usageAfterMs } from '../../src/daemon/disks.ts';
import type { ImageLook } from '../../src/daemon/reclaim.ts';
import type { ContainerUse, PartUse, RuntimeFilesystems } from '../../src/ports/disk-usage.ts';
import type { FilesystemState } from '../../src/ports/filesystem.ts';
import type { RuntimePod } from '../../src/ports/pod-directory.ts';
import { GI, MI } from '../support/builders.ts';
import { runtimeContainer, runtimePod } from '../support/runtime-pods.ts';

const settingsOf = (hard: string, flags: Record<string, readonly string[]> = {}): Settings =>
  loadSettings({ '--runtime': ['cri'], '--eviction-hard': [hard], ...flags }).settings;

const NODE = '8:1';
const IMAGES = '8:2';
const LAYERS = '8:3';

function state(
  name: FilesystemName,
  path: string,
  device: string | undefined,
  error?: string,
): FilesystemState {
  const reading =
    device === undefined
      ? undefined
      : {
          path,
          atMs: 0,
          capacityBytes: 100 * GI,
          availableBytes: 50 * GI,
          usedBytes: 50 * GI,
          inodes: 1000,
          inodesFree: 500,
          device,
          mountDevice: device,
          source: '',
          type: 'ext4',
          mountPoint: path,
        };
  return { name, path, reading, error, stale: false };
}

const TOLD: RuntimeFilesystems = {
  imagefs: ['/run/c/snapshots', '/run/c'],
  containerfs: ['/run/c/snapshots', '/run/c'],
  imageBytes: 1,
  imageInodes: 2,
  containerBytes: 1,
  containerInodes: 2,
};

function scene(options: { readonly devices?: Partial<Record<FilesystemName, string>> } = {}) {
  let { devices = {} } = options;
  let errors: Partial<Record<FilesystemName, string>> = {};
  let pods: readonly RuntimePod[] = [];
  let settings: Settings | undefined;
  const filesystems = (): readonly FilesystemState[] =>
    (['nodefs', 'imagefs', 'containerfs'] as const).flatMap((name) => {
      const path = settings?.filesystems[name];
      return path === undefined ? [] : [state(name, path, devices[name], errors[name])];
    });
  const disks = createDisks({
    pods: () => pods,
    filesystems,
    cgroupOf: (pid) => (pid === 1 ? 'docker/fat/inner' : undefined),
  });
  return {
    disks,
    /** What holds, with what was measured by then. */
    settle: (given: Settings, now = devices, failed: typeof errors = {}): Settings => {
      devices = now;
      errors = failed;
      settings = disks.settingsOf(given);
      // What was measured of other paths counts from the next time on.
      settings = disks.settingsOf(given);
      return settings;
    },
    list: (...listed: readonly RuntimePod[]) => {
      pods = listed;
      disks.notePods();
    },
    told: (filesystems: RuntimeFilesystems = TOLD) => disks.note({ kind: 'found', filesystems }),
    fails: (path: string, stale = false) =>
      disks.noteMeasured({ kind: 'failed', path, atMs: 0, error: 'ENOENT', stale }),
  };
}

const DEDICATED = { nodefs: NODE, imagefs: IMAGES, containerfs: IMAGES };

describe('the settings on the disks as they are', () => {
  it('have the filesystems that the runtime tells, unless flags name them', () => {
    const { settle, told } = scene();
    const given = settingsOf('imagefs.available<15%');
    expect(settle(given).filesystems.imagefs).toBeUndefined();
    told();
    expect(settle(given).filesystems).toEqual({
      nodefs: '/var/lib',
      imagefs: '/run/c/snapshots',
      containerfs: '/run/c/snapshots',
    });
    const named = settingsOf('imagefs.available<15%', { '--imagefs-path': ['/mine'] });
    expect(settle(named).filesystems).toMatchObject({
      imagefs: '/mine',
      containerfs: '/run/c/snapshots',
    });
  });

  it('are the same as long as nothing has changed', () => {
    const { settle, told, disks } = scene({ devices: DEDICATED });
    const given = settingsOf('imagefs.available<15%');
    told();
    const first = settle(given);
    told({ ...TOLD, imageBytes: 7 });
    expect(settle(given)).toBe(first);
    expect(settle(settingsOf('imagefs.available<15%'))).not.toBe(first);
    const second = settle(given);
    disks.note({ kind: 'unknown', reason: 'away' });
    disks.note({ kind: 'failed', atMs: 0, reason: 'away' });
    expect(settle(given)).toBe(second);
  });

  it.each<[string, Partial<Record<FilesystemName, string>>, string, readonly string[]]>([
    [
      'all on one',
      { nodefs: NODE, imagefs: NODE, containerfs: NODE },
      'single',
      ['nodefs', 'imagefs', 'containerfs=nodefs'],
    ],
    ['images apart', DEDICATED, 'dedicatedImagefs', ['nodefs', 'imagefs', 'containerfs=imagefs']],
    [
      'layers with nodefs',
      { nodefs: NODE, imagefs: IMAGES, containerfs: NODE },
      'splitImagefs',
      ['nodefs', 'imagefs', 'containerfs=nodefs'],
    ],
    [
      'layers apart',
      { nodefs: NODE, imagefs: IMAGES, containerfs: LAYERS },
      'separateContainerfs',
      ['nodefs', 'imagefs', 'containerfs=own'],
    ],
  ])('%s', (_, devices, layout, expected) => {
    const { settle, told } = scene({ devices });
    told();
    const { policy, givenThresholds } = settle(
      settingsOf('nodefs.available<10%,imagefs.available<20%,containerfs.available<30%'),
    );
    expect(policy.layout).toBe(layout);
    const sources: Record<string, string> = { '10%': 'nodefs', '20%': 'imagefs', '30%': 'own' };
    const seen = policy.thresholds.map(({ signal, value }) => {
      const name = signal.split('.')[0] ?? '';
      const source = sources[value.text];
      return source === name ? name : `${name}=${source}`;
    });
    expect(seen).toEqual(expected);
    expect(givenThresholds?.map(({ value }) => value.text)).toEqual(['10%', '20%', '30%']);
  });

  it('follow a layout that changes', () => {
    const { settle, told } = scene({ devices: DEDICATED });
    told();
    const given = settingsOf('imagefs.available<15%');
    expect(settle(given).policy.layout).toBe('dedicatedImagefs');
    const one = { nodefs: NODE, imagefs: NODE, containerfs: NODE };
    expect(settle(given, one).policy.layout).toBe('single');
  });

  it('rank by disks once it was found out what pods use', () => {
    const { settle, disks } = scene({ devices: { nodefs: NODE } });
    const given = settingsOf('nodefs.available<15%');
    expect(settle(given).policy.ranksDisk).toBe(false);
    disks.note({ kind: 'used', atMs: 0, tookMs: 1, containers: new Map() });
    expect(settle(given).policy.ranksDisk).toBe(true);
    disks.note({ kind: 'failed', atMs: 0, reason: 'away' });
    expect(settle(given).policy.ranksDisk).toBe(true);
  });

  it('do not rank by disks before each filesystem was measured, or could not be', () => {
    const { settle, told, disks } = scene();
    const given = settingsOf('imagefs.available<15%');
    told();
    disks.note({ kind: 'used', atMs: 0, tookMs: 1, containers: new Map() });
    const ranks = (
      devices: Partial<Record<FilesystemName, string>>,
      errors: Partial<Record<FilesystemName, string>> = {},
    ) => settle(given, devices, errors).policy.ranksDisk;
    expect(ranks({ nodefs: NODE })).toBe(false);
    // Layers are taken to lie with the images, which may not be so.
    expect(ranks({ nodefs: NODE, imagefs: IMAGES })).toBe(false);
    expect(ranks({ nodefs: NODE, imagefs: IMAGES, containerfs: NODE })).toBe(true);
    expect(ranks({ nodefs: NODE, imagefs: IMAGES }, { containerfs: 'ENOENT' })).toBe(true);
  });

  it('without a containerfs have no thresholds of one beyond those that were given', () => {
    const { settle } = scene();
    const { policy } = settle(settingsOf('nodefs.available<15%'));
    expect(policy.thresholds.map(thresholdId)).toEqual(['hard:nodefs.available']);
  });
});

describe('a path that the runtime tells and that cannot be measured', () => {
  const given = settingsOf('imagefs.available<15%');

  it('has the next one in its place, once', () => {
    const { settle, told, fails } = scene();
    told();
    settle(given);
    expect(fails('/run/c/snapshots')).toStrictEqual({
      name: 'imagefs',
      path: '/run/c/snapshots',
      error: 'ENOENT',
      by: '/run/c',
    });
    expect(fails('/run/c/snapshots')).toBeUndefined();
    expect(settle(given).filesystems).toMatchObject({ imagefs: '/run/c', containerfs: '/run/c' });
    expect(fails('/run/c')).toMatchObject({ path: '/run/c', by: undefined });
    expect(settle(given).filesystems.imagefs).toBeUndefined();
  });

  it('stays where it hangs, was measured once, or was given', () => {
    const { settle, told, fails } = scene();
    told();
    settle(given);
    expect(fails('/run/c/snapshots', true)).toBeUndefined();
    settle(given, DEDICATED);
    expect(fails('/run/c/snapshots')).toBeUndefined();
    expect(fails('/var/lib')).toBeUndefined();
    expect(settle(given).filesystems.imagefs).toBe('/run/c/snapshots');
  });

  it('is tried again where the runtime tells another', () => {
    const { settle, told, fails } = scene();
    told();
    settle(given);
    fails('/run/c/snapshots');
    told({ ...TOLD, imagefs: ['/run/c/other', '/run/c/snapshots'] });
    expect(settle(given).filesystems.imagefs).toBe('/run/c/other');
    expect(fails('/run/c/other')).toMatchObject({ by: '/run/c/snapshots' });
  });
});

const part = (bytes: number, fields: Partial<PartUse> = {}): PartUse => ({
  bytes,
  inodes: 1,
  atMs: 1000,
  device: undefined,
  type: undefined,
  cut: undefined,
  ...fields,
});
const use = (fields: Partial<ContainerUse> = {}): ContainerUse => ({
  layer: part(100),
  logs: undefined,
  volumes: new Map(),
  trouble: undefined,
  ...fields,
});

describe('what a pod uses', () => {
  const given = settingsOf('imagefs.available<15%');
  const used = (containers: Record<string, ContainerUse>, settings = given) => {
    const one = scene({ devices: DEDICATED });
    one.told();
    one.settle(settings);
    const all = new Map(Object.entries(containers));
    one.disks.note({ kind: 'used', atMs: 0, tookMs: 1, containers: all });
    return one;
  };
  const bytesOf = (one: ReturnType<typeof scene>, id = 'fat') => {
    const disk = one.disks.podDisk(id)?.disk;
    return disk && [disk.root.bytes, disk.logs.bytes, disk.localVolumes.bytes];
  };

  it('is that of its containers, a volume of two of them once', () => {
    const volumes = new Map([['cache', part(7, { device: NODE })]]);
    const one = used({
      a: use({ logs: part(5, { device: NODE, atMs: 400 }), volumes }),
      b: use({ layer: part(20, { cut: 'time' }), volumes }),
      other: use(),
    });
    const pod = runtimePod('fat', { containers: [runtimeContainer('a'), runtimeContainer('b')] });
    one.list(pod, runtimePod('new'));
    expect(bytesOf(one)).toEqual([120, 5, 7]);
    expect(one.disks.podDisk('fat')?.diskSeen).toStrictEqual({
      atMs: 400,
      isCut: true,
      deletedBytes: 0,
    });
    expect(one.disks.podDisk('fat')?.disk).toMatchObject({ root: { isLeast: true, isCut: true } });
    expect(one.disks.podDisk('fat')?.disk?.logs).not.toHaveProperty('isCut');
    expect(one.disks.podDisk('new')).toBeUndefined();
  });

  it('is nothing of a filesystem where it lies on another, as far as that is known', () => {
    const of = (settings: Settings) => {
      const one = used({ a: use({ logs: part(5, { device: IMAGES }) }) }, settings);
      one.list(
        runtimePod('fat', { containers: [runtimeContainer('a')] }),
        runtimePod('new', { containers: [runtimeContainer('b')] }),
      );
      return (['nodefs.available', 'imagefs.available'] as const).map((signal) =>
        ['fat', 'new'].map((id) => one.disks.isNothing(id, signal)),
      );
    };
    expect(of(given)).toEqual([
      [true, false],
      [false, false],
    ]);
    const kubelet = settingsOf('imagefs.available<15%', { '--compatibility': ['kubelet'] });
    expect(of(kubelet).flat()).toEqual([false, false, false, false]);
    expect(scene().disks.isNothing('fat', 'nodefs.available')).toBe(false);
  });

  it('may be more where the runtime did not tell of logs and volumes', () => {
    const one = used({ a: use({ isUntold: true }) });
    one.list(runtimePod('fat', { containers: [runtimeContainer('a')] }));
    const { disk, diskSeen } = one.disks.podDisk('fat') ?? {};
    expect(disk?.root).toStrictEqual({ bytes: 100, inodes: 1 });
    expect(disk?.logs).toStrictEqual({ bytes: 0, inodes: 0, isLeast: true });
    expect(disk?.localVolumes.isLeast).toBe(true);
    expect(diskSeen?.isCut).toBe(true);
    expect(one.disks.isNothing('fat', 'nodefs.available')).toBe(false);
  });

  it('is unknown as long as it is of a container that runs', () => {
    const one = used({ a: use(), b: use({ layer: undefined, logs: part(1) }) });
    const of = (isRunning: boolean) =>
      runtimePod('fat', {
        containers: [runtimeContainer('a'), runtimeContainer('b', { isRunning })],
      });
    one.list(of(true));
    expect(bytesOf(one)).toBeUndefined();
    one.list(of(false));
    expect(bytesOf(one)).toEqual([100, 1, 0]);
    one.list(runtimePod('fat', { containers: [runtimeContainer('gone', { isRunning: false })] }));
    expect(bytesOf(one)).toBeUndefined();
  });

  it('has the files that are deleted and that it keeps open, but to the kubelet', () => {
    const files = [
      { pid: 1, device: '0:57', bytes: 30 },
      { pid: 1, device: NODE, bytes: 4 },
      { pid: 2, device: '0:57', bytes: 500 },
      { pid: 2, device: IMAGES, bytes: 60 },
    ];
    expect(used({ fat: use() }).disks.facts().unaccounted.size).toBe(0);
    const of = (settings: Settings) => {
      const one = used({ fat: use() }, settings);
      one.list(runtimePod('fat'));
      one.disks.note({ kind: 'deleted', atMs: 0, files, isCut: false });
      return one;
    };
    const own = of(given);
    expect(bytesOf(own)).toEqual([130, 0, 4]);
    expect(own.disks.podDisk('fat')?.diskSeen?.deletedBytes).toBe(34);
    // Those of nobody count where they lie.
    expect([...own.disks.facts().unaccounted]).toEqual([
      ['nodefs', 4],
      ['imagefs', 90],
      ['containerfs', 90],
    ]);
    const kubelet = of(settingsOf('imagefs.available<15%', { '--compatibility': ['kubelet'] }));
    expect(bytesOf(kubelet)).toEqual([100, 0, 0]);
    expect(kubelet.disks.podDisk('fat')?.diskSeen?.deletedBytes).toBe(34);
  });
});

describe('C26: what images take that a pod alone uses', () => {
  const SPLIT = { nodefs: NODE, imagefs: IMAGES, containerfs: NODE };
  const given = settingsOf('imagefs.available<15%', { '--image-gc': ['pressure'] });
  const image = (id: string, mebibytes: number, ...usedBy: readonly string[]): ListedImage => ({
    id,
    names: [],
    sizeBytes: mebibytes * MI,
    pinned: undefined,
    usedBy,
  });
  const look = (images: readonly ListedImage[], atMs = 600_000, seenAtMs = 0): ImageLook => ({
    images,
    memory: imagesSeen(new Map(), images, seenAtMs),
    atMs,
  });
  const split = (settings = given, devices: Partial<Record<FilesystemName, string>> = SPLIT) => {
    const one = scene({ devices });
    one.told();
    one.settle(settings);
    return one;
  };
  const bytesOf = (one: ReturnType<typeof scene>, id: string) =>
    one.disks.podDisk(id)?.exclusiveImageBytes;
  const A = runtimePod('a', { containers: [runtimeContainer('a1'), runtimeContainer('a2')] });
  const B = runtimePod('b');
  const LISTED = [
    image('base', 900, 'a1', 'b'),
    image('own', 100, 'a1', 'a2'),
    image('other', 7, 'a2', 'nobody'),
    image('unused', 500),
  ];

  it('is of all its containers, and not of what anybody else uses', () => {
    const one = split();
    one.list(A, B);
    expect(one.disks.podDisk('a')).toBeUndefined();
    one.disks.noteImages(look(LISTED));
    expect([bytesOf(one, 'a'), bytesOf(one, 'b')]).toEqual([100 * MI, 0]);
    // `b` is gone, and its container with it.
    one.list(A);
    one.disks.noteImages(
      look(LISTED.map((each) => ({ ...each, usedBy: each.usedBy.filter((by) => by !== 'b') }))),
    );
    expect(bytesOf(one, 'a')).toBe(1000 * MI);
    expect(one.disks.podDisk('b')).toBeUndefined();
  });

  it('is unknown of a pod with a container that no image tells of, unless it is dead', () => {
    const one = split();
    const young = (isRunning: boolean) =>
      runtimePod('a', {
        containers: [runtimeContainer('a1'), runtimeContainer('new', { isRunning })],
      });
    one.disks.noteImages(look([image('own', 100, 'a1')]));
    one.list(young(true), B);
    expect([bytesOf(one, 'a'), bytesOf(one, 'b')]).toEqual([undefined, undefined]);
    one.list(young(false), runtimePod('empty', { containers: [] }));
    expect([bytesOf(one, 'a'), bytesOf(one, 'empty')]).toEqual([100 * MI, 0]);
  });

  it('does not count what would stay', () => {
    const one = split();
    one.list(A, B);
    const own = [image('own', 100, 'a1', 'a2'), image('of-b', 3, 'b')];
    one.disks.noteImages(look(own, 119_999));
    expect([bytesOf(one, 'a'), bytesOf(one, 'b')]).toEqual([0, 0]);
    one.disks.noteImages(look(own, 120_000));
    expect([bytesOf(one, 'a'), bytesOf(one, 'b')]).toEqual([100 * MI, 3 * MI]);
    one.disks.noteImages(look(own.map((each) => ({ ...each, pinned: 'by the runtime' }))));
    expect([bytesOf(one, 'a'), bytesOf(one, 'b')]).toEqual([0, 0]);
  });

  it('stands beside what it wrote', () => {
    const one = split();
    one.list(B);
    one.disks.noteImages(look([image('own', 100, 'b')]));
    one.disks.note({ kind: 'used', atMs: 0, tookMs: 1, containers: new Map([['b', use()]]) });
    expect(one.disks.podDisk('b')).toMatchObject({
      disk: { root: { bytes: 100 } },
      exclusiveImageBytes: 100 * MI,
    });
  });

  it('follows the layout: it counts only where nothing else lies there', () => {
    const one = split(given, DEDICATED);
    one.list(B);
    one.disks.noteImages(look([image('own', 100, 'b')]));
    expect(bytesOf(one, 'b')).toBeUndefined();
    one.settle(given, SPLIT);
    expect(bytesOf(one, 'b')).toBe(100 * MI);
    one.settle(given, DEDICATED);
    expect(bytesOf(one, 'b')).toBeUndefined();
  });

  it('is unknown by the kubelet’s rules', () => {
    const one = split(settingsOf('imagefs.available<15%', { '--compatibility': ['kubelet'] }));
    one.list(B);
    one.disks.noteImages(look([image('own', 100, 'b')]));
    expect(bytesOf(one, 'b')).toBeUndefined();
  });
});

describe('usageAfterMs', () => {
  const at = (availableBytes: number, hard = 'nodefs.available<10Gi') => {
    const one = state('nodefs', '/var/lib', NODE);
    const reading = one.reading && { ...one.reading, availableBytes };
    return usageAfterMs(settingsOf(hard), [{ ...one, reading }]);
  };

  it('is the shorter, the nearer a threshold is', () => {
    expect(at(100 * GI)).toBe(USAGE_EACH_MS.most);
    // At a gigabyte a second.
    expect(at(10 * GI + 5e9)).toBe(5000);
    expect(at(10 * GI + MI)).toBe(USAGE_EACH_MS.least);
    expect(at(GI)).toBe(USAGE_EACH_MS.least);
  });

  it('is long where no threshold is about what was measured, or nothing was', () => {
    expect(at(GI, 'memory.available<1Gi')).toBe(USAGE_EACH_MS.most);
    expect(at(GI, 'imagefs.available<1Gi')).toBe(USAGE_EACH_MS.most);
    const unread = state('nodefs', '/var/lib', undefined);
    expect(usageAfterMs(settingsOf('nodefs.available<10Gi'), [unread])).toBe(USAGE_EACH_MS.most);
  });
});

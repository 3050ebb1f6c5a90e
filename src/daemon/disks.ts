/** What is known of the disks beside their figures: where the runtime keeps things, and what pods use. */
import type { Settings } from '../config/settings.ts';
import { withContainerfs } from '../core/containerfs.ts';
import { type DiskDevices, diskOf, type FoundUse } from '../core/disk-use.ts';
import { exclusiveImages, usedImage } from '../core/image-gc.ts';
import type { FilesystemLayout } from '../core/layout.ts';
import type { PodObservation } from '../core/pod.ts';
import { nextPollMs } from '../core/polling.ts';
import { countsImages, freesSomething } from '../core/rank.ts';
import { FILESYSTEMS, type FilesystemName, SIGNALS, type Signal } from '../core/signal.ts';
import type { Threshold } from '../core/threshold.ts';
import type {
  ContainerUse,
  DeletedFiles,
  DiskFacts,
  DiskUseNotice,
  PartUse,
  RuntimeFilesystems,
} from '../ports/disk-usage.ts';
import type { FilesystemNotice, FilesystemState } from '../ports/filesystem.ts';
import type { RuntimePod } from '../ports/pod-directory.ts';
import { diskObservations } from '../sources/disk.ts';
import type { FilesystemsNotice } from '../sources/disk-usage.ts';
import { layoutOf } from '../surfaces/status.ts';
import type { ImageLook } from './reclaim.ts';

/** How often it is found out what pods use, ms: where no threshold is near, and at the fastest. */
export const USAGE_EACH_MS = { most: 60_000, least: 1000 } as const;

/** What a pod uses of the disks, as far as it was found. */
export type PodDisk = Pick<PodObservation, 'disk' | 'diskSeen' | 'exclusiveImageBytes'>;

export interface DisksInputs {
  readonly pods: () => readonly RuntimePod[];
  readonly filesystems: () => readonly FilesystemState[];
  /** The cgroup of a process as pods have theirs; undefined where it is gone. */
  readonly cgroupOf: (pid: number) => string | undefined;
}

/** The disks as far as they are known by now. */
export interface Disks {
  note(notice: FilesystemsNotice | DiskUseNotice): void;
  /** Takes in which images there are. */
  noteImages(look: ImageLook): void;
  /** Takes in what was measured; says of a path of the runtime's that cannot be, which takes its place. */
  noteMeasured(notice: FilesystemNotice): Replaced | undefined;
  /** The settings on these disks: the same object as long as nothing has changed. */
  settingsOf(given: Settings): Settings;
  facts(): DiskFacts;
  /** Other pods are there. */
  notePods(): void;
  /** By the id of a {@link RuntimePod}. */
  podDisk(podId: string): PodDisk | undefined;
  /** Whether the end of a pod is known to free nothing of the disk that a signal is about. */
  isNothing(podId: string, signal: Signal): boolean;
}

/** A path that cannot be measured, and the one in its place, if there is one. */
export interface Replaced {
  readonly name: FilesystemName;
  readonly path: string;
  readonly error: string;
  readonly by: string | undefined;
}

type Told = Exclude<FilesystemName, 'nodefs'>;
const TOLD: readonly Told[] = ['imagefs', 'containerfs'];

export function createDisks({ pods, filesystems, cgroupOf }: DisksInputs): Disks {
  let told: RuntimeFilesystems | undefined;
  let unusable: ReadonlySet<string> = new Set();
  let containers: ReadonlyMap<string, ContainerUse> = new Map();
  let isUseKnown = false;
  let deleted: readonly HeldFile[] = [];
  let isSearched = false;
  let imagesSeen: ImageLook | undefined;
  // Made when something has changed: a kill may wait for whoever asks.
  let byPod: ReadonlyMap<string, PodDisk> = new Map();
  let unaccounted: ReadonlyMap<FilesystemName, number> = new Map();
  let settled:
    | { readonly given: Settings; readonly key: string; readonly settings: Settings }
    | undefined;
  const pathOf = (name: Told): string | undefined =>
    told?.[name].find((path) => !unusable.has(path));
  const devices = (): DiskDevices => ({
    nodefs: deviceOf(filesystems(), 'nodefs'),
    containerfs: deviceOf(filesystems(), 'containerfs') ?? deviceOf(filesystems(), 'imagefs'),
  });
  const rebuild = (): void => {
    if (isSearched) unaccounted = unaccountedOn(filesystems(), deleted, pods());
    const ownImages = imagesSeen && settled && exclusiveTo(pods(), imagesSeen, settled.settings);
    if (containers.size === 0 && ownImages === undefined) {
      byPod = new Map();
      return;
    }
    const countsDeleted = settled?.given.compatibility === 'evictd';
    const now = { found: containers, deleted, devices: devices(), countsDeleted };
    byPod = new Map(
      pods().flatMap((pod) => {
        const exclusiveImageBytes = ownImages?.get(pod.id);
        const disk: PodDisk = {
          ...podDiskOf(pod, now),
          ...(exclusiveImageBytes === undefined ? {} : { exclusiveImageBytes }),
        };
        return Object.keys(disk).length === 0 ? [] : [[pod.id, disk] as const];
      }),
    );
  };
  return {
    note: (notice) => {
      switch (notice.kind) {
        case 'failed':
        case 'unknown':
          return;
        case 'found': {
          const before = told;
          told = notice.filesystems;
          // Of another place nothing is known yet.
          if (TOLD.some((name) => before?.[name].join('\0') !== told?.[name].join('\0'))) {
            unusable = new Set();
          }
          return;
        }
        case 'deleted':
          isSearched = true;
          deleted = joined(
            notice.files.map((file) => ({ ...file, cgroup: cgroupOf(file.pid) ?? '' })),
          );
          break;
        case 'used':
          containers = notice.containers;
          isUseKnown = true;
      }
      rebuild();
    },
    noteImages: (look) => {
      imagesSeen = look;
      rebuild();
    },
    noteMeasured: (notice) => {
      if (notice.kind === 'read' || notice.stale || unusable.has(notice.path)) return undefined;
      const { path, error } = notice;
      const name = TOLD.find((one) => pathOf(one) === path);
      const isRead = filesystems().some((one) => one.path === path && one.reading !== undefined);
      // What could be measured once is there, and comes back.
      if (name === undefined || isRead) return undefined;
      unusable = new Set([...unusable, path]);
      return { name, path, error, by: pathOf(name) };
    },
    settingsOf: (given) => {
      const paths = {
        ...given.filesystems,
        imagefs: given.filesystems.imagefs ?? pathOf('imagefs'),
        containerfs: given.filesystems.containerfs ?? pathOf('containerfs'),
      };
      const states = filesystems().filter(({ name, path }) => paths[name] === path);
      const { layout } = layoutOf(states);
      const ranksDisk = isUseKnown && areTried(states, paths);
      const key = JSON.stringify([paths, layout, ranksDisk]);
      if (settled?.given !== given || settled.key !== key) {
        settled = { given, key, settings: settingsWith(given, paths, layout, ranksDisk) };
        rebuild();
      }
      return settled.settings;
    },
    facts: () => ({
      filesystems: told,
      containers,
      unaccounted,
    }),
    notePods: rebuild,
    podDisk: (podId) => byPod.get(podId),
    isNothing: (podId, signal) => {
      const disk = byPod.get(podId);
      const policy = settled?.settings.policy;
      if (disk === undefined || policy === undefined) return false;
      return !freesSomething({ pids: undefined, ...disk }, signal, policy);
    },
  };
}

/** Whether each filesystem was measured, or could not be: before that another layout may come out. */
function areTried(states: readonly FilesystemState[], paths: Settings['filesystems']): boolean {
  return FILESYSTEMS.every((name) => {
    const state = states.find((one) => one.name === name);
    return paths[name] === undefined || state?.reading !== undefined || state?.error !== undefined;
  });
}

interface HeldFile extends Omit<DeletedFiles, 'pid'> {
  /** Empty where it is not known. */
  readonly cgroup: string;
}

/** Of one cgroup and device together. */
function joined(files: readonly HeldFile[]): readonly HeldFile[] {
  const sums = new Map<string, HeldFile>();
  for (const { device, cgroup, bytes } of files) {
    const key = `${device} ${cgroup}`;
    sums.set(key, { device, cgroup, bytes: bytes + (sums.get(key)?.bytes ?? 0) });
  }
  return [...sums.values()];
}

function deviceOf(states: readonly FilesystemState[], name: FilesystemName): string | undefined {
  return states.find((state) => state.name === name)?.reading?.device;
}

/** What is decided by, where filesystems lie so. */
function settingsWith(
  given: Settings,
  filesystems: Settings['filesystems'],
  layout: FilesystemLayout,
  ranksDisk: boolean,
): Settings {
  const { policy } = given;
  const thresholds = thresholdsFor(policy.thresholds, filesystems, layout, given);
  return {
    ...given,
    filesystems,
    givenThresholds: policy.thresholds,
    policy: { ...policy, thresholds, layout, ranksDisk },
  };
}

/** Those of containerfs follow the others, but where it is a filesystem of its own. */
function thresholdsFor(
  thresholds: readonly Threshold[],
  { containerfs }: Settings['filesystems'],
  layout: FilesystemLayout,
  { policy: { rules } }: Settings,
): readonly Threshold[] {
  if (containerfs === undefined || layout === 'separateContainerfs') return thresholds;
  const dedicatedImageFs = layout !== 'single';
  const splitImageFs = layout === 'splitImagefs';
  return withContainerfs(thresholds, { dedicatedImageFs, splitImageFs }, rules).later;
}

/** Whether a threshold is about a disk. */
export function watchesDisks({ policy }: Settings): boolean {
  return policy.thresholds.some(({ signal }) => SIGNALS[signal].filesystem !== undefined);
}

/**
 * How long after the last round it is to be found out again what pods use, ms: the sooner, the nearer a
 * threshold is.
 */
export function usageAfterMs(
  { policy, polling }: Settings,
  states: readonly FilesystemState[],
): number {
  const { most, least } = USAGE_EACH_MS;
  const waits = states.flatMap(({ name, reading }) =>
    reading === undefined
      ? []
      : diskObservations(name, reading).map((observation) => {
          const { signal } = observation;
          const own = policy.thresholds.filter((threshold) => threshold.signal === signal);
          const pace = { ...polling[SIGNALS[signal].poll], floorMs: least };
          return nextPollMs(own, undefined, observation, most, pace);
        }),
  );
  return Math.min(most, ...waits);
}

/**
 * What images take that a pod alone uses, by its id, where nothing else lies on their filesystem. Of a pod of
 * which a container runs that no image tells of (it may be younger than the look) that is unknown.
 */
function exclusiveTo(
  pods: readonly RuntimePod[],
  { images, memory, atMs }: ImageLook,
  { policy, garbage }: Settings,
): ReadonlyMap<string, number> | undefined {
  if (!countsImages('imagefs.available', policy)) return undefined;
  const podOf = new Map(
    pods.flatMap(({ id, containers }) => containers.map((one) => [one.id, id] as const)),
  );
  const used = images.map((image) => usedImage(image, memory, garbage.imageMinimumAgeMs, atMs));
  const sums = exclusiveImages(used, (container) => podOf.get(container));
  const isTold = new Set(images.flatMap(({ usedBy }) => usedBy));
  return new Map(
    pods
      .filter(({ containers }) =>
        containers.every(({ id, isRunning }) => !isRunning || isTold.has(id)),
      )
      .map(({ id }) => [id, sums.get(id) ?? 0]),
  );
}

/** What pods' use is made of. */
interface Found {
  readonly found: ReadonlyMap<string, ContainerUse>;
  readonly deleted: readonly HeldFile[];
  readonly devices: DiskDevices;
  /** Whether what is deleted and open counts: the kubelet takes no notice of it. */
  readonly countsDeleted: boolean;
}

/** Undefined where it is not known of a container that runs. */
function podDiskOf(
  { cgroups, containers }: RuntimePod,
  { found, deleted, devices, countsDeleted }: Found,
): Required<Pick<PodObservation, 'disk' | 'diskSeen'>> | undefined {
  const known = new Map<string, ContainerUse>();
  for (const { id, isRunning } of containers) {
    const use = found.get(id);
    if (isRunning && use?.layer === undefined) return undefined;
    if (use !== undefined) known.set(id, use);
  }
  const volumes = new Map([...known.values()].flatMap(({ volumes: own }) => [...own]));
  const parts = [
    ...[...known.values()].flatMap(({ layer, logs }) => [
      ...partOf('root', layer),
      ...partOf('logs', logs),
    ]),
    ...[...volumes.values()].flatMap((volume) => partOf('localVolumes', volume)),
  ];
  if (parts.length === 0) return undefined;
  const isUntold = [...known.values()].some((use) => use.isUntold);
  const open = deleted.filter((file) => cgroups.some((one) => isWithin(file.cgroup, one)));
  const uses = [
    ...parts.map(({ use }) => use),
    ...(countsDeleted ? open.map((file) => deletedUse(file, devices)) : []),
    ...(isUntold ? UNTOLD : []),
  ];
  const diskSeen = {
    atMs: Math.min(...parts.map(({ atMs }) => atMs)),
    isCut: isUntold || parts.some(({ cut }) => cut !== undefined),
    deletedBytes: open.reduce((sum, { bytes }) => sum + bytes, 0),
  };
  return { disk: diskOf(uses, devices), diskSeen };
}

const CUT = { isLeast: true, isCut: true } as const;

/** Of parts that nobody told: there may be more. */
const UNTOLD = (['logs', 'localVolumes'] as const).map(
  (part): FoundUse => ({
    part,
    bytes: 0,
    inodes: 0,
    isLeast: true,
    device: undefined,
    type: undefined,
  }),
);

interface Part extends Pick<PartUse, 'atMs' | 'cut'> {
  readonly use: FoundUse;
}

function partOf(part: FoundUse['part'], found: PartUse | undefined): readonly Part[] {
  if (found === undefined) return [];
  const { atMs, cut, ...use } = found;
  return [{ use: { part, ...use, ...(cut === undefined ? {} : CUT) }, atMs, cut }];
}

/**
 * What is deleted and open comes back with the process. A file of a container's own is one of its overlay, whose
 * device is none of the filesystems'.
 */
function deletedUse({ device, bytes }: HeldFile, { nodefs, containerfs }: DiskDevices): FoundUse {
  const isOfNode = device === nodefs && device !== containerfs;
  return {
    part: isOfNode ? 'localVolumes' : 'root',
    bytes,
    inodes: 1,
    device: undefined,
    type: undefined,
  };
}

function isWithin(cgroup: string, top: string): boolean {
  return cgroup === top || cgroup.startsWith(`${top}/`);
}

/** By filesystem, what is deleted and open there; of one that has several names, by each. */
function unaccountedOn(
  states: readonly FilesystemState[],
  deleted: readonly HeldFile[],
  pods: readonly RuntimePod[],
): ReadonlyMap<FilesystemName, number> {
  const known = new Map(
    FILESYSTEMS.flatMap((name) => {
      const device = deviceOf(states, name);
      return device === undefined ? [] : [[name, device] as const];
    }),
  );
  const layers = known.get('containerfs') ?? known.get('imagefs');
  const isKnown = new Set(known.values());
  const found = new Map<FilesystemName, number>([...known.keys()].map((name) => [name, 0]));
  for (const { device, bytes, cgroup } of deleted) {
    const isOfPod = pods.some((pod) => pod.cgroups.some((one) => isWithin(cgroup, one)));
    const on = isKnown.has(device) ? device : isOfPod ? layers : undefined;
    for (const [name, own] of known) {
      if (own === on) found.set(name, (found.get(name) ?? 0) + bytes);
    }
  }
  return found;
}

/** What a runtime that speaks CRI v1 knows of disks. */
import path from 'node:path';
import { parseMount } from '../../kernel/mountinfo.ts';
import type {
  ContainerDisk,
  DiskTeller,
  Layer,
  Place,
  RuntimeFilesystems,
} from '../../ports/disk-usage.ts';
import { placeBelow } from '../shared/place.ts';
import type { CriClient } from './client.ts';

/** How long one call may take, ms: nobody waits for it, and a busy runtime adds up long lists. */
const DISK_CALL_DEADLINE_MS = 10_000;

/**
 * How long what the runtime tells of all layers is awaited, ms, and while it does not come: one shim that hangs holds
 * up the figures of all, and layers can be walked instead.
 */
const STATS_DEADLINE_MS = { usual: 2000, late: 250 } as const;

/** How long the details of one container are awaited, ms, and how soon one that did not tell them is asked again. */
const DETAILS_DEADLINE_MS = 2000;
const DETAILS_AGAIN_MS = 30_000;

/** How many may fail in one round before the others are left for the next one. */
const MOST_DETAILS_FAILED = 8;

/** How many containers are looked at, and how many are asked for their details at a time. */
const MOST_CONTAINERS = 20_000;
const ASKED_AT_ONCE = 4;

/** Where a kubelet keeps the emptyDir volumes of a pod, below its root. */
const EMPTY_DIRS = /^pods\/([^/]+)\/volumes\/kubernetes\.io~empty-dir\/([^/]+)(\/|$)/;

export interface CriDisksInputs {
  readonly client: CriClient;
  /** Where the kubelet keeps the pods' volumes: what is mounted from elsewhere is no pod's own. */
  readonly kubeletRootDir: string;
  /** Where pods' logs are: what lies elsewhere is not looked at. */
  readonly podLogsDir: string;
  /** Milliseconds since 1970: the runtime's times are by that clock. */
  readonly wallClock: () => number;
  /** The text of this process's mountinfo: it tells where a layer is, which CRI does not. */
  readonly mountinfo: () => Promise<string>;
}

interface FilesystemUsage {
  readonly timestamp: string;
  readonly fsId: { readonly mountpoint: string } | null;
  readonly usedBytes: { readonly value: string } | null;
  readonly inodesUsed: { readonly value: string } | null;
}

interface ContainerStats {
  readonly attributes: { readonly id: string } | null;
  readonly writableLayer: FilesystemUsage | null;
}

/** What of a container does not change. */
interface Details {
  readonly logs: Place | undefined;
  readonly volumes: ContainerDisk['volumes'];
}

const NO_DETAILS: Details = { logs: undefined, volumes: [] };
const UNTOLD = { ...NO_DETAILS, isUntold: true } as const;

/** How often it is looked where the layer of a container is, before it is left to what the runtime tells. */
const LAYER_LOOKS = 3;

export function criDisks({
  client,
  kubeletRootDir,
  podLogsDir,
  wallClock,
  mountinfo,
}: CriDisksInputs): DiskTeller {
  const upperDirs = new Map<
    string,
    { readonly place: Place | undefined; readonly looks: number }
  >();
  let root: string | undefined;
  /** Read only where a container is new: there may be many mounts. */
  const findLayers = async (ids: ReadonlySet<string>): Promise<void> => {
    for (const id of upperDirs.keys()) if (!ids.has(id)) upperDirs.delete(id);
    const isLookedFor = (id: string): boolean => {
      const known = upperDirs.get(id);
      return known === undefined || (known.place === undefined && known.looks < LAYER_LOOKS);
    };
    const missing = new Set([...ids].filter(isLookedFor));
    if (missing.size === 0 || root === undefined) return;
    const found = upperDirsIn(await mountinfo(), missing, root);
    for (const id of missing) {
      const looks = (upperDirs.get(id)?.looks ?? 0) + 1;
      upperDirs.set(id, { place: found.get(id), looks });
    }
  };
  const details = new Map<string, Details>();
  /** When (by the wall clock) a container did not tell its details, by its id. */
  const failedAtMs = new Map<string, number>();
  /** The last that was told of layers. */
  let layers: ReadonlyMap<string, FilesystemUsage | null> = new Map();
  let isLate = false;
  const call = <Response>(
    method: string,
    request: object = {},
    deadlineMs: number = DISK_CALL_DEADLINE_MS,
  ): Promise<Response> => client.call<Response>(method, request, deadlineMs);
  const learnLayers = async (): Promise<void> => {
    try {
      const { stats } = await call<{ readonly stats: readonly ContainerStats[] }>(
        'ListContainerStats',
        {},
        isLate ? STATS_DEADLINE_MS.late : STATS_DEADLINE_MS.usual,
      );
      layers = new Map(stats.map((one) => [one.attributes?.id ?? '', one.writableLayer]));
      isLate = false;
    } catch {
      // What was told before grows old, which has layers walked.
      isLate = true;
    }
  };
  const detailsOf = async (container: ListedContainer): Promise<Details> => {
    const { status } = await call<{ readonly status: ContainerStatus | null }>(
      'ContainerStatus',
      { containerId: container.id },
      DETAILS_DEADLINE_MS,
    ).catch(unlessGone);
    if (status === null || status === undefined) return NO_DETAILS;
    return {
      logs: logPlace(status.logPath, podLogsDir),
      volumes: volumesOf(status.mounts, kubeletRootDir),
    };
  };
  const learn = async (containers: readonly ListedContainer[]): Promise<void> => {
    const ids = new Set(containers.map(({ id }) => id));
    for (const id of details.keys()) if (!ids.has(id)) details.delete(id);
    for (const id of failedAtMs.keys()) if (!ids.has(id)) failedAtMs.delete(id);
    const nowMs = wallClock();
    const unknown = containers.filter(({ id }) => {
      // The clock may have been set.
      const sinceMs = Math.abs(nowMs - (failedAtMs.get(id) ?? Number.NEGATIVE_INFINITY));
      return !details.has(id) && sinceMs >= DETAILS_AGAIN_MS;
    });
    let failed = 0;
    const ask = async (container: ListedContainer): Promise<void> => {
      try {
        details.set(container.id, await detailsOf(container));
        failedAtMs.delete(container.id);
      } catch (error) {
        if ((error as { readonly code?: number }).code === UNAVAILABLE) throw error;
        failed += 1;
        failedAtMs.set(container.id, nowMs);
      }
    };
    while (unknown.length > 0 && failed < MOST_DETAILS_FAILED) {
      await Promise.all(unknown.splice(0, ASKED_AT_ONCE).map(ask));
    }
  };
  return {
    filesystems: async () => {
      const answer = await call<{
        readonly imageFilesystems: readonly FilesystemUsage[];
        readonly containerFilesystems: readonly FilesystemUsage[];
      }>('ImageFsInfo');
      const found = filesystemsOf(answer.imageFilesystems, answer.containerFilesystems);
      root = found.containerfs.at(-1);
      return found;
    },
    containers: async () => {
      const [{ containers }] = await Promise.all([
        call<{ readonly containers: readonly ListedContainer[] }>('ListContainers'),
        learnLayers(),
      ]);
      const listed = containers.slice(0, MOST_CONTAINERS);
      await learn(listed);
      await findLayers(new Set(isLate ? listed.map(({ id }) => id) : layers.keys()));
      const nowMs = wallClock();
      return listed.map(({ id }): ContainerDisk => {
        const layer = layerOf(layers.get(id) ?? null, nowMs, upperDirs.get(id)?.place);
        return { id, layer, ...(details.get(id) ?? UNTOLD) };
      });
    },
  };
}

interface ListedContainer {
  readonly id: string;
}

interface Mount {
  readonly hostPath: string;
}

interface ContainerStatus {
  readonly logPath: string;
  readonly mounts: readonly Mount[];
}

/** gRPC's numbers for what is not there, and for a runtime that is away. */
const NOT_FOUND = 5;
const UNAVAILABLE = 14;

function unlessGone(error: { readonly code?: number }): { readonly status: null } {
  if (error.code === NOT_FOUND) return { status: null };
  throw error;
}

/**
 * The first of each kind counts, as for the kubelet. A path that does not exist is known of more than one
 * runtime: then the directory above it, the runtime's own root, is on the same filesystem.
 */
function filesystemsOf(
  images: readonly FilesystemUsage[],
  containers: readonly FilesystemUsage[],
): RuntimeFilesystems {
  const [image] = images;
  const imagefs = pathsOf(image);
  const own = pathsOf(containers[0]);
  const container = own.length === 0 ? image : containers[0];
  return {
    imagefs,
    containerfs: own.length === 0 ? imagefs : own,
    imageBytes: numberOf(image?.usedBytes),
    imageInodes: numberOf(image?.inodesUsed),
    containerBytes: numberOf(container?.usedBytes),
    containerInodes: numberOf(container?.inodesUsed),
  };
}

function pathsOf(usage: FilesystemUsage | undefined): readonly string[] {
  const text = usage?.fsId?.mountpoint ?? '';
  if (!path.isAbsolute(text) || text.includes('\0')) return [];
  const mountpoint = path.normalize(text);
  const above = path.dirname(mountpoint);
  return above === '/' ? [mountpoint] : [mountpoint, above];
}

function layerOf(
  usage: FilesystemUsage | null,
  nowMs: number,
  place: Place | undefined,
): Layer | undefined {
  const bytes = numberOf(usage?.usedBytes);
  if (usage === null || bytes === undefined) {
    return place === undefined ? undefined : { kind: 'at', place };
  }
  const atMs = Number(BigInt(usage.timestamp) / 1_000_000n);
  const ageMs = Math.max(0, nowMs - atMs);
  return { kind: 'told', bytes, inodes: numberOf(usage.inodesUsed), ageMs, place };
}

/** The directories in which overlays keep what containers write, as far as they lie below the runtime's root. */
function upperDirsIn(
  mountinfo: string,
  ids: ReadonlySet<string>,
  root: string,
): ReadonlyMap<string, Place> {
  const found = new Map<string, Place>();
  for (const line of mountinfo.split('\n')) {
    if (!line.includes('upperdir=')) continue;
    const mount = parseMount(line);
    const id = mount?.mountPoint.split('/').findLast((part) => ids.has(part));
    const [, upper] = /(?:^|,)upperdir=([^,]+)/.exec(mount?.superOptions ?? '') ?? [];
    const place = upper === undefined ? undefined : placeBelow(root, upper);
    if (id !== undefined && place !== undefined) found.set(id, place);
  }
  return found;
}

/** Of 64 bits, which come as text. */
function numberOf(value: { readonly value: string } | null | undefined): number | undefined {
  if (value === null || value === undefined) return undefined;
  const number = Number(value.value);
  return Number.isFinite(number) ? Math.min(number, Number.MAX_SAFE_INTEGER) : undefined;
}

/**
 * A kubelet keeps a container's logs, rotated ones too, in a directory of their own in the pod's; of a log that
 * lies in the pod's directory itself nothing is known but itself.
 */
function logPlace(logPath: string, podLogsDir: string): Place | undefined {
  const place = placeBelow(podLogsDir, logPath);
  if (place === undefined) return undefined;
  const parts = place.below.split('/');
  return parts.length < 3 ? place : { ...place, below: parts.slice(0, -1).join('/') };
}

/** The emptyDir volumes that are mounted, each once. What lies in memory is told by its filesystem. */
function volumesOf(mounts: readonly Mount[], kubeletRootDir: string): ContainerDisk['volumes'] {
  const volumes = new Map<string, ContainerDisk['volumes'][number]>();
  for (const { hostPath } of mounts) {
    const found = placeBelow(kubeletRootDir, hostPath);
    const [whole, uid, name] = (found && EMPTY_DIRS.exec(`${found.below}/`)) ?? [];
    if (found === undefined || whole === undefined || uid === undefined || name === undefined) {
      continue;
    }
    const below = `pods/${uid}/volumes/kubernetes.io~empty-dir/${name}`;
    volumes.set(below, { name, place: { ...found, below } });
  }
  return [...volumes.values()];
}

/** What a Docker Engine, or what speaks its API, knows of disks. */
import path from 'node:path';
import type Docker from 'dockerode';
import type { SchedulerLike } from 'rxjs';
import type {
  ContainerDisk,
  DiskTeller,
  Layer,
  Place,
  RuntimeFilesystems,
} from '../../ports/disk-usage.ts';
import { placeBelow } from '../shared/place.ts';
import { engineAt } from './engine.ts';

/** How long a request may take, ms: nobody waits for it. */
const REQUEST_DEADLINE_MS = 10_000;

/**
 * How often the engine is asked to add up layers itself, ms: it does so at its own priority, and in the way of its
 * other work. Only where a layer is no directory that can be looked at.
 */
export const SIZES_EACH_MS = 300_000;

/** How often the engine is asked what the layers of its images use, ms: it has that at hand. */
export const IMAGE_SIZES_EACH_MS = 60_000;

/** Since this version of its API an engine can leave the rest of its disk usage alone, which it would walk over. */
const IMAGE_SIZES_SINCE = { major: 1, minor: 42 } as const;

/** How long that may take, ms. */
const SIZES_DEADLINE_MS = 60_000;

/** How many containers are looked at, and how many are asked for their details at a time. */
const MOST_CONTAINERS = 20_000;
const ASKED_AT_ONCE = 4;

const NOT_FOUND = 404;

export interface DockerDisksInputs {
  /** The path of the engine's socket. */
  readonly socketPath: string;
  readonly scheduler: SchedulerLike;
}

/** What of a container does not change. */
interface Details {
  /** Undefined where it is no directory below the engine's root. */
  readonly layer: Place | undefined;
  readonly logs: Place | undefined;
  /** Of the engine's own driver, below its root. */
  readonly volumes: ContainerDisk['volumes'];
}

/** What of an engine's answer is looked at. */
interface Info {
  readonly DockerRootDir?: unknown;
  readonly Driver?: unknown;
}

export function dockerDisks({ socketPath, scheduler }: DockerDisksInputs): DiskTeller {
  const docker = engineAt(socketPath);
  const details = new Map<string, Details>();
  const imageSizes = imageSizesOf(docker, scheduler);
  let sizes: { readonly byId: ReadonlyMap<string, number>; readonly atMs: number } | undefined;
  let rootKnown: string | undefined;
  const infoOf = async (): Promise<{ readonly root: string; readonly driver: string }> => {
    const info = docker.info as (options: object) => Promise<Info>;
    const { DockerRootDir, Driver } = await info.call(docker, { abortSignal: deadline() });
    if (typeof DockerRootDir !== 'string' || !path.isAbsolute(DockerRootDir)) {
      throw new Error('the engine does not say where its root is');
    }
    const root = path.normalize(DockerRootDir);
    // Containers of another root have other places.
    if (root !== rootKnown) details.clear();
    rootKnown = root;
    return { root, driver: typeof Driver === 'string' ? Driver : '' };
  };
  const sizesNow = async (): Promise<ReadonlyMap<string, number>> => {
    if (sizes !== undefined && scheduler.now() - sizes.atMs < SIZES_EACH_MS) return sizes.byId;
    const listed = (await docker.listContainers({
      size: true,
      abortSignal: AbortSignal.timeout(SIZES_DEADLINE_MS),
    })) as readonly (Docker.ContainerInfo & { readonly SizeRw?: unknown })[];
    const known = listed.flatMap(({ Id, SizeRw }) =>
      typeof SizeRw === 'number' && SizeRw >= 0 ? [[Id, SizeRw] as const] : [],
    );
    sizes = { byId: new Map(known), atMs: scheduler.now() };
    return sizes.byId;
  };
  return {
    filesystems: async () => {
      const { root, driver } = await infoOf();
      return filesystemsOf(root, driver, imageSizes());
    },
    containers: async () => {
      const { root } = await infoOf();
      const all = await docker.listContainers({ all: true, abortSignal: deadline() });
      const running = all.filter(({ State }) => State === 'running').slice(0, MOST_CONTAINERS);
      await learn(docker, root, running, details);
      const shared = sharedVolumes(all);
      const found = running.flatMap(({ Id }) => {
        const known = details.get(Id);
        return known === undefined ? [] : [{ id: Id, ...known }];
      });
      const isAsked = found.some(({ layer }) => layer === undefined);
      const told = isAsked ? await sizesNow() : undefined;
      const ageMs = sizes === undefined ? 0 : scheduler.now() - sizes.atMs;
      return found.map(({ id, layer, logs, volumes }): ContainerDisk => {
        const own = volumes.filter(({ name }) => !shared.has(name));
        return { id, layer: layerOf(layer, told?.get(id), ageMs), logs, volumes: own };
      });
    },
  };
}

function deadline(): AbortSignal {
  return AbortSignal.timeout(REQUEST_DEADLINE_MS);
}

/** The driver's directory may be a mount of its own; where it has none the root stands for it. */
function filesystemsOf(
  root: string,
  driver: string,
  imageBytes: number | undefined,
): RuntimeFilesystems {
  const isName = driver !== '' && !driver.includes('/') && !driver.startsWith('.');
  const paths = isName ? [path.join(root, driver), root] : [root];
  return {
    imagefs: paths,
    containerfs: paths,
    imageBytes,
    imageInodes: undefined,
    containerBytes: undefined,
    containerInodes: undefined,
  };
}

/**
 * What the layers of images use, bytes, as the engine last said; each call has it asked again where that is due,
 * and waits for nothing. Undefined until it has said so, and of one that cannot say that alone.
 */
function imageSizesOf(docker: Docker, scheduler: SchedulerLike): () => number | undefined {
  let bytes: number | undefined;
  let askedAtMs = Number.NEGATIVE_INFINITY;
  return () => {
    if (scheduler.now() - askedAtMs >= IMAGE_SIZES_EACH_MS) {
      askedAtMs = scheduler.now();
      imageBytesOf(docker).then(
        (now) => {
          bytes = now;
        },
        () => {
          bytes = undefined;
        },
      );
    }
    return bytes;
  };
}

async function imageBytesOf(docker: Docker): Promise<number | undefined> {
  const version = docker.version as (options: object) => Promise<{ readonly ApiVersion?: unknown }>;
  const { ApiVersion } = await version.call(docker, { abortSignal: deadline() });
  const [major = 0, minor = 0] = String(ApiVersion).split('.').map(Number);
  const { major: wanted, minor: since } = IMAGE_SIZES_SINCE;
  if (!(major > wanted || (major === wanted && minor >= since))) return undefined;
  const { ImageUsage, LayersSize } = await imageUsage(docker);
  // Newer engines have it in a part of its own.
  const bytes = ImageUsage?.TotalSize ?? LayersSize;
  return typeof bytes === 'number' && bytes >= 0 ? bytes : undefined;
}

/** What of an engine's disk usage is looked at. */
interface ImageUsage {
  readonly LayersSize?: unknown;
  readonly ImageUsage?: { readonly TotalSize?: unknown } | null;
}

/** `docker.df` takes no parameters: the engine would add up containers and volumes too. */
function imageUsage(docker: Docker): Promise<ImageUsage> {
  const asked = {
    path: '/system/df?',
    method: 'GET',
    options: { type: 'image' },
    abortSignal: deadline(),
    statusCodes: { 200: true, 400: 'bad parameter', 500: 'server error' },
  };
  return new Promise((resolve, reject) => {
    docker.modem.dial(asked, (error: Error | null, answer: unknown) => {
      if (error) reject(error);
      else resolve((answer ?? {}) as ImageUsage);
    });
  });
}

function layerOf(
  place: Place | undefined,
  bytes: number | undefined,
  ageMs: number,
): Layer | undefined {
  if (place !== undefined) return { kind: 'at', place };
  return bytes === undefined
    ? undefined
    : { kind: 'told', bytes, inodes: undefined, ageMs, place: undefined };
}

/** Asks for the details of containers that are new, and forgets those that are gone. */
async function learn(
  docker: Docker,
  root: string,
  containers: readonly Docker.ContainerInfo[],
  known: Map<string, Details>,
): Promise<void> {
  const ids = new Set(containers.map(({ Id }) => Id));
  for (const id of known.keys()) if (!ids.has(id)) known.delete(id);
  const unknown = [...ids].filter((id) => !known.has(id));
  while (unknown.length > 0) {
    await Promise.all(
      unknown.splice(0, ASKED_AT_ONCE).map(async (id) => {
        const details = await detailsOf(docker, root, id);
        if (details !== undefined) known.set(id, details);
      }),
    );
  }
}

/** Undefined for one that has gone meanwhile. */
async function detailsOf(docker: Docker, root: string, id: string): Promise<Details | undefined> {
  try {
    const { GraphDriver, LogPath, Mounts } = await docker
      .getContainer(id)
      .inspect({ abortSignal: deadline() });
    const data = GraphDriver?.Data as { readonly UpperDir?: unknown } | null | undefined;
    const upper = data?.UpperDir;
    return {
      layer: typeof upper === 'string' ? placeBelow(root, upper) : undefined,
      logs: logPlace(root, LogPath, id),
      volumes: (Mounts ?? []).flatMap(({ Type, Driver, Name, Source }) => {
        const isOwn = Type === 'volume' && Driver === 'local' && Name !== undefined;
        const place = isOwn ? placeBelow(root, Source) : undefined;
        return isOwn && place !== undefined ? [{ name: Name, place }] : [];
      }),
    };
  } catch (error) {
    if ((error as { readonly statusCode?: number }).statusCode === NOT_FOUND) return undefined;
    throw error;
  }
}

/** The directory that it lies in, with what was rotated, where that is the container's own. */
function logPlace(root: string, logPath: unknown, id: string): Place | undefined {
  const place = typeof logPath === 'string' ? placeBelow(root, logPath) : undefined;
  if (place === undefined) return undefined;
  const parts = place.below.split('/').slice(0, -1);
  return parts.includes(id) ? { root, below: parts.join('/') } : place;
}

/** Those that two containers have, be they running or not: they go with neither. */
function sharedVolumes(containers: readonly Docker.ContainerInfo[]): ReadonlySet<string> {
  const seen = new Set<string>();
  const shared = new Set<string>();
  for (const { Mounts } of containers) {
    const names = new Set((Mounts ?? []).map(({ Name }) => Name).filter((name) => name));
    for (const name of names as ReadonlySet<string>) {
      if (seen.has(name)) shared.add(name);
      seen.add(name);
    }
  }
  return shared;
}

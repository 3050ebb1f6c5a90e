/** What a Docker Engine, or what speaks its API, removes: dead containers and unused images. */
import type Docker from 'dockerode';
import type { ListedImage } from '../../core/image-gc.ts';
import type { Reclaimer, Removal, RuntimeDeadContainer } from '../../ports/reclaimer.ts';
import { askAbout } from '../shared/at-once.ts';
import { type Patience, patienceOf } from '../shared/patience.ts';
import { engineAt } from './engine.ts';

/** How long a request may take, ms. */
const REQUEST_DEADLINE_MS = 2000;

/** How many containers and images are looked at. */
const MOST_LISTED = 20_000;

const NOT_FOUND = 404;
const CONFLICT = 409;

/** Those that nothing starts again by itself. */
const DEAD: readonly string[] = ['exited', 'dead'];

/** Those that are about to be started, in Docker's words and in Podman's. */
const CREATED: readonly string[] = ['created', 'configured', 'initialized'];

/** An image's label that keeps it, as the same one keeps a pod from being evicted. */
const PROTECTED_LABEL = 'evictd.protected';

/** What joins the containers of one service, the dead ones as well. */
const SERVICE_LABELS = ['com.docker.compose.project', 'com.docker.compose.service'] as const;

/**
 * A container that has exited can be started again by whoever made it: that is lost with it, and what it wrote,
 * but for its volumes.
 */
export function dockerReclaimer(socketPath: string): Reclaimer {
  const docker = engineAt(socketPath);
  const ends = new Map<string, number>();
  const listContainers = async (): Promise<readonly Docker.ContainerInfo[]> => {
    const found = await docker.listContainers({ all: true, abortSignal: deadline() });
    return found.slice(0, MOST_LISTED);
  };
  const patience = patienceOf(() => docker.listContainers({ limit: 1, abortSignal: deadline() }));
  return {
    listDead: async () => {
      const all = await listContainers();
      const dead = all.filter(({ State }) => DEAD.includes(State));
      await learnEnds(docker, dead, ends);
      return {
        containers: dead.map((container) => deadContainer(container, ends.get(container.Id))),
        sandboxes: [],
        created: all
          .filter(({ State }) => CREATED.includes(State))
          .map((container) => ({ id: container.Id, name: nameOf(container) })),
      };
    },
    listImages: async () => {
      const containers = await listContainers();
      const images = await docker.listImages({ abortSignal: deadline() });
      return images.slice(0, MOST_LISTED).map((image) => listed(image, containers));
    },
    // Not what runs by now, and no volume.
    removeContainer: (id) => removal(docker, patience, `/containers/${id}`, id),
    removeSandbox: async () => ({ kind: 'gone' }),
    removeImage: async (image) => {
      const whole = await removal(docker, patience, `/images/${image.id}`, image.id);
      if (!('detail' in whole) || !SEVERAL_NAMES.test(whole.detail)) return whole;
      try {
        // The engine looks for those who use it only at the last name.
        const user = (await listContainers()).find(({ ImageID }) => isSame(ImageID, image.id));
        if (user !== undefined) return { kind: 'inUse', detail: `used by container ${user.Id}` };
      } catch (error) {
        return failureOf(error);
      }
      return removeNames(docker, patience, image);
    },
  };
}

function deadline(): AbortSignal {
  return AbortSignal.timeout(REQUEST_DEADLINE_MS);
}

/** When those ended that are new; those that are gone are forgotten. */
async function learnEnds(
  docker: Docker,
  dead: readonly Docker.ContainerInfo[],
  ends: Map<string, number>,
): Promise<void> {
  const ids = new Set(dead.map(({ Id }) => Id));
  // One that runs by now will end anew.
  for (const id of ends.keys()) if (!ids.has(id)) ends.delete(id);
  const unknown = [...ids].filter((id) => !ends.has(id));
  await askAbout(unknown, async (id) => {
    const details = await docker
      .getContainer(id)
      .inspect({ abortSignal: deadline() })
      .catch(unlessGone);
    const endedAtMs = Date.parse(details?.State.FinishedAt ?? '');
    if (endedAtMs > 0) ends.set(id, endedAtMs);
  });
}

function unlessGone(error: { readonly statusCode?: number }): undefined {
  if (error.statusCode === NOT_FOUND) return undefined;
  throw error;
}

function deadContainer(
  container: Docker.ContainerInfo,
  endedAtMs: number | undefined,
): RuntimeDeadContainer {
  const { Id, Created, Labels } = container;
  const service = SERVICE_LABELS.map((label) => Labels[label]);
  return {
    id: Id,
    // A container that no service makes anew is nobody's attempt but its own.
    owner: service.includes(undefined) ? Id : JSON.stringify(service),
    endedAtMs: endedAtMs ?? Created * 1000,
    name: nameOf(container),
    labels: Labels,
    annotations: {},
  };
}

function nameOf({ Id, Names: [first = Id] }: Docker.ContainerInfo): string {
  return first.replace(/^\//, '');
}

function listed(
  { Id, RepoTags, RepoDigests, Size, Labels }: Docker.ImageInfo,
  containers: readonly Docker.ContainerInfo[],
): ListedImage {
  // Podman leaves out what it does not have.
  const labels: Readonly<Record<string, string>> | null | undefined = Labels;
  const isKept = labels?.[PROTECTED_LABEL] === 'true';
  return {
    id: Id,
    names: [...(RepoTags ?? []), ...(RepoDigests ?? [])].filter((name) => !name.includes('<none>')),
    sizeBytes: Size,
    pinned: isKept ? `label ${PROTECTED_LABEL}` : undefined,
    usedBy: containers.filter(({ ImageID }) => isSame(ImageID, Id)).map(({ Id: id }) => id),
  };
}

/** Podman's list of containers has ids without their kind. */
function isSame(one: string, other: string): boolean {
  return one.replace(/^sha256:/, '') === other.replace(/^sha256:/, '');
}

/** In which words Docker and Podman refuse to remove an image of several names by its id. */
const SEVERAL_NAMES = /multiple repositories|more than one tag/;

/**
 * One after the other, the last with the image. Where that is refused, since somebody uses it by now, those that
 * went before are put back: who uses an image is not to lose a name of it.
 */
async function removeNames(
  docker: Docker,
  patience: Patience,
  { id, names }: ListedImage,
): Promise<Removal> {
  const removed: string[] = [];
  for (const name of names) {
    const one = await removal(docker, patience, `/images/${name}`, name);
    if (one.kind === 'failed' || one.kind === 'inUse') {
      const lost = await putBack(docker, id, removed);
      if (lost.length === 0) return one;
      const detail = `${one.detail}; names that could not be put back: ${lost.join(', ')}`;
      return { kind: 'failed', detail, isAway: false };
    }
    // A digest is gone with the tags, and with the image.
    if (one.kind === 'removed') removed.push(name);
  }
  return removed.length > 0 ? { kind: 'removed' } : { kind: 'gone' };
}

/** Those that could not be: a digest only comes with a pull. */
async function putBack(
  docker: Docker,
  id: string,
  names: readonly string[],
): Promise<readonly string[]> {
  const lost: string[] = [];
  for (const name of names) {
    const [, repo = '', tag = ''] = TAGGED.exec(name) ?? [];
    try {
      if (repo === '') throw new Error('no tag');
      await docker.getImage(id).tag({ repo, tag, abortSignal: deadline() });
    } catch {
      lost.push(name);
    }
  }
  return lost;
}

/** A name with a tag: a port may be in what is before it. */
const TAGGED = /^([^@]+):([^:/@]+)$/;

/** What an id or a name may be made of: text from outside becomes a part of a path. */
const NAME = /^[A-Za-z0-9][\w.:/@+-]*$/;

async function removal(
  docker: Docker,
  patience: Patience,
  path: string,
  name: string,
): Promise<Removal> {
  if (!NAME.test(name) || name.includes('..')) {
    return { kind: 'failed', detail: 'no name that an engine gives', isAway: false };
  }
  return patience(path, (deadlineMs) =>
    request(docker, path, deadlineMs).then((): Removal => ({ kind: 'removed' }), failureOf),
  );
}

function request(docker: Docker, path: string, deadlineMs: number): Promise<void> {
  const options = {
    path,
    method: 'DELETE',
    abortSignal: AbortSignal.timeout(deadlineMs),
    statusCodes: { 200: true, 204: true },
  };
  return new Promise((resolve, reject) => {
    docker.modem.dial(options, (error: unknown) => {
      if (error === null || error === undefined) resolve();
      else reject(error);
    });
  });
}

function failureOf(error: unknown): Removal {
  const { statusCode, message = String(error) } = error as {
    readonly statusCode?: number;
    readonly message?: string;
  };
  if (statusCode === NOT_FOUND) return { kind: 'gone' };
  if (statusCode === CONFLICT) return { kind: 'inUse', detail: message };
  return { kind: 'failed', detail: message, isAway: statusCode === undefined };
}

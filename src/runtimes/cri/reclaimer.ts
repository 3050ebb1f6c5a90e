/** What a runtime that speaks CRI v1 removes: dead containers, dead sandboxes, unused images. */
import type { ListedImage } from '../../core/image-gc.ts';
import type {
  DeadListing,
  Reclaimer,
  Removal,
  RuntimeDeadContainer,
  RuntimeDeadSandbox,
} from '../../ports/reclaimer.ts';
import { askAbout } from '../shared/at-once.ts';
import { patienceOf } from '../shared/patience.ts';
import type { CriClient } from './client.ts';
import type { Logs } from './logs.ts';

/** How many sandboxes, containers and images are looked at. */
const MOST_LISTED = 20_000;

/** gRPC's numbers. */
const GRPC = {
  deadlineExceeded: 4,
  notFound: 5,
  failedPrecondition: 9,
  unimplemented: 12,
  unavailable: 14,
} as const;

const NANO_IN_MS = 1_000_000n;

interface Sandbox {
  readonly id: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
  } | null;
  readonly state: string;
  readonly createdAt: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

interface ImageSpec {
  readonly image: string;
}

interface Container {
  readonly id: string;
  readonly podSandboxId: string;
  readonly metadata: { readonly name: string } | null;
  readonly image: ImageSpec | null;
  readonly imageRef: string;
  readonly imageId: string;
  readonly state: string;
  readonly createdAt: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

interface Image {
  readonly id: string;
  readonly repoTags: readonly string[];
  readonly repoDigests: readonly string[];
  readonly size: string;
  readonly pinned: boolean;
}

interface ContainerStatusResponse {
  readonly status: {
    readonly state: string;
    readonly finishedAt: string;
    readonly mounts: readonly { readonly image: ImageSpec | null }[];
    readonly logPath: string;
  } | null;
}

/** What of a container does not change as long as its state does not. */
interface Details {
  /** ms since 1970; undefined where it is not known. */
  readonly endedAtMs: number | undefined;
  /** The images that are mounted in it as volumes. */
  readonly volumes: readonly string[];
  /** As whoever made it said. */
  readonly logPath: string;
}

/** Of containers only one that has exited is dead, of sandboxes one that is not ready and runs nothing. */
export function criReclaimer(client: CriClient, logs: Logs): Reclaimer {
  const known = new Map<string, Details>();
  /** Of the last listing: the log of each container that is left, and those that were in each dead sandbox. */
  const logOf = new Map<string, string>();
  let logsIn: ReadonlyMap<string, readonly string[]> = new Map();
  const pauseImages = new Map<string, string | undefined>();
  const listContainers = async (): Promise<readonly Container[]> => {
    const { containers } = await client.call<{ readonly containers: readonly Container[] }>(
      'ListContainers',
    );
    return containers.slice(0, MOST_LISTED);
  };
  const listSandboxes = async (): Promise<readonly Sandbox[]> => {
    const { items } = await client.call<{ readonly items: readonly Sandbox[] }>('ListPodSandbox');
    return items.slice(0, MOST_LISTED);
  };
  const patience = patienceOf(() => client.call('Version'));
  const remove = (method: string, request: object): Promise<Removal> =>
    patience(`${method} ${JSON.stringify(request)}`, (deadlineMs) =>
      removal(client, method, request, deadlineMs),
    );
  const detailsOf = (container: Container): Details | undefined => known.get(keyOf(container));
  /** Those of a sandbox are listed after it, so that it lacks none. */
  const list = async (): Promise<[readonly Sandbox[], readonly Container[]]> => {
    const sandboxes = await listSandboxes();
    const containers = await listContainers();
    await learn(client, containers, known);
    return [sandboxes, containers];
  };
  return {
    listDead: async () => {
      const [sandboxes, containers] = await list();
      const dead = deadOf(sandboxes, containers, detailsOf);
      const found = new Map(
        containers.map((container) => [container.id, detailsOf(container)?.logPath ?? '']),
      );
      logOf.clear();
      for (const [id, logPath] of found) logOf.set(id, logPath);
      logsIn = new Map(
        dead.sandboxes.map(({ id, containers: own }) => [
          id,
          // What was in it may be gone since.
          [...new Set([...(logsIn.get(id) ?? []), ...own.flatMap((one) => found.get(one) ?? [])])],
        ]),
      );
      return dead;
    },
    listImages: async () => {
      const [sandboxes, containers] = await list();
      await learnPauseImages(client, sandboxes, pauseImages);
      const [own, { images }] = await Promise.all([
        ownPauseImage(client),
        client.call<{ readonly images: readonly Image[] }>('ListImages'),
      ]);
      const pauses = new Set([own, ...pauseImages.values()].filter((name) => name !== undefined));
      const users = usersOf(containers, detailsOf);
      return images.slice(0, MOST_LISTED).map((image) => listed(image, users, pauses));
    },
    removeContainer: async (containerId) => {
      const use = await useOf(async () => {
        const { status } = await client.call<ContainerStatusResponse>('ContainerStatus', {
          containerId,
        });
        return status === null || isDead(status) ? undefined : `the container is ${status.state}`;
      });
      if (use !== undefined) return use;
      const removed = await remove('RemoveContainer', { containerId });
      const own = logOf.get(containerId) ?? '';
      if (removed.kind === 'removed' || removed.kind === 'gone') logOf.delete(containerId);
      return withLogs(removed, [own], (logPath) => logs.remove(logPath, logOf.values()));
    },
    removeSandbox: async (podSandboxId) => {
      const use = await useOf(async () => {
        const answer = await client.call<PodSandboxStatusResponse>('PodSandboxStatus', {
          podSandboxId,
        });
        const state = answer.status?.state ?? NOT_READY;
        if (state !== NOT_READY) return `the sandbox is ${state}`;
        const own = (await listContainers()).filter((one) => one.podSandboxId === podSandboxId);
        const alive = own.find((one) => !isDead(one));
        return alive && `its container ${alive.id} is ${alive.state}`;
      });
      if (use !== undefined) return use;
      const removed = await remove('RemovePodSandbox', { podSandboxId });
      return withLogs(removed, logsIn.get(podSandboxId) ?? [], logs.tidy);
    },
    removeImage: async (image) => {
      const use = await useOf(async () => {
        const containers = await listContainers();
        await learn(client, containers, known);
        const [user] = usersIn(image, usersOf(containers, detailsOf));
        return user && `used by container ${user}`;
      });
      if (use !== undefined) return use;
      return remove('RemoveImage', { image: { image: image.id } });
    },
  };
}

function keyOf({ id, state }: Container): string {
  return `${id} ${state}`;
}

function isDead({ state }: Pick<Container, 'state'>): boolean {
  return state === 'CONTAINER_EXITED';
}

const NOT_READY = 'SANDBOX_NOTREADY';

/**
 * Why something is not to be removed, as it is right before: containerd removes images that are used, and stops
 * what runs to remove it.
 */
async function useOf(ask: () => Promise<string | undefined>): Promise<Removal | undefined> {
  try {
    const detail = await ask();
    return detail === undefined ? undefined : { kind: 'inUse', detail };
  } catch (error) {
    return failureOf(error);
  }
}

/** Asks for what a list of containers does not tell of those that are new, and forgets those that are gone. */
async function learn(
  client: CriClient,
  containers: readonly Container[],
  known: Map<string, Details>,
): Promise<void> {
  const keys = new Set(containers.map(keyOf));
  for (const key of known.keys()) if (!keys.has(key)) known.delete(key);
  const unknown = containers.filter((container) => !known.has(keyOf(container)));
  await askAbout(unknown, async (container) => {
    const answer = await client
      .call<ContainerStatusResponse>('ContainerStatus', { containerId: container.id })
      .catch(unless(GRPC.notFound));
    if (answer === undefined || answer.status === null) return;
    const { finishedAt, mounts, logPath } = answer.status;
    known.set(keyOf(container), {
      endedAtMs: timeOf(finishedAt),
      volumes: mounts.flatMap(({ image }) => (image === null ? [] : [image.image])),
      logPath,
    });
  });
}

function unless(code: number): (error: { readonly code?: number }) => undefined {
  return (error) => {
    if (error.code === code) return undefined;
    throw error;
  };
}

/** Nanoseconds since 1970, 0 for never. */
function timeOf(nanoseconds: string): number | undefined {
  const ms = Number(BigInt(nanoseconds) / NANO_IN_MS);
  return ms > 0 ? ms : undefined;
}

function deadOf(
  sandboxes: readonly Sandbox[],
  containers: readonly Container[],
  detailsOf: (container: Container) => Details | undefined,
): DeadListing {
  const sandboxOf = new Map(sandboxes.map((sandbox) => [sandbox.id, sandbox]));
  const inSandbox = new Map<string, Container[]>();
  for (const container of containers) {
    const others = inSandbox.get(container.podSandboxId);
    if (others === undefined) inSandbox.set(container.podSandboxId, [container]);
    else others.push(container);
  }
  const endOf = (container: Container): number =>
    detailsOf(container)?.endedAtMs ?? timeOf(container.createdAt) ?? 0;
  const nameIn = ({ podSandboxId, metadata }: Container): string =>
    `${nameOf(sandboxOf.get(podSandboxId))}/${metadata?.name ?? ''}`;
  return {
    created: containers
      .filter(({ state }) => state === 'CONTAINER_CREATED')
      .map((container) => ({ id: container.id, name: nameIn(container) })),
    containers: containers.filter(isDead).map((container): RuntimeDeadContainer => {
      const sandbox = sandboxOf.get(container.podSandboxId);
      const { id, metadata, labels, annotations } = container;
      const own = metadata?.name ?? '';
      return {
        id,
        owner: JSON.stringify([sandbox?.metadata?.uid ?? container.podSandboxId, own]),
        endedAtMs: endOf(container),
        ofLivingPod: sandbox?.state === 'SANDBOX_READY',
        name: nameIn(container),
        labels,
        annotations,
        pod: sandbox && { labels: sandbox.labels, annotations: sandbox.annotations },
      };
    }),
    sandboxes: sandboxes.flatMap((sandbox): readonly RuntimeDeadSandbox[] => {
      const own = inSandbox.get(sandbox.id) ?? [];
      if (sandbox.state !== NOT_READY || !own.every(isDead)) return [];
      return [
        {
          id: sandbox.id,
          owner: sandbox.metadata?.uid ?? sandbox.id,
          endedAtMs: Math.max(timeOf(sandbox.createdAt) ?? 0, ...own.map(endOf)),
          containers: own.map(({ id }) => id),
          name: nameOf(sandbox),
          labels: sandbox.labels,
          annotations: sandbox.annotations,
        },
      ];
    }),
  };
}

function nameOf(sandbox: Sandbox | undefined): string {
  if (sandbox === undefined || sandbox.metadata === null) return sandbox?.id ?? '';
  return `${sandbox.metadata.namespace}/${sandbox.metadata.name}`;
}

/** By all that a container may call an image: who uses it. */
type Users = ReadonlyMap<string, readonly string[]>;

function usersOf(
  containers: readonly Container[],
  detailsOf: (container: Container) => Details | undefined,
): Users {
  const users = new Map<string, string[]>();
  for (const container of containers) {
    const { image, imageRef, imageId } = container;
    const volumes = detailsOf(container)?.volumes ?? [];
    for (const name of new Set([image?.image ?? '', imageRef, imageId, ...volumes])) {
      if (name === '') continue;
      const others = users.get(name);
      if (others === undefined) users.set(name, [container.id]);
      else others.push(container.id);
    }
  }
  return users;
}

function usersIn({ id, names }: Pick<ListedImage, 'id' | 'names'>, users: Users) {
  return [...new Set([id, ...names].flatMap((name) => users.get(name) ?? []))];
}

function listed(
  { id, repoTags, repoDigests, size, pinned }: Image,
  users: Users,
  pauses: ReadonlySet<string>,
): ListedImage {
  const names = [...repoTags, ...repoDigests];
  const isPause = [id, ...names].some((name) => pauses.has(name));
  return {
    id,
    names,
    sizeBytes: Number(size),
    pinned: pinned ? 'pinned by the runtime' : isPause ? 'sandboxes are made of it' : undefined,
    usedBy: usersIn({ id, names }, users),
  };
}

/** What sandboxes are made of is in no list of containers, and older runtimes do not pin it. */
async function learnPauseImages(
  client: CriClient,
  sandboxes: readonly Sandbox[],
  known: Map<string, string | undefined>,
): Promise<void> {
  const ids = new Set(sandboxes.map(({ id }) => id));
  for (const id of known.keys()) if (!ids.has(id)) known.delete(id);
  const unknown = [...ids].filter((id) => !known.has(id));
  await askAbout(unknown, async (podSandboxId) => {
    const answer = await client
      .call<Verbose>('PodSandboxStatus', { podSandboxId, verbose: true })
      .catch(unless(GRPC.notFound));
    known.set(podSandboxId, textIn(answer?.info['info'], 'image'));
  });
}

/** The one that the next sandbox is made of, where the runtime says so. */
async function ownPauseImage(client: CriClient): Promise<string | undefined> {
  const answer = await client
    .call<Verbose>('Status', { verbose: true })
    .catch(unless(GRPC.unimplemented));
  return textIn(answer?.info['config'], 'sandboxImage');
}

interface PodSandboxStatusResponse {
  readonly status: { readonly state: string } | null;
}

interface Verbose {
  readonly info: Readonly<Record<string, string>>;
}

/** What a runtime says beyond the protocol is text from outside, and may be anything. */
function textIn(json: string | undefined, name: string): string | undefined {
  try {
    const value: unknown = JSON.parse(json ?? '');
    if (typeof value !== 'object' || value === null) return undefined;
    const text = (value as Readonly<Record<string, unknown>>)[name];
    return typeof text === 'string' && text !== '' ? text : undefined;
  } catch {
    return undefined;
  }
}

async function removal(
  client: CriClient,
  method: string,
  request: object,
  deadlineMs: number,
): Promise<Removal> {
  try {
    await client.call(method, request, deadlineMs);
    return { kind: 'removed' };
  } catch (error) {
    return failureOf(error);
  }
}

/** The runtime leaves logs to whoever had the container made: they go with it. */
async function withLogs(
  removed: Removal,
  paths: readonly string[],
  act: (logPath: string) => Promise<void>,
): Promise<Removal> {
  if (removed.kind !== 'removed') return removed;
  try {
    for (const path of new Set(paths)) if (path !== '') await act(path);
    return removed;
  } catch (error) {
    const detail = `removed, but not its log: ${error instanceof Error ? error.message : error}`;
    return { kind: 'failed', detail, isAway: false };
  }
}

/** CRI has no number for what is in use: containerd and CRI-O say it in words. */
const IN_USE = /\b(in use|being used|used by|still running)\b/i;

function failureOf(error: unknown): Removal {
  const { code, message = String(error) } = error as {
    readonly code?: number;
    readonly message?: string;
  };
  if (code === GRPC.notFound) return { kind: 'gone' };
  if (code === GRPC.failedPrecondition || IN_USE.test(message)) {
    return { kind: 'inUse', detail: message };
  }
  const isAway = code === GRPC.deadlineExceeded || code === GRPC.unavailable;
  return { kind: 'failed', detail: message, isAway };
}

/** The pods of a Docker Engine, or of what speaks its API: containers, each by itself or several together. */
import Docker from 'dockerode';
import { type SchedulerLike, tap } from 'rxjs';
import type { PodDirectory, RuntimePod } from '../../ports/pod-directory.ts';
import { listingsOf } from '../shared/listings.ts';
import { questions } from '../shared/questions.ts';
import { engineAt } from './engine.ts';
import { type Details, detailsIn, entriesIn, fieldsOf } from './entries.ts';
import { changesOf } from './events.ts';
import { type ListedContainer, type PodGrouping, podsOf } from './pods.ts';
import { dockerStopping } from './stopping.ts';

/** How often containers are listed although no event told of a change, ms. */
export const LIST_EACH_MS = 10_000;

/** The same at most, where one did not tell of itself. */
const LIST_SOON_MS = 1000;

/** How long a request may take, ms. */
const REQUEST_DEADLINE_MS = 2000;

/** How many containers are looked at. */
const MOST_LISTED = 20_000;

/** HTTP's number. */
const NOT_FOUND = 404;

export interface DockerDirectoryInputs {
  /** The path of the engine's socket. */
  readonly socketPath: string;
  readonly scheduler: SchedulerLike;
  /** ms since 1970: engines tell times of day. */
  readonly wallClock: () => number;
  /** The cgroup of a process relative to the root of the memory hierarchy; undefined where it is gone. */
  readonly cgroupOf: (pid: number) => string | undefined;
  /** What makes containers one pod. */
  readonly grouping: PodGrouping;
}

/** Of an engine only what runs is a pod. */
export function dockerDirectory({
  socketPath,
  scheduler,
  wallClock,
  cgroupOf,
  grouping,
}: DockerDirectoryInputs): PodDirectory {
  // Without a timeout of its own: that would end a stop with a grace.
  const docker = engineAt(socketPath);
  const details = questions({
    scheduler,
    ask: (id) => detailsOf(docker, id, cgroupOf).catch(inWords),
  });
  const list = async (): Promise<readonly RuntimePod[]> => {
    const [listed, podmanPods] = await Promise.all([
      docker.listContainers({ abortSignal: deadline() }),
      grouping.by === 'podman' ? podmanPodsOf(docker) : NO_PODS,
    ]);
    const { entries, faults } = entriesIn(listed, MOST_LISTED);
    await details.learn(entries.map(({ id }) => id));
    const containers = entries.flatMap((entry): readonly ListedContainer[] => {
      const known = details.of(entry.id);
      if (known.kind === 'gone') return [];
      return [{ ...entry, known, podmanPod: podmanPods.get(entry.id) }];
    });
    return [...podsOf(containers, grouping), ...faults];
  };
  const changes$ = changesOf(new Docker({ socketPath }), scheduler).pipe(
    tap((id) => {
      // It may ask for more memory than before, or have been started anew.
      if (id !== undefined) details.again(id);
    }),
  );
  return {
    listings$: listingsOf({
      list: () => list().catch(saying(socketPath)),
      changes$,
      // Sooner where something is to be asked again.
      eachMs: () => Math.min(LIST_EACH_MS, Math.max(LIST_SOON_MS, details.dueInMs())),
      scheduler,
    }),
    ...dockerStopping(docker, wallClock),
    close: () => undefined,
  };
}

/** Whose socket it is, and in words what is wrong with it. */
function saying(socketPath: string): (error: Error) => never {
  return (error) => {
    throw new Error(`${socketPath}: ${wordsFor(error)}`, { cause: error });
  };
}

function inWords(error: Error): never {
  throw new Error(wordsFor(error), { cause: error });
}

function wordsFor({ name, message }: Error): string {
  // Nothing but a deadline breaks a request off: before the answer begins the one, in it the other.
  if (name === 'TimeoutError' || name === 'AbortError')
    return `no answer in ${REQUEST_DEADLINE_MS} ms`;
  return message.startsWith('Parse Error') ? 'what listens there does not speak HTTP' : message;
}

function deadline(): AbortSignal {
  return AbortSignal.timeout(REQUEST_DEADLINE_MS);
}

/** Undefined for one that has gone meanwhile. */
async function detailsOf(
  docker: Docker,
  id: string,
  cgroupOf: DockerDirectoryInputs['cgroupOf'],
): Promise<Details | undefined> {
  try {
    const inspected = await docker.getContainer(id).inspect({ abortSignal: deadline() });
    return detailsIn(inspected, cgroupOf);
  } catch (error) {
    if ((error as { readonly statusCode?: number }).statusCode === NOT_FOUND) return undefined;
    throw error;
  }
}

type PodmanPods = ReadonlyMap<string, { readonly id: string; readonly name: string }>;

const NO_PODS: PodmanPods = new Map();

/** Podman's own list, which the API of Docker has no field for. */
const PODMAN_LIST = '/v4.0.0/libpod/containers/json';

/** By the ids of their containers. Rejects where the engine is not Podman. */
async function podmanPodsOf(docker: Docker): Promise<PodmanPods> {
  const listed = await new Promise<unknown>((resolve, reject) => {
    const statusCodes = { 200: true, 404: 'the engine is not Podman', 500: 'server error' };
    const request = { path: PODMAN_LIST, method: 'GET', statusCodes, abortSignal: deadline() };
    docker.modem.dial(request, (error, result) => {
      if (error) reject(error instanceof Error ? error : new Error(String(error)));
      else resolve(result);
    });
  });
  if (!Array.isArray(listed)) throw new Error('the engine is not Podman');
  return new Map(
    listed.slice(0, MOST_LISTED).flatMap((one: unknown) => {
      const { Id, Pod, PodName } = fieldsOf(one);
      const isInPod = typeof Id === 'string' && typeof Pod === 'string' && Pod !== '';
      if (!isInPod) return [];
      return [[Id, { id: Pod, name: typeof PodName === 'string' ? PodName : Pod }] as const];
    }),
  );
}

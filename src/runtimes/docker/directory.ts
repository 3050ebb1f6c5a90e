/** The pods of a Docker Engine, or of what speaks its API: containers, each by itself or several together. */
import Docker from 'dockerode';
import { defer, from, ignoreElements, type SchedulerLike, tap } from 'rxjs';
import type { Quantity } from '../../core/quantity.ts';
import type { PodDirectory, RuntimePod } from '../../ports/pod-directory.ts';
import { listingsOf } from '../shared/listings.ts';
import { changesOf } from './events.ts';
import { type PodGrouping, podsOf, type RunningContainer } from './pods.ts';

/** How often containers are listed although no event told of a change, ms. */
export const LIST_EACH_MS = 10_000;

/** How long a request may take, ms. */
const REQUEST_DEADLINE_MS = 2000;

/** How long it may take to say that it is there, ms. */
const ANSWER_DEADLINE_MS = 1000;

/** What a stop may take beside its grace, ms. */
const STOP_MARGIN_MS = 10_000;

/** How many containers are looked at. */
const MOST_LISTED = 20_000;

/** How many are asked for their details at a time. */
const ASKED_AT_ONCE = 8;

/** HTTP's number for what is as it was asked to be: a container that has stopped already. */
const NOT_MODIFIED = 304;
const NOT_FOUND = 404;

const NANO = 1_000_000_000n;

export interface DockerDirectoryInputs {
  /** The path of the engine's socket. */
  readonly socketPath: string;
  readonly scheduler: SchedulerLike;
  /** The cgroup of a process relative to the root of the memory hierarchy; undefined where it is gone. */
  readonly cgroupOf: (pid: number) => string | undefined;
  /** What makes containers one pod. */
  readonly grouping: PodGrouping;
}

/** What of a container does not change untold. */
interface Details {
  readonly processCgroup: string;
  readonly memoryRequest: Quantity | undefined;
}

/** Of an engine only what runs is a pod. */
export function dockerDirectory({
  socketPath,
  scheduler,
  cgroupOf,
  grouping,
}: DockerDirectoryInputs): PodDirectory {
  // Without a timeout of its own: that would end the stream of events, and a stop with a grace.
  const docker = new Docker({ socketPath });
  const details = new Map<string, Details>();
  const list = async (): Promise<readonly RuntimePod[]> => {
    const [listed, podmanPods] = await Promise.all([
      docker.listContainers({ abortSignal: deadline() }),
      grouping.by === 'podman' ? podmanPodsOf(docker) : NO_PODS,
    ]);
    const found = listed.slice(0, MOST_LISTED);
    const ids = new Set(found.map(({ Id }) => Id));
    for (const id of details.keys()) if (!ids.has(id)) details.delete(id);
    const unknown = [...ids].filter((id) => !details.has(id));
    while (unknown.length > 0) {
      await Promise.all(
        unknown.splice(0, ASKED_AT_ONCE).map(async (id) => {
          const known = await detailsOf(docker, id, cgroupOf);
          if (known !== undefined) details.set(id, known);
        }),
      );
    }
    const running = found.flatMap((container): readonly RunningContainer[] => {
      const known = details.get(container.Id);
      if (known === undefined) return [];
      return [{ ...namesOf(container), ...known, podmanPod: podmanPods.get(container.Id) }];
    });
    return podsOf(running, grouping);
  };
  const changes$ = changesOf(docker, scheduler).pipe(
    tap((id) => {
      // It may ask for more memory than before, or have been started anew.
      if (id !== undefined) details.delete(id);
    }),
  );
  return {
    listings$: listingsOf({
      list: () => list().catch(saying(socketPath)),
      changes$,
      eachMs: LIST_EACH_MS,
      scheduler,
    }),
    settle: (pod) => defer(() => from(stopped(docker, pod, 0))).pipe(ignoreElements()),
    stop: (pod, gracePeriodMs) =>
      defer(() => from(stopped(docker, pod, gracePeriodMs))).pipe(ignoreElements()),
    answers: () =>
      defer(() => {
        const abortSignal = AbortSignal.timeout(ANSWER_DEADLINE_MS);
        return from(docker.listContainers({ limit: 1, abortSignal }));
      }).pipe(ignoreElements()),
    close: () => undefined,
  };
}

/** Whose socket it is, and in words what is wrong with it. */
function saying(socketPath: string): (error: Error) => never {
  return (error) => {
    const why =
      error.name === 'TimeoutError'
        ? `no answer in ${REQUEST_DEADLINE_MS} ms`
        : error.message.startsWith('Parse Error')
          ? 'what listens there does not speak HTTP'
          : error.message;
    throw new Error(`${socketPath}: ${why}`, { cause: error });
  };
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
    const { State, HostConfig } = await docker
      .getContainer(id)
      .inspect({ abortSignal: deadline() });
    const processCgroup = State.Running && State.Pid > 0 ? cgroupOf(State.Pid) : undefined;
    if (processCgroup === undefined) return undefined;
    const reservation = HostConfig.MemoryReservation ?? 0;
    const isReserved = Number.isSafeInteger(reservation) && reservation > 0;
    return {
      processCgroup,
      memoryRequest: isReserved
        ? { nano: BigInt(reservation) * NANO, format: 'binary' }
        : undefined,
    };
  } catch (error) {
    if ((error as { readonly statusCode?: number }).statusCode === NOT_FOUND) return undefined;
    throw error;
  }
}

function namesOf({
  Id,
  Names,
  Image,
  Labels,
}: Docker.ContainerInfo): Pick<RunningContainer, 'id' | 'name' | 'image' | 'labels'> {
  const [first = Id] = Names;
  return { id: Id, name: first.replace(/^\//, ''), image: Image, labels: Labels };
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
      const { Id, Pod, PodName } = one as Readonly<Record<string, unknown>>;
      const isInPod = typeof Id === 'string' && typeof Pod === 'string' && Pod !== '';
      if (!isInPod) return [];
      return [[Id, { id: Pod, name: typeof PodName === 'string' ? PodName : Pod }] as const];
    }),
  );
}

/**
 * A stop ends what its restart policy would bring back, also where the process is dead already: the engine
 * notes that somebody wanted it to end.
 */
async function stopped(docker: Docker, pod: RuntimePod, graceMs: number): Promise<void> {
  const grace = Math.ceil(graceMs / 1000);
  const signal = AbortSignal.timeout(graceMs + STOP_MARGIN_MS);
  const stops = await Promise.allSettled(
    pod.containers.map(({ id }) =>
      docker.getContainer(id).stop({ t: grace, abortSignal: signal }).catch(unlessStopped),
    ),
  );
  for (const stop of stops) if (stop.status === 'rejected') throw stop.reason;
}

function unlessStopped(error: { readonly statusCode?: number }): void {
  const { statusCode } = error;
  if (statusCode !== NOT_MODIFIED && statusCode !== NOT_FOUND) throw error;
}

/** The pods of a Docker Engine, or of what speaks its API: each container is a pod of one container. */
import Docker from 'dockerode';
import {
  auditTime,
  catchError,
  defer,
  from,
  ignoreElements,
  map,
  merge,
  Observable,
  of,
  repeat,
  type SchedulerLike,
  startWith,
  switchMap,
  timer,
} from 'rxjs';
import type { Quantity } from '../../core/quantity.ts';
import type { PodDirectory, PodListing, RuntimePod } from '../../ports/pod-directory.ts';

/** How often containers are listed although no event told of a change, ms. */
export const LIST_EACH_MS = 10_000;

/** For how long events are gathered before containers are listed, ms: one that starts has several. */
export const GATHER_MS = 50;

/** How soon an engine that is away is asked again: twice as late each time, up to the second, ms. */
export const FIRST_RETRY_MS = 200;
export const LAST_RETRY_MS = 5000;

/** How long a request may take, ms. */
const REQUEST_DEADLINE_MS = 2000;

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
}

/** What of a container does not change while it runs. */
interface Details {
  readonly cgroup: string;
  readonly memoryRequest: Quantity | undefined;
}

/** Of an engine only what runs is a pod. */
export function dockerDirectory({
  socketPath,
  scheduler,
  cgroupOf,
}: DockerDirectoryInputs): PodDirectory {
  // Without a timeout of its own: that would end the stream of events, and a stop with a grace.
  const docker = new Docker({ socketPath });
  const details = new Map<string, Details>();
  let failures = 0;
  const list = async (): Promise<readonly RuntimePod[]> => {
    const found = (await docker.listContainers({ abortSignal: deadline() })).slice(0, MOST_LISTED);
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
    return found.flatMap((container) => podOf(container, details.get(container.Id)));
  };
  const listings$ = defer(() => from(list())).pipe(
    map((pods): PodListing => {
      failures = 0;
      return { kind: 'listed', pods, atMs: scheduler.now() };
    }),
    catchError((error: Error) => {
      failures += 1;
      return of<PodListing>({ kind: 'away', reason: error.message, atMs: scheduler.now() });
    }),
  );
  const delayMs = (): number =>
    failures === 0 ? LIST_EACH_MS : Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** (failures - 1));
  // Each change begins a listing anew, and with it the wait for the next one.
  const changes$ = eventsOf(docker).pipe(
    catchError(() => of(undefined)),
    repeat({ delay: () => timer(LAST_RETRY_MS, scheduler) }),
    auditTime(GATHER_MS, scheduler),
  );
  return {
    listings$: merge(changes$).pipe(
      startWith(undefined),
      switchMap(() => listings$.pipe(repeat({ delay: () => timer(delayMs(), scheduler) }))),
    ),
    settle: (id) => defer(() => from(stopped(docker, id, 0))).pipe(ignoreElements()),
    stop: (id, gracePeriodMs) =>
      defer(() => from(stopped(docker, id, gracePeriodMs))).pipe(ignoreElements()),
    close: () => undefined,
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
    const cgroup = State.Running && State.Pid > 0 ? cgroupOf(State.Pid) : undefined;
    if (cgroup === undefined) return undefined;
    const reservation = HostConfig.MemoryReservation ?? 0;
    const isReserved = Number.isSafeInteger(reservation) && reservation > 0;
    return {
      cgroup,
      memoryRequest: isReserved
        ? { nano: BigInt(reservation) * NANO, format: 'binary' }
        : undefined,
    };
  } catch (error) {
    if ((error as { readonly statusCode?: number }).statusCode === NOT_FOUND) return undefined;
    throw error;
  }
}

function podOf(
  { Id, Names, Image, Labels }: Docker.ContainerInfo,
  details: Details | undefined,
): readonly RuntimePod[] {
  if (details === undefined) return [];
  const [first = Id] = Names;
  const name = first.replace(/^\//, '');
  const { cgroup, memoryRequest } = details;
  return [
    {
      id: Id,
      name,
      uid: Id,
      cgroup,
      labels: Labels,
      annotations: {},
      containers: [{ id: Id, name, image: Image, isRunning: true, memoryRequest }],
    },
  ];
}

/**
 * A stop ends what its restart policy would bring back, also where the process is dead already: the engine
 * notes that somebody wanted it to end.
 */
async function stopped(docker: Docker, id: string, graceMs: number): Promise<void> {
  const grace = Math.ceil(graceMs / 1000);
  const signal = AbortSignal.timeout(graceMs + STOP_MARGIN_MS);
  try {
    await docker.getContainer(id).stop({ t: grace, abortSignal: signal });
  } catch (error) {
    const { statusCode } = error as { readonly statusCode?: number };
    if (statusCode !== NOT_MODIFIED && statusCode !== NOT_FOUND) throw error;
  }
}

/** Emits at each change of a container; completes or errors when the engine ends the stream. */
function eventsOf(docker: Docker): Observable<undefined> {
  return new Observable((subscriber) => {
    const abort = new AbortController();
    const filters = { type: ['container'], event: ['start', 'die', 'rename', 'update'] };
    docker
      .getEvents({ filters: JSON.stringify(filters), abortSignal: abort.signal })
      .then((stream) => {
        stream.on('data', () => subscriber.next(undefined));
        stream.on('end', () => subscriber.complete());
        stream.on('error', (error) => subscriber.error(error));
      })
      .catch((error: unknown) => subscriber.error(error));
    return () => abort.abort();
  });
}

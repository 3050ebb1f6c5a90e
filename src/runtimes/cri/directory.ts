/** The pods of a runtime that speaks CRI v1: sandboxes with their containers. */
import {
  catchError,
  defer,
  from,
  ignoreElements,
  map,
  type Observable,
  of,
  repeat,
  type SchedulerLike,
  timer,
} from 'rxjs';
import type {
  PodDirectory,
  PodListing,
  RuntimeContainer,
  RuntimePod,
} from '../../ports/pod-directory.ts';
import { keptLabels, keptName } from '../shared/texts.ts';
import type { CriClient } from './client.ts';
import { bearsUid, cgroupIn, NOT_ITS_OWN, type SandboxStatus } from './pod-cgroup.ts';

/** How often pods are listed, ms: between two listings a new pod is not known, and goes unseen. */
export const LIST_EACH_MS = 1000;

/** How soon a runtime that is away is asked again: twice as late each time, up to the second, ms. */
export const FIRST_RETRY_MS = 200;
export const LAST_RETRY_MS = 5000;

/** How long the runtime may take to note that a pod was ended, ms: it is told again after that. */
const SETTLE_DEADLINE_MS = 10_000;

/** What a stop may take beside its grace, ms. */
const STOP_MARGIN_MS = 2000;

/** How many sandboxes and containers are looked at. */
const MOST_LISTED = 20_000;

/** How many sandboxes are asked for their cgroup at a time. */
const ASKED_AT_ONCE = 8;

interface Metadata {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
}

interface Sandbox {
  readonly id: string;
  readonly metadata: Metadata | null;
  readonly state: 'SANDBOX_READY' | 'SANDBOX_NOTREADY';
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

interface Container {
  readonly id: string;
  readonly podSandboxId: string;
  readonly metadata: { readonly name: string } | null;
  readonly image: { readonly image: string } | null;
  readonly state: string;
  readonly labels: Readonly<Record<string, string>>;
}

export interface CriDirectoryInputs {
  readonly client: CriClient;
  readonly scheduler: SchedulerLike;
}

/** Of a sandbox only one that is ready runs anything. */
export function criDirectory({ client, scheduler }: CriDirectoryInputs): PodDirectory {
  const cgroups = new Map<string, string | undefined>();
  let failures = 0;
  const list = async (): Promise<readonly RuntimePod[]> => {
    const [{ items }, { containers }] = await Promise.all([
      client.call<{ readonly items: readonly Sandbox[] }>('ListPodSandbox'),
      client.call<{ readonly containers: readonly Container[] }>('ListContainers'),
    ]);
    const ready = items.filter(({ state }) => state === 'SANDBOX_READY').slice(0, MOST_LISTED);
    await learnCgroups(client, ready, cgroups);
    const byPod = new Map<string, RuntimeContainer[]>();
    for (const container of containers.slice(0, MOST_LISTED)) {
      const ofPod = byPod.get(container.podSandboxId);
      if (ofPod === undefined) byPod.set(container.podSandboxId, [containerOf(container)]);
      else ofPod.push(containerOf(container));
    }
    return ready.flatMap((sandbox) => podOf(sandbox, cgroups.get(sandbox.id), byPod) ?? []);
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
    repeat({ delay: () => timer(delayMs(failures), scheduler) }),
  );
  const told = (method: string, request: object, deadlineMs: number): Observable<never> =>
    defer(() => from(client.call(method, request, deadlineMs))).pipe(ignoreElements());
  return {
    listings$,
    settle: ({ id }) => told('StopPodSandbox', { podSandboxId: id }, SETTLE_DEADLINE_MS),
    stop: ({ id }, gracePeriodMs) =>
      defer(() => from(stopPod(client, id, gracePeriodMs))).pipe(ignoreElements()),
    close: () => client.close(),
  };
}

function delayMs(failures: number): number {
  return failures === 0
    ? LIST_EACH_MS
    : Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** (failures - 1));
}

function podOf(
  { id, metadata, labels, annotations }: Sandbox,
  cgroup: string | undefined,
  byPod: ReadonlyMap<string, readonly RuntimeContainer[]>,
): RuntimePod | undefined {
  if (metadata === null) return undefined;
  const { name, uid } = metadata;
  const namespace = keptName(metadata.namespace);
  return {
    id,
    namespace,
    name: `${namespace}/${keptName(name)}`,
    uid: keptName(uid),
    cgroups: cgroup === undefined ? [] : [cgroup],
    doubt: cgroup !== undefined && !bearsUid(cgroup, uid) ? NOT_ITS_OWN : undefined,
    labels: keptLabels(labels),
    annotations: keptLabels(annotations),
    containers: byPod.get(id) ?? [],
  };
}

function containerOf({ id, metadata, image, state, labels }: Container): RuntimeContainer {
  return {
    id,
    name: keptName(metadata?.name ?? ''),
    image: keptName(image?.image ?? ''),
    isRunning: state === 'CONTAINER_RUNNING',
    cgroup: undefined,
    labels: keptLabels(labels),
    // CRI says what is limited, and of requests only the share of the processor.
    memoryRequest: undefined,
  };
}

/** Asks for the cgroups of sandboxes that are new, and forgets those that are gone. */
async function learnCgroups(
  client: CriClient,
  sandboxes: readonly Sandbox[],
  known: Map<string, string | undefined>,
): Promise<void> {
  const ids = new Set(sandboxes.map(({ id }) => id));
  for (const id of known.keys()) if (!ids.has(id)) known.delete(id);
  const unknown = [...ids].filter((id) => !known.has(id));
  while (unknown.length > 0) {
    const some = unknown.splice(0, ASKED_AT_ONCE);
    await Promise.all(
      some.map(async (podSandboxId) => {
        const status = await client
          .call<SandboxStatus>('PodSandboxStatus', { podSandboxId, verbose: true })
          .catch(unlessGone);
        if (status !== undefined) known.set(podSandboxId, cgroupIn(status));
      }),
    );
  }
}

/** gRPC's number for what is not there. */
const NOT_FOUND = 5;

function unlessGone(error: { readonly code?: number }): undefined {
  if (error.code === NOT_FOUND) return undefined;
  throw error;
}

/** All containers at once, as the kubelet does, then the sandbox. */
async function stopPod(client: CriClient, podSandboxId: string, graceMs: number): Promise<void> {
  const { containers } = await client.call<{ readonly containers: readonly Container[] }>(
    'ListContainers',
  );
  const timeout = Math.ceil(graceMs / 1000);
  const own = containers.filter(
    (one) => one.podSandboxId === podSandboxId && one.state === 'CONTAINER_RUNNING',
  );
  const deadlineMs = graceMs + STOP_MARGIN_MS;
  await Promise.all(
    own.map(({ id }) => client.call('StopContainer', { containerId: id, timeout }, deadlineMs)),
  );
  await client.call('StopPodSandbox', { podSandboxId }, SETTLE_DEADLINE_MS);
}

/** What a runtime that speaks CRI lists, as far as it is of pods that run anything. */
import type { SchedulerLike } from 'rxjs';
import { questions } from '../shared/questions.ts';
import type { CriClient } from './client.ts';

/** How many sandboxes and containers are looked at. */
const MOST_LISTED = 20_000;

/**
 * How often what does not run is listed too, ms: of pods that run its disk use counts, and there may be many times
 * as much of it as of what runs.
 */
export const LIST_ALL_EACH_MS = 30_000;

/** gRPC's number for what is not there. */
export const NOT_FOUND = 5;

interface Metadata {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
}

export interface Sandbox {
  readonly id: string;
  readonly metadata: Metadata | null;
  readonly state: 'SANDBOX_READY' | 'SANDBOX_NOTREADY';
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface Container {
  readonly id: string;
  readonly podSandboxId: string;
  readonly metadata: { readonly name: string } | null;
  readonly image: { readonly image: string; readonly userSpecifiedImage: string } | null;
  readonly state: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** Pods that run anything. */
export interface Living {
  readonly sandboxes: readonly Sandbox[];
  /** Of these sandboxes: those that run, and those that are known to have ended. */
  readonly containers: readonly Container[];
}

const READY = { filter: { state: { state: 'SANDBOX_READY' } } } as const;
const RUNNING = { filter: { state: { state: 'CONTAINER_RUNNING' } } } as const;

/**
 * Lists sandboxes that are ready and containers that run, and in longer intervals all containers. One that is not
 * ready is asked for where a container of it runs: that goes on where what holds a pod's namespaces was killed. Of
 * several sandboxes of one pod only the one that is ready counts: what a runtime has not heard the end of may lie in
 * the same cgroup.
 */
export function criLists(client: CriClient, scheduler: SchedulerLike): () => Promise<Living> {
  let allDueAtMs = 0;
  let running: ReadonlyMap<string, Container> = new Map();
  let ended: ReadonlyMap<string, Container> = new Map();
  const others = questions<Sandbox>({
    scheduler,
    ask: async (id) => {
      const { items } = await listSandboxes(client, { filter: { id } });
      const found = items.find((one) => one.id === id);
      return found && { ...found, state: 'SANDBOX_NOTREADY' };
    },
  });
  return async () => {
    const nowMs = scheduler.now();
    const isAll = nowMs >= allDueAtMs;
    // Also where it fails: what runs is listed without it.
    if (isAll) allDueAtMs = nowMs + LIST_ALL_EACH_MS;
    const [{ items }, { containers }] = await Promise.all([
      listSandboxes(client, READY),
      client.call<{ readonly containers: readonly Container[] }>(
        'ListContainers',
        isAll ? {} : RUNNING,
      ),
    ]);
    const ready = items.filter(isReady).slice(0, MOST_LISTED);
    const now = new Map(
      containers
        .filter(isRunning)
        .slice(0, MOST_LISTED)
        .map((one) => [one.id, one] as const),
    );
    const ids = new Set(ready.map(({ id }) => id));
    const orphans = [...now.values()].map((one) => one.podSandboxId).filter((id) => !ids.has(id));
    await others.learn(orphans);
    const uids = new Set(ready.flatMap(({ metadata }) => metadata?.uid || []));
    const found = [...new Set(orphans)].flatMap((id) => {
      const known = others.of(id);
      const isOther = known.kind === 'told' && !uids.has(known.answer.metadata?.uid ?? '');
      return isOther ? [known.answer] : [];
    });
    const sandboxes = [...ready, ...found];
    const living = new Set(sandboxes.map(({ id }) => id));
    const dead = isAll
      ? containers.filter((one) => !isRunning(one)).slice(0, MOST_LISTED)
      : [...ended.values(), ...endedSince(running, now)];
    running = now;
    ended = new Map(
      dead
        .filter((one) => living.has(one.podSandboxId) && !now.has(one.id))
        .map((one) => [one.id, one] as const),
    );
    const ofLiving = [...now.values()].filter((one) => living.has(one.podSandboxId));
    return { sandboxes, containers: [...ofLiving, ...ended.values()] };
  };
}

function listSandboxes(
  client: CriClient,
  request: object,
): Promise<{ readonly items: readonly Sandbox[] }> {
  return client.call('ListPodSandbox', request);
}

function endedSince(
  before: ReadonlyMap<string, Container>,
  now: ReadonlyMap<string, Container>,
): readonly Container[] {
  return [...before.values()]
    .filter(({ id }) => !now.has(id))
    .map((one) => ({ ...one, state: 'CONTAINER_EXITED' }));
}

export function isReady({ state }: Sandbox): boolean {
  return state === 'SANDBOX_READY';
}

export function isRunning({ state }: Container): boolean {
  return state === 'CONTAINER_RUNNING';
}

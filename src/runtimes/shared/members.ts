/** A pod that is made of several cgroups: read as one, and ended as one. */
import { createHash } from 'node:crypto';
import { Observable, type Subscriber, Subscription } from 'rxjs';
import type { ContainerObservation, PodObservation, QosClass } from '../../core/pod.ts';
import type { Quantity } from '../../core/quantity.ts';
import type { RuntimePod } from '../../ports/pod-directory.ts';
import type { EvictProgress, EvictRequest, Runtime } from '../../ports/runtime.ts';
import { NO_PROCESS } from './protection.ts';

/**
 * The members' observations as one of the pod.
 *
 * - What they use, ask for and count is added up; where it is not known of one, it is not known.
 * - Whatever protects one protects all, but for having no process: that takes all of them.
 * - QoS is as for the containers of a Kubernetes pod: `Guaranteed` and `BestEffort` only where all are.
 *
 * Its id names just these members: where one has been made again, it is another pod.
 *
 * @param members one at least, each with the pod's name, priority and grace
 */
export function mergedObservation(members: readonly PodObservation[]): PodObservation {
  const [first, ...others] = members as readonly [PodObservation, ...PodObservation[]];
  if (others.length === 0) return first;
  const sorted = [...members].sort((a, b) => (a.id < b.id ? -1 : 1));
  const because = members
    .map(({ protectedBecause }) => protectedBecause)
    .filter((reason) => reason !== undefined);
  const isEmpty = because.length === members.length && because.every((one) => one === NO_PROCESS);
  return {
    ...first,
    id: mergedId(sorted.map(({ id }) => id)),
    priority: Math.max(...members.map(({ priority }) => priority)),
    qosClass: mergedQos(members.map(({ qosClass }) => qosClass)),
    memoryRequestNano: members.reduce((sum, one) => sum + one.memoryRequestNano, 0n),
    workingSetBytes: sumOf(members.map(({ workingSetBytes }) => workingSetBytes)),
    pids: sumOf(members.map(({ pids }) => pids)),
    protectedBecause: isEmpty ? NO_PROCESS : because.find((one) => one !== NO_PROCESS),
    atMs: Math.min(...members.map(({ atMs }) => atMs)),
  };
}

/** How many containers of a pod are read for one decision, which waits for that. */
const MOST_READ = 32;

/** What a cgroup below a pod's uses, bytes, by its path as observations have it; undefined where it cannot be read. */
export type MemoryBelow = (path: string, how: 'quick' | 'exact') => number | undefined;

/** How the memory of a pod's containers is found. */
export interface ContainerMemory {
  /** The path of a cgroup as the members have it. */
  readonly pathOf: (cgroup: string) => string | undefined;
  /** The same of a member's id. */
  readonly pathIn: (id: string) => string;
  readonly memoryBelow: MemoryBelow;
  readonly nowMs: () => number;
}

/**
 * The containers of a pod with what each uses, where each has a cgroup of its own: a member, or one below a member,
 * which is read when somebody asks. Undefined where not.
 */
export function containersOf(
  { containers }: RuntimePod,
  members: readonly PodObservation[],
  memory: ContainerMemory,
): PodObservation['containers'] {
  const running = containers.filter(({ isRunning }) => isRunning);
  if (running.length === 0 || running.some(({ cgroup }) => cgroup === undefined)) return undefined;
  return (resource, how) => {
    if (resource !== 'memory') return undefined;
    const seen = new Map(members.map((member) => [memory.pathIn(member.id), member]));
    const placed = running.flatMap((container) => {
      const path = memory.pathOf(container.cgroup ?? '');
      return path === undefined ? [] : [{ container, path, member: seen.get(path) }];
    });
    if (placed.filter(({ member }) => member === undefined).length > MOST_READ) return undefined;
    const found = placed.flatMap(({ container, path, member }): readonly ContainerObservation[] => {
      const { name, memoryRequest } = container;
      if (member !== undefined) {
        const request = { nano: member.memoryRequestNano, format: 'binary' } as const;
        return [{ name, request, usedBytes: member.workingSetBytes }];
      }
      const above = [...seen].find(([one]) => path.startsWith(`${one}/`))?.[1];
      if (above === undefined) return [];
      // What is said of the pod as a whole is about the one that it is made of.
      const isAlone = running.length === 1;
      const whole: Quantity = { nano: isAlone ? above.memoryRequestNano : 0n, format: 'binary' };
      const request = isAlone ? whole : (memoryRequest ?? whole);
      const usedBytes = memory.memoryBelow(path, how ?? 'quick');
      return [{ name, request, usedBytes, atMs: memory.nowMs() }];
    });
    const isKnown = found.some(({ usedBytes }) => usedBytes !== undefined);
    return isKnown ? found : undefined;
  };
}

/** Short, however many there are: it is kept in the history. */
function mergedId(ids: readonly string[]): string {
  const digest = createHash('sha256').update(ids.join('\0')).digest('hex');
  return `${ids.length} cgroups ${digest}`;
}

function mergedQos(classes: readonly QosClass[]): QosClass {
  const [first = 'BestEffort'] = classes;
  return classes.every((one) => one === first) ? first : 'Burstable';
}

function sumOf(numbers: readonly (number | undefined)[]): number | undefined {
  let sum = 0;
  for (const one of numbers) {
    if (one === undefined) return undefined;
    sum += one;
  }
  return sum;
}

/**
 * Ends all members at once. Before the first signal each is gone through with signal 0, all its processes: what
 * is refused for one, but that it is gone or empty, is refused for all, and nobody is signalled.
 *
 * Cold, as {@link Runtime.evict} is: the first signal is sent while subscribing. `terminating` and `killed` come
 * when they have come of all, `empty` when nobody is left in any.
 *
 * @param ids the members' own ids
 */
export function evictMembers(
  runtime: Pick<Runtime, 'evict'>,
  ids: readonly string[],
  request: EvictRequest,
): Observable<EvictProgress> {
  return new Observable((subscriber) => {
    // A rehearsal is one of the way to a kill, which has a millisecond.
    const everyProcess = request.rehearsal !== true;
    const checks = ids.map((podId) => checked(runtime, { ...request, podId, everyProcess }));
    const failed = checks.find((check) => 'error' in check);
    if (failed !== undefined && 'error' in failed) {
      subscriber.error(failed.error);
      return undefined;
    }
    const refusals = checks.flatMap((check) => ('refused' in check ? [check.refused] : []));
    const vetoes = refusals.filter(({ reason }) => !isOver(reason));
    const refusal = vetoes[0] ?? (refusals.length === ids.length ? leastOver(refusals) : undefined);
    if (refusal !== undefined) {
      subscriber.next(refusal);
      subscriber.complete();
      return undefined;
    }
    const alive = ids.filter((_, index) => !('refused' in (checks[index] as Check)));
    return new Ending(subscriber).start(runtime, alive, request);
  });
}

type Refusal = Extract<EvictProgress, { kind: 'refused' }>;

type Check = { readonly refused: Refusal } | { readonly error: unknown } | { readonly ok: true };

/** Whether nothing of it is left to end. */
function isOver(reason: Refusal['reason']): boolean {
  return reason === 'podGone' || reason === 'nothingToKill';
}

/** One without a process may get one again; one that is gone does not come back. */
function leastOver(refusals: readonly Refusal[]): Refusal | undefined {
  return refusals.find(({ reason }) => reason === 'nothingToKill') ?? refusals[0];
}

/** What a KILL of a member would come to; synchronous, as a rehearsal is. */
function checked({ evict }: Pick<Runtime, 'evict'>, request: EvictRequest): Check {
  let check: Check = { ok: true };
  evict({ ...request, gracePeriodMs: 0, rehearsal: true })
    .subscribe({
      next: (progress) => {
        if (progress.kind === 'refused') check = { refused: progress };
      },
      error: (error: unknown) => {
        check = { error };
      },
    })
    .unsubscribe();
  return check;
}

/** How far a member has come. */
interface Member {
  stage: 'begun' | 'terminating' | 'killed' | 'empty';
  processes: number;
  remaining: number;
  chargedBytes: number | undefined;
}

/** The members' evictions as one; lives as long as its subscription. */
class Ending {
  readonly #subscriber: Subscriber<EvictProgress>;
  readonly #members: Member[] = [];
  readonly #errors: unknown[] = [];
  #told: 'nothing' | 'terminating' | 'killed' = 'nothing';
  #remaining = 0;

  constructor(subscriber: Subscriber<EvictProgress>) {
    this.#subscriber = subscriber;
  }

  start(
    { evict }: Pick<Runtime, 'evict'>,
    ids: readonly string[],
    request: EvictRequest,
  ): Subscription {
    const subscription = new Subscription();
    for (const _ of ids) {
      this.#members.push({ stage: 'begun', processes: 0, remaining: 0, chargedBytes: undefined });
    }
    for (const [index, podId] of ids.entries()) {
      if (this.#subscriber.closed) break;
      const member = this.#members[index] as Member;
      subscription.add(
        evict({ ...request, podId }).subscribe({
          next: (progress) => this.#take(member, progress),
          error: (error: unknown) => {
            this.#errors.push(error);
            this.#end(member);
          },
          complete: () => this.#end(member),
        }),
      );
    }
    return subscription;
  }

  #take(member: Member, progress: EvictProgress): void {
    switch (progress.kind) {
      case 'terminating':
      case 'killed':
        member.stage = progress.kind;
        member.processes = progress.processes;
        this.#tellStage();
        return;
      case 'empty':
        member.processes = progress.processes;
        member.chargedBytes = progress.chargedBytes;
        return;
      case 'remaining':
        member.remaining = progress.processes;
        this.#tellRemaining();
        return;
      case 'obstacle':
        this.#subscriber.next(progress);
        return;
      case 'refused':
        if (isOver(progress.reason)) return;
        // What spares one spares all, as far as there is anything left to spare.
        this.#subscriber.next(progress);
        this.#subscriber.complete();
    }
  }

  #end(member: Member): void {
    member.stage = 'empty';
    member.remaining = 0;
    this.#tellStage();
    if (this.#members.some(({ stage }) => stage !== 'empty')) {
      if (this.#told !== 'nothing') this.#tellRemaining();
      return;
    }
    if (this.#errors.length > 0) {
      this.#subscriber.error(this.#errors[0]);
      return;
    }
    const charged = this.#members.map(({ chargedBytes }) => chargedBytes);
    const known = charged.filter((bytes) => bytes !== undefined);
    this.#subscriber.next({
      kind: 'empty',
      processes: this.#processes(),
      chargedBytes: known.length === 0 ? undefined : known.reduce((sum, bytes) => sum + bytes, 0),
    });
    this.#subscriber.complete();
  }

  /** Once all have come so far; one that has ended has come further. */
  #tellStage(): void {
    const stages = this.#members.map(({ stage }) => stage);
    if (stages.every((stage) => stage === 'empty')) return;
    const isKilled = stages.every((stage) => stage === 'killed' || stage === 'empty');
    const stage = isKilled ? 'killed' : 'terminating';
    if (stages.includes('begun') || this.#told === 'killed' || this.#told === stage) return;
    this.#told = stage;
    this.#subscriber.next({ kind: stage, processes: this.#processes() });
  }

  #tellRemaining(): void {
    const processes = this.#members.reduce((sum, { remaining }) => sum + remaining, 0);
    if (processes === this.#remaining) return;
    this.#remaining = processes;
    this.#subscriber.next({ kind: 'remaining', processes });
  }

  #processes(): number {
    return this.#members.reduce((sum, { processes }) => sum + processes, 0);
  }
}

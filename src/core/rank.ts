import type { PodObservation } from './pod.ts';
import type { Signal } from './signal.ts';

/** Negative when `left` is to be evicted before `right`. */
export type PodComparator = (left: PodObservation, right: PodObservation) => number;

const NANO = 1_000_000_000n;

/** Working set over the request, in nano-bytes; undefined when the usage is unknown. */
function overRequestNano(pod: PodObservation): bigint | undefined {
  if (pod.workingSetBytes === undefined) return undefined;
  return BigInt(pod.workingSetBytes) * NANO - pod.memoryRequestNano;
}

/** 0 for a pod known to exceed its request, 1 for unknown usage, 2 for one known to be within. */
function offence(pod: PodObservation): 0 | 1 | 2 {
  const over = overRequestNano(pod);
  if (over === undefined) return 1;
  return over > 0n ? 0 : 2;
}

/**
 * Known offenders first, then pods of unknown usage, then those known to be within their request.
 * Source: kubelet `helpers.go`, `exceedMemoryRequests`; there a pod without stats comes first,
 * and an innocent one may go in place of the offender.
 */
export const byExceedingRequest: PodComparator = (left, right) => offence(left) - offence(right);

/** Lowest priority first. Source: kubelet `helpers.go`, `priority`. */
export const byPriority: PodComparator = (left, right) => left.priority - right.priority;

/** Most working set over the request first. Source: kubelet `helpers.go`, `memory`. */
export const byUsageOverRequest: PodComparator = (left, right) => {
  const [a, b] = [overRequestNano(left), overRequestNano(right)];
  if (a === undefined || b === undefined || a === b) return 0;
  return a > b ? -1 : 1;
};

/** Most tasks first; what could not be counted last. Source: kubelet `helpers.go`, `process`. */
export const byPids: PodComparator = (left, right) => (right.pids ?? 0) - (left.pids ?? 0);

/** By name, then id, in code-unit order: what makes the order total. */
export const byName: PodComparator = (left, right) =>
  compareText(left.name, right.name) || compareText(left.id, right.id);

/** In code-unit order, which no locale changes. */
export function compareText(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}

/** The first comparator that tells two pods apart decides. */
export function orderedBy(...comparators: readonly PodComparator[]): PodComparator {
  return (left, right) => {
    for (const compare of comparators) {
      const order = compare(left, right);
      if (order !== 0) return order;
    }
    return 0;
  };
}

/** How pods are ranked for memory, of the node or of its pods. */
export const BY_MEMORY = orderedBy(byExceedingRequest, byPriority, byUsageOverRequest, byName);

/** How pods are ranked for tasks. Source: kubelet `helpers.go`, `rankPIDPressure`. */
export const BY_PIDS = orderedBy(byPriority, byPids, byName);

/** How pods are ranked for each signal; undefined where no pod is evicted for it yet. */
const RANKING: Record<Signal, PodComparator | undefined> = {
  'memory.available': BY_MEMORY,
  'allocatableMemory.available': BY_MEMORY,
  'nodefs.available': undefined,
  'nodefs.inodesFree': undefined,
  'imagefs.available': undefined,
  'imagefs.inodesFree': undefined,
  'containerfs.available': undefined,
  'containerfs.inodesFree': undefined,
  'pid.available': BY_PIDS,
};

/** A signal that pods are evicted for. */
export function isEvictedFor(signal: Signal): boolean {
  return RANKING[signal] !== undefined;
}

/** All pods, the first candidate for `signal` first, those that may not be evicted included. */
export function rankPods(
  signal: Signal,
  pods: readonly PodObservation[],
): readonly PodObservation[] {
  return [...pods].sort(RANKING[signal] ?? byName);
}

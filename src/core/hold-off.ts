/** What is remembered of pods that were evicted, by what brings them back. */
import type { PodObservation } from './pod.ts';
import type { Ranked } from './rank.ts';
import type { Signal } from './signal.ts';

/** For so long after an eviction whoever comes back comes straight back, ms; as long it is remembered. */
export const STRAIGHT_BACK_MS = 600_000;

/** How long an owner that came straight back is held off, ms: twice as long each time, up to the second. */
export const FIRST_HOLD_MS = 10_000;
export const LAST_HOLD_MS = 300_000;

/** How many owners are remembered; those that were evicted longest ago are forgotten beyond it. */
export const OWNER_LIMIT = 1000;

/** What brings a pod back, and its other pods that were there when its eviction was decided. */
export interface Ownership {
  readonly owner: string;
  /** Their ids: they have not come back, but stayed. */
  readonly siblings: readonly string[];
}

/** What is remembered of one owner. */
export interface Comeback {
  /** The pod that was evicted last. */
  readonly podId: string;
  readonly podName: string;
  /** Its other pods that were there then, by id. */
  readonly siblings: ReadonlySet<string>;
  /** What it was evicted for; undefined for a limit of its own. */
  readonly signal: Signal | undefined;
  /** Monotonic ms. */
  readonly evictedAtMs: number;
  /** How often it came straight back. */
  readonly returns: number;
  /** When it did the last time, monotonic ms; undefined while it has not since it was evicted. */
  readonly backAtMs: number | undefined;
  /** Until when (monotonic ms) it is held off. */
  readonly heldUntilMs: number;
}

/** By what brings the pods back. */
export type Comebacks = ReadonlyMap<string, Comeback>;

export const NO_COMEBACKS: Comebacks = new Map();

/** The pod whose eviction ended. */
export type EvictedPod = Pick<Comeback, 'podId' | 'podName' | 'signal'>;

/** What brings a pod back; undefined where that is not known. */
export function ownershipOf(
  { id, owner }: PodObservation,
  pods: readonly PodObservation[] = [],
): Ownership | undefined {
  if (owner === undefined) return undefined;
  const siblings = pods.filter((one) => one.owner === owner && one.id !== id);
  return { owner, siblings: siblings.map((one) => one.id) };
}

/** Remembers an eviction; one of a pod that had come back holds its owner off. */
export function afterEviction(
  before: Comebacks,
  { owner, siblings }: Ownership,
  pod: EvictedPod,
  nowMs: number,
): Comebacks {
  const returns = before.get(owner)?.returns ?? 0;
  const comebacks = new Map(before);
  // To the end: the first one is who was evicted longest ago.
  comebacks.delete(owner);
  comebacks.set(owner, {
    ...pod,
    siblings: new Set(siblings),
    evictedAtMs: nowMs,
    returns,
    backAtMs: undefined,
    heldUntilMs: nowMs + holdMs(returns),
  });
  for (const oldest of comebacks.keys()) {
    if (comebacks.size <= OWNER_LIMIT) break;
    comebacks.delete(oldest);
  }
  return comebacks;
}

function holdMs(returns: number): number {
  return returns === 0 ? 0 : Math.min(LAST_HOLD_MS, FIRST_HOLD_MS * 2 ** (returns - 1));
}

/** Forgets what is long ago, and counts who is there again: another pod of the same owner that may be evicted. */
export function withReturns(
  before: Comebacks,
  pods: readonly PodObservation[],
  nowMs: number,
): Comebacks {
  if (before.size === 0) return before;
  const changed = new Map<string, Comeback | undefined>();
  for (const [owner, { evictedAtMs }] of before) {
    if (nowMs - evictedAtMs >= STRAIGHT_BACK_MS) changed.set(owner, undefined);
  }
  for (const { owner, id, protectedBecause } of pods) {
    const known = owner === undefined || changed.has(owner) ? undefined : before.get(owner);
    if (known === undefined || known.backAtMs !== undefined) continue;
    if (protectedBecause !== undefined || !isNew(known, id)) continue;
    changed.set(owner as string, { ...known, returns: known.returns + 1, backAtMs: nowMs });
  }
  if (changed.size === 0) return before;
  const comebacks = new Map(before);
  for (const [owner, comeback] of changed) {
    if (comeback === undefined) comebacks.delete(owner);
    else comebacks.set(owner, comeback);
  }
  return comebacks;
}

/** Whether a pod of the owner was not there when the last one was evicted. */
function isNew({ podId, siblings }: Comeback, id: string): boolean {
  return id !== podId && !siblings.has(id);
}

/** What an eviction is to come to. */
export interface Need {
  readonly signal: Signal;
  /** In the signal's unit: what is missing. */
  readonly missing: number;
}

/**
 * Ranked pods with those that came straight back moved among their equals, which have their standing and their
 * priority:
 *
 * - Whoever was evicted for the same, and is not held off, goes before them: he brought it about.
 * - Whoever is held off goes after them, unless his end alone would be enough.
 *
 * Nobody is passed over.
 */
export function orderedByComebacks(
  ranked: readonly Ranked[],
  comebacks: Comebacks,
  need: Need,
  nowMs: number,
): readonly Ranked[] {
  if (comebacks.size === 0) return ranked;
  const places = ranked.map(({ pod }) => placeOf(pod, comebacks, need, nowMs));
  if (places.every((place) => place === 0)) return ranked;
  const indices = ranked.map((_, index) => index);
  let group = 0;
  const groups = ranked.map((one, index) => {
    const before = ranked[index - 1];
    if (before !== undefined && !isEqual(before, one)) group += 1;
    return group;
  });
  const at = (list: readonly number[], index: number): number => list[index] as number;
  return indices
    .sort(
      (one, other) =>
        at(groups, one) - at(groups, other) || at(places, one) - at(places, other) || one - other,
    )
    .map((index) => ranked[index] as Ranked);
}

function isEqual(one: Ranked, other: Ranked): boolean {
  return one.standing === other.standing && one.pod.priority === other.pod.priority;
}

/** -1 before its equals, 1 after them. */
function placeOf(
  pod: PodObservation,
  comebacks: Comebacks,
  { signal, missing }: Need,
  nowMs: number,
): -1 | 0 | 1 {
  const comeback = pod.owner === undefined ? undefined : comebacks.get(pod.owner);
  if (comeback?.backAtMs === undefined || comeback.signal !== signal) return 0;
  if (!isNew(comeback, pod.id)) return 0;
  if (nowMs >= comeback.heldUntilMs) return -1;
  return givesBack(pod, signal) >= missing ? 0 : 1;
}

/** What its end gives back at most, as far as that is known. */
function givesBack({ workingSetBytes, pids }: PodObservation, signal: Signal): number {
  switch (signal) {
    case 'memory.available':
    case 'allocatableMemory.available':
      return workingSetBytes ?? 0;
    case 'pid.available':
      return pids ?? 0;
    default:
      return 0;
  }
}

import { concatMap, type MonoTypeOperatorFunction, scan } from 'rxjs';
import type { EvictionOutcome } from './decision.ts';
import { observationOf, type SignalObservation } from './observation.ts';
import type { ReadReason, Turn } from './pipeline.ts';
import type { DiskPart, DiskUsage, PodObservation, QosClass } from './pod.ts';
import type { Policy } from './policy.ts';
import { formatQuantity } from './quantity.ts';
import { SIGNALS, type Signal } from './signal.ts';
import type { State } from './state.ts';
import { type Threshold, thresholdId } from './threshold.ts';

/** A turn of the pipeline as data: all that it takes to decide it again. */
export interface RecordedTurn {
  readonly kind: 'turn';
  /** Monotonic ms, on the clock of whoever recorded it. */
  readonly atMs: number;
  readonly reason: ReadReason;
  readonly signals: readonly RecordedSignal[];
  /** Null where they were not read. */
  readonly pods: readonly RecordedPod[] | null;
  /** Whether no threshold was met. */
  readonly calm: boolean;
  readonly decision: RecordedDecision;
  /** How the eviction in flight ended, if it did. */
  readonly outcome: { readonly podId: string; readonly kind: RecordedOutcome } | null;
  /** That what was evicted for a disk still held its space. */
  readonly spaceHeld?: true;
  /** That the collection which was decided had ended. */
  readonly reclaimed?: true;
}

/** Whole numbers of the signal's unit. */
export interface RecordedSignal {
  readonly signal: Signal;
  readonly capacity: number;
  readonly available: number;
}

/** A pod as it was seen; null for what is not known, or none. */
export interface RecordedPod {
  readonly id: string;
  readonly name: string;
  /** Of a runtime's pod; left out for a cgroup that no runtime names. */
  readonly namespace?: string;
  readonly priority: number;
  readonly qosClass: QosClass;
  /** A quantity of bytes. */
  readonly memoryRequest: string;
  readonly workingSetBytes: number | null;
  readonly pids: number | null;
  /** What it used of the disks; left out where that was not known. */
  readonly disk?: RecordedDisk;
  /** What images took that it alone used; left out where that was not known. */
  readonly exclusiveImageBytes?: number;
  readonly gracePeriodSeconds: number | null;
  /** Why it may not be evicted. */
  readonly protected: string | null;
}

/** By part. */
export type RecordedDisk = Readonly<
  Record<DiskPart, { readonly bytes: number; readonly inodes: number | null }>
>;

export type RecordedDecision =
  | { readonly kind: 'none'; readonly why: string }
  | { readonly kind: 'evict' | 'escalate'; readonly podId: string; readonly gracePeriodMs: number }
  | { readonly kind: 'reclaim' | 'observePods' };

/** What an outcome means for what comes after it: what is as good as failed is `failed`. */
export type RecordedOutcome =
  | 'evicted'
  | 'timedOut'
  | 'failed'
  | 'nothingToKill'
  | 'pressureGone'
  | 'dryRun';

/** The namespace of pods that are cgroups and no more. */
export const CGROUP_NAMESPACE = 'cgroup';

/** The namespace of a pod by its id; undefined for a cgroup that no runtime names. */
export type NamespaceOf = (podId: string) => string | undefined;

/** A turn as it is recorded. */
export function recordedTurn(
  { sample, reason, state, decision }: Turn,
  namespaceOf: NamespaceOf = () => undefined,
): RecordedTurn {
  const { nowMs, observations, pods, outcome } = sample;
  return {
    kind: 'turn',
    atMs: nowMs,
    reason,
    signals: observations.map(({ signal, capacity, available }) => ({
      signal,
      capacity,
      available,
    })),
    pods: pods?.map((pod) => recordedPod(pod, namespaceOf)) ?? null,
    calm: state.met.length === 0,
    decision: recordedDecision(decision),
    outcome:
      outcome === undefined ? null : { podId: outcome.podId, kind: recordedOutcome(outcome) },
    ...(sample.spaceHeld === true ? { spaceHeld: true } : {}),
    ...(sample.reclaimed === true ? { reclaimed: true } : {}),
  };
}

/** A pod as it is recorded. */
export function recordedPod(pod: PodObservation, namespaceOf: NamespaceOf): RecordedPod {
  const { id, name, priority, qosClass, memoryRequestNano } = pod;
  const namespace = namespaceOf(id);
  return {
    id,
    name,
    ...(namespace === undefined ? {} : { namespace }),
    priority,
    qosClass,
    memoryRequest: formatQuantity(memoryRequestNano, 'binary'),
    workingSetBytes: pod.workingSetBytes ?? null,
    pids: pod.pids ?? null,
    ...(pod.disk === undefined ? {} : { disk: recordedDisk(pod.disk) }),
    ...(pod.exclusiveImageBytes === undefined
      ? {}
      : { exclusiveImageBytes: pod.exclusiveImageBytes }),
    gracePeriodSeconds: pod.gracePeriodSeconds ?? null,
    protected: pod.protectedBecause ?? null,
  };
}

function recordedDisk(disk: NonNullable<PodObservation['disk']>): RecordedDisk {
  const part = ({ bytes, inodes }: DiskUsage) => ({ bytes, inodes: inodes ?? null });
  return {
    root: part(disk.root),
    logs: part(disk.logs),
    localVolumes: part(disk.localVolumes),
  };
}

function recordedDecision(decision: Turn['decision']): RecordedDecision {
  switch (decision.kind) {
    case 'none':
      return { kind: 'none', why: decision.why };
    case 'evict':
      return { kind: 'evict', podId: decision.pod.id, gracePeriodMs: decision.gracePeriodMs };
    case 'escalate':
      return { kind: 'escalate', podId: decision.podId, gracePeriodMs: decision.gracePeriodMs };
    case 'reclaim':
    case 'observePods':
      return { kind: decision.kind };
  }
}

function recordedOutcome(outcome: EvictionOutcome): RecordedOutcome {
  if (outcome.kind !== 'refused') return outcome.kind;
  const { reason } = outcome;
  const isOwn = reason === 'nothingToKill' || reason === 'pressureGone' || reason === 'dryRun';
  return isOwn ? reason : 'failed';
}

/**
 * The turns by which all others can be told: those with pods, a decision or an outcome, those in which
 * another threshold is met or none is any more, with the one before, those that change a node condition, and
 * else one each `intervalMs`.
 *
 * A turn that found nobody by an earlier ranking, and ranked nobody itself, is left out: with the pods
 * of another turn it would be decided otherwise. So is one that waited for newer figures of disk use.
 *
 * Filesystems are read at a pace of their own, in turns of which most are left out: what was read of one that is
 * not short, where that changes nothing, goes with the next turn. So does the end of a collection.
 *
 * Synchronous; completes and errors with its source.
 *
 * @param before the turn before the first one, whose figures of filesystems go with that
 */
export function worthRecording(intervalMs: number, before?: Turn): MonoTypeOperatorFunction<Turn> {
  return (turns$) =>
    turns$.pipe(
      scan((choice, turn) => choose(choice, turn, intervalMs), {
        ...NOTHING_CHOSEN,
        carried: before === undefined ? NOTHING_CARRIED : knownAt(before),
      }),
      concatMap(({ chosen }) => chosen),
    );
}

interface Choice {
  /** Of the last turn. */
  readonly chosen: readonly Turn[];
  /** The last one that was chosen, and the last since that was not. */
  readonly last: Turn | undefined;
  readonly passedBy: Turn | undefined;
  /** The last since that was not and has read a filesystem that was short: a condition counts from there. */
  readonly short: Turn | undefined;
  readonly carried: Carried;
}

/** What turns that were left out had, and goes with the next one. */
interface Carried {
  /** By which it was read. */
  readonly policy: Policy | undefined;
  /** Of filesystems that were not short. */
  readonly observations: readonly SignalObservation[];
  readonly reclaimed: boolean;
}

const NOTHING_CARRIED: Carried = { policy: undefined, observations: [], reclaimed: false };
const NOTHING_CHOSEN: Choice = {
  chosen: [],
  last: undefined,
  passedBy: undefined,
  short: undefined,
  carried: NOTHING_CARRIED,
};

/** So old may figures be that go with the first turn, ms. */
const KNOWN_FOR_MS = 60_000;

function knownAt({ policy, state, sample }: Turn): Carried {
  const observations = calmDisks(state.observations, state).filter(
    ({ atMs }) => sample.nowMs - atMs <= KNOWN_FOR_MS,
  );
  return { policy, observations, reclaimed: false };
}

/** Those of filesystems of which no threshold is met. */
function calmDisks(
  observations: readonly SignalObservation[],
  { met }: State,
): readonly SignalObservation[] {
  return observations.filter(
    ({ signal }) =>
      SIGNALS[signal].filesystem !== undefined &&
      !met.some((threshold) => threshold.signal === signal),
  );
}

function readsShortDisk({ sample: { observations }, state }: Turn): boolean {
  const disks = observations.filter(({ signal }) => SIGNALS[signal].filesystem !== undefined);
  return calmDisks(disks, state).length < disks.length;
}

/** With what a turn has that is left out. */
function carriedOn(before: Carried, { policy, state, sample }: Turn): Carried {
  const kept = before.policy === policy ? before.observations : [];
  const now = calmDisks(sample.observations, state);
  const older = kept.filter(({ signal }) => observationOf(now, signal) === undefined);
  const reclaimed = before.reclaimed || sample.reclaimed === true;
  return { policy, observations: [...older, ...now], reclaimed };
}

/** With what is carried, as far as it decides nothing there. */
function withCarried(turn: Turn, { policy, observations, reclaimed }: Carried): Turn {
  const { state, sample } = turn;
  const isQuiet =
    policy === turn.policy && state.reclaiming === undefined && state.spaceAwaited === undefined;
  const more = isQuiet
    ? calmDisks(observations, state).filter(
        ({ signal }) => observationOf(sample.observations, signal) === undefined,
      )
    : [];
  if (more.length === 0 && !reclaimed) return turn;
  const all = [...sample.observations, ...more];
  return {
    ...turn,
    sample: { ...sample, observations: all, ...(reclaimed ? { reclaimed: true } : {}) },
  };
}

function choose(
  { last, passedBy, short, carried }: Choice,
  turn: Turn,
  intervalMs: number,
): Choice {
  const { sample, decision } = turn;
  if (isByOthers(turn)) {
    const isEnd = sample.reclaimed === true;
    return {
      chosen: [],
      last,
      passedBy: isEnd ? undefined : passedBy,
      short: isEnd ? undefined : short,
      carried: isEnd ? carriedOn(carried, turn) : carried,
    };
  }
  const chosen = (...turns: readonly Turn[]): Choice => {
    const isApart = short !== undefined && !turns.includes(short);
    const all = isApart ? [short, ...turns] : turns;
    return {
      ...NOTHING_CHOSEN,
      chosen: all.map((one, index) => (index === 0 ? withCarried(one, carried) : one)),
      last: turn,
    };
  };
  if (last === undefined) return chosen(turn);
  if (namesOf(last.state.met) !== namesOf(turn.state.met)) {
    return passedBy === undefined ? chosen(turn) : chosen(passedBy, turn);
  }
  const matters =
    sample.pods !== undefined ||
    decision.kind !== 'none' ||
    sample.outcome !== undefined ||
    sample.reclaimed === true ||
    carried.reclaimed ||
    last.conditions.join() !== turn.conditions.join();
  if (matters || sample.nowMs - last.sample.nowMs >= intervalMs) return chosen(turn);
  return {
    chosen: [],
    last,
    passedBy: turn,
    short: readsShortDisk(turn) ? turn : short,
    carried: carriedOn(carried, turn),
  };
}

/** Decided by an earlier ranking, or since figures of disk use were older than they are in a recording. */
function isByOthers({ sample, decision }: Turn): boolean {
  if (decision.kind !== 'none') return false;
  if (decision.why === 'noCandidate') return sample.pods === undefined;
  return decision.why === 'oldFigures' && sample.outcome === undefined;
}

function namesOf(met: readonly Threshold[]): string {
  return met.map(thresholdId).join();
}

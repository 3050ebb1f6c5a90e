import { concatMap, type MonoTypeOperatorFunction, scan } from 'rxjs';
import type { EvictionOutcome } from './decision.ts';
import type { ReadReason, Turn } from './pipeline.ts';
import type { DiskPart, DiskUsage, PodObservation, QosClass } from './pod.ts';
import { formatQuantity } from './quantity.ts';
import type { Signal } from './signal.ts';
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

/** A turn as it is recorded. */
export function recordedTurn({ sample, reason, state, decision }: Turn): RecordedTurn {
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
    pods: pods?.map(recordedPod) ?? null,
    calm: state.met.length === 0,
    decision: recordedDecision(decision),
    outcome:
      outcome === undefined ? null : { podId: outcome.podId, kind: recordedOutcome(outcome) },
    ...(sample.spaceHeld === true ? { spaceHeld: true } : {}),
  };
}

/** A pod as it is recorded. */
export function recordedPod(pod: PodObservation): RecordedPod {
  const { id, name, priority, qosClass, memoryRequestNano } = pod;
  return {
    id,
    name,
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
 * Synchronous; completes and errors with its source.
 */
export function worthRecording(intervalMs: number): MonoTypeOperatorFunction<Turn> {
  return (turns$) =>
    turns$.pipe(
      scan((before, turn) => choose(before, turn, intervalMs), NOTHING_CHOSEN),
      concatMap(({ chosen }) => chosen),
    );
}

interface Choice {
  /** Of the last turn. */
  readonly chosen: readonly Turn[];
  /** The last one that was chosen, and the last since that was not. */
  readonly last: Turn | undefined;
  readonly passedBy: Turn | undefined;
}

const NOTHING_CHOSEN: Choice = { chosen: [], last: undefined, passedBy: undefined };

function choose({ last, passedBy }: Choice, turn: Turn, intervalMs: number): Choice {
  const { sample, decision } = turn;
  if (isByOthers(turn)) return { chosen: [], last, passedBy };
  const chosen = (...turns: readonly Turn[]): Choice => ({
    chosen: turns,
    last: turn,
    passedBy: undefined,
  });
  if (last === undefined) return chosen(turn);
  if (namesOf(last.state.met) !== namesOf(turn.state.met)) {
    return passedBy === undefined ? chosen(turn) : chosen(passedBy, turn);
  }
  const matters =
    sample.pods !== undefined ||
    decision.kind !== 'none' ||
    sample.outcome !== undefined ||
    last.conditions.join() !== turn.conditions.join();
  if (matters || sample.nowMs - last.sample.nowMs >= intervalMs) return chosen(turn);
  return { chosen: [], last, passedBy: turn };
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

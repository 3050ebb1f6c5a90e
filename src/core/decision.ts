import type { SignalObservation } from './observation.ts';
import type { PodObservation } from './pod.ts';
import type { ReclaimFunction } from './reclaim.ts';
import type { Threshold } from './threshold.ts';

/** Why nothing is done. */
export type Inaction =
  /** No threshold is past its grace. */
  | 'calm'
  /** An eviction is in flight. */
  | 'evicting'
  /** Pressure, but no pod may be evicted. */
  | 'noCandidate'
  /** Pressure for which no pod is evicted: a node condition, and no reclaim. */
  | 'noReclaim'
  /** A dry run has named its victim for this burst of pressure. */
  | 'said'
  /** Dead containers and unused images are being collected. */
  | 'reclaiming'
  /** That was enough. */
  | 'reclaimed'
  /** Nothing tells yet whether it was: the next reading decides. */
  | 'unmeasured'
  /** What was evicted for a disk is dead, and its space has not come back yet. */
  | 'spaceHeld'
  /** What pods use of the disks was found out before the pressure began. */
  | 'oldFigures';

/** What led to a decision: kept for the log, the status and the re-check before a kill. */
export interface Cause {
  readonly threshold: Threshold;
  readonly observation: SignalObservation;
  /** The level that the observation was below, in the signal's unit. */
  readonly level: number;
  /** Whether the level includes the minimum reclaim. */
  readonly reclaiming: boolean;
}

/** Notes on an eviction for machines, keyed as the kubelet keys them. */
export type EvictionAnnotations = Readonly<Record<string, string>>;

/** The pod condition that an eviction sets. Source: Kubernetes, "Pod disruption conditions". */
export interface PodCondition {
  readonly type: 'DisruptionTarget';
  readonly status: 'True';
  readonly reason: 'TerminationByKubelet';
  readonly message: string;
}

/** What is to be done after a sample; data, executed elsewhere. */
export type Decision =
  | { readonly kind: 'none'; readonly why: Exclude<Inaction, 'noCandidate' | 'noReclaim'> }
  | {
      readonly kind: 'none';
      readonly why: 'noCandidate' | 'noReclaim';
      readonly cause: Cause;
    }
  /** Something is due, and the sample has no pods: take one that has, and step again. */
  | { readonly kind: 'observePods'; readonly cause: Cause }
  /** Before a pod goes, what nobody uses is collected, in this order; one at a time. */
  | {
      readonly kind: 'reclaim';
      readonly functions: readonly ReclaimFunction[];
      readonly cause: Cause;
    }
  | {
      readonly kind: 'evict';
      readonly pod: PodObservation;
      /** Whether a hard threshold is the cause: it decides how long the effect is awaited. */
      readonly hard: boolean;
      readonly gracePeriodMs: number;
      /** The same as the kubelet would hand it to the kill: it may be negative. */
      readonly gracePeriodSeconds: number;
      /** Undefined for a pod that exceeds a limit of its own storage. */
      readonly cause: Cause | undefined;
      readonly message: string;
      readonly annotations: EvictionAnnotations;
      /** The condition that it sets in the pod's status, where it is for the node's sake. */
      readonly condition: PodCondition | undefined;
    }
  /** A hard threshold was crossed while a soft victim is in its grace: the grace is cut. */
  | {
      readonly kind: 'escalate';
      readonly podId: string;
      readonly podName: string;
      readonly gracePeriodMs: number;
      readonly cause: Cause;
      readonly message: string;
    };

/** Why an eviction was not carried out. */
export type RefusalReason =
  | 'pressureGone'
  | 'podGone'
  | 'podReplaced'
  | 'protected'
  | 'nothingToKill'
  | 'dryRun'
  | 'unsupported'
  /** evictd ended while it ran, and the next one did not take it up again. */
  | 'interrupted';

/** When each stage of an eviction was reached, monotonic ms; undefined for one that was not. */
export interface EvictionTiming {
  readonly decidedAtMs: number;
  /** The first TERM or KILL. */
  readonly firstSignalAtMs: number | undefined;
  /** Every process had been sent KILL. */
  readonly killedAtMs: number | undefined;
  /** No process was left. */
  readonly emptyAtMs: number | undefined;
  readonly endedAtMs: number;
}

/** How an eviction ended. What can happen in operation is a value, not an exception. */
export type EvictionOutcome = {
  readonly podId: string;
  readonly podName: string;
  readonly timing: EvictionTiming;
  /** How many processes were sent a signal. */
  readonly processes: number;
} & (
  | {
      readonly kind: 'evicted' /** What its processes left charged. */;
      readonly chargedBytes: number | undefined;
    }
  | { readonly kind: 'refused'; readonly reason: RefusalReason; readonly detail?: string }
  | {
      readonly kind: 'timedOut';
      readonly reason: 'stillDying' | 'deadline';
      readonly remaining: number;
      readonly detail?: string;
    }
  | { readonly kind: 'failed'; readonly error: string }
);

/** An eviction that was decided, and how it ended once it has. */
export interface EvictionRecord {
  readonly podId: string;
  readonly podName: string;
  readonly hard: boolean;
  readonly gracePeriodMs: number;
  readonly message: string;
  /** Left out for one of a former run. */
  readonly annotations?: EvictionAnnotations;
  /** Monotonic ms; of another boot only as far back as the wall clock says. */
  readonly decidedAtMs: number;
  /** The wall clock's time of that, ms since 1970, where it is of a former run. */
  readonly decidedWallMs?: number;
  readonly outcome: EvictionOutcome | undefined;
}

import type { SignalObservation } from './observation.ts';
import type { PodObservation } from './pod.ts';
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
  | 'said';

/** What led to a decision: kept for the log, the status and the re-check before a kill. */
export interface Cause {
  readonly threshold: Threshold;
  readonly observation: SignalObservation;
  /** The level that the observation was below, in the signal's unit. */
  readonly level: number;
  /** Whether the level includes the minimum reclaim. */
  readonly reclaiming: boolean;
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
  | {
      readonly kind: 'evict';
      readonly pod: PodObservation;
      /** Whether a hard threshold is the cause: it decides how long the effect is awaited. */
      readonly hard: boolean;
      readonly gracePeriodMs: number;
      readonly cause: Cause;
      readonly message: string;
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
  | 'unsupported';

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

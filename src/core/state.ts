/** What the policy is told, and what it remembers from one sample to the next. */
import type { ConditionsObserved } from './conditions.ts';
import type { Cause, EvictionOutcome } from './decision.ts';
import type { FirstObserved } from './grace.ts';
import { type Comebacks, NO_COMEBACKS, type Ownership } from './hold-off.ts';
import type { SignalObservation } from './observation.ts';
import type { PodObservation } from './pod.ts';
import type { NodeCondition, Signal } from './signal.ts';
import type { Threshold } from './threshold.ts';

/** What was read at one instant, and what ended since. */
export interface Sample {
  /** Monotonic ms. */
  readonly nowMs: number;
  /**
   * One for each signal that could be read; a signal that could not be is missing. Undefined where
   * nothing was read.
   */
  readonly observations: readonly SignalObservation[] | undefined;
  /**
   * That every signal was asked for: what is missing could not be read. The daemon reads each signal at
   * its own pace, so that most of its samples lack some.
   */
  readonly isComplete?: true;
  /** All pods, where they were read. */
  readonly pods?: readonly PodObservation[];
  /** How the eviction in flight ended, if it did. */
  readonly outcome?: EvictionOutcome;
  /** That the collection which was decided has ended; the observations are from after it. */
  readonly reclaimed?: true;
  /** That what a pod left on the disks which was evicted for one is still there. */
  readonly spaceHeld?: true;
  /** Pods that exceed a limit of their own storage, in the order they go; none where it is left out. */
  readonly overLimits?: readonly OverLimit[];
}

/** A pod that exceeds a limit of its own storage, and in which words. */
export interface OverLimit {
  readonly pod: PodObservation;
  readonly message: string;
}

/** The eviction that is running: from its decision to its outcome. */
export interface InFlight {
  readonly podId: string;
  readonly podName: string;
  /** What brings the pod back; left out where that is not known, and where it was decided in a former run. */
  readonly ownership?: Ownership;
  /** What it is for; undefined for a limit of its own. */
  readonly signal: Signal | undefined;
  /** Whether a hard threshold caused it, or has escalated it since. */
  readonly hard: boolean;
}

/** Pressure under which no pod may be evicted, as it was first found. */
export interface Impossibility {
  /** Monotonic ms. */
  readonly atMs: number;
  readonly cause: Cause;
  readonly pods: number;
  /** How many of them are protected, or have no process. */
  readonly protectedPods: number;
  /** How many could not be evicted a while ago. */
  readonly passedOverPods: number;
  /** How many have nothing of what is short, so that their end would free none. */
  readonly helplessPods: number;
}

/** Space that is to come back. */
export interface SpaceAwaited {
  /** Since when it has been held, monotonic ms. */
  readonly sinceMs: number;
  /** Until when no pod goes for a disk, monotonic ms. */
  readonly untilMs: number;
  /** The most that was available of each disk meanwhile. */
  readonly highest: ReadonlyMap<Signal, number>;
}

/** All that is remembered from one sample to the next. */
export interface State {
  readonly observations: readonly SignalObservation[];
  /** Met now, in policy order; with minimum reclaim for those that were acted on. */
  readonly met: readonly Threshold[];
  readonly firstObserved: FirstObserved;
  /** Past their grace, until the threshold and its minimum reclaim are regained. */
  readonly due: readonly Threshold[];
  readonly conditionsObserved: ConditionsObserved;
  readonly inFlight: InFlight | undefined;
  /** Until when (monotonic ms) a pod that could not be evicted is left alone, by pod id. */
  readonly passedOver: ReadonlyMap<string, number>;
  /** Who was evicted lately, and came straight back. */
  readonly comebacks: Comebacks;
  /** Until when (monotonic ms) PIDs of a pod that was evicted for them may still come back. */
  readonly pidsAwaitedUntilMs: number;
  /** The space of pods that were evicted for a disk; undefined where none is awaited. */
  readonly spaceAwaited: SpaceAwaited | undefined;
  /** When (monotonic ms) anything was last met. */
  readonly metAtMs: number;
  /** Whether a dry run has named its victim since the pressure began. */
  readonly said: boolean;
  /** When (monotonic ms) ranking last found nobody who may be evicted, while that lasts. */
  readonly noCandidateAtMs: number | undefined;
  /** What that was for. */
  readonly noCandidateCause: Cause | undefined;
  /** That ranking found nobody who may be evicted, the first time since the pressure began. */
  readonly impossible: Impossibility | undefined;
  /** What is being collected for, until a sample says that it has ended. */
  readonly reclaiming: Cause | undefined;
  /** What was collected for without a reading since: the next one decides, without another collection. */
  readonly unmeasured: Signal | undefined;
  /** When (monotonic ms) it was last collected for each signal that has been short ever since. */
  readonly collectedAtMs: ReadonlyMap<Signal, number>;
  /** Pods over a limit of their own that are still to go. */
  readonly overLimits: readonly OverLimit[];
  /** The times of the figures that were last read, by their source, ns. */
  readonly statsTimesNs: ReadonlyMap<Signal, bigint | undefined>;
  /** The resources that were said to be short since the pressure began. */
  readonly announced: ReadonlySet<string>;
  /** What held after the last reading. */
  readonly conditions: readonly NodeCondition[];
}

export const INITIAL_STATE: State = {
  observations: [],
  met: [],
  firstObserved: new Map(),
  due: [],
  conditionsObserved: new Map(),
  inFlight: undefined,
  passedOver: new Map(),
  comebacks: NO_COMEBACKS,
  pidsAwaitedUntilMs: Number.NEGATIVE_INFINITY,
  spaceAwaited: undefined,
  metAtMs: Number.NEGATIVE_INFINITY,
  said: false,
  noCandidateAtMs: undefined,
  noCandidateCause: undefined,
  impossible: undefined,
  reclaiming: undefined,
  unmeasured: undefined,
  collectedAtMs: new Map(),
  overLimits: [],
  statsTimesNs: new Map(),
  announced: new Set(),
  conditions: [],
};

/** A state that is being made. */
export type NextState = { -readonly [Field in keyof State]: State[Field] };

/**
 * A copy whose fields may be changed before anybody sees it. Each field by its name: most readings change
 * something, and a spread takes many times as long.
 */
export function copied(state: State): NextState {
  return {
    observations: state.observations,
    met: state.met,
    firstObserved: state.firstObserved,
    due: state.due,
    conditionsObserved: state.conditionsObserved,
    inFlight: state.inFlight,
    passedOver: state.passedOver,
    comebacks: state.comebacks,
    pidsAwaitedUntilMs: state.pidsAwaitedUntilMs,
    spaceAwaited: state.spaceAwaited,
    metAtMs: state.metAtMs,
    said: state.said,
    noCandidateAtMs: state.noCandidateAtMs,
    noCandidateCause: state.noCandidateCause,
    impossible: state.impossible,
    reclaiming: state.reclaiming,
    unmeasured: state.unmeasured,
    collectedAtMs: state.collectedAtMs,
    overLimits: state.overLimits,
    statsTimesNs: state.statsTimesNs,
    announced: state.announced,
    conditions: state.conditions,
  };
}

/**
 * What another policy makes of what was found: whom nobody may evict, and what a dry run has said, is
 * found anew. All that was observed, and the eviction in flight, stays.
 */
export function underAnotherPolicy(state: State): State {
  return { ...state, said: false, noCandidateAtMs: undefined, noCandidateCause: undefined };
}

/**
 * Whom nobody could evict is a candidate again, and no PIDs are awaited: the kubelet remembers neither from
 * one round to the next. For `simulate` alone, where rounds are seconds apart.
 */
export function forgetFailures(state: State): State {
  const { passedOver, pidsAwaitedUntilMs } = INITIAL_STATE;
  return state.passedOver.size === 0 && state.pidsAwaitedUntilMs === pidsAwaitedUntilMs
    ? state
    : { ...state, passedOver, pidsAwaitedUntilMs };
}

/**
 * The whole policy as one pure function. {@link step} takes what is known so far and one sample,
 * and says what is known then, which node conditions hold, what is to be done and when to look
 * again. Source of the stages and their order: kubelet `eviction_manager.go`, `synchronize`.
 */
import {
  type ConditionsObserved,
  conditionsLastObserved,
  heldConditions,
  nextConditionEndMs,
} from './conditions.ts';
import type { Cause, Decision, EvictionOutcome } from './decision.ts';
import {
  earliest,
  type FirstObserved,
  firstObservedAt,
  nextGraceEndMs,
  pastGrace,
} from './grace.ts';
import { evictionMessage } from './message.ts';
import type { SignalObservation } from './observation.ts';
import type { PodObservation } from './pod.ts';
import type { Policy } from './policy.ts';
import { isEvictedFor, rankPods } from './rank.ts';
import type { NodeCondition, Signal } from './signal.ts';
import {
  compareThresholds,
  isMet,
  type Threshold,
  thresholdId,
  thresholdLevel,
} from './threshold.ts';

/** How long a pod that could not be killed is passed over, ms. */
export const PASS_OVER_MS = 60_000;

/** How long one without a process is, ms: its first may come at any moment. */
export const PASS_OVER_EMPTY_MS = 1000;

/**
 * How often all pods are ranked again while none of them may be evicted, ms: listing and reading
 * them at each poll would load the node in its worst hour.
 */
export const RANK_AGAIN_MS = 1000;

/** So much of the threshold less is reason to rank again at once: a fall can go on eight times. */
export const RANK_AGAIN_FALL = 1 / 8;

/** How soon they are ranked again when the pressure is new, ms: right at a threshold a reading wavers. */
export const RANK_NEW_MS = 250;

/**
 * How long nothing must have been met for pressure to count as new, ms: right at a threshold a
 * reading wavers, and a dry run would speak at each crossing.
 */
export const BURST_GAP_MS = 1000;

/**
 * How long after an eviction for PIDs no pod is evicted for them that has too few to end the pressure,
 * ms: what has ended counts until its parent, or init in its place, has waited for it.
 */
export const PIDS_AWAITED_MS = 2000;

/** How many pods are remembered as passed over; the oldest are forgotten beyond it. */
export const PASSED_OVER_LIMIT = 1000;

/** What was read at one instant, and what ended since. */
export interface Sample {
  /** Monotonic ms. */
  readonly nowMs: number;
  /** One for each signal that could be read; a signal that could not be is missing. */
  readonly observations: readonly SignalObservation[];
  /** All pods, where they were read. */
  readonly pods?: readonly PodObservation[];
  /** How the eviction in flight ended, if it did. */
  readonly outcome?: EvictionOutcome;
}

/** The eviction that is running: from its decision to its outcome. */
export interface InFlight {
  readonly podId: string;
  readonly podName: string;
  /** What it is for. */
  readonly signal: Signal;
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
  /** Until when (monotonic ms) PIDs of a pod that was evicted for them may still come back. */
  readonly pidsAwaitedUntilMs: number;
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
}

export const INITIAL_STATE: State = {
  observations: [],
  met: [],
  firstObserved: new Map(),
  due: [],
  conditionsObserved: new Map(),
  inFlight: undefined,
  passedOver: new Map(),
  pidsAwaitedUntilMs: Number.NEGATIVE_INFINITY,
  metAtMs: Number.NEGATIVE_INFINITY,
  said: false,
  noCandidateAtMs: undefined,
  noCandidateCause: undefined,
  impossible: undefined,
};

export interface StepResult {
  readonly state: State;
  /** The node conditions that hold, sorted. */
  readonly conditions: readonly NodeCondition[];
  readonly decision: Decision;
  /** The next instant (monotonic ms) at which a period ends and a fresh sample is needed. */
  readonly wakeAtMs: number | undefined;
}

/**
 * One round of the policy. Pure; the same arguments give the same result. At most one eviction is
 * in flight: after `evict` nothing but `escalate` comes until a sample carries the outcome.
 */
export function step(policy: Policy, before: State, sample: Sample): StepResult {
  const settled = settle(before, sample);
  const state = observe(policy, settled, sample);
  const decision = decide(policy, state, sample);
  return {
    state: remember(state, decision, sample),
    conditions: heldConditions(
      state.conditionsObserved,
      policy.pressureTransitionPeriodMs,
      sample.nowMs,
    ),
    decision,
    wakeAtMs: nextInstant(policy, state, sample.nowMs),
  };
}

/**
 * What another policy makes of what was found: whom nobody may evict, and what a dry run has said, is
 * found anew. All that was observed, and the eviction in flight, stays.
 */
export function underAnotherPolicy(state: State): State {
  return { ...state, said: false, noCandidateAtMs: undefined, noCandidateCause: undefined };
}

/** Takes in the outcome of the eviction that was in flight. */
function settle(state: State, sample: Sample): State {
  const passedOver = unexpired(state.passedOver, sample.nowMs);
  const { outcome } = sample;
  if (outcome === undefined || outcome.podId !== state.inFlight?.podId)
    return { ...state, passedOver };
  const ended = {
    ...state,
    inFlight: undefined,
    passedOver,
    pidsAwaitedUntilMs:
      state.inFlight.signal === 'pid.available' && outcome.kind === 'evicted'
        ? sample.nowMs + PIDS_AWAITED_MS
        : state.pidsAwaitedUntilMs,
  };
  if (outcome.kind === 'refused' && outcome.reason === 'dryRun') return { ...ended, said: true };
  const forMs = passOverMs(outcome);
  return forMs === undefined
    ? ended
    : { ...ended, passedOver: passOver(passedOver, outcome.podId, sample.nowMs + forMs) };
}

/** For how long the pod would only fail again if it were taken; undefined when it would not. */
function passOverMs(outcome: EvictionOutcome): number | undefined {
  switch (outcome.kind) {
    case 'evicted':
      return undefined;
    case 'refused':
      if (outcome.reason === 'pressureGone') return undefined;
      return outcome.reason === 'nothingToKill' ? PASS_OVER_EMPTY_MS : PASS_OVER_MS;
    case 'timedOut':
    case 'failed':
      return PASS_OVER_MS;
  }
}

function passOver(
  before: ReadonlyMap<string, number>,
  podId: string,
  untilMs: number,
): ReadonlyMap<string, number> {
  return new Map([...before, [podId, untilMs] as const].slice(-PASSED_OVER_LIMIT));
}

function unexpired(
  passedOver: ReadonlyMap<string, number>,
  nowMs: number,
): ReadonlyMap<string, number> {
  if (passedOver.size === 0) return passedOver;
  return new Map([...passedOver].filter(([, untilMs]) => untilMs > nowMs));
}

/** Takes in the readings. A signal that was not read keeps what was known of it. */
function observe(policy: Policy, before: State, sample: Sample): State {
  const isRead = new Map(
    sample.observations.map((observation) => [observation.signal, observation]),
  );
  const wasMet = new Set(before.met.map(thresholdId));
  const wasDue = new Set(before.due.map(thresholdId));
  const met = policy.thresholds.filter((threshold) => {
    const observation = isRead.get(threshold.signal);
    if (observation === undefined) return wasMet.has(thresholdId(threshold));
    return isMet(threshold, observation, wasDue.has(thresholdId(threshold)));
  });
  const readAndMet = met.filter((threshold) => isRead.has(threshold.signal));
  const isSameBurst = before.met.length > 0 || sample.nowMs - before.metAtMs < BURST_GAP_MS;
  const firstObserved = firstObservedAt(met, before.firstObserved, sample.nowMs);
  return {
    ...before,
    observations: mergeObservations(before.observations, sample.observations),
    met,
    firstObserved,
    due: pastGrace(met, firstObserved, sample.nowMs).filter(
      // Nothing becomes due unseen: the pressure may have gone before its grace was over.
      (threshold) => isRead.has(threshold.signal) || wasDue.has(thresholdId(threshold)),
    ),
    conditionsObserved: conditionsLastObserved(readAndMet, before.conditionsObserved, sample.nowMs),
    metAtMs: met.length > 0 ? sample.nowMs : before.metAtMs,
    said: before.said && isSameBurst,
    impossible: isSameBurst ? before.impossible : undefined,
  };
}

function mergeObservations(
  before: readonly SignalObservation[],
  now: readonly SignalObservation[],
): readonly SignalObservation[] {
  const fresh = new Set(now.map((observation) => observation.signal));
  return [...before.filter((observation) => !fresh.has(observation.signal)), ...now];
}

function decide(policy: Policy, state: State, sample: Sample): Decision {
  const cause = firstCause(state, sample);
  if (state.inFlight !== undefined) return decideInFlight(policy, state.inFlight, cause);
  if (cause === undefined) return { kind: 'none', why: 'calm' };
  if (!isEvictedFor(cause.threshold.signal)) return { kind: 'none', why: 'noReclaim', cause };
  if (state.said) return { kind: 'none', why: 'said' };
  if (sample.pods === undefined) {
    return isRanked(state, cause, sample.nowMs)
      ? { kind: 'none', why: 'noCandidate', cause }
      : { kind: 'observePods', cause };
  }
  const candidates = rankPods(cause.threshold.signal, sample.pods).filter(
    (candidate) =>
      candidate.protectedBecause === undefined &&
      !state.passedOver.has(candidate.id) &&
      // The end of who has none of the node's PIDs frees none.
      !(cause.threshold.signal === 'pid.available' && candidate.pids === 0),
  );
  const isAwaited = isPidsAwaited(state, cause, sample.nowMs);
  const pod = isAwaited ? candidates.find((one) => endsPressure(one, cause)) : candidates[0];
  if (pod === undefined) {
    return isAwaited && candidates.length > 0
      ? { kind: 'none', why: 'evicting' }
      : { kind: 'none', why: 'noCandidate', cause };
  }
  const hard = isHard(cause.threshold);
  const gracePeriodMs = 1000 * victimGraceSeconds(policy, hard, pod);
  return { kind: 'evict', pod, hard, gracePeriodMs, cause, message: evictionMessage(cause, pod) };
}

/**
 * Whether ranking has found nobody so lately that it is not done again; less lately for new pressure.
 * What has clearly fallen since is taken by somebody who may not have been there.
 */
function isRanked(state: State, { threshold, observation }: Cause, nowMs: number): boolean {
  const { noCandidateAtMs, noCandidateCause, firstObserved } = state;
  if (noCandidateAtMs === undefined || noCandidateCause === undefined) return false;
  const before = noCandidateCause.observation;
  const fall = RANK_AGAIN_FALL * thresholdLevel(threshold, observation.capacity, false);
  if (before.signal === observation.signal && observation.available <= before.available - fall)
    return false;
  // What is due was observed.
  const isNew = (firstObserved.get(thresholdId(threshold)) as number) > noCandidateAtMs;
  return nowMs - noCandidateAtMs < (isNew ? RANK_NEW_MS : RANK_AGAIN_MS);
}

function isRankedWhileCalm({ noCandidateAtMs }: State, nowMs: number): boolean {
  return noCandidateAtMs !== undefined && nowMs - noCandidateAtMs < RANK_NEW_MS;
}

/** Whether PIDs may come back by themselves: nobody who has few of them goes meanwhile. */
function isPidsAwaited(state: State, { threshold }: Cause, nowMs: number): boolean {
  return threshold.signal === 'pid.available' && nowMs < state.pidsAwaitedUntilMs;
}

function endsPressure({ pids }: PodObservation, { level, observation }: Cause): boolean {
  return (pids ?? 0) >= level - observation.available;
}

/** Only a hard threshold may reach an eviction that runs, and only one in its grace. */
function decideInFlight(policy: Policy, inFlight: InFlight, cause: Cause | undefined): Decision {
  const isUrgent =
    cause !== undefined && isHard(cause.threshold) && isEvictedFor(cause.threshold.signal);
  if (inFlight.hard || !isUrgent) return { kind: 'none', why: 'evicting' };
  return {
    kind: 'escalate',
    podId: inFlight.podId,
    podName: inFlight.podName,
    gracePeriodMs: 1000 * policy.hardEvictionGracePeriodSeconds,
    cause,
    message: evictionMessage(cause, undefined),
  };
}

/** A soft threshold without a grace period is due at once, as a hard one is (kubelet). */
function isHard(threshold: Threshold): boolean {
  return threshold.gracePeriodMs === 0;
}

/**
 * Of the due thresholds whose signal was read just now, the one that is acted on: first those that
 * an eviction can help.
 */
function firstCause(state: State, sample: Sample): Cause | undefined {
  const candidates = state.due.flatMap((threshold) => {
    const observation = sample.observations.find((one) => one.signal === threshold.signal);
    return observation === undefined ? [] : [{ threshold, observation }];
  });
  const ordered = candidates.sort(compareThresholds);
  const first = ordered.find(({ threshold }) => isEvictedFor(threshold.signal)) ?? ordered[0];
  if (first === undefined) return undefined;
  const { threshold, observation } = first;
  const reclaiming = !isMet(threshold, observation, false);
  return {
    threshold,
    observation,
    level: thresholdLevel(threshold, observation.capacity, reclaiming),
    reclaiming,
  };
}

/**
 * The grace of a victim, in whole seconds. Hard: the policy's. Soft: the shorter of the policy's
 * longest and the pod's own; a negative longest leaves it to the pod, and a pod that names none
 * then gets the 30 s that Kubernetes gives by default.
 */
export function victimGraceSeconds(policy: Policy, hard: boolean, pod: PodObservation): number {
  if (hard) return policy.hardEvictionGracePeriodSeconds;
  const longest = policy.maxPodGracePeriodSeconds;
  if (longest < 0) return pod.gracePeriodSeconds ?? 30;
  return Math.min(longest, pod.gracePeriodSeconds ?? longest);
}

/** What the decision changes in the state. */
function remember(state: State, decision: Decision, sample: Sample): State {
  switch (decision.kind) {
    case 'observePods':
      return state;
    case 'none':
      // Right at a threshold a reading wavers: what ranking found holds until the next one is due.
      if (decision.why === 'calm' && isRankedWhileCalm(state, sample.nowMs)) return state;
      if (decision.why !== 'noCandidate') return { ...state, noCandidateAtMs: undefined };
      if (sample.pods === undefined) return state;
      return {
        ...state,
        noCandidateAtMs: sample.nowMs,
        noCandidateCause: decision.cause,
        impossible:
          state.impossible ?? impossibility(state, decision.cause, sample.pods, sample.nowMs),
      };
    case 'evict':
      return {
        ...state,
        noCandidateAtMs: undefined,
        inFlight: {
          podId: decision.pod.id,
          podName: decision.pod.name,
          signal: decision.cause.threshold.signal,
          hard: decision.hard,
        },
      };
    case 'escalate':
      return {
        ...state,
        inFlight: {
          podId: decision.podId,
          podName: decision.podName,
          signal: decision.cause.threshold.signal,
          hard: true,
        },
      };
  }
}

function impossibility(
  state: State,
  cause: Cause,
  pods: readonly PodObservation[],
  nowMs: number,
): Impossibility {
  const open = pods.filter(({ protectedBecause }) => protectedBecause === undefined);
  return {
    atMs: nowMs,
    cause,
    pods: pods.length,
    protectedPods: pods.length - open.length,
    passedOverPods: open.filter(({ id }) => state.passedOver.has(id)).length,
  };
}

function nextInstant(policy: Policy, state: State, nowMs: number): number | undefined {
  const instants = [
    nextGraceEndMs(state.met, state.firstObserved, nowMs),
    nextConditionEndMs(state.conditionsObserved, policy.pressureTransitionPeriodMs, nowMs),
    state.due.length === 0 ? undefined : earliest([...state.passedOver.values()]),
    state.due.length > 0 && state.pidsAwaitedUntilMs > nowMs ? state.pidsAwaitedUntilMs : undefined,
  ];
  return earliest(instants.filter((instant) => instant !== undefined));
}

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
import { disruptionTarget, evictionText, nodeText } from './message.ts';
import type { SignalObservation } from './observation.ts';
import type { PodObservation } from './pod.ts';
import type { Policy } from './policy.ts';
import { isEvictedFor, type Ranked, rankWithReasons } from './rank.ts';
import { type ReclaimFunction, reclaimFunctions } from './reclaim.ts';
import { type NodeCondition, SIGNALS, type Signal } from './signal.ts';
import {
  compareThresholds,
  isMet,
  type Threshold,
  type ThresholdId,
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

/** How long after a collection nothing is collected for the same signal again, ms. */
export const COLLECT_AGAIN_MS = 10_000;

/** How many pods are remembered as passed over; the oldest are forgotten beyond it. */
export const PASSED_OVER_LIMIT = 1000;

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
  /** What is being collected for, until a sample says that it has ended. */
  readonly reclaiming: Cause | undefined;
  /** What was collected for without a reading since: the next one decides, without another collection. */
  readonly unmeasured: Signal | undefined;
  /** When (monotonic ms) it was last collected for each signal. */
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

/** Something that people are told; the first reason is the kubelet's. */
export interface PolicyEvent {
  readonly type: 'Warning';
  readonly reason: 'EvictionThresholdMet' | 'EvictionImpossible' | 'ClockSetBack';
  readonly message: string;
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
  reclaiming: undefined,
  unmeasured: undefined,
  collectedAtMs: new Map(),
  overLimits: [],
  statsTimesNs: new Map(),
  announced: new Set(),
  conditions: [],
};

export interface StepResult {
  readonly state: State;
  /** The node conditions that hold, sorted. */
  readonly conditions: readonly NodeCondition[];
  readonly decision: Decision;
  /** All pods with their places, where they were ranked. */
  readonly ranked: readonly Ranked[] | undefined;
  readonly events: readonly PolicyEvent[];
  /** The next instant (monotonic ms) at which a period ends and a fresh sample is needed. */
  readonly wakeAtMs: number | undefined;
}

/**
 * One round of the policy. Pure; the same arguments give the same result. At most one eviction is
 * in flight: after `evict` nothing but `escalate` comes until a sample carries the outcome.
 */
export function step(policy: Policy, before: State, sample: Sample): StepResult {
  const settled = settle(policy, before, sample);
  const observed = isTakenIn(policy, sample) ? observe(policy, settled, sample) : settled;
  const conditions = conditionsOf(policy, observed, sample);
  // Most turns change nothing, and copy nothing.
  const state = conditions === observed.conditions ? observed : { ...observed, conditions };
  const { decision, ranked } = decide(policy, state, sample);
  const after = remember(policy, state, decision, sample);
  return {
    state: after,
    conditions,
    decision,
    ranked,
    // The same figures are stepped through again, with the pods.
    events: decision.kind === 'observePods' ? [] : eventsOf(policy, state, after, decision, sample),
    wakeAtMs: nextInstant(policy, state, sample.nowMs),
  };
}

/** What the kubelet reads after a collection tells it only whether that was enough. */
function isTakenIn(policy: Policy, { observations, reclaimed }: Sample): boolean {
  const isLookOnly = reclaimed === true && policy.rules.measuredAfterReclaim === 'kubelet';
  return observations !== undefined && !isLookOnly;
}

/** To the kubelet nothing changes where nothing could be read. */
function conditionsOf(policy: Policy, state: State, sample: Sample): readonly NodeCondition[] {
  if (sample.observations === undefined && policy.rules.missingSummary === 'kubelet') {
    return state.conditions;
  }
  const held = heldConditions(
    state.conditionsObserved,
    policy.pressureTransitionPeriodMs,
    sample.nowMs,
  );
  return held.join() === state.conditions.join() ? state.conditions : held;
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

/** Takes in the outcome of the eviction that was in flight. */
function settle(policy: Policy, state: State, sample: Sample): State {
  const passedOver = unexpired(state.passedOver, sample.nowMs);
  const { outcome } = sample;
  if (outcome === undefined || outcome.podId !== state.inFlight?.podId)
    return passedOver === state.passedOver ? state : { ...state, passedOver };
  const ended = {
    ...state,
    inFlight: undefined,
    // It may have been seen above its limit again while it was in flight.
    overLimits: state.overLimits.filter(({ pod }) => pod.id !== outcome.podId),
    statsTimesNs:
      outcome.kind !== 'evicted' && policy.rules.failedKill === 'evictd'
        ? without(state.statsTimesNs, state.inFlight.signal)
        : state.statsTimesNs,
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

/** The figures that an eviction was decided on may decide again where it came to nothing. */
function without(times: State['statsTimesNs'], signal: Signal | undefined): State['statsTimesNs'] {
  if (signal === undefined || !times.has(signal)) return times;
  return new Map([...times].filter(([other]) => other !== signal));
}

/** For how long the pod would only fail again if it were taken; undefined when it would not. */
function passOverMs(outcome: EvictionOutcome): number | undefined {
  switch (outcome.kind) {
    case 'evicted':
      return undefined;
    case 'refused':
      if (outcome.reason === 'pressureGone' || outcome.reason === 'interrupted') return undefined;
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

/**
 * Takes in the readings. A signal that was not read keeps what was known of it; to the kubelet one that
 * could not be read is calm.
 */
function observe(policy: Policy, before: State, sample: Sample): State {
  const { nowMs, observations = [] } = sample;
  const isRead = new Map(observations.map((observation) => [observation.signal, observation]));
  const keepsMissing = policy.rules.missingSignal === 'evictd' || sample.isComplete !== true;
  const wasMet = idsOf(before.met);
  const wasDue = idsOf(before.due);
  const met = policy.thresholds.filter((threshold) => {
    const observation = isRead.get(threshold.signal);
    if (observation === undefined) return keepsMissing && wasMet.has(thresholdId(threshold));
    return isMet(threshold, observation, wasDue.has(thresholdId(threshold)));
  });
  const readAndMet = met.filter((threshold) => isRead.has(threshold.signal));
  const isSameBurst = before.met.length > 0 || nowMs - before.metAtMs < BURST_GAP_MS;
  const firstObserved = firstObservedAt(met, before.firstObserved, nowMs);
  const due = pastGrace(met, firstObserved, nowMs).filter(
    // Nothing becomes due unseen: the pressure may have gone before its grace was over.
    (threshold) => isRead.has(threshold.signal) || wasDue.has(thresholdId(threshold)),
  );
  // Each field by its name: this is done at every reading, and a spread takes three times as long.
  return {
    observations: mergeObservations(before.observations, observations),
    met,
    firstObserved,
    due,
    conditionsObserved: conditionsLastObserved(readAndMet, before.conditionsObserved, nowMs),
    inFlight: before.inFlight,
    passedOver: before.passedOver,
    pidsAwaitedUntilMs: before.pidsAwaitedUntilMs,
    metAtMs: met.length > 0 ? nowMs : before.metAtMs,
    said: before.said && isSameBurst,
    noCandidateAtMs: before.noCandidateAtMs,
    noCandidateCause: before.noCandidateCause,
    impossible: isSameBurst ? before.impossible : undefined,
    reclaiming: before.reclaiming,
    unmeasured: dueSignal({ due }, before.unmeasured),
    collectedAtMs: before.collectedAtMs,
    overLimits:
      sample.overLimits?.filter(
        ({ pod }) => pod.protectedBecause === undefined && !before.passedOver.has(pod.id),
      ) ?? before.overLimits,
    statsTimesNs: before.statsTimesNs,
    announced: isSameBurst ? before.announced : NOTHING_ANNOUNCED,
    conditions: before.conditions,
  };
}

/** The signal as long as something is due of it. */
function dueSignal({ due }: Pick<State, 'due'>, signal: Signal | undefined): Signal | undefined {
  return due.some((threshold) => threshold.signal === signal) ? signal : undefined;
}

function idsOf(thresholds: readonly Threshold[]): ReadonlySet<ThresholdId> {
  return thresholds.length === 0 ? NO_IDS : new Set(thresholds.map(thresholdId));
}

const NO_IDS: ReadonlySet<ThresholdId> = new Set();

const NOTHING_ANNOUNCED: ReadonlySet<string> = new Set();

function mergeObservations(
  before: readonly SignalObservation[],
  now: readonly SignalObservation[],
): readonly SignalObservation[] {
  const fresh = new Set(now.map((observation) => observation.signal));
  return [...before.filter((observation) => !fresh.has(observation.signal)), ...now];
}

/** A decision, and the ranking that it came of where there was one. */
interface Decided {
  readonly decision: Decision;
  readonly ranked: readonly Ranked[] | undefined;
}

function decide(policy: Policy, state: State, sample: Sample): Decided {
  const unranked = (decision: Decision): Decided => ({ decision, ranked: undefined });
  if (state.inFlight !== undefined) {
    return unranked(decideInFlight(policy, state.inFlight, urgentCause(policy, state, sample)));
  }
  const overLimit = freshOverLimit(policy, state, sample);
  if (overLimit !== undefined) return unranked(evictOverLimit(policy, overLimit));
  if (state.reclaiming !== undefined)
    return decideReclaimed(policy, state, state.reclaiming, sample);
  const cause = firstCause(policy, state, sample);
  if (cause === undefined) return unranked({ kind: 'none', why: 'calm' });
  if (state.said) return unranked({ kind: 'none', why: 'said' });
  const functions = reclaimsFor(policy, state, cause, sample.nowMs);
  if (functions.length > 0) return unranked({ kind: 'reclaim', functions, cause });
  return decideVictim(policy, state, cause, sample);
}

/** What is collected before a pod goes; nothing where that was done just now. */
function reclaimsFor(
  policy: Policy,
  { collectedAtMs, unmeasured }: State,
  { threshold: { signal } }: Cause,
  nowMs: number,
): readonly ReclaimFunction[] {
  if (!policy.reclaims || signal === unmeasured) return [];
  const beforeMs = collectedAtMs.get(signal) ?? Number.NEGATIVE_INFINITY;
  const isLate = policy.rules.collectedOften === 'evictd' && nowMs - beforeMs < COLLECT_AGAIN_MS;
  return isLate ? [] : reclaimFunctions(signal, policy.layout, policy.rules);
}

/** A collection is under way, or has ended and been followed by a reading. */
function decideReclaimed(policy: Policy, state: State, before: Cause, sample: Sample): Decided {
  const unranked = (decision: Decision): Decided => ({ decision, ranked: undefined });
  if (sample.reclaimed === undefined) return unranked({ kind: 'none', why: 'reclaiming' });
  const isByOld = policy.rules.measuredAfterReclaim === 'kubelet';
  const { signal } = before.threshold;
  const observation = sample.observations?.find((one) => one.signal === signal);
  if (!isByOld && (observation === undefined || !isFresh(policy, state, observation))) {
    return unranked({ kind: 'none', why: 'unmeasured' });
  }
  const cause = isByOld || observation === undefined ? before : stillShort(before, observation);
  const isEnough =
    policy.rules.reclaimedWhen === 'kubelet'
      ? isNothingMet(policy, sample.observations)
      : cause === undefined;
  if (isEnough || cause === undefined) return unranked({ kind: 'none', why: 'reclaimed' });
  return decideVictim(policy, state, cause, sample);
}

/** Whether all thresholds and their minimum reclaim are regained, as far as they were read. */
function isNothingMet(policy: Policy, observations: Sample['observations']): boolean {
  if (observations === undefined) return false;
  return !policy.thresholds.some((threshold) => {
    const observation = observations.find(({ signal }) => signal === threshold.signal);
    return observation !== undefined && isMet(threshold, observation, true);
  });
}

/** What is still short of what was collected for; undefined when nothing is. */
function stillShort({ threshold }: Cause, observation: SignalObservation): Cause | undefined {
  return isMet(threshold, observation, true) ? causeOf(threshold, observation) : undefined;
}

/** Whom to evict, where somebody must be. */
function decideVictim(policy: Policy, state: State, cause: Cause, sample: Sample): Decided {
  const { signal } = cause.threshold;
  const unranked = (decision: Decision): Decided => ({ decision, ranked: undefined });
  if (!isEvictedFor(signal, policy)) return unranked({ kind: 'none', why: 'noReclaim', cause });
  if (sample.pods === undefined) {
    return unranked(
      isRanked(state, cause, sample.nowMs)
        ? { kind: 'none', why: 'noCandidate', cause }
        : { kind: 'observePods', cause },
    );
  }
  const ranked = rankWithReasons(signal, sample.pods, policy);
  const candidates = ranked
    .map(({ pod }) => pod)
    .filter(
      (candidate) =>
        candidate.protectedBecause === undefined &&
        !state.passedOver.has(candidate.id) &&
        // The end of who has none of the node's PIDs frees none.
        !(
          signal === 'pid.available' &&
          candidate.pids === 0 &&
          policy.rules.countedPids === 'evictd'
        ),
    );
  const isAwaited = isPidsAwaited(state, cause, sample.nowMs);
  const pod = isAwaited ? candidates.find((one) => endsPressure(one, cause)) : candidates[0];
  if (pod === undefined) {
    const decision: Decision =
      isAwaited && candidates.length > 0
        ? { kind: 'none', why: 'evicting' }
        : { kind: 'none', why: 'noCandidate', cause };
    return { decision, ranked };
  }
  const hard = isHard(cause.threshold);
  const gracePeriodSeconds = victimGraceSeconds(policy, hard, pod);
  const { message, annotations } = evictionText(cause, pod, policy.rules);
  return {
    decision: {
      kind: 'evict',
      pod,
      hard,
      gracePeriodMs: 1000 * Math.max(0, gracePeriodSeconds),
      gracePeriodSeconds,
      cause,
      message,
      annotations,
      condition: disruptionTarget(message),
    },
    ranked,
  };
}

/** So old may be what a pod's storage is judged by, ms: a kill that took longer is followed by a new reading. */
const OVER_LIMIT_AGE_MS = 1000;

/** The next pod that is above a limit of its own, by figures that still tell. */
function freshOverLimit(
  { rules }: Policy,
  { overLimits }: State,
  { nowMs }: Sample,
): OverLimit | undefined {
  const [first] = overLimits;
  if (first === undefined || rules.statsTime === 'kubelet') return first;
  return nowMs - first.pod.atMs <= OVER_LIMIT_AGE_MS ? first : undefined;
}

/** What exceeds a limit of its own goes at once. */
function evictOverLimit(policy: Policy, { pod, message }: OverLimit): Decision {
  const gracePeriodSeconds = policy.hardEvictionGracePeriodSeconds;
  return {
    kind: 'evict',
    pod,
    hard: true,
    gracePeriodMs: 1000 * gracePeriodSeconds,
    gracePeriodSeconds,
    cause: undefined,
    message,
    annotations: {},
    condition: undefined,
  };
}

/** What people are told of a step. */
function eventsOf(
  policy: Policy,
  state: State,
  after: State,
  decision: Decision,
  sample: Sample,
): readonly PolicyEvent[] {
  const resource = announcedBy(state, decision);
  const isRepeated = resource !== undefined && state.announced.has(resource);
  const isSaid =
    resource !== undefined && (!isRepeated || policy.rules.repeatedEvent === 'kubelet');
  const isOwn = policy.rules.repeatedEvent === 'evictd';
  const { impossible } = after;
  return [
    ...(policy.rules.statsTime === 'evictd' && isSetBack(state, sample) ? [CLOCK_SET_BACK] : []),
    ...(isSaid ? [warning('EvictionThresholdMet', `Attempting to reclaim ${resource}`)] : []),
    ...(isOwn && impossible !== undefined && impossible !== state.impossible
      ? [warning('EvictionImpossible', impossibleText(impossible))]
      : []),
  ];
}

function warning(reason: PolicyEvent['reason'], message: string): PolicyEvent {
  return { type: 'Warning', reason, message };
}

const CLOCK_SET_BACK = warning(
  'ClockSetBack',
  'Figures are older than the ones before: the clock of their source was set back',
);

/** Whether any figure is older than the one before it. */
function isSetBack({ statsTimesNs }: State, { observations = [] }: Sample): boolean {
  if (statsTimesNs.size === 0) return false;
  return observations.some(({ signal, statsTimeNs }) => {
    const before = statsTimesNs.get(signal);
    return before !== undefined && statsTimeNs !== undefined && statsTimeNs < before;
  });
}

function impossibleText({ cause, pods, protectedPods, passedOverPods }: Impossibility): string {
  const { resource } = SIGNALS[cause.threshold.signal];
  return (
    `The node was low on resource: ${resource}, and no pod may be evicted: ` +
    `${pods} pods, ${protectedPods} protected, ${passedOverPods} passed over`
  );
}

/** The resource that something is done about; undefined for what goes on from a collection. */
function announcedBy(state: State, decision: Decision): string | undefined {
  if (state.reclaiming !== undefined) return undefined;
  switch (decision.kind) {
    case 'reclaim':
      return SIGNALS[decision.cause.threshold.signal].resource;
    case 'evict':
      return decision.cause && SIGNALS[decision.cause.threshold.signal].resource;
    case 'none':
      return 'cause' in decision ? SIGNALS[decision.cause.threshold.signal].resource : undefined;
    case 'observePods':
    case 'escalate':
      return undefined;
  }
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
function decideInFlight(policy: Policy, inFlight: InFlight, urgent: Cause | undefined): Decision {
  if (inFlight.hard || urgent === undefined) return { kind: 'none', why: 'evicting' };
  return {
    kind: 'escalate',
    podId: inFlight.podId,
    podName: inFlight.podName,
    gracePeriodMs: 1000 * policy.hardEvictionGracePeriodSeconds,
    cause: urgent,
    message: nodeText(urgent),
  };
}

/** A soft threshold without a grace period is due at once, as a hard one is (kubelet). */
function isHard(threshold: Threshold): boolean {
  return threshold.gracePeriodMs === 0;
}

/**
 * Of the due thresholds whose signal was read just now, by figures that are new, the one that is acted
 * on: first those that an eviction can help.
 */
function firstCause(policy: Policy, state: State, sample: Sample): Cause | undefined {
  const ordered = dueNow(policy, state, sample);
  const helped = ordered.find(({ threshold }) => isEvictedFor(threshold.signal, policy));
  const first = helped ?? ordered[0];
  return first && causeOf(first.threshold, first.observation);
}

/** The same among hard thresholds that an eviction can help, whatever else is due before them. */
function urgentCause(policy: Policy, state: State, sample: Sample): Cause | undefined {
  const urgent = dueNow(policy, state, sample).find(
    ({ threshold }) => isHard(threshold) && isEvictedFor(threshold.signal, policy),
  );
  return urgent && causeOf(urgent.threshold, urgent.observation);
}

/** A due threshold with the figures that it is due by. */
type Due = Pick<Cause, 'threshold' | 'observation'>;

/** In the order in which they are acted on. */
function dueNow(policy: Policy, state: State, sample: Sample): readonly Due[] {
  return state.due
    .flatMap((threshold): readonly Due[] => {
      const observation = sample.observations?.find((one) => one.signal === threshold.signal);
      return observation !== undefined && isFresh(policy, state, observation)
        ? [{ threshold, observation }]
        : [];
    })
    .sort(compareThresholds);
}

function causeOf(threshold: Threshold, observation: SignalObservation): Cause {
  const reclaiming = !isMet(threshold, observation, false);
  return {
    threshold,
    observation,
    level: thresholdLevel(threshold, observation.capacity, reclaiming),
    reclaiming,
  };
}

/** Whether the figures are other ones than those before. Source: kubelet `thresholdsUpdatedStats`. */
function isFresh(
  policy: Policy,
  state: State,
  { signal, statsTimeNs }: SignalObservation,
): boolean {
  if (statsTimeNs === undefined || !state.statsTimesNs.has(signal)) return true;
  const before = state.statsTimesNs.get(signal);
  if (before === undefined) return true;
  return policy.rules.statsTime === 'kubelet' ? statsTimeNs > before : statsTimeNs !== before;
}

/**
 * The grace of a victim, in whole seconds. Hard: the policy's. Soft: the shorter of the policy's
 * longest and the pod's own; a negative longest leaves it to the pod, and a pod that names none
 * then gets the 30 s that Kubernetes gives by default.
 */
export function victimGraceSeconds(policy: Policy, hard: boolean, pod: PodObservation): number {
  if (hard) return policy.hardEvictionGracePeriodSeconds;
  const longest = policy.maxPodGracePeriodSeconds;
  if (longest < 0 && policy.rules.negativeMaxGrace === 'evictd')
    return pod.gracePeriodSeconds ?? 30;
  return Math.min(longest, pod.gracePeriodSeconds ?? longest);
}

/** What a sample leaves, whatever is decided: the times of its figures, and what people were told. */
function withSeen(policy: Policy, state: State, decision: Decision, sample: Sample): State {
  const resource = announcedBy(state, decision);
  const statsTimesNs = timesAfter(policy, state, sample);
  const reclaiming = sample.reclaimed === undefined ? state.reclaiming : undefined;
  const isNew = resource !== undefined && !state.announced.has(resource);
  const isSame = !isNew && statsTimesNs === state.statsTimesNs && reclaiming === state.reclaiming;
  if (isSame) return state;
  const announced = isNew ? new Set([...state.announced, resource]) : state.announced;
  return { ...state, statsTimesNs, reclaiming, announced };
}

/** What the decision changes in the state. */
function remember(policy: Policy, state: State, decision: Decision, sample: Sample): State {
  const seen = withSeen(policy, state, decision, sample);
  switch (decision.kind) {
    case 'observePods':
      // The same figures are stepped through again, with the pods.
      return state;
    case 'none':
      if (decision.why === 'unmeasured') {
        return { ...seen, unmeasured: dueSignal(state, state.reclaiming?.threshold.signal) };
      }
      // Right at a threshold a reading wavers: what ranking found holds until the next one is due.
      if (decision.why === 'calm' && isRankedWhileCalm(state, sample.nowMs)) return seen;
      if (decision.why !== 'noCandidate') {
        return seen.noCandidateAtMs === undefined ? seen : { ...seen, noCandidateAtMs: undefined };
      }
      if (sample.pods === undefined) return seen;
      return {
        ...seen,
        unmeasured: undefined,
        noCandidateAtMs: sample.nowMs,
        noCandidateCause: decision.cause,
        impossible:
          state.impossible ?? impossibility(state, decision.cause, sample.pods, sample.nowMs),
      };
    case 'reclaim':
      return {
        ...seen,
        reclaiming: decision.cause,
        collectedAtMs: new Map(state.collectedAtMs).set(
          decision.cause.threshold.signal,
          sample.nowMs,
        ),
      };
    case 'evict':
      return {
        ...seen,
        noCandidateAtMs: undefined,
        unmeasured: decision.cause === undefined ? seen.unmeasured : undefined,
        overLimits: decision.cause === undefined ? state.overLimits.slice(1) : state.overLimits,
        inFlight: {
          podId: decision.pod.id,
          podName: decision.pod.name,
          signal: decision.cause?.threshold.signal,
          hard: decision.hard,
        },
      };
    case 'escalate':
      return {
        ...seen,
        inFlight: {
          podId: decision.podId,
          podName: decision.podName,
          signal: decision.cause.threshold.signal,
          hard: true,
        },
      };
  }
}

/**
 * What was read of when, for the next time. The kubelet forgets what it did not read, and does not
 * remember what it read after a collection.
 */
function timesAfter(policy: Policy, state: State, sample: Sample): State['statsTimesNs'] {
  const { observations } = sample;
  if (observations === undefined) return state.statsTimesNs;
  const isKubelet = policy.rules.statsTime === 'kubelet' && sample.isComplete === true;
  if (isKubelet && sample.reclaimed) return state.statsTimesNs;
  // A live source has none: nothing is to be remembered, and nothing made anew.
  if (state.statsTimesNs.size === 0 && !observations.some(hasTime)) return state.statsTimesNs;
  const read = observations.map(({ signal, statsTimeNs }) => [signal, statsTimeNs] as const);
  return new Map(isKubelet ? read : [...state.statsTimesNs, ...read]);
}

function hasTime({ statsTimeNs }: SignalObservation): boolean {
  return statsTimeNs !== undefined;
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

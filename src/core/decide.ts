/** What is to be done: at most one eviction at a time, and before it what the layout says is collected. */
import type { Cause, Decision } from './decision.ts';
import { orderedByComebacks } from './hold-off.ts';
import { disruptionTarget, evictionText, imagesText, nodeText } from './message.ts';
import { observationOf, type SignalObservation } from './observation.ts';
import type { PodObservation } from './pod.ts';
import type { Policy } from './policy.ts';
import {
  countsImages,
  freesSomething,
  isEvictedFor,
  type Ranked,
  rankWithReasons,
} from './rank.ts';
import { type ReclaimFunction, reclaimFunctions } from './reclaim.ts';
import { SIGNALS, type Signal } from './signal.ts';
import { awaitsSpace } from './space.ts';
import type { InFlight, OverLimit, Sample, State } from './state.ts';
import {
  compareThresholds,
  isMet,
  type Threshold,
  thresholdId,
  thresholdLevel,
} from './threshold.ts';

/**
 * How often all pods are ranked again while none of them may be evicted, ms: listing and reading
 * them at each poll would load the node in its worst hour.
 */
export const RANK_AGAIN_MS = 1000;

/** So much of the threshold less is reason to rank again at once: a fall can go on eight times. */
export const RANK_AGAIN_FALL = 1 / 8;

/** How soon they are ranked again when the pressure is new, ms: right at a threshold a reading wavers. */
export const RANK_NEW_MS = 250;

/** How long after a collection nothing is collected for the same signal again while it stays short, ms. */
export const COLLECT_AGAIN_MS = 10_000;

/** A decision, and the ranking that it came of where there was one. */
interface Decided {
  readonly decision: Decision;
  readonly ranked: readonly Ranked[] | undefined;
}

export function decide(policy: Policy, state: State, sample: Sample): Decided {
  const unranked = (decision: Decision): Decided => ({ decision, ranked: undefined });
  if (state.inFlight !== undefined) {
    return unranked(decideInFlight(policy, state.inFlight, urgentCause(policy, state, sample)));
  }
  const overLimit = freshOverLimit(policy, state, sample);
  if (overLimit !== undefined) return unranked(evictOverLimit(policy, overLimit));
  const { reclaiming } = state;
  const cause = firstCause(policy, state, sample);
  // What became short meanwhile and does not wait goes before what was collected for.
  const isFirst = cause === undefined || policy.rules.measuredAfterReclaim === 'kubelet';
  if (reclaiming !== undefined && sample.reclaimed === true && isFirst) {
    return decideReclaimed(policy, state, reclaiming, sample);
  }
  if (cause === undefined) {
    return unranked({ kind: 'none', why: reclaiming === undefined ? 'calm' : 'reclaiming' });
  }
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
  if (signal === unmeasured) return [];
  const beforeMs = collectedAtMs.get(signal) ?? Number.NEGATIVE_INFINITY;
  const isLate = policy.rules.collectedOften === 'evictd' && nowMs - beforeMs < COLLECT_AGAIN_MS;
  if (isLate) return [];
  const functions = reclaimFunctions(signal, policy.layout, policy.rules);
  return functions.filter((one) => policy.reclaims.includes(one));
}

/** A collection has ended, and was followed by a reading. */
function decideReclaimed(policy: Policy, state: State, before: Cause, sample: Sample): Decided {
  const unranked = (decision: Decision): Decided => ({ decision, ranked: undefined });
  const isByOld = policy.rules.measuredAfterReclaim === 'kubelet';
  const { signal } = before.threshold;
  const observation = observationOf(sample.observations ?? [], signal);
  if (!isByOld && (observation === undefined || !isFresh(policy, state, observation))) {
    return unranked({ kind: 'none', why: 'unmeasured' });
  }
  const cause =
    isByOld || observation === undefined ? before : stillShort(policy, before, observation);
  const isEnough =
    policy.rules.reclaimedWhen === 'kubelet'
      ? isNothingMet(policy, sample.observations)
      : cause === undefined;
  if (isEnough || cause === undefined) return unranked({ kind: 'none', why: 'reclaimed' });
  // A pod's containers went while it ran: their images were still in use when it looked.
  if (countsImages(signal, policy) && !state.collectedAtMs.has(signal)) {
    const functions = reclaimsFor(policy, state, cause, sample.nowMs);
    if (functions.length > 0) return unranked({ kind: 'reclaim', functions, cause });
  }
  return decideVictim(policy, state, cause, sample);
}

/** Whether all thresholds and their minimum reclaim are regained, as far as they were read. */
function isNothingMet(policy: Policy, observations: Sample['observations']): boolean {
  if (observations === undefined) return false;
  return !policy.thresholds.some((threshold) => {
    const observation = observationOf(observations, threshold.signal);
    return observation !== undefined && isMet(threshold, observation, true);
  });
}

/** What is still short of what was collected for; undefined when nothing is. */
function stillShort(
  { thresholds }: Policy,
  before: Cause,
  observation: SignalObservation,
): Cause | undefined {
  // Other settings may hold by now.
  const id = thresholdId(before.threshold);
  const threshold = thresholds.find((one) => thresholdId(one) === id);
  if (threshold === undefined) return undefined;
  return isMet(threshold, observation, true) ? causeOf(threshold, observation) : undefined;
}

/** Whom to evict, where somebody must be. */
function decideVictim(policy: Policy, state: State, cause: Cause, sample: Sample): Decided {
  const { signal } = cause.threshold;
  const unranked = (decision: Decision): Decided => ({ decision, ranked: undefined });
  if (!isEvictedFor(signal, policy)) return unranked({ kind: 'none', why: 'noReclaim', cause });
  if (awaitsSpace(policy, state, cause, sample.nowMs))
    return unranked({ kind: 'none', why: 'spaceHeld' });
  if (sample.pods === undefined) {
    return unranked(
      isRanked(state, cause, sample.nowMs)
        ? { kind: 'none', why: 'noCandidate', cause }
        : { kind: 'observePods', cause },
    );
  }
  if (areFiguresOld(policy, state, cause, sample)) {
    return unranked({ kind: 'none', why: 'oldFigures' });
  }
  const ranked = rankWithReasons(signal, sample.pods, policy);
  const need = { signal, missing: cause.level - cause.observation.available };
  const candidates = orderedByComebacks(ranked, state.comebacks, need, sample.nowMs)
    .map(({ pod }) => pod)
    .filter(
      (candidate) =>
        candidate.protectedBecause === undefined &&
        !state.passedOver.has(candidate.id) &&
        freesSomething(candidate, signal, policy),
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
  const { message, annotations } = countsImages(signal, policy)
    ? imagesText(cause, pod)
    : evictionText(cause, pod, policy);
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

/** How long figures of disk use are awaited that are from after a threshold was met, ms: runtimes may take 10 s. */
export const FIGURES_AWAITED_MS = 15_000;

/** Whether what a pod that may go uses of the disks is known only from before the threshold was met. */
function areFiguresOld(
  policy: Policy,
  { firstObserved }: State,
  { threshold }: Cause,
  { pods = [], nowMs }: Sample,
): boolean {
  const { signal } = threshold;
  if (policy.rules.diskFigures === 'kubelet' || !isOfDisk(signal)) return false;
  // Images were listed by the collection before it.
  if (countsImages(signal, policy)) return false;
  // What is due was observed.
  const metAtMs = firstObserved.get(thresholdId(threshold)) as number;
  if (nowMs - metAtMs >= FIGURES_AWAITED_MS) return false;
  return pods.some(
    ({ diskSeen, protectedBecause }) =>
      protectedBecause === undefined && diskSeen !== undefined && diskSeen.atMs < metAtMs,
  );
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

export function isRankedWhileCalm({ noCandidateAtMs }: State, nowMs: number): boolean {
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

function isOfDisk(signal: Signal): boolean {
  return SIGNALS[signal].filesystem !== undefined;
}

/** A soft threshold without a grace period is due at once, as a hard one is (kubelet). */
function isHard(threshold: Threshold): boolean {
  return threshold.gracePeriodMs === 0;
}

/**
 * Of the due thresholds whose signal was read just now, by figures that are new, the one that is acted
 * on: first those that an eviction can help. A collection that runs is awaited by what it may help, which is
 * every disk; memory and PIDs do not wait for it.
 */
function firstCause(policy: Policy, state: State, sample: Sample): Cause | undefined {
  const ordered = dueNow(policy, state, sample).filter(
    ({ threshold: { signal } }) => state.reclaiming === undefined || !isOfDisk(signal),
  );
  const helped = ordered.find(
    (one) =>
      isEvictedFor(one.threshold.signal, policy) && !awaitsSpace(policy, state, one, sample.nowMs),
  );
  const first = helped ?? ordered[0];
  return first && causeOf(first.threshold, first.observation);
}

/** The same among hard thresholds that an eviction can help, whatever else is due before them. */
function urgentCause(policy: Policy, state: State, sample: Sample): Cause | undefined {
  const collected = state.reclaiming?.threshold.signal;
  const urgent = dueNow(policy, state, sample).find(
    ({ threshold }) =>
      isHard(threshold) && threshold.signal !== collected && isEvictedFor(threshold.signal, policy),
  );
  return urgent && causeOf(urgent.threshold, urgent.observation);
}

/** A due threshold with the figures that it is due by. */
type Due = Pick<Cause, 'threshold' | 'observation'>;

/** In the order in which they are acted on. */
function dueNow(policy: Policy, state: State, sample: Sample): readonly Due[] {
  const due: Due[] = [];
  for (const threshold of state.due) {
    const observation = observationOf(sample.observations ?? [], threshold.signal);
    if (observation !== undefined && isFresh(policy, state, observation)) {
      due.push({ threshold, observation });
    }
  }
  return due.sort(compareThresholds);
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

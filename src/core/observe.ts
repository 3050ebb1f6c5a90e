/** Taking in a sample: how the eviction in flight ended, and what is met, due and held now. */
import { conditionsLastObserved } from './conditions.ts';
import type { EvictionOutcome } from './decision.ts';
import { firstObservedAt, pastGrace } from './grace.ts';
import { afterEviction, withReturns } from './hold-off.ts';
import { observationOf, type SignalObservation } from './observation.ts';
import type { Policy } from './policy.ts';
import { countsImages } from './rank.ts';
import type { Signal } from './signal.ts';
import { spaceAwaitedAfter } from './space.ts';
import { copied, type Sample, type State } from './state.ts';
import { isAmong, isMet } from './threshold.ts';

/** How long a pod that could not be killed is passed over, ms. */
export const PASS_OVER_MS = 60_000;

/** How long one without a process is, ms: its first may come at any moment. */
export const PASS_OVER_EMPTY_MS = 1000;

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

/** Takes in the outcome of the eviction that was in flight. */
export function settle(policy: Policy, state: State, sample: Sample): State {
  const passedOver = unexpired(state.passedOver, sample.nowMs);
  const { outcome } = sample;
  if (outcome === undefined || outcome.podId !== state.inFlight?.podId)
    return withPassedOver(state, passedOver);
  const ended = copied(state);
  ended.inFlight = undefined;
  // It may have been seen above its limit again while it was in flight.
  ended.overLimits = state.overLimits.filter(({ pod }) => pod.id !== outcome.podId);
  if (outcome.kind !== 'evicted' && policy.rules.failedKill === 'evictd') {
    ended.statsTimesNs = without(state.statsTimesNs, state.inFlight.signal);
  }
  if (outcome.kind === 'evicted' && state.inFlight.signal === 'pid.available') {
    ended.pidsAwaitedUntilMs = sample.nowMs + PIDS_AWAITED_MS;
  }
  ended.comebacks = comebacksOf(policy, state, outcome, sample.nowMs);
  // Each eviction is awaited anew.
  ended.spaceAwaited = undefined;
  const { signal } = state.inFlight;
  const isForImages =
    outcome.kind === 'evicted' && signal !== undefined && countsImages(signal, policy);
  if (sample.spaceHeld !== true && (isForImages || state.spaceAwaited !== undefined)) {
    ended.collectedAtMs = withoutImages(policy, state.collectedAtMs);
  }
  const isSaid = outcome.kind === 'refused' && outcome.reason === 'dryRun';
  ended.said = state.said || isSaid;
  const forMs = isSaid ? undefined : passOverMs(outcome);
  ended.passedOver =
    forMs === undefined ? passedOver : passOver(passedOver, outcome.podId, sample.nowMs + forMs);
  return ended;
}

function withPassedOver(state: State, passedOver: State['passedOver']): State {
  if (passedOver === state.passedOver) return state;
  const after = copied(state);
  after.passedOver = passedOver;
  return after;
}

/** Images are unused once their containers are gone: they are collected before anybody else goes. */
function withoutImages(policy: Policy, times: State['collectedAtMs']): State['collectedAtMs'] {
  const kept = [...times].filter(([signal]) => !countsImages(signal, policy));
  return kept.length === times.size ? times : new Map(kept);
}

/** A collection ends once enough is regained: what it left is there when it is short again. */
function whileShort(times: State['collectedAtMs'], due: State['due']): State['collectedAtMs'] {
  const kept = [...times].filter(([signal]) => dueSignal({ due }, signal) !== undefined);
  return kept.length === times.size ? times : new Map(kept);
}

/** Who was evicted, where it is known what may bring him back. */
function comebacksOf(
  { rules }: Policy,
  { comebacks, inFlight }: State,
  { kind, podId, podName }: EvictionOutcome,
  nowMs: number,
): State['comebacks'] {
  const ownership = inFlight?.ownership;
  const isForgotten = kind !== 'evicted' || rules.comeback === 'kubelet';
  if (ownership === undefined || isForgotten) return comebacks;
  return afterEviction(comebacks, ownership, { podId, podName, signal: inFlight?.signal }, nowMs);
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
export function observe(policy: Policy, before: State, sample: Sample): State {
  const { nowMs, observations = [] } = sample;
  const isRead = (signal: Signal): boolean => observationOf(observations, signal) !== undefined;
  const keepsMissing = policy.rules.missingSignal === 'evictd' || sample.isComplete !== true;
  const met = policy.thresholds.filter((threshold) => {
    const observation = observationOf(observations, threshold.signal);
    if (observation === undefined) return keepsMissing && isAmong(threshold, before.met);
    return isMet(threshold, observation, isAmong(threshold, before.due));
  });
  const readAndMet = met.filter((threshold) => isRead(threshold.signal));
  const isSameBurst = before.met.length > 0 || nowMs - before.metAtMs < BURST_GAP_MS;
  const firstObserved = firstObservedAt(met, before.firstObserved, nowMs);
  const due = pastGrace(met, firstObserved, nowMs).filter(
    // Nothing becomes due unseen: the pressure may have gone before its grace was over.
    (threshold) => isRead(threshold.signal) || isAmong(threshold, before.due),
  );
  const spaceAwaited = spaceAwaitedAfter(before, sample);
  const isSpaceBack = before.spaceAwaited !== undefined && spaceAwaited === undefined;
  // Each field by its name: this is done at every reading, and a spread takes three times as long.
  return {
    observations: mergeObservations(before.observations, observations),
    met,
    firstObserved,
    due,
    conditionsObserved: conditionsLastObserved(readAndMet, before.conditionsObserved, nowMs),
    inFlight: before.inFlight,
    passedOver: before.passedOver,
    comebacks: comebacksAfter(policy, before, sample),
    pidsAwaitedUntilMs: before.pidsAwaitedUntilMs,
    spaceAwaited,
    metAtMs: met.length > 0 ? nowMs : before.metAtMs,
    said: before.said && isSameBurst,
    noCandidateAtMs: before.noCandidateAtMs,
    noCandidateCause: before.noCandidateCause,
    impossible: isSameBurst ? before.impossible : undefined,
    reclaiming: before.reclaiming,
    unmeasured: dueSignal({ due }, before.unmeasured),
    collectedAtMs: whileShort(
      isSpaceBack ? withoutImages(policy, before.collectedAtMs) : before.collectedAtMs,
      due,
    ),
    overLimits:
      sample.overLimits?.filter(
        ({ pod }) => pod.protectedBecause === undefined && !before.passedOver.has(pod.id),
      ) ?? before.overLimits,
    statsTimesNs: before.statsTimesNs,
    announced: isSameBurst ? before.announced : NOTHING_ANNOUNCED,
    conditions: before.conditions,
  };
}

function comebacksAfter(
  { rules }: Policy,
  { comebacks }: State,
  { pods, nowMs }: Sample,
): State['comebacks'] {
  if (pods === undefined || rules.comeback === 'kubelet') return comebacks;
  return withReturns(comebacks, pods, nowMs);
}

/** The signal as long as something is due of it. */
export function dueSignal(
  { due }: Pick<State, 'due'>,
  signal: Signal | undefined,
): Signal | undefined {
  return due.some((threshold) => threshold.signal === signal) ? signal : undefined;
}

const NOTHING_ANNOUNCED: ReadonlySet<string> = new Set();

function mergeObservations(
  before: readonly SignalObservation[],
  now: readonly SignalObservation[],
): readonly SignalObservation[] {
  const kept = before.filter(({ signal }) => observationOf(now, signal) === undefined);
  return kept.length === 0 ? now : [...kept, ...now];
}

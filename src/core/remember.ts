/** What a decision leaves for the next step. */
import { isRankedWhileCalm } from './decide.ts';
import type { Cause, Decision } from './decision.ts';
import { type Ownership, ownershipOf } from './hold-off.ts';
import type { SignalObservation } from './observation.ts';
import { dueSignal } from './observe.ts';
import type { Policy } from './policy.ts';
import { announcedBy, type Concluded } from './policy-events.ts';
import { freesSomething } from './rank.ts';
import {
  copied,
  type Impossibility,
  type InFlight,
  type NextState,
  type Sample,
  type State,
} from './state.ts';

/** What the decision, and whatever was decided the sample, changes in the state. */
export function remember(policy: Policy, state: State, decision: Decision, sample: Sample): State {
  const { nowMs } = sample;
  switch (decision.kind) {
    case 'observePods':
      // The same figures are stepped through again, with the pods.
      return state;
    case 'none':
      return rememberNone(policy, state, decision, sample);
    case 'reclaim': {
      const after = seenAnew(policy, state, decision, sample);
      const { signal } = decision.cause.threshold;
      after.reclaiming = decision.cause;
      after.collectedAtMs = new Map(state.collectedAtMs).set(signal, nowMs);
      return after;
    }
    case 'evict': {
      const after = seenAnew(policy, state, decision, sample);
      const { pod, cause, hard } = decision;
      after.noCandidateAtMs = undefined;
      if (cause === undefined) after.overLimits = state.overLimits.slice(1);
      else after.unmeasured = undefined;
      const signal = cause?.threshold.signal;
      const { id: podId, name: podName } = pod;
      const ownership = ownershipOf(pod, sample.pods);
      after.inFlight = { ...owned(ownership), podId, podName, signal, hard };
      return after;
    }
    case 'escalate': {
      const after = seenAnew(policy, state, decision, sample);
      const { podId, podName, cause } = decision;
      const { signal } = cause.threshold;
      after.inFlight = { ...owned(state.inFlight?.ownership), podId, podName, signal, hard: true };
      return after;
    }
  }
}

function owned(ownership: Ownership | undefined): Pick<InFlight, 'ownership'> {
  return ownership === undefined ? {} : { ownership };
}

type Nothing = Extract<Decision, { kind: 'none' }>;

function rememberNone(policy: Policy, state: State, decision: Nothing, sample: Sample): State {
  const { nowMs } = sample;
  const change = (): NextState => seenAnew(policy, state, decision, sample);
  if (decision.why === 'unmeasured') {
    const after = change();
    after.unmeasured = dueSignal(state, state.reclaiming?.threshold.signal);
    return after;
  }
  const seen = (): State => withSeen(policy, state, decision, sample) ?? state;
  // Right at a threshold a reading wavers: what ranking found holds until the next one is due.
  if (decision.why === 'calm' && isRankedWhileCalm(state, nowMs)) return seen();
  if (decision.why !== 'noCandidate') {
    if (state.noCandidateAtMs === undefined) return seen();
    const after = change();
    after.noCandidateAtMs = undefined;
    return after;
  }
  if (sample.pods === undefined) return seen();
  const after = change();
  after.unmeasured = undefined;
  after.noCandidateAtMs = nowMs;
  after.noCandidateCause = decision.cause;
  after.impossible ??= impossibility(policy, state, decision.cause, sample);
  return after;
}

/** {@link withSeen}, as a state that may be changed further. */
function seenAnew(policy: Policy, state: State, decision: Concluded, sample: Sample): NextState {
  return withSeen(policy, state, decision, sample) ?? copied(state);
}

/**
 * What a sample leaves, whatever is decided: the times of its figures, and what people were told. Undefined
 * where that is nothing.
 */
function withSeen(
  policy: Policy,
  state: State,
  decision: Concluded,
  sample: Sample,
): NextState | undefined {
  const resource = announcedBy(state, decision);
  const statsTimesNs = timesAfter(policy, state, sample);
  const reclaiming = sample.reclaimed === undefined ? state.reclaiming : undefined;
  const isNew = resource !== undefined && !state.announced.has(resource);
  const isSame = !isNew && statsTimesNs === state.statsTimesNs && reclaiming === state.reclaiming;
  if (isSame) return undefined;
  const after = copied(state);
  after.statsTimesNs = statsTimesNs;
  after.reclaiming = reclaiming;
  if (isNew) after.announced = new Set([...state.announced, resource]);
  return after;
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
  const after = new Map(isKubelet ? [] : state.statsTimesNs);
  for (const { signal, statsTimeNs } of observations) after.set(signal, statsTimeNs);
  return after;
}

function hasTime({ statsTimeNs }: SignalObservation): boolean {
  return statsTimeNs !== undefined;
}

function impossibility(
  policy: Policy,
  state: State,
  cause: Cause,
  { pods = [], nowMs }: Sample,
): Impossibility {
  const { signal } = cause.threshold;
  const open = pods.filter(({ protectedBecause }) => protectedBecause === undefined);
  return {
    atMs: nowMs,
    cause,
    pods: pods.length,
    protectedPods: pods.length - open.length,
    passedOverPods: open.filter(({ id }) => state.passedOver.has(id)).length,
    helplessPods: open.filter((pod) => !freesSomething(pod, signal, policy)).length,
  };
}

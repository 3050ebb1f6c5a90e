/** What a decision leaves for the next step. */
import { isRankedWhileCalm } from './decide.ts';
import type { Cause, Decision } from './decision.ts';
import type { SignalObservation } from './observation.ts';
import { dueSignal } from './observe.ts';
import type { PodObservation } from './pod.ts';
import type { Policy } from './policy.ts';
import { announcedBy } from './policy-events.ts';
import type { Impossibility, Sample, State } from './state.ts';

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
export function remember(policy: Policy, state: State, decision: Decision, sample: Sample): State {
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

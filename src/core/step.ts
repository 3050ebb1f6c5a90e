/**
 * The whole policy as one pure function. {@link step} takes what is known so far and one sample,
 * and says what is known then, which node conditions hold, what is to be done and when to look
 * again. Source of the stages and their order: kubelet `eviction_manager.go`, `synchronize`.
 */
import { heldConditions, nextConditionEndMs } from './conditions.ts';
import { decide } from './decide.ts';
import type { Decision } from './decision.ts';
import { earlier, nextGraceEndMs } from './grace.ts';
import { observe, settle } from './observe.ts';
import type { Policy } from './policy.ts';
import { eventsOf, type PolicyEvent } from './policy-events.ts';
import type { Ranked } from './rank.ts';
import { remember } from './remember.ts';
import type { NodeCondition } from './signal.ts';
import { copied, type Sample, type State } from './state.ts';

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
  const state = withConditions(observed, conditions);
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

/** Most turns change nothing, and copy nothing. */
function withConditions(state: State, conditions: readonly NodeCondition[]): State {
  if (conditions === state.conditions) return state;
  const after = copied(state);
  after.conditions = conditions;
  return after;
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
  const isSame =
    held.length === state.conditions.length &&
    held.every((condition, index) => condition === state.conditions[index]);
  return isSame ? state.conditions : held;
}

function nextInstant(policy: Policy, state: State, nowMs: number): number | undefined {
  const periodMs = policy.pressureTransitionPeriodMs;
  let next = earlier(
    nextGraceEndMs(state.met, state.firstObserved, nowMs),
    nextConditionEndMs(state.conditionsObserved, periodMs, nowMs),
  );
  if (state.due.length === 0) return next;
  for (const untilMs of state.passedOver.values()) next = earlier(next, untilMs);
  return state.pidsAwaitedUntilMs > nowMs ? earlier(next, state.pidsAwaitedUntilMs) : next;
}

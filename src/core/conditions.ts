import { earlier, isReached } from './grace.ts';
import { type NodeCondition, SIGNALS } from './signal.ts';
import type { Threshold } from './threshold.ts';

/** When (monotonic ms) each condition was last caused by a met threshold. */
export type ConditionsObserved = ReadonlyMap<NodeCondition, number>;

/**
 * The last-observed times after a reading. Source: kubelet `helpers.go`, `nodeConditions`,
 * `nodeConditionsLastObservedAt`.
 */
export function conditionsLastObserved(
  met: readonly Threshold[],
  before: ConditionsObserved,
  nowMs: number,
): ConditionsObserved {
  if (met.length === 0) return before;
  const after = new Map(before);
  for (const { signal } of met) after.set(SIGNALS[signal].condition, nowMs);
  return after;
}

/**
 * The conditions that hold: caused now, or less than the transition period ago. Sorted by name.
 * Source: kubelet `helpers.go`, `nodeConditionsObservedSince`.
 */
export function heldConditions(
  observed: ConditionsObserved,
  transitionPeriodMs: number,
  nowMs: number,
): readonly NodeCondition[] {
  const held: NodeCondition[] = [];
  observed.forEach((atMs, condition) => {
    if (atMs === nowMs || !isReached(atMs + transitionPeriodMs, nowMs)) held.push(condition);
  });
  return held.sort();
}

/** The next instant at which a condition that nothing causes any more ends. */
export function nextConditionEndMs(
  observed: ConditionsObserved,
  transitionPeriodMs: number,
  nowMs: number,
): number | undefined {
  let next: number | undefined;
  observed.forEach((atMs) => {
    const end = atMs + transitionPeriodMs;
    if (!isReached(end, nowMs)) next = earlier(next, end);
  });
  return next;
}

import { earliest, isReached } from './grace.ts';
import { type NodeCondition, SIGNALS } from './signal.ts';
import type { Threshold } from './threshold.ts';

/** When (monotonic ms) each condition was last caused by a met threshold. */
export type ConditionsObserved = ReadonlyMap<NodeCondition, number>;

/** The conditions that the met thresholds cause. Source: kubelet `helpers.go`, `nodeConditions`. */
function causedConditions(met: readonly Threshold[]): readonly NodeCondition[] {
  return [...new Set(met.map((threshold) => SIGNALS[threshold.signal].condition))];
}

/**
 * The last-observed times after a reading. Source: kubelet `helpers.go`,
 * `nodeConditionsLastObservedAt`.
 */
export function conditionsLastObserved(
  met: readonly Threshold[],
  before: ConditionsObserved,
  nowMs: number,
): ConditionsObserved {
  const after = new Map(before);
  for (const condition of causedConditions(met)) after.set(condition, nowMs);
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
  return [...observed]
    .filter(([, atMs]) => atMs === nowMs || !isReached(atMs + transitionPeriodMs, nowMs))
    .map(([condition]) => condition)
    .sort();
}

/** The next instant at which a condition that nothing causes any more ends. */
export function nextConditionEndMs(
  observed: ConditionsObserved,
  transitionPeriodMs: number,
  nowMs: number,
): number | undefined {
  return earliest(
    [...observed.values()]
      .map((atMs) => atMs + transitionPeriodMs)
      .filter((end) => !isReached(end, nowMs)),
  );
}

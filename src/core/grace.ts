import { type Threshold, type ThresholdId, thresholdId } from './threshold.ts';

/** Since when (monotonic ms) each met threshold has been met without a break. */
export type FirstObserved = ReadonlyMap<ThresholdId, number>;

/**
 * The first-observed times after a reading: kept for thresholds that are still met, `nowMs` for
 * new ones, forgotten for the rest. Source: kubelet `helpers.go`, `thresholdsFirstObservedAt`.
 */
export function firstObservedAt(
  met: readonly Threshold[],
  before: FirstObserved,
  nowMs: number,
): FirstObserved {
  if (met.length === 0 && before.size === 0) return before;
  const after = new Map<ThresholdId, number>();
  for (const id of met.map(thresholdId)) after.set(id, before.get(id) ?? nowMs);
  return after;
}

/** When the grace of a met threshold ends, monotonic ms. */
export function graceEndsAtMs(threshold: Threshold, observed: FirstObserved): number {
  const since = observed.get(thresholdId(threshold));
  return since === undefined ? Number.POSITIVE_INFINITY : since + threshold.gracePeriodMs;
}

/**
 * The met thresholds whose grace is over at `nowMs`. Source: kubelet `helpers.go`,
 * `thresholdsMetGracePeriod`.
 */
export function pastGrace(
  met: readonly Threshold[],
  observed: FirstObserved,
  nowMs: number,
): readonly Threshold[] {
  return met.filter((threshold) => isReached(graceEndsAtMs(threshold, observed), nowMs));
}

/** Sums of parts of a millisecond are off by less than this, ms; what is measured is nanoseconds. */
const ROUNDING_MS = 5e-7;

/** Whether an instant that was worked out is now, or past. */
export function isReached(instantMs: number, nowMs: number): boolean {
  return instantMs - nowMs < ROUNDING_MS;
}

/** The next instant at which a grace ends, if one is running. */
export function nextGraceEndMs(
  met: readonly Threshold[],
  observed: FirstObserved,
  nowMs: number,
): number | undefined {
  let next: number | undefined;
  for (const threshold of met) {
    const end = graceEndsAtMs(threshold, observed);
    if (!isReached(end, nowMs)) next = earlier(next, end);
  }
  return next;
}

/** The smaller of two instants, or the only one. */
export function earlier(left: number | undefined, right: number | undefined): number | undefined {
  if (left === undefined) return right;
  return right === undefined ? left : Math.min(left, right);
}

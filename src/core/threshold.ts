import type { SignalObservation } from './observation.ts';
import { compareText } from './rank.ts';
import { SIGNALS, type Signal } from './signal.ts';

/**
 * How much of a resource: an exact quantity, or a part of the signal's capacity.
 * Source: kubelet `eviction/api/types.go`, `ThresholdValue`.
 */
export type ThresholdValue =
  /** In nano-units (10⁻⁹ of the signal's unit), as Kubernetes quantities have them. */
  | { readonly kind: 'quantity'; readonly nano: bigint; readonly text: string }
  /** In nano-percent: 100 % is 100 000 000 000. */
  | { readonly kind: 'percentage'; readonly nanoPercent: bigint; readonly text: string }
  /** A percentage as the kubelet holds it: a 32-bit float, 1 for 100 %. */
  | { readonly kind: 'fraction'; readonly fraction: number; readonly text: string };

/** A level of a signal below which something is to be done. */
export interface Threshold {
  readonly signal: Signal;
  /** A soft threshold must hold for its grace period; a hard one is due at once. */
  readonly kind: 'hard' | 'soft';
  readonly value: ThresholdValue;
  /** 0 for a hard threshold. */
  readonly gracePeriodMs: number;
  /** What must be regained beyond the threshold before it counts as resolved. */
  readonly minimumReclaim: ThresholdValue | undefined;
}

/** A threshold's name: unique, since a signal has at most one threshold of each kind. */
export type ThresholdId = `${Threshold['kind']}:${Signal}`;

export function thresholdId(threshold: Threshold): ThresholdId {
  return `${threshold.kind}:${threshold.signal}`;
}

const NANO = 1_000_000_000n;

/**
 * The value as a whole number of the signal's unit, for a given capacity. A quantity is rounded
 * up, since less than a whole unit cannot be measured; a percentage is truncated, as the kubelet
 * does. Values beyond 2^53 − 1 are cut to it: no node is that large.
 *
 * @see kubelet `eviction/api/types.go`, `GetThresholdQuantity`, for a fraction: 64-bit floats
 */
export function resolveValue(value: ThresholdValue, capacity: number): number {
  if (value.kind === 'fraction') {
    return Math.min(Math.trunc(capacity * value.fraction), Number.MAX_SAFE_INTEGER);
  }
  const whole =
    value.kind === 'quantity'
      ? (value.nano + NANO - 1n) / NANO
      : (BigInt(capacity) * value.nanoPercent) / (100n * NANO);
  return Number(whole > BigInt(Number.MAX_SAFE_INTEGER) ? BigInt(Number.MAX_SAFE_INTEGER) : whole);
}

/** The level of a threshold for a given capacity, with its minimum reclaim if `withReclaim`. */
export function thresholdLevel(
  threshold: Threshold,
  capacity: number,
  withReclaim: boolean,
): number {
  const level = resolveValue(threshold.value, capacity);
  if (!withReclaim || threshold.minimumReclaim === undefined) return level;
  return Math.min(
    Number.MAX_SAFE_INTEGER,
    level + resolveValue(threshold.minimumReclaim, capacity),
  );
}

/**
 * Whether the observation is below the threshold: `level > available`.
 * Source: kubelet `helpers.go`, `thresholdsMet`.
 */
export function isMet(
  threshold: Threshold,
  observation: SignalObservation,
  withReclaim: boolean,
): boolean {
  return thresholdLevel(threshold, observation.capacity, withReclaim) > observation.available;
}

/**
 * The order in which due thresholds are acted on: the signal's own order, hard before soft, the
 * most starved in proportion to its level, then by name; a total order.
 */
export function compareThresholds(
  left: { readonly threshold: Threshold; readonly observation: SignalObservation },
  right: { readonly threshold: Threshold; readonly observation: SignalObservation },
): number {
  const [a, b] = [left.threshold, right.threshold];
  return (
    SIGNALS[a.signal].order - SIGNALS[b.signal].order ||
    KIND_ORDER[a.kind] - KIND_ORDER[b.kind] ||
    starvation(left) - starvation(right) ||
    compareText(thresholdId(a), thresholdId(b))
  );
}

const KIND_ORDER = { hard: 0, soft: 1 } as const;

/** Available as a fraction of the level: the lower, the more starved. Finite, so that it subtracts. */
function starvation(due: {
  readonly threshold: Threshold;
  readonly observation: SignalObservation;
}): number {
  const level = thresholdLevel(due.threshold, due.observation.capacity, false);
  return level === 0 ? Number.MAX_VALUE : due.observation.available / level;
}

import type { SignalObservation } from './observation.ts';
import { canonicalQuantity, quantityFormat } from './quantity.ts';
import { SIGNAL_NAMES, SIGNALS, type Signal } from './signal.ts';
import { compareText } from './text.ts';

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

export function thresholdId({ kind, signal }: Threshold): ThresholdId {
  return IDS[kind][signal];
}

/** Made once: each step asks for many of them. */
const IDS = { hard: idsOf('hard'), soft: idsOf('soft') };

function idsOf(kind: Threshold['kind']): Readonly<Record<Signal, ThresholdId>> {
  const ids = SIGNAL_NAMES.map((signal) => [signal, `${kind}:${signal}`] as const);
  return Object.fromEntries(ids) as Record<Signal, ThresholdId>;
}

/** Whether one of the thresholds has the name of this one. */
export function isAmong({ kind, signal }: Threshold, thresholds: readonly Threshold[]): boolean {
  for (const other of thresholds) if (other.signal === signal && other.kind === kind) return true;
  return false;
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
  return value.kind === 'quantity' ? wholeUnits(value.nano) : partOf(value, capacity);
}

function partOf(value: Exclude<ThresholdValue, { kind: 'quantity' }>, capacity: number): number {
  return value.kind === 'fraction'
    ? Math.min(Math.trunc(capacity * value.fraction), Number.MAX_SAFE_INTEGER)
    : Number((BigInt(capacity) * value.nanoPercent) / (100n * NANO));
}

function wholeUnits(nano: bigint): number {
  return nano > MOST_NANO ? Number.MAX_SAFE_INTEGER : Number((nano + NANO - 1n) / NANO);
}

const MOST_NANO = BigInt(Number.MAX_SAFE_INTEGER) * NANO;

/**
 * The level of a threshold for a given capacity, with its minimum reclaim if `withReclaim`: rounded up
 * once, so that two halves are one.
 */
export function thresholdLevel(
  { value, minimumReclaim: reclaim }: Threshold,
  capacity: number,
  withReclaim: boolean,
): number {
  if (!withReclaim || reclaim === undefined) return resolveValue(value, capacity);
  if (value.kind === 'quantity' && reclaim.kind === 'quantity') {
    return wholeUnits(value.nano + reclaim.nano);
  }
  const sum = resolveValue(value, capacity) + resolveValue(reclaim, capacity);
  return Math.min(Number.MAX_SAFE_INTEGER, sum);
}

/**
 * A threshold's value as Kubernetes writes it: a quantity in the notation it was given in, a
 * percentage as the quantity that it is of this capacity, with powers of 1024 whatever it counts.
 */
export function canonicalLevel({ value }: Threshold, capacity: number): string {
  return value.kind === 'quantity'
    ? canonicalQuantity({ nano: value.nano, format: quantityFormat(value.text) })
    : canonicalQuantity({ nano: BigInt(partOf(value, capacity)) * NANO, format: 'binary' });
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
 * The order in which due thresholds are acted on: memory before all else, hard before soft, the most
 * starved in proportion to its level, then by name; a total order.
 */
export function compareThresholds(
  left: { readonly threshold: Threshold; readonly observation: SignalObservation },
  right: { readonly threshold: Threshold; readonly observation: SignalObservation },
): number {
  const [a, b] = [left.threshold, right.threshold];
  return (
    memoryFirst(a) - memoryFirst(b) ||
    KIND_ORDER[a.kind] - KIND_ORDER[b.kind] ||
    starvation(left) - starvation(right) ||
    compareText(thresholdId(a), thresholdId(b))
  );
}

function memoryFirst({ signal }: Threshold): number {
  return SIGNALS[signal].condition === 'MemoryPressure' ? 0 : 1;
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

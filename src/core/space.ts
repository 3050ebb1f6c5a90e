/** What pods that were evicted for a disk still hold of it. */
import type { Cause } from './decision.ts';
import type { SignalObservation } from './observation.ts';
import type { Policy } from './policy.ts';
import { isStillRising } from './reclaim.ts';
import { SIGNALS, type Signal } from './signal.ts';
import type { Sample, SpaceAwaited, State } from './state.ts';
import { thresholdLevel } from './threshold.ts';

/**
 * How long space is awaited after what held it was removed, and after the last reading in which some came
 * back, ms: containerd deletes a layer about a second after it has said that the pod is gone.
 */
export const SPACE_SETTLES_MS = 3000;

/** How long it is awaited that it is removed at all, ms. Source: kubelet `eviction_manager.go`, `podCleanupTimeout`. */
export const SPACE_HELD_MOST_MS = 30_000;

/**
 * So much of the threshold less than there was meanwhile, or of that where it is less, is taken by somebody who
 * is still there: noise is not, and before the space is gone there is time for some who take it.
 */
export const SPACE_TAKEN_SHARE = 1 / 8;

const NOTHING_READ: SpaceAwaited['highest'] = new Map();

/** What is awaited after a sample. */
export function spaceAwaitedAfter(
  { spaceAwaited: before, observations: seen }: State,
  { nowMs, spaceHeld, observations = [] }: Sample,
): SpaceAwaited | undefined {
  const settledAtMs = nowMs + SPACE_SETTLES_MS;
  if (spaceHeld === true) {
    const sinceMs = before?.sinceMs ?? nowMs;
    const untilMs = Math.min(settledAtMs, sinceMs + SPACE_HELD_MOST_MS);
    // What was read as it began may be from before the last write of the pod that is dead.
    const highest = before === undefined ? NOTHING_READ : highestOf(before.highest, observations);
    return { sinceMs, untilMs, highest };
  }
  if (before === undefined || nowMs >= before.untilMs) return undefined;
  const isRising = observations.some((now) => isDisk(now) && isStillRising(sameIn(seen, now), now));
  const highest = highestOf(before.highest, observations);
  if (!isRising && highest === before.highest) return before;
  return { ...before, untilMs: isRising ? settledAtMs : before.untilMs, highest };
}

/** The same map where nothing is higher. */
function highestOf(
  before: SpaceAwaited['highest'],
  observations: readonly SignalObservation[],
): SpaceAwaited['highest'] {
  const higher = observations.filter(
    (one) => isDisk(one) && !(one.available <= (before.get(one.signal) ?? Number.NaN)),
  );
  if (higher.length === 0) return before;
  return new Map([...before, ...higher.map((one) => [one.signal, one.available] as const)]);
}

/**
 * Whether no pod goes for what is short since space is awaited; by evictd's rules one does where somebody still
 * takes what there is.
 */
export function awaitsSpace(
  { rules }: Pick<Policy, 'rules'>,
  { spaceAwaited }: State,
  short: Pick<Cause, 'threshold' | 'observation'>,
  nowMs: number,
): boolean {
  if (spaceAwaited === undefined || nowMs >= spaceAwaited.untilMs) return false;
  if (!isDisk(short.threshold)) return false;
  return rules.spaceHeld === 'kubelet' || !isTaken(spaceAwaited, short);
}

function isTaken(
  { highest }: SpaceAwaited,
  { threshold, observation: { available, capacity } }: Pick<Cause, 'threshold' | 'observation'>,
): boolean {
  const most = highest.get(threshold.signal);
  if (most === undefined || available >= most) return false;
  const fall = SPACE_TAKEN_SHARE * Math.min(thresholdLevel(threshold, capacity, false), most);
  return available <= most - fall;
}

function isDisk({ signal }: { readonly signal: Signal }): boolean {
  return SIGNALS[signal].filesystem !== undefined;
}

function sameIn(
  observations: readonly SignalObservation[],
  { signal }: SignalObservation,
): SignalObservation | undefined {
  return observations.find((one) => one.signal === signal);
}

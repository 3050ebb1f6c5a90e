/** What pods that were evicted for a disk still hold of it. */
import type { SignalObservation } from './observation.ts';
import type { Policy } from './policy.ts';
import { isStillRising } from './reclaim.ts';
import { SIGNALS, type Signal } from './signal.ts';
import type { Sample, SpaceAwaited, State } from './state.ts';

/**
 * How long space is awaited after what held it was removed, and after the last reading in which some came
 * back, ms: containerd deletes a layer about a second after it has said that the pod is gone.
 */
export const SPACE_SETTLES_MS = 3000;

/**
 * How long it is awaited that it is removed at all, ms, by the kubelet's rules. Source: kubelet
 * `eviction_manager.go`, `podCleanupTimeout`.
 */
export const SPACE_HELD_MOST_MS = 30_000;

/** What is awaited after a sample. */
export function spaceAwaitedAfter(
  { rules }: Policy,
  { spaceAwaited: before, observations: seen }: State,
  { nowMs, spaceHeld, observations = [] }: Sample,
): SpaceAwaited | undefined {
  const settledAtMs = nowMs + SPACE_SETTLES_MS;
  if (spaceHeld === true) {
    const sinceMs = before?.sinceMs ?? nowMs;
    const mostMs = rules.spaceHeld === 'kubelet' ? sinceMs + SPACE_HELD_MOST_MS : settledAtMs;
    return { sinceMs, untilMs: Math.min(settledAtMs, mostMs) };
  }
  if (before === undefined || nowMs >= before.untilMs) return undefined;
  const isRising = observations.some((now) => isDisk(now) && isStillRising(sameIn(seen, now), now));
  return isRising ? { ...before, untilMs: settledAtMs } : before;
}

/** Whether no pod goes for a signal since space is awaited. */
export function awaitsSpace({ spaceAwaited }: State, signal: Signal, nowMs: number): boolean {
  return spaceAwaited !== undefined && nowMs < spaceAwaited.untilMs && isDisk({ signal });
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

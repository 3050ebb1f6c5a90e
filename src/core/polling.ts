import type { SignalObservation } from './observation.ts';
import { type Threshold, thresholdLevel } from './threshold.ts';

/** The fastest fall that is assumed of memory that nobody has seen fall: bytes per second. */
const ASSUMED_FALL_BYTES_PER_SECOND = 1e9;

/** Two readings closer than this say nothing of a rate. */
const SHORTEST_RATE_INTERVAL_MS = 10;

/** The shortest time between two polls, ms. */
export const POLL_FLOOR_MS = 50;

/** How often a signal that could not be read is tried again, ms. */
export const UNREADABLE_POLL_MS = 1000;

/**
 * How long until the next poll, ms: the time in which the nearest threshold could be reached at
 * the observed or the assumed fall, whichever is faster, between the floor and `pollIntervalMs`.
 * A threshold that is met already is polled at the floor.
 */
export function nextPollMs(
  thresholds: readonly Threshold[],
  before: SignalObservation | undefined,
  now: SignalObservation | undefined,
  pollIntervalMs: number,
): number {
  if (thresholds.length === 0) return pollIntervalMs;
  if (now === undefined) return Math.min(UNREADABLE_POLL_MS, pollIntervalMs);
  const fall = Math.max(fallPerSecond(before, now), ASSUMED_FALL_BYTES_PER_SECOND);
  const nearest = Math.min(
    ...thresholds.map(
      (threshold) => now.available - thresholdLevel(threshold, now.capacity, false),
    ),
  );
  return Math.min(Math.max((nearest / fall) * 1000, POLL_FLOOR_MS), pollIntervalMs);
}

function fallPerSecond(before: SignalObservation | undefined, now: SignalObservation): number {
  if (before === undefined || now.atMs - before.atMs < SHORTEST_RATE_INTERVAL_MS) return 0;
  return ((before.available - now.available) / (now.atMs - before.atMs)) * 1000;
}

import type { SignalObservation } from './observation.ts';
import type { PollKind } from './signal.ts';
import { type Threshold, thresholdLevel } from './threshold.ts';

/** How a kind of signal is polled. */
export interface PollPace {
  /** The fastest fall that is assumed of what nobody has seen fall, in the signal's unit a second. */
  readonly assumedFallPerSecond: number;
  /** The shortest time between two polls, ms. */
  readonly floorMs: number;
}

/** What holds unless something else was asked for. */
export const POLL_PACES: Readonly<Record<PollKind, PollPace>> = {
  memory: { assumedFallPerSecond: 1e9, floorMs: 50 },
  disk: { assumedFallPerSecond: 1e9, floorMs: 1000 },
  inodes: { assumedFallPerSecond: 100_000, floorMs: 1000 },
  pids: { assumedFallPerSecond: 1000, floorMs: 100 },
};

/** Two readings closer than this say nothing of a rate. */
const SHORTEST_RATE_INTERVAL_MS = 10;

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
  { assumedFallPerSecond, floorMs }: PollPace,
): number {
  if (thresholds.length === 0) return pollIntervalMs;
  if (now === undefined) return Math.min(UNREADABLE_POLL_MS, pollIntervalMs);
  const fall = Math.max(fallPerSecond(before, now), assumedFallPerSecond);
  const nearest = Math.min(
    ...thresholds.map(
      (threshold) => now.available - thresholdLevel(threshold, now.capacity, false),
    ),
  );
  return Math.min(Math.max((nearest / fall) * 1000, floorMs), pollIntervalMs);
}

function fallPerSecond(before: SignalObservation | undefined, now: SignalObservation): number {
  if (before === undefined || now.atMs - before.atMs < SHORTEST_RATE_INTERVAL_MS) return 0;
  return ((before.available - now.available) / (now.atMs - before.atMs)) * 1000;
}

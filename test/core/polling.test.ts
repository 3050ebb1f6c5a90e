import { describe, expect, it } from 'vitest';
import { nextPollMs, POLL_PACES, UNREADABLE_POLL_MS } from '../../src/core/polling.ts';
import { GI, observation, softThreshold, threshold, value } from '../support/builders.ts';

const INTERVAL_MS = 10_000;
const GB = 1e9;
const CAPACITY = 64 * GI;

/** A hard threshold at 1 GB. */
const AT_1_GB = [threshold({ value: value('1G') })];
const read = (available: number, atMs = 0) => observation(available, { atMs, capacity: CAPACITY });

const MEMORY = POLL_PACES.memory;

describe('POLL_PACES', () => {
  it.each([
    ['memory', 1e9, 50],
    ['disk', 1e9, 1000],
    ['inodes', 100_000, 1000],
    ['pids', 1000, 100],
  ] as const)(
    '%s is assumed to fall by %d a second, and polled each %d ms at most',
    (kind, fall, ms) => {
      expect(POLL_PACES[kind]).toStrictEqual({ assumedFallPerSecond: fall, floorMs: ms });
    },
  );
});

describe('nextPollMs', () => {
  it.each([
    ['3 GB to go at 1 GB/s', 4 * GB, 3000],
    ['just above the floor', 1.051 * GB, 51],
    ['at the floor', 1.05 * GB, MEMORY.floorMs],
    ['below the floor', 1.049 * GB, MEMORY.floorMs],
    ['exactly at the threshold', GB, MEMORY.floorMs],
    ['met already', 0.5 * GB, MEMORY.floorMs],
    ['just below the poll interval', 10.999 * GB, 9999],
    ['at the poll interval', 11 * GB, INTERVAL_MS],
    ['far above it', 60 * GB, INTERVAL_MS],
  ])('first reading, %s', (_, available, expected) => {
    expect(nextPollMs(AT_1_GB, undefined, read(available), INTERVAL_MS, MEMORY)).toBeCloseTo(
      expected,
      6,
    );
  });

  it.each([
    ['a fall slower than 1 GB/s changes nothing', 4.5 * GB, 1000, 3000],
    ['a fall of 1 GB/s neither', 5 * GB, 1000, 3000],
    ['a fall of 2 GB/s halves it', 6 * GB, 1000, 1500],
    ['a fall of 20 GB/s', 24 * GB, 1000, 150],
    ['a fall of 100 GB/s meets the floor', 14 * GB, 100, MEMORY.floorMs],
    ['a rise changes nothing', 2 * GB, 1000, 3000],
    ['readings 10 ms apart tell a rate', 4.04 * GB, 10, 750],
    ['readings closer than that do not', 4.04 * GB, 9.99, 3000],
    ['readings of one instant do not', 60 * GB, 0, 3000],
  ])('at 4 GB, %s', (_, beforeAvailable, sinceMs, expected) => {
    const [before, now] = [read(beforeAvailable, 5000 - sinceMs), read(4 * GB, 5000)];
    expect(nextPollMs(AT_1_GB, before, now, INTERVAL_MS, MEMORY)).toBeCloseTo(expected, 6);
  });

  it('goes by the nearest of several thresholds, minimum reclaim left out', () => {
    const soft = softThreshold({ value: value('2G'), minimumReclaim: value('1G') });
    expect(nextPollMs([...AT_1_GB, soft], undefined, read(4 * GB), INTERVAL_MS, MEMORY)).toBe(2000);
  });

  it('without thresholds is the poll interval', () => {
    expect(nextPollMs([], undefined, read(0), INTERVAL_MS, MEMORY)).toBe(INTERVAL_MS);
    expect(nextPollMs([], undefined, undefined, INTERVAL_MS, MEMORY)).toBe(INTERVAL_MS);
  });

  it('of a signal that cannot be read is a second, or less where all polls are', () => {
    expect(nextPollMs(AT_1_GB, read(GB), undefined, INTERVAL_MS, MEMORY)).toBe(UNREADABLE_POLL_MS);
    expect(nextPollMs(AT_1_GB, read(GB), undefined, 200, MEMORY)).toBe(200);
  });

  it('is never longer than the poll interval, even where that is below the floor', () => {
    expect(nextPollMs(AT_1_GB, undefined, read(0), 20, MEMORY)).toBe(20);
  });
});

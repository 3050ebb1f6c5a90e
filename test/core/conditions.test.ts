import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type ConditionsObserved,
  conditionsLastObserved,
  heldConditions,
  nextConditionEndMs,
} from '../../src/core/conditions.ts';
import { softThreshold, threshold } from '../support/builders.ts';

const NONE: ConditionsObserved = new Map();
const seenAt = (atMs: number): ConditionsObserved => new Map([['MemoryPressure', atMs]]);

describe('conditionsLastObserved', () => {
  it('is now for what a met threshold causes, and stays for the rest', () => {
    expect(conditionsLastObserved([], NONE, 5)).toStrictEqual(NONE);
    expect(conditionsLastObserved([threshold()], NONE, 5)).toStrictEqual(seenAt(5));
    expect(conditionsLastObserved([threshold()], seenAt(1), 5)).toStrictEqual(seenAt(5));
    expect(conditionsLastObserved([], seenAt(1), 5)).toStrictEqual(seenAt(1));
  });

  it('is one for two thresholds of one signal', () => {
    const both = [threshold(), softThreshold()];
    expect(conditionsLastObserved(both, NONE, 5)).toStrictEqual(seenAt(5));
  });

  it('leaves what it was given alone', () => {
    const before = seenAt(1);
    conditionsLastObserved([threshold()], before, 5);
    expect(before).toStrictEqual(seenAt(1));
  });
});

describe('heldConditions and nextConditionEndMs', () => {
  it.each([
    ['never seen', NONE, 300_000, 5000, false, undefined],
    ['seen now', seenAt(1000), 300_000, 1000, true, 301_000],
    ['a millisecond before the end', seenAt(1000), 300_000, 300_999, true, 301_000],
    ['at the end exactly', seenAt(1000), 300_000, 301_000, false, undefined],
    ['after the end', seenAt(1000), 300_000, 999_000, false, undefined],
    ['seen now, no transition period', seenAt(1000), 0, 1000, true, undefined],
    ['seen before, no transition period', seenAt(1000), 0, 1001, false, undefined],
    ['1000 h later', seenAt(0), 3_600_000_000, 3_599_999_999, true, 3_600_000_000],
  ])('%s', (_, observed, periodMs, nowMs, held, endMs) => {
    expect(heldConditions(observed, periodMs, nowMs)).toStrictEqual(held ? ['MemoryPressure'] : []);
    expect(nextConditionEndMs(observed, periodMs, nowMs)).toBe(endMs);
  });

  it('agree: the instant that is named is the one at which the condition ends', () => {
    const instant = fc.double({ min: 0, max: 1e9, noNaN: true });
    fc.assert(
      fc.property(instant, fc.double({ min: 0.001, max: 1e9, noNaN: true }), (atMs, periodMs) => {
        const endMs = nextConditionEndMs(seenAt(atMs), periodMs, atMs) ?? Number.NaN;
        expect(heldConditions(seenAt(atMs), periodMs, endMs)).toStrictEqual([]);
      }),
    );
  });
});

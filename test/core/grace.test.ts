import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  earlier,
  type FirstObserved,
  firstObservedAt,
  graceEndsAtMs,
  nextGraceEndMs,
  pastGrace,
} from '../../src/core/grace.ts';
import { softThreshold, threshold } from '../support/builders.ts';

const HARD = threshold();
const SOFT = softThreshold({ gracePeriodMs: 30_000 });

const observed = (times: { readonly hard?: number; readonly soft?: number }): FirstObserved =>
  new Map([
    ...(times.hard === undefined ? [] : [['hard:memory.available', times.hard] as const]),
    ...(times.soft === undefined ? [] : [['soft:memory.available', times.soft] as const]),
  ]);

describe('firstObservedAt', () => {
  it('is now for a new one, as it was for one still met, and forgotten for the rest', () => {
    expect(firstObservedAt([], observed({}), 5)).toStrictEqual(observed({}));
    expect(firstObservedAt([SOFT], observed({}), 5)).toStrictEqual(observed({ soft: 5 }));
    expect(firstObservedAt([SOFT], observed({ soft: 1 }), 5)).toStrictEqual(observed({ soft: 1 }));
    expect(firstObservedAt([HARD], observed({ soft: 1 }), 5)).toStrictEqual(observed({ hard: 5 }));
    expect(firstObservedAt([], observed({ soft: 1 }), 5)).toStrictEqual(observed({}));
  });

  it('keeps a time of 0', () => {
    expect(firstObservedAt([SOFT], observed({ soft: 0 }), 5)).toStrictEqual(observed({ soft: 0 }));
  });

  it('leaves what it was given alone', () => {
    const before = observed({ soft: 1 });
    firstObservedAt([HARD], before, 5);
    expect(before).toStrictEqual(observed({ soft: 1 }));
  });
});

describe('graceEndsAtMs', () => {
  it('is the first observation plus the grace period; never for what was not observed', () => {
    expect(graceEndsAtMs(SOFT, observed({ soft: 1000 }))).toBe(31_000);
    expect(graceEndsAtMs(HARD, observed({ hard: 1000 }))).toBe(1000);
    expect(graceEndsAtMs(SOFT, observed({ hard: 1000 }))).toBe(Number.POSITIVE_INFINITY);
  });
});

describe('pastGrace', () => {
  it.each([
    ['hard, at once', HARD, observed({ hard: 1000 }), 1000, true],
    ['soft, first seen', SOFT, observed({ soft: 1000 }), 1000, false],
    ['soft, a millisecond early', SOFT, observed({ soft: 1000 }), 30_999, false],
    ['soft, exactly', SOFT, observed({ soft: 1000 }), 31_000, true],
    ['soft, later', SOFT, observed({ soft: 1000 }), 99_000, true],
    // 0.1 + 0.2 is more than 0.3 to a computer.
    [
      'exactly, of microseconds',
      { ...SOFT, gracePeriodMs: 0.2 },
      observed({ soft: 0.1 }),
      0.3,
      true,
    ],
    ['never observed', SOFT, observed({}), 99_000, false],
  ])('%s', (_, one, times, nowMs, expected) => {
    expect(pastGrace([one], times, nowMs)).toStrictEqual(expected ? [one] : []);
  });
});

describe('nextGraceEndMs', () => {
  it.each([
    ['nothing is met', [], observed({}), 0, undefined],
    ['a grace is running', [SOFT], observed({ soft: 1000 }), 30_999, 31_000],
    ['it ends just now', [SOFT], observed({ soft: 1000 }), 31_000, undefined],
    ['there is none', [HARD], observed({ hard: 1000 }), 1000, undefined],
    ['one of two is running', [HARD, SOFT], observed({ hard: 0, soft: 1000 }), 5000, 31_000],
  ])('when %s', (_, met, times, nowMs, expected) => {
    expect(nextGraceEndMs(met, times, nowMs)).toBe(expected);
  });

  it('is there exactly as long as a threshold is not past its grace', () => {
    const instant = fc.double({ min: 0, max: 1e9, noNaN: true });
    fc.assert(
      fc.property(instant, fc.integer({ min: 1, max: 1e9 }), instant, (since, grace, at) => {
        const soft = softThreshold({ gracePeriodMs: grace });
        const times = observed({ soft: since });
        const end = nextGraceEndMs([soft], times, at);
        expect(end === undefined).toBe(pastGrace([soft], times, at).length === 1);
        // The wake-up that it asks for finds the threshold due.
        if (end !== undefined) expect(pastGrace([soft], times, end)).toStrictEqual([soft]);
      }),
    );
  });
});

describe('earlier', () => {
  it.each([
    [undefined, undefined, undefined],
    [5, undefined, 5],
    [undefined, 0, 0],
    [5, 3, 3],
    [0, 3, 0],
  ])('of %j and %j is %j', (left, right, expected) => {
    expect(earlier(left, right)).toBe(expected);
  });
});

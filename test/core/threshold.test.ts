import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Signal } from '../../src/core/signal.ts';
import {
  canonicalLevel,
  compareThresholds,
  isAmong,
  isMet,
  resolveValue,
  type Threshold,
  type ThresholdValue,
  thresholdId,
  thresholdLevel,
} from '../../src/core/threshold.ts';
import { GI, MI, observation, softThreshold, threshold, value } from '../support/builders.ts';

describe('thresholdId', () => {
  it('names the kind and the signal', () => {
    expect(thresholdId(threshold())).toBe('hard:memory.available');
    expect(thresholdId(softThreshold())).toBe('soft:memory.available');
  });
});

describe('isAmong', () => {
  it('goes by kind and signal, whatever else differs', () => {
    const pids = threshold({ signal: 'pid.available' });
    expect(isAmong(threshold(), [pids, threshold({ gracePeriodMs: 5 })])).toBe(true);
    expect(isAmong(threshold(), [pids, softThreshold()])).toBe(false);
    expect(isAmong(threshold(), [])).toBe(false);
  });
});

describe('resolveValue', () => {
  it.each<[string, number, number]>([
    ['100Mi', GI, 100 * MI],
    // A quantity does not depend on the capacity.
    ['100Mi', 0, 100 * MI],
    ['0', GI, 0],
    // Less than a whole byte cannot be measured: rounded up.
    ['1500m', GI, 2],
    ['1n', GI, 1],
    ['1000m', GI, 1],
    ['10%', 1000, 100],
    // A percentage is truncated.
    ['10%', 1009, 100],
    ['10%', 1010, 101],
    ['0.001%', 99_999, 0],
    ['100%', GI, GI],
    ['50%', 0, 0],
    ['8Pi', GI, Number.MAX_SAFE_INTEGER],
    ['8Ei', GI, Number.MAX_SAFE_INTEGER],
    ['9007199254740991', GI, Number.MAX_SAFE_INTEGER],
    ['9007199254740990', GI, Number.MAX_SAFE_INTEGER - 1],
    ['100%', Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  ])('%s of a capacity of %d is %d', (text, capacity, expected) => {
    expect(resolveValue(value(text), capacity)).toBe(expected);
  });

  it.each([
    // 0.1 as a 32-bit float is a little more: 16 bytes of 10Gi.
    [Math.fround(0.1), 10 * GI, 1_073_741_840],
    [Math.fround(0.15), 1000, 150],
    [0, GI, 0],
    [1, GI, GI],
    [1.5, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  ])('a fraction of %d of %d is %d, as in the kubelet', (fraction, capacity, expected) => {
    expect(resolveValue({ kind: 'fraction', fraction, text: '' }, capacity)).toBe(expected);
  });

  it('is exact for percentages where a double is not', () => {
    const third: ThresholdValue = {
      kind: 'percentage',
      nanoPercent: 33_333_333_333n,
      text: '33.333333333%',
    };
    expect(resolveValue(third, Number.MAX_SAFE_INTEGER)).toBe(3_002_399_751_550_306);
  });
});

describe('thresholdLevel', () => {
  it.each<[string, string | undefined, number, number]>([
    ['100Mi', undefined, 100 * MI, 100 * MI],
    ['100Mi', '50Mi', 100 * MI, 150 * MI],
    ['100Mi', '25%', 100 * MI, 356 * MI],
    ['25%', '25%', 256 * MI, 512 * MI],
    ['8Ei', '8Ei', Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
    ['9007199254740990', '5', Number.MAX_SAFE_INTEGER - 1, Number.MAX_SAFE_INTEGER],
    // Rounded up once: two halves are one.
    ['1500m', '1500m', 2, 3],
    ['500m', '500m', 1, 1],
    ['1n', '999999999n', 1, 1],
    ['1n', '1', 1, 2],
    // A percentage is truncated by itself.
    ['1500m', '0.0000001%', 2, 3],
  ])(
    '%s with a minimum reclaim of %s is %d, and %d to be regained',
    (text, reclaim, level, all) => {
      const minimumReclaim = reclaim === undefined ? undefined : value(reclaim);
      const one = threshold({ value: value(text), minimumReclaim });
      expect(thresholdLevel(one, GI, false)).toBe(level);
      expect(thresholdLevel(one, GI, true)).toBe(all);
    },
  );
});

describe('canonicalLevel', () => {
  it.each([
    ['100Mi', GI, '100Mi'],
    ['0.5Gi', GI, '512Mi'],
    ['1e8', GI, '100e6'],
    ['100000k', GI, '100M'],
    ['1500m', GI, '1500m'],
    // A percentage is what it is of the capacity, with powers of 1024 whatever it counts.
    ['10%', 1000 * MI, '100Mi'],
    ['10%', 10_240, '1Ki'],
    ['10%', 10_230, '1023'],
    ['10%', 1_000_000, '100000'],
    ['50%', 0, '0'],
  ])('%s of a capacity of %d is %s', (text, capacity, expected) => {
    expect(canonicalLevel(threshold({ value: value(text) }), capacity)).toBe(expected);
  });

  it('of a fraction is the quantity that the kubelet makes of it', () => {
    const tenth = threshold({ value: { kind: 'fraction', fraction: Math.fround(0.1), text: '' } });
    expect(canonicalLevel(tenth, 10 * GI)).toBe('1073741840');
  });
});

describe('isMet', () => {
  const reclaiming = threshold({ minimumReclaim: value('50Mi') });

  it.each<[string, Threshold, number, boolean, boolean]>([
    ['a byte below', threshold(), 100 * MI - 1, false, true],
    ['equal', threshold(), 100 * MI, false, false],
    ['a byte above', threshold(), 100 * MI + 1, false, false],
    ['nothing left', threshold(), 0, false, true],
    ['a level of 0', threshold({ value: value('0') }), 0, false, false],
    ['all of it, a byte used', threshold({ value: value('100%') }), GI - 1, false, true],
    ['all of it, unused', threshold({ value: value('100%') }), GI, false, false],
    ['equal, reclaim not asked for', reclaiming, 100 * MI, false, false],
    ['reclaim short of a byte', reclaiming, 150 * MI - 1, true, true],
    ['reclaim regained', reclaiming, 150 * MI, true, false],
    ['no reclaim to regain', threshold(), 100 * MI, true, false],
  ])('%s', (_, one, available, withReclaim, expected) => {
    expect(isMet(one, observation(available), withReclaim)).toBe(expected);
  });
});

describe('compareThresholds', () => {
  const at = (one: Threshold, available: number) => ({
    threshold: one,
    observation: observation(available),
  });

  it('puts a hard threshold before a soft one, though that is starved more', () => {
    const hard = at(threshold(), 90 * MI);
    const soft = at(softThreshold(), 10 * MI);
    expect(compareThresholds(hard, soft)).toBeLessThan(0);
    expect(compareThresholds(soft, hard)).toBeGreaterThan(0);
  });

  const of = (signal: Signal, available: number, overrides: Partial<Threshold> = {}) => ({
    threshold: threshold({ signal, value: value('1000'), ...overrides }),
    observation: observation(available, { signal }),
  });

  it.each<[string, ReturnType<typeof of>, ReturnType<typeof of>]>([
    [
      'memory before a disk that is starved more',
      of('memory.available', 999),
      of('nodefs.available', 1),
    ],
    [
      'soft memory before a hard disk',
      of('memory.available', 999, { kind: 'soft' }),
      of('nodefs.available', 1),
    ],
    [
      'memory of all pods before PIDs',
      of('allocatableMemory.available', 999),
      of('pid.available', 1),
    ],
    [
      'of both memories the one that is starved more',
      of('allocatableMemory.available', 1),
      of('memory.available', 2),
    ],
    [
      'a hard disk before a soft one that is starved more',
      of('imagefs.available', 999),
      of('nodefs.available', 1, { kind: 'soft' }),
    ],
    ['PIDs before a disk that is starved less', of('pid.available', 1), of('nodefs.available', 2)],
    ['of equals by name', of('containerfs.available', 5), of('nodefs.available', 5)],
    ['of equal memories by name', of('allocatableMemory.available', 5), of('memory.available', 5)],
  ])('puts %s', (_, first, second) => {
    expect(compareThresholds(first, second)).toBeLessThan(0);
    expect(compareThresholds(second, first)).toBeGreaterThan(0);
  });

  it('puts what is starved more in proportion first, not in bytes', () => {
    const half = at(threshold({ value: value('10Mi') }), 5 * MI);
    const most = at(threshold({ value: value('500Mi') }), 400 * MI);
    expect(compareThresholds(half, most)).toBeLessThan(0);
    expect(compareThresholds(most, half)).toBeGreaterThan(0);
  });

  it('puts a level of nothing last, and two of them are equal', () => {
    const nothing = at(threshold({ value: value('0') }), 0);
    expect(compareThresholds(nothing, nothing)).toBe(0);
    expect(compareThresholds(at(threshold(), GI), nothing)).toBeLessThan(0);
    expect(compareThresholds(nothing, at(threshold(), GI))).toBeGreaterThan(0);
  });

  it('is an order: antisymmetric, transitive, never undecided', () => {
    const one = fc
      .record({
        kind: fc.constantFrom('hard' as const, 'soft' as const),
        level: fc.constantFrom('0', '1Mi', '100Mi', '10%', '8Ei'),
        available: fc.integer({ min: 0, max: GI }),
      })
      .map(({ kind, level, available }) => at(threshold({ kind, value: value(level) }), available));
    fc.assert(
      fc.property(one, one, one, (a, b, c) => {
        const [ab, bc, ac] = [
          compareThresholds(a, b),
          compareThresholds(b, c),
          compareThresholds(a, c),
        ].map(Math.sign) as [number, number, number];
        expect(ab).not.toBeNaN();
        expect(ab + Math.sign(compareThresholds(b, a))).toBe(0);
        if (ab <= 0 && bc <= 0) expect(ac).toBeLessThanOrEqual(0);
      }),
    );
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Arming,
  approachLevel,
  armingFor,
  inCounter,
  needsRearming,
  TOP_MARGIN_BYTES,
} from '../../src/core/memcg.ts';
import { MI } from '../support/builders.ts';

const armed = (levels: readonly [number, ...number[]], late = false): Arming => ({
  kind: 'armed',
  levels,
  late,
});
const inMi = ([first, ...rest]: readonly [number, ...number[]]) =>
  [first * MI, ...rest.map((mi) => mi * MI)] as const;

describe('armingFor, capacity 512Mi', () => {
  it.each<[string, number, number, Arming]>([
    // threshold, inactive file
    ['the level and its rungs', 32, 0, armed(inMi([480, 481, 482, 484, 488]))],
    ['inactive file puts the level up', 32, 10, armed(inMi([490, 491, 492, 494, 498]))],
    ['only rungs below the limit', 8, 0, armed(inMi([504, 505, 506, 508]))],
    ['2Mi: the last that has an event', 2, 0, armed(inMi([510, 511]))],
    ['under 2Mi: late', 1, 0, armed(inMi([510, 511]), true)],
    ['none at all: late', 0, 0, armed(inMi([510, 511]), true)],
    ['inactive file up to the margin', 32, 30, armed(inMi([510, 511]))],
    [
      'inactive file reaches into the margin, where no level can be armed',
      32,
      31,
      { kind: 'followed', levels: inMi([510, 511]), closeAboveBytes: 448 * MI },
    ],
    ['under 2Mi, inactive file equal to it', 1, 1, armed(inMi([510, 511]), true)],
    [
      'inactive file above the threshold',
      32,
      33,
      { kind: 'followed', levels: inMi([510, 511]), closeAboveBytes: 448 * MI },
    ],
    [
      'the same, close below 32Mi at least',
      4,
      5,
      { kind: 'followed', levels: inMi([510, 511]), closeAboveBytes: 480 * MI },
    ],
    [
      'the same, close from twice the threshold on',
      17,
      18,
      { kind: 'followed', levels: inMi([510, 511]), closeAboveBytes: 478 * MI },
    ],
    [
      'a byte short of the capacity',
      512 - 1 / MI,
      0,
      armed([1, MI + 1, 2 * MI + 1, 4 * MI + 1, 8 * MI + 1]),
    ],
    ['equal to the capacity', 512, 0, { kind: 'alwaysMet' }],
    ['above the capacity', 600, 0, { kind: 'alwaysMet' }],
    ['above the capacity, much inactive file', 600, 700, { kind: 'alwaysMet' }],
  ])('%s', (_, thresholdMi, inactiveFileMi, expected) => {
    expect(armingFor(512 * MI, thresholdMi * MI, inactiveFileMi * MI)).toStrictEqual(expected);
  });

  it('a node that is no larger than the margin has no level', () => {
    expect(armingFor(2 * MI, MI, 0)).toStrictEqual({ kind: 'alwaysMet' });
    expect(armingFor(2 * MI + 1, MI, 0)).toStrictEqual(armed([1, MI + 1], true));
  });

  it('a byte less than 2Mi is late, 2Mi is not', () => {
    expect(armingFor(512 * MI, 2 * MI - 1, 0)).toMatchObject({ late: true });
    expect(armingFor(512 * MI, 2 * MI, 0)).toMatchObject({ late: false });
  });

  it('every level lies above 0 and below the capacity, rising from the first', () => {
    const size = fc.integer({ min: 0, max: 64 * MI });
    fc.assert(
      fc.property(size, size, size, (capacity, thresholdBytes, inactiveFileBytes) => {
        const arming = armingFor(capacity, thresholdBytes, inactiveFileBytes);
        if (arming.kind === 'alwaysMet') return;
        const { levels } = arming;
        expect(levels[0]).toBeGreaterThan(0);
        expect(levels.at(-1)).toBeLessThan(capacity);
        expect(levels[0]).toBeLessThanOrEqual(capacity - TOP_MARGIN_BYTES);
        expect([...new Set(levels)].sort((a, b) => a - b)).toStrictEqual([...levels]);
      }),
    );
  });
});

describe('armingFor what is followed already, threshold 32Mi', () => {
  it.each([
    // inactive file in MiB, kind
    [30, 'followed'],
    [26.1, 'followed'],
    [26, 'armed'],
  ] as const)('inactive file %sMi: %s', (inactiveFileMi, kind) => {
    const arming = armingFor(512 * MI, 32 * MI, inactiveFileMi * MI, 'followed');
    expect(arming.kind).toBe(kind);
  });
});

describe('needsRearming', () => {
  const ladder = armed(inMi([480, 481]));
  const movedBy = (bytes: number) => armed([480 * MI + bytes, 481 * MI + bytes]);
  const followed: Arming = {
    kind: 'followed',
    levels: inMi([510, 511]),
    closeAboveBytes: 448 * MI,
  };
  const followedElsewhere: Arming = {
    kind: 'followed',
    levels: inMi([600, 601]),
    closeAboveBytes: 1,
  };

  it.each<[string, Arming, Arming, number, boolean]>([
    ['not moved', ladder, ladder, 32 * MI, false],
    ['up by an eighth of the threshold', ladder, movedBy(4 * MI), 32 * MI, false],
    ['up by a byte more', ladder, movedBy(4 * MI + 1), 32 * MI, true],
    ['down by an eighth of the threshold', ladder, movedBy(-4 * MI), 32 * MI, false],
    ['down by a byte more', ladder, movedBy(-4 * MI - 1), 32 * MI, true],
    ['small threshold, by 1Mi', ladder, movedBy(MI), MI, false],
    ['small threshold, by a byte more', ladder, movedBy(MI + 1), MI, true],
    ['small threshold, down by a byte more', ladder, movedBy(-MI - 1), MI, true],
    ['followed from now on', ladder, followed, 32 * MI, true],
    ['no longer followed', followed, ladder, 32 * MI, true],
    ['still followed', followed, followed, 32 * MI, false],
    ['followed on a larger node', followed, followedElsewhere, 32 * MI, true],
    ['always met from now on', ladder, { kind: 'alwaysMet' }, 32 * MI, true],
    ['no longer always met', { kind: 'alwaysMet' }, ladder, 32 * MI, true],
    ['still always met', { kind: 'alwaysMet' }, { kind: 'alwaysMet' }, 32 * MI, false],
  ])('%s', (_, before, wanted, thresholdBytes, expected) => {
    expect(needsRearming(before, wanted, thresholdBytes)).toBe(expected);
  });
});

describe('approachLevel', () => {
  const ladder = armed(inMi([480, 481]));

  it.each([
    // threshold, level, in MiB
    [100, 380],
    [32, 448],
    [1, 448],
    [256, 224],
    [300, 224],
  ])('threshold %iMi: one threshold below the first level, within bounds', (threshold, level) => {
    expect(approachLevel(ladder, threshold * MI)).toBe(level * MI);
  });

  it('is none at 0 or below', () => {
    expect(approachLevel(armed([32 * MI]), MI)).toBeUndefined();
    expect(approachLevel(armed([32 * MI + 1]), MI)).toBe(1);
  });

  it.each<Arming>([
    { kind: 'alwaysMet' },
    { kind: 'followed', levels: inMi([510, 511]), closeAboveBytes: 448 * MI },
  ])('is none for what is $kind', (arming) => {
    expect(approachLevel(arming, 32 * MI)).toBeUndefined();
  });
});

describe('inCounter', () => {
  it.each<[string, Arming, number, Arming]>([
    ['counts all', armed(inMi([480, 481])), 0, armed(inMi([480, 481]))],
    ['leaves 100Mi out', armed(inMi([480, 481]), true), 100 * MI, armed(inMi([380, 381]), true)],
    ['says 100Mi too much', armed(inMi([480])), -100 * MI, armed(inMi([580]))],
    [
      'leaves 100Mi out, followed',
      { kind: 'followed', levels: inMi([510, 511]), closeAboveBytes: 448 * MI },
      100 * MI,
      { kind: 'followed', levels: inMi([410, 411]), closeAboveBytes: 448 * MI },
    ],
    [
      'leaves a byte less than the first level out',
      armed([MI, 2 * MI]),
      MI - 1,
      armed([1, MI + 1]),
    ],
    ['leaves the first level out: met already', armed([MI, 2 * MI]), MI, { kind: 'alwaysMet' }],
    ['is not asked', { kind: 'alwaysMet' }, 100 * MI, { kind: 'alwaysMet' }],
  ])('a counter that %s', (_, arming, uncountedBytes, expected) => {
    expect(inCounter(arming, uncountedBytes)).toStrictEqual(expected);
  });
});

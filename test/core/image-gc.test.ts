import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  exclusiveImages,
  FRESH_IMAGE_MS,
  type ImageObservation,
  imageKept,
  imageObservation,
  imagesSeen,
  imagesToCollect,
  type ListedImage,
  levelForMarks,
  outdatedImages,
  REMEMBERED_IMAGES,
  unusedImages,
  usedImage,
} from '../../src/core/image-gc.ts';
import { RULE_SETS } from '../../src/core/rules.ts';
import { GI, MI } from '../support/builders.ts';

const listed = (id: string, fields: Partial<ListedImage> = {}): ListedImage => ({
  id,
  names: [`example/${id}:1`],
  sizeBytes: 100 * MI,
  pinned: undefined,
  usedBy: [],
  ...fields,
});

describe('imagesSeen', () => {
  const timesOf = (memory: ReturnType<typeof imagesSeen>) =>
    Object.fromEntries(
      [...memory].map(([id, { firstSeenAtMs, lastUsedAtMs, wasThere }]) => [
        id,
        [firstSeenAtMs, lastUsedAtMs, wasThere],
      ]),
    );

  it('takes what is there at the first look of all for old', () => {
    const first = imagesSeen(undefined, [listed('a'), listed('b', { usedBy: ['c1'] })], 10);
    expect(timesOf(first)).toStrictEqual({ a: [10, undefined, true], b: [10, 10, true] });
  });

  it('remembers when each was first seen and last used, and forgets what is gone', () => {
    const first = imagesSeen(new Map(), [listed('a'), listed('b', { usedBy: ['c1'] })], 10);
    const second = imagesSeen(first, [listed('b'), listed('c')], 20);
    expect(timesOf(first)).toStrictEqual({ a: [10, undefined, false], b: [10, 10, false] });
    expect(timesOf(second)).toStrictEqual({ b: [10, 10, false], c: [20, undefined, false] });
    const third = imagesSeen(second, [listed('b', { usedBy: ['c2'] })], 30);
    expect(timesOf(third)).toStrictEqual({ b: [10, 30, false] });
  });

  it('remembers no more than so many', () => {
    const many = Array.from({ length: REMEMBERED_IMAGES + 1 }, (_, index) => listed(`${index}`));
    expect(imagesSeen(undefined, many, 0).size).toBe(REMEMBERED_IMAGES);
  });
});

describe('imageObservation', () => {
  it('joins what is listed with what is remembered', () => {
    const one = listed('a', { pinned: 'by the runtime', usedBy: ['c1'] });
    const memory = imagesSeen(undefined, [one], 10);
    expect(imageObservation(one, memory, 20)).toStrictEqual({
      id: 'a',
      sizeBytes: 100 * MI,
      firstSeenAtMs: 10,
      lastUsedAtMs: 10,
      inUse: true,
      pinned: true,
      wasThere: true,
    });
  });

  it('takes what is not remembered for seen now', () => {
    expect(imageObservation(listed('a'), new Map(), 20)).toMatchObject({
      firstSeenAtMs: 20,
      lastUsedAtMs: undefined,
      inUse: false,
      pinned: false,
      wasThere: false,
    });
  });
});

describe('C24: pinned, used and fresh images', () => {
  const NOW_MS = 1_000_000;
  const image = (fields: Partial<ImageObservation>): ImageObservation => ({
    id: 'a',
    sizeBytes: MI,
    firstSeenAtMs: 0,
    lastUsedAtMs: undefined,
    inUse: false,
    pinned: false,
    ...fields,
  });

  it.each<[Partial<ImageObservation>, ReturnType<typeof imageKept>]>([
    [{}, undefined],
    [{ inUse: true, pinned: true, firstSeenAtMs: NOW_MS }, 'in use'],
    [{ pinned: true, firstSeenAtMs: NOW_MS }, 'pinned'],
    [{ firstSeenAtMs: NOW_MS - 119_999 }, 'fresh'],
    [{ firstSeenAtMs: NOW_MS - 120_000 }, undefined],
    [{ firstSeenAtMs: NOW_MS, wasThere: true }, undefined],
    [{ firstSeenAtMs: NOW_MS, lastUsedAtMs: 0 }, 'fresh'],
  ])('%o: %s', (fields, expected) => {
    expect(imageKept(image(fields), 120_000, NOW_MS)).toBe(expected);
    const isTaken = unusedImages([image(fields)], 120_000, NOW_MS).length === 1;
    expect(isTaken).toBe(expected === undefined);
  });

  it('goes by a total order', () => {
    const some = [
      image({ id: 'c', lastUsedAtMs: 5 }),
      image({ id: 'b', firstSeenAtMs: 5 }),
      image({ id: 'a', firstSeenAtMs: 5 }),
      image({ id: 'd', lastUsedAtMs: 4, firstSeenAtMs: 3 }),
    ];
    fc.assert(
      fc.property(fc.shuffledSubarray(some, { minLength: some.length }), (shuffled) => {
        const ids = unusedImages(shuffled, 0, NOW_MS).map(({ id }) => id);
        expect(ids).toStrictEqual(['d', 'a', 'b', 'c']);
      }),
    );
  });

  it.each([
    [0, []],
    [999_989, ['b', 'a']],
    [999_990, ['b']],
    [999_995, []],
  ] as const)('nobody has used for longer than %d ms: %j', (maximumAgeMs, expected) => {
    const some = [image({ id: 'a', lastUsedAtMs: 10 }), image({ id: 'b', firstSeenAtMs: 5 })];
    const unused = unusedImages(some, 0, NOW_MS);
    expect(outdatedImages(unused, maximumAgeMs, NOW_MS).map(({ id }) => id)).toStrictEqual(
      expected,
    );
  });
});

describe('levelForMarks', () => {
  const MARKS = { highPercent: 85, lowPercent: 80 };

  it.each([
    // capacity, available, expected
    [100 * GI, 100 * GI, undefined],
    [100 * GI, 16 * GI, undefined],
    // The share in use is rounded up: 84.00…1 % is 85.
    [100 * GI, 16 * GI - 1, 20 * GI],
    [100 * GI, 15 * GI, 20 * GI],
    [100 * GI, 0, 20 * GI],
    [0, 0, undefined],
    [7, 0, 1],
  ])('%d bytes, %d of them available: %s', (capacity, available, expected) => {
    expect(levelForMarks({ capacity, available }, MARKS)).toBe(expected);
  });

  it('is none where the high mark is 100', () => {
    const full = { capacity: 100, available: 0 };
    expect(levelForMarks(full, { highPercent: 100, lowPercent: 80 })).toBeUndefined();
    expect(levelForMarks(full, { highPercent: 99, lowPercent: 0 })).toBe(100);
  });
});

describe('imagesToCollect', () => {
  const NOW_MS = 1_000_000;
  const image = (id: string, fields: Partial<ImageObservation> = {}): ImageObservation => ({
    id,
    sizeBytes: 100 * MI,
    firstSeenAtMs: 0,
    lastUsedAtMs: undefined,
    inUse: false,
    pinned: false,
    ...fields,
  });
  const taken = (
    images: readonly ImageObservation[],
    neededBytes: number,
    rules: keyof typeof RULE_SETS = 'evictd',
  ) => imagesToCollect(images, neededBytes, NOW_MS, RULE_SETS[rules]).map(({ id }) => id);

  const OLD = image('old', { lastUsedAtMs: 10 });
  const OLDER = image('older', { lastUsedAtMs: 5 });
  const NEVER = image('never', { firstSeenAtMs: 7 });

  it('takes the least recently used first; what was never used counts from its pull', () => {
    expect(taken([OLD, NEVER, OLDER], Number.MAX_SAFE_INTEGER)).toStrictEqual([
      'older',
      'never',
      'old',
    ]);
  });

  it.each([
    [0, []],
    [1, ['older']],
    [100 * MI, ['older']],
    [100 * MI + 1, ['older', 'never']],
    [10_000 * MI, ['older', 'never', 'old']],
  ] as const)('stops once %d bytes are regained', (neededBytes, expected) => {
    expect(taken([OLD, NEVER, OLDER], neededBytes)).toStrictEqual(expected);
  });

  it('of two last used at one instant takes the one first by name', () => {
    expect(taken([image('b'), image('a')], 1)).toStrictEqual(['a']);
    expect(taken([image('a'), image('b')], 1)).toStrictEqual(['a']);
  });

  it.each([
    ['in use', { inUse: true }, false, false],
    ['pinned', { pinned: true }, false, false],
    ['fresh', { firstSeenAtMs: NOW_MS - FRESH_IMAGE_MS + 1 }, false, true],
    ['just old enough', { firstSeenAtMs: NOW_MS - FRESH_IMAGE_MS }, true, true],
    ['fresh, used long ago by its clock', { firstSeenAtMs: NOW_MS, lastUsedAtMs: 0 }, false, true],
    ['of no size', { sizeBytes: 0 }, true, true],
  ] as const)('one that is %s', (_, fields, isTaken, byKubelet) => {
    expect(taken([image('one', fields)], MI)).toStrictEqual(isTaken ? ['one'] : []);
    expect(taken([image('one', fields)], MI, 'kubelet')).toStrictEqual(byKubelet ? ['one'] : []);
  });

  it('takes all by the kubelet’s rules, whatever is needed', () => {
    expect(taken([OLD, NEVER, OLDER], 0, 'kubelet')).toStrictEqual(['older', 'never', 'old']);
  });

  it('leaves the list that it was given alone', () => {
    const images = [OLD, OLDER];
    taken(images, 1);
    expect(images).toStrictEqual([OLD, OLDER]);
  });

  it('takes none of none', () => {
    expect(taken([], MI)).toStrictEqual([]);
  });
});

describe('C26: exclusiveImages', () => {
  const image = (sizeBytes: number, usedBy: readonly string[], isKept = false) => ({
    sizeBytes,
    usedBy,
    isKept,
  });
  /** `a1` and `a2` are containers of `a`; `x` is nobody's. */
  const userOf = (container: string) => (container === 'x' ? undefined : container[0]);
  const sums = (...images: readonly ReturnType<typeof image>[]) =>
    Object.fromEntries(exclusiveImages(images, userOf));

  it('adds up what a user alone uses, with as many containers as it likes', () => {
    expect(sums(image(5, ['a1', 'a2']), image(7, ['a1']), image(3, ['b1']))).toStrictEqual({
      a: 12,
      b: 3,
    });
  });

  it('counts nothing that another uses, known or not, or that would stay in any case', () => {
    expect(
      sums(image(5, ['a1', 'b1']), image(7, ['c1', 'x']), image(9, ['d1'], true)),
    ).toStrictEqual({ a: 0, b: 0, c: 0, d: 0 });
  });

  it('knows nothing of whom no image names', () => {
    expect(sums(image(5, []), image(7, ['x']))).toStrictEqual({});
  });

  it.each([
    [Number.NaN, 0],
    [-1, 0],
    [1.9, 1],
    [Number.POSITIVE_INFINITY, Number.MAX_SAFE_INTEGER],
  ])('takes a size of %s for %s: it is from outside', (sizeBytes, expected) => {
    expect(sums(image(sizeBytes, ['a1']))).toStrictEqual({ a: expected });
    expect(sums(image(Number.MAX_SAFE_INTEGER, ['a1']), image(sizeBytes, ['a1']))).toStrictEqual({
      a: Number.MAX_SAFE_INTEGER,
    });
  });
});

describe('C26: usedImage', () => {
  const MINUTE_MS = 60_000;
  const memory = imagesSeen(new Map(), [listed('a')], 0);

  it.each<[string, Partial<ListedImage>, number, boolean]>([
    ['in use', { usedBy: ['c'] }, MINUTE_MS, false],
    ['pinned', { pinned: 'by the runtime' }, MINUTE_MS, true],
    ['fresh', { usedBy: ['c'] }, MINUTE_MS - 1, true],
    ['one that is not remembered', { id: 'b' }, MINUTE_MS, true],
  ])('%s: would stay though nobody used it', (_, fields, nowMs, isKept) => {
    const one = listed('a', fields);
    expect(usedImage(one, memory, MINUTE_MS, nowMs)).toStrictEqual({
      sizeBytes: 100 * MI,
      usedBy: one.usedBy,
      isKept,
    });
  });
});

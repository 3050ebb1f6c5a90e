import { describe, expect, it } from 'vitest';
import type { FilesystemLayout } from '../../src/core/layout.ts';
import {
  FRESH_IMAGE_MS,
  type ImageObservation,
  imagesToCollect,
  isStillRising,
  reclaimFunctions,
} from '../../src/core/reclaim.ts';
import { RULE_SETS } from '../../src/core/rules.ts';
import type { FilesystemName } from '../../src/core/signal.ts';
import { MI, observation } from '../support/builders.ts';

describe('reclaimFunctions', () => {
  it.each<[FilesystemLayout, FilesystemName, string, string]>([
    // layout, filesystem, by the kubelet's rules, by evictd's
    ['single', 'nodefs', 'containers images', 'containers images'],
    ['single', 'imagefs', 'containers images', 'containers images'],
    ['single', 'containerfs', 'containers images', 'containers images'],
    ['dedicatedImagefs', 'nodefs', '', 'containers'],
    ['dedicatedImagefs', 'imagefs', 'containers images', 'containers images'],
    ['dedicatedImagefs', 'containerfs', 'containers images', 'containers images'],
    ['splitImagefs', 'nodefs', 'containers', 'containers'],
    ['splitImagefs', 'imagefs', 'images', 'images'],
    ['splitImagefs', 'containerfs', 'containers', 'containers'],
    ['separateContainerfs', 'nodefs', '', 'containers'],
    ['separateContainerfs', 'imagefs', 'images', 'images'],
    ['separateContainerfs', 'containerfs', 'containers', 'containers'],
  ])('%s, %s: [%s], by evictd’s own rules [%s]', (layout, name, kubelet, evictd) => {
    for (const signal of [`${name}.available`, `${name}.inodesFree`] as const) {
      const by = (rules: keyof typeof RULE_SETS) =>
        reclaimFunctions(signal, layout, RULE_SETS[rules]).join(' ');
      expect([by('kubelet'), by('evictd')]).toStrictEqual([kubelet, evictd]);
    }
  });

  it.each(['memory.available', 'allocatableMemory.available', 'pid.available'] as const)(
    'nothing is collected for %s',
    (signal) => {
      for (const rules of Object.values(RULE_SETS)) {
        expect(reclaimFunctions(signal, 'single', rules)).toStrictEqual([]);
        expect(reclaimFunctions(signal, 'dedicatedImagefs', rules)).toStrictEqual([]);
      }
    },
  );
});

describe('isStillRising', () => {
  it.each<[number | undefined, number | undefined, boolean]>([
    [10, 11, true],
    [10, 10, false],
    [10, 9, false],
    [undefined, 11, false],
    [10, undefined, false],
    [undefined, undefined, false],
  ])('%s, then %s: %s', (before, now, expected) => {
    const of = (available: number | undefined) =>
      available === undefined ? undefined : observation(available);
    expect(isStillRising(of(before), of(now))).toBe(expected);
  });
});

describe('imagesToCollect', () => {
  const NOW_MS = 1_000_000;
  const image = (id: string, fields: Partial<ImageObservation> = {}): ImageObservation => ({
    id,
    sizeBytes: 100 * MI,
    pulledAtMs: 0,
    usedAtMs: undefined,
    inUse: false,
    pinned: false,
    ...fields,
  });
  const taken = (
    images: readonly ImageObservation[],
    neededBytes: number,
    rules: keyof typeof RULE_SETS = 'evictd',
  ) => imagesToCollect(images, neededBytes, NOW_MS, RULE_SETS[rules]).map(({ id }) => id);

  const OLD = image('old', { usedAtMs: 10 });
  const OLDER = image('older', { usedAtMs: 5 });
  const NEVER = image('never', { pulledAtMs: 7 });

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
    ['fresh', { pulledAtMs: NOW_MS - FRESH_IMAGE_MS + 1 }, false, true],
    ['just old enough', { pulledAtMs: NOW_MS - FRESH_IMAGE_MS }, true, true],
    ['fresh, used long ago by its clock', { pulledAtMs: NOW_MS, usedAtMs: 0 }, false, true],
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

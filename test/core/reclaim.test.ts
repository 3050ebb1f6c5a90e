import { describe, expect, it } from 'vitest';
import type { FilesystemLayout } from '../../src/core/layout.ts';
import { isStillRising, reclaimFunctions } from '../../src/core/reclaim.ts';
import { RULE_SETS } from '../../src/core/rules.ts';
import type { FilesystemName } from '../../src/core/signal.ts';
import { observation } from '../support/builders.ts';

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

import { describe, expect, it } from 'vitest';
import { type FilesystemFlags, withContainerfs } from '../../src/core/containerfs.ts';
import { RULE_SETS } from '../../src/core/rules.ts';
import type { Threshold } from '../../src/core/threshold.ts';
import { softThreshold, threshold, value } from '../support/builders.ts';

const SINGLE: FilesystemFlags = { dedicatedImageFs: false, splitImageFs: false };
const DEDICATED: FilesystemFlags = { dedicatedImageFs: true, splitImageFs: false };
const SPLIT: FilesystemFlags = { dedicatedImageFs: true, splitImageFs: true };
const CONTRADICTORY: FilesystemFlags = { dedicatedImageFs: false, splitImageFs: true };

const MEMORY = threshold();
const NODEFS = threshold({
  signal: 'nodefs.available',
  value: value('10%'),
  minimumReclaim: value('1Gi'),
});
const NODEFS_INODES = threshold({ signal: 'nodefs.inodesFree', value: value('5%') });
const NODEFS_SOFT = softThreshold({ signal: 'nodefs.available', value: value('15%') });
const IMAGEFS = threshold({ signal: 'imagefs.available', value: value('20%') });
const IMAGEFS_INODES = softThreshold({ signal: 'imagefs.inodesFree', value: value('7%') });
const USER: readonly Threshold[] = [
  MEMORY,
  NODEFS,
  NODEFS_INODES,
  NODEFS_SOFT,
  IMAGEFS,
  IMAGEFS_INODES,
];
const ofContainers = (one: Threshold, what: 'available' | 'inodesFree'): Threshold => ({
  ...one,
  signal: `containerfs.${what}`,
});
const OWN = threshold({ signal: 'containerfs.available', value: value('3Gi') });
const OWN_INODES = threshold({ signal: 'containerfs.inodesFree', value: value('3k') });

const FROM_NODEFS = [
  ofContainers(NODEFS, 'available'),
  ofContainers(NODEFS_SOFT, 'available'),
  ofContainers(NODEFS_INODES, 'inodesFree'),
];
const FROM_IMAGEFS = [
  ofContainers(IMAGEFS, 'available'),
  ofContainers(IMAGEFS_INODES, 'inodesFree'),
];

describe('withContainerfs', () => {
  it.each<[string, FilesystemFlags, readonly Threshold[]]>([
    ['one filesystem: those of nodefs', SINGLE, FROM_NODEFS],
    ['images and writable layers apart: those of imagefs', DEDICATED, FROM_IMAGEFS],
    ['images apart: those of nodefs', SPLIT, FROM_NODEFS],
    ['what contradicts itself: none', CONTRADICTORY, []],
  ])('%s', (_, flags, derived) => {
    const later = [...USER, ...derived];
    expect(withContainerfs(USER, flags, RULE_SETS.evictd)).toStrictEqual({
      first: later,
      later,
      overridden: [],
    });
    // To the kubelet they take part from the second round on.
    expect(withContainerfs(USER, flags, RULE_SETS.kubelet)).toStrictEqual({
      first: USER,
      later,
      overridden: [],
    });
  });

  it('replaces the user’s own, in the first round too', () => {
    const thresholds = [MEMORY, OWN, NODEFS, NODEFS_SOFT, NODEFS_INODES];
    const others = [MEMORY, NODEFS, NODEFS_SOFT, NODEFS_INODES];
    const later = [...others, ...FROM_NODEFS];
    expect(withContainerfs(thresholds, SINGLE, RULE_SETS.evictd)).toStrictEqual({
      first: later,
      later,
      overridden: [OWN],
    });
    expect(withContainerfs(thresholds, SINGLE, RULE_SETS.kubelet)).toStrictEqual({
      // What is added, soft or for inodes, is still to come.
      first: [...others, ofContainers(NODEFS, 'available')],
      later,
      overridden: [OWN],
    });
  });

  it('takes a soft one that acts at once for a hard one', () => {
    const atOnce = softThreshold({
      signal: 'containerfs.available',
      value: value('3Gi'),
      gracePeriodMs: 0,
    });
    expect(withContainerfs([atOnce, NODEFS, NODEFS_SOFT], SINGLE, RULE_SETS.kubelet).first).toEqual(
      [NODEFS, NODEFS_SOFT, ofContainers(NODEFS, 'available')],
    );
  });

  it('drops the user’s own where there is nothing to follow', () => {
    for (const rules of Object.values(RULE_SETS)) {
      expect(withContainerfs([MEMORY, OWN, OWN_INODES], DEDICATED, rules)).toStrictEqual({
        first: [MEMORY],
        later: [MEMORY],
        overridden: [OWN, OWN_INODES],
      });
    }
  });

  it('leaves the user’s own alone where the layout contradicts itself', () => {
    const thresholds = [MEMORY, OWN, NODEFS];
    expect(withContainerfs(thresholds, CONTRADICTORY, RULE_SETS.kubelet)).toStrictEqual({
      first: thresholds,
      later: thresholds,
      overridden: [],
    });
  });

  it('of no thresholds derives none', () => {
    for (const rules of Object.values(RULE_SETS)) {
      expect(withContainerfs([], SINGLE, rules)).toStrictEqual({
        first: [],
        later: [],
        overridden: [],
      });
    }
  });
});

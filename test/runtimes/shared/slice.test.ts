import { describe, expect, it } from 'vitest';
import { cgroupPathOf } from '../../../src/runtimes/shared/slice.ts';

describe('cgroupPathOf', () => {
  it.each<[string, string | undefined]>([
    // The cgroupfs driver has paths.
    ['/kubepods/burstable/pod1', 'kubepods/burstable/pod1'],
    ['kubepods/pod1/', 'kubepods/pod1'],
    ['/', undefined],
    ['', undefined],
    ['/kubepods//pod1', undefined],
    ['/kubepods/../pod1', undefined],
    ['/kubepods/./pod1', undefined],
    // The systemd driver has slices.
    ['kubepods.slice', 'kubepods.slice'],
    [
      'kubepods-burstable-pod1_2.slice',
      'kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice',
    ],
    ['kubepods--pod1.slice', undefined],
    ['-.slice', undefined],
    // Below a slice it is a path again.
    ['/kubepods.slice/pod1', 'kubepods.slice/pod1'],
  ])('%j is %j', (parent, expected) => {
    expect(cgroupPathOf(parent)).toBe(expected);
  });
});

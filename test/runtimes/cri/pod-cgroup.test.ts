import { describe, expect, it } from 'vitest';
import { bearsUid, cgroupIn } from '../../../src/runtimes/cri/pod-cgroup.ts';

const UID = '1f4e-0a';

const containerd = (parent: unknown) => ({ config: { linux: { cgroup_parent: parent } } });
const crio = (path: unknown) => ({ runtimeSpec: { linux: { cgroupsPath: path } } });

describe('cgroupIn', () => {
  it.each<[unknown, string | undefined]>([
    [containerd('/kubepods/burstable/pod1'), 'kubepods/burstable/pod1'],
    [
      containerd('kubepods-burstable-pod1.slice'),
      'kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice',
    ],
    [{ ...containerd(''), ...crio('/k8s.io/1234') }, 'k8s.io'],
    [crio('/kubepods/besteffort/pod1/crio-1234'), 'kubepods/besteffort/pod1'],
    [crio('kubepods-pod1.slice:crio:1234'), 'kubepods.slice/kubepods-pod1.slice'],
    [crio('/1234'), undefined],
    [containerd('/../x'), undefined],
    [containerd('/a\0b'), undefined],
    [containerd('/'), undefined],
    [containerd({}), undefined],
    [{ config: null }, undefined],
    [null, undefined],
    ['text', undefined],
  ])('of %j is %j', (said, expected) => {
    expect(cgroupIn({ info: { info: JSON.stringify(said) } })).toBe(expected);
  });

  it('is none where nothing, or no JSON, is said', () => {
    expect(cgroupIn({ info: {} })).toBeUndefined();
    expect(cgroupIn({ info: { info: '{' } })).toBeUndefined();
  });
});

describe('bearsUid', () => {
  it.each([
    [`kubepods/burstable/pod${UID}`, true],
    [`pod${UID}`, true],
    ['kubepods.slice/kubepods-pod1f4e_0a.slice', true],
    ['pod1f4e_0a.slice', true],
    ['kubepods/burstable', false],
    [`kubepods/pod${UID}/x`, false],
    [`kubepods/xpod${UID}`, false],
    ['mypods', false],
  ])('%s: %j', (cgroup, expected) => {
    expect(bearsUid(cgroup, UID)).toBe(expected);
  });

  it('is said of nothing without a uid', () => {
    expect(bearsUid('kubepods/pod', '')).toBe(false);
  });
});

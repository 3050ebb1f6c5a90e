import { describe, expect, it } from 'vitest';
import {
  isBestEffort,
  isKubelets,
  isNodeCritical,
  requestBytes,
} from '../../../src/runtimes/cri/requests.ts';

const GI = 2 ** 30;
/** 16 Gi of memory. */
const CAPACITY_BYTES = 16 * GI;

describe('requestBytes', () => {
  it.each<[string, number, number, number | undefined]>([
    ['BestEffort', 1000, 0, 0],
    ['Guaranteed: its limit', -997, 2 * GI, 2 * GI],
    ['kept, with no limit: nothing tells it', -997, 0, undefined],
    // 4Gi of 16Gi: the kubelet sets 1000 - 250.
    ['Burstable with a quarter', 750, 0, 4 * GI],
    ['Burstable with next to nothing', 999, 8 * GI, 0],
    ['Burstable with 2 thousandths', 998, 0, Math.floor((2 * CAPACITY_BYTES) / 1000)],
    ['Burstable with all there is', 2, 0, Math.floor((998 * CAPACITY_BYTES) / 1000)],
    ['what no kubelet sets', 0, GI, undefined],
    ['what no kubelet sets either', -500, GI, undefined],
    ['a sandbox', -998, 0, undefined],
  ])('%s', (_, oomScoreAdj, limitBytes, expected) => {
    expect(requestBytes({ oomScoreAdj, limitBytes }, CAPACITY_BYTES)).toBe(expected);
  });
});

describe('isNodeCritical', () => {
  const kept = [{ oomScoreAdj: -997, limitBytes: 0 }];
  it.each<[string, boolean]>([
    ['kubepods/burstable/pod1', true],
    ['kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1.slice', true],
    ['kubelet/kubepods/besteffort/pod1', true],
    ['a.slice/a-kubepods.slice/a-kubepods-burstable.slice/a-kubepods-burstable-pod1.slice', true],
    // A Guaranteed pod is kept for that.
    ['kubepods/pod1', false],
    ['burstable/pod1', false],
    ['docker/1', false],
  ])('%s: %s', (cgroup, expected) => {
    expect(isNodeCritical(cgroup, kept)).toBe(expected);
  });

  it('takes one container that is kept', () => {
    const other = { oomScoreAdj: 900, limitBytes: 0 };
    expect(isNodeCritical('kubepods/burstable/pod1', [other])).toBe(false);
    expect(isNodeCritical('kubepods/burstable/pod1', [other, ...kept])).toBe(true);
  });
});

describe('isBestEffort', () => {
  it.each<[string, boolean]>([
    ['kubepods/besteffort/pod1', true],
    ['kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1.slice', true],
    ['node/kubepods/besteffort/pod1', true],
    ['kubepods/burstable/pod1', false],
    ['kubepods/pod1/besteffort', false],
    ['besteffort/pod1', false],
  ])('%s: %s', (cgroup, expected) => {
    expect(isBestEffort(cgroup)).toBe(expected);
  });
});

describe('isKubelets', () => {
  it.each<[string, boolean]>([
    ['kubepods/pod1', true],
    ['kubepods.slice/kubepods-pod1.slice', true],
    ['a.slice/a-kubepods.slice/a-kubepods-pod1.slice', true],
    ['docker/1', false],
    ['kubepodsy/pod1', false],
  ])('%s: %s', (cgroup, expected) => {
    expect(isKubelets(cgroup)).toBe(expected);
  });
});

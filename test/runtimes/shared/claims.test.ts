import { describe, expect, it } from 'vitest';
import type { RuntimePod } from '../../../src/ports/pod-directory.ts';
import { claimsOf } from '../../../src/runtimes/shared/claims.ts';
import { runtimePod } from '../../support/runtime-pods.ts';

/** A node at `node`, in which `system` is the host's. */
const sorted = (...pods: readonly RuntimePod[]) => {
  const { pods: claimed, doubts } = claimsOf(pods, {
    pathOf: (cgroup) => (cgroup.startsWith('node/') ? cgroup.slice('node/'.length) : undefined),
    isHosts: (path) => path === 'system',
  });
  return {
    pods: claimed.map(({ pod, paths }) => [pod.id, ...paths]),
    doubts: doubts.map(({ podId, reason, isElsewhere }) => [podId, reason, isElsewhere]),
  };
};

const pod = (id: string, ...cgroups: readonly string[]): RuntimePod =>
  runtimePod(id, { cgroups: cgroups.map((cgroup) => `node/${cgroup}`) });

const HOLDS = 'its cgroup holds other pods';
const SHARED = 'its cgroup is another pod’s too';

describe('claimsOf', () => {
  it('takes what nobody else claims', () => {
    expect(sorted(pod('a', 'x'), pod('b', 'y/z'), pod('c', 'y/zz'))).toEqual({
      pods: [
        ['a', 'x'],
        ['b', 'y/z'],
        ['c', 'y/zz'],
      ],
      doubts: [],
    });
  });

  it('has each cgroup of a pod once, and none that lies in another', () => {
    expect(sorted(pod('a', 'x/1', 'x', 'x', 'y')).pods).toEqual([['a', 'x', 'y']]);
  });

  it.each<[string, readonly RuntimePod[], readonly unknown[]]>([
    ['has no cgroup', [pod('a')], ['a', 'it has no cgroup', false]],
    ['leads upwards', [pod('a', '../b')], ['a', 'its cgroup leads nowhere', false]],
    ['has an empty part', [pod('a', 'b//c')], ['a', 'its cgroup leads nowhere', false]],
    ['holds NUL', [pod('a', 'b\0')], ['a', 'its cgroup leads nowhere', false]],
    ['is the host’s', [pod('a', 'b', 'system')], ['a', 'its cgroup is the host’s own', false]],
    ['is in doubt', [runtimePod('a', { cgroups: ['node/b'], doubt: 'why' })], ['a', 'why', false]],
    [
      'lies elsewhere',
      [runtimePod('a', { cgroups: ['node/b', 'c'] })],
      ['a', 'its cgroup is not in the node', true],
    ],
    [
      'is the node itself',
      [runtimePod('a', { cgroups: ['node'] })],
      ['a', 'its cgroup is not in the node', true],
    ],
  ])('leaves out what %s', (_, pods, doubt) => {
    expect(sorted(...pods, pod('other', 'z'))).toEqual({ pods: [['other', 'z']], doubts: [doubt] });
  });

  it('leaves out both that claim one cgroup', () => {
    expect(sorted(pod('a', 'x', 'y'), pod('b', 'y'), pod('c', 'z'))).toEqual({
      pods: [['c', 'z']],
      doubts: [
        ['a', SHARED, false],
        ['b', SHARED, false],
      ],
    });
  });

  it('leaves out both of one id', () => {
    const said = 'another pod has its id';
    expect(sorted(pod('a', 'x'), pod('a', 'y'), pod('b', 'z'))).toEqual({
      pods: [['b', 'z']],
      doubts: [
        ['a', said, false],
        ['a', said, false],
      ],
    });
  });

  it('leaves out what holds another pod, also one that is none itself', () => {
    expect(sorted(pod('a', 'x'), pod('b', 'x/y/z'))).toEqual({
      pods: [['b', 'x/y/z']],
      doubts: [['a', HOLDS, false]],
    });
    expect(sorted(pod('a', 'x'), pod('b', 'x/y'), pod('c', 'x/y')).pods).toEqual([]);
  });

  it('tells of what is no pod where it lies', () => {
    const { doubts } = claimsOf([pod('a', 'x'), pod('b', 'x')], {
      pathOf: (cgroup) => cgroup,
      isHosts: () => false,
    });
    expect(doubts.map(({ paths }) => paths)).toEqual([['node/x'], ['node/x']]);
  });
});

import { describe, expect, it } from 'vitest';
import type { PodStats, Summary } from '../../src/core/kubernetes.ts';
import { withGivenBack } from '../../src/simulation/given-back.ts';

const stats = (uid: string): PodStats => ({
  podRef: { name: uid, namespace: 'default', uid },
  memory: { workingSetBytes: 30 },
  process_stats: { process_count: 4 },
  'ephemeral-storage': { usedBytes: 50, inodesUsed: 6 },
});

const SUMMARY: Summary = {
  node: {
    memory: { availableBytes: 20, workingSetBytes: 80 },
    systemContainers: [{ name: 'pods', memory: { availableBytes: 10, workingSetBytes: 60 } }],
    fs: { availableBytes: 100, capacityBytes: 120, inodesFree: 10, inodes: 100 },
    rlimit: { maxpid: 100, curproc: 40 },
  },
  pods: [stats('a'), stats('b')],
};

describe('withGivenBack', () => {
  it('has what the pods used available, within the capacity, and no stats of them', () => {
    expect(withGivenBack(SUMMARY, new Set(['a']))).toEqual({
      node: {
        memory: { availableBytes: 50, workingSetBytes: 50 },
        systemContainers: [{ name: 'pods', memory: { availableBytes: 40, workingSetBytes: 30 } }],
        fs: { availableBytes: 120, capacityBytes: 120, inodesFree: 16, inodes: 100 },
        rlimit: { maxpid: 100, curproc: 36 },
      },
      pods: [stats('b')],
    });
  });

  it('gives back no more than is used', () => {
    const { node } = withGivenBack(
      { ...SUMMARY, node: { memory: { availableBytes: 90, workingSetBytes: 10 } } },
      new Set(['a', 'b']),
    );
    expect(node?.memory).toEqual({ availableBytes: 100, workingSetBytes: 0 });
  });

  it.each<[string, Summary]>([
    ['nobody of them is there', { ...SUMMARY, pods: [stats('b')] }],
    ['the node is not known', { pods: [stats('a')] }],
  ])('changes nothing where %s', (_, summary) => {
    expect(withGivenBack(summary, new Set(['a']))).toBe(summary);
  });

  it('leaves out what the summary leaves out', () => {
    const { node, pods } = withGivenBack({ node: {}, pods: [stats('a')] }, new Set(['a']));
    expect(JSON.parse(JSON.stringify({ node, pods }))).toEqual({ node: {}, pods: [] });
  });
});

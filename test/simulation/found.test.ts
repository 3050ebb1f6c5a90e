import { describe, expect, it } from 'vitest';
import { COMPATIBILITIES } from '../../src/config/settings.ts';
import type { KubernetesPod } from '../../src/core/kubernetes.ts';
import { GI } from '../support/builders.ts';
import { podCase, podStats, run, scenarioOf, victims } from '../support/scenarios.ts';

const LIMITED = { storageLimit: '1Gi' };
const LARGE = { logsBytes: 2 * GI };

describe('what generated nodes found', () => {
  it.each(COMPATIBILITIES)('%s: hard acts before soft, whatever the filesystem', (rules) => {
    const fs = { availableBytes: 5 * GI, capacityBytes: 100 * GI };
    const result = run(
      scenarioOf(
        'hard-first',
        {
          evictionHard: { 'imagefs.available': '10Gi' },
          evictionSoft: { 'nodefs.available': '10Gi' },
          evictionSoftGracePeriod: { 'nodefs.available': '10s' },
          evictionMaxPodGracePeriod: 60,
        },
        [podCase('a', { static: true })],
        [
          { at: 0, nodefs: fs, imagefs: { ...fs, availableBytes: 50 * GI } },
          { at: 10, nodefs: fs, imagefs: fs },
        ],
        { dedicatedImageFs: true },
      ),
      rules,
    );
    expect(result.ticks.map(({ reclaim }) => reclaim)).toEqual([[], ['containers', 'images']]);
  });

  it('a pod above its own limit, seen again while it ends, goes once, and others after it', () => {
    const use = { a: LARGE, b: LARGE };
    const result = run(
      scenarioOf(
        'once',
        {},
        [podCase('a', LIMITED), podCase('b', LIMITED)],
        [{ at: 0, use }, { at: 10, use }, { at: 40, use: { b: LARGE } }, { at: 50 }],
        { evictd: { kills: { 'default/a': { takes: '30s' } } } },
      ),
      'evictd',
    );
    expect(victims(result)).toEqual([['a'], [], ['b'], []]);
  });

  it('a pod above its limit that cannot be killed is passed over for a minute', () => {
    const use = { a: LARGE };
    const rounds = [0, 10, 59, 60].map((at) => ({ at, use, killFails: ['default/a'] }));
    const scenario = scenarioOf('passed-over', {}, [podCase('a', LIMITED)], rounds);
    expect(victims(run(scenario, 'evictd'))).toEqual([['a!'], [], [], ['a!']]);
    expect(victims(run(scenario, 'kubelet'))).toEqual([['a!'], ['a!'], ['a!'], ['a!']]);
  });

  it('PIDs of what has ended are awaited by evictd, not by the kubelet', () => {
    const processes = ({ metadata }: KubernetesPod) => ({
      ...podStats(metadata.name, {}),
      process_stats: { process_count: 50 },
    });
    const pods = ['a', 'b', 'c'].map((name) => podCase(name));
    const summary = {
      node: { rlimit: { maxpid: 1000, curproc: 900 } },
      pods: pods.map(processes),
    };
    const base = scenarioOf('pids', { evictionHard: { 'pid.available': '200' } }, pods, []);
    const scenario = { ...base, ticks: ['0s', '1s', '2s'].map((at) => ({ at, summary })) };
    expect(victims(run(scenario, 'kubelet'))).toEqual([['a'], ['b'], ['c']]);
    expect(victims(run(scenario, 'evictd'))).toEqual([['a'], [], ['b']]);
  });
});

import { describe, expect, it } from 'vitest';
import type { PodObservation } from '../../src/core/pod.ts';
import { RULE_SETS } from '../../src/core/rules.ts';
import type { StepResult } from '../../src/core/step.ts';
import {
  MI,
  observation,
  outcome,
  policy,
  sample,
  softThreshold,
  threshold,
  value,
} from '../support/builders.ts';
import { BATCH, LEAK, lastOf, said, story, withPods } from './stories.ts';

const BOTH_RULES = ['kubelet', 'evictd'] as const;

describe('events', () => {
  const message = (resource: string) => `Attempting to reclaim ${resource}`;
  const eventsOf = (results: readonly StepResult[]) =>
    results.map(({ events }) =>
      events
        .filter(({ reason }) => reason === 'EvictionThresholdMet')
        .map((event) => event.message)
        .join(),
    );

  it.each([
    ['kubelet', ['memory', 'memory', '', 'memory', 'memory']],
    // Less than a second of calm ends no burst.
    ['evictd', ['memory', '', '', '', 'memory']],
  ] as const)('by the rules of %s come each round, or once in a burst', (rules, expected) => {
    const pods: readonly PodObservation[] = [];
    const results = story(
      policy({ rules: RULE_SETS[rules] }),
      sample(0, 50 * MI, { pods }),
      sample(100, 50 * MI, { pods }),
      sample(200, 500 * MI, { pods }),
      sample(1000, 50 * MI, { pods }),
      // It is calm for a second.
      ...[sample(1001, 500 * MI, { pods }), sample(2000, 50 * MI, { pods })],
    );
    expect(said(results)).toStrictEqual([
      'none noCandidate',
      'none noCandidate',
      'none calm',
      'none noCandidate',
      'none calm',
      'none noCandidate',
    ]);
    expect(eventsOf(results.toSpliced(4, 1))).toStrictEqual(
      expected.map((resource) => (resource === '' ? '' : message(resource))),
    );
  });

  it('of evictions too, and of pressure for which nobody goes', () => {
    expect(eventsOf(story(policy(), sample(0, 50 * MI, withPods)))).toStrictEqual([
      message('memory'),
    ]);
    const inodes = threshold({ signal: 'nodefs.inodesFree', value: value('100') });
    const few = observation(5, { signal: 'nodefs.inodesFree', capacity: 1000 });
    const results = story(policy({ thresholds: [inodes] }), { nowMs: 0, observations: [few] });
    expect([said(results), eventsOf(results)]).toStrictEqual([
      ['none noReclaim'],
      [message('inodes')],
    ]);
  });

  it('one for each resource of a burst', () => {
    const pids = threshold({ signal: 'pid.available', value: value('100') });
    const by = policy({ thresholds: [threshold(), pids] });
    const few = observation(5, { signal: 'pid.available', capacity: 500 });
    const results = story(
      by,
      sample(0, 50 * MI, { pods: [] }),
      { nowMs: 1, observations: [observation(500 * MI), few], pods: [] },
      { nowMs: 2, observations: [observation(50 * MI), few], pods: [] },
    );
    expect(eventsOf(results)).toStrictEqual([message('memory'), message('pids'), '']);
  });

  it.each(BOTH_RULES)('by the rules of %s none while pods are asked for or one ends', (rules) => {
    const by = policy({
      rules: RULE_SETS[rules],
      thresholds: [threshold(), softThreshold()],
      maxPodGracePeriodSeconds: 60,
    });
    const results = story(
      by,
      sample(0, 150 * MI),
      sample(30_000, 150 * MI),
      sample(30_000, 150 * MI, withPods),
      sample(30_001, 150 * MI),
      sample(30_002, 50 * MI),
    );
    expect(said(results)).toStrictEqual([
      'none calm',
      'observePods',
      'evict leak',
      'none evicting',
      'escalate leak',
    ]);
    expect(eventsOf(results)).toStrictEqual(['', '', message('memory'), '', '']);
  });
});

describe('events that only evictd has', () => {
  it.each([
    ['evictd', ['EvictionThresholdMet', 'EvictionImpossible']],
    ['kubelet', ['EvictionThresholdMet']],
  ] as const)('by the rules of %s: %s', (rules, expected) => {
    const { events } = lastOf(
      policy({ rules: RULE_SETS[rules] }),
      sample(0, 50 * MI, { pods: [{ ...LEAK, protectedBecause: 'configured' }] }),
    );
    expect(events.map(({ reason }) => reason)).toStrictEqual(expected);
  });

  it('C26: say how many there are whose end would free nothing', () => {
    const signal = 'imagefs.available';
    const by = policy({
      thresholds: [threshold({ signal, value: value('1Gi') })],
      layout: 'splitImagefs',
      ranksDisk: true,
      reclaims: ['images'],
    });
    const none = { ...LEAK, exclusiveImageBytes: 0 };
    const low = {
      observations: [observation(5, { signal, capacity: 100 * MI })],
      pods: [none, { ...BATCH, exclusiveImageBytes: 0, protectedBecause: 'configured' }],
    };
    const { events } = lastOf(by, { nowMs: 0, ...low }, { nowMs: 1, ...low, reclaimed: true });
    expect(events.map(({ message }) => message)).toStrictEqual([
      'The node was low on resource: ephemeral-storage, and no pod may be evicted: ' +
        '2 pods, 1 protected, 0 passed over, 1 whose end would free nothing',
    ]);
  });

  it('say once in a burst that nobody may be evicted, and how many are there', () => {
    const guarded = { ...LEAK, protectedBecause: 'configured' };
    const failed = outcome('batch', { kind: 'failed', error: 'EPERM' });
    const results = story(
      policy(),
      sample(0, 50 * MI, { pods: [guarded, BATCH] }),
      sample(1, 50 * MI, { pods: [guarded, BATCH], outcome: failed }),
      sample(2, 50 * MI, { pods: [guarded] }),
      sample(3, 500 * MI),
      sample(2000, 50 * MI, { pods: [guarded] }),
    );
    const said = results.map(({ events }) =>
      events.filter(({ reason }) => reason === 'EvictionImpossible').map(({ message }) => message),
    );
    const low = 'The node was low on resource: memory, and no pod may be evicted';
    expect(said).toStrictEqual([
      [],
      [`${low}: 2 pods, 1 protected, 1 passed over`],
      [],
      [],
      [`${low}: 1 pods, 1 protected, 0 passed over`],
    ]);
  });
});

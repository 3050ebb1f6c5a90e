import { describe, expect, it } from 'vitest';
import type { KubernetesPod, PodStats, Summary } from '../../src/core/kubernetes.ts';
import { podSpec } from '../../src/core/pod-spec.ts';
import { RULE_SETS } from '../../src/core/rules.ts';
import { type SampleReading, SummarySample } from '../../src/core/summary-sample.ts';
import { GI, MI } from '../support/builders.ts';
import {
  container,
  containerStats,
  kubernetesPod,
  memorySummary,
  podStats,
} from '../support/kubernetes.ts';

const STORAGE = 'ephemeral-storage';

const limited = (name: string, spec: KubernetesPod['spec'] = {}) =>
  podSpec(
    kubernetesPod(name, { containers: [container('main', {}, { [STORAGE]: '1Gi' })], ...spec }),
    RULE_SETS.evictd,
  );
const free = (name: string) => podSpec(kubernetesPod(name), RULE_SETS.evictd);
const uses = (name: string, usedBytes: number): PodStats =>
  podStats(name, { [STORAGE]: { usedBytes }, memory: { workingSetBytes: 5 } });

const sampleOf = (summary: Summary, rest: Partial<SampleReading> = {}) =>
  new SummarySample({
    summary,
    nowMs: 7,
    rules: RULE_SETS.evictd,
    memorySource: 'workingset',
    memAvailableBytes: undefined,
    specs: [],
    layout: 'single',
    checksLimits: true,
    ...rest,
  });

describe('SummarySample', () => {
  it('has what the summary says of the node', () => {
    const sample = sampleOf(memorySummary(100 * MI));
    expect(sample).toMatchObject({ nowMs: 7, isComplete: true, refused: [], overLimits: [] });
    expect(sample.observations).toStrictEqual([
      {
        signal: 'memory.available',
        available: 100 * MI,
        capacity: GI,
        atMs: 7,
        statsTimeNs: undefined,
      },
    ]);
  });

  it('has nobody over a limit where the summary has no pods', () => {
    for (const pods of [undefined, null]) {
      expect(sampleOf({ pods }, { specs: [limited('a')] }).overLimits).toStrictEqual([]);
    }
  });

  it('says which figures could not be true', () => {
    const sample = sampleOf(memorySummary(-MI));
    expect([sample.observations, sample.refused]).toStrictEqual([[], ['memory.available']]);
  });

  it('has the pods that run, in their order, made when they are asked for and once', () => {
    let asked = 0;
    const summary: Summary = {
      get pods() {
        asked += 1;
        return [uses('a', 1)];
      },
    };
    const sample = sampleOf(summary, { specs: [free('b'), free('a')] });
    expect(asked).toBe(0);
    const { pods } = sample;
    expect(
      pods.map(({ name, workingSetBytes, atMs }) => [name, workingSetBytes, atMs]),
    ).toStrictEqual([
      ['default/b', undefined, 7],
      ['default/a', 5, 7],
    ]);
    expect(sample.pods).toBe(pods);
    expect(asked).toBe(1);
  });

  it('names the pods over a limit of their own, in their order', () => {
    const specs = [limited('c'), free('b'), limited('calm'), limited('dark'), limited('a')];
    const pods = [
      ...[uses('a', GI + 1), uses('b', 9 * GI), uses('c', 2 * GI), uses('calm', GI)],
      uses('stranger', 9 * GI),
    ];
    const { overLimits } = sampleOf({ pods }, { specs });
    const message = 'Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ';
    expect(overLimits.map((one) => [one.pod.name, one.message])).toStrictEqual([
      ['default/c', message],
      ['default/a', message],
    ]);
  });

  it('leaves it to the core whom it spares', () => {
    const specs = [limited('critical', { priority: 2_000_000_000 })];
    const { overLimits, pods } = sampleOf({ pods: [uses('critical', 2 * GI)] }, { specs });
    expect(overLimits[0]?.pod).toBe(pods[0]);
    expect(pods[0]?.protectedBecause).toBe('critical priority');
  });

  it('names none where limits are not enforced', () => {
    const specs = [limited('a')];
    const { overLimits } = sampleOf({ pods: [uses('a', 2 * GI)] }, { specs, checksLimits: false });
    expect(overLimits).toStrictEqual([]);
  });

  it.each([
    ['single', 'kubelet', 1],
    ['dedicatedImagefs', 'kubelet', 0],
    ['dedicatedImagefs', 'evictd', 1],
  ] as const)('counts by layout and rules: %s, %s', (layout, rules, count) => {
    const pods = [podStats('a', { containers: [containerStats('main', { rootfs: 2 * GI })] })];
    const { overLimits } = sampleOf(
      { pods },
      { specs: [limited('a')], layout, rules: RULE_SETS[rules] },
    );
    expect(overLimits).toHaveLength(count);
  });
});

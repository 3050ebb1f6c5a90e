import type { KubernetesPod, Summary } from '../../src/core/kubernetes.ts';
import type { Scenario, Tick } from '../../src/simulation/scenario.ts';
import { GI, MI } from './builders.ts';

/** A scenario of one BestEffort pod, `default/web`, that is calm in its one round. */
export function scenario(fields: Partial<Scenario> = {}): Scenario {
  return {
    name: 'calm',
    description: 'Nothing is short.',
    config: { evictionHard: { 'memory.available': '100Mi' } },
    node: { dedicatedImageFs: false, splitImageFs: false },
    pods: [scenarioPod('web')],
    ticks: [tick('0s', { availableBytes: 4 * GI })],
    ...fields,
  };
}

export function scenarioPod(name: string, spec: KubernetesPod['spec'] = {}): KubernetesPod {
  return { metadata: { name, namespace: 'default', uid: `uid-${name}` }, spec };
}

/** A round in which a node of 16Gi has so much left, and pods by name use so much. */
export function tick(
  at: string,
  memory: { readonly availableBytes: number; readonly uses?: Readonly<Record<string, number>> },
  fields: Partial<Tick> = {},
): Tick {
  return { at, summary: summary(memory), ...fields };
}

export function summary({
  availableBytes,
  uses = { web: 200 * MI },
}: {
  readonly availableBytes: number;
  readonly uses?: Readonly<Record<string, number>>;
}): Summary {
  return {
    node: { memory: { availableBytes, workingSetBytes: 16 * GI - availableBytes } },
    pods: Object.entries(uses).map(([name, workingSetBytes]) => ({
      podRef: { name, namespace: 'default', uid: `uid-${name}` },
      memory: { workingSetBytes },
    })),
  };
}

/** Memory runs short of a soft threshold, then of a hard one; three pods, the last one critical. */
export function shortage(): Scenario {
  const uses = { web: 900 * MI, batch: 300 * MI, node: 2 * GI };
  return scenario({
    name: 'shortage',
    description: 'Memory runs short of a soft threshold, then of a hard one.',
    config: {
      compatibility: 'kubelet',
      evictionHard: { 'memory.available': '100Mi' },
      evictionSoft: { 'memory.available': '500Mi' },
      evictionSoftGracePeriod: { 'memory.available': '1m' },
      evictionMaxPodGracePeriod: 30,
      evictionPressureTransitionPeriod: '1m',
    },
    pods: [
      scenarioPod('web', {
        priority: 1000,
        containers: [{ name: 'main', resources: { requests: { memory: '1Gi' } } }],
      }),
      scenarioPod('batch', { terminationGracePeriodSeconds: 10 }),
      scenarioPod('node', { priority: 2_000_001_000 }),
    ],
    ticks: [
      tick('0s', { availableBytes: 2 * GI, uses }),
      tick('10s', { availableBytes: 400 * MI, uses }),
      tick('1m10s', { availableBytes: 300 * MI, uses }),
      tick('1m20s', { availableBytes: 60 * MI, uses: { web: 900 * MI, node: 2 * GI } }),
      tick('1m30s', { availableBytes: 3 * GI, uses: { node: 2 * GI } }),
      { at: '3m0s', summary: null },
      tick('3m10s', { availableBytes: 3 * GI, uses: { node: 2 * GI } }),
    ],
  });
}

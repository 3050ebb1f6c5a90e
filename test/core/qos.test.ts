import { describe, expect, it } from 'vitest';
import type { KubernetesContainer, KubernetesPod } from '../../src/core/kubernetes.ts';
import type { QosClass } from '../../src/core/pod.ts';
import { qosClassOf } from '../../src/core/qos.ts';
import { container, kubernetesPod } from '../support/kubernetes.ts';

const BOTH = { cpu: '500m', memory: '100Mi' };

describe('qosClassOf', () => {
  it.each<[string, readonly KubernetesContainer[], QosClass]>([
    ['nothing asked for', [container('a')], 'BestEffort'],
    ['no container at all', [], 'BestEffort'],
    ['zero counts as nothing', [container('a', { cpu: '0', memory: 0 })], 'BestEffort'],
    ['a negative one too', [container('a', { cpu: '-1' })], 'BestEffort'],
    [
      'other resources do not count',
      [container('a', { 'ephemeral-storage': '1Gi' })],
      'BestEffort',
    ],
    ['some CPU', [container('a', { cpu: '1m' })], 'Burstable'],
    ['a limit alone', [container('a', {}, { memory: '1Gi' })], 'Burstable'],
    ['both limits, no requests', [container('a', {}, BOTH)], 'Burstable'],
    ['both requests, no limits', [container('a', BOTH)], 'Burstable'],
    ['requests and limits are equal', [container('a', BOTH, BOTH)], 'Guaranteed'],
    [
      'equal in another notation',
      [container('a', { cpu: 0.5, memory: '104857600' }, BOTH)],
      'Guaranteed',
    ],
    [
      'a request below the limit',
      [container('a', { cpu: '499m', memory: '100Mi' }, BOTH)],
      'Burstable',
    ],
    ['a limit of CPU is missing', [container('a', BOTH, { memory: '100Mi' })], 'Burstable'],
    ['a request of CPU is missing', [container('a', { memory: '100Mi' }, BOTH)], 'Burstable'],
    ['each of two is', [container('a', BOTH, BOTH), container('b', BOTH, BOTH)], 'Guaranteed'],
    ['one of two has none', [container('a', BOTH, BOTH), container('b')], 'Burstable'],
    [
      'one of two has a limit of memory only, though the sums are equal',
      [
        container('a', { cpu: '500m', memory: '60Mi' }, BOTH),
        container('b', { memory: '140Mi' }, { memory: '100Mi' }),
      ],
      'Burstable',
    ],
    ['no resources are named', [{ name: 'a', resources: null }], 'BestEffort'],
    [
      'lists that are null',
      [{ name: 'a', resources: { requests: null, limits: null } }],
      'BestEffort',
    ],
  ])('%s', (_, containers, expected) => {
    expect(qosClassOf(kubernetesPod('web', { containers }))).toBe(expected);
  });

  it('looks at init containers as well', () => {
    const containers = [container('a', BOTH, BOTH)];
    const of = (initContainers: readonly KubernetesContainer[]) =>
      qosClassOf(kubernetesPod('web', { containers, initContainers }));
    expect(of([container('init', BOTH, BOTH)])).toBe('Guaranteed');
    expect(of([container('init')])).toBe('Burstable');
    expect(
      qosClassOf(
        kubernetesPod('web', { containers: null, initContainers: [container('i', BOTH)] }),
      ),
    ).toBe('Burstable');
  });

  it.each<[string, KubernetesPod['status'], QosClass]>([
    ['the status names it', { qosClass: 'Guaranteed' }, 'Guaranteed'],
    ['the status names none', {}, 'Burstable'],
    ['it names null', { qosClass: null }, 'Burstable'],
    ['it names what is no class', { qosClass: 'Golden' }, 'Burstable'],
    ['there is none', null, 'Burstable'],
  ])('%s', (_, status, expected) => {
    const pod = kubernetesPod('web', { containers: [container('a', { cpu: 1 })] }, { status });
    expect(qosClassOf(pod)).toBe(expected);
  });

  it('refuses a quantity that is none', () => {
    const pod = kubernetesPod('web', { containers: [container('a', { memory: '5 Gi' })] });
    expect(() => qosClassOf(pod)).toThrow(expect.objectContaining({ code: 'EVICTD_QUANTITY' }));
  });
});

import { describe, expect, it } from 'vitest';
import { admitPod } from '../../src/core/admission.ts';
import type { KubernetesPod, Toleration } from '../../src/core/kubernetes.ts';
import type { NodeCondition } from '../../src/core/signal.ts';
import { container, kubernetesPod } from '../support/kubernetes.ts';

const MEMORY: readonly NodeCondition[] = ['MemoryPressure'];
const DISK: readonly NodeCondition[] = ['DiskPressure'];
const PIDS: readonly NodeCondition[] = ['PIDPressure'];
const TWO: readonly NodeCondition[] = ['DiskPressure', 'MemoryPressure'];
const CALM: readonly NodeCondition[] = [];

const besteffort = kubernetesPod('besteffort');
const burstable = kubernetesPod('burstable', { containers: [container('a', { cpu: '1m' })] });
const tolerant = kubernetesPod('tolerant', { tolerations: [{ operator: 'Exists' }] });
const critical = kubernetesPod('critical', { priority: 2_000_000_000 });
const important = kubernetesPod('important', { priority: 1_999_999_999 });
const fixed = kubernetesPod(
  'static',
  {},
  { annotations: { 'kubernetes.io/config.source': 'file' } },
);

describe('admitPod', () => {
  it.each<[string, KubernetesPod, readonly NodeCondition[], boolean]>([
    ['BestEffort on a calm node', besteffort, CALM, true],
    ['BestEffort under memory pressure', besteffort, MEMORY, false],
    ['BestEffort that tolerates it', tolerant, MEMORY, true],
    ['Burstable under memory pressure', burstable, MEMORY, true],
    ['Burstable under disk pressure', burstable, DISK, false],
    ['Burstable where PIDs are short', burstable, PIDS, false],
    ['Burstable under memory and disk pressure', burstable, TWO, false],
    ['one that tolerates memory pressure, and the disk is full too', tolerant, TWO, false],
    ['one that tolerates everything, the disk is full', tolerant, DISK, false],
    ['a critical one under memory pressure', critical, MEMORY, true],
    ['a critical one under all pressure', critical, TWO, true],
    ['a static one', fixed, DISK, true],
    ['one a step below critical', important, DISK, false],
    ['one a step below critical, BestEffort', important, MEMORY, false],
  ])('%s', (_, pod, conditions, admit) => {
    expect(admitPod(pod, conditions).admit).toBe(admit);
  });

  it('says why in the kubelet’s words', () => {
    expect(admitPod(besteffort, MEMORY)).toStrictEqual({
      admit: false,
      reason: 'Evicted',
      message: 'The node had condition: [MemoryPressure]. ',
    });
    expect(admitPod(burstable, TWO)).toStrictEqual({
      admit: false,
      reason: 'Evicted',
      message: 'The node had condition: [DiskPressure MemoryPressure]. ',
    });
    expect(admitPod(critical, TWO)).toStrictEqual({ admit: true, reason: '', message: '' });
  });

  const KEY = 'node.kubernetes.io/memory-pressure';

  it.each<[boolean, Toleration]>([
    [true, { key: KEY, operator: 'Exists', effect: 'NoSchedule' }],
    [true, { key: KEY, operator: 'Exists' }],
    [true, { key: KEY, operator: 'Exists', effect: '' }],
    [true, { key: KEY, operator: 'Exists', effect: null }],
    [true, { operator: 'Exists' }],
    [true, { key: '', operator: 'Exists' }],
    [true, { key: null, operator: 'Exists' }],
    // `Exists` has no value; one that is there does not count.
    [true, { key: KEY, operator: 'Exists', value: 'x' }],
    [true, { key: KEY, operator: 'Equal', value: '' }],
    [true, { key: KEY, operator: 'Equal' }],
    [true, { key: KEY }],
    [true, { key: KEY, operator: '' }],
    [true, { key: KEY, operator: null, value: null }],
    [false, { key: KEY, operator: 'Equal', value: 'true' }],
    [false, { key: KEY, value: 'true' }],
    [false, { key: KEY, operator: 'Exists', effect: 'NoExecute' }],
    [false, { key: KEY, operator: 'Exists', effect: 'PreferNoSchedule' }],
    [false, { key: 'node.kubernetes.io/disk-pressure', operator: 'Exists' }],
    [false, { key: `${KEY}x`, operator: 'Exists' }],
    [false, { key: KEY, operator: 'exists' }],
    [false, { key: KEY, operator: 'Gt' }],
  ])('%s for the toleration %j', (admit, toleration) => {
    const other = { key: 'example.com/gpu', operator: 'Exists' };
    const pod = kubernetesPod('tolerant', { tolerations: [other, toleration] });
    expect(admitPod(pod, MEMORY).admit).toBe(admit);
  });

  it('no tolerations at all', () => {
    expect(admitPod(kubernetesPod('web', { tolerations: null }), MEMORY).admit).toBe(false);
    expect(admitPod(kubernetesPod('web', { tolerations: [] }), MEMORY).admit).toBe(false);
  });

  it('takes conditions in any order, each as often as it is named', () => {
    const answer = admitPod(burstable, TWO);
    expect(admitPod(burstable, ['MemoryPressure', 'DiskPressure'])).toStrictEqual(answer);
    expect(admitPod(burstable, ['DiskPressure', ...TWO])).toStrictEqual(answer);
    expect(admitPod(burstable, ['MemoryPressure', 'MemoryPressure']).admit).toBe(true);
  });

  it('refuses to judge a pod whose request is no quantity, where that counts', () => {
    const odd = kubernetesPod('odd', { containers: [container('a', { cpu: '1x' })] });
    expect(() => admitPod(odd, MEMORY)).toThrow(
      expect.objectContaining({ code: 'EVICTD_QUANTITY' }),
    );
    expect(admitPod(odd, CALM).admit).toBe(true);
  });
});

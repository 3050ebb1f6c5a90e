import { describe, expect, it } from 'vitest';
import { compileRuntimeRules } from '../../src/config/runtime-rules.ts';
import type { PodRule, RuntimeRule } from '../../src/config/settings.ts';
import { podFieldsOf } from '../../src/daemon/pod-fields.ts';
import type { RuntimePod } from '../../src/ports/pod-directory.ts';
import { runtimeContainer, runtimePod } from '../support/runtime-pods.ts';

const GI_NANO = 2n ** 30n * 1_000_000_000n;
const GI = { nano: GI_NANO, format: 'binary' } as const;

const rule = (fields: Partial<RuntimeRule>): RuntimeRule => ({
  namespace: undefined,
  name: '*',
  labels: {},
  image: undefined,
  priority: undefined,
  memoryRequestNano: undefined,
  gracePeriodSeconds: undefined,
  protected: false,
  ...fields,
});

function fieldsOf(pod: RuntimePod, rules: readonly PodRule[] = []) {
  const claimed = { pod, paths: pod.cgroups };
  const { fields, faults } = podFieldsOf(claimed, (cgroup) => cgroup, compileRuntimeRules(rules));
  return { fields: Object.fromEntries(fields), faults: faults.map(({ reason }) => reason) };
}

/** Two containers in one pod. */
const project = (
  first: Readonly<Record<string, string>>,
  second: Readonly<Record<string, string>>,
): RuntimePod =>
  runtimePod('shop', {
    cgroups: ['docker/a', 'docker/b'],
    containers: [
      runtimeContainer('a', { labels: first }),
      runtimeContainer('b', { labels: second, memoryRequest: GI }),
    ],
  });

describe('podFieldsOf', () => {
  it('says nothing of a pod of which nothing is said', () => {
    expect(fieldsOf(runtimePod('a'))).toStrictEqual({
      fields: {
        'docker/a': {
          name: 'a',
          priority: undefined,
          gracePeriodSeconds: undefined,
          protected: false,
          memoryRequestNano: undefined,
        },
      },
      faults: [],
    });
  });

  it('reads the labels of the pod', () => {
    const labels = {
      'evictd.priority': '-5',
      'evictd.memory-request': '1Gi',
      'evictd.grace-period': '10',
    };
    expect(fieldsOf(runtimePod('a', { labels })).fields['docker/a']).toMatchObject({
      priority: -5,
      memoryRequestNano: GI_NANO,
      gracePeriodSeconds: 10,
    });
  });

  it('lets a rule win over labels, each field by itself', () => {
    const labels = { 'evictd.priority': '-5', 'evictd.grace-period': '10' };
    expect(
      fieldsOf(runtimePod('a', { labels }), [rule({ priority: 3, memoryRequestNano: 7n })]).fields[
        'docker/a'
      ],
    ).toMatchObject({ priority: 3, memoryRequestNano: 7n, gracePeriodSeconds: 10 });
  });

  it.each<[string, RuntimePod, readonly PodRule[]]>([
    ['a label', runtimePod('a', { labels: { 'evictd.protected': '' } }), []],
    ['the label of one container', project({}, { 'evictd.protected': 'true' }), []],
    [
      'an annotation',
      runtimePod('a', { annotations: { 'kubernetes.io/config.source': 'file' } }),
      [],
    ],
    ['a rule', runtimePod('a'), [rule({ protected: true })]],
    [
      'a label, against a rule',
      runtimePod('a', { labels: { 'evictd.protected': 'true' } }),
      [rule({ protected: false, priority: -1 })],
    ],
  ])('protects by %s', (_, pod, rules) => {
    const all = Object.values(fieldsOf(pod, rules).fields);
    expect(all.map((one) => one.protected)).toEqual(all.map(() => true));
  });

  it('takes the highest priority and the longest grace of several containers', () => {
    const pod = project(
      { 'evictd.priority': '-5', 'evictd.grace-period': '1m' },
      { 'evictd.priority': '2', 'evictd.grace-period': '5' },
    );
    for (const fields of Object.values(fieldsOf(pod).fields)) {
      expect(fields).toMatchObject({ priority: 2, gracePeriodSeconds: 60, name: 'shop' });
    }
  });

  it('leaves each container its own request, and the sum to the kernel where none is said', () => {
    const { fields } = fieldsOf(project({ 'evictd.memory-request': '1Gi' }, {}));
    expect(fields['docker/a']?.memoryRequestNano).toBe(GI_NANO);
    expect(fields['docker/b']?.memoryRequestNano).toBe(GI_NANO);
    expect(fieldsOf(project({}, {})).fields['docker/a']?.memoryRequestNano).toBeUndefined();
  });

  it('puts a request of the whole down to one cgroup', () => {
    const { fields } = fieldsOf(project({ 'evictd.memory-request': '1Gi' }, {}), [
      rule({ memoryRequestNano: 5n }),
    ]);
    expect(Object.values(fields).map((one) => one.memoryRequestNano)).toEqual([5n, 0n]);
  });

  it('adds up what containers in one cgroup ask for', () => {
    const pod = runtimePod('a', {
      cgroups: ['kubepods/pod1'],
      containers: ['x', 'y'].map((id) =>
        runtimeContainer(id, { cgroup: undefined, memoryRequest: GI }),
      ),
    });
    expect(fieldsOf(pod).fields['kubepods/pod1']?.memoryRequestNano).toBe(2n * GI_NANO);
  });

  it('matches rules by the name without its namespace, and by any container', () => {
    const pod = runtimePod('a', {
      namespace: 'prod',
      name: 'prod/web-0',
      containers: [
        runtimeContainer('x', { labels: { part: 'proxy' } }),
        runtimeContainer('y', { images: ['localhost/web:2'] }),
      ],
    });
    const priorityBy = (fields: Partial<RuntimeRule>) =>
      fieldsOf(pod, [rule({ ...fields, priority: 9 })]).fields['docker/a']?.priority;
    expect(priorityBy({ namespace: 'prod', name: 'web-?' })).toBe(9);
    expect(priorityBy({ name: 'prod*' })).toBeUndefined();
    expect(priorityBy({ labels: { part: 'proxy' } })).toBe(9);
    expect(priorityBy({ image: '*web:2' })).toBe(9);
  });

  it('protects what a rule about an image may be about, as long as it is not known what runs', () => {
    const rules = [rule({ image: '*web:2', priority: 9 })];
    const heldOf = (pod: RuntimePod) => {
      const { priority, protected: isProtected } = fieldsOf(pod, rules).fields['docker/a'] ?? {};
      return [priority, isProtected];
    };
    const unnamed = runtimeContainer('y', { images: undefined });
    expect(heldOf(runtimePod('a', { containers: [runtimeContainer('x'), unnamed] }))).toEqual([
      9,
      true,
    ]);
    const dead = { ...unnamed, isRunning: false };
    expect(heldOf(runtimePod('a', { containers: [runtimeContainer('x'), dead] }))).toEqual([
      undefined,
      false,
    ]);
  });

  it('tells each fault once', () => {
    const labels = { 'evictd.priority': 'high' };
    const pod = runtimePod('a', { labels, containers: [runtimeContainer('a', { labels })] });
    expect(fieldsOf(pod).faults).toEqual([
      'label evictd.priority: "high": not a whole number from -2147483648 to 2147483647',
    ]);
  });
});

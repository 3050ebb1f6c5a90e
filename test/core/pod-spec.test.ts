import { describe, expect, it } from 'vitest';
import type { KubernetesContainer, KubernetesPod } from '../../src/core/kubernetes.ts';
import { CRITICAL_PRIORITY, criticalBecause, podSpec } from '../../src/core/pod-spec.ts';
import { canonicalQuantity } from '../../src/core/quantity.ts';
import { RULE_SETS } from '../../src/core/rules.ts';
import { MI } from '../support/builders.ts';
import { container, kubernetesPod } from '../support/kubernetes.ts';

type Spec = KubernetesPod['spec'];

const STORAGE = 'ephemeral-storage';
const KUBELET = RULE_SETS.kubelet;
const EVICTD = RULE_SETS.evictd;

describe('podSpec', () => {
  it('reads what the policy needs', () => {
    const pod = kubernetesPod(
      'web',
      {
        priority: 7,
        terminationGracePeriodSeconds: 30,
        containers: [container('main', { memory: '64Mi', [STORAGE]: '1Gi', cpu: '1' })],
        volumes: [{ name: 'cache', emptyDir: {} }],
      },
      { status: { qosClass: 'Burstable' } },
    );
    const { containers, ...rest } = podSpec(pod, EVICTD);
    expect(rest).toStrictEqual({
      id: 'uid-of-web',
      name: 'default/web',
      priority: 7,
      qosClass: 'Burstable',
      protectedBecause: undefined,
      memoryRequestNano: BigInt(64 * MI) * 1_000_000_000n,
      ephemeralStorageRequestNano: BigInt(1024 * MI) * 1_000_000_000n,
      gracePeriodSeconds: 30,
      localVolumes: ['cache'],
      storageLimits: undefined,
    });
    expect([...containers.keys()]).toStrictEqual(['main']);
  });

  it('of a pod that says nothing takes the defaults', () => {
    const bare = kubernetesPod('bare', {
      containers: null,
      initContainers: null,
      volumes: null,
      priority: null,
      overhead: null,
      terminationGracePeriodSeconds: null,
    });
    for (const rules of [KUBELET, EVICTD]) {
      expect(podSpec(bare, rules)).toStrictEqual({
        id: 'uid-of-bare',
        name: 'default/bare',
        priority: 0,
        qosClass: 'BestEffort',
        protectedBecause: undefined,
        memoryRequestNano: 0n,
        ephemeralStorageRequestNano: 0n,
        gracePeriodSeconds: undefined,
        containers: new Map(),
        localVolumes: [],
        storageLimits: undefined,
      });
    }
    const { metadata } = bare;
    expect(podSpec({ metadata, spec: {} }, EVICTD)).toStrictEqual(podSpec(bare, EVICTD));
  });

  it.each<[string, Spec]>([
    ['a request', { containers: [container('a', { memory: '5 Gi' })] }],
    ['a request of an init container', { initContainers: [container('a', { [STORAGE]: 'x' })] }],
    ['a limit', { containers: [container('a', {}, { [STORAGE]: '' })] }],
    ['the overhead', { overhead: { memory: '1e3Ki' } }],
    ['the limit of a volume', { volumes: [{ name: 'a', emptyDir: { sizeLimit: '2E999' } }] }],
    ['a number that is none', { containers: [container('a', { memory: Number.NaN })] }],
  ])('refuses %s that is no quantity', (_, spec) => {
    for (const rules of [KUBELET, EVICTD]) {
      const pod = kubernetesPod('odd', spec, { status: { qosClass: 'Burstable' } });
      expect(() => podSpec(pod, rules)).toThrow(
        expect.objectContaining({ code: 'EVICTD_QUANTITY' }),
      );
    }
  });
});

describe('the request of a pod', () => {
  const mi = (name: string, mebibytes: number): KubernetesContainer =>
    container(name, { memory: `${mebibytes}Mi`, [STORAGE]: `${mebibytes}Mi` });
  const sidecar = (name: string, mebibytes: number): KubernetesContainer => ({
    ...mi(name, mebibytes),
    restartPolicy: 'Always',
  });
  const OVERHEAD = { memory: '10Mi', [STORAGE]: '10Mi' };

  it.each<[string, Spec, number, number]>([
    // what, the pod, by the kubelet's rules, by evictd's own, Mi
    ['nothing', { containers: [container('a')] }, 0, 0],
    ['one container', { containers: [mi('a', 100)] }, 100, 100],
    ['the sum of two', { containers: [mi('a', 100), container('b'), mi('c', 50)] }, 150, 150],
    [
      'an init container that needs less',
      { containers: [mi('a', 100)], initContainers: [mi('i', 90)] },
      100,
      100,
    ],
    [
      'an init container that needs more',
      { containers: [mi('a', 100)], initContainers: [mi('i', 90), mi('j', 300), mi('k', 200)] },
      300,
      300,
    ],
    [
      'an init container that asks for nothing',
      { containers: [mi('a', 100)], initContainers: [container('i')] },
      100,
      100,
    ],
    ['init containers alone', { containers: [], initContainers: [mi('i', 90)] }, 90, 90],
    [
      'an init container that goes on is added',
      { containers: [mi('a', 100)], initContainers: [sidecar('s', 50)] },
      100,
      150,
    ],
    [
      'one that goes on alone',
      { containers: [container('a')], initContainers: [sidecar('s', 50)] },
      50,
      50,
    ],
    [
      'another that runs beside one that goes on',
      { containers: [mi('a', 100)], initContainers: [sidecar('s', 50), mi('i', 120)] },
      120,
      170,
    ],
    [
      'another that ran before it',
      { containers: [mi('a', 100)], initContainers: [mi('i', 120), sidecar('s', 50)] },
      120,
      150,
    ],
    [
      'one that asks for nothing, beside one that goes on',
      { containers: [mi('a', 10)], initContainers: [sidecar('s', 50), container('i')] },
      50,
      60,
    ],
    [
      'two that go on',
      { containers: [mi('a', 100)], initContainers: [sidecar('s', 50), sidecar('t', 40)] },
      100,
      190,
    ],
    [
      'one that restarts on failure only is none that goes on',
      {
        containers: [mi('a', 100)],
        initContainers: [{ ...mi('i', 50), restartPolicy: 'OnFailure' }],
      },
      100,
      100,
    ],
    ['overhead beside a request', { containers: [mi('a', 100)], overhead: OVERHEAD }, 110, 110],
    ['overhead alone', { containers: [container('a')], overhead: OVERHEAD }, 0, 10],
  ])('%s', (_, spec, kubelet, evictd) => {
    const mebibytes = (nano: bigint) => Number(nano / 1_000_000_000n) / MI;
    for (const [rules, expected] of [
      [KUBELET, kubelet],
      [EVICTD, evictd],
    ] as const) {
      const read = podSpec(kubernetesPod('web', spec), rules);
      expect(mebibytes(read.memoryRequestNano)).toBe(expected);
      expect(mebibytes(read.ephemeralStorageRequestNano)).toBe(expected);
    }
  });

  it('is exact, of texts and of numbers', () => {
    const spec = {
      containers: [container('a', { memory: '100m' }), container('b', { memory: 7 })],
    };
    for (const rules of [KUBELET, EVICTD]) {
      expect(podSpec(kubernetesPod('web', spec), rules).memoryRequestNano).toBe(7_100_000_000n);
    }
  });
});

describe('criticalBecause', () => {
  const SOURCE = 'kubernetes.io/config.source';
  const MIRROR = 'kubernetes.io/config.mirror';

  it.each<[number | undefined, Record<string, string> | undefined, string | undefined]>([
    [undefined, undefined, undefined],
    [0, {}, undefined],
    [CRITICAL_PRIORITY - 1, undefined, undefined],
    [CRITICAL_PRIORITY, undefined, 'critical priority'],
    [CRITICAL_PRIORITY + 1000, undefined, 'critical priority'],
    [-1, { [SOURCE]: 'file' }, 'static pod'],
    [0, { [SOURCE]: 'http' }, 'static pod'],
    [0, { [SOURCE]: '' }, 'static pod'],
    [0, { [SOURCE]: 'api' }, undefined],
    [CRITICAL_PRIORITY, { [SOURCE]: 'api' }, 'critical priority'],
    [0, { [MIRROR]: 'c0ffee' }, 'mirror pod'],
    [0, { [MIRROR]: '' }, 'mirror pod'],
    [0, { [SOURCE]: 'api', [MIRROR]: 'c0ffee' }, 'mirror pod'],
    [0, { 'example.com/mirror': 'yes' }, undefined],
  ])('priority %s, annotations %j: %s', (priority, annotations, expected) => {
    const spec = priority === undefined ? {} : { priority };
    const rest = annotations === undefined ? {} : { annotations };
    const pod = kubernetesPod('web', spec, rest);
    expect(criticalBecause(pod)).toBe(expected);
    expect(podSpec(pod, EVICTD).protectedBecause).toBe(expected);
  });
});

describe('the local volumes of a pod', () => {
  it.each<[string, object, boolean]>([
    ['an emptyDir', { emptyDir: {} }, true],
    ['an emptyDir on disk', { emptyDir: { medium: '' } }, true],
    // C28: it is in the pod's memory once, and on no disk.
    ['an emptyDir in memory', { emptyDir: { medium: 'Memory' } }, false],
    ['huge pages', { emptyDir: { medium: 'HugePages' } }, false],
    ['a hostPath', { hostPath: { path: '/var' } }, true],
    ['a configMap', { configMap: {} }, true],
    ['a gitRepo', { gitRepo: {} }, true],
    ['a secret', { secret: {} }, false],
    ['a claim', { persistentVolumeClaim: {} }, false],
    ['what is null', { emptyDir: null, hostPath: null, configMap: null, gitRepo: null }, false],
  ])('%s: %s', (_, source, isLocal) => {
    const pod = kubernetesPod('web', { volumes: [{ name: 'v', ...source }] });
    expect(podSpec(pod, EVICTD).localVolumes).toStrictEqual(isLocal ? ['v'] : []);
  });
});

describe('the requests of containers', () => {
  it('are known by name, the first of a name, also of init containers', () => {
    const { containers } = podSpec(
      kubernetesPod('web', {
        containers: [
          container('a', { memory: '0.5Gi' }),
          container('b', { [STORAGE]: '1e3' }),
          container('a', { memory: '1' }),
        ],
        initContainers: [container('b', { memory: '2' }), container('i', { memory: '3' })],
      }),
      EVICTD,
    );
    const told = [...containers].map(([name, { memory, ephemeralStorage }]) => [
      name,
      canonicalQuantity(memory),
      canonicalQuantity(ephemeralStorage),
    ]);
    expect(told).toStrictEqual([
      ['a', '512Mi', '0'],
      ['b', '0', '1e3'],
      ['i', '3', '0'],
    ]);
  });
});

describe('the storage limits of a pod', () => {
  const limitsOf = (spec: Spec) => podSpec(kubernetesPod('web', spec), EVICTD).storageLimits;
  const limited = (name: string, limit: string) => container(name, {}, { [STORAGE]: limit });

  it.each<[string, Spec]>([
    ['no volume, no limit', {}],
    ['an emptyDir without one', { volumes: [{ name: 'v', emptyDir: {} }] }],
    ['null', { volumes: [{ name: 'v', emptyDir: { sizeLimit: null } }] }],
    ['0', { volumes: [{ name: 'v', emptyDir: { sizeLimit: '0' } }] }],
    ['below 0', { volumes: [{ name: 'v', emptyDir: { sizeLimit: '-1Gi' } }] }],
    ['a limit of memory', { containers: [container('a', {}, { memory: '1Gi' })] }],
    ['overhead alone', { overhead: { [STORAGE]: '1Gi' } }],
  ])('are none: %s', (_, spec) => {
    expect(limitsOf(spec)).toBeUndefined();
  });

  it.each<[string, Spec, string | undefined, readonly string[]]>([
    ['one container', { containers: [limited('a', '1Gi')] }, '1Gi', ['a 1Gi']],
    [
      'the sum of two, one without',
      { containers: [limited('a', '1Gi'), container('b'), limited('c', '512Mi')] },
      '1536Mi',
      ['a 1Gi', 'c 512Mi'],
    ],
    [
      'with the overhead',
      { containers: [limited('a', '1Gi')], overhead: { [STORAGE]: '1Mi' } },
      '1025Mi',
      ['a 1Gi'],
    ],
    // The pod as a whole may use nothing, but the container has no limit.
    ['of 0', { containers: [limited('a', '0')] }, '0', []],
    [
      'an init container has one for the pod alone',
      { containers: [container('a')], initContainers: [limited('i', '2Gi')] },
      '2Gi',
      [],
    ],
    [
      'with one that goes on',
      {
        containers: [limited('a', '1Gi')],
        initContainers: [{ ...limited('s', '1Gi'), restartPolicy: 'Always' }],
      },
      '2Gi',
      ['a 1Gi'],
    ],
  ])('%s', (_, spec, pod, containers) => {
    const limits = limitsOf(spec);
    expect(limits?.pod && canonicalQuantity(limits.pod.quantity)).toBe(pod);
    expect(
      (limits?.containers ?? []).map(
        ({ name, quantity }) => `${name} ${canonicalQuantity(quantity)}`,
      ),
    ).toStrictEqual(containers);
    expect(limits?.emptyDirs).toStrictEqual([]);
  });

  it.each([
    ['1', 1],
    ['1500m', 1],
    ['-1', -1],
    ['-500m', -1],
  ])('of %s: at most %s bytes', (text, mostBytes) => {
    expect(limitsOf({ containers: [limited('a', text)] })?.pod?.mostBytes).toBe(mostBytes);
  });

  it('of volumes, in memory too, in their order', () => {
    const limits = limitsOf({
      volumes: [
        { name: 'b', emptyDir: { sizeLimit: '1Gi', medium: 'Memory' } },
        { name: 'x', emptyDir: {} },
        { name: 'a', emptyDir: { sizeLimit: 5 } },
      ],
    });
    expect(limits?.emptyDirs.map(({ name }) => name)).toStrictEqual(['b', 'a']);
    expect(limits?.pod).toBeUndefined();
  });
});

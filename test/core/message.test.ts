import { describe, expect, it } from 'vitest';
import type { Cause } from '../../src/core/decision.ts';
import { disruptionTarget, evictionText, imagesText, nodeText } from '../../src/core/message.ts';
import type { ContainerObservation, PodObservation } from '../../src/core/pod.ts';
import { readQuantity } from '../../src/core/quantity.ts';
import { RULE_SETS } from '../../src/core/rules.ts';
import type { Signal } from '../../src/core/signal.ts';
import { cause, GI, MI, observation, pod, threshold, value } from '../support/builders.ts';

const LOW = cause({ level: 100 * MI, observation: observation(50 * MI) });
/** By evictd's own rules, unless others are given. */
const textOf = (low: Cause, one: PodObservation, rules = RULE_SETS.evictd) =>
  evictionText(low, one, { layout: 'dedicatedImagefs', rules });
const NODE = 'The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi.';

describe('evictionText of a pod that is not known to be made of containers', () => {
  const messageOf = (one: PodObservation) => textOf(LOW, one).message;

  it('is the kubelet’s, with the figures of node and pod', () => {
    const leak = pod('leak', { workingSetBytes: 300 * MI, memoryRequestNano: 10n ** 9n * 64n });
    expect(messageOf(leak)).toBe(`${NODE} The pod was using 300Mi, request is 64.`);
  });

  it('says so when the usage is unknown', () => {
    expect(messageOf(pod('quiet', { workingSetBytes: undefined }))).toBe(
      `${NODE} The pod was using an unknown amount, request is 0.`,
    );
  });

  it('tells what a pod has on disks where those are short', () => {
    const onDisk = (signal: Signal, fields: Partial<PodObservation>, rules = RULE_SETS.evictd) => {
      const short = cause({
        threshold: threshold({ signal }),
        observation: observation(5, { signal }),
      });
      return textOf(short, pod('fat', fields), rules).message.replace(/.*available: \d+\. /, '');
    };
    const disk = {
      root: { bytes: 30 * MI, inodes: 3 },
      logs: { bytes: 2 * MI, inodes: 1 },
      localVolumes: { bytes: MI, inodes: 10 },
    };
    const uncounted = { ...disk, logs: { bytes: 0, inodes: undefined } };
    const ephemeralStorageRequestNano = 64n * 10n ** 9n;
    expect(onDisk('nodefs.available', { disk, ephemeralStorageRequestNano })).toBe(
      'The pod was using 3Mi of nodefs, request is 64.',
    );
    expect(onDisk('imagefs.available', { disk })).toBe(
      'The pod was using 30Mi of imagefs, request is 0.',
    );
    expect(onDisk('nodefs.available', { disk }, RULE_SETS.kubelet)).toBe(
      'The pod was using 33Mi, request is 0.',
    );
    expect(onDisk('nodefs.inodesFree', { disk }, RULE_SETS.kubelet)).toBe(
      'The pod was using 14 inodes.',
    );
    const least = { ...disk, logs: { bytes: 2 * MI, inodes: 1, isLeast: true } } as const;
    expect(onDisk('nodefs.available', { disk: least })).toBe(
      'The pod was using at least 3Mi of nodefs, request is 0.',
    );
    expect(onDisk('imagefs.available', {})).toBe(
      'The pod was using an unknown amount, request is 0.',
    );
    expect(onDisk('nodefs.inodesFree', { disk })).toBe('The pod was using 11 inodes of nodefs.');
    expect(onDisk('nodefs.inodesFree', { disk: uncounted })).toBe(
      'The pod was using an unknown number of inodes.',
    );
  });

  it('tells the tasks of a pod where they are short', () => {
    const signal = 'pid.available';
    const short = cause({
      threshold: threshold({ signal }),
      observation: observation(5, { signal }),
    });
    const said = (fields: Partial<PodObservation>) => textOf(short, pod('bomb', fields));
    expect(said({ pids: 480 }).message).toMatch(/ The pod had 480 tasks\.$/);
    expect(said({}).message).toMatch(/ The pod had an unknown number of tasks\.$/);
    expect(said({ pids: 480, pidsAre: 'processes' }).message).toMatch(
      / The pod had 480 processes\.$/,
    );
  });

  it('has no annotations', () => {
    expect(textOf(LOW, pod('leak')).annotations).toStrictEqual({});
  });

  it('does not repeat the name of the pod: it is text from outside', () => {
    expect(messageOf(pod('leak\u001b[2J'))).not.toContain('leak');
  });
});

describe('C26: imagesText', () => {
  it.each([
    [3 * GI, 'The pod alone was using images of 3Gi.'],
    [undefined, 'What the images take that the pod alone uses is unknown.'],
  ])('%s', (exclusiveImageBytes, expected) => {
    expect(imagesText(cause(), pod('a', { exclusiveImageBytes }))).toStrictEqual({
      message: `The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. ${expected}`,
      annotations: {},
    });
  });
});

describe('nodeText', () => {
  it('leaves the pod out', () => {
    expect(nodeText(LOW)).toBe(NODE);
  });

  it('gives bytes that are no multiple exactly', () => {
    const odd = cause({
      threshold: threshold({ value: value('104857601') }),
      observation: observation(1),
    });
    expect(nodeText(odd)).toContain('Threshold quantity: 104857601, available: 1.');
  });

  it('names the threshold, not the threshold with its minimum reclaim', () => {
    const reclaiming = cause({
      level: 130 * MI,
      reclaiming: true,
      observation: observation(110 * MI),
    });
    expect(nodeText(reclaiming)).toContain('Threshold quantity: 100Mi, available: 110Mi.');
  });

  it.each([
    [
      'nodefs.available',
      '2Gi',
      2 ** 30,
      'ephemeral-storage. Threshold quantity: 2Gi, available: 1Gi.',
    ],
    ['nodefs.inodesFree', '10k', 2048, 'inodes. Threshold quantity: 10k, available: 2048.'],
    ['pid.available', '1000', 250, 'pids. Threshold quantity: 1k, available: 250.'],
    // The notation is that of the threshold, not of what it counts.
    ['pid.available', '1Ki', 250, 'pids. Threshold quantity: 1Ki, available: 250.'],
    ['pid.available', '1e3', 2000, 'pids. Threshold quantity: 1e3, available: 2k.'],
  ] as const)('counts %s of %s in its unit', (signal, text, available, expected) => {
    const low = cause({
      threshold: threshold({ signal, value: value(text) }),
      observation: observation(available, { signal, capacity: 2 ** 40 }),
    });
    expect(nodeText(low)).toBe(`The node was low on resource: ${expected}`);
  });
});

describe('evictionText of a pod of containers', () => {
  /** `leak` is over its request, `calm` uses exactly what it asks for, of `dark` nothing is known. */
  const CONTAINERS: readonly ContainerObservation[] = [
    { name: 'leak', request: readQuantity('0.1Gi'), usedBytes: 300 * MI },
    { name: 'calm', request: readQuantity('64Mi'), usedBytes: 64 * MI },
    { name: 'dark', request: readQuantity('0'), usedBytes: undefined },
    { name: 'free', request: readQuantity('0'), usedBytes: 1 },
  ];
  const lowOn = (signal: Signal, level: string, available: number) =>
    cause({
      threshold: threshold({ signal, value: value(level) }),
      observation: observation(available, { signal, capacity: 100 * GI }),
    });
  const ofContainers = (
    containers: readonly ContainerObservation[],
    overrides: Partial<PodObservation> = {},
  ) => pod('app', { containers: () => containers, hasStats: true, ...overrides });

  it.each<[Signal, string, string]>([
    ['memory.available', 'memory', '100Mi'],
    ['allocatableMemory.available', 'memory', '100Mi'],
    ['nodefs.available', 'ephemeral-storage', '1Gi'],
    ['imagefs.available', 'ephemeral-storage', '1Gi'],
    ['containerfs.available', 'ephemeral-storage', '1Gi'],
  ])('names for %s the containers that exceed their request', (signal, resource, level) => {
    const { message, annotations } = textOf(lowOn(signal, level, MI), ofContainers(CONTAINERS));
    expect(message).toBe(
      `The node was low on resource: ${resource}. Threshold quantity: ${level}, available: 1Mi. ` +
        'Container leak was using 300Mi, request is 107374182400m, ' +
        `has larger consumption of ${resource}. ` +
        `Container free was using 1, request is 0, has larger consumption of ${resource}. `,
    );
    expect(annotations).toStrictEqual({
      offending_containers: 'leak,free',
      offending_containers_usage: '300Mi,1',
      starved_resource: resource,
    });
  });

  it.each<[Signal, string]>([
    ['nodefs.inodesFree', 'inodes'],
    ['imagefs.inodesFree', 'inodes'],
    ['pid.available', 'pids'],
  ])('names none for %s, of which nothing can be requested', (signal, resource) => {
    const containers = () => {
      throw new Error('asked');
    };
    // Where no summary tells of it, what the whole uses is said.
    const { message } = textOf(lowOn(signal, '1000', 5), pod('app', { containers }));
    expect(message).toMatch(/available: 5\. The pod (was using|had) an unknown number of /);
    const one = pod('app', { containers, hasStats: true });
    expect(textOf(lowOn(signal, '1000', 5), one)).toStrictEqual({
      message: `The node was low on resource: ${resource}. Threshold quantity: 1k, available: 5. `,
      annotations: {
        offending_containers: '',
        offending_containers_usage: '',
        starved_resource: resource,
      },
    });
  });

  it('asks for the use of the resource that is short', () => {
    const asked: string[] = [];
    const one = pod('app', {
      containers: (resource) => {
        asked.push(resource);
        return [];
      },
    });
    textOf(LOW, one);
    textOf(lowOn('nodefs.available', '1Gi', MI), one);
    expect(asked).toStrictEqual(['memory', 'ephemeral-storage']);
  });

  it('compares in nano-bytes: half a byte more is an offence', () => {
    const containers = [
      { name: 'over', request: readQuantity('1048575500m'), usedBytes: MI },
      { name: 'under', request: readQuantity('1048576500m'), usedBytes: MI },
    ];
    expect(textOf(LOW, ofContainers(containers)).annotations).toMatchObject({
      offending_containers: 'over',
    });
  });

  it('says that nothing is known of the pod; to the kubelet no more than of the node', () => {
    const unknown = ofContainers(CONTAINERS, { hasStats: false });
    expect(textOf(LOW, unknown)).toStrictEqual({
      message: `${NODE} The usage of the pod is unknown. `,
      annotations: {},
    });
    expect(textOf(LOW, unknown, RULE_SETS.kubelet)).toStrictEqual({
      message: `${NODE} `,
      annotations: {},
    });
  });
});

describe('disruptionTarget', () => {
  it('is a condition of the pod, for the node’s sake', () => {
    expect(disruptionTarget('low')).toStrictEqual({
      type: 'DisruptionTarget',
      status: 'True',
      reason: 'TerminationByKubelet',
      message: 'low',
    });
  });
});

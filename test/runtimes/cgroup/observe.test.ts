import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type HandleCache, handleCache } from '../../../src/runtimes/cgroup/handle-cache.ts';
import {
  type ObserveInputs,
  observePods,
  type PodFields,
} from '../../../src/runtimes/cgroup/observe.ts';
import { cgroupRuntime } from '../../../src/runtimes/cgroup/runtime.ts';
import { liveScheduler } from '../../../src/sources/live-scheduler.ts';
import { makeCgroup } from '../../support/cgroup.ts';
import { describeWith } from '../../support/skip.ts';
import { copyOf, fixture, openDescriptors } from '../support.ts';

const MI = 2 ** 20;
const NANO = 1_000_000_000n;

/** What no cgroup can tell, and none of it given. */
const NO_FIELDS = {
  priority: undefined,
  memoryRequestNano: undefined,
  gracePeriodSeconds: undefined,
  protected: false,
};

function inputsOf(directory: string, overrides: Partial<ObserveInputs> = {}): ObserveInputs {
  const handles = handleCache(directory);
  onTestFinished(() => handles.close());
  return {
    places: { directory, isRoot: false, parents: [], named: [] },
    handles,
    fields: new Map(),
    ownDirectories: () => [],
    nowMs: () => 7,
    ...overrides,
  };
}

const names = (inputs: ObserveInputs) => observePods(inputs).map(({ name }) => name);

describe('observePods', () => {
  it('reads every pod of the node', () => {
    const pods = observePods(inputsOf(fixture('cgroup-v1', 'node')));
    expect(pods).toEqual([
      {
        id: expect.stringMatching(/^pod-a@\d+$/),
        name: 'pod-a',
        priority: 0,
        qosClass: 'Guaranteed',
        memoryRequestNano: BigInt(128 * MI) * NANO,
        workingSetBytes: 20_938_752 - 20_000_768,
        gracePeriodSeconds: undefined,
        protectedBecause: undefined,
        atMs: 7,
      },
      expect.objectContaining({
        name: 'pod-b',
        qosClass: 'BestEffort',
        memoryRequestNano: 0n,
        workingSetBytes: 0,
      }),
    ]);
  });

  it('takes a kubelet’s BestEffort pod to ask for nothing, whatever its soft limit says', () => {
    const node = copyOf('cgroup-v1', 'node');
    const [burstable, bestEffort] = ['burstable', 'besteffort'].map((qos) => {
      const name = `kubepods/${qos}/pod${qos}-1`;
      cpSync(path.join(node, 'pod-a'), path.join(node, name), { recursive: true });
      return name;
    });
    const pods = observePods(inputsOf(node));
    const requestOf = (name: string | undefined) =>
      pods.find((one) => one.name === name)?.memoryRequestNano;
    expect(requestOf(burstable)).toBe(BigInt(128 * MI) * NANO);
    expect(requestOf(bestEffort)).toBe(0n);
  });

  it('adds what was configured', () => {
    const fields = new Map<string, PodFields>([
      [
        'pod-a',
        { priority: 5, memoryRequestNano: 3n * NANO, gracePeriodSeconds: 9, protected: true },
      ],
      ['pod-b', { ...NO_FIELDS, memoryRequestNano: 0n }],
      ['no-such', NO_FIELDS],
    ]);
    const [a, b] = observePods(inputsOf(fixture('cgroup-v1', 'node'), { fields }));
    expect(a).toMatchObject({
      priority: 5,
      qosClass: 'Burstable',
      memoryRequestNano: 3n * NANO,
      gracePeriodSeconds: 9,
      protectedBecause: 'configured',
    });
    expect(b).toMatchObject({ priority: 0, qosClass: 'BestEffort', protectedBecause: undefined });
  });

  it('protects the pod that holds evictd, and no other of like name', () => {
    const directory = fixture('cgroup-v1', 'node');
    const protectedOf = (own: readonly string[]) =>
      observePods(inputsOf(directory, { ownDirectories: () => own }))
        .filter(({ protectedBecause }) => protectedBecause !== undefined)
        .map(({ name }) => name);
    expect(protectedOf([`${directory}/pod-a`])).toEqual(['pod-a']);
    expect(protectedOf([`${directory}/pod-b/deep/er`])).toEqual(['pod-b']);
    expect(protectedOf([directory, `${directory}/pod-`, `${directory}/pod-ab`, '/'])).toEqual([]);
  });

  it('leaves out a pod that is gone, and one that vanishes in between', () => {
    const directory = copyOf('cgroup-v1', 'node');
    const inputs = inputsOf(directory);
    expect(names(inputs)).toEqual(['pod-a', 'pod-b']);
    rmSync(path.join(directory, 'pod-a'), { recursive: true });
    expect(names(inputs)).toEqual(['pod-b']);
    const vanishing: HandleCache = {
      ...inputs.handles,
      get: (name) => {
        rmSync(path.join(directory, name), { recursive: true, force: true });
        return inputs.handles.get(`${name}-no-more`);
      },
    };
    expect(observePods({ ...inputs, handles: vanishing })).toEqual([]);
    expect(names(inputs)).toEqual([]);
  });

  it('keeps a pod whose counters cannot be read, with its usage unknown', () => {
    const directory = copyOf('cgroup-v1', 'node');
    writeFileSync(path.join(directory, 'pod-a', 'memory.usage_in_bytes'), 'twelve');
    const [a, b] = observePods(inputsOf(directory));
    expect(a).toMatchObject({ name: 'pod-a', workingSetBytes: undefined });
    expect(b).toMatchObject({ name: 'pod-b', workingSetBytes: 0 });
  });

  it('sees a pod that is new, and closes those that are gone', () => {
    const directory = copyOf('cgroup-v1', 'node');
    const inputs = inputsOf(directory);
    expect(names(inputs)).toHaveLength(2);
    const open = openDescriptors();
    for (let n = 0; n < 20; n += 1) {
      const pod = path.join(directory, `new-${n}`);
      cpSync(path.join(directory, 'pod-a'), pod, { recursive: true });
      expect(names(inputs)).toContain(`new-${n}`);
      rmSync(pod, { recursive: true });
    }
    expect(names(inputs)).toHaveLength(2);
    expect(openDescriptors()).toBe(open);
  });

  it('says why pods may be missing, until none is any more', () => {
    const directory = copyOf('cgroup-v1', 'node');
    const runtime = cgroupRuntime({
      directory,
      isRoot: false,
      parents: ['.', 'odd'],
      hierarchy: { mountPoint: '/no/such', root: '/' },
      fields: new Map(),
      native: undefined,
      allowPidKill: false,
      scheduler: liveScheduler,
      pid: process.pid,
    });
    onTestFinished(() => runtime.close());
    expect(runtime.podsTrouble()).toBeUndefined();
    writeFileSync(path.join(directory, 'odd'), '');
    expect(runtime.observePods()).toHaveLength(2);
    expect(runtime.podsTrouble()).toBe(`${directory}/odd cannot be listed: ENOTDIR`);
    rmSync(path.join(directory, 'odd'));
    expect(runtime.observePods()).toHaveLength(2);
    expect(runtime.podsTrouble()).toBeUndefined();
  });

  it('of a node that is gone is empty', () => {
    expect(observePods(inputsOf('/no/such'))).toEqual([]);
  });
});

describeWith({ root: true, cgroupV1: true }, 'observePods, on real cgroups', () => {
  it('takes names as they are', () => {
    const node = makeCgroup();
    onTestFinished(() => node.remove());
    const odd = [
      '-x',
      'a b',
      'a=b,c',
      '..a',
      'käse-☃',
      'x'.repeat(255),
      ' ',
      "'$(x)`",
      '%s',
      '{n}',
    ];
    for (const name of odd) node.child(name);
    expect([...names(inputsOf(node.path))].sort()).toEqual([...odd].sort());
  });

  it('tells a pod that was made again from the one before', async () => {
    const node = makeCgroup();
    onTestFinished(() => node.remove());
    const first = node.child('pod');
    const inputs = inputsOf(node.path);
    const [before] = observePods(inputs);
    await first.remove();
    node.child('pod', { softLimitBytes: 8 * MI });
    const [after] = observePods(inputs);
    expect(after).toMatchObject({
      name: 'pod',
      workingSetBytes: expect.any(Number),
      memoryRequestNano: BigInt(8 * MI) * NANO,
      qosClass: 'Burstable',
    });
    expect(after?.id).not.toBe(before?.id);
  });

  it('holds a descriptor or three for each pod, however often it is asked', () => {
    const node = makeCgroup();
    onTestFinished(() => node.remove());
    for (let n = 0; n < 10; n += 1) node.child(`pod-${n}`);
    const inputs = inputsOf(node.path);
    const before = openDescriptors();
    for (let n = 0; n < 50; n += 1) expect(observePods(inputs)).toHaveLength(10);
    expect(openDescriptors()).toBe(before + 30);
    expect(readFileSync(path.join(node.path, 'pod-0', 'cgroup.procs'), 'utf8')).toBe('');
  });
});

import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it, onTestFinished } from 'vitest';
import { rankPods } from '../../../src/core/rank.ts';
import { descendants } from '../../../src/kernel/ancestry.ts';
import { oomScoreAdj } from '../../../src/kernel/oom-score-adj.ts';
import { handleCache } from '../../../src/runtimes/cgroup/handle-cache.ts';
import {
  type ObserveInputs,
  observePods,
  type PodFields,
} from '../../../src/runtimes/cgroup/observe.ts';
import type { CgroupRuntimeInputs } from '../../../src/runtimes/cgroup/runtime.ts';
import { LOOK_AGE_MS } from '../../../src/runtimes/cgroup/spared.ts';
import { makeCgroup, type TestCgroup } from '../../support/cgroup.ts';
import { describeWith } from '../../support/skip.ts';
import { within } from '../../support/wait.ts';
import { fixture, temporaryDirectory } from '../support.ts';
import { openRuntime } from './support.ts';

const MI = 2 ** 20;
const OWN = 'holds evictd, one of its ancestors or helpers';
const UNKILLABLE = 'holds a process with oom_score_adj -1000';

const PROTECTED: PodFields = {
  priority: undefined,
  memoryRequestNano: undefined,
  gracePeriodSeconds: undefined,
  protected: true,
};

interface FixturePod {
  readonly workingSetMi: number;
  readonly pids: readonly number[];
}

function writePod(directory: string, { workingSetMi, pids }: FixturePod): void {
  mkdirSync(directory, { recursive: true });
  const files = {
    'memory.usage_in_bytes': `${workingSetMi * MI}\n`,
    'memory.stat': 'total_inactive_file 0\n',
    'memory.limit_in_bytes': '9223372036854771712\n',
    'memory.soft_limit_in_bytes': '9223372036854771712\n',
    'cgroup.procs': pids.map((pid) => `${pid}\n`).join(''),
  };
  for (const [file, text] of Object.entries(files)) writeFileSync(path.join(directory, file), text);
}

/** Pods as files, by name, and what observes them. */
function nodeOf(pods: Readonly<Record<string, FixturePod>>, handleLimit?: number) {
  const directory = temporaryDirectory();
  for (const [name, one] of Object.entries(pods)) writePod(path.join(directory, name), one);
  const handles = handleCache(directory, handleLimit);
  onTestFinished(() => handles.close());
  let nowMs = 0;
  const inputs: ObserveInputs = {
    places: { directory, isRoot: false, parents: [], named: [] },
    handles,
    fields: new Map(),
    ownDirectories: () => [],
    nowMs: () => nowMs,
    // 4001 is at −1000; without CAP_SYS_RESOURCE no test could set a real process to it.
    oomScoreAdjOf: (pid) => oomScoreAdj(pid, fixture('proc', 'oom-score-adj')),
  };
  return {
    directory,
    inputs,
    pass: (ms: number) => {
      nowMs += ms;
    },
    protections: (overrides: Partial<ObserveInputs> = {}) =>
      Object.fromEntries(
        observePods({ ...inputs, ...overrides })
          .map(({ name, protectedBecause }) => [name, protectedBecause] as const)
          .sort(),
      ),
  };
}

describe('a pod with a process at oom_score_adj −1000', () => {
  it('is never a candidate, though it is the largest', () => {
    const { inputs } = nodeOf({
      small: { workingSetMi: 10, pids: [4003] },
      largest: { workingSetMi: 900, pids: [4003, 4001] },
      'almost-spared': { workingSetMi: 20, pids: [4002] },
    });
    const ranked = rankPods('memory.available', observePods(inputs));
    expect(ranked.map(({ name, protectedBecause }) => [name, protectedBecause])).toEqual([
      ['largest', UNKILLABLE],
      ['almost-spared', undefined],
      ['small', undefined],
    ]);
  });

  it('is a candidate again when that is gone, but not before it was looked for', () => {
    const { directory, protections, pass } = nodeOf({ one: { workingSetMi: 9, pids: [4001] } });
    expect(protections()).toEqual({ one: UNKILLABLE });
    writePod(path.join(directory, 'one'), { workingSetMi: 9, pids: [4003] });
    pass(LOOK_AGE_MS - 1);
    expect(protections()).toEqual({ one: UNKILLABLE });
    pass(1);
    expect(protections()).toEqual({ one: undefined });
  });

  it('is told from one that was made again under its name', () => {
    const { inputs, directory, protections } = nodeOf({ one: { workingSetMi: 9, pids: [4003] } });
    const handles = {
      ...inputs.handles,
      get: (name: string) => ({ ...inputs.handles.get(name), id: `${name}@1` }),
    };
    expect(protections()).toEqual({ one: undefined });
    writePod(path.join(directory, 'one'), { workingSetMi: 9, pids: [4001] });
    let asked = 0;
    const replaced = (name: string) => {
      asked += 1;
      return asked === 1 ? inputs.handles.get(name) : handles.get(name);
    };
    inputs.handles.drop('one');
    expect(protections({ handles: { ...handles, get: replaced } })).toEqual({ one: undefined });
    expect(asked).toBe(2);
  });

  it('is found where more pods are listed than are held open', () => {
    const { protections } = nodeOf(
      {
        a: { workingSetMi: 30, pids: [4001] },
        b: { workingSetMi: 20, pids: [4003] },
        c: { workingSetMi: 10, pids: [4003, 4001] },
      },
      1,
    );
    expect(protections()).toEqual({ a: UNKILLABLE, b: undefined, c: UNKILLABLE });
  });

  it('is not looked for in pods that are protected anyway, or hold no process', () => {
    const { inputs, protections } = nodeOf({
      configured: { workingSetMi: 30, pids: [4001] },
      empty: { workingSetMi: 0, pids: [] },
      own: { workingSetMi: 20, pids: [4001] },
    });
    const seen: number[] = [];
    expect(
      protections({
        fields: new Map([['configured', PROTECTED]]),
        ownDirectories: () => [`${inputs.places.directory}/own/deep`],
        oomScoreAdjOf: (pid) => {
          seen.push(pid);
          return undefined;
        },
      }),
    ).toEqual({ configured: 'configured', empty: 'holds no process', own: OWN });
    expect(seen).toEqual([]);
  });

  it('costs a listing of many pods only a few looks', () => {
    const pods = Array.from({ length: 200 }, (_, n) => [
      `p${n}`,
      { workingSetMi: 10 + n, pids: [4003] },
    ]);
    const { protections, pass } = nodeOf(Object.fromEntries(pods));
    let looks = 0;
    const oomScoreAdjOf = () => {
      looks += 1;
      return 0;
    };
    protections({ oomScoreAdjOf });
    expect(looks).toBe(6);
    pass(LOOK_AGE_MS);
    protections({ oomScoreAdjOf });
    expect(looks).toBe(12);
  });
});

describe('a pod that is configured as protected', () => {
  const pods = {
    'a/x': { workingSetMi: 9, pids: [4003] },
    'a/y/z': { workingSetMi: 9, pids: [4003] },
    'ab/x': { workingSetMi: 9, pids: [4003] },
  };

  it('protects those in it, should it hold pods itself', () => {
    const { inputs, protections } = nodeOf(pods);
    const places = { ...inputs.places, parents: ['a', 'ab', 'a/y'], named: ['a'] };
    expect(protections({ places, fields: new Map([['a', PROTECTED]]) })).toEqual({
      'a/x': 'configured',
      'a/y/z': 'configured',
      'ab/x': undefined,
    });
  });

  it('keeps the pod that it lies in from being one', () => {
    const { inputs, protections } = nodeOf({ ...pods, a: { workingSetMi: 99, pids: [4003] } });
    const places = { ...inputs.places, named: ['a/y/z'] };
    expect(protections({ places, fields: new Map([['a/y/z', PROTECTED]]) })).toEqual({
      'a/y/z': 'configured',
    });
  });
});

/** A process that has started another. */
async function spawnPair(): Promise<{ readonly parent: number; readonly child: number }> {
  const parent = spawn('bash', ['-c', 'sleep 1000 & echo $!; wait'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void parent.kill('SIGKILL'));
  const lines = createInterface({ input: parent.stdout });
  const child = await within(
    new Promise<number>((resolve) => lines.once('line', (line) => resolve(Number(line)))),
    5000,
    'the child has a pid',
  );
  return { parent: parent.pid ?? 0, child };
}

const KUBEPODS = ['kubepods', 'burstable', 'podaaaa-1', 'ctr'];
const SLICE = [
  'kubelet.slice',
  'kubelet-kubepods.slice',
  'kubelet-kubepods-besteffort.slice',
  'kubelet-kubepods-besteffort-podbbbb.slice',
  'evictd.scope',
];

describeWith({ root: true, cgroupV1: true }, 'evictd’s own processes protect', () => {
  /** A node with `home`, and pods of the same kind beside it; a process would leave none empty. */
  function makeNode(): TestCgroup {
    const node = makeCgroup();
    onTestFinished(() => node.remove());
    return node;
  }

  const below = (top: TestCgroup, names: readonly string[]) =>
    names.reduce((cgroup, name) => cgroup.child(name), top);

  function protectedIn(node: TestCgroup, inputs: Partial<CgroupRuntimeInputs>) {
    const runtime = openRuntime(node.path, { helpers: descendants, ...inputs });
    return runtime
      .observePods()
      .filter(({ protectedBecause }) => protectedBecause === OWN)
      .map(({ name }) => name)
      .sort();
  }

  it.each([
    ['a pod', ['home'], [], 'home'],
    ['a cgroup in a pod', ['home', 'a', 'b'], [], 'home'],
    ['a container (cgroupfs driver)', KUBEPODS, ['kubepods'], KUBEPODS.slice(0, 3).join('/')],
    ['a container (systemd driver)', SLICE, ['kubelet.slice'], SLICE.slice(0, 4).join('/')],
    ['a plain parent’s pod', ['plain', 'home', 'a'], ['plain'], 'plain/home'],
  ])('%s that they are in', async (_, place, parents, name) => {
    const node = makeNode();
    const home = below(node, place);
    const beside = makeNode();
    const { parent, child } = await spawnPair();
    home.join(child);
    beside.join(parent);
    node.child('other');
    node.child(`${place[0]}-2`);
    expect(protectedIn(node, { pid: child, parents })).toEqual([name]);
  });

  it('the pods of an ancestor and of a helper, each where it is', async () => {
    const node = makeNode();
    const [above, inner] = [node.child('above'), below(node, ['in', 'a', 'b'])];
    node.child('other');
    const { parent, child } = await spawnPair();
    above.join(parent);
    inner.join(child);
    expect(protectedIn(node, { pid: child })).toEqual(['above', 'in']);
    expect(protectedIn(node, { pid: parent })).toEqual(['above', 'in']);
    // A child that evictd did not start is no helper.
    expect(protectedIn(node, { pid: parent, helpers: () => [] })).toEqual(['above']);
  });

  it('no pod, when they are in the parent of the pods', async () => {
    const node = makeNode();
    node.child('plain').child('a');
    const { parent, child } = await spawnPair();
    for (const pid of [parent, child]) node.join(pid);
    expect(protectedIn(node, { pid: child, parents: ['plain'] })).toEqual([]);
  });
});

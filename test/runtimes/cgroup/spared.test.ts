import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { oomScoreAdj } from '../../../src/kernel/oom-score-adj.ts';
import { openPod } from '../../../src/runtimes/cgroup/pod-handle.ts';
import {
  CGROUPS_LOOKED_AT,
  dueForLook,
  FIRST_LOOKED_AT,
  type Listed,
  LOOK_AGE_MS,
  OTHERS_LOOKED_AT,
  PROCESSES_LOOKED_AT,
  sparedBecause,
} from '../../../src/runtimes/cgroup/spared.ts';
import { pod } from '../../support/builders.ts';
import { copyOf, fixture, temporaryDirectory } from '../support.ts';

/**
 * Processes of a fixture: a test may not have CAP_SYS_RESOURCE, without which no adjustment can be
 * made negative. 4001 is at −1000, 4002 at −999, 4003 at 0, 4004 at 1000; others are gone.
 */
const adjusted = (pid: number) => oomScoreAdj(pid, fixture('proc', 'oom-score-adj'));

const UNKILLABLE = 'holds a process with oom_score_adj -1000';
const KUBELET = 'holds the pods of a kubelet';

/** A pod's directory: the processes of each cgroup in it, by path; `.` is the pod's own. */
function podOf(cgroups: Readonly<Record<string, readonly number[]>>): string {
  const top = temporaryDirectory();
  for (const [below, pids] of Object.entries(cgroups)) {
    mkdirSync(path.join(top, below), { recursive: true });
    writeFileSync(path.join(top, below, 'cgroup.procs'), pids.map((pid) => `${pid}\n`).join(''));
  }
  return top;
}

const others = (count: number) => Array.from({ length: count }, (_, n) => 5000 + n);

describe('a pod is spared', () => {
  it.each([
    ['for its only process', { '.': [4001] }],
    ['for one of many', { '.': [4003, 4004, 4001, 4002] }],
    ['for one of a container', { '.': [], a: [4003], b: [4004, 4001] }],
    ['for one deep in it', { 'a/b/c': [4001] }],
    ['for the last that is looked at', { '.': [...others(PROCESSES_LOOKED_AT - 1), 4001] }],
  ])('%s', (_, cgroups) => {
    expect(sparedBecause(podOf(cgroups), 'pod', adjusted)).toBe(UNKILLABLE);
  });

  it.each([
    ['kubelet', 'kubepods'],
    ['0123', 'kubepods.slice'],
    ['a/b/kubelet.slice', 'kubelet-kubepods.slice'],
    ['kubelet.slice', 'kubepods'],
  ])('for a kubelet whose pods it holds: %s has %s', (name, inner) => {
    expect(sparedBecause(podOf({ [inner]: [] }), name, adjusted)).toBe(KUBELET);
  });
});

describe('a pod is not spared', () => {
  it.each([
    ['without a process', { '.': [], a: [] }],
    ['for any other adjustment', { '.': [4002, 4003, 4004] }],
    ['for processes that are gone or elsewhere', { '.': [0, 4005] }],
    ['for names that are like kubepods', { 'my-kubepods': [], 'a/kubepods': [], podkubepods: [] }],
  ])('%s', (_, cgroups) => {
    expect(sparedBecause(podOf(cgroups), 'pod', adjusted)).toBeUndefined();
  });

  it('when it is gone', () => {
    const top = podOf({ '.': [4001] });
    rmSync(top, { recursive: true });
    expect(sparedBecause(top, 'pod', adjusted)).toBeUndefined();
  });

  it('for what lies beyond the processes and cgroups that are looked at', () => {
    let looked = 0;
    const counted = (pid: number) => {
      looked += 1;
      return adjusted(pid);
    };
    const many = { '.': others(PROCESSES_LOOKED_AT - 2), a: [...others(2), 4001], b: [4001] };
    expect(sparedBecause(podOf(many), 'pod', counted)).toBeUndefined();
    expect(looked).toBe(PROCESSES_LOOKED_AT);
    looked = 0;
    const wide = others(CGROUPS_LOOKED_AT + 10).map((n) => [`${n}`, [n]] as const);
    expect(sparedBecause(podOf(Object.fromEntries(wide)), 'pod', counted)).toBeUndefined();
    expect(looked).toBeLessThan(CGROUPS_LOOKED_AT);
  });
});

describe('a pod handle', () => {
  function handleOf(name: string) {
    const node = copyOf('cgroup-v1', 'node');
    const handle = openPod(node, name);
    onTestFinished(() => handle.close());
    return { handle, directory: path.join(node, name) };
  }

  it('knows what was seen at the last look, and when that was', () => {
    const { handle, directory } = handleOf('pod-a');
    expect([handle.sparedBecause(), handle.lookedAtMs()]).toEqual([undefined, -Infinity]);
    writeFileSync(path.join(directory, 'cgroup.procs'), '4003\n4001\n');
    expect(handle.sparedBecause()).toBeUndefined();
    handle.look(3, adjusted);
    expect([handle.sparedBecause(), handle.lookedAtMs()]).toEqual([UNKILLABLE, 3]);
    writeFileSync(path.join(directory, 'cgroup.procs'), '4003\n');
    expect(handle.sparedBecause()).toBe(UNKILLABLE);
    handle.look(4, adjusted);
    expect([handle.sparedBecause(), handle.lookedAtMs()]).toEqual([undefined, 4]);
  });

  it('keeps what it knows when it cannot look', () => {
    const { handle, directory } = handleOf('pod-a');
    writeFileSync(path.join(directory, 'cgroup.procs'), '4001\n');
    handle.look(3, adjusted);
    handle.look(4, () => {
      throw new Error('EMFILE');
    });
    expect([handle.sparedBecause(), handle.lookedAtMs()]).toEqual([UNKILLABLE, 3]);
  });

  it('knows of a kubelet before anybody looks', () => {
    const node = copyOf('cgroup-v1', 'node');
    mkdirSync(path.join(node, 'pod-a', 'kubepods'));
    const handle = openPod(node, 'pod-a');
    onTestFinished(() => handle.close());
    expect(handle.sparedBecause()).toBe(KUBELET);
  });
});

describe('a listing looks into', () => {
  const LIMIT = FIRST_LOOKED_AT + OTHERS_LOOKED_AT;
  const NOW_MS = 100_000;
  /** Of a size in MiB, looked at so long ago. */
  const listed = (size: number, ageMs = Number.POSITIVE_INFINITY, isCandidate = true): Listed => ({
    pod: pod(`of-${size}`, { workingSetBytes: size * 2 ** 20 }),
    isCandidate,
    lookedAtMs: NOW_MS - ageMs,
  });
  const names = (pods: readonly Listed[]) =>
    [...dueForLook(pods, NOW_MS)].map((one) => one.pod.name);
  const sizes = (count: number) => Array.from({ length: count }, (_, n) => n + 1);

  it('the first in rank, and few others, of a thousand', () => {
    const due = names(sizes(1000).map((size) => listed(size)));
    expect(due).toEqual(['of-1000', 'of-999', 'of-998', 'of-997', 'of-1', 'of-2']);
    expect(due).toHaveLength(LIMIT);
  });

  it('those that were looked at longest ago, of the others', () => {
    const due = names([
      ...sizes(FIRST_LOOKED_AT).map((n) => listed(1000 + n, LOOK_AGE_MS)),
      ...sizes(100).map((size) => listed(size, LOOK_AGE_MS + (size % 50))),
    ]);
    expect(due.slice(0, FIRST_LOOKED_AT)).toEqual(['of-1004', 'of-1003', 'of-1002', 'of-1001']);
    expect(due.slice(FIRST_LOOKED_AT)).toEqual(['of-49', 'of-99']);
  });

  it('nobody anew before the knowledge is old, and nobody who is protected anyway', () => {
    expect(
      names([
        listed(1, LOOK_AGE_MS - 1),
        listed(2, LOOK_AGE_MS),
        listed(3, 0),
        listed(4, undefined, false),
      ]),
    ).toEqual(['of-2']);
  });

  it('all of a thousand in time', () => {
    let pods = sizes(1000).map((size) => listed(size));
    let rounds = 0;
    while (pods.some(({ lookedAtMs }) => lookedAtMs === -Infinity)) {
      const due = dueForLook(pods, NOW_MS);
      pods = pods.map((one) => (due.has(one) ? { ...one, lookedAtMs: NOW_MS } : one));
      rounds += 1;
      expect(due.size).toBeGreaterThan(0);
    }
    expect(rounds).toBe(Math.ceil(1000 / LIMIT));
  });
});

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { NEVER } from 'rxjs';
import { expect, it, onTestFinished, vi } from 'vitest';
import type { NativeAddon } from '../../../src/native/index.ts';
import type { EvictProgress, EvictRequest, Runtime } from '../../../src/ports/runtime.ts';
import { processByPid } from '../../../src/runtimes/cgroup/pid-kill.ts';
import { stopForks } from '../../../src/runtimes/cgroup/pids-max.ts';
import { compare } from '../../../src/runtimes/cgroup/twin.ts';
import { MEMORY_HIERARCHY, makeCgroup, makeTwin, type TestCgroup } from '../../support/cgroup.ts';
import { type MemoryChild, spawnMemory } from '../../support/child.ts';
import { requireAddon } from '../../support/native.ts';
import { describeWith } from '../../support/skip.ts';
import { until, within } from '../../support/wait.ts';
import { openDescriptors } from '../support.ts';
import { openRuntime } from './support.ts';

const LIMIT_MS = 10_000;

function makeNode() {
  const node = makeCgroup();
  onTestFinished(() => node.remove());
  return node;
}

function twinOf(cgroup: TestCgroup, hierarchy: 'unified' | 'pids' = 'unified') {
  const twin = makeTwin(cgroup, hierarchy);
  onTestFinished(() => twin.remove());
  return twin;
}

function evict(runtime: Runtime, rest: Partial<EvictRequest> = {}) {
  const pod = runtime.observePods().find(({ name }) => name === 'pod');
  if (pod === undefined) throw new Error('no pod');
  const seen: EvictProgress[] = [];
  const ended = new Promise<readonly EvictProgress[]>((resolve, reject) => {
    const subscription = runtime
      .evict({
        podId: pod.id,
        podName: 'pod',
        hard: true,
        gracePeriodMs: 0,
        escalations$: NEVER,
        ...rest,
      })
      .subscribe({
        next: (progress) => seen.push(progress),
        error: reject,
        complete: () => resolve(seen),
      });
    onTestFinished(() => subscription.unsubscribe());
  });
  return within(ended, LIMIT_MS, 'the eviction ends');
}

async function expectAlive(...children: readonly MemoryChild[]) {
  for (const child of children) {
    process.kill(child.pid, 0);
    await child.kill();
  }
}

/** Without how many remain, which depends on how fast the kernel is. */
const kinds = (progress: readonly EvictProgress[]) =>
  progress.map(({ kind }) => kind).filter((kind) => kind !== 'remaining');

/** A pod with a process, and one beside it that must live. */
async function makePod() {
  const node = makeNode();
  const pod = node.child('pod');
  const victim = await spawnMemory({ cgroups: [pod.path], onTerm: 'ignore' });
  const bystander = await spawnMemory({ cgroups: [node.child('web').path] });
  return { node, pod, victim, bystander };
}

describeWith({ root: true, cgroupV1: true, hybrid: true }, 'without the addon', () => {
  it('a pod is killed through a twin that holds exactly its processes', async () => {
    const { node, pod, victim, bystander } = await makePod();
    const inner = await spawnMemory({ cgroups: [pod.child('inner').path] });
    const twin = twinOf(pod);
    for (const { pid } of [victim, inner]) twin.join(pid);
    const runtime = openRuntime(node.path);
    expect(runtime.capabilities).toMatchObject({ evict: null, killing: { by: 'cgroup.kill' } });
    const before = openDescriptors();
    const progress = await evict(runtime);
    expect(kinds(progress)).toEqual(['killed', 'empty']);
    expect(progress.at(-1)).toMatchObject({ processes: 2 });
    expect(await victim.exited).toMatchObject({ signal: 'SIGKILL' });
    // What is still open may be a pipe to a child that is ending.
    await until('all is closed', () => openDescriptors() <= before, { limitMs: 5000 });
    await expectAlive(bystander);
  });

  it('where TERM is due, KILL comes at once, and that is said', async () => {
    const { node, pod, victim, bystander } = await makePod();
    twinOf(pod).join(victim.pid);
    const progress = await evict(openRuntime(node.path), { gracePeriodMs: 60_000 });
    expect(kinds(progress)).toEqual(['killed', 'obstacle', 'empty']);
    expect(progress[1]).toMatchObject({ detail: expect.stringContaining('TERM cannot be sent') });
    await expectAlive(bystander);
  });

  it('a rehearsal kills nobody', async () => {
    const { node, pod, victim, bystander } = await makePod();
    twinOf(pod).join(victim.pid);
    const runtime = openRuntime(node.path);
    const id = runtime.observePods().find(({ name }) => name === 'pod')?.id ?? '';
    const seen: string[] = [];
    runtime
      .evict({
        podId: id,
        podName: 'pod',
        hard: true,
        gracePeriodMs: 0,
        escalations$: NEVER,
        rehearsal: true,
      })
      .subscribe(({ kind }) => seen.push(kind))
      .unsubscribe();
    expect(seen).toEqual(['killed']);
    await expectAlive(victim, bystander);
  });

  it.each<[string, (at: Awaited<ReturnType<typeof makePod>>) => Promise<MemoryChild | undefined>]>([
    ['there is no twin', async () => undefined],
    [
      'the twin is empty',
      async ({ pod }) => {
        twinOf(pod);
        return undefined;
      },
    ],
    [
      'the twin lacks one of its processes',
      async ({ pod }) => {
        const other = await spawnMemory({ cgroups: [pod.path] });
        twinOf(pod).join(other.pid);
        return other;
      },
    ],
    [
      'the twin holds another process, too',
      async ({ pod, victim, bystander }) => {
        const twin = twinOf(pod);
        for (const { pid } of [victim, bystander]) twin.join(pid);
        return undefined;
      },
    ],
  ])('refuses when %s', async (_, prepare) => {
    const at = await makePod();
    const other = await prepare(at);
    expect(await evict(openRuntime(at.node.path))).toEqual([
      {
        kind: 'refused',
        reason: 'unsupported',
        detail: expect.stringMatching(/^no pidfd, and no cgroup.kill: .+unified/),
      },
    ]);
    await expectAlive(at.victim, at.bystander, ...(other === undefined ? [] : [other]));
  });

  it('refuses a pod that holds evictd, and one that is empty', async () => {
    const { node, pod, victim, bystander } = await makePod();
    twinOf(pod).join(victim.pid);
    const [refused] = await evict(openRuntime(node.path, { pid: victim.pid }));
    expect(refused).toMatchObject({ kind: 'refused', reason: 'protected' });
    await expectAlive(victim, bystander);
    const runtime = openRuntime(node.path);
    expect(await evict(runtime)).toEqual([{ kind: 'refused', reason: 'nothingToKill' }]);
  });
});

describeWith(
  { root: true, cgroupV1: true, hybrid: true },
  'by number, where that is permitted',
  () => {
    it('ends a pod, TERM first', async () => {
      const { node, victim, bystander } = await makePod();
      const runtime = openRuntime(node.path, { allowPidKill: true });
      expect(runtime.capabilities.killing.by).toBe('pid');
      const progress = await evict(runtime, { gracePeriodMs: 100 });
      expect(kinds(progress)).toEqual(['terminating', 'killed', 'empty']);
      expect(await victim.exited).toMatchObject({ signal: 'SIGKILL' });
      await expectAlive(bystander);
    });

    it.each([
      ['the twin where it is exactly the pod', false],
      ['the number beside a twin that is not', true],
    ])('kills through %s', async (_, isShared) => {
      const { node, pod, victim, bystander } = await makePod();
      const twin = twinOf(pod);
      for (const { pid } of isShared ? [victim, bystander] : [victim]) twin.join(pid);
      const byNumber = vi.spyOn(process, 'kill');
      onTestFinished(() => byNumber.mockRestore());
      const progress = await evict(openRuntime(node.path, { allowPidKill: true }));
      expect(kinds(progress)).toEqual(['killed', 'empty']);
      expect(await victim.exited).toMatchObject({ signal: 'SIGKILL' });
      expect(byNumber.mock.calls.some(([, signal]) => signal === 9)).toBe(isShared);
      await expectAlive(bystander);
    });

    it('signals nobody whose cgroup or start time is another', async () => {
      const { pod, victim, bystander } = await makePod();
      const path = pod.path.slice(MEMORY_HIERARCHY.length);
      const process_ = processByPid(victim.pid, path);
      process_.signal(0);
      expect(() => processByPid(bystander.pid, path).signal(0)).toThrow('no process of the pod');
      pod.child('inner').join(victim.pid);
      process_.signal(0);
      await bystander.kill();
      expect(() => processByPid(bystander.pid, path)).toThrow('no process of the pod');
      await victim.kill();
      expect(() => process_.signal(0)).toThrow('no process of the pod');
    });
  },
);

describeWith({ root: true, cgroupV1: true, hybrid: true }, 'compare', () => {
  it('tells who is in the twin alone, and who is in the pod alone', async () => {
    const { pod, victim, bystander } = await makePod();
    const twin = twinOf(pod);
    expect(compare(twin.path, pod.path)).toEqual({
      pids: [],
      stranger: undefined,
      missing: victim.pid,
    });
    twin.join(victim.pid);
    expect(compare(twin.path, pod.path)).toEqual({
      pids: [victim.pid],
      stranger: undefined,
      missing: undefined,
    });
    twin.join(bystander.pid);
    expect(compare(twin.path, pod.path).stranger).toBe(bystander.pid);
    await bystander.kill();
  });
});

describeWith({ root: true, cgroupV1: true, pidsV1: true }, 'stopForks', () => {
  it('sets pids.max to 0, and puts back what it was', async () => {
    const { pod, victim, bystander } = await makePod();
    const twin = twinOf(pod, 'pids');
    twin.write('pids.max', 77);
    twin.join(victim.pid);
    const before = openDescriptors();
    const restore = stopForks(twin.path, pod.path);
    expect(twin.read('pids.max').trim()).toBe('0');
    restore?.();
    expect(twin.read('pids.max').trim()).toBe('77');
    expect(openDescriptors()).toBe(before);
    await expectAlive(victim, bystander);
  });

  it('leaves alone what somebody else has set meanwhile, or had set to 0', async () => {
    const { pod, victim, bystander } = await makePod();
    const twin = twinOf(pod, 'pids');
    twin.join(victim.pid);
    const restore = stopForks(twin.path, pod.path);
    twin.write('pids.max', 5);
    restore?.();
    expect(twin.read('pids.max').trim()).toBe('5');
    twin.write('pids.max', 0);
    expect(stopForks(twin.path, pod.path)).toBeUndefined();
    await expectAlive(victim, bystander);
  });

  it('does nothing where another process is in the group, or nobody, or no group', async () => {
    const { pod, victim, bystander } = await makePod();
    const before = openDescriptors();
    expect(stopForks(`${pod.path}/none`, pod.path)).toBeUndefined();
    const twin = twinOf(pod, 'pids');
    expect(stopForks(twin.path, pod.path)).toBeUndefined();
    for (const { pid } of [victim, bystander]) twin.join(pid);
    expect(stopForks(twin.path, pod.path)).toBeUndefined();
    expect(readFileSync(`${twin.path}/pids.max`, 'utf8').trim()).toBe('max');
    expect(openDescriptors()).toBe(before);
    await expectAlive(victim, bystander);
  });
});

describeWith({ root: true, cgroupV1: true, hybrid: true, pidsV1: true }, 'with the addon', () => {
  it.each([
    ['one process is no storm', 0, 'max'],
    ['many are stopped from forking while they are killed, and no longer', 70, '0'],
  ])('%s', async (_, children, whileKilled) => {
    const { node, pod, victim, bystander } = await makePod();
    const twin = twinOf(pod, 'pids');
    twin.join(victim.pid);
    if (children > 0) await startFamily([pod.path, twin.path], children);
    const limits = new Set<string>();
    const addon = requireAddon();
    const native: NativeAddon = {
      ...addon,
      capabilities: () => addon.capabilities(),
      openPidfd: (pid) => {
        limits.add(twin.read('pids.max').trim());
        return addon.openPidfd(pid);
      },
    };
    expect(kinds(await evict(openRuntime(node.path, { native }))).at(-1)).toBe('empty');
    expect([...limits]).toEqual([whileKilled]);
    expect(twin.read('pids.max').trim()).toBe('max');
    await expectAlive(bystander);
  });

  it('what is forked meanwhile is killed through a twin that holds nobody else', async () => {
    const { node, pod, victim, bystander } = await makePod();
    const late = await spawnMemory();
    const twin = twinOf(pod);
    const addon = requireAddon();
    const native: NativeAddon = {
      ...addon,
      capabilities: () => addon.capabilities(),
      openPidfd: (pid) => {
        // As if it had just been forked; no pidfd can be had of it.
        if (pid === late.pid) throw Object.assign(new Error('denied'), { code: 'EPERM' });
        twin.join(late.pid);
        pod.join(late.pid);
        return addon.openPidfd(pid);
      },
    };
    expect(kinds(await evict(openRuntime(node.path, { native }))).at(-1)).toBe('empty');
    expect(await late.exited).toMatchObject({ signal: 'SIGKILL' });
    expect(await victim.exited).toMatchObject({ signal: 'SIGKILL' });
    await expectAlive(bystander);
  });
});

/** A shell and its children in some cgroups; whoever is left ends with them. */
async function startFamily(cgroups: readonly string[], children: number): Promise<void> {
  const join = cgroups.map((cgroup) => `echo $$ > ${cgroup}/cgroup.procs`).join('\n');
  const script = `${join}\nfor _ in $(seq ${children}); do sleep 1000 & done\necho done\nwait`;
  const shell = spawn('bash', ['-c', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  await within(once(shell.stdout, 'data'), LIMIT_MS, 'the family is there');
}

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { defer, NEVER, Subject } from 'rxjs';
import { expect, it, onTestFinished } from 'vitest';
import type { NativeAddon } from '../../../src/native/index.ts';
import type { EvictProgress, EvictRequest, Runtime } from '../../../src/ports/runtime.ts';
import type { CgroupRuntimeInputs } from '../../../src/runtimes/cgroup/runtime.ts';
import { MEMORY_HIERARCHY, makeCgroup } from '../../support/cgroup.ts';
import { spawnMemory } from '../../support/child.ts';
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

/** With the addon, unless it is given as null. */
function runtimeOf(
  directory: string,
  {
    native = requireAddon(),
    ...rest
  }: Partial<Omit<CgroupRuntimeInputs, 'native'>> & { native?: NativeAddon | null } = {},
): Runtime {
  return openRuntime(directory, { ...rest, native: native ?? undefined });
}

/** The request for a pod as it is seen now. */
function requestFor(runtime: Runtime, name: string, rest: Partial<EvictRequest> = {}) {
  const pod = runtime.observePods().find((one) => one.name === name);
  if (pod === undefined) throw new Error(`no pod ${name}`);
  return {
    podId: pod.id,
    podName: name,
    hard: true,
    gracePeriodMs: 0,
    escalations$: NEVER,
    ...rest,
  };
}

/** All that an eviction says, to its end. */
function progressOf(runtime: Runtime, request: EvictRequest): Promise<readonly EvictProgress[]> {
  const seen: EvictProgress[] = [];
  const ended = new Promise<readonly EvictProgress[]>((resolve, reject) => {
    const subscription = runtime.evict(request).subscribe({
      next: (progress) => seen.push(progress),
      error: reject,
      complete: () => resolve(seen),
    });
    onTestFinished(() => subscription.unsubscribe());
  });
  return within(ended, LIMIT_MS, 'the eviction ends');
}

/** A pod of one process that ends by TERM. */
async function makePod() {
  const node = makeNode();
  const child = await spawnMemory({ cgroups: [node.child('pod').path] });
  onTestFinished(() => void child.kill());
  return { child, runtime: runtimeOf(node.path) };
}

/** Without how many remain, which depends on how fast the kernel is. */
const kinds = (progress: readonly EvictProgress[]) =>
  progress.map(({ kind }) => kind).filter((kind) => kind !== 'remaining');
const GRACES = [0, 1000] as const;

describeWith({ root: true, cgroupV1: true }, 'evicting a real cgroup', () => {
  it('kills every process below it, and nobody beside it', async () => {
    const node = makeNode();
    const [pod, other] = [node.child('pod'), node.child('other')];
    const inner = pod.child('a').child('b');
    const victims = await Promise.all([
      spawnMemory({ cgroups: [pod.path], onTerm: 'ignore' }),
      spawnMemory({ cgroups: [inner.path], onTerm: 'ignore' }),
    ]);
    const bystander = await spawnMemory({ cgroups: [other.path] });
    const runtime = runtimeOf(node.path);
    const before = openDescriptors();
    const progress = await progressOf(runtime, requestFor(runtime, 'pod'));
    expect(kinds(progress)).toEqual(['killed', 'empty']);
    expect(progress.at(-1)).toMatchObject({ processes: 2, chargedBytes: expect.any(Number) });
    const ends = await Promise.all(victims.map(({ exited }) => exited));
    expect(ends.map(({ signal }) => signal)).toEqual(['SIGKILL', 'SIGKILL']);
    process.kill(bystander.pid, 0);
    // The pods' own, and no pidfd.
    expect(openDescriptors() - before).toBeLessThanOrEqual(6);
    await bystander.kill();
  });

  it('sends TERM first where there is a grace', async () => {
    const node = makeNode();
    const pod = node.child('pod');
    const polite = await spawnMemory({ cgroups: [pod.path] });
    const runtime = runtimeOf(node.path);
    const request = requestFor(runtime, 'pod', { gracePeriodMs: 60_000 });
    const progress = await progressOf(runtime, request);
    expect(kinds(progress)).toEqual(['terminating', 'empty']);
    expect(await polite.exited).toMatchObject({ signal: 'SIGTERM' });
  });

  it('KILL follows at the end of the grace, or of a shorter one that is told meanwhile', async () => {
    const node = makeNode();
    const pod = node.child('pod');
    const stubborn = await spawnMemory({ cgroups: [pod.path], onTerm: 'ignore' });
    const escalations$ = new Subject<number>();
    const runtime = runtimeOf(node.path);
    const request = requestFor(runtime, 'pod', { gracePeriodMs: 60_000, escalations$ });
    const ended = progressOf(runtime, request);
    await within(stubborn.terminated, LIMIT_MS, 'TERM comes');
    // A longer one changes nothing.
    escalations$.next(120_000);
    escalations$.next(0);
    expect(kinds(await ended)).toEqual(['terminating', 'killed', 'empty']);
    expect(await stubborn.exited).toMatchObject({ signal: 'SIGKILL' });
  });

  it('gets no KILL after its grace where that is forbidden by then', async () => {
    const node = makeNode();
    const pod = node.child('pod');
    const stubborn = await spawnMemory({ cgroups: [pod.path], onTerm: 'ignore' });
    const escalations$ = new Subject<number>();
    const runtime = runtimeOf(node.path);
    const request = requestFor(runtime, 'pod', {
      gracePeriodMs: 60_000,
      escalations$,
      forbidden: () => 'dry run',
    });
    const ended = progressOf(runtime, request);
    await within(stubborn.terminated, LIMIT_MS, 'TERM comes');
    escalations$.next(0);
    expect((await ended).at(-1)).toEqual({
      kind: 'refused',
      reason: 'protected',
      detail: 'in its grace: dry run',
    });
    process.kill(stubborn.pid, 0);
    await stubborn.kill();
  });

  it('is not asked before a KILL at once', async () => {
    const node = makeNode();
    const child = await spawnMemory({ cgroups: [node.child('pod').path] });
    const runtime = runtimeOf(node.path);
    const progress = await progressOf(
      runtime,
      requestFor(runtime, 'pod', { forbidden: () => 'no' }),
    );
    expect(progress.at(-1)).toMatchObject({ kind: 'empty' });
    expect(await child.exited).toMatchObject({ signal: 'SIGKILL' });
  });

  it('what joins after the KILL is killed too', async () => {
    const node = makeNode();
    const pod = node.child('pod');
    const first = await spawnMemory({ cgroups: [pod.path], onTerm: 'ignore' });
    const second = await spawnMemory({ onTerm: 'ignore' });
    const runtime = runtimeOf(node.path);
    const request = requestFor(runtime, 'pod', { gracePeriodMs: 500 });
    const ended = progressOf(runtime, request);
    await within(first.terminated, LIMIT_MS, 'TERM comes');
    pod.join(second.pid);
    const progress = await ended;
    expect(progress.at(-1)).toMatchObject({ kind: 'empty', processes: 2 });
    expect(await second.exited).toMatchObject({ signal: 'SIGKILL' });
  });

  it.each(GRACES)(
    'a cgroup made again between decision and kill is spared (grace %d)',
    async (gracePeriodMs) => {
      const node = makeNode();
      const first = node.child('pod');
      const runtime = runtimeOf(node.path);
      const request = requestFor(runtime, 'pod', { gracePeriodMs });
      await first.remove();
      const second = node.child('pod');
      const child = await spawnMemory({ cgroups: [second.path], onTerm: 'ignore' });
      const refused = [{ kind: 'refused', reason: 'podReplaced' }];
      // The held directory is another than the one of that name.
      expect(await progressOf(runtime, request)).toEqual(refused);
      // And once the new one is known, the old id is none of its.
      runtime.observePods();
      expect(await progressOf(runtime, request)).toEqual(refused);
      process.kill(child.pid, 0);
      await child.kill();
    },
  );

  it.each(GRACES)('one that is gone is refused (grace %d)', async (gracePeriodMs) => {
    const node = makeNode();
    const pod = node.child('pod');
    const runtime = runtimeOf(node.path);
    const request = requestFor(runtime, 'pod', { gracePeriodMs });
    await pod.remove();
    const refused = [{ kind: 'refused', reason: 'podGone' }];
    expect(await progressOf(runtime, request)).toEqual(refused);
    runtime.observePods();
    expect(await progressOf(runtime, request)).toEqual(refused);
  });

  it.each(GRACES)('one without processes has nothing to kill (grace %d)', async (gracePeriodMs) => {
    const node = makeNode();
    node.child('pod');
    const runtime = runtimeOf(node.path);
    const request = requestFor(runtime, 'pod', { gracePeriodMs });
    expect(await progressOf(runtime, request)).toEqual([
      { kind: 'refused', reason: 'nothingToKill' },
    ]);
  });

  it.each([
    ['a pod', Buffer.from('p\xff', 'latin1')],
    ['a cgroup below a pod', Buffer.from('pod/\xfe', 'latin1')],
  ])('finds %s whose name is no UTF-8', async (_, name) => {
    const node = makeNode();
    const directory = Buffer.concat([Buffer.from(`${node.path}/`), name]);
    const processes = Buffer.concat([directory, Buffer.from('/cgroup.procs')]);
    mkdirSync(directory, { recursive: true });
    const victim = await spawnMemory();
    writeFileSync(processes, String(victim.pid));
    const runtime = runtimeOf(node.path);
    const [pod] = runtime.observePods();
    expect(pod?.protectedBecause).toBeUndefined();
    const progress = await progressOf(runtime, requestFor(runtime, pod?.name ?? ''));
    expect(progress.at(-1)).toMatchObject({ kind: 'empty', processes: 1 });
    // The node's own clean-up goes by text.
    rmdirSync(directory);
  });

  it('keeps to the directory that it began with, also when its name is made again meanwhile', async () => {
    const node = makeNode();
    const pod = node.child('pod');
    const victim = await spawnMemory({ cgroups: [pod.path], onTerm: 'ignore' });
    const runtime = runtimeOf(node.path);
    const escalations$ = new Subject<number>();
    const request = requestFor(runtime, 'pod', { gracePeriodMs: 60_000, escalations$ });
    const progress: string[] = [];
    const running = runtime.evict(request).subscribe(({ kind }) => progress.push(kind));
    onTestFinished(() => running.unsubscribe());
    // The victim leaves, its pod is made again, and the runtime looks: what was held is let go.
    writeFileSync(path.join(node.child('elsewhere').path, 'cgroup.procs'), String(victim.pid));
    await pod.remove();
    const innocent = await spawnMemory({ cgroups: [node.child('pod').path] });
    runtime.observePods();
    node.child('another');
    runtime.observePods();
    escalations$.next(0);
    await until('the eviction ends', () => progress.at(-1) === 'empty', { limitMs: LIMIT_MS });
    process.kill(innocent.pid, 0);
    process.kill(victim.pid, 0);
    expect(progress).not.toContain('refused');
  });

  it('one that was found empty is no candidate until a process joins it', async () => {
    const node = makeNode();
    const pod = node.child('pod');
    const runtime = runtimeOf(node.path);
    const protection = () => runtime.observePods().map((seen) => seen.protectedBecause);
    expect(protection()).toEqual(['holds no process']);
    await progressOf(runtime, requestFor(runtime, 'pod'));
    expect(protection()).toEqual(['holds no process']);
    await spawnMemory({ cgroups: [pod.child('inner').path] });
    expect(protection()).toEqual([undefined]);
  });

  it.each(GRACES)(
    'one that holds evictd or an ancestor is refused whole (grace %d)',
    async (gracePeriodMs) => {
      const node = makeNode();
      const pod = node.child('pod');
      const inner = pod.child('inner');
      const evictd = await spawnMemory({ cgroups: [inner.path] });
      const other = await spawnMemory({ cgroups: [pod.path] });
      const runtime = runtimeOf(node.path, { pid: evictd.pid });
      const request = requestFor(runtime, 'pod', { gracePeriodMs });
      expect(await progressOf(runtime, request)).toEqual([
        {
          kind: 'refused',
          reason: 'protected',
          detail: `pid ${evictd.pid} is evictd, an ancestor or a helper of it`,
        },
      ]);
      for (const { pid } of [evictd, other]) process.kill(pid, 0);
      await Promise.all([evictd.kill(), other.kill()]);
    },
  );

  it('that none of its processes can be signalled is an error', async () => {
    const node = makeNode();
    const pod = node.child('pod');
    const child = await spawnMemory({ cgroups: [pod.path] });
    const denied = Object.assign(new Error('denied'), { code: 'EPERM' });
    const native: NativeAddon = {
      ...requireAddon(),
      capabilities: () => requireAddon().capabilities(),
      openPidfd: () => {
        throw denied;
      },
    };
    const runtime = runtimeOf(node.path, { native });
    const ended = progressOf(runtime, requestFor(runtime, 'pod'));
    await expect(ended).rejects.toThrow(`pid ${child.pid}: EPERM`);
    process.kill(child.pid, 0);
    await child.kill();
  });

  it('a process that left between listing and opening is not signalled', async () => {
    const node = makeNode();
    const pod = node.child('pod');
    const leaver = await spawnMemory({ cgroups: [pod.path], onTerm: 'ignore' });
    const native: NativeAddon = {
      ...requireAddon(),
      capabilities: () => requireAddon().capabilities(),
      // As if its number were another process's by now.
      openPidfd: (pid) => {
        writeFileSync(`${MEMORY_HIERARCHY}/cgroup.procs`, String(pid));
        return requireAddon().openPidfd(pid);
      },
    };
    const runtime = runtimeOf(node.path, { native });
    const progress = await progressOf(runtime, requestFor(runtime, 'pod'));
    expect(progress).toEqual([{ kind: 'refused', reason: 'nothingToKill' }]);
    process.kill(leaver.pid, 0);
    await leaver.kill();
  });

  it('fails at once when those that are left cannot be signalled', async () => {
    const node = makeNode();
    const pod = node.child('pod');
    const [polite, refusing] = await Promise.all([
      spawnMemory({ cgroups: [pod.path] }),
      spawnMemory({ cgroups: [pod.path] }),
    ]);
    const native: NativeAddon = {
      ...requireAddon(),
      capabilities: () => requireAddon().capabilities(),
      openPidfd: (pid) => {
        if (pid === refusing.pid) throw Object.assign(new Error('denied'), { code: 'EPERM' });
        return requireAddon().openPidfd(pid);
      },
    };
    const runtime = runtimeOf(node.path, { native });
    const ended = progressOf(runtime, requestFor(runtime, 'pod'));
    await expect(ended).rejects.toThrow(`left cannot be signalled: pid ${refusing.pid}: EPERM`);
    expect(await polite.exited).toMatchObject({ signal: 'SIGKILL' });
    process.kill(refusing.pid, 0);
    await refusing.kill();
  });

  it.each(GRACES)('one with a process at −1000 is refused whole (grace %d)', async (grace) => {
    const node = makeNode();
    const pod = node.child('pod');
    const plain = await spawnMemory({ cgroups: [pod.path] });
    const exempt = await spawnMemory({ cgroups: [pod.child('inner').path] });
    // A sandbox may not set a negative one.
    const oomScoreAdj = (pid: number) => (pid === exempt.pid ? -1000 : -999);
    const runtime = runtimeOf(node.path, { oomScoreAdj });
    const request = requestFor(runtime, 'pod', { gracePeriodMs: grace });
    expect(await progressOf(runtime, request)).toEqual([
      {
        kind: 'refused',
        reason: 'protected',
        detail: `pid ${exempt.pid} has the oom_score_adj -1000`,
      },
    ]);
    for (const child of [plain, exempt]) {
      process.kill(child.pid, 0);
      await child.kill();
    }
  });

  it('spares a process outside of the pod that has only a thread in it', async () => {
    const node = makeNode();
    const pod = node.child('pod');
    const child = await spawnMemory({ cgroups: [pod.path] });
    const program = [
      'import sys, threading',
      'def join():',
      '    open(sys.argv[1] + "/tasks", "w").write(str(threading.get_native_id()))',
      '    print("in", flush=True)',
      '    threading.Event().wait()',
      'threading.Thread(target=join, daemon=True).start()',
      'sys.stdin.read()',
    ].join('\n');
    const stranger = spawn('python3', ['-c', program, pod.path], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    onTestFinished(() => void stranger.kill('SIGKILL'));
    const joined = new Promise((resolve) => stranger.stdout.once('data', resolve));
    await within(joined, LIMIT_MS, 'its thread joins');
    expect(pod.pids()).toContain(stranger.pid);
    const runtime = runtimeOf(node.path);
    const progress = await progressOf(runtime, requestFor(runtime, 'pod'));
    expect(progress.at(-1)).toMatchObject({ kind: 'empty', processes: 1 });
    expect((await child.exited).signal).toBe('SIGKILL');
    process.kill(stranger.pid as number, 0);
    // Alone it is nothing to kill.
    const again = await progressOf(runtime, requestFor(runtime, 'pod'));
    expect(again).toEqual([{ kind: 'refused', reason: 'nothingToKill' }]);
    process.kill(stranger.pid as number, 0);
    stranger.stdin.end();
  });

  it('leaves the signal to whoever stops the pod, once it is certain that it may be ended', async () => {
    const { child, runtime } = await makePod();
    const stop$ = new Subject<void>();
    let asked = 0;
    const stopping$ = defer(() => {
      asked += 1;
      return stop$;
    });
    const request = requestFor(runtime, 'pod', { gracePeriodMs: 60_000, stop$: stopping$ });
    const progress = progressOf(runtime, request);
    expect(asked).toBe(1);
    // It lives: it would not answer.
    await child.grow(4096);
    stop$.next();
    expect(await child.exited).toMatchObject({ signal: 'SIGTERM' });
    expect(kinds(await progress)).toEqual(['terminating', 'empty']);
  });

  it('kills at the end of the grace whoever was to stop it', async () => {
    const { child, runtime } = await makePod();
    const request = requestFor(runtime, 'pod', { gracePeriodMs: 100, stop$: NEVER });
    expect(kinds(await progressOf(runtime, request))).toEqual(['terminating', 'killed', 'empty']);
    expect(await child.exited).toMatchObject({ signal: 'SIGKILL' });
  });

  it('asks nobody to stop a pod that is left alone', async () => {
    const node = makeNode();
    const runtime = runtimeOf(node.path, { oomScoreAdj: () => -1000 });
    const child = await spawnMemory({ cgroups: [node.child('pod').path] });
    let asked = 0;
    const stop$ = defer(() => {
      asked += 1;
      return NEVER;
    });
    const gone = requestFor(runtime, 'pod', { gracePeriodMs: 100, stop$, podId: 'gone@1' });
    const spared = requestFor(runtime, 'pod', { gracePeriodMs: 100, stop$ });
    expect(kinds(await progressOf(runtime, gone))).toEqual(['refused']);
    expect(kinds(await progressOf(runtime, spared))).toEqual(['refused']);
    expect(asked).toBe(0);
    process.kill(child.pid, 0);
    await child.kill();
  });

  it('a rehearsal sends nothing', async () => {
    const node = makeNode();
    const pod = node.child('pod');
    const child = await spawnMemory({ cgroups: [pod.path] });
    const runtime = runtimeOf(node.path);
    const seen: EvictProgress[] = [];
    runtime
      .evict(requestFor(runtime, 'pod', { rehearsal: true }))
      .subscribe((progress) => seen.push(progress))
      .unsubscribe();
    expect(kinds(seen)).toEqual(['killed']);
    process.kill(child.pid, 0);
    await child.kill();
  });

  it('a rehearsal goes to a limited number of processes, and a kill to all', async () => {
    const node = makeNode();
    const pod = node.child('pod');
    const opened: number[] = [];
    const native = {
      ...requireAddon(),
      openPidfd: (pid: number) => {
        opened.push(pid);
        return requireAddon().openPidfd(pid);
      },
    };
    const script = 'echo $$ > "$0"; for i in {1..40}; do sleep 1000 & done; echo ready; wait';
    const shell = spawn('bash', ['-c', script, `${pod.path}/cgroup.procs`]);
    await within(once(shell.stdout, 'data'), LIMIT_MS, 'all sleep');
    const runtime = runtimeOf(node.path, { native });
    runtime
      .evict(requestFor(runtime, 'pod', { rehearsal: true }))
      .subscribe()
      .unsubscribe();
    expect(opened).toHaveLength(16);
    const progress = await progressOf(runtime, requestFor(runtime, 'pod'));
    expect(progress.at(-1)).toMatchObject({ kind: 'empty', processes: 41 });
  });

  it('that is given up leaves no descriptor and no timer', async () => {
    const node = makeNode();
    const pod = node.child('pod');
    const child = await spawnMemory({ cgroups: [pod.path], onTerm: 'ignore' });
    const runtime = runtimeOf(node.path);
    const request = requestFor(runtime, 'pod', { gracePeriodMs: 60_000 });
    const before = openDescriptors();
    for (let n = 0; n < 20; n += 1) runtime.evict(request).subscribe().unsubscribe();
    await within(child.terminated, LIMIT_MS, 'TERM comes');
    await new Promise((resolve) => setImmediate(resolve));
    expect(openDescriptors()).toBe(before);
    process.kill(child.pid, 0);
    await child.kill();
  });
});

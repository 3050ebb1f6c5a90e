/** What every runtime owes to evictd, shown on real pods: each passes the same suite. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { NEVER } from 'rxjs';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { PodObservation } from '../../src/core/pod.ts';
import type { Reclaimer } from '../../src/ports/reclaimer.ts';
import type { EvictProgress, EvictRequest, Runtime } from '../../src/ports/runtime.ts';
import { catchesUsr1, pidsBelow } from '../e2e/support/left-over.ts';
import { untilAnswer } from '../e2e/support/until-answer.ts';
import { MI, makeNode, type TestNode } from '../kernel/support/node.ts';
import { MEMORY_HIERARCHY } from '../support/cgroup.ts';
import { until, within } from '../support/wait.ts';

const LIMIT_MS = 30_000;

/** How much a pod holds that is told to. */
const HELD_BYTES = 30 * MI;

/** What each step and each shell may take beside, and what the kernel charges in batches. */
const SLACK_BYTES = 24 * MI;

const HOLD = `dd if=/dev/zero bs=${HELD_BYTES} count=1 2>/dev/null | sleep 1000000`;

/** Ends by TERM, with what it holds. */
const YIELDS = `trap 'exit 0' TERM; ${HOLD} & until ! kill -0 $!; do wait; done`;

/** Stays until KILL. */
const STAYS = `trap '' TERM; ${HOLD}`;

/** A runtime and the real pods that it is asked of. */
export interface ContractHost {
  /** The runtime for a node as the daemon has it; it is closed with the test. */
  open(node: TestNode): Promise<Runtime>;
  /** Runs a shell script as a pod within a node. */
  run(node: TestNode, name: string, script: string): Promise<ContractPod>;
  /** Ends and removes what was made within a node. */
  clear(node: TestNode): Promise<void>;
  /** What runs the pods, where that is more than the kernel. */
  readonly daemon: ContractDaemon | undefined;
  /** The same runtime asked for what is dead, where there is such a thing; closed with the test. */
  openReclaimer(node: TestNode): Promise<ContractReclaimer | undefined>;
}

export interface ContractPod {
  /** As evictd calls it. */
  readonly name: string;
  /** Its cgroup, relative to the root of the memory hierarchy. */
  readonly cgroup: string;
}

export interface ContractReclaimer {
  readonly reclaimer: Reclaimer;
  /** The containers of a pod that runs, by id. */
  containersOf(pod: ContractPod): Promise<readonly string[]>;
}

/** A process that can be held up, behind a socket. */
export interface ContractDaemon {
  pause(): void;
  resume(): void;
  /** The runtime for a node, by a socket that is not there before it is made. */
  openAbsent(node: TestNode): Promise<{ readonly runtime: Runtime; readonly appear: () => void }>;
}

/** @param host what `beforeAll` has started by the time that a test runs, if anything */
export function runtimeContract(host: () => ContractHost): void {
  const scene = () => {
    const node = makeNode(512 * MI);
    onTestFinished(() => host().clear(node));
    return { node, run: (name: string, script: string) => host().run(node, name, script) };
  };

  describe('as every runtime', () => {
    it('lists the pods, with what their cgroups say at the moment', async () => {
      const { node, run } = scene();
      const runtime = await host().open(node);
      const pod = await run('web', `until [ "$go" ]; do trap go=1 USR1; sleep 0.02; done; ${HOLD}`);
      const seen = await listed(runtime, pod);
      expect(seen).toMatchObject({ priority: 0, protectedBecause: undefined });
      expect(seen.workingSetBytes).toBeLessThan(HELD_BYTES);
      expect(runtime.podsTrouble()).toBeUndefined();
      for (const pid of pidsBelow(pod.cgroup)) if (catchesUsr1(pid)) process.kill(pid, 'SIGUSR1');
      await until('it holds its memory', () => usageBytes(pod) >= HELD_BYTES, {
        limitMs: LIMIT_MS,
      });
      const [full] = runtime.observePods();
      expect(full?.workingSetBytes).toBeGreaterThanOrEqual(HELD_BYTES - MI);
      expect(full?.workingSetBytes).toBeLessThan(HELD_BYTES + SLACK_BYTES);
      expect(runtime.observePods({ pids: true })[0]?.pids).toBeGreaterThanOrEqual(2);
    });

    it('ends a pod at once, and nobody else', async () => {
      const { node, run } = scene();
      const runtime = await host().open(node);
      const [web, leak] = [await run('web', HOLD), await run('leak', STAYS)];
      const seen = await listed(runtime, leak);
      await listed(runtime, web);
      expect(runtime.capabilities).toMatchObject({ evict: null, killing: { by: 'pidfd' } });
      expect(rehearsed(runtime, seen)).toEqual(['killed']);
      expect(pidsBelow(leak.cgroup).length).toBeGreaterThan(0);

      const progress = await progressOf(runtime, requestFor(seen));
      expect(kindsOf(progress)).toEqual(['killed', 'empty']);
      expect(pidsBelow(leak.cgroup)).toEqual([]);
      expect(pidsBelow(web.cgroup).length).toBeGreaterThan(0);
      // Its id is of no other pod, whatever becomes of its name.
      const [again] = await progressOf(runtime, requestFor(seen));
      expect(again).toMatchObject({ kind: 'refused' });
      const isListed = () => runtime.observePods().some(isAlive(leak));
      await until('it is no pod any more', () => !isListed(), { limitMs: LIMIT_MS });
      expect(runtime.observePods().some(isAlive(web))).toBe(true);
    });

    it('ends a pod with a grace, by TERM where that is enough', async () => {
      const { node, run } = scene();
      const runtime = await host().open(node);
      const [yielding, staying] = [await run('yields', YIELDS), await run('stays', STAYS)];
      await until('both hold their memory', () => node.cgroup.usageBytes() > 2 * HELD_BYTES, {
        limitMs: LIMIT_MS,
      });
      const soft = { gracePeriodMs: 20_000, hard: true } as const;
      const first = await progressOf(runtime, requestFor(await listed(runtime, yielding), soft));
      expect(kindsOf(first)).toEqual(['terminating', 'empty']);

      const startMs = performance.now();
      const short = { gracePeriodMs: 700, hard: true } as const;
      const second = await progressOf(runtime, requestFor(await listed(runtime, staying), short));
      expect(kindsOf(second)).toEqual(['terminating', 'killed', 'empty']);
      expect(performance.now() - startMs).toBeGreaterThanOrEqual(700);
      expect([...pidsBelow(yielding.cgroup), ...pidsBelow(staying.cgroup)]).toEqual([]);
    });

    it('leaves a pod alone that is another by now', async () => {
      const { node, run } = scene();
      const runtime = await host().open(node);
      const web = await run('web', HOLD);
      const seen = await listed(runtime, web);
      const other = { ...seen, id: seen.id.replace(/@.*$/, '@1') };
      const progress = await progressOf(runtime, requestFor(other));
      expect(progress).toEqual([{ kind: 'refused', reason: 'podReplaced' }]);
      expect(pidsBelow(web.cgroup).length).toBeGreaterThan(0);
    });
  });
}

/** @param host what has a daemon */
export function askedRuntimeContract(host: () => ContractHost): void {
  const daemonOf = () => host().daemon as ContractDaemon;

  describe('as every runtime that is asked', () => {
    it('holds to the last listing while it does not answer, and ends pods all the same', async () => {
      const node = makeNode(512 * MI);
      onTestFinished(() => host().clear(node));
      const runtime = await host().open(node);
      const leak = await host().run(node, 'leak', STAYS);
      const seen = await listed(runtime, leak);
      expect(runtime.podsTrouble()).toBeUndefined();
      onTestFinished(() => daemonOf().resume());
      daemonOf().pause();
      await until('that is told', () => runtime.podsTrouble() !== undefined, { limitMs: LIMIT_MS });
      expect(runtime.observePods().map(({ name }) => name)).toEqual([leak.name]);

      const startMs = performance.now();
      const progress = await progressOf(runtime, requestFor(seen));
      expect(kindsOf(progress)).toEqual(['killed', 'empty']);
      expect(performance.now() - startMs).toBeLessThan(2000);
      expect(pidsBelow(leak.cgroup)).toEqual([]);

      daemonOf().resume();
      await until('it is back', () => runtime.podsTrouble() === undefined, { limitMs: LIMIT_MS });
      await until('it knows of the end', () => runtime.observePods().length === 0, {
        limitMs: LIMIT_MS,
      });
    });

    it('gives back what is dead, and nothing that runs', async () => {
      const node = makeNode(512 * MI);
      onTestFinished(() => host().clear(node));
      const runtime = await host().open(node);
      const opened = await host().openReclaimer(node);
      const { reclaimer, containersOf } = opened as ContractReclaimer;
      const web = await host().run(node, 'web', HOLD);
      const leak = await host().run(node, 'leak', HOLD);
      const seen = await listed(runtime, leak);
      await listed(runtime, web);
      const [[own = ''], [other = '']] = [await containersOf(leak), await containersOf(web)];
      const isDead = async (id: string) =>
        (await reclaimer.listDead()).containers.some((one) => one.id === id);
      expect([await isDead(own), await isDead(other)]).toEqual([false, false]);
      for (const id of [own, other]) {
        expect((await reclaimer.removeContainer(id)).kind).toMatch(/^(inUse|failed)$/);
      }
      await progressOf(runtime, requestFor(seen));
      await untilAnswer('it is listed as dead', () => isDead(own), LIMIT_MS);
      expect(await isDead(other)).toBe(false);
      expect(await reclaimer.removeContainer(own)).toEqual({ kind: 'removed' });
      expect(await reclaimer.removeContainer(own)).toEqual({ kind: 'gone' });
      expect(await isDead(own)).toBe(false);
      expect(pidsBelow(web.cgroup).length).toBeGreaterThan(0);
    });

    it('need not be there at the start', async () => {
      const node = makeNode(512 * MI);
      onTestFinished(() => host().clear(node));
      const web = await host().run(node, 'web', HOLD);
      const { runtime, appear } = await daemonOf().openAbsent(node);
      expect(runtime.podsTrouble()).toBe('the runtime has not answered yet');
      const isRefused = () => runtime.podsTrouble() !== 'the runtime has not answered yet';
      await until('what is missing is told', isRefused, { limitMs: LIMIT_MS });
      expect(runtime.observePods()).toEqual([]);
      appear();
      expect(await listed(runtime, web)).toMatchObject({ name: web.name });
      expect(runtime.podsTrouble()).toBeUndefined();
    });
  });
}

/** The pod as the runtime sees it, once it does and somebody is in it. */
async function listed(runtime: Runtime, pod: ContractPod): Promise<PodObservation> {
  let seen: PodObservation | undefined;
  const look = () => {
    seen = runtime.observePods().find(isAlive(pod));
    return seen !== undefined;
  };
  const describe = () => JSON.stringify([runtime.observePods(), runtime.podsTrouble()]);
  await until(`${pod.name} is listed`, look, { limitMs: LIMIT_MS, intervalMs: 20, describe });
  return seen as PodObservation;
}

function isAlive({ name }: ContractPod): (seen: PodObservation) => boolean {
  return (seen) => seen.name === name && seen.protectedBecause === undefined;
}

function requestFor({ id, name }: PodObservation, rest: Partial<EvictRequest> = {}): EvictRequest {
  return { podId: id, podName: name, hard: true, gracePeriodMs: 0, escalations$: NEVER, ...rest };
}

function progressOf(runtime: Runtime, request: EvictRequest): Promise<readonly EvictProgress[]> {
  const seen: EvictProgress[] = [];
  const ended = new Promise<readonly EvictProgress[]>((resolve, reject) => {
    const ending = runtime.evict(request).subscribe({
      next: (progress) => seen.push(progress),
      error: reject,
      complete: () => resolve(seen),
    });
    onTestFinished(() => ending.unsubscribe());
  });
  return within(ended, LIMIT_MS, 'the eviction ends');
}

/** What a rehearsal comes to, which ends before the turn does. */
function rehearsed(runtime: Runtime, pod: PodObservation): readonly string[] {
  const seen: EvictProgress[] = [];
  runtime
    .evict(requestFor(pod, { rehearsal: true }))
    .subscribe((progress) => seen.push(progress))
    .unsubscribe();
  return kindsOf(seen);
}

/** Without how many remain, which depends on how fast the kernel is. */
function kindsOf(progress: readonly EvictProgress[]): readonly string[] {
  return progress.map(({ kind }) => kind).filter((kind) => kind !== 'remaining');
}

function usageBytes({ cgroup }: ContractPod): number {
  const file = path.join(MEMORY_HIERARCHY, cgroup, 'memory.usage_in_bytes');
  return Number(readFileSync(file, 'utf8'));
}

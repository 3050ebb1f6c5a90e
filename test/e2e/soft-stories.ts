/** A soft eviction on a runtime: who sends which signal, and by whose clock. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { privateDirectory } from '../kernel/support/daemon.ts';
import { until } from '../support/wait.ts';
import { isAlive, isGone, stage } from './leak-stories.ts';
import { QUIT_IMAGE } from './support/image.ts';
import { commandLine, end, pidsBelow } from './support/left-over.ts';
import type { MadePod, RuntimeHost } from './support/runtime-host.ts';
import { untilAnswer } from './support/until-answer.ts';

const LIMIT_MS = 30_000;
const GRACE_MS = 3000;

/** How long a KILL of the runtime's own is awaited after the grace: it counts whole seconds from when it was asked. */
const RUNTIMES_KILL_MS = 2500;

/** How soon a runtime that does not answer is done without, and how late a clock may be, ms. */
const ANSWER_MS = 1000;
const LATE_MS = 500;

const SOFT = [
  '--eviction-hard=memory.available<20Mi',
  '--eviction-soft=memory.available<150Mi',
  '--eviction-soft-grace-period=memory.available=300ms',
  '--eviction-max-pod-grace-period=3',
];

/** Ends by saying which signal it was sent. */
const SAYS_SIGNAL = 'trap "exit 41" QUIT; trap "exit 42" TERM';

/** Stays. */
const STAYS = 'trap "" QUIT TERM';

/** What of a runtime hangs. */
type Stuck = 'the runtime' | 'the shim';

/**
 * @param host what `beforeAll` has started by the time that a test runs
 * @param hasShims whether what signals a pod is a process of its own beside the runtime
 */
export function softStories(host: () => RuntimeHost, { hasShims = true } = {}): void {
  const evicted = async (traps: string, { stuck }: { readonly stuck?: Stuck | undefined } = {}) => {
    const { holds, leaks, watch, knows } = stage(host());
    const web = await holds('web', 20);
    const pod = await leaks('leak', { mib: 380, traps, image: QUIT_IMAGE });
    const daemon = await watch(SOFT);
    await knows(daemon, [web, pod]);
    const hangs = stuck === 'the shim' ? shimOf(pod) : host().pid();
    if (stuck !== undefined) {
      onTestFinished(() => end(hangs, 'SIGCONT'));
      end(hangs, 'SIGSTOP');
    }
    pod.begin();
    const [eviction] = await daemon.ended(1, LIMIT_MS);
    expect(pidsBelow(pod.cgroup)).toEqual([]);
    end(hangs, 'SIGCONT');
    expect(eviction).toMatchObject({ pod: pod.name, outcome: 'evicted', hard: false });
    await isGone(host(), pod);
    await isAlive(host(), web);
    const { firstSignalMs, killedMs, emptyMs } = eviction?.timing ?? {};
    const since = (atMs: number | null | undefined) =>
      typeof atMs === 'number' ? atMs - (firstSignalMs ?? Number.NaN) : undefined;
    return {
      said: daemon.said(),
      exitCode: await exitCodeOf(pod),
      killedMs: since(killedMs),
      emptyMs: since(emptyMs),
    };
  };
  const exitCodeOf = (pod: MadePod): Promise<number> =>
    untilAnswer('the runtime has an exit code', () => host().exitCode(pod), LIMIT_MS);

  it('has the runtime stop a pod for a soft threshold, with the signal that its image wants', async () => {
    const { exitCode, killedMs, said } = await evicted(SAYS_SIGNAL);
    expect([exitCode, killedMs]).toEqual([41, undefined]);
    expect(said.filter((line) => line.includes('TERM is sent'))).toEqual([]);
  });

  it.each<Stuck>(['the runtime', ...(hasShims ? (['the shim'] as const) : [])])(
    'sends TERM itself where %s does not answer',
    async (stuck) => {
      const { exitCode, killedMs, emptyMs, said } = await evicted(SAYS_SIGNAL, { stuck });
      expect([exitCode, killedMs]).toEqual([42, undefined]);
      expect(emptyMs).toBeLessThan(ANSWER_MS + LATE_MS);
      expect(said).toContain('the runtime does not stop a pod: TERM is sent in its place');
    },
  );

  it.each<[string, Stuck | undefined]>([
    ['a runtime that answers', undefined],
    ['one that does not', 'the runtime'],
  ])('sends KILL by its own clock at the end of the grace, with %s', async (_, stuck) => {
    const { exitCode, killedMs } = await evicted(STAYS, { stuck });
    expect(exitCode).toBe(137);
    expect(killedMs).toBeGreaterThanOrEqual(GRACE_MS - 1);
    expect(killedMs).toBeLessThan(GRACE_MS + LATE_MS);
  });

  it('leaves a pod alive that is protected by a reload in its grace', async () => {
    const { holds, leaks, watch, knows } = stage(host());
    const web = await holds('web', 20);
    const traps = 'trap "echo got >/got" QUIT; trap "" TERM';
    const pod = await leaks('leak', { mib: 380, traps, image: QUIT_IMAGE });
    const { file, protect } = configuration();
    const daemon = await watch([`--config=${file}`, '--poll-interval=1s']);
    await knows(daemon, [web, pod]);
    const [shell = Number.NaN] = pidsBelow(pod.cgroup).filter(isShell);
    pod.begin();
    await until('it has its stop signal', () => hasGot(shell), { limitMs: LIMIT_MS });
    protect();
    process.kill(daemon.pid, 'SIGHUP');
    await daemon.line('configuration reloaded');
    const { reason } = await daemon.line('eviction not carried out');
    expect(reason).toMatch(/^protected: in its grace/);
    const dueMs = performance.now() + RUNTIMES_KILL_MS;
    await until('the KILL of a runtime would be over', () => performance.now() > dueMs, {
      limitMs: LIMIT_MS,
      intervalMs: 100,
    });
    expect(pidsBelow(pod.cgroup)).toContain(shell);
    // Podman has called it `stopping` since.
    if (hasShims) await isAlive(host(), pod);
  });
}

/** evictd's settings for a soft eviction, and what has them protect the pod that leaks. */
function configuration() {
  const file = path.join(privateDirectory(), 'evictd.yaml');
  const write = (more: object): void =>
    writeFileSync(
      file,
      JSON.stringify({
        apiVersion: 'evictd.dev/v1alpha1',
        kind: 'EvictdConfiguration',
        evictionHard: { 'memory.available': '20Mi' },
        evictionSoft: { 'memory.available': '150Mi' },
        evictionSoftGracePeriod: { 'memory.available': '300ms' },
        evictionMaxPodGracePeriod: GRACE_MS / 1000,
        ...more,
      }),
    );
  write({});
  return { file, protect: () => write({ pods: [{ name: 'leak', protected: true }] }) };
}

/** Whether the shell of a pod has heard of its stop signal, by the file that it makes then. */
function hasGot(pid: number): boolean {
  return existsSync(`/proc/${pid}/root/got`);
}

/** The shell of a pod, not its pause process. */
function isShell(pid: number): boolean {
  return commandLine(pid)[0] === 'sh';
}

/** The process that holds a pod for its runtime. */
function shimOf({ cgroup }: MadePod): number {
  const parents = pidsBelow(cgroup).map((pid) =>
    Number(/^PPid:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]),
  );
  const shim = parents.find((pid) => commandLine(pid)[0]?.includes('containerd-shim'));
  if (shim === undefined) throw new Error(`no shim above ${cgroup}`);
  return shim;
}

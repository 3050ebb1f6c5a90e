/** What holds on every runtime that runs pods, each on its own daemon and the real kernel. */
import { readFileSync } from 'node:fs';
import { expect, it, onTestFinished } from 'vitest';
import { type Daemon, startDaemon } from '../kernel/support/daemon.ts';
import { MI, makeNode, type TestNode } from '../kernel/support/node.ts';
import { count, report } from '../support/counts.ts';
import { until } from '../support/wait.ts';
import { catchesUsr1, commandLine, pidsBelow } from './support/left-over.ts';
import type { MadePod, RunOptions, RuntimeHost } from './support/runtime-host.ts';
import { untilAnswer } from './support/until-answer.ts';

/** How long what is waited for may take: all of it is due within seconds. */
const LIMIT_MS = 30_000;

const HARD = ['--eviction-hard=memory.available<100Mi'];

/** How closely the end of what a test itself ends is watched. */
const WATCHED = { limitMs: LIMIT_MS, intervalMs: 1 } as const;

/** Pods are told anew with each poll. */
const OFTEN = '--poll-interval=1s';

/** Takes memory once it gets SIGUSR1, and stays as long as it does. */
const LEAK = `trap go=1 USR1; until [ "$go" ]; do sleep 0.02; done
hog "$0" "$1" "$2" & until ! kill -0 $!; do wait; done`;

/** A node within which a host runs pods, and what tests do there. */
export interface Stage {
  readonly node: TestNode;
  run(name: string, command: readonly string[], options?: RunOptions): Promise<MadePod>;
  /** A pod that holds so many MiB. */
  holds(name: string, mib: number, options?: RunOptions): Promise<MadePod>;
  /** A pod that takes so many MiB, in steps of so many and so many seconds apart, once it is let. */
  leaks(name: string, options: LeakOptions): Promise<Leak>;
  /** evictd, that watches the node. */
  watch(args?: readonly string[]): Promise<Daemon>;
  /** Waits until evictd knows these pods, and no other. */
  knows(daemon: Daemon, pods: readonly MadePod[]): Promise<void>;
}

export interface LeakOptions extends RunOptions {
  readonly mib: number;
  readonly stepMib?: number;
  readonly pauseSeconds?: number;
  /** What its shell does at signals. */
  readonly traps?: string;
}

export interface Leak extends MadePod {
  begin(): void;
}

/** What has evictd ask a host for its pods. */
export function flagsOf({ kind, socketPath }: RuntimeHost): readonly string[] {
  return [`--runtime=${kind}`, `--runtime-endpoint=unix://${socketPath}`];
}

/** All that is made on it goes with the test. */
export function stage(host: RuntimeHost, limitBytes = 512 * MI): Stage {
  const node = makeNode(limitBytes);
  onTestFinished(() => host.clear(node));
  const run: Stage['run'] = (...args) => host.run(node, ...args);
  return {
    node,
    run,
    holds: async (name, mib, options) => {
      const pod = await run(name, ['hog', String(mib)], options);
      await until(`${name} holds ${mib} MiB`, () => usageBytes(pod) >= mib * MI, {
        limitMs: LIMIT_MS,
      });
      return pod;
    },
    leaks: async (name, { mib, stepMib = 20, pauseSeconds = 0, traps = '', ...options }) => {
      const script = `${traps}\n${LEAK}`;
      const figures = [mib, stepMib, pauseSeconds].map(String);
      const pod = await run(name, ['sh', '-c', script, ...figures], options);
      const isShell = (pid: number): boolean => commandLine(pid).includes(script);
      const shell = () => pidsBelow(pod.cgroup).find((pid) => isShell(pid) && catchesUsr1(pid));
      await until(`${name} is ready to leak`, () => shell() !== undefined, { limitMs: LIMIT_MS });
      return { ...pod, begin: () => process.kill(shell() as number, 'SIGUSR1') };
    },
    watch: (args = HARD) => {
      const pace = args.some((arg) => arg.startsWith('--poll-interval')) ? [] : [OFTEN];
      return startDaemon({ node: node.path, args: [...flagsOf(host), ...pace, ...args] });
    },
    knows: async (daemon, pods) => {
      const names = pods.map(({ name }) => name).sort();
      await daemon.statusWhen(`the pods are ${names.join(', ')}`, (status) => {
        const known = status.pods.map(({ name }) => name).sort();
        return JSON.stringify(known) === JSON.stringify(names);
      });
    },
  };
}

/** Waits for what both the kernel and the runtime say of a pod that was ended. */
export async function isGone(host: RuntimeHost, pod: MadePod): Promise<void> {
  await until(`${pod.name} has no process`, () => pidsBelow(pod.cgroup).length === 0, {
    limitMs: LIMIT_MS,
  });
  await untilAnswer(
    `the runtime agrees that ${pod.name} is gone`,
    async () => !(await host.isUp(pod)),
    LIMIT_MS,
  );
}

export async function isAlive(host: RuntimeHost, pod: MadePod): Promise<void> {
  expect([pod.name, pidsBelow(pod.cgroup).length > 0, await host.isUp(pod)]).toEqual([
    pod.name,
    true,
    true,
  ]);
}

function usageBytes({ cgroup }: MadePod): number {
  return Number(readFileSync(`/sys/fs/cgroup/memory/${cgroup}/memory.usage_in_bytes`, 'utf8'));
}

/** @param host what `beforeAll` has started by the time that a test runs */
export function leakStories(host: () => RuntimeHost): void {
  it('has the pod that leaks evicted on an event of the kernel, and no other', async () => {
    const { holds, leaks, watch, knows } = stage(host());
    const innocent = [await holds('web', 40), await holds('cache', 40)];
    const leak = await leaks('leak', { mib: 600, pauseSeconds: 0.05 });
    const daemon = await watch();
    await knows(daemon, [...innocent, leak]);
    const before = (await daemon.status()).counters.kernelWakeups;
    leak.begin();
    const [eviction] = await daemon.ended(1, LIMIT_MS);
    expect(eviction).toMatchObject({ pod: leak.name, outcome: 'evicted', hard: true });
    const { counters, thresholds, lostRaces } = await daemon.status();
    expect(thresholds[0]?.notification.path).toBe('memcg-threshold');
    expect(counters.kernelWakeups).toBeGreaterThan(before);
    expect(lostRaces).toEqual([]);
    await isGone(host(), leak);
    for (const pod of innocent) await isAlive(host(), pod);
    await knows(daemon, innocent);
    expect((await daemon.ended(1)).length).toBe(1);
  });

  it('evicts a pod that leaks from its first moment, in place of those that are known for longer', async () => {
    const { holds, run, watch, knows } = stage(host());
    const innocent = [await holds('web', 60), await holds('cache', 60)];
    const daemon = await watch();
    await knows(daemon, innocent);
    const leak = await run('leak', ['hog', '600', '20', '0.02']);
    const evictions = await daemon.ended(1, LIMIT_MS);
    expect(evictions.map(({ pod, outcome }) => [pod, outcome])).toEqual([[leak.name, 'evicted']]);
    await isGone(host(), leak);
    for (const pod of innocent) await isAlive(host(), pod);
  });

  it('has all processes dead beside the runtime’s own stop', async () => {
    const own: number[] = [];
    const signalled: number[] = [];
    const dead: number[] = [];
    for (let round = 0; round < count(1, 10); round += 1) {
      const { leaks, watch, knows, node } = stage(host());
      const begun = async (leak: Leak): Promise<Leak> => {
        leak.begin();
        await until('it holds its memory', () => usageBytes(leak) >= 300 * MI, {
          limitMs: LIMIT_MS,
        });
        return leak;
      };
      const control = await begun(await leaks(`control-${round}`, { mib: 300 }));
      const startedMs = performance.now();
      const stopping = host().stop(control);
      const isEmpty = () => pidsBelow(control.cgroup).length === 0;
      own.push((await until('it is dead', isEmpty, WATCHED)) - startedMs);
      await stopping;

      const labels = { 'evictd.priority': '-10' };
      const victim = await begun(await leaks(`victim-${round}`, { mib: 300, labels }));
      const mib = Math.ceil((400 * MI - node.cgroup.usageBytes()) / MI);
      const other = await leaks(`other-${round}`, { mib });
      const daemon = await watch(['--eviction-hard=memory.available<150Mi']);
      await knows(daemon, [victim, other]);
      other.begin();
      const [eviction] = await daemon.ended(1, LIMIT_MS);
      expect(eviction).toMatchObject({ pod: victim.name, outcome: 'evicted' });
      signalled.push(eviction?.timing.killedMs ?? Number.NaN);
      dead.push(eviction?.timing.emptyMs ?? Number.NaN);
      await isGone(host(), victim);
      await isAlive(host(), other);
      await daemon.stop();
    }
    report(
      `evictd: KILL ${shown(signalled)} and the last process dead ${shown(dead)} after the reading; ` +
        `the runtime's own stop alone: ${shown(own)}, ` +
        `${(median(own) / median(dead)).toFixed(1)} times as long (median of ${own.length})`,
    );
  });

  it('goes by what labels say of priority and protection', async () => {
    const { holds, leaks, watch, knows, node } = stage(host());
    const safe = await holds('safe', 150, {
      labels: { 'evictd.priority': '-100', 'evictd.protected': 'true' },
    });
    const low = await holds('low', 80, { labels: { 'evictd.priority': '-10' } });
    const plain = await holds('plain', 60);
    const mib = Math.ceil((440 * MI - node.cgroup.usageBytes()) / MI);
    const high = await leaks('high', { mib, labels: { 'evictd.priority': '1000' } });
    const daemon = await watch();
    await knows(daemon, [safe, low, plain, high]);
    high.begin();
    const evictions = await daemon.ended(1, LIMIT_MS);
    expect(evictions.map(({ pod, outcome }) => [pod, outcome])).toEqual([[low.name, 'evicted']]);
    await isGone(host(), low);
    for (const pod of [safe, plain, high]) await isAlive(host(), pod);
  });
}

function median(values: readonly number[]): number {
  return [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN;
}

function shown(values: readonly number[]): string {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  return `${median(values).toFixed(1)} ms (${least.toFixed(1)} to ${most.toFixed(1)})`;
}

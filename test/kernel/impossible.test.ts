import { expect, it } from 'vitest';
import { count, report } from '../support/counts.ts';
import { describeWith } from '../support/skip.ts';
import { within } from '../support/wait.ts';
import { cpuMs } from './support/cpu.ts';
import { runEvictd, startDaemon } from './support/daemon.ts';
import { fill, MI, makeNode, oomKills, type TestPod } from './support/node.ts';

const SPAN_MS = count(3000, 10_000);
const CPU_SHARE_LIMIT = 0.02;
/** How long after a change it may take until it is acted on: pods are ranked again each second. */
const ACT_LIMIT_MS = 1500;
const ARGS = ['--eviction-hard', 'memory.available<64Mi'];

const isImpossible = ({ msg, reason }: Readonly<Record<string, unknown>>) =>
  msg === 'pressure, but no pod may be evicted' && reason === 'EvictionImpossible';

/** Under pressure, and nobody may be evicted. */
async function startImpossible(args: readonly string[] = []) {
  const node = makeNode(512 * MI);
  const guarded = ['--pod', 'web=protected', '--pod', 'db=protected'];
  const daemon = await startDaemon({ node: node.path, args: [...ARGS, ...guarded, ...args] });
  const web = await node.bystander();
  const db = await node.pod('db').spawn();
  await fill(node.cgroup, db, 460 * MI);
  await daemon.line('pressure, but no pod may be evicted', isImpossible);
  return { node, daemon, web, db };
}

/** Puts a process into a pod; when it was killed, ms after that. */
async function killedIn(pod: TestPod): Promise<number> {
  const startMs = performance.now();
  const shell = pod.shell('sleep 1000');
  expect(await within(shell.exited, 5000, 'it is evicted')).toBe('SIGKILL');
  return performance.now() - startMs;
}

describeWith({ root: true, cgroupV1: true }, 'an eviction that is impossible', () => {
  it('C34: is said once in a burst, costs little, and ends with the next change', async () => {
    const { node, daemon, web } = await startImpossible();
    const empty = node.pod('empty');
    const before = cpuMs(daemon.pid);
    // The time in which nothing is to happen, not a wait for something.
    await new Promise((resolve) => setTimeout(resolve, SPAN_MS));
    const share = (cpuMs(daemon.pid) - before) / SPAN_MS;
    report(`CPU ${(100 * share).toFixed(2)} % of a core while impossible, ${SPAN_MS / 1000} s`);
    expect(share).toBeLessThan(CPU_SHARE_LIMIT);
    expect(daemon.lines.filter(isImpossible)).toMatchObject([
      { level: 'warn', pods: 2, protectedPods: 2, passedOverPods: 0 },
    ]);
    const { impossible } = await daemon.status();
    expect(impossible).toMatchObject([{ reason: 'EvictionImpossible', pods: 2, protectedPods: 2 }]);
    expect(impossible[0]?.available).toBeLessThan(64 * MI);
    const { stdout } = await runEvictd(['status', '--socket', daemon.socketPath]);
    expect(stdout).toMatch(/NOBODY TO EVICT\n.*\n\S+ +memory\.available +\S+ +2 +2 +0 +0\n/);

    report(
      `a pod that is new is evicted after ${(await expectAct(node.pod('new'))).toFixed(0)} ms`,
    );
    await daemon.ended(1);
    report(`a first process is evicted after ${(await expectAct(empty)).toFixed(0)} ms`);
    await daemon.ended(2);
    // All of that is one burst.
    expect(daemon.lines.filter(isImpossible)).toHaveLength(1);
    expect((await daemon.status()).impossible).toHaveLength(1);
    web.expectAlive();
    await daemon.stop();
  });

  it('ends for a leak that is new, before the kernel does it: far above all that is armed', async () => {
    const node = makeNode(256 * MI);
    const daemon = await startDaemon({
      node: node.path,
      args: ['--eviction-hard', 'memory.available<128Mi', '--pod', 'guarded=protected'],
    });
    const guarded = await node.pod('guarded').spawn();
    await fill(node.cgroup, guarded, 150 * MI);
    await daemon.line('pressure, but no pod may be evicted', isImpossible);
    // Right after a ranking that found nobody: the next by time alone is a second away.
    // It may go as soon as it is there: nobody else may.
    const leak = await node
      .pod('leak')
      .spawn()
      .catch(() => undefined);
    await leak?.grow(16 * MI).catch(() => undefined);
    await leak?.grow(16 * MI).catch(() => undefined);
    expect((await daemon.ended(1))[0]).toMatchObject({ pod: 'leak', outcome: 'evicted' });
    expect(oomKills(node.cgroup)).toBe(0);
    process.kill(guarded.pid, 0);
    await daemon.stop();
  });

  it('is said again in the next burst', async () => {
    const transition = ['--eviction-pressure-transition-period', '1500ms'];
    const { node, daemon, web, db } = await startImpossible(transition);
    await db.shrink();
    // Longer than the gap between two bursts.
    await daemon.line('node condition cleared');
    await fill(node.cgroup, db, 460 * MI);
    const { impossible } = await daemon.statusWhen(
      'it is said again',
      (status) => status.impossible.length === 2,
    );
    expect(impossible).toMatchObject([{ pods: 2 }, { pods: 2 }]);
    expect(daemon.lines.filter(isImpossible)).toHaveLength(2);
    web.expectAlive();
    await daemon.stop();
  });
});

/** It may take until the pods are ranked again. */
async function expectAct(pod: TestPod): Promise<number> {
  const ms = await killedIn(pod);
  expect(ms).toBeLessThan(ACT_LIMIT_MS);
  return ms;
}

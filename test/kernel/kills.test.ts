import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import type { MemoryChild } from '../support/child.ts';
import { report } from '../support/counts.ts';
import { describeWith } from '../support/skip.ts';
import { until, within } from '../support/wait.ts';
import { descriptorsOf, expectCalm } from './support/calm.ts';
import {
  type Daemon,
  type DaemonOptions,
  MAIN,
  privateDirectory,
  startDaemon,
} from './support/daemon.ts';
import {
  death,
  fill,
  isAlive,
  MI,
  makeNode,
  oomKills,
  type TestPod,
  twinOf,
} from './support/node.ts';

const HARD_64 = ['--eviction-hard', 'memory.available<64Mi', '--pod', 'web=priority:1000'];
const NOBODY = 65_534;
const WITHOUT_ADDON = ['env', 'EVICTD_NATIVE_PATH=none'];
const LIMIT_MS = 15_000;

/** The daemon, and how many descriptors it has once it has looked at all pods. */
async function startCalm(options: DaemonOptions) {
  const daemon = await startDaemon(options);
  await daemon.status();
  // One for the answer that may still be open, one for a timer that is being set.
  return { daemon, descriptors: descriptorsOf(daemon.pid) + 2 };
}

const outcomesOf = async (daemon: Daemon, count: number) =>
  (await daemon.ended(count)).map(({ pod, outcome }) => [pod, outcome]);

const supportFile = (name: string) => fileURLToPath(new URL(`support/${name}`, import.meta.url));

/** Starts a Python program and waits until it says `word`; it ends with the test. */
async function startPython(name: string, args: readonly string[], word: string) {
  const child = spawn('python3', [supportFile(name), ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const says = listener(child);
  await says(word);
  const end = async () => {
    const exited = new Promise((resolve) => child.once('exit', resolve));
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.stdin.end();
    await within(exited, LIMIT_MS, `${name} ends`);
  };
  return { says, end };
}

function listener({ stdout }: ChildProcess) {
  const said = new Set<string>();
  if (stdout === null) throw new Error('no standard output');
  createInterface({ input: stdout }).on('line', (line) => said.add(line));
  return (word: string) => until(`it says ${word}`, () => said.has(word), { limitMs: LIMIT_MS });
}

/** A pod whose only process has lost its main thread, and that takes bytes when it is told. */
async function startDeadLeader(pod: TestPod) {
  const child = spawn('python3', [supportFile('dead-leader.py'), pod.cgroup.path], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  child.stdin.on('error', () => undefined);
  const exited = once(child, 'exit').then(([, signal]) => signal as NodeJS.Signals | null);
  await listener(child)('alone');
  return { exited, take: (bytes: number) => void child.stdin.write(`${bytes}\n`) };
}

describeWith({ root: true, cgroupV1: true }, 'a kill that goes wrong', () => {
  it.each([
    ['hard', HARD_64],
    [
      'soft',
      [
        '--eviction-hard=memory.available<8Mi',
        '--eviction-soft=memory.available<64Mi',
        '--eviction-soft-grace-period=memory.available=500ms',
        '--eviction-max-pod-grace-period=1',
        '--pod=web=priority:1000',
      ],
    ],
  ] as const)(
    'a process whose main thread has ended is evicted all the same (%s)',
    async (_, args) => {
      const node = makeNode(256 * MI);
      const web = await node.bystander();
      const leak = await startDeadLeader(node.pod('leak'));
      const { daemon, descriptors } = await startCalm({ node: node.path, args });
      leak.take(200 * MI);
      // The kernel sends no signal to a leader that is gone; its end is that of the process.
      await within(leak.exited, LIMIT_MS, 'the leak dies');
      expect(await outcomesOf(daemon, 1)).toEqual([['leak', 'evicted']]);
      web.expectAlive();
      expect(oomKills(node.cgroup)).toBe(0);
      await expectCalm(daemon, descriptors);
      expect((await daemon.status()).evictions).toHaveLength(1);
    },
  );

  it('a process that answers EPERM: failed, said why, and the next one at once', async () => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const foreign = await node.pod('foreign').spawn({ uid: NOBODY });
    const leak = await node.pod('leak').spawn();
    await foreign.grow(60 * MI);
    const { daemon, descriptors } = await startCalm({
      node: node.path,
      args: [...HARD_64, '--pod', 'foreign=priority:-5'],
      wrapper: ['setpriv', '--bounding-set=-kill'],
    });
    await fill(node.cgroup, leak, 200 * MI);
    expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
    const [first, second] = await daemon.ended(2);
    expect(first).toMatchObject({
      pod: 'foreign',
      outcome: 'failed',
      reason: expect.stringContaining(`pid ${foreign.pid}: EPERM`),
    });
    expect(second).toMatchObject({ pod: 'leak', outcome: 'evicted' });
    // Not after a deadline.
    const apartMs = Date.parse(second?.decidedAt ?? '') - Date.parse(first?.decidedAt ?? '');
    expect(apartMs).toBeLessThan(100);
    const line = await daemon.line('eviction failed');
    expect(line).toMatchObject({ level: 'error', reason: expect.stringContaining('EPERM') });
    const { pods } = await daemon.status();
    expect(pods.find(({ name }) => name === 'foreign')?.passedOver).toBe(true);
    expect(isAlive(foreign.pid)).toBe(true);
    web.expectAlive();
    await expectCalm(daemon, descriptors);
    await daemon.stop();
  });

  it('one of two answers EPERM: the other dies, then it has failed', async () => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const pod = node.pod('mixed');
    const foreign = await pod.spawn({ uid: NOBODY });
    const own = await pod.spawn();
    const { daemon, descriptors } = await startCalm({
      node: node.path,
      args: HARD_64,
      wrapper: ['setpriv', '--bounding-set=-kill'],
    });
    await fill(node.cgroup, own, 200 * MI);
    expect(await death(own)).toMatchObject({ signal: 'SIGKILL' });
    const [eviction] = await daemon.ended(1);
    expect(eviction).toMatchObject({
      pod: 'mixed',
      outcome: 'failed',
      reason: expect.stringContaining('what is left cannot be signalled'),
    });
    expect(eviction?.timing.endedMs).toBeLessThan(2000);
    expect(isAlive(foreign.pid)).toBe(true);
    web.expectAlive();
    await expectCalm(daemon, descriptors);
    await daemon.stop();
  });

  it('a victim that stays a zombie is gone', async () => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const pod = node.pod('zombie');
    const filler = await node.pod('filler').spawn();
    // The parent leaves the pod, and never waits for its child.
    const parent = pod.shell(
      `"$1" -e 'globalThis.held = Buffer.alloc(130 << 20, 1); console.log(process.pid); setInterval(() => {}, 1e6)' &
       echo $$ > "$2/cgroup.procs"
       exec sleep 1000`,
      [process.execPath, node.cgroup.child('outside').path],
    );
    const victim = Number(await parent.said);
    const { daemon, descriptors } = await startCalm({ node: node.path, args: HARD_64 });
    await fill(node.cgroup, filler, 200 * MI);
    expect(await outcomesOf(daemon, 1)).toEqual([['zombie', 'evicted']]);
    expect(readFileSync(`/proc/${victim}/stat`, 'utf8')).toMatch(/\) Z /);
    expect(isAlive(filler.pid) && isAlive(parent.pid)).toBe(true);
    web.expectAlive();
    await expectCalm(daemon, descriptors);
    await daemon.stop();
  });
});

const FUSE = {
  root: true,
  cgroupV1: true,
  programs: ['python3'],
  files: ['/dev/fuse'],
} as const;

/** Has a child wait for what never comes: once it is killed it stays in state D, until the test ends. */
async function makeStuck(child: MemoryChild): Promise<void> {
  const directory = privateDirectory();
  const server = await startPython('stuck-file.py', [directory], 'mounted');
  onTestFinished(async () => {
    await server.end();
    spawnSync('umount', ['-l', directory], { stdio: 'ignore' });
  });
  void child.read(`${directory}/file`).catch(() => undefined);
  await server.says('read');
}

describeWith(FUSE, 'a victim in state D', () => {
  it('is timed out, and the two leakers beside it go before the limit, one after the other', async () => {
    const node = makeNode(512 * MI);
    const web = await node.bystander();
    const stuck = await node.pod('stuck').spawn();
    const pods = [node.pod('leak-a'), node.pod('leak-b')];
    const leaks = await Promise.all(pods.map((pod) => pod.spawn()));
    await stuck.grow(260 * MI);
    await makeStuck(stuck);
    const { daemon, descriptors } = await startCalm({ node: node.path, args: HARD_64 });
    const leakOn = async (leak: MemoryChild) => {
      for (;;) {
        const startedMs = performance.now();
        await leak.grow(MI);
        await until('10 ms have passed', () => performance.now() >= startedMs + 10, {
          limitMs: LIMIT_MS,
        });
      }
    };
    await Promise.all(leaks.map((leak) => leakOn(leak).catch(() => undefined)));
    for (const leak of leaks) expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
    const evictions = await daemon.ended(3);
    expect(evictions.map((one) => [one.pod, one.outcome]).toSorted()).toEqual([
      ['leak-a', 'evicted'],
      ['leak-b', 'evicted'],
      ['stuck', 'timedOut'],
    ]);
    expect(evictions[0]).toMatchObject({ pod: 'stuck' });
    expect(node.cgroup.read('memory.failcnt').trim()).toBe('0');
    for (const pod of pods) expect(oomKills(pod.cgroup)).toBe(0);
    expect(readFileSync(`/proc/${stuck.pid}/stat`, 'utf8')).toMatch(/\) D /);
    const status = await daemon.status();
    expect(status.pods.find(({ name }) => name === 'stuck')?.passedOver).toBe(true);
    web.expectAlive();
    await expectCalm(daemon, descriptors);
    await daemon.stop();
  });
});

const STORM = {
  root: true,
  cgroupV1: true,
  hybrid: true,
  pidsV1: true,
  programs: ['python3'],
} as const;
const STORM_WIDTH = 8;
/** The storm ends by itself, whatever becomes of the test. */
const STORM_SECONDS = 40;

describeWith(STORM, 'a fork storm inside the victim', () => {
  it.each<[string, 'pids' | 'unified' | undefined]>([
    ['rounds follow at once', undefined],
    ['its forks are stopped by pids.max, which is put back', 'pids'],
    ['cgroup.kill reaches what is forked meanwhile', 'unified'],
  ])('%s', async (_, hierarchy) => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const pod = node.pod('storm');
    const twin = hierarchy === undefined ? undefined : twinOf(pod.cgroup, hierarchy);
    const leak = await node.pod('leak').spawn();
    const { daemon, descriptors } = await startCalm({
      node: node.path,
      args: [...HARD_64, '--pod', 'storm=priority:-5'],
    });
    const cgroups = [...(twin === undefined ? [] : [twin.path]), pod.cgroup.path];
    const args = [String(STORM_WIDTH), String(STORM_SECONDS), ...cgroups];
    const storm = await startPython('fork-storm.py', args, 'storm');
    onTestFinished(storm.end);
    // So much that the end of the storm alone, of some 20 MiB, does not relieve the node.
    await fill(node.cgroup, leak, 240 * MI);
    const evictions = await daemon.ended(2);
    report(`${evictions[0]?.processes} processes, ended after ${evictions[0]?.timing.emptyMs} ms`);
    expect(evictions.map((one) => [one.pod, one.outcome])).toEqual([
      ['storm', 'evicted'],
      ['leak', 'evicted'],
    ]);
    expect(pod.cgroup.pids()).toEqual([]);
    if (hierarchy === 'pids') expect(twin?.read('pids.max').trim()).toBe('max');
    web.expectAlive();
    await expectCalm(daemon, descriptors);
    await daemon.stop();
  });
});

describeWith({ root: true, cgroupV1: true, hybrid: true }, 'without the addon', () => {
  it('kills through the twin, at once where TERM would be due', async () => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const pod = node.pod('leak');
    const leak = await pod.spawn({ onTerm: 'ignore', beside: [twinOf(pod.cgroup, 'unified')] });
    const { daemon, descriptors } = await startCalm({
      node: node.path,
      notify: false,
      wrapper: WITHOUT_ADDON,
      args: [...HARD_64, '--hard-eviction-grace-period-seconds', '30'],
    });
    expect((await daemon.status()).killing.by).toBe('cgroup.kill');
    await fill(node.cgroup, leak, 210 * MI);
    expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
    expect(await outcomesOf(daemon, 1)).toEqual([['leak', 'evicted']]);
    web.expectAlive();
    await expectCalm(daemon, descriptors);
    await daemon.stop();
  });

  it('evicts nobody whose twin is not exactly the pod', async () => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const pod = node.pod('leak');
    const beside = [twinOf(pod.cgroup, 'unified')];
    const leak = await pod.spawn({ beside });
    // Elsewhere in memory, and yet in the twin.
    const foreign = await node.pod('foreign').spawn({ beside });
    const { daemon, descriptors } = await startCalm({
      node: node.path,
      notify: false,
      wrapper: WITHOUT_ADDON,
      args: HARD_64,
    });
    await fill(node.cgroup, leak, 210 * MI);
    await daemon.line('pressure, but no pod may be evicted');
    const [eviction] = await daemon.ended(1);
    expect(eviction).toMatchObject({
      pod: 'leak',
      outcome: 'refused',
      reason: expect.stringMatching(`^unsupported: .+ holds pid ${foreign.pid}`),
    });
    expect(isAlive(leak.pid) && isAlive(foreign.pid)).toBe(true);
    web.expectAlive();
    await expectCalm(daemon, descriptors);
    await daemon.stop();
  });

  it('--allow-pid-kill sends TERM first, and KILL after the grace', async () => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const leak = await node.pod('leak').spawn({ onTerm: 'ignore' });
    const { daemon, descriptors } = await startCalm({
      node: node.path,
      notify: false,
      wrapper: WITHOUT_ADDON,
      args: [...HARD_64, '--allow-pid-kill', '--hard-eviction-grace-period-seconds', '1'],
    });
    expect((await daemon.status()).killing.by).toBe('pid');
    await fill(node.cgroup, leak, 210 * MI);
    await within(leak.terminated, LIMIT_MS, 'TERM comes');
    expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
    expect(await outcomesOf(daemon, 1)).toEqual([['leak', 'evicted']]);
    web.expectAlive();
    await expectCalm(daemon, descriptors);
    await daemon.stop();
  });
});

const NAMESPACE = {
  root: true,
  cgroupV1: true,
  programs: ['unshare'],
  files: ['/proc/sys/kernel/ns_last_pid'],
} as const;

describeWith(NAMESPACE, 'a number that another process has by the time of the KILL', () => {
  it.each(['pidfd', 'pid'])('by %s: that process lives', async (by) => {
    const node = makeNode(256 * MI);
    for (const name of ['pod', 'web']) node.pod(name);
    const script = supportFile('reused-pid.mjs');
    const child = spawn(
      'unshare',
      [
        ...['--pid', '--fork', '--kill-child', '--mount-proc'],
        ...[process.execPath, script, path.dirname(MAIN), node.path, by],
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    onTestFinished(() => void child.kill('SIGKILL'));
    const [text] = (await within(once(child.stdout, 'data'), LIMIT_MS, 'it is over')) as [Buffer];
    const { progress, ...rest } = JSON.parse(text.toString());
    expect(rest).toEqual({ reused: true, isAlive: true, other: 'SIGKILL' });
    expect(progress.slice(-2)).toEqual(['killed', 'empty']);
  });
});

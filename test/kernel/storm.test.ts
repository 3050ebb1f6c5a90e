import { readdirSync, readlinkSync } from 'node:fs';
import { firstValueFrom, Subject } from 'rxjs';
import { expect, it, onTestFinished } from 'vitest';
import { resolveValue, type Threshold } from '../../src/core/threshold.ts';
import type { MemoryReading } from '../../src/ports/readings.ts';
import { memcgThresholds } from '../../src/sources/memcg-threshold.ts';
import { reading, softThreshold, threshold, value } from '../support/builders.ts';
import { makeCgroup } from '../support/cgroup.ts';
import { count, report } from '../support/counts.ts';
import { requireAddon } from '../support/native.ts';
import { describeWith } from '../support/skip.ts';
import { until, within } from '../support/wait.ts';
import { cpuMs } from './support/cpu.ts';
import { type Daemon, startDaemon } from './support/daemon.ts';
import { expectOneAtATime } from './support/evictions.ts';
import { death, fill, MI, makeNode, nodeOf, type TestNode, type TestPod } from './support/node.ts';
import { lagMeter, type Swing, startSwing } from './support/swing.ts';

const LIMIT = 512 * MI;
const HARD_100 = ['--eviction-hard', 'memory.available<100Mi'];
const STORM_MS = count(2000, 10_000);
/** The acceptance line has 9,000 in 10 s. */
const EVENTS_PER_SECOND = 900;
const LAG_P99_LIMIT_MS = 50;
/** A level may take the kernel half a second, seldom; there are six. */
const ARM_LIMIT_MS = 10_000;

describeWith({ root: true, cgroupV1: true, programs: ['cc'] }, 'a storm of crossings', () => {
  it.each<[string, readonly string[], string]>([
    ['that nobody can end, once somebody was evicted', [], 'evicted'],
    ['in a dry run', ['--dry-run'], 'refused'],
  ])('%s', async (_, args, outcome) => {
    const node = makeNode(LIMIT);
    const web = await node.bystander();
    const small = await node.pod('small').spawn();
    await small.grow(16 * MI);
    const pod = node.pod('swing');
    const meter = lagMeter();
    const spared = ['--pod', 'web=protected', '--pod', 'swing=protected'];
    const daemon = await startDaemon({
      node: node.path,
      args: [...HARD_100, ...spared, ...args],
      wrapper: meter.wrapper,
    });
    const swing = await startStorm(daemon, node, pod);
    const before = await daemon.status();
    expect(before.evictions).toEqual([]);
    process.kill(daemon.pid, 'SIGUSR2');
    const cpuBefore = cpuMs(daemon.pid);
    const swings = await swing.run();
    const cpu = (cpuMs(daemon.pid) - cpuBefore) / STORM_MS;
    const after = await daemon.status();
    await daemon.stop();
    const { p50Ms, p99Ms, maxMs, count: turns } = meter.read();
    const samples = after.counters.samples - before.counters.samples;
    const events = after.counters.kernelWakeups - before.counters.kernelWakeups;
    report(`${swings} swings, ${events} events, ${samples} samples in ${STORM_MS / 1000} s`);
    report(
      `event-loop lag p50 ${p50Ms.toFixed(1)}, p99 ${p99Ms.toFixed(1)}, max ${maxMs.toFixed(1)} ms of ${turns}`,
    );
    report(`CPU ${(100 * cpu).toFixed(0)} %`);
    const tried = after.evictions.filter(({ reason }) => reason !== 'pressureGone');
    expect(tried).toMatchObject([{ pod: 'small', outcome }]);
    expectOneAtATime(after.evictions);
    expect(events).toBeGreaterThanOrEqual((EVENTS_PER_SECOND * STORM_MS) / 1000);
    expect(p99Ms).toBeLessThan(LAG_P99_LIMIT_MS);
    web.expectAlive();
  });

  it('that is evicted is over at the first crossing', async () => {
    const node = makeNode(LIMIT);
    const web = await node.bystander();
    const pod = node.pod('swing');
    const daemon = await startDaemon({ node: node.path, args: HARD_100 });
    const swing = await startStorm(daemon, node, pod);
    await expect(swing.run()).rejects.toThrow('ended');
    const evictions = await daemon.ended(1);
    expect(evictions).toMatchObject([{ pod: 'swing', outcome: 'evicted' }]);
    web.expectAlive();
    await daemon.stop();
  });
});

/** Ready to swing about the daemon's first level. */
async function startStorm(daemon: Daemon, node: TestNode, pod: TestPod): Promise<Swing> {
  const { thresholds } = await daemon.status();
  const level = thresholds[0]?.notification.levels[0] ?? Number.NaN;
  return startSwing(pod.cgroup, node.cgroup, {
    baseBytes: level - MI,
    swingBytes: 4 * MI,
    forMs: STORM_MS,
  });
}

/** All that a process has open, and how many of that are eventfds. */
function descriptors(pid: number | 'self'): { readonly all: number; readonly eventfds: number } {
  const targets = readdirSync(`/proc/${pid}/fd`).map((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`);
    } catch {
      // That of the listing itself.
      return '';
    }
  });
  const eventfds = targets.filter((target) => target === 'anon_inode:[eventfd]');
  return { all: targets.length, eventfds: eventfds.length };
}

/** How far below the capacity a threshold is armed: 2Mi is the nearest that gives an event. */
function levelOf(followed: Threshold): number {
  return Math.max(resolveValue(followed.value, LIMIT), 2 * MI);
}

describeWith({ root: true, cgroupV1: true }, 'arming anew', () => {
  // The kernel takes milliseconds over each level. The long run is that of a threshold with two.
  it.each([
    ['a ladder with its approach', threshold({ value: value('100Mi') }), count(80, 500)],
    ['two levels', softThreshold({ value: value('1Mi') }), count(100, 10_000)],
  ])('L13: keeps the number of descriptors, however often: %s', async (_, followed, rounds) => {
    const addon = requireAddon();
    const node = makeNode(LIMIT);
    const readings$ = new Subject<MemoryReading>();
    const armed$ = new Subject<readonly number[]>();
    const running = memcgThresholds({
      native: addon,
      directory: node.path,
      thresholds: [followed],
      readings$,
    }).subscribe((notice) => {
      if (notice.kind !== 'path') return;
      expect(notice.path.degraded).toBeUndefined();
      armed$.next(notice.path.arming?.kind === 'armed' ? notice.path.arming.levels : []);
    });
    onTestFinished(() => running.unsubscribe());
    // Between two levels that lie further apart than what is tolerated.
    const arm = async (round: number): Promise<void> => {
      const armed = firstValueFrom(armed$);
      const capacityBytes = round % 2 === 0 ? LIMIT : LIMIT - 32 * MI;
      readings$.next(reading({ capacityBytes }));
      const [first] = await within(armed, ARM_LIMIT_MS, 'it is armed');
      expect(first).toBe(capacityBytes - levelOf(followed));
      // The old levels are closed in the turn after that.
      await new Promise((resolve) => setImmediate(resolve));
    };
    const bare = descriptors('self');
    await arm(0);
    const start = descriptors('self');
    expect(start.eventfds).toBeGreaterThan(bare.eventfds);
    const startMs = performance.now();
    const most = { all: 0, eventfds: 0 };
    for (let round = 1; round <= rounds; round += 1) {
      await arm(round);
      const { all, eventfds } = descriptors('self');
      most.all = Math.max(most.all, all);
      most.eventfds = Math.max(most.eventfds, eventfds);
    }
    const seconds = (performance.now() - startMs) / 1000;
    report(
      `${rounds} times in ${seconds.toFixed(0)} s: ${start.all} descriptors, at most ${most.all}; ` +
        `${start.eventfds} eventfds, at most ${most.eventfds}`,
    );
    expect(most.eventfds).toBe(start.eventfds);
    expect(most.all).toBeLessThanOrEqual(start.all + 2);
    running.unsubscribe();
    expect(descriptors('self').eventfds).toBe(bare.eventfds);
  });

  it('on a node that is made again: it is said, the old is closed, the new is watched', async () => {
    const parent = makeCgroup();
    onTestFinished(() => parent.remove());
    let node = nodeOf(parent.child('node', { limitBytes: 256 * MI }));
    const args = ['--eviction-hard', 'memory.available<64Mi', '--poll-interval', '200ms'];
    const daemon = await startDaemon({ node: node.path, args });
    const start = descriptors(daemon.pid);
    const rounds = count(2, 20);
    for (let round = 1; round <= rounds; round += 1) {
      await node.cgroup.remove();
      await daemon.statusWhen('it says so', ({ degraded }) => degraded.length > 0);
      const limitBytes = (256 + 16 * round) * MI;
      node = nodeOf(parent.child('node', { limitBytes }));
      await daemon.statusWhen('the new one is armed', ({ degraded, thresholds }) => {
        const [first = 0] = thresholds[0]?.notification.levels ?? [];
        return degraded.length === 0 && first >= limitBytes - 64 * MI;
      });
      const said = daemon.said();
      expect(said.filter((msg) => msg === 'degraded')).toHaveLength(round);
      expect(said.filter((msg) => msg === 'read again as it should be')).toHaveLength(round);
    }
    await until(
      'the old eventfds are closed',
      () => descriptors(daemon.pid).eventfds === start.eventfds,
      { limitMs: 5000, describe: () => JSON.stringify([start, descriptors(daemon.pid)]) },
    );
    const end = descriptors(daemon.pid);
    report(`${rounds} times: ${start.all} descriptors, then ${end.all}`);
    expect(Math.abs(end.all - start.all)).toBeLessThanOrEqual(2);

    const web = await node.bystander();
    const leak = await node.pod('leak').spawn();
    const before = await daemon.status();
    await fill(node.cgroup, leak, (256 + 16 * rounds - 50) * MI);
    expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
    expect((await daemon.ended(1))[0]).toMatchObject({ pod: 'leak', outcome: 'evicted' });
    expect((await daemon.status()).counters.kernelWakeups).toBeGreaterThan(
      before.counters.kernelWakeups,
    );
    web.expectAlive();
    await daemon.stop();
  });
});

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { makeCgroup } from '../support/cgroup.ts';
import { requireAddon } from '../support/native.ts';
import { describeWith } from '../support/skip.ts';
import { until } from '../support/wait.ts';
import { type Daemon, privateDirectory, startDaemon } from './support/daemon.ts';
import {
  death,
  fill,
  MI,
  makeNode,
  nodeOf,
  type ShellProcess,
  type TestNode,
} from './support/node.ts';

const LADDER = [0, MI, 2 * MI, 4 * MI, 8 * MI];

async function levelsOf(daemon: Daemon): Promise<readonly number[]> {
  const { thresholds } = await daemon.status();
  return thresholds[0]?.notification.levels ?? [];
}

/**
 * A pod `cache` that has read a file once, from a disk: its pages stay on the inactive list. Pages
 * that are written would not: a large folio counts as used again with each write to it.
 */
function readOnce(node: TestNode, bytes: number): ShellProcess {
  const file = path.join(privateDirectory('/var/tmp'), 'cache');
  writeFileSync(file, Buffer.alloc(bytes));
  // Out of the page cache, so that the reader is charged for it.
  execFileSync('dd', [`of=${file}`, 'oflag=nocache', 'conv=notrunc,fdatasync', 'count=0'], {
    stdio: 'ignore',
  });
  return node.pod('cache').shell('cat "$1" > /dev/null && echo done && sleep 1000', [file]);
}

describeWith({ root: true, cgroupV1: true }, 'kernel notification', () => {
  it('arms a ladder, and again when inactive file moves it', async () => {
    const node = makeNode(512 * MI);
    const web = await node.bystander();
    const leak = await node.pod('leak').spawn();
    const args = ['--eviction-hard', 'memory.available<100Mi', '--poll-interval', '1h'];
    const daemon = await startDaemon({ node: node.path, args });
    const inactive = node.cgroup.statBytes('total_inactive_file') ?? 0;
    const first = 412 * MI + inactive;
    const levels = await levelsOf(daemon);
    expect(Math.abs((levels[0] ?? 0) - first)).toBeLessThan(MI);
    expect(levels.map((level) => level - (levels[0] ?? 0))).toEqual(LADDER);

    // Page cache raises usage over the old level, while the working set is far below the threshold:
    // a near miss, which needs new levels, since the old ones have had their event.
    await fill(node.cgroup, leak, 380 * MI);
    const cache = readOnce(node, 64 * MI);
    expect(await cache.said).toBe('done');
    expect(node.cgroup.usageBytes()).toBeGreaterThan(levels[0] ?? 0);
    const moved = await daemon.statusWhen('it is armed higher', ({ thresholds }) => {
      return (thresholds[0]?.notification.levels[0] ?? 0) > (levels[0] ?? 0) + 40 * MI;
    });
    expect(moved.thresholds[0]).toMatchObject({ met: false });
    expect(moved.evictions).toEqual([]);

    await fill(node.cgroup, leak, 425 * MI);
    expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
    expect((await daemon.ended(1)).at(-1)).toMatchObject({ pod: 'leak', outcome: 'evicted' });
    // A poll may have been first to see it: what counts is that the new levels had their events.
    const { counters } = await daemon.status();
    expect(counters.kernelWakeups).toBeGreaterThan(moved.counters.kernelWakeups);
    web.expectAlive();
    await daemon.stop();
  });

  it('says that a threshold under 2Mi has no event of its own', async () => {
    const node = makeNode(256 * MI);
    const args = ['--eviction-hard', 'memory.available<1Mi'];
    const daemon = await startDaemon({ node: node.path, args });
    const { thresholds } = await daemon.status();
    expect(thresholds[0]?.notification).toEqual({
      path: 'memcg-threshold',
      levels: [254 * MI, 255 * MI],
      detail: 'the threshold is under 2Mi: the crossing itself has no event',
    });
    await daemon.stop();
  });

  it('a threshold above the capacity is always met, with a warning', async () => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const leak = await node.pod('leak').spawn();
    const args = ['--eviction-hard', 'memory.available<1Gi', '--pod', 'web=protected'];
    const daemon = await startDaemon({ node: node.path, args });
    expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
    const { thresholds } = await daemon.status();
    expect(thresholds[0]).toMatchObject({ met: true, due: true });
    expect(thresholds[0]?.notification).toMatchObject({
      path: 'polling',
      levels: [],
      detail: expect.stringContaining('met, decided'),
    });
    await daemon.line('pressure, but no pod may be evicted');
    web.expectAlive();
    await daemon.stop();
    const warned = daemon.lines.filter(({ msg }) => msg.startsWith('the threshold is not below'));
    expect(warned).toEqual([
      expect.objectContaining({ level: 'warn', signal: 'memory.available', kind: 'hard' }),
    ]);
  });

  it('follows reclaim where inactive file exceeds the threshold, and still evicts', async () => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const cache = readOnce(node, 96 * MI);
    expect(await cache.said).toBe('done');
    const leak = await node.pod('leak').spawn();
    const args = ['--eviction-hard', 'memory.available<32Mi', '--pod', 'cache=priority:10'];
    const daemon = await startDaemon({ node: node.path, args });
    const { thresholds } = await daemon.status();
    expect(thresholds[0]?.notification).toMatchObject({
      path: 'memcg-pressure',
      detail: expect.stringContaining('inactive file exceeds the threshold'),
    });
    await fill(node.cgroup, leak, 232 * MI);
    expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
    expect((await daemon.ended(1)).at(-1)).toMatchObject({ pod: 'leak', outcome: 'evicted' });
    expect(cache.pid).toBeGreaterThan(0);
    process.kill(cache.pid, 0);
    web.expectAlive();
    await daemon.stop();
  });

  it.each([true, false])('follows a capacity that changes (notification: %s)', async (notify) => {
    const node = makeNode(512 * MI);
    const web = await node.bystander();
    const leak = await node.pod('leak').spawn();
    const args = ['--eviction-hard', 'memory.available<25%'];
    const daemon = await startDaemon({ node: node.path, notify, args });
    const before = await daemon.status();
    expect(before.signals[0]?.capacity).toBe(512 * MI);
    expect(before.thresholds[0]?.level).toBe(128 * MI);
    node.cgroup.write('memory.limit_in_bytes', 256 * MI);
    const after = await daemon.statusWhen('the new capacity is known', ({ thresholds }) => {
      return thresholds[0]?.level === 64 * MI;
    });
    expect(after.signals[0]?.capacity).toBe(256 * MI);
    if (notify) {
      await daemon.statusWhen('it is armed for it', ({ thresholds }) => {
        const [first = 0] = thresholds[0]?.notification.levels ?? [];
        return first >= 192 * MI && first < 200 * MI;
      });
    }
    await fill(node.cgroup, leak, 210 * MI);
    expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
    expect((await daemon.ended(1))[0]).toMatchObject({ pod: 'leak', outcome: 'evicted' });
    web.expectAlive();
    await daemon.stop();
  });

  it('a node that is removed is said to be gone, and one made again is watched', async () => {
    const parent = makeCgroup();
    onTestFinished(() => parent.remove());
    const first = parent.child('node', { limitBytes: 256 * MI });
    const args = ['--eviction-hard', 'memory.available<64Mi', '--poll-interval', '200ms'];
    const daemon = await startDaemon({ node: first.path, args });
    await first.remove();
    const gone = await daemon.statusWhen('it says so', ({ degraded }) =>
      degraded.some(({ part }) => part === 'memory.available'),
    );
    expect(gone.degraded.find(({ part }) => part === 'memory.available')?.reason).toMatch(
      /ENOENT|ENODEV/,
    );
    expect(gone.evictions).toEqual([]);

    const again = nodeOf(parent.child('node', { limitBytes: 384 * MI }));
    const web = await again.bystander();
    const leak = await again.pod('leak').spawn();
    const back = await daemon.statusWhen('it is watched and armed', (status) => {
      const [first = 0] = status.thresholds[0]?.notification.levels ?? [];
      return status.degraded.length === 0 && first >= 320 * MI;
    });
    expect(back.signals[0]?.capacity).toBe(384 * MI);
    await fill(again.cgroup, leak, 340 * MI);
    expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
    expect((await daemon.ended(1))[0]).toMatchObject({ pod: 'leak', outcome: 'evicted' });
    web.expectAlive();
    await daemon.stop();
  });

  it('L01: one event on the way up, one down; none when usage is above already', async () => {
    const addon = requireAddon();
    const node = makeNode(256 * MI);
    const child = await node.pod('pod').spawn();
    const counts = { below: 0n, above: 0n };
    const watchAt = async (key: keyof typeof counts) => {
      const event = { kind: 'usage', bytes: BigInt(64 * MI) } as const;
      const watch = addon.watchMemcg(node.path, event, (count) => {
        counts[key] += count;
      });
      onTestFinished(() => watch.close());
      await (watch as { readonly armed?: Promise<void> }).armed;
      return watch;
    };
    await watchAt('below');
    expect(counts.below).toBe(0n);
    await child.grow(80 * MI);
    await until('the event on the way up', () => counts.below === 1n, { limitMs: 5000 });
    await watchAt('above');
    await child.shrink();
    await until('both on the way down', () => counts.below === 2n && counts.above === 1n, {
      limitMs: 5000,
    });
    await child.grow(8 * MI);
    expect(counts).toEqual({ below: 2n, above: 1n });
  });

  it('L01: evictd reads usage after arming, should it be above already', async () => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const leak = await node.pod('leak').spawn();
    await fill(node.cgroup, leak, 210 * MI);
    const args = ['--eviction-hard', 'memory.available<64Mi'];
    const daemon = await startDaemon({ node: node.path, args });
    expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
    expect((await daemon.ended(1))[0]).toMatchObject({ pod: 'leak', outcome: 'evicted' });
    web.expectAlive();
    await daemon.stop();
  });
});

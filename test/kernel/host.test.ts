import { execFileSync, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { MEMORY_HIERARCHY, makeCgroup } from '../support/cgroup.ts';
import { report } from '../support/counts.ts';
import { describeWith } from '../support/skip.ts';
import { within } from '../support/wait.ts';
import { type Daemon, privateDirectory, startDaemon } from './support/daemon.ts';
import { death, fill, isAlive, MI, makeNode, nodeOf, podOf } from './support/node.ts';

/** What else runs on this machine takes and gives back memory meanwhile, bytes. */
const NOISE = 24 * MI;

/** So often a leak goes on by {@link NOISE}: what others give back meanwhile is no more than that. */
const MOST_STEPS = 40;

/** The host, as evictd's own rule and as the kubelet have it; bytes. */
function host() {
  const text = readFileSync('/proc/meminfo', 'utf8');
  const field = (name: string) =>
    1024 *
    Number(
      text
        .split('\n')
        .find((line) => line.startsWith(`${name}:`))
        ?.match(/\d+/)?.[0],
    );
  const counter = Number(readFileSync(`${MEMORY_HIERARCHY}/memory.usage_in_bytes`, 'utf8'));
  const capacity = field('MemTotal');
  const used = capacity - field('MemFree') - field('SReclaimable');
  const inactive = field('Inactive(file)');
  return {
    capacity,
    inactive,
    uncounted: used - counter,
    available: capacity - used + inactive,
    kubelet: capacity - counter + inactive,
  };
}

/** The usage, as the root's counter has it, at which less than `threshold` is available. */
function levelFor(threshold: number): number {
  const { capacity, inactive, uncounted } = host();
  return capacity - threshold + inactive - uncounted;
}

/** Waits until the first level is where the host's present figures put it, and reports both figures. */
async function expectArmed(daemon: Daemon, threshold: number, what: string): Promise<void> {
  const tolerance = Math.max(threshold / 8, MI) + NOISE;
  const { thresholds } = await daemon.statusWhen(
    `the level follows: ${what}`,
    ({ thresholds: [first] }) =>
      Math.abs((first?.notification.levels[0] ?? 0) - levelFor(threshold)) <= tolerance,
  );
  const { available, kubelet, uncounted } = host();
  const inMi = (bytes: number) => Math.round(bytes / MI);
  report(
    `${what}: available ${inMi(available)}Mi, the kubelet's ${inMi(kubelet)}Mi, left out ` +
      `${inMi(uncounted)}Mi, armed at ${inMi(thresholds[0]?.notification.levels[0] ?? 0)}Mi`,
  );
}

/** Page cache of `bytes`, on the active or the inactive list, until the test ends. */
function fillPageCache(bytes: number): void {
  const file = path.join(privateDirectory('/var/tmp'), 'cache');
  writeFileSync(file, Buffer.alloc(bytes));
  execFileSync('cat', [file], { stdio: ['ignore', 'ignore', 'inherit'] });
}

/** Unreclaimable slab of `bytes`; gone when what is returned is called, or with the test. */
async function fillSlab(bytes: number): Promise<() => Promise<void>> {
  const program = fileURLToPath(new URL('../support/fill-slab.py', import.meta.url));
  const child = spawn('python3', [program, String(bytes)], { stdio: ['pipe', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  await within(
    new Promise((resolve) => child.stdout.once('data', resolve)),
    30_000,
    'slab is filled',
  );
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  return () => {
    child.stdin.end();
    return within(exited, 10_000, 'slab is given back');
  };
}

const HUGE_PAGES = '/proc/sys/vm/nr_hugepages';

/** Sets `count` more huge pages aside; the test gives them back. Returns how many bytes that were. */
function setHugePagesAside(count: number): number {
  const before = Number(readFileSync(HUGE_PAGES, 'utf8'));
  onTestFinished(() => writeFileSync(HUGE_PAGES, String(before)));
  writeFileSync(HUGE_PAGES, String(before + count));
  return (Number(readFileSync(HUGE_PAGES, 'utf8')) - before) * 2 * MI;
}

describeWith({ root: true, cgroupV1: true }, 'the host as node', () => {
  it('is armed at the level that page cache, slab and huge pages make', async () => {
    const threshold = 1024 * MI;
    const daemon = await startDaemon({
      node: undefined,
      args: ['--eviction-hard', 'memory.available<1Gi', '--poll-interval', '100ms', '--dry-run'],
    });
    await expectArmed(daemon, threshold, 'at the start');

    fillPageCache(256 * MI);
    await expectArmed(daemon, threshold, 'with 256Mi of page cache');

    const beforeSlab = host();
    const giveBack = await fillSlab(512 * MI);
    const withSlab = host();
    // By so much the two figures differ more: the kubelet's does not see it at all.
    expect(withSlab.uncounted - beforeSlab.uncounted).toBeGreaterThan(256 * MI);
    await expectArmed(daemon, threshold, 'with 512Mi of slab');
    await giveBack();

    const beforeHuge = host();
    const huge = setHugePagesAside(192);
    expect(huge).toBeGreaterThanOrEqual(256 * MI);
    const withHuge = host();
    expect(withHuge.uncounted - beforeHuge.uncounted).toBeGreaterThan(huge / 2);
    await expectArmed(daemon, threshold, `with ${huge / MI}Mi of huge pages`);

    expect(daemon.said()).toContain(
      'nothing is evictable: on the host a pod is what --pod names or what lies below a --pod-parent',
    );
    expect((await daemon.status()).evictions).toEqual([]);
    await daemon.stop();
  });

  it('hears one crossing and evicts the right pod of a kubepods tree, and nothing else', async () => {
    const outer = makeCgroup();
    onTestFinished(() => outer.remove());
    const kubepods = outer.child('kubepods');
    const burstable = kubepods.child('burstable');
    const besteffort = kubepods.child('besteffort');
    const leak = await podOf(burstable.child('pod-leak')).spawn();
    const web = await podOf(kubepods.child('pod-web')).spawn();
    const small = await podOf(besteffort.child('pod-small')).spawn();
    // As large as the leak, and none of them a pod: beside the tree, in it, and in a QoS directory.
    const others = await Promise.all(
      [outer.child('pod-outside'), kubepods.child('system'), burstable.child('loose')].map(
        (cgroup) => podOf(cgroup).spawn(),
      ),
    );
    for (const other of others) await other.grow(320 * MI);
    await web.grow(16 * MI);
    // Gives back more by its end than others are likely to take meanwhile.
    await leak.grow(512 * MI);
    const parent = `${outer.name}/kubepods`;
    const distance = 256 * MI;
    const threshold = host().available - distance;
    const daemon = await startDaemon({
      node: undefined,
      args: [
        ...['--pod-parent', parent],
        ...['--eviction-hard', `memory.available<${threshold},allocatableMemory.available<1`],
      ],
    });
    const before = (await daemon.status()).counters.kernelWakeups;
    // Others give memory back meanwhile: it grows until it is gone, and no further than the host allows.
    const ended = death(leak);
    let isGone = false;
    const noteEnd = (): void => {
      isGone = true;
    };
    ended.then(noteEnd, noteEnd);
    await leak.grow(distance + 2 * NOISE).catch(() => undefined);
    for (let steps = 0; steps < MOST_STEPS && !isGone; steps += 1) {
      await leak.grow(NOISE).catch(() => undefined);
    }
    expect((await ended).signal).toBe('SIGKILL');
    const [eviction, ...more] = await daemon.ended(1);
    expect(more).toEqual([]);
    expect(eviction).toMatchObject({ pod: `${parent}/burstable/pod-leak`, outcome: 'evicted' });
    const status = await daemon.status();
    expect(status.counters.kernelWakeups).toBeGreaterThan(before);
    expect(status.pods.map(({ name }) => name).toSorted()).toEqual([
      `${parent}/besteffort/pod-small`,
      `${parent}/pod-web`,
    ]);
    for (const { pid } of [web, small, ...others]) expect(isAlive(pid)).toBe(true);
    await daemon.stop();
  });
});

describeWith({ root: true, cgroupV1: true }, 'allocatableMemory.available', () => {
  it('is met and acted on when the pods use up what they share, while the node has room', async () => {
    const node = makeNode(512 * MI);
    const pods = nodeOf(node.cgroup.child('pods', { limitBytes: 256 * MI }));
    const web = await pods.bystander();
    const leak = await pods.pod('leak').spawn();
    const outside = await node.bystander('outside');
    const daemon = await startDaemon({
      node: node.path,
      args: ['--pod-parent', 'pods', '--eviction-hard', 'memory.available<64Mi'],
    });
    await fill(pods.cgroup, leak, 256 * MI - 56 * MI);
    expect((await death(leak)).signal).toBe('SIGKILL');
    const [eviction, ...more] = await daemon.ended(1);
    expect(more).toEqual([]);
    expect(eviction).toMatchObject({ pod: 'pods/leak', outcome: 'evicted' });
    const met = await daemon.line('threshold met');
    expect(JSON.stringify(met)).toContain('allocatableMemory.available');
    web.expectAlive();
    outside.expectAlive();
    await daemon.stop();
  });
});

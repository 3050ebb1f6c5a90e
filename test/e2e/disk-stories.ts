/** What holds of pods and disks on every runtime, each on a disk of its own. */
import { execFileSync } from 'node:child_process';
import { expect, it, onTestFinished } from 'vitest';
import type { Summary } from '../../src/core/kubernetes.ts';
import { simulate } from '../../src/simulation/engine.ts';
import type { Scenario } from '../../src/simulation/scenario.ts';
import type { StatusDocument } from '../../src/surfaces/status.ts';
import { type Daemon, MAIN, startDaemon } from '../kernel/support/daemon.ts';
import { MI, makeNode } from '../kernel/support/node.ts';
import { until } from '../support/wait.ts';
import { isGone } from './leak-stories.ts';
import { pidsBelow } from './support/left-over.ts';
import type { LoopDisk } from './support/loop-disk.ts';
import type { MadePod, RuntimeHost } from './support/runtime-host.ts';

const LIMIT_MS = 60_000;

/** A runtime whose root is on a disk of its own. */
export interface DiskHost {
  readonly host: RuntimeHost;
  readonly disk: LoopDisk;
  /** Removes what a dead pod has left, as a kubelet or somebody would. */
  removeDead(pod: MadePod): Promise<void>;
}

/** A shell script whose end is not the pod's. */
export const stays = (script: string): readonly string[] => [
  'sh',
  '-c',
  `${script}; exec sleep 1000000`,
];

/** A node, three pods of which one fills the disk, and a daemon that watches it. */
export async function diskStage({ host, disk }: DiskHost, args: readonly string[]) {
  const node = makeNode(1024 * MI);
  onTestFinished(async () => {
    await host.clear(node);
    await until('the disk is empty again', () => disk.availableBytes() > 0.7 * disk.bytes, {
      limitMs: LIMIT_MS,
    });
  });
  const daemon = await startDaemon({
    node: node.path,
    notify: false,
    args: [
      `--runtime=${host.kind}`,
      `--runtime-endpoint=unix://${host.socketPath}`,
      ...host.flags,
      ...args,
    ],
  });
  const runThree = async (script: string) => ({
    web: await host.run(node, 'web', stays('fill / 20')),
    cache: await host.run(node, 'cache', stays('litter / 50')),
    fat: await host.run(node, 'fat', stays(script)),
  });
  return { node, daemon, runThree };
}

export async function expectAlive(host: RuntimeHost, pods: readonly MadePod[]): Promise<void> {
  for (const pod of pods) {
    expect(await host.isUp(pod), pod.name).toBe(true);
    expect(pidsBelow(pod.cgroup), pod.name).not.toEqual([]);
  }
}

/** What the daemon says of itself once it knows what its pods use. */
export function whenKnown(daemon: Daemon): Promise<StatusDocument> {
  return daemon.statusWhen(
    'it knows what pods use',
    ({ pods }) => pods.length === 3 && pods.every((pod) => pod.disk !== null),
    LIMIT_MS,
  );
}

/** The same once nothing is short any more. */
export function whenRelieved(daemon: Daemon): Promise<StatusDocument> {
  return daemon.statusWhen(
    'the pressure is gone',
    ({ thresholds, degraded }) => thresholds.every(({ met }) => !met) && degraded.length === 0,
    LIMIT_MS,
  );
}

/** What `evictd summary` says is what `simulate` runs: with the disk nearly full, who uses it goes. */
function expectSummary({ socketPath }: Daemon, pods: readonly MadePod[]): void {
  const run = (...args: readonly string[]): string =>
    execFileSync(process.execPath, [MAIN, 'summary', '--socket', socketPath, ...args], {
      encoding: 'utf8',
    });
  const { node, pods: stats = [] } = JSON.parse(run()) as Summary;
  expect(node?.runtime?.imageFs?.capacityBytes).toBeGreaterThan(250 * MI);
  expect(stats).toHaveLength(pods.length);
  for (const { containers, memory } of stats ?? []) {
    expect(containers?.[0]?.rootfs?.usedBytes).toBeGreaterThan(0);
    expect(memory?.workingSetBytes).toBeGreaterThan(0);
  }
  const scenario = JSON.parse(run('--scenario')) as Scenario;
  const evictionHard = { 'imagefs.available': '99%' };
  const { ticks, error } = simulate({ ...scenario, config: { ...scenario.config, evictionHard } });
  expect(error).toBeUndefined();
  expect(ticks[0]?.evicted).toMatchObject([{ pod: expect.stringMatching(/\/fat$/) }]);
}

export function diskStories(get: () => DiskHost): void {
  it('the pod goes that fills a dedicated imagefs, and nobody else until its space is back', async () => {
    const { host, disk, removeDead } = get();
    const { daemon, runThree } = await diskStage(get(), [
      '--eviction-hard=imagefs.available<100Mi',
    ]);
    const { web, cache, fat } = await runThree('sleep 3; fill / 200');
    const { layout } = await whenKnown(daemon);
    expect(layout?.kind).toBe('dedicatedImagefs');
    const [eviction] = await daemon.ended(1, LIMIT_MS);
    expect(eviction).toMatchObject({ pod: fat.name, outcome: 'evicted' });
    expect(eviction?.message).toMatch(/ephemeral-storage.*The pod was using 2\d{5}Ki/);
    // Nobody removes what it left: its space does not come back, and nobody pays for it.
    await daemon.statusWhen(
      'it says that nobody removes it',
      ({ degraded }) => degraded.some(({ part }) => part === `left over ${fat.name}`),
      LIMIT_MS,
    );
    expect(disk.availableBytes()).toBeLessThan(100 * MI);
    await expectAlive(host, [web, cache]);
    await isGone(host, fat);
    await removeDead(fat);
    expect((await whenRelieved(daemon)).evictions).toHaveLength(1);
    await expectAlive(host, [web, cache]);
  });

  it('what it left is removed where dead containers may be, and the disk is well again', async () => {
    const { host, disk } = get();
    const { daemon, runThree } = await diskStage(get(), [
      '--eviction-hard=imagefs.available<100Mi',
      '--container-gc=pressure',
    ]);
    const { web, cache, fat } = await runThree('sleep 3; fill / 200');
    await whenKnown(daemon);
    const [eviction] = await daemon.ended(1, LIMIT_MS);
    expect(eviction).toMatchObject({ pod: fat.name, outcome: 'evicted' });
    expect((await whenRelieved(daemon)).evictions).toHaveLength(1);
    expect(disk.availableBytes()).toBeGreaterThan(200 * MI);
    await expectAlive(host, [web, cache]);
  });

  it('the pod goes that takes the inodes of a disk that all share', async () => {
    const { host, disk, removeDead } = get();
    const free = Math.floor(disk.inodesFree() / 2);
    const { daemon, runThree } = await diskStage(get(), [
      `--eviction-hard=nodefs.inodesFree<${free}`,
      `--nodefs-path=${disk.directory}`,
    ]);
    const { web, cache, fat } = await runThree(`sleep 3; litter / ${free + 500}`);
    const { layout } = await whenKnown(daemon);
    expect(layout).toEqual({ kind: 'single', groups: [['nodefs', 'imagefs', 'containerfs']] });
    const [eviction] = await daemon.ended(1, LIMIT_MS);
    expect(eviction).toMatchObject({ pod: fat.name, outcome: 'evicted' });
    expect(eviction?.message).toMatch(
      /resource: inodes\..*The pod was using \d{4} inodes of \w+\.$/,
    );
    await isGone(host, fat);
    await removeDead(fat);
    expect((await whenRelieved(daemon)).evictions).toHaveLength(1);
    await expectAlive(host, [web, cache]);
  });

  it('L07: what is deleted and open is told, and counts as the use of who keeps it open', async () => {
    const { host } = get();
    const { daemon, runThree } = await diskStage(get(), [
      '--eviction-hard=imagefs.available<100Mi',
    ]);
    const held = 'dd if=/dev/zero of=/gone bs=1M count=60; exec 3< /gone; rm /gone';
    const { web, cache, fat } = await runThree(held);
    const isSeen = ({ pods, filesystems }: StatusDocument): boolean => {
      const disk = pods.find(({ name }) => name === fat.name)?.disk;
      const imagefs = filesystems.find(({ name }) => name === 'imagefs');
      const seen = [disk?.unaccountedBytes, disk?.bytes, imagefs?.unaccountedBytes];
      return seen.every((bytes = null) => (bytes ?? 0) >= 60 * MI);
    };
    const { pods } = await daemon.statusWhen('60 MiB are unaccounted', isSeen, LIMIT_MS);
    expect(pods.find(({ name }) => name === web.name)?.disk?.unaccountedBytes).toBe(0);
    expectSummary(daemon, [web, cache, fat]);
    await expectAlive(host, [fat]);
  });
}

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { criClient } from '../../src/runtimes/cri/client.ts';
import { type Daemon, MAIN, privateDirectory, startDaemon } from '../kernel/support/daemon.ts';
import { mountExt4 } from '../kernel/support/filesystems.ts';
import { MI, makeNode, type TestNode } from '../kernel/support/node.ts';
import { MEMORY_HIERARCHY } from '../support/cgroup.ts';
import { report } from '../support/counts.ts';
import { describeWith } from '../support/skip.ts';
import { startContainerd } from './support/containerd.ts';
import { type Made, podMaker } from './support/cri-pods.ts';
import { type Filler, fillerArchive } from './support/fillers.ts';
import { BUSYBOX_IMAGE, PAUSE_IMAGE } from './support/image.ts';
import { removeGroups } from './support/left-over.ts';
import { untilAnswer } from './support/until-answer.ts';

const WAIT_MS = 30_000;
const NEEDS = {
  root: true,
  cgroupV1: true,
  programs: ['containerd', 'runc', 'ctr', 'busybox', 'tar', 'mkfs.ext4'],
  files: ['/dev/loop-control'],
} as const;

/** A containerd whose root is a filesystem of its own. */
interface Host {
  readonly root: string;
  readonly socketPath: string;
  readonly node: TestNode;
  run(name: string, command: readonly string[]): Promise<Made>;
  /** Imports images that are there to take up room. */
  fill(names: readonly string[], filler: Filler): void;
  /** A pod that has ended, with what it wrote. */
  deadPod(name: string, script: string): Promise<Made>;
  images(): Promise<readonly string[]>;
  stateOf(pod: Made): Promise<string | undefined>;
  daemon(...args: readonly string[]): Promise<Daemon>;
}

/** @param logs where the logs of its pods lie; by default a directory of their own */
async function makeHost(mebibytes: number, logs: string = privateDirectory()): Promise<Host> {
  const directory = mkdtempSync('/tmp/egc-');
  const root = path.join(directory, 'root');
  mkdirSync(root);
  mountExt4(mebibytes, root);
  const containerd = await startContainerd(directory);
  const { socketPath } = containerd;
  const node = makeNode(512 * MI);
  const client = criClient(`unix://${socketPath}`, () => Date.now());
  const maker = podMaker(socketPath, logs);
  const parent = path.relative(MEMORY_HIERARCHY, node.path);
  const call = <T>(method: string, request: object = {}): Promise<T> =>
    client.call<T>(method, request, WAIT_MS);
  onTestFinished(async () => {
    const { items } = await call<{ readonly items: readonly { readonly id: string }[] }>(
      'ListPodSandbox',
    );
    for (const { id } of items) {
      await call('StopPodSandbox', { podSandboxId: id });
      await call('RemovePodSandbox', { podSandboxId: id });
    }
    maker.close();
    client.close();
    await containerd.remove();
    await removeGroups(parent);
  });
  const archives = privateDirectory('/var/tmp');
  const run: Host['run'] = (name, command) => maker.run(parent, name, command);
  return {
    root,
    socketPath,
    node,
    run,
    fill: (names, filler) => {
      for (const name of names) {
        const archive = fillerArchive(archives, `localhost/${name}:1`, filler);
        execFileSync('ctr', ['-a', socketPath, '-n', 'k8s.io', 'images', 'import', archive]);
        rmSync(archive);
      }
    },
    deadPod: async (name, script) => {
      const pod = await run(name, ['sh', '-c', script]);
      const exited = async () => {
        const { status } = await call<{ readonly status: { readonly state: string } }>(
          'ContainerStatus',
          { containerId: pod.containerId },
        );
        return status.state === 'CONTAINER_EXITED';
      };
      await untilAnswer(`${name} has ended`, exited, WAIT_MS);
      await call('StopPodSandbox', { podSandboxId: pod.sandboxId });
      return pod;
    },
    images: async () => {
      const { images } = await call<{
        readonly images: readonly { readonly repoTags: readonly string[] }[];
      }>('ListImages');
      return images.flatMap(({ repoTags }) => repoTags).sort();
    },
    stateOf: async ({ sandboxId }) => {
      const { items } = await call<{
        readonly items: readonly { readonly id: string; readonly state: string }[];
      }>('ListPodSandbox');
      return items.find(({ id }) => id === sandboxId)?.state;
    },
    daemon: (...args) =>
      startDaemon({
        node: node.path,
        args: [
          '--runtime=cri',
          `--runtime-endpoint=unix://${socketPath}`,
          `--imagefs-path=${root}`,
          '--image-gc=pressure',
          '--container-gc=pressure',
          '--log-level=debug',
          ...args,
        ],
      }),
  };
}

/** What is free for whoever is not root. */
function freeIn(root: string): { readonly mebibytes: number; readonly inodes: number } {
  const { bavail, bsize, ffree } = statfsSync(root);
  return { mebibytes: Math.floor((bavail * bsize) / MI), inodes: ffree };
}

/** Files on a filesystem until a reading of it holds. */
function press(root: string, mebibytes: number): void {
  writeFileSync(path.join(root, 'fill'), Buffer.alloc(mebibytes * MI), { flush: true });
}

const FILLERS = ['filler-0', 'filler-1', 'filler-2', 'filler-3'];

describeWith(NEEDS, 'a full imagefs', () => {
  it('loses dead containers and unused images until enough is there; no pod goes', async () => {
    const host = await makeHost(400);
    const web = await host.run('web', ['hog', '5']);
    await host.deadPod('batch', 'dd if=/dev/zero of=/big bs=1M count=60');
    host.fill(FILLERS, { mebibytes: 20 });
    const before = freeIn(host.root).mebibytes;
    const daemon = await host.daemon(
      `--eviction-hard=imagefs.available<${before - 20}Mi`,
      // More than the dead container gives back, less than all images do.
      '--eviction-minimum-reclaim=imagefs.available=70Mi',
    );
    await daemon.line('other images, or used otherwise');
    // C24: fresh, so that it stays.
    host.fill(['fresh'], { mebibytes: 1 });
    press(host.root, 40);
    const line = await daemon.line('collected what nobody uses');
    expect(line).toMatchObject({
      purpose: 'pressure',
      because: 'regained',
      containers: 1,
      sandboxes: 1,
      inUse: 0,
      failed: 0,
    });
    expect(freeIn(host.root).mebibytes).toBeGreaterThanOrEqual(before + 50 - 1);
    const left = await host.images();
    expect(left).toEqual(expect.arrayContaining([BUSYBOX_IMAGE, PAUSE_IMAGE, 'localhost/fresh:1']));
    // Each has its layer twice: as it was imported, and unpacked.
    expect(left.filter((name) => name.includes('filler'))).toHaveLength(3);
    await daemon.line('threshold no longer met');
    const status = await daemon.status();
    expect(status.evictions).toEqual([]);
    expect(status.garbage).toMatchObject({
      collectingFor: null,
      last: { because: 'regained', images: line['images'], freedBytes: line['freedBytes'] },
    });
    expect(status.counters).toMatchObject({
      collections: 1,
      removedContainers: 1,
      removedSandboxes: 1,
      removedImages: line['images'],
    });
    expect(await host.stateOf(web)).toBe('SANDBOX_READY');
    const reasons = daemon.lines.filter(({ msg }) => msg === 'kept').map(({ reason }) => reason);
    expect(reasons).toEqual(
      expect.arrayContaining(['in use', 'sandboxes are made of it', 'fresh']),
    );
    report(
      `${line['freedBytes']} bytes by 1 container and ${line['images']} images in ${line['tookMs']} ms`,
    );
    await daemon.stop();
  });

  it('of inodes, in a layout of one filesystem', async () => {
    const host = await makeHost(400);
    const web = await host.run('web', ['hog', '5']);
    host.fill(FILLERS, { files: 2000 });
    const before = freeIn(host.root).inodes;
    const daemon = await host.daemon(
      `--nodefs-path=${host.root}`,
      `--eviction-hard=nodefs.inodesFree<${before - 500}`,
      '--eviction-minimum-reclaim=nodefs.inodesFree=3000',
    );
    await daemon.line('filesystems', ({ layout }) => layout === 'single');
    for (let count = 0; count < 1000; count += 1) {
      writeFileSync(path.join(host.root, `file-${count}`), '');
    }
    const line = await daemon.line('collected what nobody uses');
    expect(line).toMatchObject({ purpose: 'pressure', because: 'regained', containers: 0 });
    expect(freeIn(host.root).inodes).toBeGreaterThanOrEqual(before + 2500);
    expect((await host.images()).filter((name) => name.includes('filler'))).toHaveLength(2);
    await daemon.line('threshold no longer met');
    expect((await daemon.status()).evictions).toEqual([]);
    expect(await host.stateOf(web)).toBe('SANDBOX_READY');
    report(`${line['freedInodes']} inodes by ${line['images']} images in ${line['tookMs']} ms`);
    await daemon.stop();
  });

  it('C23: nodefs is short of what logs take: dead containers go, and no image', async () => {
    const nodefs = mountExt4(200);
    const host = await makeHost(200, nodefs);
    const web = await host.run('web', ['hog', '5']);
    await host.deadPod('batch', 'dd if=/dev/zero bs=1M count=60');
    host.fill(['filler-0'], { mebibytes: 1 });
    const before = freeIn(nodefs).mebibytes;
    const daemon = await host.daemon(
      `--nodefs-path=${nodefs}`,
      `--pod-logs-dir=${nodefs}/pods`,
      `--eviction-hard=nodefs.available<${before - 20}Mi`,
      '--eviction-minimum-reclaim=nodefs.available=20Mi',
    );
    await daemon.line('filesystems', ({ layout }) => layout === 'dedicatedImagefs');
    await daemon.statusWhen(
      'its layout counts',
      ({ layout }) => layout?.kind === 'dedicatedImagefs',
    );
    press(nodefs, 40);
    await daemon.line('image GC would not help nodefs');
    const line = await daemon.line('collected what nobody uses');
    expect(line).toMatchObject({ because: 'regained', containers: 1, images: 0, failed: 0 });
    expect(freeIn(nodefs).mebibytes).toBeGreaterThanOrEqual(before);
    await daemon.line('threshold no longer met');
    expect(await host.images()).toContain('localhost/filler-0:1');
    expect(readdirSync(path.join(nodefs, 'pods'))).toEqual([web.uid]);
    expect((await daemon.status()).evictions).toEqual([]);
    expect(await host.stateOf(web)).toBe('SANDBOX_READY');
    report(`${line['freedBytes']} bytes of a log in ${line['tookMs']} ms`);
    await daemon.stop();
  });

  it('where what nobody uses is not enough, the pod goes that fills it', async () => {
    const host = await makeHost(400);
    const web = await host.run('web', ['hog', '5']);
    host.fill(['filler-0'], { mebibytes: 10 });
    const before = freeIn(host.root).mebibytes;
    const daemon = await host.daemon(
      `--eviction-hard=imagefs.available<${before - 60}Mi`,
      '--eviction-minimum-reclaim=imagefs.available=40Mi',
    );
    const fat = await host.run('fat', ['sh', '-c', 'sleep 3; fill / 90; exec sleep 1000000']);
    const [eviction] = await daemon.ended(1, WAIT_MS);
    expect(eviction).toMatchObject({ pod: 'default/fat', outcome: 'evicted' });
    const said = daemon.said();
    expect(said.indexOf('collected what nobody uses')).toBeGreaterThan(0);
    expect(said.indexOf('collected what nobody uses')).toBeLessThan(said.indexOf('evicting'));
    expect(await host.images()).not.toContain('localhost/filler-0:1');
    // What is left of it goes too, since dead containers may.
    await daemon.line('threshold no longer met');
    expect((await daemon.status()).evictions).toHaveLength(1);
    expect(await host.stateOf(web)).toBe('SANDBOX_READY');
    expect(await host.stateOf(fat)).not.toBe('SANDBOX_READY');
    await daemon.stop();
  });

  it('is listed by evictd gc, and then removed by it', async () => {
    const host = await makeHost(300);
    const web = await host.run('web', ['hog', '5']);
    await host.deadPod('batch', 'dd if=/dev/zero of=/big bs=1M count=10');
    host.fill(FILLERS, { mebibytes: 5 });
    const gc = (...args: readonly string[]) =>
      execFileSync(
        process.execPath,
        [
          MAIN,
          'gc',
          '--runtime=cri',
          `--runtime-endpoint=unix://${host.socketPath}`,
          `--imagefs-path=${host.root}`,
          ...args,
        ],
        { encoding: 'utf8' },
      );
    const images = await host.images();
    const listed = gc('--dry-run').split('\n');
    const lines = (text: string) => listed.filter((line) => line.startsWith(text));
    expect(lines('would remove container default/batch/main (')).toHaveLength(1);
    expect(lines('would remove sandbox default/batch (')).toHaveLength(1);
    expect(lines('would remove image localhost/filler-')).toHaveLength(FILLERS.length);
    expect(lines(`keeps image ${BUSYBOX_IMAGE}`)).toEqual([expect.stringMatching(/: in use$/)]);
    expect(lines(`keeps image ${PAUSE_IMAGE}`)).toHaveLength(1);
    expect(await host.images()).toEqual(images);
    expect(gc('--only=containers')).toMatch(/: 1 containers, 1 sandboxes and 0 images removed/);
    expect(await host.images()).toEqual(images);
    const before = freeIn(host.root).mebibytes;
    expect(gc()).toMatch(/: 0 containers, 0 sandboxes and \d images removed, 0 in use/);
    expect(freeIn(host.root).mebibytes).toBeGreaterThan(before + 30);
    expect(await host.images()).toEqual([BUSYBOX_IMAGE, PAUSE_IMAGE].sort());
    expect(await host.stateOf(web)).toBe('SANDBOX_READY');
  });

  it('in a dry run loses nothing, and the log lists what would go', async () => {
    const host = await makeHost(300);
    await host.run('web', ['hog', '5']);
    await host.deadPod('batch', 'dd if=/dev/zero of=/big bs=1M count=10');
    host.fill(FILLERS, { mebibytes: 5 });
    const before = freeIn(host.root).mebibytes;
    const images = await host.images();
    const daemon = await host.daemon(
      '--dry-run',
      `--eviction-hard=imagefs.available<${before - 20}Mi`,
    );
    press(host.root, 40);
    const line = await daemon.line('collected what nobody uses');
    expect(line).toMatchObject({ because: 'exhausted', containers: 0, images: 0, freedBytes: 0 });
    const would = daemon.lines.filter(({ msg }) => msg === 'dry run: would have removed');
    expect(would.map(({ what, name }) => `${what} ${name}`)).toEqual(
      expect.arrayContaining([
        'container default/batch/main',
        'sandbox default/batch',
        ...FILLERS.map((name) => `image localhost/${name}:1`),
      ]),
    );
    expect(would.map(({ name }) => name)).not.toContain(BUSYBOX_IMAGE);
    expect(would.map(({ name }) => name)).not.toContain(PAUSE_IMAGE);
    expect(line['wouldRemove']).toBe(would.length);
    expect(await host.images()).toEqual(images);
    await daemon.stop();
  });
});

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { type CriClient, criClient } from '../../src/runtimes/cri/client.ts';
import { type Daemon, privateDirectory, startDaemon } from '../kernel/support/daemon.ts';
import { mountExt4 } from '../kernel/support/filesystems.ts';
import { MI, makeNode, type TestNode } from '../kernel/support/node.ts';
import { MEMORY_HIERARCHY } from '../support/cgroup.ts';
import { report } from '../support/counts.ts';
import { describeWith } from '../support/skip.ts';
import { type Containerd, startContainerd } from './support/containerd.ts';
import { type MadePod, type PodMaker, podMaker } from './support/cri-pods.ts';
import { type Filler, fillerArchive } from './support/fillers.ts';
import { BUSYBOX_IMAGE, PAUSE_IMAGE } from './support/image.ts';

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
  readonly containerd: Containerd;
  readonly client: CriClient;
  readonly node: TestNode;
  readonly maker: PodMaker;
  /** Imports images that are there to take up room. */
  fill(names: readonly string[], filler: Filler): void;
  /** A pod that has ended, with what it wrote. */
  deadPod(name: string, script: string): Promise<MadePod>;
  images(): Promise<readonly string[]>;
  stateOf(pod: MadePod): Promise<string | undefined>;
  daemon(...args: readonly string[]): Promise<Daemon>;
}

async function makeHost(mebibytes: number): Promise<Host> {
  const directory = mkdtempSync('/tmp/egc-');
  const root = path.join(directory, 'root');
  mkdirSync(root);
  mountExt4(mebibytes, root);
  const containerd = await startContainerd(directory);
  const node = makeNode(512 * MI);
  const client = criClient(`unix://${containerd.socketPath}`, () => Date.now());
  const logs = mkdtempSync('/tmp/egcp-');
  const maker = podMaker(containerd.socketPath, path.relative(MEMORY_HIERARCHY, node.path), logs);
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
    removeGroups(path.relative(MEMORY_HIERARCHY, node.path));
    rmSync(logs, { recursive: true, force: true });
  });
  const archives = privateDirectory('/var/tmp');
  return {
    root,
    containerd,
    client,
    node,
    maker,
    fill: (names, filler) => {
      for (const name of names) {
        const archive = fillerArchive(archives, `localhost/${name}:1`, filler);
        containerd.ctr('images', 'import', archive);
        rmSync(archive);
      }
    },
    deadPod: async (name, script) => {
      const pod = await maker.run(name, ['sh', '-c', script]);
      await untilAnswer(async () => {
        const { status } = await call<{ readonly status: { readonly state: string } }>(
          'ContainerStatus',
          { containerId: pod.containerId },
        );
        return status.state === 'CONTAINER_EXITED';
      });
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
          `--runtime-endpoint=unix://${containerd.socketPath}`,
          `--imagefs-path=${root}`,
          '--image-gc=pressure',
          '--container-gc=pressure',
          '--log-level=debug',
          ...args,
        ],
      }),
  };
}

async function untilAnswer(probe: () => Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + WAIT_MS;
  while (!(await probe())) {
    if (performance.now() > deadlineMs) throw new Error(`not within ${WAIT_MS} ms`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Runtimes leave a pod's empty groups in every hierarchy; the node's own is another's to remove. */
function removeGroups(node: string): void {
  for (const line of readFileSync('/proc/mounts', 'utf8').split('\n')) {
    const [, mount = '', type] = line.split(' ');
    if (type !== 'cgroup' && type !== 'cgroup2') continue;
    const group = path.join(mount, node);
    if (mount !== MEMORY_HIERARCHY) removeTree(group);
    else for (const below of directoriesIn(group)) removeTree(below);
  }
}

function removeTree(directory: string): void {
  for (const below of directoriesIn(directory)) removeTree(below);
  if (existsSync(directory)) rmdirSync(directory);
}

function directoriesIn(directory: string): readonly string[] {
  if (!existsSync(directory)) return [];
  return readdirSync(directory, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => path.join(directory, name));
}

const OWN = [BUSYBOX_IMAGE, PAUSE_IMAGE].sort();
const isOwn = (name: string): boolean => OWN.includes(name);

/** What is free for whoever is not root. */
function freeIn(root: string): { readonly mebibytes: number; readonly inodes: number } {
  const { bavail, bsize, ffree } = statfsSync(root);
  return { mebibytes: Math.floor((bavail * bsize) / MI), inodes: ffree };
}

describeWith(NEEDS, 'a full imagefs', () => {
  it('loses dead containers and unused images until enough is there; no pod goes', async () => {
    const host = await makeHost(400);
    const web = await host.maker.run('web', ['hog', '5']);
    await host.deadPod('batch', 'dd if=/dev/zero of=/big bs=1M count=60');
    host.fill(['filler-0', 'filler-1', 'filler-2', 'filler-3'], { mebibytes: 20 });
    const before = freeIn(host.root).mebibytes;
    const daemon = await host.daemon(
      `--eviction-hard=imagefs.available<${before - 20}Mi`,
      // More than the dead container gives back, less than all images do.
      '--eviction-minimum-reclaim=imagefs.available=70Mi',
    );
    writeFileSync(path.join(host.root, 'fill'), Buffer.alloc(40 * MI), { flush: true });
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
    expect(left.filter(isOwn)).toEqual(OWN);
    // Each has its layer twice: as it was imported, and unpacked.
    expect(left.length - OWN.length).toBe(3);
    await daemon.line('threshold no longer met');
    const status = await daemon.status();
    expect(status.evictions).toEqual([]);
    expect(status.garbage).toMatchObject({
      collectingFor: null,
      last: { because: 'regained', images: 1, freedBytes: line['freedBytes'] },
    });
    expect(status.counters).toMatchObject({
      collections: 1,
      removedContainers: 1,
      removedImages: 1,
    });
    expect(await host.stateOf(web)).toBe('SANDBOX_READY');
    report(
      `${line['freedBytes']} bytes by 1 container and ${line['images']} images in ${line['tookMs']} ms`,
    );
    await daemon.stop();
  });
});

import { execFile } from 'node:child_process';
import { readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { COLLECTION_LIMIT_MS } from '../../src/actions/reclaim.ts';
import { type Daemon, MAIN, privateDirectory, startDaemon } from '../kernel/support/daemon.ts';
import { mountTmpfs } from '../kernel/support/filesystems.ts';
import { death, fill, MI, makeNode, type TestNode } from '../kernel/support/node.ts';
import { MEMORY_HIERARCHY } from '../support/cgroup.ts';
import { report } from '../support/counts.ts';
import { describeWith } from '../support/skip.ts';
import { type Answer, startScriptedCri } from './support/scripted-cri.ts';

const run = promisify(execFile);

const NEEDS = { root: true, cgroupV1: true } as const;

/** The cgroup of a pod is called after its uid. */
const UID = '1f4e-0a';
const POD = `pod${UID}`;

/** How large the filesystem of the images is. */
const SIZE_MI = 100;

/** Images are files on a filesystem of its own; a pod is a cgroup of the node. */
interface Scripted {
  readonly images: string;
  readonly node: TestNode;
  /** Images that the runtime was asked to remove, in order. */
  readonly asked: readonly string[];
  /** An image of so many MiB. */
  addImage(id: string, mebibytes: number): void;
  /** Percent that is available. */
  available(): number;
  daemon(...args: readonly string[]): Promise<Daemon>;
}

interface Script {
  /** Answers in place of the removal of an image's file. */
  readonly removeImage?: (id: string, remove: () => object) => object | Promise<object>;
  readonly pinned?: readonly string[];
  /** Images that the pod's container has as volumes. */
  readonly volumes?: readonly string[];
}

async function makeScripted(script: Script = {}): Promise<Scripted> {
  const images = mountTmpfs(`size=${SIZE_MI}m`);
  const node = makeNode(256 * MI);
  const parent = path.relative(MEMORY_HIERARCHY, node.path);
  const asked: string[] = [];
  const answers: Readonly<Record<string, Answer>> = {
    Version: () => ({ runtimeName: 'scripted', runtimeVersion: '1', runtimeApiVersion: 'v1' }),
    Status: () => ({}),
    ListPodSandbox: () => ({
      items: [
        {
          id: 's1',
          metadata: { name: 'leak', namespace: 'default', uid: UID, attempt: 0 },
          state: 'SANDBOX_READY',
        },
      ],
    }),
    PodSandboxStatus: () => ({
      info: { info: JSON.stringify({ config: { linux: { cgroup_parent: `/${parent}/${POD}` } } }) },
    }),
    ListContainers: () => ({
      containers: [
        {
          id: 'c1',
          podSandboxId: 's1',
          metadata: { name: 'main', attempt: 0 },
          state: 'CONTAINER_RUNNING',
          imageRef: 'used',
        },
      ],
    }),
    ContainerStatus: () => ({
      status: { mounts: (script.volumes ?? []).map((image) => ({ image: { image } })) },
    }),
    // C19: what the runtime measured once, and says for ever.
    ImageFsInfo: () => ({
      imageFilesystems: [
        { fsId: { mountpoint: images }, usedBytes: { value: 0.86 * SIZE_MI * MI } },
      ],
    }),
    StopPodSandbox: () => ({}),
    ListImages: () => ({
      images: readdirSync(images).map((id) => ({
        id,
        repoTags: [`example/${id}:1`],
        size: 1,
        pinned: script.pinned?.includes(id) ?? false,
      })),
    }),
    RemoveImage: ({ image }) => {
      const { image: id } = image as { readonly image: string };
      asked.push(id);
      const remove = () => {
        rmSync(path.join(images, id));
        return {};
      };
      return script.removeImage?.(id, remove) ?? remove();
    },
  };
  const server = await startScriptedCri(path.join(privateDirectory(), 'cri.sock'), answers);
  onTestFinished(() => server.close());
  return {
    images,
    node,
    asked,
    addImage: (id, mebibytes) => writeFileSync(path.join(images, id), Buffer.alloc(mebibytes * MI)),
    available: () => {
      const { bavail, blocks } = statfsSync(images);
      return Math.round((100 * bavail) / blocks);
    },
    daemon: (...args) =>
      startDaemon({
        node: node.path,
        args: [
          '--runtime=cri',
          `--runtime-endpoint=unix://${server.socketPath}`,
          `--imagefs-path=${images}`,
          '--image-gc=pressure',
          '--container-gc=pressure',
          '--log-level=debug',
          ...args,
        ],
      }),
  };
}

/** A pod of one container, and the images that it uses. */
interface SplitPod {
  readonly name: string;
  readonly uses: readonly string[];
}

/** Images have a filesystem of their own, on which each is a file of so many MiB; pods are cgroups of the node. */
async function makeSplit(images: Readonly<Record<string, number>>, pods: readonly SplitPod[]) {
  const directory = mountTmpfs(`size=${SIZE_MI}m`);
  const elsewhere = privateDirectory();
  const node = makeNode(256 * MI);
  const parent = path.relative(MEMORY_HIERARCHY, node.path);
  for (const [id, mebibytes] of Object.entries(images)) {
    writeFileSync(path.join(directory, id), Buffer.alloc(mebibytes * MI));
  }
  const asked: string[] = [];
  const there = new Map(pods.map((pod) => [pod.name, { ...pod, isRunning: true }]));
  const containers = () =>
    [...there.values()].map(({ name, uses, isRunning }) => ({
      id: `c-${name}`,
      podSandboxId: name,
      metadata: { name: 'main', attempt: 0 },
      state: isRunning ? 'CONTAINER_RUNNING' : 'CONTAINER_EXITED',
      imageRef: uses[0] ?? '',
    }));
  const answers: Readonly<Record<string, Answer>> = {
    Version: () => ({ runtimeName: 'scripted', runtimeVersion: '1', runtimeApiVersion: 'v1' }),
    Status: () => ({}),
    ListPodSandbox: () => ({
      items: [...there.values()].map(({ name, isRunning }) => ({
        id: name,
        metadata: { name, namespace: 'default', uid: name, attempt: 0 },
        state: isRunning ? 'SANDBOX_READY' : 'SANDBOX_NOTREADY',
      })),
    }),
    PodSandboxStatus: ({ podSandboxId }) => ({
      info: {
        info: JSON.stringify({
          config: { linux: { cgroup_parent: `/${parent}/pod${podSandboxId}` } },
        }),
      },
    }),
    ListContainers: () => ({ containers: containers() }),
    ContainerStatus: ({ containerId }) => ({
      status: {
        mounts: (there.get(String(containerId).slice('c-'.length))?.uses ?? []).map((image) => ({
          image: { image },
        })),
      },
    }),
    ListContainerStats: () => ({
      stats: containers().map(({ id }) => ({
        attributes: { id },
        writableLayer: { timestamp: String(Date.now() * 1e6), usedBytes: { value: 0 } },
      })),
    }),
    ImageFsInfo: () => ({
      imageFilesystems: [{ fsId: { mountpoint: directory } }],
      containerFilesystems: [{ fsId: { mountpoint: elsewhere } }],
    }),
    StopPodSandbox: ({ podSandboxId }) => {
      const pod = there.get(String(podSandboxId));
      if (pod !== undefined) pod.isRunning = false;
      return {};
    },
    RemovePodSandbox: ({ podSandboxId }) => {
      there.delete(String(podSandboxId));
      asked.push(`pod ${podSandboxId}`);
      return {};
    },
    ListImages: () => ({
      images: readdirSync(directory).map((id) => ({ id, size: (images[id] ?? 0) * MI })),
    }),
    RemoveImage: ({ image }) => {
      const { image: id } = image as { readonly image: string };
      asked.push(`image ${id}`);
      rmSync(path.join(directory, id));
      return {};
    },
  };
  const server = await startScriptedCri(path.join(privateDirectory(), 'cri.sock'), answers);
  onTestFinished(() => server.close());
  const leaks = new Map<string, Awaited<ReturnType<ReturnType<TestNode['pod']>['spawn']>>>();
  for (const { name } of pods) leaks.set(name, await node.pod(`pod${name}`).spawn());
  const daemon = await startDaemon({
    node: node.path,
    args: [
      '--runtime=cri',
      `--runtime-endpoint=unix://${server.socketPath}`,
      `--nodefs-path=${elsewhere}`,
      '--image-gc=pressure',
      '--container-gc=pressure',
      '--eviction-hard=imagefs.available<15%',
    ],
  });
  return { daemon, asked, leaks };
}

describeWith(NEEDS, 'C26: images on a filesystem of their own', () => {
  const IMAGES = { base: 45, 'of-small': 8, 'of-large': 37 };

  it('the pod goes whose own images are largest, and they are removed, and no other goes', async () => {
    const { daemon, asked, leaks } = await makeSplit(IMAGES, [
      { name: 'a', uses: ['base'] },
      { name: 'large', uses: ['of-large'] },
      { name: 'small', uses: ['of-small', 'base'] },
    ]);
    const [eviction] = await daemon.ended(1, 30_000);
    expect(eviction).toMatchObject({ pod: 'default/large', outcome: 'evicted' });
    expect(eviction?.message).toContain('The pod alone was using images of 37Mi.');
    await daemon.line('threshold no longer met');
    expect(asked).toEqual(['pod large', 'image of-large']);
    const status = await daemon.status();
    expect(status.layout?.kind).toBe('splitImagefs');
    expect(status.evictions).toHaveLength(1);
    for (const name of ['a', 'small']) process.kill(leaks.get(name)?.pid ?? 0, 0);
    await daemon.stop();
  });

  it('where each is used by two nobody goes, and it is said that it would not help', async () => {
    const { daemon, asked, leaks } = await makeSplit({ base: 90 }, [
      { name: 'a', uses: ['base'] },
      { name: 'b', uses: ['base'] },
    ]);
    const line = await daemon.line('pressure, but no pod may be evicted');
    expect(line).toMatchObject({ signal: 'imagefs.available', pods: 2, helplessPods: 2 });
    expect(line['message']).toContain('2 whose end would free nothing');
    const status = await daemon.status();
    expect(status.evictions).toEqual([]);
    expect(status.impossible).toMatchObject([{ helplessPods: 2, protectedPods: 0 }]);
    expect(asked).toEqual([]);
    for (const { pid } of leaks.values()) process.kill(pid, 0);
    await daemon.stop();
  });
});

describeWith(NEEDS, 'evictd gc', () => {
  it('measures the filesystems of the runtime, and lists what is not started yet', async () => {
    const [images, layers] = [mountTmpfs('size=50m'), mountTmpfs('size=50m')];
    writeFileSync(path.join(images, 'free'), Buffer.alloc(8 * MI));
    writeFileSync(path.join(layers, 'dead'), Buffer.alloc(4 * MI));
    const container = (id: string, state: string) => ({
      id,
      podSandboxId: 's1',
      metadata: { name: id, attempt: 0 },
      state,
      imageRef: 'used',
    });
    const server = await startScriptedCri(path.join(privateDirectory(), 'cri.sock'), {
      Status: () => ({}),
      ListPodSandbox: () => ({
        items: [
          {
            id: 's1',
            metadata: { name: 'web', namespace: 'default', uid: UID, attempt: 0 },
            state: 'SANDBOX_NOTREADY',
          },
        ],
      }),
      PodSandboxStatus: () => ({ info: {} }),
      ListContainers: () => ({
        containers: [
          ...readdirSync(layers).map((id) => container(id, 'CONTAINER_EXITED')),
          container('next', 'CONTAINER_CREATED'),
        ],
      }),
      ContainerStatus: () => ({ status: { state: 'CONTAINER_EXITED' } }),
      RemoveContainer: ({ containerId }) => {
        rmSync(path.join(layers, String(containerId)));
        return {};
      },
      ListImages: () => ({ images: readdirSync(images).map((id) => ({ id, size: 1 })) }),
      RemoveImage: ({ image }) => {
        rmSync(path.join(images, (image as { readonly image: string }).image));
        return {};
      },
      ImageFsInfo: () => ({
        // As containerd has it: a directory of its own root's, which may not be there.
        imageFilesystems: [{ fsId: { mountpoint: path.join(images, 'not-made') } }],
        containerFilesystems: [{ fsId: { mountpoint: layers } }],
      }),
    });
    onTestFinished(() => server.close());
    const gc = async (...args: readonly string[]): Promise<string> => {
      const endpoint = `--runtime-endpoint=unix://${server.socketPath}`;
      const { stdout } = await run(process.execPath, [
        MAIN,
        'gc',
        '--runtime=cri',
        endpoint,
        ...args,
      ]);
      return stdout;
    };
    expect((await gc('--dry-run')).split('\n').slice(0, -2)).toEqual([
      'keeps container default/web/next (next): not started yet',
      'would remove container default/web/dead (dead)',
      'would remove image free',
    ]);
    expect(await gc()).toContain(
      `1 containers, 0 sandboxes and 1 images removed, 0 in use after all, 0 not removed; ${12 * MI} bytes came back`,
    );
    // Where another place is named, that one counts.
    writeFileSync(path.join(images, 'free'), Buffer.alloc(8 * MI));
    expect(await gc(`--imagefs-path=${layers}`)).toMatch(
      /and 1 images removed.*; 0 bytes came back/,
    );
  });
});

describeWith(NEEDS, 'a runtime that', () => {
  it('C19, C21, C24: has images in use, pinned and fresh, frees 9 % to 60 %, and is stale', async () => {
    const scripted = await makeScripted({
      pinned: ['pinned'],
      volumes: ['example/volume:1'],
      removeImage: (id, remove) => {
        if (id.startsWith('busy')) throw new Error(`image ${id} is in use by running container`);
        return remove();
      },
    });
    const leak = await scripted.node.pod(POD).spawn();
    for (const id of ['pinned', 'used', 'volume']) scripted.addImage(id, 1);
    for (const id of ['busy-1', 'busy-2', 'busy-3', 'busy-4', 'busy-5']) scripted.addImage(id, 4);
    for (const id of ['free-1', 'free-2', 'free-3']) scripted.addImage(id, 17);
    const daemon = await scripted.daemon(
      '--eviction-hard=imagefs.available<15%',
      '--eviction-minimum-reclaim=imagefs.available=44%',
    );
    await daemon.line('other images, or used otherwise');
    scripted.addImage('fresh', 17);
    expect(scripted.available()).toBe(9);
    const line = await daemon.line('collected what nobody uses');
    expect(line).toMatchObject({ because: 'regained', images: 3, inUse: 5, failed: 0 });
    expect(scripted.available()).toBe(60);
    // Conflicts are no trouble.
    const conflicts = daemon.lines.filter(({ msg }) => msg === 'in use after all: it stays');
    expect(conflicts.map(({ level, name }) => [level, name])).toEqual(
      [1, 2, 3, 4, 5].map((number) => ['info', `example/busy-${number}:1`]),
    );
    expect(readdirSync(scripted.images)).toEqual(
      expect.arrayContaining(['pinned', 'used', 'volume', 'fresh', 'busy-1']),
    );
    await daemon.line('threshold no longer met');
    const status = await daemon.status();
    expect(status.evictions).toEqual([]);
    expect(status.impossible).toEqual([]);
    process.kill(leak.pid, 0);
    await daemon.stop();
  });

  it('hangs in a collection: memory is acted on at once, and the collection ends', async () => {
    const scripted = await makeScripted({ removeImage: () => new Promise(() => undefined) });
    const leak = await scripted.node.pod(POD).spawn();
    scripted.addImage('free', 90);
    const daemon = await scripted.daemon(
      '--eviction-hard=imagefs.available<15%,memory.available<64Mi',
    );
    await daemon.statusWhen(
      'it collects',
      ({ garbage }) => garbage.collectingFor === 'imagefs.available',
    );
    await fill(scripted.node.cgroup, leak, 200 * MI);
    expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
    const [eviction] = await daemon.ended(1);
    expect(eviction).toMatchObject({ pod: 'default/leak', outcome: 'evicted' });
    expect(eviction?.message).toContain('low on resource: memory');
    expect((await daemon.status()).garbage.collectingFor).toBe('imagefs.available');
    report(`KILL ${eviction?.timing.killedMs} ms after the decision, while the collection hung`);
    const { garbage } = await daemon.statusWhen(
      'it has ended',
      ({ garbage: { last } }) => last !== null,
      COLLECTION_LIMIT_MS + 5000,
    );
    expect(garbage).toMatchObject({
      collectingFor: null,
      // It answers what else it is asked: that image is passed over, and there is no other.
      last: { because: 'exhausted', images: 0, failed: 1 },
    });
    expect(garbage.last?.tookMs).toBeLessThan(COLLECTION_LIMIT_MS);
    await daemon.stop();
  });
});

import { mkdtempSync, readdirSync, readFileSync, rmdirSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { type CriClient, criClient } from '../../src/runtimes/cri/client.ts';
import { startDaemon } from '../kernel/support/daemon.ts';
import { MI, makeNode, type TestNode } from '../kernel/support/node.ts';
import { MEMORY_HIERARCHY } from '../support/cgroup.ts';
import { describeWith } from '../support/skip.ts';
import { until } from '../support/wait.ts';
import { type Containerd, startContainerd } from './support/containerd.ts';
import { type MadePod, type PodMaker, podMaker } from './support/cri-pods.ts';

const WAIT_MS = 30_000;
const NEEDS = {
  root: true,
  cgroupV1: true,
  programs: ['containerd', 'runc', 'ctr', 'busybox', 'tar'],
} as const;

describeWith(NEEDS, 'containerd', () => {
  let containerd: Containerd;
  let client: CriClient;

  beforeAll(async () => {
    containerd = await startContainerd(mkdtempSync('/tmp/ec-'));
    client = criClient(`unix://${containerd.socketPath}`, () => Date.now());
  });
  afterAll(async () => {
    client.close();
    await containerd.remove();
  });

  /** A node, what makes pods in it, and a daemon that watches it. */
  async function nodeWithDaemon(args: readonly string[] = []) {
    const node = makeNode(512 * MI);
    const parent = path.relative(MEMORY_HIERARCHY, node.path);
    const maker = podMaker(containerd.socketPath, parent, mkdtempSync('/tmp/ecp-'));
    onTestFinished(async () => {
      maker.close();
      await removePods(node);
    });
    const daemon = await startDaemon({
      node: node.path,
      args: [
        '--runtime=cri',
        `--runtime-endpoint=unix://${containerd.socketPath}`,
        '--eviction-hard=memory.available<100Mi',
        ...args,
      ],
    });
    return { node, maker, daemon };
  }

  /** Ends the pods of a node through the runtime, and removes the groups that it leaves everywhere. */
  async function removePods(node: TestNode): Promise<void> {
    const { items } = await client.call<{ readonly items: readonly { readonly id: string }[] }>(
      'ListPodSandbox',
    );
    for (const { id } of items) {
      await client.call('StopPodSandbox', { podSandboxId: id }, WAIT_MS);
      await client.call('RemovePodSandbox', { podSandboxId: id }, WAIT_MS);
    }
    removeGroups(path.relative(MEMORY_HIERARCHY, node.path));
  }

  async function stateOf({ sandboxId }: MadePod): Promise<string | undefined> {
    const { items } = await client.call<{
      readonly items: readonly { readonly id: string; readonly state: string }[];
    }>('ListPodSandbox');
    return items.find(({ id }) => id === sandboxId)?.state;
  }

  it('has the pod that leaks evicted, and no other', async () => {
    const { maker, daemon } = await nodeWithDaemon();
    const web = await maker.run('web', ['hog', '40']);
    const cache = await maker.run('cache', ['hog', '40']);
    const leak = await runLeak(maker);
    const [eviction] = await daemon.ended(1);
    expect(eviction).toMatchObject({ pod: 'default/leak', outcome: 'evicted' });
    await until('the runtime agrees', () => processesIn(leak).length === 0, { limitMs: WAIT_MS });
    await untilAsync(async () => (await stateOf(leak)) === 'SANDBOX_NOTREADY');
    for (const pod of [web, cache]) {
      expect(processesIn(pod).length).toBeGreaterThan(0);
      expect(await stateOf(pod)).toBe('SANDBOX_READY');
    }
  });
});

function runLeak(maker: PodMaker): Promise<MadePod> {
  return maker.run('leak', ['hog', '600', '20', '0.1']);
}

function processesIn({ cgroup }: MadePod): readonly string[] {
  const read = (directory: string): readonly string[] => {
    const own = readFileSync(`${directory}/cgroup.procs`, 'utf8').split('\n').filter(Boolean);
    const below = readdirSync(directory, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .flatMap(({ name }) => read(`${directory}/${name}`));
    return [...own, ...below];
  };
  return read(path.join(MEMORY_HIERARCHY, cgroup));
}

async function untilAsync(probe: () => Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + WAIT_MS;
  while (!(await probe())) {
    if (performance.now() > deadlineMs) throw new Error(`not within ${WAIT_MS} ms`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Runtimes leave a pod's empty groups in every hierarchy. */
function removeGroups(name: string): void {
  const mounts = readFileSync('/proc/mounts', 'utf8').split('\n');
  for (const line of mounts) {
    const [, mount = '', type] = line.split(' ');
    if (type !== 'cgroup' && type !== 'cgroup2') continue;
    if (mount !== MEMORY_HIERARCHY) removeTree(path.join(mount, name));
    else for (const below of directoriesIn(path.join(mount, name))) removeTree(below);
  }
}

function removeTree(directory: string): void {
  for (const below of directoriesIn(directory)) removeTree(below);
  try {
    rmdirSync(directory);
  } catch {
    // It is not there, or somebody is in it.
  }
}

function directoriesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => path.join(directory, name));
  } catch {
    return [];
  }
}

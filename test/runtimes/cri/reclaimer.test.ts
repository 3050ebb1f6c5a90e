import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { criClient } from '../../../src/runtimes/cri/client.ts';
import { type Logs, logsBelow } from '../../../src/runtimes/cri/logs.ts';
import { criReclaimer } from '../../../src/runtimes/cri/reclaimer.ts';
import { type Answer, startScriptedCri } from '../../e2e/support/scripted-cri.ts';
import { privateDirectory } from '../../kernel/support/daemon.ts';

const NS = 1_000_000;

const SANDBOXES = {
  items: [
    {
      id: 's-live',
      metadata: { name: 'web', namespace: 'default', uid: 'u1', attempt: 1 },
      state: 'SANDBOX_READY',
      createdAt: 5 * NS,
      labels: { app: 'web' },
    },
    {
      id: 's-dead',
      metadata: { name: 'batch', namespace: 'default', uid: 'u2', attempt: 0 },
      state: 'SANDBOX_NOTREADY',
      createdAt: 6 * NS,
      annotations: { note: 'x' },
    },
    // Its sandbox has died, and a container has not.
    {
      id: 's-half',
      metadata: { name: 'half', namespace: 'default', uid: 'u3', attempt: 0 },
      state: 'SANDBOX_NOTREADY',
      createdAt: 7 * NS,
    },
  ],
};

const container = (id: string, podSandboxId: string, state: string, more: object = {}) => ({
  id,
  podSandboxId,
  metadata: { name: 'main', attempt: 0 },
  state: `CONTAINER_${state}`,
  createdAt: 8 * NS,
  image: { image: 'example/app:1' },
  imageRef: 'sha256:app',
  ...more,
});

const CONTAINERS = {
  containers: [
    container('c-run', 's-live', 'RUNNING'),
    container('c-tried', 's-live', 'EXITED', { labels: { 'evictd.protected': 'true' } }),
    container('c-dead', 's-dead', 'EXITED'),
    container('c-made', 's-dead', 'CREATED', { podSandboxId: 's-live' }),
    container('c-half', 's-half', 'RUNNING', { imageRef: 'example/other@sha256:1' }),
    container('c-lost', 's-none', 'EXITED', { metadata: null }),
  ],
};

const IMAGES = {
  images: [
    { id: 'sha256:app', repoTags: ['example/app:1'], size: 1000 },
    {
      id: 'sha256:other',
      repoTags: ['example/other:1'],
      repoDigests: ['example/other@sha256:1'],
      size: 7,
    },
    { id: 'sha256:pause', repoTags: ['example/pause:3'], size: 1 },
    { id: 'sha256:next-pause', repoTags: ['example/pause:4'], size: 1 },
    { id: 'sha256:pinned', repoTags: [], size: 1, pinned: true },
    { id: 'sha256:volume', repoTags: ['example/model:1'], size: '9223372036854775807' },
    { id: 'sha256:free', repoTags: ['example/free:1', 'example/free:2'], size: 2 },
  ],
};

const BASE: Readonly<Record<string, Answer>> = {
  ListPodSandbox: () => SANDBOXES,
  ListContainers: () => CONTAINERS,
  ListImages: () => IMAGES,
  ContainerStatus: ({ containerId }) => ({
    status: {
      id: containerId,
      state: CONTAINERS.containers.find(({ id }) => id === containerId)?.state,
      finishedAt: containerId === 'c-dead' ? 20 * NS : 0,
      mounts:
        containerId === 'c-run'
          ? [{ containerPath: '/m', image: { image: 'example/model:1' } }, { containerPath: '/x' }]
          : [],
    },
  }),
  PodSandboxStatus: ({ podSandboxId }) => ({
    status: SANDBOXES.items.find(({ id }) => id === podSandboxId),
    info: { info: podSandboxId === 's-live' ? '{"image":"example/pause:3"}' : 'no JSON' },
  }),
  Status: () => ({ info: { config: '{"sandboxImage":"example/pause:4"}' } }),
};

async function reclaimerOf(
  answers: Readonly<Record<string, Answer>> = {},
  logs: Logs = logsBelow('/nowhere'),
) {
  const asked: string[] = [];
  const counted = Object.entries({ ...BASE, ...answers }).map(
    ([name, answer]): [string, Answer] => [
      name,
      (request) => {
        asked.push(name);
        return answer(request);
      },
    ],
  );
  const server = await startScriptedCri(
    path.join(privateDirectory(), 'cri.sock'),
    Object.fromEntries(counted),
  );
  const client = criClient(`unix://${server.socketPath}`, () => Date.now());
  onTestFinished(() => {
    client.close();
    server.close();
  });
  return { reclaimer: criReclaimer(client, logs), asked };
}

const failing =
  (code: number, message: string): Answer =>
  () => {
    throw Object.assign(new Error(message), { code });
  };

describe('criReclaimer', () => {
  it('lists what has exited, with its end, its pod and whether that lives', async () => {
    const { reclaimer, asked } = await reclaimerOf();
    const { containers, sandboxes, created } = await reclaimer.listDead();
    expect(created).toStrictEqual([{ id: 'c-made', name: 'default/web/main' }]);
    expect(containers).toStrictEqual([
      {
        id: 'c-tried',
        owner: '["u1","main"]',
        endedAtMs: 8,
        ofLivingPod: true,
        name: 'default/web/main',
        labels: { 'evictd.protected': 'true' },
        annotations: {},
        pod: { labels: { app: 'web' }, annotations: {} },
      },
      {
        id: 'c-dead',
        owner: '["u2","main"]',
        endedAtMs: 20,
        ofLivingPod: false,
        name: 'default/batch/main',
        labels: {},
        annotations: {},
        pod: { labels: {}, annotations: { note: 'x' } },
      },
      expect.objectContaining({ id: 'c-lost', owner: '["s-none",""]', ofLivingPod: false }),
    ]);
    expect(sandboxes).toStrictEqual([
      {
        id: 's-dead',
        owner: 'u2',
        endedAtMs: 20,
        containers: ['c-dead'],
        name: 'default/batch',
        labels: {},
        annotations: { note: 'x' },
      },
    ]);
    const before = asked.length;
    await reclaimer.listDead();
    // What does not change is not asked for again.
    expect(asked.slice(before)).toStrictEqual(['ListPodSandbox', 'ListContainers']);
  });

  it('C24: lists images with what uses them, as a volume too, and those that are pinned', async () => {
    const { reclaimer } = await reclaimerOf();
    const images = await reclaimer.listImages();
    expect(images.map(({ id, usedBy, pinned }) => [id.slice(7), usedBy, pinned])).toStrictEqual([
      ['app', ['c-run', 'c-tried', 'c-dead', 'c-made', 'c-lost', 'c-half'], undefined],
      ['other', ['c-half'], undefined],
      ['pause', [], 'sandboxes are made of it'],
      ['next-pause', [], 'sandboxes are made of it'],
      ['pinned', [], 'pinned by the runtime'],
      ['volume', ['c-run'], undefined],
      ['free', [], undefined],
    ]);
    expect(images.at(-1)?.names).toStrictEqual(['example/free:1', 'example/free:2']);
    expect(images.at(-2)?.sizeBytes).toBeGreaterThan(Number.MAX_SAFE_INTEGER);
  });

  it('does without what a runtime does not say of itself', async () => {
    const { reclaimer } = await reclaimerOf({ Status: failing(12, 'unimplemented') });
    const images = await reclaimer.listImages();
    expect(images.filter(({ pinned }) => pinned !== undefined)).toHaveLength(2);
    const other = await reclaimerOf({ Status: failing(13, 'internal') });
    await expect(other.reclaimer.listImages()).rejects.toThrow('internal');
  });

  it('leaves out what goes while it is asked about', async () => {
    const { reclaimer } = await reclaimerOf({
      ContainerStatus: failing(5, 'not found'),
      PodSandboxStatus: failing(5, 'not found'),
    });
    const { containers } = await reclaimer.listDead();
    expect(containers.map(({ endedAtMs }) => endedAtMs)).toStrictEqual([8, 8, 8]);
    expect(await reclaimer.listImages()).toHaveLength(IMAGES.images.length);
  });

  it.each([
    [undefined, '', { kind: 'removed' }],
    [5, 'no such container', { kind: 'gone' }],
    [9, 'a precondition', { kind: 'inUse', detail: expect.stringContaining('a precondition') }],
    [2, 'image is in use by a container', { kind: 'inUse' }],
    [2, 'conflict: image is being used by running container 1', { kind: 'inUse' }],
    [2, 'container is still running, to stop first', { kind: 'inUse' }],
    [2, 'no space left on device', { kind: 'failed', isAway: false }],
    [14, 'unavailable', { kind: 'failed', isAway: true }],
    [4, 'deadline', { kind: 'failed', isAway: true }],
  ])('a removal that ends with %s %s', async (code, message, expected) => {
    const answer = code === undefined ? () => ({}) : failing(code, message);
    const { reclaimer } = await reclaimerOf({
      RemoveContainer: answer,
      RemovePodSandbox: answer,
      RemoveImage: answer,
    });
    expect(await reclaimer.removeContainer('c-dead')).toMatchObject(expected);
    expect(await reclaimer.removeSandbox('s-dead')).toMatchObject(expected);
    const [free] = (await reclaimer.listImages()).filter(({ id }) => id === 'sha256:free');
    expect(free && (await reclaimer.removeImage(free))).toMatchObject(expected);
  });

  it('is not away where one removal alone hangs', async () => {
    const { reclaimer } = await reclaimerOf({
      RemoveContainer: failing(4, 'deadline'),
      Version: () => ({ runtimeName: 'scripted' }),
    });
    expect(await reclaimer.removeContainer('c-dead')).toMatchObject({
      kind: 'failed',
      isAway: false,
    });
  });

  it('leaves the log of a living container alone, and takes it with the last one that has it', async () => {
    const root = path.join(privateDirectory(), 'pods');
    const logPath = path.join(root, 'main.log');
    mkdirSync(root);
    writeFileSync(logPath, 'log');
    let containers = [
      container('c-0', 's-live', 'EXITED'),
      container('c-1', 's-live', 'EXITED'),
      container('c-2', 's-live', 'RUNNING'),
    ];
    const { reclaimer } = await reclaimerOf(
      {
        ListContainers: () => ({ containers }),
        ContainerStatus: ({ containerId }) => ({
          status: { state: containers.find(({ id }) => id === containerId)?.state, logPath },
        }),
        RemoveContainer: () => ({}),
      },
      logsBelow(root),
    );
    await reclaimer.listDead();
    expect(await reclaimer.removeContainer('c-0')).toStrictEqual({ kind: 'removed' });
    expect(existsSync(logPath)).toBe(true);
    containers = [container('c-1', 's-live', 'EXITED'), container('c-2', 's-live', 'EXITED')];
    await reclaimer.listDead();
    expect(await reclaimer.removeContainer('c-1')).toStrictEqual({ kind: 'removed' });
    expect(existsSync(logPath)).toBe(true);
    expect(await reclaimer.removeContainer('c-2')).toStrictEqual({ kind: 'removed' });
    expect(existsSync(logPath)).toBe(false);
  });

  it('takes logs with what they are of, and says where that fails', async () => {
    const removed: string[] = [];
    const taking =
      (what: string) =>
      async (logPath: string): Promise<void> => {
        if (logPath.includes('stuck')) throw new Error('EROFS');
        removed.push(`${what} ${logPath}`);
      };
    const { reclaimer } = await reclaimerOf(
      {
        ContainerStatus: ({ containerId }) => ({
          status: {
            state: 'CONTAINER_EXITED',
            logPath: containerId === 'c-tried' ? '/logs/stuck' : `/logs/${containerId}/0.log`,
          },
        }),
        RemoveContainer: ({ containerId }) =>
          containerId === 'c-lost' ? failing(5, 'gone')({}) : {},
        RemovePodSandbox: () => ({}),
      },
      { remove: taking('remove'), tidy: taking('tidy') },
    );
    await reclaimer.listDead();
    await reclaimer.listDead();
    expect(await reclaimer.removeContainer('c-dead')).toStrictEqual({ kind: 'removed' });
    expect(await reclaimer.removeContainer('c-lost')).toStrictEqual({ kind: 'gone' });
    expect(await reclaimer.removeContainer('c-tried')).toStrictEqual({
      kind: 'failed',
      detail: 'removed, but not its log: EROFS',
      isAway: false,
    });
    expect(await reclaimer.removeSandbox('s-dead')).toStrictEqual({ kind: 'removed' });
    expect(removed).toStrictEqual(['remove /logs/c-dead/0.log', 'tidy /logs/c-dead/0.log']);
  });

  it.each([
    ['removeContainer', 'c-run', 'the container is CONTAINER_RUNNING'],
    ['removeContainer', 'c-made', 'the container is CONTAINER_CREATED'],
    ['removeSandbox', 's-live', 'the sandbox is SANDBOX_READY'],
    ['removeSandbox', 's-half', 'its container c-half is CONTAINER_RUNNING'],
  ] as const)('%s leaves %s alone, which containerd would stop', async (remove, id, detail) => {
    const { reclaimer, asked } = await reclaimerOf({
      RemoveContainer: () => ({}),
      RemovePodSandbox: () => ({}),
    });
    expect(await reclaimer[remove](id)).toStrictEqual({ kind: 'inUse', detail });
    expect(asked.filter((name) => name.startsWith('Remove'))).toStrictEqual([]);
  });

  it('removes no image of which a container was made since it was listed', async () => {
    let containers: readonly object[] = CONTAINERS.containers;
    const { reclaimer, asked } = await reclaimerOf({
      ListContainers: () => ({ containers }),
      RemoveImage: () => ({}),
    });
    const [free] = (await reclaimer.listImages()).filter(({ id }) => id === 'sha256:free');
    containers = [container('c-new', 's-live', 'CREATED', { imageRef: 'example/free:2' })];
    expect(free && (await reclaimer.removeImage(free))).toStrictEqual({
      kind: 'inUse',
      detail: 'used by container c-new',
    });
    expect(asked).not.toContain('RemoveImage');
  });

  it('rejects, or fails to remove, where nobody answers', async () => {
    const client = criClient(`unix://${path.join(privateDirectory(), 'none.sock')}`, () =>
      Date.now(),
    );
    onTestFinished(() => client.close());
    const reclaimer = criReclaimer(client, logsBelow('/nowhere'));
    await expect(reclaimer.listDead()).rejects.toThrow();
    await expect(reclaimer.listImages()).rejects.toThrow();
    expect(await reclaimer.removeContainer('c')).toMatchObject({ kind: 'failed', isAway: true });
    const image = { id: 'i', names: [], sizeBytes: 0, pinned: undefined, usedBy: [] };
    expect(await reclaimer.removeImage(image)).toMatchObject({ kind: 'failed', isAway: true });
  });
});

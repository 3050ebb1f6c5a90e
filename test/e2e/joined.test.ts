/** Containers that are one pod together, who comes straight back, and which runtime is found. */
import { mkdtempSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type Docker from 'dockerode';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { privateDirectory } from '../kernel/support/daemon.ts';
import { MEMORY_HIERARCHY } from '../support/cgroup.ts';
import { describeWith } from '../support/skip.ts';
import { until } from '../support/wait.ts';
import { isAlive, isGone, stage } from './leak-stories.ts';
import { type Dockerd, startDockerd } from './support/dockerd.ts';
import { engineHost } from './support/engine-host.ts';
import { BUSYBOX_IMAGE, PAUSE_IMAGE } from './support/image.ts';
import { pidsBelow } from './support/left-over.ts';
import { type Podman, startPodman } from './support/podman.ts';
import type { MadePod, RuntimeHost } from './support/runtime-host.ts';
import { untilAnswer } from './support/until-answer.ts';

const LIMIT_MS = 30_000;
const HARD = '--eviction-hard=memory.available<100Mi';

const DOCKER = {
  root: true,
  cgroupV1: true,
  programs: ['dockerd', 'containerd', 'runc', 'busybox', 'tar'],
} as const;

const PODMAN = {
  root: true,
  cgroupV1: true,
  programs: ['podman', 'conmon', 'runc', 'busybox', 'tar'],
} as const;

describeWith(DOCKER, 'Docker', () => {
  let dockerd: Dockerd;
  let host: RuntimeHost;

  beforeAll(async () => {
    dockerd = await startDockerd(mkdtempSync('/tmp/ej-'), { liveRestore: false });
    host = engineHost(dockerd);
  });
  afterAll(() => host.remove());

  /** What compose gives a container of a project. */
  const of = (project: string, more: Readonly<Record<string, string>> = {}) => ({
    labels: { 'com.docker.compose.project': project, ...more },
  });

  it('has a compose project evicted as one pod', async () => {
    const { holds, leaks, watch, knows } = stage(host);
    const front = await holds('front', 30, of('shop'));
    const back = await leaks('back', { mib: 600, pauseSeconds: 0.02, ...of('shop') });
    const other = await holds('blog-web', 40, of('blog'));
    const alone = await holds('alone', 40);
    const daemon = await watch([HARD, '--docker-pods=compose']);
    await knows(daemon, [named('shop'), named('blog'), alone]);
    const before = (await daemon.status()).pods.find(({ name }) => name === 'shop');
    expect(before?.workingSetBytes).toBeGreaterThan(30 * 2 ** 20);
    back.begin();
    const [eviction] = await daemon.ended(1, LIMIT_MS);
    expect(eviction).toMatchObject({ pod: 'shop', outcome: 'evicted' });
    expect(eviction?.message).toMatch(/Container back was using .*, request is 0/);
    for (const pod of [front, back]) await isGone(host, pod);
    for (const pod of [other, alone]) await isAlive(host, pod);
    await knows(daemon, [named('blog'), alone]);
  });

  it('spares a project of which one container is protected', async () => {
    const { holds, leaks, watch, knows } = stage(host);
    const front = await holds('front', 20, of('shop', { 'evictd.protected': 'true' }));
    const back = await leaks('back', { mib: 420, pauseSeconds: 0.02, ...of('shop') });
    const other = await holds('other', 40);
    const daemon = await watch([HARD, '--docker-pods=compose']);
    await knows(daemon, [named('shop'), other]);
    back.begin();
    const [eviction] = await daemon.ended(1, LIMIT_MS);
    expect(eviction).toMatchObject({ pod: 'other', outcome: 'evicted' });
    await isGone(host, other);
    for (const pod of [front, back]) await isAlive(host, pod);
  });

  it('counts who comes straight back, and has him go first', async () => {
    const { holds, leaks, watch, knows } = stage(host);
    const big = await holds('big', 200);
    const leak = await leaks('leak', { mib: 240, pauseSeconds: 0.02 });
    const daemon = await watch();
    await knows(daemon, [big, leak]);
    leak.begin();
    await daemon.ended(1, LIMIT_MS);
    await isGone(host, leak);
    await dockerd.docker.getContainer(leak.id).start();
    const back = await daemon.line('an evicted pod came straight back');
    expect(back).toMatchObject({ owner: 'container leak', pod: 'leak', returns: 1, heldForMs: 0 });
    const isReady = () => pidsBelow(leak.cgroup).length > 0;
    await until('it is there', isReady, { limitMs: LIMIT_MS });
    const { comebacks } = await daemon.status();
    expect(comebacks).toMatchObject([{ owner: 'container leak', pod: 'leak', returns: 1 }]);
    await isAlive(host, big);
  });

  it('goes on with the eviction that a former run was at, also of a project', async () => {
    const { holds, leaks, watch, knows } = stage(host);
    const front = await holds('front', 30, of('shop'));
    const traps = 'trap "" TERM';
    const back = await leaks('back', { mib: 330, pauseSeconds: 0.02, traps, ...of('shop') });
    const web = await holds('web', 20);
    const args = [
      ...['--docker-pods=compose', `--state-dir=${privateDirectory()}`],
      ...['--eviction-hard=', '--eviction-soft=memory.available<150Mi'],
      ...[
        '--eviction-soft-grace-period=memory.available=300ms',
        '--eviction-max-pod-grace-period=8',
      ],
    ];
    const first = await watch(args);
    await knows(first, [named('shop'), web]);
    back.begin();
    await first.line('evicting', ({ pod }) => pod === 'shop');
    const file = (await first.status()).state?.file ?? '';
    const isKept = () => readFileSync(file, 'utf8').includes('shop');
    await until('that is written down', isKept, { limitMs: LIMIT_MS });
    process.kill(first.pid, 'SIGKILL');
    await first.exited;
    expect(pidsBelow(back.cgroup).length).toBeGreaterThan(0);
    const second = await watch(args);
    await second.line('the eviction of a former run goes on', ({ pod }) => pod === 'shop');
    const evictions = await second.ended(1, LIMIT_MS);
    expect(evictions.map(({ pod, outcome }) => [pod, outcome])).toEqual([['shop', 'evicted']]);
    for (const pod of [front, back]) await isGone(host, pod);
    await isAlive(host, web);
  });

  it('looks at no label longer than anybody reads', async () => {
    const { leaks, watch, knows, node } = stage(host);
    const bigLabels = async (name: string, command: readonly string[], Labels: object) => {
      const { docker } = dockerd;
      const CgroupParent = `/${path.relative(MEMORY_HIERARCHY, node.path)}`;
      const HostConfig = { CgroupParent, NetworkMode: 'none' };
      // In the way of the client itself they would be in the address too, which has a limit.
      const { Id } = await dial<{ readonly Id: string }>(docker, 'POST', '/containers/create?', {
        _query: { name },
        _body: { Image: BUSYBOX_IMAGE, Cmd: command, Labels, HostConfig },
      });
      onTestFinished(() => docker.getContainer(Id).remove({ force: true }));
      await docker.getContainer(Id).start();
      return { name, id: Id, cgroup: `${CgroupParent.slice(1)}/${Id}` };
    };
    const long = 'x'.repeat(2 ** 20);
    const labels = { 'evictd.priority': long, 'evictd.protected': long, [long.slice(1)]: long };
    const web = await bigLabels('web', ['hog', '150'], labels);
    const leak = await leaks('leak', { mib: 300, pauseSeconds: 0.02 });
    const daemon = await watch();
    await knows(daemon, [web, leak]);
    const fault = await daemon.line('a label cannot be read: it counts as not given');
    expect(fault).toMatchObject({
      pod: 'web',
      reason: 'label evictd.priority: longer than 128 characters',
    });
    const { pods } = await daemon.status();
    expect(pods.find(({ name }) => name === 'web')?.protected).toBe('configured');
    leak.begin();
    const [eviction] = await daemon.ended(1, LIMIT_MS);
    expect(eviction).toMatchObject({ pod: 'leak', outcome: 'evicted' });
    await isAlive(host, web);
  });

  it('finds out what speaks at a socket', async () => {
    const { holds, watch, knows } = stage(host);
    const web = await holds('web', 10);
    const daemon = await watch([HARD, '--runtime=auto']);
    const chosen = await daemon.line('runtime chosen');
    expect(chosen).toMatchObject({ runtime: 'an engine that speaks Docker’s API' });
    await knows(daemon, [web]);
  });
});

describeWith(PODMAN, 'Podman', () => {
  let podman: Podman;
  let host: RuntimeHost;

  beforeAll(async () => {
    podman = await startPodman(mkdtempSync('/tmp/ejp-'));
    host = engineHost(podman);
  });
  afterAll(() => host.remove());

  it('has a pod evicted as one', async () => {
    const { holds, watch, knows, node } = stage(host);
    const { docker } = podman;
    const pod = await ask<{ readonly Id: string }>(docker, 'POST', 'pods/create', {
      name: 'shop',
      infra_image: PAUSE_IMAGE,
      infra_command: ['/bin/sleep', '1000000'],
      netns: { nsmode: 'none' },
      cgroup_parent: `/${path.relative(MEMORY_HIERARCHY, node.path)}`,
    });
    onTestFinished(() => ask(docker, 'DELETE', `pods/${pod.Id}?`, { force: true }));
    const run = async (name: string, command: readonly string[]): Promise<string> => {
      const spec = { name, image: BUSYBOX_IMAGE, command, pod: pod.Id };
      const { Id } = await ask<{ readonly Id: string }>(docker, 'POST', 'containers/create', spec);
      await docker.getContainer(Id).start();
      return Id;
    };
    const alone = await holds('alone', 60);
    const ids = [await run('front', ['hog', '20']), await run('back', ['hog', '600', '20', '0.1'])];
    const daemon = await watch([HARD, '--docker-pods=podman']);
    const [eviction] = await daemon.ended(1, LIMIT_MS);
    expect(eviction).toMatchObject({ pod: 'shop', outcome: 'evicted' });
    for (const id of ids) {
      const hasEnded = async () =>
        (await docker.getContainer(id).inspect()).State.Status === 'exited';
      await untilAnswer(`the engine agrees that ${id} is gone`, hasEnded, LIMIT_MS);
    }
    await isAlive(host, alone);
    await knows(daemon, [alone]);
  });
});

/** A pod by its name alone. */
function named(name: string): MadePod {
  return { name, id: '', cgroup: '' };
}

/** What Docker's API has no call for; a path that ends with a question mark takes the body as its query. */
function ask<T>(docker: Docker, method: string, call: string, body?: object): Promise<T> {
  return dial(docker, method, `/v4.0.0/libpod/${call}`, body);
}

function dial<T>(docker: Docker, method: string, call: string, body?: object): Promise<T> {
  return new Promise((resolve, reject) => {
    const request = {
      path: call,
      method,
      options: body ?? {},
      statusCodes: { 200: true, 201: true },
    };
    docker.modem.dial(request, (error, result) => {
      if (error) reject(error as Error);
      else resolve(result as T);
    });
  });
}

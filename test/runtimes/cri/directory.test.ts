import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { asyncScheduler, first, firstValueFrom, map, NEVER } from 'rxjs';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { PodListing, RuntimePod } from '../../../src/ports/pod-directory.ts';
import { criClient } from '../../../src/runtimes/cri/client.ts';
import { criDirectory } from '../../../src/runtimes/cri/directory.ts';
import { type Answer, startScriptedCri } from '../../e2e/support/scripted-cri.ts';

const MACHINE_BYTES = 1000 * 2 ** 20;

/** How long a listing may take although somebody does not answer, ms: the wait for what is late, twice. */
const LISTED_WITHIN_MS = 2000;

/** As with gRPC. */
const NOT_FOUND = 5;

const NEVER_ANSWERED = new Promise<object>(() => undefined);

const sandbox = (id: string, fields: object = {}) => ({
  id: `s-${id}`,
  metadata: { name: id, namespace: 'ns', uid: `uid-${id}`, attempt: 0 },
  state: 'SANDBOX_READY',
  labels: {},
  annotations: {},
  ...fields,
});

const container = (id: string, fields: object = {}) => ({
  id: `c-${id}`,
  podSandboxId: `s-${id}`,
  metadata: { name: 'main', attempt: 0 },
  image: { image: 'localhost/image:1' },
  state: 'CONTAINER_RUNNING',
  labels: {},
  ...fields,
});

const info = (said: object) => ({ info: { info: JSON.stringify(said) } });

/** As containerd tells of a sandbox and of a container in a cgroup. */
const sandboxIn = (parent: string, id: string) =>
  info({
    config: { linux: { cgroup_parent: `/${parent}` } },
    runtimeSpec: { linux: { cgroupsPath: `/${parent}/${id}` } },
  });
const containerIn = (parent: string, id: string, oomScoreAdj = 900) =>
  info({
    config: { linux: { resources: { oom_score_adj: oomScoreAdj } } },
    runtimeSpec: { linux: { cgroupsPath: `/${parent}/${id}` } },
  });

const KUBEPODS = 'kubepods/burstable';

/** A runtime with these pods of one container each, where nothing else is said. */
async function runtime(names: readonly string[], answers: Readonly<Record<string, Answer>> = {}) {
  const directory = mkdtempSync(path.join(tmpdir(), 'evictd-cri-'));
  const asked: string[] = [];
  const all: Readonly<Record<string, Answer>> = {
    ListPodSandbox: () => ({ items: names.map((name) => sandbox(name)) }),
    ListContainers: () => ({ containers: names.map((name) => container(name)) }),
    PodSandboxStatus: ({ podSandboxId }) =>
      sandboxIn(`${KUBEPODS}/poduid-${bare(podSandboxId)}`, String(podSandboxId)),
    ContainerStatus: ({ containerId }) =>
      containerIn(`${KUBEPODS}/poduid-${bare(containerId)}`, String(containerId)),
    ListImages: () => ({ images: [] }),
    ...answers,
  };
  const noting = Object.entries(all).map(([method, answer]): [string, Answer] => [
    method,
    (request) => {
      asked.push([method, request['podSandboxId'] ?? request['containerId'] ?? ''].join(' '));
      return answer(request);
    },
  ]);
  const server = await startScriptedCri(path.join(directory, 's'), Object.fromEntries(noting));
  const pods = criDirectory({
    client: criClient(`unix://${server.socketPath}`, () => Date.now()),
    scheduler: asyncScheduler,
    groups: { changes$: NEVER, follow: () => undefined, close: () => undefined },
    machineMemoryBytes: () => MACHINE_BYTES,
  });
  onTestFinished(() => {
    pods.close();
    server.close();
    rmSync(directory, { recursive: true, force: true });
  });
  /** The first listing that is so, by the names of its pods. */
  const listing = (is: (pods: Pods) => boolean = () => true): Promise<Pods> =>
    firstValueFrom(pods.listings$.pipe(map(podsIn), first(is)));
  const times = (question: string): number => asked.filter((one) => one === question).length;
  return { asked, times, listing };
}

type Pods = ReadonlyMap<string, RuntimePod>;

function podsIn(listing: PodListing): Pods {
  if (listing.kind === 'away') throw new Error(listing.reason);
  return new Map(listing.pods.map((pod) => [pod.name, pod]));
}

function bare(id: unknown): string {
  return String(id).replace(/^[sc]-/, '');
}

const placesOf = (pods: Pods) =>
  Object.fromEntries([...pods].map(([name, { cgroups, doubt }]) => [name, doubt ?? cgroups]));

/** A sandbox's or a container's own answer for some, and the usual one for others. */
const unless =
  (key: string, own: Readonly<Record<string, () => object | Promise<object>>>, usual: Answer) =>
  (request: Parameters<Answer>[0]) =>
    (own[String(request[key])] ?? (() => usual(request)))();

const fails = (message: string) => () => {
  throw new Error(message);
};

describe('the pods of a runtime that speaks CRI', () => {
  it('are where their containers say, and their sandboxes are not asked', async () => {
    const { listing, asked } = await runtime(['web', 'db']);
    expect(placesOf(await listing())).toEqual({
      'ns/web': [`${KUBEPODS}/poduid-web`],
      'ns/db': [`${KUBEPODS}/poduid-db`],
    });
    expect(asked.filter((one) => one.startsWith('PodSandboxStatus'))).toEqual([]);
  });

  it('are where their sandboxes say as long as nothing runs in them', async () => {
    const { listing, asked } = await runtime(['web'], {
      ListContainers: () => ({ containers: [] }),
    });
    expect(placesOf(await listing())).toEqual({ 'ns/web': [`${KUBEPODS}/poduid-web`] });
    expect(asked).not.toContain('ContainerStatus c-web');
  });

  it('are listed on time though a sandbox never answers, and a container', async () => {
    const { listing } = await runtime(['web', 'stuck', 'mute'], {
      ListContainers: () => ({ containers: [container('web'), container('mute')] }),
      PodSandboxStatus: () => NEVER_ANSWERED,
      ContainerStatus: unless(
        'containerId',
        { 'c-mute': () => NEVER_ANSWERED },
        ({ containerId }) =>
          containerIn(`${KUBEPODS}/poduid-${bare(containerId)}`, String(containerId)),
      ),
    });
    const startMs = performance.now();
    expect(placesOf(await listing())).toEqual({ 'ns/web': [`${KUBEPODS}/poduid-web`] });
    expect(performance.now() - startMs).toBeLessThan(LISTED_WITHIN_MS);
  });

  it('are in doubt where something of them cannot be learned, until it can', async () => {
    let isBroken = true;
    const { listing, times } = await runtime(['web', 'broken'], {
      ContainerStatus: unless(
        'containerId',
        { 'c-broken': () => (isBroken ? fails('no such task')() : brokenNow()) },
        ({ containerId }) =>
          containerIn(`${KUBEPODS}/poduid-${bare(containerId)}`, String(containerId)),
      ),
    });
    const brokenNow = () => containerIn(`${KUBEPODS}/poduid-broken`, 'c-broken');
    const doubts = placesOf(await listing());
    expect(doubts['ns/web']).toEqual([`${KUBEPODS}/poduid-web`]);
    // Without it nothing is known of what a kubelet asked for, or of what is critical.
    expect(doubts['ns/broken']).toMatch(
      /^the runtime does not tell of its container c-broken: .*: 2 UNKNOWN: no such task$/,
    );
    expect(times('ContainerStatus c-broken')).toBe(1);
    isBroken = false;
    const well = await listing((pods) => pods.get('ns/broken')?.doubt === undefined);
    expect(placesOf(well)['ns/broken']).toEqual([`${KUBEPODS}/poduid-broken`]);
    expect(times('ContainerStatus c-web')).toBe(1);
  });

  it('are in doubt where neither sandbox nor container says where they are', async () => {
    const { listing } = await runtime(['web', 'broken'], {
      ContainerStatus: unless('containerId', { 'c-broken': fails('no task') }, ({ containerId }) =>
        containerIn(`${KUBEPODS}/poduid-${bare(containerId)}`, String(containerId)),
      ),
      PodSandboxStatus: fails('no shim'),
    });
    const places = placesOf(await listing());
    expect(places['ns/web']).toEqual([`${KUBEPODS}/poduid-web`]);
    expect(places['ns/broken']).toMatch(
      /^the runtime does not tell of it: .*: 2 UNKNOWN: no shim$/,
    );
  });

  it('are left out without what has gone between the list and the question', async () => {
    const gone = () => {
      throw Object.assign(new Error('not found'), { code: NOT_FOUND });
    };
    const { listing } = await runtime(['web', 'gone'], {
      ListContainers: () => ({
        containers: [
          container('web'),
          container('web', { id: 'c-old', labels: { 'evictd.protected': 'true' } }),
        ],
      }),
      ContainerStatus: unless('containerId', { 'c-old': gone }, () =>
        containerIn(`${KUBEPODS}/poduid-web`, 'c-web'),
      ),
      PodSandboxStatus: gone,
    });
    const pods = await listing();
    expect([...pods.keys()]).toEqual(['ns/web']);
    expect(pods.get('ns/web')?.containers.map(({ id }) => id)).toEqual(['c-web']);
  });

  it('are those that run a container, though their sandbox is not ready', async () => {
    const notReady = { state: 'SANDBOX_NOTREADY' };
    const { listing } = await runtime([], {
      ListPodSandbox: () => ({
        items: [
          sandbox('leak', notReady),
          sandbox('done', notReady),
          sandbox('again', { ...notReady, id: 's-before' }),
          sandbox('again'),
        ],
      }),
      ListContainers: () => ({
        containers: [
          container('leak'),
          container('done', { state: 'CONTAINER_EXITED' }),
          // Of its end the runtime has not heard.
          container('before', { podSandboxId: 's-before' }),
          container('again'),
        ],
      }),
    });
    const pods = await listing();
    expect(placesOf(pods)).toEqual({
      'ns/leak': [`${KUBEPODS}/poduid-leak`],
      'ns/again': [`${KUBEPODS}/poduid-again`],
    });
    expect(pods.get('ns/again')?.id).toBe('s-again');
  });

  it('are made of their containers’ cgroups alone where a sandbox that is not ready shares its own', async () => {
    const { listing } = await runtime([], {
      ListPodSandbox: () => ({ items: [sandbox('leak', { state: 'SANDBOX_NOTREADY' })] }),
      ListContainers: () => ({ containers: [container('leak')] }),
      PodSandboxStatus: () => sandboxIn('shared', 's-leak'),
      ContainerStatus: () => containerIn('shared', 'c-leak'),
    });
    expect(placesOf(await listing())).toEqual({ 'ns/leak': ['shared/c-leak'] });
  });

  it('have the names of their images in the first listing, and none where they cannot be told', async () => {
    const id = 'a'.repeat(64);
    const answers = {
      ListContainers: () => ({
        containers: [container('web', { image: { image: `sha256:${id}` } })],
      }),
    };
    const images = [{ id: `sha256:${id}`, repoTags: ['localhost/db:1', 'localhost/db:2'] }];
    const imagesOf = (pods: Pods) => pods.get('ns/web')?.containers[0]?.images;
    const told = await runtime(['web'], { ...answers, ListImages: () => ({ images }) });
    expect(imagesOf(await told.listing())).toEqual(['localhost/db:1', 'localhost/db:2']);
    const silent = await runtime(['web'], { ...answers, ListImages: fails('no') });
    expect(imagesOf(await silent.listing())).toBeUndefined();
  });

  it('are listed beside an entry without a name, which is in doubt', async () => {
    const { listing } = await runtime(['web'], {
      ListPodSandbox: () => ({ items: [sandbox('odd', { metadata: null }), sandbox('web')] }),
    });
    expect(placesOf(await listing())).toEqual({
      '/s-odd': 'the runtime does not say what it is called',
      'ns/web': [`${KUBEPODS}/poduid-web`],
    });
  });

  it('are made of the cgroups of sandbox and containers where none is called after them', async () => {
    const { listing } = await runtime(['web'], {
      PodSandboxStatus: () => sandboxIn('shared', 's-web'),
      ContainerStatus: () => containerIn('shared', 'c-web'),
    });
    expect(placesOf(await listing())).toEqual({ 'ns/web': ['shared/s-web', 'shared/c-web'] });
  });
});

import { describe, expect, it } from 'vitest';
import {
  groupOfContainer,
  type ListedContainer,
  type PodGrouping,
  podsOf,
} from '../../../src/runtimes/docker/pods.ts';

const toldOf = (processCgroup: string): ListedContainer['known'] => ({
  kind: 'told',
  answer: { processCgroup, memoryRequest: undefined, image: 'localhost/image:1' },
});

const container = (id: string, overrides: Partial<ListedContainer> = {}): ListedContainer => ({
  id,
  name: `n-${id}`,
  labels: {},
  fault: undefined,
  known: toldOf(`docker/${id}`),
  ...overrides,
});

const PROJECT: PodGrouping = { by: 'label', key: 'project' };

const shapes = (containers: readonly ListedContainer[], grouping: PodGrouping) =>
  podsOf(containers, grouping).map(({ id, name, cgroups, doubt, labels }) => ({
    id,
    name,
    cgroups,
    doubt,
    labels,
  }));

describe('podsOf', () => {
  it('has each container as a pod of its own', () => {
    const [pod] = podsOf([container('c1', { labels: { app: 'web' } }), container('c2')], {
      by: 'container',
    });
    expect(pod).toStrictEqual({
      id: 'c1',
      namespace: undefined,
      name: 'n-c1',
      uid: 'c1',
      owner: 'container n-c1',
      cgroups: ['docker/c1'],
      doubt: undefined,
      isCritical: false,
      labels: { app: 'web' },
      annotations: {},
      containers: [
        {
          id: 'c1',
          name: 'n-c1',
          images: ['localhost/image:1'],
          isRunning: true,
          cgroup: 'docker/c1',
          labels: { app: 'web' },
          memoryRequest: undefined,
        },
      ],
    });
  });

  it('joins those with one value of a label', () => {
    const shop = { labels: { project: 'shop', tier: 'a' } };
    const containers = [
      container('c1', shop),
      container('c2', { labels: { project: 'blog' } }),
      container('c3'),
      container('c4', shop),
      container('c5', { labels: { project: '' } }),
    ];
    expect(shapes(containers, PROJECT)).toEqual([
      {
        id: 'project=shop',
        name: 'shop',
        cgroups: ['docker/c1', 'docker/c4'],
        doubt: undefined,
        labels: { project: 'shop' },
      },
      {
        id: 'project=blog',
        name: 'blog',
        cgroups: ['docker/c2'],
        doubt: undefined,
        labels: { project: 'blog' },
      },
      { id: 'c3', name: 'n-c3', cgroups: ['docker/c3'], doubt: undefined, labels: {} },
      {
        id: 'c5',
        name: 'n-c5',
        cgroups: ['docker/c5'],
        doubt: undefined,
        labels: { project: '' },
      },
    ]);
  });

  it('joins those of one pod of Podman’s', () => {
    const podmanPod = { id: 'p1', name: 'web' };
    const containers = [
      container('c1', { podmanPod }),
      container('c2'),
      container('c3', { podmanPod, labels: { app: 'x' } }),
    ];
    expect(shapes(containers, { by: 'podman' })).toEqual([
      {
        id: 'pod p1',
        name: 'web',
        cgroups: ['docker/c1', 'docker/c3'],
        doubt: undefined,
        labels: {},
      },
      { id: 'c2', name: 'n-c2', cgroups: ['docker/c2'], doubt: undefined, labels: {} },
    ]);
  });

  it('is in doubt of a whole pod where one container has no cgroup of its own', () => {
    const shop = { labels: { project: 'shop' } };
    const [pod] = podsOf(
      [container('c1', shop), container('c2', { ...shop, known: toldOf('system.slice/ssh') })],
      PROJECT,
    );
    expect(pod?.doubt).toBe('its container c2 has no cgroup of its own');
  });

  it('is in doubt of a whole pod of which one container cannot be asked about, or read', () => {
    const shop = { labels: { project: 'shop' } };
    const doubtOf = (other: Partial<ListedContainer>) =>
      podsOf([container('c1', shop), container('c2', { ...shop, ...other })], PROJECT)[0]?.doubt;
    expect(doubtOf({ known: { kind: 'failed', reason: 'no answer in 2000 ms' } })).toBe(
      'the engine does not tell of its container c2: no answer in 2000 ms',
    );
    expect(doubtOf({ fault: 'its labels cannot be read' })).toBe('its labels cannot be read');
  });

  it('leaves out a whole pod of which one container is still being asked about', () => {
    const shop = { labels: { project: 'shop' } };
    const containers = [
      container('c1', shop),
      container('c2', { ...shop, known: { kind: 'waiting' } }),
      container('c3'),
    ];
    expect(shapes(containers, PROJECT).map(({ id }) => id)).toEqual(['c3']);
  });

  it('is in doubt of one whose label is too long to join anything', () => {
    const [pod] = podsOf([container('c1', { labels: { project: 'x'.repeat(254) } })], PROJECT);
    expect(pod).toMatchObject({
      id: 'c1',
      doubt: 'its label project is longer than 253 characters',
    });
  });

  it('joins by no label of a prototype', () => {
    expect(shapes([container('c1')], { by: 'label', key: 'toString' })[0]?.id).toBe('c1');
  });
});

describe('the owner of a pod', () => {
  const owners = (one: ListedContainer, grouping: PodGrouping = { by: 'container' }) =>
    podsOf([one], grouping).map(({ owner }) => owner);

  it.each<[Readonly<Record<string, string>>, string]>([
    [{}, 'container n-c1'],
    [
      { 'com.docker.compose.project': 'shop', 'com.docker.compose.service': 'web' },
      'com.docker.compose.service=shop/web',
    ],
    [{ 'com.docker.compose.service': 'web' }, 'container n-c1'],
    [{ 'com.docker.swarm.service.name': 'web' }, 'com.docker.swarm.service.name=web'],
    [{ PODMAN_SYSTEMD_UNIT: 'web.service' }, 'PODMAN_SYSTEMD_UNIT=web.service'],
  ])('with the labels %j is %s', (labels, expected) => {
    expect(owners(container('c1', { labels }))).toEqual([expected]);
  });

  it('is what joins its containers', () => {
    expect(owners(container('c1', { labels: { project: 'shop' } }), PROJECT)).toEqual([
      'project=shop',
    ]);
    const podmanPod = { id: 'p1', name: 'web' };
    expect(owners(container('c1', { podmanPod }), { by: 'podman' })).toEqual(['pod web']);
  });
});

describe('groupOfContainer', () => {
  const ID = 'f'.repeat(64);

  it.each([
    [`docker/${ID}`, `docker/${ID}`],
    [`docker/${ID}/init.scope`, `docker/${ID}`],
    [`system.slice/docker-${ID}.scope`, `system.slice/docker-${ID}.scope`],
    [`machine.slice/libpod-${ID}.scope/container`, `machine.slice/libpod-${ID}.scope`],
    [`libpod_parent/libpod-${ID}`, `libpod_parent/libpod-${ID}`],
    ['system.slice/ssh.service', undefined],
    ['', undefined],
  ])('of a process in %j is %j', (cgroup, expected) => {
    expect(groupOfContainer(cgroup, ID)).toBe(expected);
  });

  it('is none for a container without an id', () => {
    expect(groupOfContainer('docker/x', '')).toBeUndefined();
  });
});

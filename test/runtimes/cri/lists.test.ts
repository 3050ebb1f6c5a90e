import { VirtualTimeScheduler } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { criLists, LIST_ALL_EACH_MS } from '../../../src/runtimes/cri/lists.ts';

const sandbox = (name: string, state = 'SANDBOX_READY') => ({
  id: `s-${name}`,
  metadata: { name, namespace: 'ns', uid: `uid-${name}` },
  state,
  labels: {},
  annotations: {},
});

const container = (id: string, pod: string, state = 'CONTAINER_RUNNING') => ({
  id,
  podSandboxId: `s-${pod}`,
  metadata: { name: id },
  image: null,
  state,
  labels: {},
});

interface Asked {
  readonly filter?: { readonly id?: string; readonly state?: { readonly state: string } };
}

/** A runtime with these, of which a test changes what there is. */
function runtime(has: {
  sandboxes: readonly ReturnType<typeof sandbox>[];
  containers: readonly ReturnType<typeof container>[];
  failsForAll?: boolean;
}) {
  const scheduler = new VirtualTimeScheduler();
  const asked: string[] = [];
  const look = criLists(
    {
      call: async (method: string, request: Asked = {}) => {
        const { id, state } = request.filter ?? {};
        asked.push(`${method} ${id ?? state?.state ?? 'all'}`);
        const isMeant = (one: { readonly id: string; readonly state: string }) =>
          (id === undefined || one.id === id) && (state === undefined || one.state === state.state);
        if (request.filter === undefined && has.failsForAll) throw new Error('too long');
        return {
          items: has.sandboxes.filter(isMeant),
          containers: has.containers.filter(isMeant),
        } as never;
      },
      close: () => undefined,
    },
    scheduler,
  );
  return {
    asked,
    /** The states of containers by their ids, and the sandboxes. */
    seen: async () => {
      const { sandboxes, containers } = await look();
      return [sandboxes.map(({ id }) => id), containers.map(({ id, state }) => `${id} ${state}`)];
    },
    later: (ms: number): void => {
      scheduler.maxFrames = scheduler.now() + ms;
      scheduler.schedule(() => undefined, ms);
      scheduler.flush();
    },
  };
}

const EXITED = 'CONTAINER_EXITED';

describe('criLists', () => {
  it('asks for what runs alone, and at intervals for what has ended of the same pods', async () => {
    const has = {
      sandboxes: [sandbox('web'), sandbox('old', 'SANDBOX_NOTREADY')],
      containers: [
        container('a', 'web'),
        container('init', 'web', EXITED),
        container('dead', 'old', EXITED),
      ],
    };
    const { seen, asked, later } = runtime(has);
    const all = [['s-web'], ['a CONTAINER_RUNNING', 'init CONTAINER_EXITED']];
    expect(await seen()).toEqual(all);
    later(LIST_ALL_EACH_MS - 1);
    expect(await seen()).toEqual(all);
    later(1);
    has.containers = [container('a', 'web'), container('dead', 'old', EXITED)];
    expect(await seen()).toEqual([['s-web'], ['a CONTAINER_RUNNING']]);
    expect(asked).toEqual([
      'ListPodSandbox SANDBOX_READY',
      'ListContainers all',
      'ListPodSandbox SANDBOX_READY',
      'ListContainers CONTAINER_RUNNING',
      'ListPodSandbox SANDBOX_READY',
      'ListContainers all',
    ]);
  });

  it('has what has ended since as ended, as long as its pod runs', async () => {
    const has = {
      sandboxes: [sandbox('web'), sandbox('job')],
      containers: [container('a', 'web'), container('j', 'job')],
    };
    const { seen } = runtime(has);
    await seen();
    has.containers = [container('b', 'web')];
    has.sandboxes = [sandbox('web')];
    const ended = [['s-web'], ['b CONTAINER_RUNNING', 'a CONTAINER_EXITED']];
    expect(await seen()).toEqual(ended);
    expect(await seen()).toEqual(ended);
  });

  it('lists what runs though what has ended is too much', async () => {
    const has = {
      sandboxes: [sandbox('web')],
      containers: [container('a', 'web')],
      failsForAll: true,
    };
    const { seen } = runtime(has);
    await expect(seen()).rejects.toThrow('too long');
    expect(await seen()).toEqual([['s-web'], ['a CONTAINER_RUNNING']]);
  });

  it('asks once for a sandbox that is not ready, where a container of it runs', async () => {
    const has = {
      sandboxes: [sandbox('leak', 'SANDBOX_NOTREADY'), sandbox('old', 'SANDBOX_NOTREADY')],
      containers: [
        container('a', 'leak'),
        container('b', 'leak'),
        container('c', 'old', EXITED),
        container('d', 'gone'),
      ],
    };
    const { seen, asked } = runtime(has);
    const living = [['s-leak'], ['a CONTAINER_RUNNING', 'b CONTAINER_RUNNING']];
    expect(await seen()).toEqual(living);
    expect(await seen()).toEqual(living);
    expect(asked.filter((one) => one === 'ListPodSandbox s-leak')).toHaveLength(1);
    expect(asked).not.toContain('ListPodSandbox s-old');
  });

  it('has one that is ready stand for another of the same pod', async () => {
    const before = { ...sandbox('web', 'SANDBOX_NOTREADY'), id: 's-before' };
    const has = {
      sandboxes: [before, sandbox('web')],
      containers: [container('a', 'before'), container('b', 'web')],
    };
    expect(await runtime(has).seen()).toEqual([['s-web'], ['b CONTAINER_RUNNING']]);
  });

  it('sorts out by itself what a runtime lists that knows no filter', async () => {
    const scheduler = new VirtualTimeScheduler();
    const items = [sandbox('web'), sandbox('old', 'SANDBOX_NOTREADY')];
    const containers = [container('a', 'web'), container('b', 'web', EXITED)];
    const look = criLists(
      { call: async () => ({ items, containers }) as never, close: () => undefined },
      scheduler,
    );
    for (const { sandboxes, containers: found } of [await look(), await look()]) {
      expect(sandboxes.map(({ id }) => id)).toEqual(['s-web']);
      expect(found.map(({ id, state }) => [id, state])).toEqual([
        ['a', 'CONTAINER_RUNNING'],
        ['b', EXITED],
      ]);
    }
  });
});

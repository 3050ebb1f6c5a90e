import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { asyncScheduler, first, firstValueFrom, map } from 'rxjs';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { PodListing, RuntimePod } from '../../../src/ports/pod-directory.ts';
import { dockerDirectory } from '../../../src/runtimes/docker/directory.ts';
import { MOST_RECEIVED_BYTES } from '../../../src/runtimes/docker/engine.ts';
import { until } from '../../support/wait.ts';

/** How long a listing may take although somebody does not answer, ms: the wait for what is late, and more. */
const LISTED_WITHIN_MS = 1500;

const listed = (id: string, fields: object = {}) => ({
  Id: id,
  Names: [`/n-${id}`],
  Image: 'localhost/image:1',
  Labels: {},
  ...fields,
});

const inspected = (id: string, fields: object = {}) => ({
  Id: id,
  State: { Running: true, Pid: Number(id.slice(1)) },
  HostConfig: { MemoryReservation: 0 },
  Config: { Image: 'localhost/image:1' },
  ...fields,
});

/** An answer's value, or what is done with the answer; undefined for a container that is as always. */
type Answer = object | ((response: ServerResponse) => void) | undefined;

/** An engine with these containers, and its pods. */
async function engine(list: () => Answer, inspect: (id: string) => Answer = () => undefined) {
  const directory = mkdtempSync(path.join(tmpdir(), 'evictd-docker-'));
  const socketPath = path.join(directory, 's');
  const asked: string[] = [];
  const events = new Set<ServerResponse>();
  const send = (response: ServerResponse, answer: Answer): void => {
    if (typeof answer === 'function') answer(response);
    else response.end(JSON.stringify(answer));
  };
  const server = createServer((request, response) => {
    const [where = ''] = (request.url ?? '').split('?');
    response.setHeader('content-type', 'application/json');
    const id = /^\/containers\/(.+)\/json$/.exec(where)?.[1];
    if (where === '/events') {
      response.flushHeaders();
      events.add(response);
    } else if (id === undefined) send(response, list());
    else {
      asked.push(id);
      send(response, inspect(id) ?? inspected(id));
    }
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  const pods = dockerDirectory({
    socketPath,
    scheduler: asyncScheduler,
    wallClock: () => Date.now(),
    cgroupOf: (pid) => `docker/c${pid}`,
    grouping: { by: 'container' },
  });
  onTestFinished(() => {
    pods.close();
    server.closeAllConnections();
    server.close();
    rmSync(directory, { recursive: true, force: true });
  });
  const listing = (is: (pods: Pods) => boolean = () => true): Promise<Pods> =>
    firstValueFrom(pods.listings$.pipe(map(podsIn), first(is)));
  return { asked, listing };
}

type Pods = ReadonlyMap<string, RuntimePod>;

function podsIn(listing: PodListing): Pods {
  if (listing.kind === 'away') throw new Error(listing.reason);
  return new Map(listing.pods.map((pod) => [pod.name, pod]));
}

const placesOf = (pods: Pods) =>
  Object.fromEntries([...pods].map(([name, { cgroups, doubt }]) => [name, doubt ?? cgroups]));

const never = () => undefined;

const broken = (response: ServerResponse): void => {
  response.statusCode = 500;
  response.end('{"message":"layer does not exist"}');
};

describe('the pods of a Docker Engine', () => {
  it('are listed on time though one is never told of, which is in doubt soon', async () => {
    const { listing, asked } = await engine(
      () => [listed('c1'), listed('c2')],
      (id) => (id === 'c2' ? never : undefined),
    );
    const startMs = performance.now();
    expect(placesOf(await listing())).toEqual({ 'n-c1': ['docker/c1'] });
    expect(performance.now() - startMs).toBeLessThan(LISTED_WITHIN_MS);
    const doubts = placesOf(await listing((pods) => pods.size === 2));
    expect(doubts).toEqual({
      'n-c1': ['docker/c1'],
      'n-c2': 'the engine does not tell of its container c2: no answer in 2000 ms',
    });
    expect(asked.filter((id) => id === 'c1')).toHaveLength(1);
  });

  it('are in doubt where one cannot be learned, until it can', async () => {
    let isBroken = true;
    const { listing } = await engine(
      () => [listed('c1'), listed('c2')],
      (id) => (isBroken && id === 'c2' ? broken : undefined),
    );
    const doubts = placesOf(await listing());
    expect(doubts['n-c1']).toEqual(['docker/c1']);
    expect(doubts['n-c2']).toMatch(
      /^the engine does not tell of its container c2: .*layer does not exist/,
    );
    isBroken = false;
    // Asked again without an event, long before the next listing would be due.
    const well = await listing((pods) => pods.get('n-c2')?.doubt === undefined);
    expect(placesOf(well)).toEqual({ 'n-c1': ['docker/c1'], 'n-c2': ['docker/c2'] });
  });

  it('are left out that have gone, or do not run', async () => {
    const { listing } = await engine(
      () => [listed('c1'), listed('c2'), listed('c3')],
      (id) => {
        if (id === 'c1') return undefined;
        if (id === 'c2') return inspected(id, { State: { Running: false, Pid: 0 } });
        return (response) => {
          response.statusCode = 404;
          response.end('{"message":"No such container"}');
        };
      },
    );
    expect(placesOf(await listing())).toEqual({ 'n-c1': ['docker/c1'] });
  });

  it('are listed beside what is no container, which is told', async () => {
    const { listing } = await engine(
      () => [
        { Id: 5, Names: null, Labels: null, Image: [] },
        null,
        7,
        listed('c1', { Names: null, Labels: null }),
        listed('c2', { Labels: { 'evictd.protected': true } }),
        listed('c3', { Labels: ['evictd.protected'] }),
        listed('c4'),
      ],
      (id) => (id === 'c4' ? { State: null } : undefined),
    );
    expect(placesOf(await listing())).toEqual({
      'a container without an id': 'the engine does not say which container it is',
      c1: ['docker/c1'],
      'n-c2': 'its labels cannot be read',
      'n-c3': 'its labels cannot be read',
      'n-c4': 'the engine does not tell of its container c4: it does not say whether it runs',
    });
  });

  it('ask for what the engine reserves for them', async () => {
    const { listing } = await engine(
      () => [listed('c1')],
      (id) => inspected(id, { HostConfig: { MemoryReservation: 2 ** 20 } }),
    );
    const [container] = (await listing()).get('n-c1')?.containers ?? [];
    expect(container?.memoryRequest).toEqual({
      nano: 2n ** 20n * 1_000_000_000n,
      format: 'binary',
    });
  });

  it('are called after the image that they were made of, whatever has its name now', async () => {
    const { listing } = await engine(
      () => [listed('c1', { Image: `sha256:${'a'.repeat(64)}` }), listed('c2')],
      (id) => (id === 'c2' ? inspected(id, { Config: null }) : undefined),
    );
    const pods = await listing();
    expect(pods.get('n-c1')?.containers[0]?.images).toEqual(['localhost/image:1']);
    expect(pods.get('n-c2')?.containers[0]?.images).toBeUndefined();
  });

  it('are not read further where an answer does not end', async () => {
    let sentBytes = 0;
    let isOpen = true;
    const chunk = Buffer.alloc(2 ** 20, '[');
    const endless = (response: ServerResponse): void => {
      response.on('close', () => {
        isOpen = false;
      });
      const send = (): void => {
        if (!isOpen) return;
        sentBytes += chunk.length;
        response.write(chunk, send);
      };
      send();
    };
    const { listing } = await engine(() => endless);
    await expect(listing()).rejects.toThrow(/\/s: an answer is longer than 32 MiB$/);
    await until('the engine is told', () => !isOpen, { limitMs: 5000 });
    expect(sentBytes).toBeLessThan(MOST_RECEIVED_BYTES + 8 * chunk.length);
  });

  it('are in doubt where what is told of them does not end', async () => {
    const long = { Env: ['x'.repeat(MOST_RECEIVED_BYTES)] };
    const { listing } = await engine(
      () => [listed('c1'), listed('c2')],
      (id) => (id === 'c2' ? inspected(id, long) : undefined),
    );
    const pods = await listing((all) => all.size === 2);
    expect(placesOf(pods)).toEqual({
      'n-c1': ['docker/c1'],
      'n-c2': 'the engine does not tell of its container c2: an answer is longer than 32 MiB',
    });
  });

  it('are not known where the engine lists none', async () => {
    const { listing } = await engine(() => ({ message: 'no' }));
    await expect(listing()).rejects.toThrow(/\/s: what it lists are no containers$/);
  });
});

import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import Docker from 'dockerode';
import { expect, it, onTestFinished } from 'vitest';
import { changesOf } from '../../../src/runtimes/docker/events.ts';
import { liveScheduler } from '../../../src/sources/live-scheduler.ts';
import { until } from '../../support/wait.ts';

const LIMIT = { limitMs: 4000 } as const;

/** What speaks as an engine does, and what of its containers is heard. */
async function engine() {
  const directory = mkdtempSync(path.join(tmpdir(), 'evictd-test-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const socketPath = path.join(directory, 'engine');
  const told: ServerResponse[] = [];
  const asked: string[] = [];
  const server: Server = createServer(({ url = '' }, response) => {
    asked.push(decodeURIComponent(url));
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    told.push(response);
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  const heard: (string | undefined)[] = [];
  const changes$ = changesOf(new Docker({ socketPath }), liveScheduler);
  const listening = changes$.subscribe((id) => heard.push(id));
  onTestFinished(() => {
    listening.unsubscribe();
    server.closeAllConnections();
    server.close();
  });
  const connected = (times: number) =>
    until('it listens', () => told.length === times, LIMIT).then(
      () => told.at(-1) as ServerResponse,
    );
  return { asked, heard, connected, listening };
}

it('a container that changes is named, however its line comes', async () => {
  const { asked, heard, connected } = await engine();
  const response = await connected(1);
  response.write('{"status":"start","id":"a"}\n{"id":');
  response.write('"b","Actor":{"Attributes":{"name":"\\u000a"}}}\n');
  response.write('not for us\n{"id":7}\n');
  await until('all is heard', () => heard.length === 5, LIMIT);
  // At first, others may have changed before anybody listened.
  expect(heard).toEqual([undefined, 'a', 'b', undefined, undefined]);
  expect(asked[0]).toContain('{"type":["container"],"event":["start","die","rename","update"]}');
});

it.each<[string, (response: ServerResponse) => unknown]>([
  ['ends', (response) => response.end()],
  ['breaks off', (response) => response.destroy()],
])('an engine that %s is asked again, and what came between may have changed', async (_, stop) => {
  const { heard, connected } = await engine();
  stop(await connected(1));
  (await connected(2)).write('{"id":"c"}\n');
  await until('all is heard', () => heard.length === 4, LIMIT);
  expect(heard).toEqual([undefined, undefined, undefined, 'c']);
});

it('nothing is heard, and nobody asked, once nobody listens', async () => {
  const { asked, heard, connected, listening } = await engine();
  const response = await connected(1);
  await until('it is heard', () => heard.length === 1, LIMIT);
  const closed = new Promise((resolve) => response.once('close', resolve));
  listening.unsubscribe();
  await closed;
  expect([asked.length, heard.length]).toEqual([1, 1]);
});

import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { VirtualTimeScheduler } from 'rxjs';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { NamedThing } from '../../../src/ports/collection.ts';
import {
  dockerDisks,
  IMAGE_SIZES_EACH_MS,
  SIZES_EACH_MS,
} from '../../../src/runtimes/docker/disks.ts';
import { dockerRemains } from '../../../src/runtimes/docker/remains.ts';
import { runtimeContainer, runtimePod } from '../../support/runtime-pods.ts';
import { until } from '../../support/wait.ts';

/** An answer by method and path without the query: a value, or a status with nothing. */
type Answers = Readonly<Record<string, unknown>>;

/** An engine that answers so, on a socket of its own. */
async function engine(answers: Answers) {
  const directory = mkdtempSync(path.join(tmpdir(), 'evictd-docker-'));
  const socketPath = path.join(directory, 's');
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const [where = ''] = (request.url ?? '').split('?');
    asked.push(`${request.method} ${request.url}`);
    const answer = answers[`${request.method} ${where}`];
    response.statusCode = typeof answer === 'number' ? answer : answer === undefined ? 404 : 200;
    response.setHeader('content-type', 'application/json');
    response.end(typeof answer === 'object' ? JSON.stringify(answer) : '{}');
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  onTestFinished(() => {
    server.close();
    rmSync(directory, { recursive: true, force: true });
  });
  return { socketPath, asked };
}

const ROOT = '/var/lib/docker';
const inspected = (id: string, fields: object = {}) => ({
  Id: id,
  State: { Running: true, Pid: 1 },
  GraphDriver: { Name: 'overlay2', Data: { UpperDir: `${ROOT}/overlay2/${id}/diff` } },
  LogPath: `${ROOT}/containers/${id}/${id}-json.log`,
  Mounts: [],
  ...fields,
});

async function disksOf(
  answers: Answers,
  info: object = { DockerRootDir: ROOT, Driver: 'overlay2' },
) {
  const { socketPath, asked } = await engine({ 'GET /info': info, ...answers });
  const scheduler = new VirtualTimeScheduler();
  return { disks: dockerDisks({ socketPath, scheduler }), asked, scheduler };
}

const listed = (...containers: readonly object[]) =>
  containers.map((one) => ({ State: 'running', Mounts: [], ...one }));

describe('the filesystems of a Docker Engine', () => {
  it.each([
    [{ DockerRootDir: ROOT, Driver: 'overlay2' }, [`${ROOT}/overlay2`, ROOT]],
    [{ DockerRootDir: `${ROOT}/../docker`, Driver: '' }, [ROOT]],
    [{ DockerRootDir: ROOT, Driver: '../../etc' }, [ROOT]],
    [{ DockerRootDir: ROOT, Driver: '..' }, [ROOT]],
  ])('of %j are %j', async (info, paths) => {
    const { disks } = await disksOf({}, info);
    expect(await disks.filesystems()).toMatchObject({ imagefs: paths, containerfs: paths });
  });

  it.each([{}, { DockerRootDir: 'docker' }, { DockerRootDir: 7 }])(
    'of %j are not known',
    async (info) => {
      const { disks } = await disksOf({}, info);
      await expect(disks.filesystems()).rejects.toThrow('does not say where its root is');
    },
  );
});

describe('what images use, as a Docker Engine says', () => {
  const usage = async (ApiVersion: unknown, df: unknown) => {
    const answers = { 'GET /version': { ApiVersion }, 'GET /system/df': df };
    const { disks, asked, scheduler } = await disksOf(answers);
    const dfs = () => asked.filter((one) => one.includes('/system/df'));
    return { told: async () => (await disks.filesystems()).imageBytes, dfs, asked, scheduler };
  };

  it.each([
    ['1.42', { LayersSize: 1_985_000 }],
    ['2.0', { ImageUsage: { TotalSize: 1_985_000 }, LayersSize: 7 }],
  ])('API %s: is asked for alone, in the background, and not each time', async (version, df) => {
    const { told, dfs, scheduler } = await usage(version, df);
    expect(await told()).toBeUndefined();
    let last: number | undefined;
    const ask = () => {
      void told().then((now) => {
        last = now;
      });
      return last === 1_985_000;
    };
    await until('it is known', ask, { limitMs: 5000 });
    scheduler.frame = IMAGE_SIZES_EACH_MS - 1;
    expect(await told()).toBe(1_985_000);
    expect(dfs()).toEqual(['GET /system/df?type=image']);
    scheduler.frame = IMAGE_SIZES_EACH_MS;
    expect(await told()).toBe(1_985_000);
    await until('it is asked again', () => dfs().length === 2, { limitMs: 5000 });
  });

  it.each(['1.41', '1.9', undefined, 'x'])(
    'of API %s is not known: it would add up all else too',
    async (version) => {
      const { told, dfs, asked } = await usage(version, { LayersSize: 5 });
      await told();
      await until('its version is known', () => asked.includes('GET /version'), {
        limitMs: 5000,
      });
      for (let turn = 0; turn < 5; turn += 1) expect(await told()).toBeUndefined();
      expect(dfs()).toEqual([]);
    },
  );

  it.each([[500], [{ LayersSize: -1 }], [{ LayersSize: 'x' }], [{}]])(
    'is not known of one that answers %j',
    async (df) => {
      const { told, dfs } = await usage('1.44', df);
      await told();
      await until('it was asked', () => dfs().length === 1, { limitMs: 5000 });
      expect([await told(), await told()]).toEqual([undefined, undefined]);
    },
  );
});

describe('the containers of a Docker Engine', () => {
  it('have their layer, their logs and the volumes that are theirs alone', async () => {
    const volume = (Name: string, Source = `${ROOT}/volumes/${Name}/_data`, Driver = 'local') => ({
      Type: 'volume',
      Name,
      Source,
      Driver,
    });
    const Mounts = [
      volume('own'),
      volume('shared'),
      volume('nfs', undefined, 'other'),
      volume('away', '/mnt/away'),
      { Type: 'bind', Source: '/data' },
    ];
    const { disks, asked } = await disksOf({
      'GET /containers/json': listed(
        { Id: 'a', Mounts },
        { Id: 'b', State: 'exited', Mounts: [volume('shared')] },
      ),
      'GET /containers/a/json': inspected('a', { Mounts }),
    });
    expect(await disks.containers()).toStrictEqual([
      {
        id: 'a',
        layer: { kind: 'at', place: { root: ROOT, below: 'overlay2/a/diff' } },
        logs: { root: ROOT, below: 'containers/a' },
        volumes: [{ name: 'own', place: { root: ROOT, below: 'volumes/own/_data' } }],
      },
    ]);
    await disks.containers();
    expect(asked.filter((one) => one.startsWith('GET /containers/a/json'))).toHaveLength(1);
    expect(asked.some((one) => one.includes('size='))).toBe(false);
  });

  it('are added up by the engine where a layer is no directory below its root, and seldom', async () => {
    const { disks, asked, scheduler } = await disksOf({
      'GET /containers/json': listed({ Id: 'a', SizeRw: 4096 }, { Id: 'b', SizeRw: -1 }),
      'GET /containers/a/json': inspected('a', { GraphDriver: { Name: 'btrfs', Data: null } }),
      'GET /containers/b/json': inspected('b', {
        GraphDriver: { Name: 'overlay2', Data: { UpperDir: '/etc' } },
        LogPath: '/etc/shadow',
      }),
    });
    const sizes = () => asked.filter((one) => one.includes('size=true')).length;
    const [a, b] = await disks.containers();
    expect(a?.layer).toStrictEqual({
      kind: 'told',
      bytes: 4096,
      inodes: undefined,
      ageMs: 0,
      place: undefined,
    });
    expect([b?.layer, b?.logs]).toEqual([undefined, undefined]);
    scheduler.frame = SIZES_EACH_MS - 1;
    expect((await disks.containers())[0]?.layer).toMatchObject({ ageMs: SIZES_EACH_MS - 1 });
    expect(sizes()).toBe(1);
    scheduler.frame = SIZES_EACH_MS;
    expect((await disks.containers())[0]?.layer).toMatchObject({ ageMs: 0 });
    expect(sizes()).toBe(2);
  });

  it('that are gone meanwhile are left out; an engine that fails tells nothing', async () => {
    const gone = await disksOf({ 'GET /containers/json': listed({ Id: 'a' }) });
    expect(await gone.disks.containers()).toEqual([]);
    const broken = await disksOf({
      'GET /containers/json': listed({ Id: 'a' }),
      'GET /containers/a/json': 500,
    });
    await expect(broken.disks.containers()).rejects.toThrow('500');
  });

  it('a log that lies in no directory of the container’s own is looked at itself', async () => {
    const { disks } = await disksOf({
      'GET /containers/json': listed({ Id: 'a' }),
      'GET /containers/a/json': inspected('a', { LogPath: `${ROOT}/logs/a.log` }),
    });
    expect((await disks.containers())[0]?.logs).toEqual({ root: ROOT, below: 'logs/a.log' });
  });
});

describe('what dead containers leave', () => {
  const POD = runtimePod('p', { containers: [runtimeContainer('a'), runtimeContainer('b')] });
  const state = (Running: boolean) => ({ State: { Running } });

  it.each<[string, unknown, unknown, string]>([
    ['both dead', state(false), state(false), 'dead'],
    ['one gone', state(false), 404, 'dead'],
    ['both gone', 404, 404, 'gone'],
    ['one runs', state(true), state(false), 'running'],
  ])('%s', async (_, a, b, expected) => {
    const answers = { 'GET /containers/a/json': a, 'GET /containers/b/json': b };
    const { socketPath } = await engine(answers);
    expect(await dockerRemains(socketPath).stateOf(POD)).toBe(expected);
  });

  it('is removed with the volumes that have no name, and never by force', async () => {
    const { socketPath, asked } = await engine({
      'DELETE /containers/a': 204,
      'DELETE /containers/b': 409,
    });
    const removed: NamedThing[] = [];
    await dockerRemains(socketPath).remove(POD, (thing) => removed.push(thing));
    // What another removes is not told.
    expect(removed).toEqual([{ what: 'container', id: 'a', name: POD.containers[0]?.name }]);
    expect(asked.map((one) => one.replace(/&?abortSignal=[^&]*/, ''))).toEqual([
      'DELETE /containers/a?v=true',
      'DELETE /containers/b?v=true',
    ]);
  });

  it('an engine that fails has removed nothing, and tells nothing', async () => {
    const { socketPath } = await engine({
      'DELETE /containers/a': 500,
      'GET /containers/a/json': 500,
    });
    const removed: NamedThing[] = [];
    const removal = dockerRemains(socketPath).remove(POD, (thing) => removed.push(thing));
    await expect(removal).rejects.toThrow('500');
    expect(removed).toEqual([]);
    await expect(dockerRemains(socketPath).stateOf(POD)).rejects.toThrow('500');
  });
});

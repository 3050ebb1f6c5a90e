import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type Docker from 'dockerode';
import { expect, it, onTestFinished } from 'vitest';
import type { Reclaimer } from '../../src/ports/reclaimer.ts';
import { dockerReclaimer } from '../../src/runtimes/docker/reclaimer.ts';
import { privateDirectory, startDaemon } from '../kernel/support/daemon.ts';
import { mountExt4 } from '../kernel/support/filesystems.ts';
import { MI, makeNode } from '../kernel/support/node.ts';
import { report } from '../support/counts.ts';
import { describeWith } from '../support/skip.ts';
import { flagsOf } from './leak-stories.ts';
import { startDockerd } from './support/dockerd.ts';
import { type Engine, engineHost } from './support/engine-host.ts';
import { type Filler, fillerArchive } from './support/fillers.ts';
import { BUSYBOX_IMAGE } from './support/image.ts';
import { startPodman } from './support/podman.ts';

const NEEDS = { root: true, cgroupV1: true } as const;

interface Loaded extends Engine {
  load(name: string, filler: Filler): Promise<void>;
}

/** A Docker Engine; its data on a filesystem of its own where that has a size. */
async function dockerEngine(mebibytes?: number): Promise<Loaded & { readonly data: string }> {
  const directory = mkdtempSync('/tmp/egd-');
  const data = path.join(directory, 'data');
  if (mebibytes !== undefined) {
    mkdirSync(data);
    mountExt4(mebibytes, data);
  }
  const engine = await startDockerd(directory, { liveRestore: true });
  onTestFinished(() => engine.remove());
  const load = async (name: string, filler: Filler): Promise<void> => {
    const archive = fillerArchive(privateDirectory('/var/tmp'), name, filler);
    const stream = await engine.docker.loadImage(archive, { quiet: true });
    await new Promise((resolve, reject) => {
      stream.on('end', resolve).on('error', reject).resume();
    });
    rmSync(archive);
  };
  return { ...engine, load, data };
}

async function podmanEngine(): Promise<Loaded> {
  const directory = mkdtempSync('/tmp/egp-');
  const engine = await startPodman(directory);
  onTestFinished(() => engine.remove());
  const load = async (name: string, filler: Filler): Promise<void> => {
    const archive = fillerArchive(privateDirectory('/var/tmp'), name, filler);
    const policy = ['--signature-policy', path.join(directory, 'policy.json')];
    execFileSync(path.join(directory, 'podman'), ['load', '-q', ...policy, '-i', archive]);
    rmSync(archive);
  };
  return { ...engine, load };
}

async function container(docker: Docker, name: string, command: readonly string[]) {
  const made = await docker.createContainer({
    name,
    Image: BUSYBOX_IMAGE,
    Cmd: [...command],
    HostConfig: { NetworkMode: 'none' },
  });
  await made.start();
  return made;
}

/** What every engine does that speaks Docker's API. */
async function tellsAndRemoves({ docker, socketPath, load }: Loaded): Promise<void> {
  const reclaimer: Reclaimer = dockerReclaimer(socketPath);
  const startedAtMs = Date.now() - 1000;
  const running = await container(docker, 'web', ['sleep', '1000']);
  const ended = await container(docker, 'batch', ['true']);
  await ended.wait();
  const made = await docker.createContainer({ name: 'next', Image: BUSYBOX_IMAGE });
  await load('localhost/filler:1', { mebibytes: 1 });
  await load('localhost/untagged:1', { mebibytes: 1 });
  await load('localhost/used:1', { mebibytes: 1 });
  await docker.getImage('localhost/filler:1').tag({ repo: 'localhost/second', tag: '2' });

  const { containers, sandboxes, created } = await reclaimer.listDead();
  expect(sandboxes).toEqual([]);
  // Kept, and told: it may be started yet.
  expect(created).toEqual([{ id: made.id, name: 'next' }]);
  expect(containers).toEqual([
    expect.objectContaining({ id: ended.id, name: 'batch', owner: ended.id }),
  ]);
  expect(containers[0]?.endedAtMs).toBeGreaterThan(startedAtMs);
  expect(containers[0]?.endedAtMs).toBeLessThan(Date.now() + 1000);

  // What runs is left alone, whatever it is called for.
  expect(await reclaimer.removeContainer(running.id)).toMatchObject({
    kind: expect.stringMatching(/inUse|failed/),
  });
  expect((await running.inspect()).State.Running).toBe(true);
  expect(await reclaimer.removeContainer('../images/x')).toMatchObject({ kind: 'failed' });

  const images = await reclaimer.listImages();
  const named = (name: string) => {
    const found = images.find(({ names }) => names.includes(name));
    if (found === undefined) throw new Error(`no ${name}: ${JSON.stringify(images)}`);
    return found;
  };
  const busybox = named(BUSYBOX_IMAGE);
  expect([...busybox.usedBy].sort()).toEqual([running.id, ended.id, made.id].sort());
  expect(await reclaimer.removeImage(busybox)).toMatchObject({ kind: 'inUse' });
  const filler = named('localhost/filler:1');
  expect(filler).toMatchObject({ usedBy: [], pinned: undefined });
  expect(filler.names).toContain('localhost/second:2');
  expect(await reclaimer.removeImage(filler)).toEqual({ kind: 'removed' });
  expect(await reclaimer.removeImage(filler)).toEqual({ kind: 'gone' });
  expect(await reclaimer.removeImage(named('localhost/untagged:1'))).toEqual({ kind: 'removed' });

  // One that is used since it was listed.
  const used = named('localhost/used:1');
  const late = await docker.createContainer({
    name: 'late',
    Image: 'localhost/used:1',
    Cmd: ['x'],
  });
  expect(await reclaimer.removeImage(used)).toMatchObject({ kind: 'inUse' });
  await late.remove();

  expect(await reclaimer.removeContainer(ended.id)).toEqual({ kind: 'removed' });
  expect(await reclaimer.removeContainer(ended.id)).toEqual({ kind: 'gone' });
  expect((await reclaimer.listImages()).flatMap(({ names }) => names)).toEqual(
    expect.arrayContaining([BUSYBOX_IMAGE, 'localhost/used:1']),
  );
  await running.remove({ force: true });
  await made.remove();
}

const DOCKER = { ...NEEDS, programs: ['dockerd', 'containerd', 'runc', 'busybox', 'tar'] } as const;

describeWith(DOCKER, 'Docker Engine', () => {
  it('tells what is dead and unused, and removes no more than that', async () => {
    await tellsAndRemoves(await dockerEngine());
  });
});

describeWith({ ...NEEDS, programs: ['podman', 'runc', 'busybox', 'tar'] }, 'Podman', () => {
  it('tells what is dead and unused, and removes no more than that', async () => {
    await tellsAndRemoves(await podmanEngine());
  });
});

const LOOP = {
  ...DOCKER,
  programs: [...DOCKER.programs, 'mkfs.ext4'],
  files: ['/dev/loop-control'],
};

describeWith(LOOP, 'a full data root of Docker', () => {
  it('loses dead containers and unused images until enough is there; no pod goes', async () => {
    const engine = await dockerEngine(300);
    const host = engineHost(engine);
    const node = makeNode(512 * MI);
    onTestFinished(() => host.clear(node));
    const web = await host.run(node, 'web', ['sleep', '1000']);
    const batch = await container(engine.docker, 'batch', [
      'dd',
      'if=/dev/zero',
      'of=/b',
      'bs=1M',
      'count=30',
    ]);
    await batch.wait();
    for (let count = 0; count < 4; count += 1) {
      await engine.load(`localhost/filler-${count}:1`, { mebibytes: 20 });
    }
    const free = (): number => {
      const { bavail, bsize } = statfsSync(engine.data);
      return Math.floor((bavail * bsize) / MI);
    };
    const before = free();
    const daemon = await startDaemon({
      node: node.path,
      args: [
        ...flagsOf(host),
        `--imagefs-path=${engine.data}`,
        '--image-gc=pressure',
        '--container-gc=pressure',
        '--log-level=debug',
        `--eviction-hard=imagefs.available<${before - 20}Mi`,
        '--eviction-minimum-reclaim=imagefs.available=40Mi',
      ],
    });
    writeFileSync(path.join(engine.data, 'fill'), Buffer.alloc(40 * MI), { flush: true });
    const line = await daemon.line('collected what nobody uses');
    expect(line).toMatchObject({ because: 'regained', containers: 1, failed: 0 });
    expect(free()).toBeGreaterThanOrEqual(before + 20 - 1);
    const tags = (await engine.docker.listImages()).flatMap(({ RepoTags }) => RepoTags ?? []);
    expect(tags).toContain(BUSYBOX_IMAGE);
    const fillers = tags.filter((name) => name.includes('filler'));
    expect(fillers.length).toBeGreaterThan(0);
    expect(fillers.length).toBeLessThan(4);
    await daemon.line('threshold no longer met');
    expect((await daemon.status()).evictions).toEqual([]);
    expect(await host.isUp(web)).toBe(true);
    report(
      `${line['freedBytes']} bytes by 1 container and ${line['images']} images in ${line['tookMs']} ms`,
    );
    await daemon.stop();
  });
});

import {
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  statfsSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { filesystemLayout } from '../../src/core/layout.ts';
import type { FilesystemReading } from '../../src/ports/filesystem.ts';
import { count, report } from '../support/counts.ts';
import { describeWith } from '../support/skip.ts';
import { until } from '../support/wait.ts';
import { privateDirectory } from './support/daemon.ts';
import {
  LIMIT_MS,
  type Measuring,
  measure,
  mountBind,
  mountExt4,
  mountFuse,
  mountTmpfs,
  pathOf,
  stateOf,
  unmount,
} from './support/filesystems.ts';

const MI = 2 ** 20;
const DEADLINE_MS = 300;

/** The first reading of each path. */
async function readEach(...paths: readonly string[]): Promise<readonly FilesystemReading[]> {
  const measuring = measure({ paths });
  const readings: FilesystemReading[] = [];
  for (const one of paths) readings.push((await measuring.notice('read', one)).reading);
  return readings;
}

/** The reading of a path that comes next. */
async function nextReading(measuring: Measuring, of: string): Promise<FilesystemReading> {
  const from = measuring.notices.length;
  return (await measuring.notice('read', of, undefined, from)).reading;
}

const descriptorsOf = (pid: number) => readdirSync(`/proc/${pid}/fd`).length;

describeWith({ root: true }, 'a filesystem', () => {
  it('L05: a tmpfs out of inodes has none free, and its bytes', async () => {
    const directory = mountTmpfs('size=8m,nr_inodes=100');
    for (let file = 0; file < 99; file += 1) writeFileSync(path.join(directory, `${file}`), '');
    const [reading] = await readEach(directory);
    expect(reading).toMatchObject({
      path: directory,
      capacityBytes: 8 * MI,
      availableBytes: 8 * MI,
      inodes: 100,
      inodesFree: 0,
      mountPoint: directory,
      source: 'evictd-test',
      type: 'tmpfs',
    });
  });

  it('that fills is read as it fills', async () => {
    const directory = mountTmpfs('size=8m');
    const measuring = measure({ paths: [directory] });
    await measuring.notice('read', directory, ({ reading }) => reading.availableBytes === 8 * MI);
    writeFileSync(path.join(directory, 'file'), Buffer.alloc(6 * MI));
    await measuring.notice('read', directory, ({ reading }) => reading.availableBytes === 2 * MI);
    const { notices } = measuring;
    const times = notices.flatMap((one) => (one.kind === 'read' ? one.reading.atMs : []));
    expect(times).toEqual(times.toSorted((one, other) => one - other));
  });

  it('a bind mount is the same filesystem, another tmpfs of that name is not', async () => {
    const nodefs = mountTmpfs('size=8m');
    const bound = path.join(nodefs, 'images');
    mkdirSync(bound);
    const [one, two, three] = await readEach(nodefs, mountBind(bound), mountTmpfs('size=8m'));
    if (one === undefined || two === undefined || three === undefined) throw new Error('unread');
    expect(filesystemLayout({ nodefs: one, imagefs: two, containerfs: three })).toMatchObject({
      layout: 'separateContainerfs',
      text: 'nodefs = imagefs, containerfs',
    });
  });

  it.each([
    ['a space and a newline', 'odd \nname'],
    ['255 bytes', 'n'.repeat(255)],
    ['a backslash and digits', '\\040'],
    ['no ASCII', 'größe €'],
    ['what a shell would take', '$(id);`id`\'"*?'],
  ])('in a directory whose name has %s', async (_, name) => {
    const directory = path.join(privateDirectory(), name);
    mkdirSync(directory);
    mountTmpfs('size=4m', directory);
    const [reading] = await readEach(directory);
    expect(reading).toMatchObject({ capacityBytes: 4 * MI, mountPoint: directory });
    unmount(directory);
  });

  it('appears, is covered by another, vanishes; the path as well', async () => {
    const directory = privateDirectory();
    const below = path.join(directory, 'mount');
    mkdirSync(below);
    const measuring = measure({ paths: [below], pollMs: 20 });
    const before = await nextReading(measuring, below);
    mountTmpfs('size=4m', below);
    const { reading: first } = await measuring.notice(
      'read',
      below,
      ({ reading }) => reading.capacityBytes === 4 * MI,
    );
    expect(first.device).not.toBe(before.device);
    mountTmpfs('size=2m', below);
    const { reading: second } = await measuring.notice(
      'read',
      below,
      ({ reading }) => reading.capacityBytes === 2 * MI,
    );
    expect(second.device).not.toBe(first.device);
    unmount(below);
    unmount(below);
    const from = measuring.notices.length;
    const isBefore = ({ reading }: { readonly reading: FilesystemReading }) =>
      reading.device === before.device && reading.mountPoint === before.mountPoint;
    await measuring.notice('read', below, isBefore, from);
    rmdirSync(below);
    const { error, stale } = await measuring.notice('failed', below);
    expect(error).toBe(`ENOENT: no such file or directory, open '${below}'`);
    expect(stale).toBe(false);
    mkdirSync(below);
    await measuring.notice('read', below, isBefore, measuring.notices.length);
    expect(measuring.helpers()).toHaveLength(1);
  });
});

describeWith({ root: true, programs: ['mkfs.ext4'], files: ['/dev/loop-control'] }, 'ext4', () => {
  it('on a loop device: blocks, the reserve, inodes', async () => {
    const directory = mountExt4(16);
    const before = statfsSync(directory);
    const [reading] = await readEach(directory);
    expect(reading).toMatchObject({
      capacityBytes: before.blocks * before.bsize,
      availableBytes: before.bavail * before.bsize,
      usedBytes: (before.blocks - before.bfree) * before.bsize,
      inodes: before.files,
      inodesFree: before.ffree,
      mountPoint: directory,
      type: 'ext4',
    });
    expect(reading?.source).toMatch(/^\/dev\/loop\d+$/);
    expect(reading?.device).toBe(reading?.mountDevice);
    expect(before.bavail).toBeLessThan(before.bfree);
  });

  it('nodefs, imagefs and containerfs on mounts of their own', async () => {
    const [nodefs, imagefs, containerfs] = await readEach(
      mountExt4(16),
      mountExt4(16),
      mountTmpfs('size=4m'),
    );
    if (!nodefs || !imagefs || !containerfs) throw new Error('unread');
    expect(filesystemLayout({ nodefs, imagefs, containerfs }).layout).toBe('separateContainerfs');
  });
});

const FUSE = { root: true, programs: ['python3'], files: ['/dev/fuse'] } as const;

/** Has a second path read at least so often while another hangs; the longest time without a reading. */
async function freshness(measuring: Measuring, of: string, readings: number): Promise<number> {
  const from = measuring.notices.length;
  const times = () =>
    measuring.notices
      .slice(from)
      .flatMap((one) => (one.kind === 'read' && pathOf(one) === of ? one.reading.atMs : []));
  await until(`${readings} readings of ${of}`, () => times().length >= readings, {
    limitMs: LIMIT_MS,
  });
  return Math.max(...times().map((atMs, index, all) => atMs - (all[index - 1] ?? atMs)));
}

describeWith(FUSE, 'a FUSE filesystem', () => {
  it('has sizes in f_frsize, which is not f_bsize, and no inode counts', async () => {
    const { directory } = await mountFuse('nothing');
    const [reading] = await readEach(directory);
    expect(reading).toMatchObject({
      capacityBytes: 1000 * 512,
      availableBytes: 250 * 512,
      inodes: 0,
      inodesFree: 0,
      type: 'fuse.evictd-test',
    });
    expect(statfsSync(directory).bsize).toBe(65_536);
  });

  it('L08: whose server never reads is stale at the deadline, others are fresh', async () => {
    const ok = mountTmpfs('size=4m');
    const { directory } = await mountFuse('unread');
    const measuring = measure({ paths: [directory, ok], pollMs: 20, deadlineMs: DEADLINE_MS });
    const { stale, error } = await measuring.notice('failed', directory);
    expect({ stale, error }).toEqual({ stale: true, error: `no answer within ${DEADLINE_MS} ms` });
    await measuring.notice('read', ok);
    const descriptors = descriptorsOf(measuring.pid);
    const longestMs = await freshness(measuring, ok, 100);
    // It can be killed: one helper for it at the most, none that stays.
    expect(measuring.helpers().length).toBeLessThanOrEqual(2);
    report(`at most ${longestMs.toFixed(0)} ms between readings polled each 20 ms`);
    expect(longestMs).toBeLessThan(DEADLINE_MS + 200);
    expect(measuring.notices.filter((one) => one.kind === 'failed' && !one.stale)).toEqual([]);
    expect(descriptorsOf(measuring.pid)).toBeLessThanOrEqual(descriptors + 2);
    measuring.send('unsubscribe');
    const endMs = await measuring.exits();
    report(`ends in ${endMs.toFixed(0)} ms`);
    expect(endMs).toBeLessThan(1000);
  });

  it('L08: whose server has read the request keeps one helper until it answers', async () => {
    const ok = mountTmpfs('size=4m');
    const server = await mountFuse('statfs');
    const { directory } = server;
    const measuring = measure({ paths: [directory, ok], pollMs: 20, deadlineMs: DEADLINE_MS });
    await server.says('statfs');
    await measuring.notice('failed', directory, ({ stale }) => stale);
    const { error } = await measuring.notice('failed', directory, (one) =>
      /cannot be killed/.test(one.error),
    );
    const stuck = Number(/helper (\d+)/.exec(error)?.[1]);
    expect(stateOf(stuck)).toBe('D');
    const descriptors = descriptorsOf(measuring.pid);
    const longestMs = await freshness(measuring, ok, 100);
    report(`at most ${longestMs.toFixed(0)} ms between readings polled each 20 ms`);
    expect(longestMs).toBeLessThan(200);
    expect(measuring.helpers()).toHaveLength(2);
    expect(measuring.helpers()).toContain(stuck);
    expect(descriptorsOf(measuring.pid)).toBe(descriptors);
    expect(measuring.notices.filter((one) => pathOf(one) === directory)).toHaveLength(2);
    server.answer();
    const { reading } = await measuring.notice('read', directory);
    expect(reading.capacityBytes).toBe(1000 * 512);
    await until('one helper is left', () => measuring.helpers().length === 1, {
      limitMs: LIMIT_MS,
    });
    expect(measuring.helpers()).not.toContain(stuck);
  });

  it.each([
    ['unsubscribes', 'unsubscribe'],
    ['calls process.exit', 'exit'],
  ] as const)('with a helper that is stuck, a process that %s ends at once', async (_, how) => {
    const servers = await Promise.all([mountFuse('statfs'), mountFuse('statfs')]);
    const paths = servers.map(({ directory }) => directory);
    const measuring = measure({ paths, deadlineMs: DEADLINE_MS });
    for (const one of paths) await measuring.notice('failed', one);
    const helpers = measuring.helpers();
    expect(helpers).toHaveLength(2);
    await until('both wait in the kernel', () => helpers.map(stateOf).join('') === 'DD', {
      limitMs: LIMIT_MS,
    });
    measuring.send(how);
    const endMs = await measuring.exits();
    report(`ends in ${endMs.toFixed(0)} ms`);
    expect(endMs).toBeLessThan(1000);
    for (const server of servers) server.answer();
    await until('its helpers are gone', () => helpers.every((pid) => stateOf(pid) === undefined), {
      limitMs: LIMIT_MS,
    });
  });

  it('never more helpers than paths and one, whatever comes and goes', async () => {
    const ok = mountTmpfs('size=4m');
    const servers = await Promise.all([
      mountFuse('statfs'),
      mountFuse('unread'),
      mountFuse('statfs'),
    ]);
    const paths = [...servers.map(({ directory }) => directory), ok];
    const measuring = measure({ paths, pollMs: 20, deadlineMs: DEADLINE_MS });
    let most = 0;
    const seen = (): boolean => {
      most = Math.max(most, measuring.helpers().length);
      return measuring.notices.filter((one) => pathOf(one) === ok).length > count(100, 1000);
    };
    await until('readings', seen, { limitMs: 4 * LIMIT_MS });
    report(`at most ${most} helpers for ${paths.length} paths, three of which hang`);
    expect(most).toBeLessThanOrEqual(paths.length + 1);
    for (const server of servers) server.answer();
    for (const one of paths) await measuring.notice('read', one);
    await until('one helper is left', () => measuring.helpers().length === 1, {
      limitMs: LIMIT_MS,
    });
  });
});

describeWith({ root: true }, 'the helper', () => {
  it('killed from outside, again and again: the next takes its place, no descriptor stays', async () => {
    const directory = mountTmpfs('size=4m');
    const measuring = measure({ paths: [directory], pollMs: 10 });
    await measuring.notice('read', directory);
    const descriptors = descriptorsOf(measuring.pid);
    const rounds = count(20, 200);
    const killed = new Set<number>();
    for (let round = 0; round < rounds; round += 1) {
      await nextReading(measuring, directory);
      const [helper] = measuring.helpers();
      if (helper === undefined) continue;
      killed.add(helper);
      process.kill(helper, 'SIGKILL');
    }
    await nextReading(measuring, directory);
    expect(killed.size).toBeGreaterThan(rounds / 2);
    expect(measuring.helpers()).toHaveLength(1);
    const isFlat = () => descriptorsOf(measuring.pid) <= descriptors;
    await until('its descriptors are closed', isFlat, { limitMs: LIMIT_MS });
  });

  it('stopped by somebody: stale at the deadline, then another', async () => {
    const directory = mountTmpfs('size=4m');
    const measuring = measure({ paths: [directory], pollMs: 50, deadlineMs: DEADLINE_MS });
    await measuring.notice('read', directory);
    const [helper] = measuring.helpers();
    process.kill(helper as number, 'SIGSTOP');
    const from = measuring.notices.length;
    const { stale } = await measuring.notice('failed', directory, undefined, from);
    expect(stale).toBe(true);
    await nextReading(measuring, directory);
    expect(measuring.helpers()).toHaveLength(1);
    expect(measuring.helpers()).not.toContain(helper);
  });

  it('goes when its process is killed', async () => {
    const measuring = measure({ paths: ['/'] });
    await measuring.notice('read', '/');
    const [helper] = measuring.helpers();
    measuring.child.kill('SIGKILL');
    const isGone = () => [undefined, 'Z'].includes(stateOf(helper as number));
    await until('the helper is gone', isGone, { limitMs: LIMIT_MS });
  });

  it('is small and quick', async () => {
    const measuring = measure({ paths: ['/'], pollMs: 10 });
    await measuring.notice('read', '/');
    const [helper] = measuring.helpers();
    await freshness(measuring, '/', 100);
    expect(measuring.helpers()).toEqual([helper]);
    const status = readFileSync(`/proc/${helper}/status`, 'utf8');
    const residentKibibytes = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]);
    report(`${residentKibibytes} KiB resident`);
    expect(residentKibibytes).toBeLessThan(2048);
  });

  it('is missing: said of each path, and tried again', async () => {
    const measuring = measure({ paths: ['/', '/proc'], helperPath: '/nowhere/evictd-fs' });
    const { error, stale } = await measuring.notice('failed', '/proc');
    expect({ error, stale }).toEqual({ error: 'spawn /nowhere/evictd-fs ENOENT', stale: false });
    await measuring.notice('failed', '/', undefined, 2);
    measuring.send('unsubscribe');
    expect(await measuring.exits()).toBeLessThan(1000);
  });
});

describeWith({ root: true, pidsV1: true }, 'a node out of processes', () => {
  it('a helper that lives goes on; one that cannot be started is a failure that passes', async () => {
    const group = `/sys/fs/cgroup/pids/evictd-test-${process.pid}-fs`;
    mkdirSync(group);
    const measuring = measure({ paths: ['/'], pollMs: 50 });
    onTestFinished(async () => {
      measuring.child.kill('SIGKILL');
      const isEmpty = () => readFileSync(`${group}/cgroup.procs`, 'utf8') === '';
      await until('the group is empty', isEmpty, { limitMs: LIMIT_MS });
      rmdirSync(group);
    });
    await measuring.notice('read', '/');
    writeFileSync(`${group}/cgroup.procs`, String(measuring.pid));
    writeFileSync(`${group}/pids.max`, '0');
    await nextReading(measuring, '/');
    const [helper] = measuring.helpers();
    process.kill(helper as number, 'SIGKILL');
    const from = measuring.notices.length;
    const { error } = await measuring.notice('failed', '/', undefined, from);
    expect(error).toMatch(/EAGAIN/);
    writeFileSync(`${group}/pids.max`, 'max');
    await nextReading(measuring, '/');
  });
});

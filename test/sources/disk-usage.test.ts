import { Subject } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type {
  ContainerDisk,
  DiskTeller,
  DiskUseNotice,
  Place,
  RuntimeFilesystems,
} from '../../src/ports/disk-usage.ts';
import {
  DELETED_EACH_MS,
  diskUsage,
  FILESYSTEMS_EACH_MS,
  type FilesystemsNotice,
  ROUND_LIMIT_MS,
  runtimeFilesystems,
  TOLD_LATE_MS,
  USAGE_SHARE,
} from '../../src/sources/disk-usage.ts';
import type { WalkAnswer } from '../../src/sources/walk-helper.ts';
import type { Walker } from '../../src/sources/walker.ts';
import { clock } from '../support/clock.ts';

const place = (below: string): Place => ({ root: '/r', below });
const walked = (bytes: number, fields: object = {}): WalkAnswer => ({
  kind: 'walked',
  device: '8:1',
  type: 7,
  bytes,
  inodes: 2,
  cut: undefined,
  holders: [],
  ...fields,
});
const container = (id: string, fields: Partial<ContainerDisk> = {}): ContainerDisk => ({
  id,
  layer: undefined,
  logs: undefined,
  volumes: [],
  ...fields,
});

interface Scene {
  readonly containers?: () => Promise<readonly ContainerDisk[]>;
  /** By the path below the root. */
  readonly answerTo?: (below: string) => WalkAnswer;
  readonly walkMs?: number;
  readonly deleted?: WalkAnswer;
  readonly afterMs?: () => number;
}

function play({
  containers = () => Promise.resolve([]),
  answerTo = () => walked(1),
  walkMs = 0,
  deleted = walked(0),
  afterMs = () => 1000,
}: Scene) {
  const time = clock();
  const { scheduler } = time;
  const ticks$ = new Subject<void>();
  const asked: string[] = [];
  let closed = 0;
  const walker: Walker = {
    walk: ({ below }) => {
      asked.push(below);
      return new Promise((resolve) => scheduler.schedule(() => resolve(answerTo(below)), walkMs));
    },
    deleted: () => {
      asked.push('(deleted)');
      return Promise.resolve(deleted);
    },
    close: () => {
      closed += 1;
    },
  };
  const teller: DiskTeller = { containers, filesystems: () => Promise.reject(new Error('unused')) };
  const notices: DiskUseNotice[] = [];
  const running = diskUsage({ teller, walker, scheduler, ticks$, afterMs }).subscribe((notice) =>
    notices.push(notice),
  );
  const tick = async (ms = 0): Promise<void> => {
    ticks$.next();
    await time.pass(ms);
  };
  const used = () => {
    const last = notices.findLast(({ kind }) => kind === 'used');
    return last?.kind === 'used' ? last : undefined;
  };
  return { time, tick, asked, notices, used, running, closed: () => closed };
}

describe('a round', () => {
  it('has what the runtime tells and what was walked, each with its time', async () => {
    const scene = play({
      containers: () =>
        Promise.resolve([
          container('told', {
            layer: { kind: 'told', bytes: 500, inodes: 5, ageMs: 300, place: place('upper') },
            logs: place('logs'),
            volumes: [{ name: 'cache', place: place('cache') }],
          }),
          container('walked', { layer: { kind: 'at', place: place('layer') } }),
        ]),
      answerTo: (below) => walked(below.length, below === 'cache' ? { cut: 'entries' } : {}),
    });
    await scene.time.pass(10_000);
    await scene.tick();
    const { containers, atMs, tookMs } = scene.used() ?? {};
    const part = { atMs: 10_000, device: '8:1', type: 7, cut: undefined, inodes: 2 };
    expect([atMs, tookMs]).toStrictEqual([10_000, 0]);
    expect(containers?.get('told')).toStrictEqual({
      layer: { ...part, bytes: 500, inodes: 5, atMs: 9700, device: undefined, type: undefined },
      logs: { ...part, bytes: 4 },
      volumes: new Map([['cache', { ...part, bytes: 5, cut: 'entries' }]]),
      trouble: undefined,
    });
    expect(containers?.get('walked')).toStrictEqual({
      layer: { ...part, bytes: 5 },
      logs: undefined,
      volumes: new Map(),
      trouble: undefined,
    });
  });

  it('walks a layer itself where what the runtime tells is older than it is wanted', async () => {
    const layer = (ageMs: number) =>
      ({ kind: 'told', bytes: 500, inodes: 5, ageMs, place: place('upper') }) as const;
    let ageMs = 1000 + TOLD_LATE_MS;
    const scene = play({
      containers: () => Promise.resolve([container('a', { layer: layer(ageMs) })]),
      answerTo: () => walked(900),
    });
    await scene.tick();
    expect(scene.used()?.containers.get('a')?.layer?.bytes).toBe(500);
    ageMs += 1;
    await scene.time.pass(1000);
    await scene.tick();
    expect(scene.used()?.containers.get('a')?.layer?.bytes).toBe(900);
  });

  it('says where logs and volumes are not told', async () => {
    const containers = [container('a', { isUntold: true }), container('b')];
    const scene = play({ containers: () => Promise.resolve(containers) });
    await scene.tick();
    expect(scene.used()?.containers.get('a')?.isUntold).toBe(true);
    expect(scene.used()?.containers.get('b')).not.toHaveProperty('isUntold');
  });

  it('takes what the runtime tells, however old, where a walk does not come to its end', async () => {
    const layer = {
      kind: 'told',
      bytes: 500,
      inodes: 5,
      ageMs: 30_000,
      place: place('x'),
    } as const;
    const of = async (bytes: number) => {
      const containers = [container('a', { layer })];
      const scene = play({
        containers: () => Promise.resolve(containers),
        answerTo: () => walked(bytes, { cut: 'time' }),
      });
      await scene.time.pass(60_000);
      await scene.tick();
      return scene.used()?.containers.get('a')?.layer;
    };
    const told = { inodes: 5, atMs: 30_000, device: undefined, type: undefined, cut: undefined };
    expect(await of(100)).toStrictEqual({ ...told, bytes: 500 });
    expect(await of(900)).toStrictEqual({ ...told, bytes: 900 });
  });

  it('keeps what is told where it can neither be walked', async () => {
    const layer = { kind: 'told', bytes: 500, inodes: 5, ageMs: 9999, place: place('u') } as const;
    const scene = play({
      containers: () => Promise.resolve([container('a', { layer })]),
      answerTo: () => ({ kind: 'refused', error: 'EACCES: no' }),
    });
    await scene.tick();
    expect(scene.used()?.containers.get('a')).toMatchObject({
      layer: { bytes: 500 },
      trouble: 'u: EACCES: no',
    });
  });

  it('what is not there yet is empty; what cannot be walked stays as it was', async () => {
    let error = 'ENOENT: no such file or directory, open';
    let isRefused = false;
    const scene = play({
      containers: () => Promise.resolve([container('a', { logs: place('logs') })]),
      answerTo: () => (isRefused ? { kind: 'refused', error } : walked(70)),
    });
    await scene.tick();
    isRefused = true;
    error = 'EACCES: permission denied, open';
    await scene.time.pass(1000);
    await scene.tick();
    expect(scene.used()?.containers.get('a')).toMatchObject({
      logs: { bytes: 70, atMs: 0 },
      trouble: 'logs: EACCES: permission denied, open',
    });
    error = 'ENOENT: no such file or directory, open';
    await scene.time.pass(1000);
    await scene.tick();
    expect(scene.used()?.containers.get('a')).toMatchObject({
      logs: { bytes: 0, atMs: 2000 },
      trouble: undefined,
    });
  });

  it('walks a volume of two containers once', async () => {
    const volumes = [{ name: 'shared', place: place('shared') }];
    const scene = play({
      containers: () => Promise.resolve([container('a', { volumes }), container('b', { volumes })]),
    });
    await scene.tick();
    expect(scene.asked.filter((below) => below === 'shared')).toHaveLength(1);
    expect(scene.used()?.containers.get('b')?.volumes.get('shared')?.bytes).toBe(1);
  });

  it('has its limit: who was not reached comes first the next time', async () => {
    const ids = ['a', 'b', 'c'];
    const scene = play({
      containers: () => Promise.resolve(ids.map((id) => container(id, { logs: place(id) }))),
      walkMs: ROUND_LIMIT_MS / 2,
      answerTo: (below) => walked(below.charCodeAt(0)),
    });
    await scene.tick(ROUND_LIMIT_MS);
    expect([...(scene.used()?.containers.keys() ?? [])]).toEqual(['a', 'b']);
    await scene.time.pass(ROUND_LIMIT_MS * USAGE_SHARE);
    await scene.tick(ROUND_LIMIT_MS);
    expect(scene.asked.filter((one) => ids.includes(one))).toEqual(['a', 'b', 'c', 'a']);
    expect([...(scene.used()?.containers.keys() ?? [])].sort()).toEqual(ids);
    expect(scene.used()?.containers.get('b')?.logs?.atMs).toBe(ROUND_LIMIT_MS / 2);
  });

  it('one that fails leaves what was known, and the next one follows', async () => {
    let fails = true;
    const scene = play({
      containers: () => (fails ? Promise.reject(new Error('14 UNAVAILABLE')) : Promise.resolve([])),
    });
    await scene.tick();
    expect(scene.notices[0]).toStrictEqual({ kind: 'failed', atMs: 0, reason: '14 UNAVAILABLE' });
    fails = false;
    await scene.time.pass(1000);
    await scene.tick();
    expect(scene.notices.at(-1)).toMatchObject({ kind: 'used' });
  });
});

describe('rounds', () => {
  it('come as they are wanted, at a tick, and one at a time', async () => {
    let wantedMs = 5000;
    const scene = play({
      containers: () => Promise.resolve([container('a', { logs: place('a') })]),
      walkMs: 100,
      afterMs: () => wantedMs,
    });
    const rounds = () => scene.notices.filter(({ kind }) => kind === 'used').length;
    await scene.tick(50);
    await scene.tick(50);
    expect(rounds()).toBe(1);
    await scene.time.pass(4999);
    await scene.tick(100);
    expect(rounds()).toBe(1);
    await scene.tick(100);
    expect(rounds()).toBe(2);
    // No more than a part of the time.
    wantedMs = 0;
    await scene.time.pass(100 * (USAGE_SHARE - 1) - 101);
    await scene.tick(101);
    expect(rounds()).toBe(2);
    await scene.tick(100);
    expect(rounds()).toBe(3);
  });

  it('look for deleted files now and then', async () => {
    const holders = [{ pid: 7, device: '0:57', bytes: 9 }];
    const scene = play({ deleted: walked(9, { holders, cut: 'entries' }) });
    await scene.tick();
    expect(scene.notices[1]).toStrictEqual({
      kind: 'deleted',
      atMs: 0,
      files: holders,
      isCut: true,
    });
    await scene.time.pass(DELETED_EACH_MS - 1);
    await scene.tick();
    await scene.time.pass(1000);
    await scene.tick();
    expect(scene.asked).toEqual(['(deleted)', '(deleted)']);
  });

  it('say nothing of deleted files where nobody can look', async () => {
    const scene = play({ deleted: { kind: 'refused', error: 'spawn evictd-walk ENOENT' } });
    await scene.tick();
    expect(scene.notices.map(({ kind }) => kind)).toEqual(['used']);
  });

  it('keep no helper between them, and none at the end', async () => {
    const scene = play({});
    await scene.tick();
    expect(scene.closed()).toBe(1);
    scene.running.unsubscribe();
    expect(scene.closed()).toBe(2);
  });
});

describe('runtimeFilesystems', () => {
  const FOUND: RuntimeFilesystems = {
    imagefs: ['/i'],
    containerfs: ['/c'],
    imageBytes: 1,
    imageInodes: 2,
    containerBytes: 1,
    containerInodes: 2,
  };

  it('asks while that is wanted, again and again', async () => {
    const time = clock();
    const wanted$ = new Subject<boolean>();
    let fails = false;
    const teller: DiskTeller = {
      containers: () => Promise.resolve([]),
      filesystems: () => (fails ? Promise.reject(new Error('away')) : Promise.resolve(FOUND)),
    };
    const notices: FilesystemsNotice[] = [];
    runtimeFilesystems(teller, wanted$, time.scheduler).subscribe((one) => notices.push(one));
    await time.pass(FILESYSTEMS_EACH_MS);
    expect(notices).toEqual([]);
    wanted$.next(true);
    await time.pass(1);
    fails = true;
    await time.pass(FILESYSTEMS_EACH_MS);
    expect(notices).toStrictEqual([
      { kind: 'found', filesystems: FOUND },
      { kind: 'unknown', reason: 'away' },
    ]);
    wanted$.next(false);
    await time.pass(FILESYSTEMS_EACH_MS * 3);
    expect(notices).toHaveLength(2);
  });
});

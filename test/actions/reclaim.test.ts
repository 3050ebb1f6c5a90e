import {
  asyncScheduler,
  concatMap,
  defer,
  delay,
  from,
  map,
  type Observable,
  of,
  repeat,
  timer,
} from 'rxjs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  COLLECTION_LIMIT_MS,
  type CollectionRequest,
  collect,
  FRUITLESS_LIMIT,
  PATIENCE_MS,
  SETTLE_READING_MS,
} from '../../src/actions/reclaim.ts';
import { CONTAINER_GC, CONTAINER_GC_UNDER_PRESSURE } from '../../src/core/container-gc.ts';
import { imagesSeen, type ListedImage } from '../../src/core/image-gc.ts';
import type { Collected, CollectionNotice } from '../../src/ports/collection.ts';
import type { FilesystemNotice, FilesystemReading } from '../../src/ports/filesystem.ts';
import type {
  DeadListing,
  Reclaimer,
  Removal,
  RuntimeDeadContainer,
  RuntimeDeadSandbox,
} from '../../src/ports/reclaimer.ts';
import { GI } from '../support/builders.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Percent of a filesystem of 100 Gi. */
const percent = ({ availableBytes }: FilesystemReading): number => availableBytes / GI;

/** A filesystem of 100 Gi, and what is done to it. */
class Disk {
  available: number;
  fails = false;

  constructor(available: number) {
    this.available = available;
  }

  readonly measure$: Observable<FilesystemNotice> = defer(() => of(this.#notice())).pipe(
    repeat({ delay: () => timer(SETTLE_READING_MS) }),
  );

  /** Space comes back after a while, in steps of 1 %. */
  free(amount: number, afterMs = 0): void {
    from(Array.from({ length: amount }))
      .pipe(
        delay(afterMs),
        concatMap((step) => of(step).pipe(delay(1))),
      )
      .subscribe(() => {
        this.available += 1;
      });
  }

  #notice(): FilesystemNotice {
    if (this.fails) return { kind: 'failed', path: '/images', atMs: 0, error: 'EIO', stale: true };
    return {
      kind: 'read',
      reading: {
        path: '/images',
        atMs: Date.now(),
        capacityBytes: 100 * GI,
        availableBytes: this.available * GI,
        usedBytes: (100 - this.available) * GI,
        inodes: 0,
        inodesFree: 0,
        device: '8:1',
        mountDevice: '',
        source: '',
        type: 'ext4',
        mountPoint: '/',
      },
    };
  }
}

const image = (id: string, fields: Partial<ListedImage> = {}): ListedImage => ({
  id,
  names: [`example/${id}:1`],
  sizeBytes: 9_223_372_036,
  pinned: undefined,
  usedBy: [],
  ...fields,
});

const dead = (id: string, fields: Partial<RuntimeDeadContainer> = {}): RuntimeDeadContainer => ({
  id,
  owner: id,
  endedAtMs: 0,
  name: `default/${id}/main`,
  labels: {},
  annotations: {},
  ...fields,
});

const sandbox = (id: string, ...containers: string[]): RuntimeDeadSandbox => ({
  ...dead(id),
  name: `default/${id}`,
  containers,
});

interface Scene {
  readonly disk?: Disk;
  readonly images?: readonly ListedImage[];
  readonly dead?: Omit<DeadListing, 'created'> & Partial<DeadListing>;
  /** What a removal does and answers; by default it frees 10 % at once. */
  readonly remove?: (id: string) => Removal | Promise<Removal>;
  readonly request?: Partial<CollectionRequest>;
  readonly dryRun?: boolean;
  readonly reclaimer?: Partial<Reclaimer>;
  readonly spared?: readonly string[];
}

/** Until 50 % are available. */
const REQUEST: CollectionRequest = {
  functions: ['containers', 'images'],
  containers: CONTAINER_GC_UNDER_PRESSURE,
  images: { minimumAgeMs: 0, maximumAgeMs: 0, endsFruitless: false },
  isEnough: (reading) => percent(reading) >= 50,
  availableIn: ({ availableBytes }) => availableBytes,
  limitMs: COLLECTION_LIMIT_MS,
};

/** Carries out a collection to its end. */
async function play(scene: Scene = {}) {
  const {
    disk = new Disk(10),
    images = [],
    dead: listing = { containers: [], sandboxes: [] },
  } = scene;
  const asked: string[] = [];
  const remove =
    (what: string) =>
    async (id: string): Promise<Removal> => {
      asked.push(`${what} ${id}`);
      if (scene.remove !== undefined) return scene.remove(id);
      disk.available += 10;
      return { kind: 'removed' };
    };
  const notices: CollectionNotice[] = [];
  let completedAtMs: number | undefined;
  const startedAtMs = Date.now();
  const running = collect(
    { ...REQUEST, ...scene.request },
    {
      reclaimer: {
        listDead: async () => ({ created: [], ...listing }),
        listImages: async () => images,
        removeContainer: remove('container'),
        removeSandbox: remove('sandbox'),
        removeImage: ({ id }) => remove('image')(id),
        ...scene.reclaimer,
      },
      scheduler: asyncScheduler,
      dryRun: scene.dryRun ?? false,
      measure$: disk.measure$,
      sparedBecause: ({ id }) => (scene.spared?.includes(id) ? 'protected' : undefined),
      seeImages: (listed) => imagesSeen(new Map(), listed, Date.now() - 1),
      wallClock: () => Date.now(),
    },
  ).subscribe({
    next: (notice) => notices.push(notice),
    complete: () => {
      completedAtMs = Date.now() - startedAtMs;
    },
  });
  await vi.advanceTimersByTimeAsync(2 * COLLECTION_LIMIT_MS);
  const last = notices.at(-1);
  if (last?.kind !== 'ended') throw new Error(`no end: ${JSON.stringify(last)}`);
  return { asked, notices, collected: last.collected, completedAtMs, running, disk };
}

const said = (notices: readonly CollectionNotice[]): readonly string[] =>
  notices.flatMap((notice) =>
    notice.kind === 'ended' || notice.kind === 'fault' ? [] : [`${notice.kind} ${notice.id}`],
  );
const freed = ({ first, last }: Collected): number | undefined =>
  first && last && percent(last) - percent(first);

describe('collect', () => {
  it('removes containers, then sandboxes, then images, until enough is regained', async () => {
    const { asked, collected } = await play({
      dead: { containers: [dead('c1'), dead('c2')], sandboxes: [sandbox('s1', 'c1', 'gone')] },
      images: [image('i3'), image('i1'), image('i2')],
    });
    expect(asked).toStrictEqual(['container c1', 'container c2', 'sandbox s1', 'image i1']);
    expect(collected).toMatchObject({
      because: 'regained',
      removed: { container: 2, sandbox: 1, image: 1 },
      inUse: 0,
      failed: 0,
      wouldRemove: 0,
    });
    expect(freed(collected)).toBe(40);
  });

  it('removes no image where containers were enough, and nothing where nothing is short', async () => {
    const containers = ['c1', 'c2', 'c3', 'c4'].map((id) => dead(id));
    const enough = await play({ dead: { containers, sandboxes: [] }, images: [image('i1')] });
    expect(enough.asked).toHaveLength(4);
    expect(enough.collected).toMatchObject({ because: 'regained' });
    const nothing = await play({ disk: new Disk(50), images: [image('i1')] });
    expect(nothing.asked).toStrictEqual([]);
    expect(nothing.collected).toMatchObject({ because: 'regained' });
  });

  it('removes all that may go where that is asked for, or is not enough', async () => {
    const images = [image('i1'), image('i2')];
    const all = await play({ disk: new Disk(80), images, request: { isEnough: undefined } });
    expect(all.asked).toStrictEqual(['image i1', 'image i2']);
    expect(all.collected).toMatchObject({ because: 'exhausted' });
    expect((await play({ images })).collected).toMatchObject({ because: 'exhausted' });
  });

  it('C21 (k/k#44951): five that are in use after all are no failure: 9 % to 60 %', async () => {
    const disk = new Disk(9);
    const images = Array.from({ length: 11 }, (_, index) => image(`i${10 + index}`));
    const { collected, notices } = await play({
      disk,
      images,
      request: { isEnough: (reading) => percent(reading) >= 60 },
      remove: (id) => {
        if (Number(id.slice(1)) < 15) return { kind: 'inUse', detail: 'in use by a container' };
        disk.free(17);
        return { kind: 'removed' };
      },
    });
    expect(said(notices).filter((one) => one.startsWith('inUse'))).toHaveLength(5);
    expect(collected).toMatchObject({ because: 'regained', inUse: 5, failed: 0 });
    expect(collected.removed.image).toBe(3);
    expect(freed(collected)).toBe(51);
  });

  it('C24: pinned and used images stay, and why each does is told', async () => {
    const { asked, notices } = await play({
      images: [
        image('pause', { pinned: 'sandboxes are made of it' }),
        image('used', { usedBy: ['c1'] }),
        image('free'),
      ],
    });
    expect(asked).toStrictEqual(['image free']);
    expect(notices.filter(({ kind }) => kind === 'kept')).toMatchObject([
      { id: 'pause', why: 'sandboxes are made of it', name: 'example/pause:1' },
      { id: 'used', why: 'in use' },
    ]);
  });

  it('keeps what is spared, and containers that are kept hold their sandbox', async () => {
    const { asked, notices } = await play({
      request: { containers: CONTAINER_GC },
      dead: {
        containers: [
          dead('old', { owner: 'web', endedAtMs: 1 }),
          dead('last', { owner: 'web', endedAtMs: 2 }),
          dead('mine'),
        ],
        sandboxes: [sandbox('s1', 'last'), sandbox('s2', 'old')],
      },
      spared: ['mine', 's2'],
    });
    expect(asked).toStrictEqual(['container old']);
    expect(notices.filter(({ kind }) => kind === 'kept')).toMatchObject([
      { id: 'mine', why: 'protected' },
      { id: 'last', why: 'latest' },
      { id: 's2', why: 'protected' },
      { id: 's1', why: 'latest' },
    ]);
  });

  it('awaits space that comes back late, and no longer than it still does', async () => {
    const disk = new Disk(10);
    const { collected, completedAtMs } = await play({
      disk,
      dead: { containers: [dead('c1')], sandboxes: [] },
      images: [image('i1')],
      // About a second after the removal, as containerd does.
      remove: () => {
        disk.free(45, 1000);
        return { kind: 'removed' };
      },
    });
    expect(collected).toMatchObject({ because: 'regained', removed: { container: 1, image: 0 } });
    expect(completedAtMs).toBeGreaterThan(1000);
    expect(completedAtMs).toBeLessThan(PATIENCE_MS.containers);
  });

  it('waits for space that never comes no longer than so much in all', async () => {
    const images = Array.from({ length: 50 }, (_, index) => image(`i${index}`));
    const { collected, completedAtMs } = await play({
      images,
      remove: () => ({ kind: 'removed' }),
    });
    expect(collected).toMatchObject({ because: 'exhausted', removed: { image: 50 } });
    expect(completedAtMs).toBeLessThan(COLLECTION_LIMIT_MS / 2);
  });

  it('gives up after a few images that free nothing where no pressure asks for them', async () => {
    const images = Array.from({ length: 50 }, (_, index) => image(`i${10 + index}`));
    const { asked, collected } = await play({
      images,
      request: { images: { minimumAgeMs: 0, maximumAgeMs: 0, endsFruitless: true } },
      remove: () => ({ kind: 'removed' }),
    });
    expect(collected.because).toBe('fruitless');
    expect(asked).toHaveLength(FRUITLESS_LIMIT);
  });

  it('removes outdated images whatever is available', async () => {
    const disk = new Disk(90);
    const { asked } = await play({
      disk,
      images: [image('i1'), image('i2')],
      request: {
        functions: ['images'],
        images: { minimumAgeMs: 0, maximumAgeMs: 1, endsFruitless: true },
      },
    });
    expect(asked).toStrictEqual([]);
    const later = await play({
      disk,
      images: [image('i1'), image('i2')],
      request: {
        functions: ['images'],
        images: { minimumAgeMs: 0, maximumAgeMs: 0.5, endsFruitless: true },
      },
    });
    expect(later.asked).toStrictEqual(['image i1', 'image i2']);
  });

  it.each<[string, Partial<Reclaimer>]>([
    ['that lists nothing', { listDead: () => new Promise(() => undefined) }],
    ['that removes nothing', { removeImage: () => new Promise(() => undefined) }],
  ])('a runtime %s holds it up no longer than its limit', async (_, reclaimer) => {
    const { collected, completedAtMs, notices } = await play({ images: [image('i1')], reclaimer });
    expect(collected).toMatchObject({ because: 'limit', removed: { image: 0 } });
    expect(completedAtMs).toBe(COLLECTION_LIMIT_MS);
    expect(notices.filter(({ kind }) => kind === 'ended')).toHaveLength(1);
  });

  it('removes nothing after its limit, though what it was at ends then', async () => {
    const images = [image('i1'), image('i2')];
    const { asked, collected } = await play({
      images,
      remove: () =>
        new Promise((resolve) => {
          setTimeout(() => resolve({ kind: 'removed' }), COLLECTION_LIMIT_MS + 1000);
        }),
    });
    expect(asked).toStrictEqual(['image i1']);
    expect(collected).toMatchObject({ because: 'limit', removed: { image: 0 } });
  });

  it('asks nothing more of a runtime that is away', async () => {
    const { asked, collected } = await play({
      images: [image('i1'), image('i2')],
      remove: () => ({ kind: 'failed', detail: 'DEADLINE_EXCEEDED', isAway: true }),
    });
    expect(asked).toStrictEqual(['image i1']);
    expect(collected).toMatchObject({ because: 'away', failed: 1 });
    const unlisted = await play({
      reclaimer: { listDead: () => Promise.reject(new Error('ECONNREFUSED')) },
      images: [image('i1')],
    });
    expect(unlisted.notices[0]).toStrictEqual({ kind: 'fault', detail: 'ECONNREFUSED' });
    expect(unlisted.collected.because).toBe('away');
  });

  it('passes over what fails, and counts what was gone for removed by another', async () => {
    const disk = new Disk(10);
    const { asked, collected } = await play({
      disk,
      images: [image('i1'), image('i2'), image('i3')],
      remove: (id) => {
        if (id === 'i1') return { kind: 'failed', detail: 'EIO', isAway: false };
        disk.available += 5;
        return id === 'i2' ? { kind: 'gone' } : { kind: 'removed' };
      },
    });
    expect(asked).toHaveLength(3);
    expect(collected).toMatchObject({ because: 'exhausted', failed: 1, removed: { image: 1 } });
  });

  it('ends where the filesystem cannot be measured, before or in between', async () => {
    const disk = new Disk(10);
    disk.fails = true;
    const before = await play({ disk, images: [image('i1')] });
    expect(before.asked).toStrictEqual([]);
    expect(before.collected).toMatchObject({ because: 'unmeasured', first: undefined });
    const other = new Disk(10);
    const between = await play({
      disk: other,
      images: [image('i1'), image('i2')],
      remove: () => {
        other.fails = true;
        return { kind: 'removed' };
      },
    });
    expect(between.asked).toStrictEqual(['image i1']);
    expect(between.collected.because).toBe('unmeasured');
  });

  it('in a dry run says what would go, and asks for nothing', async () => {
    const { asked, notices, collected } = await play({
      dryRun: true,
      dead: {
        containers: [dead('c1')],
        sandboxes: [sandbox('s1', 'c1')],
        created: [{ id: 'c0', name: 'next' }],
      },
      images: [image('i1'), image('i2', { usedBy: ['c9'] })],
    });
    expect(asked).toStrictEqual([]);
    expect(notices[0]).toStrictEqual({
      kind: 'kept',
      what: 'container',
      id: 'c0',
      name: 'next',
      why: 'not started yet',
    });
    expect(said(notices)).toStrictEqual([
      'kept c0',
      'wouldRemove c1',
      'wouldRemove s1',
      'kept i2',
      'wouldRemove i1',
    ]);
    expect(collected).toMatchObject({
      because: 'exhausted',
      removed: { container: 0, sandbox: 0, image: 0 },
      wouldRemove: 3,
    });
    expect(freed(collected)).toBe(0);
  });

  it('says nothing and removes nothing once it is unsubscribed', async () => {
    const notices: CollectionNotice[] = [];
    const asked: string[] = [];
    const running = collect(REQUEST, {
      reclaimer: {
        listDead: async () => ({
          containers: [dead('c1'), dead('c2')],
          sandboxes: [],
          created: [],
        }),
        listImages: async () => [],
        removeContainer: async (id) => {
          asked.push(id);
          running.unsubscribe();
          return { kind: 'removed' };
        },
        removeSandbox: async () => ({ kind: 'removed' }),
        removeImage: async () => ({ kind: 'removed' }),
      },
      scheduler: asyncScheduler,
      dryRun: false,
      measure$: new Disk(10).measure$,
      sparedBecause: () => undefined,
      seeImages: () => new Map(),
      wallClock: () => Date.now(),
    })
      .pipe(map((notice) => notices.push(notice)))
      .subscribe();
    await vi.advanceTimersByTimeAsync(2 * COLLECTION_LIMIT_MS);
    expect(asked).toStrictEqual(['c1']);
    expect(notices).toStrictEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });
});

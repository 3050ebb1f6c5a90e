import { asyncScheduler, defer, type Observable, of, repeat, Subject, timer } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { COLLECTION_LIMIT_MS, SETTLE_READING_MS } from '../../src/actions/reclaim.ts';
import { settingsFromFlags } from '../../src/config/check.ts';
import type { FlagValues } from '../../src/config/flags.ts';
import type { ImageMemory, ListedImage } from '../../src/core/image-gc.ts';
import type { Turn } from '../../src/core/pipeline.ts';
import { RULE_SETS } from '../../src/core/rules.ts';
import type { State } from '../../src/core/state.ts';
import {
  COLLECT_EACH_MS,
  collectedUnderPressure,
  collectionEvents,
  collections,
  IMAGES_EACH,
  type ImageLook,
} from '../../src/daemon/reclaim.ts';
import type { Collected, CollectionEvent } from '../../src/ports/collection.ts';
import type { FilesystemNotice } from '../../src/ports/filesystem.ts';
import type { Reclaimer, Removal } from '../../src/ports/reclaimer.ts';
import { cause, GI, observation, policy, threshold, value } from '../support/builders.ts';
import { decisionTurn } from '../surfaces/turns.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const CALM = decisionTurn('calm');

const SHORT = threshold({
  signal: 'imagefs.available',
  value: value('15%'),
  minimumReclaim: value('5%'),
});

/** Images are to be collected for an imagefs of 100 Gi. */
const RECLAIM: Turn = {
  ...CALM,
  policy: policy({ thresholds: [SHORT] }),
  decision: {
    kind: 'reclaim',
    functions: ['containers', 'images'],
    cause: cause({
      threshold: SHORT,
      observation: observation(10 * GI, { signal: 'imagefs.available', capacity: 100 * GI }),
    }),
  },
};

/** It is remembered from that turn on. */
const COLLECTING = { reclaiming: 'cause' in RECLAIM.decision ? RECLAIM.decision.cause : undefined };

const under = (turn: Turn, state: Partial<State>): Turn => ({
  ...turn,
  state: { ...turn.state, ...state },
});

const image = (id: string): ListedImage => ({
  id,
  names: [`example/${id}`],
  sizeBytes: 1,
  pinned: undefined,
  usedBy: [],
});

interface Scene {
  readonly flags?: FlagValues;
  /** Percent of 100 Gi. */
  readonly available?: number;
  readonly images?: readonly ListedImage[];
  readonly former?: ImageMemory;
  readonly reclaimer?: Partial<Reclaimer> | 'none';
}

/** A daemon as far as its collections go; an image frees 4 %, a container 1 %. */
function play(scene: Scene = {}) {
  let available = scene.available ?? 10;
  let images = scene.images ?? ['i1', 'i2', 'i3', 'i4'].map(image);
  const asked: string[] = [];
  const removed = (amount: number): Removal => {
    available += amount;
    return { kind: 'removed' };
  };
  const settings = settingsFromFlags({
    '--runtime': ['cri'],
    '--image-gc': ['on'],
    '--container-gc': ['on'],
    '--nodefs-path': ['/node'],
    '--imagefs-path': ['/images'],
    ...scene.flags,
  }).settings;
  const measured: string[] = [];
  const measure = (path: string): Observable<FilesystemNotice> => {
    measured.push(path);
    return defer(() => of(reading(path, available))).pipe(
      repeat({ delay: () => timer(SETTLE_READING_MS) }),
    );
  };
  const turns$ = new Subject<Turn>();
  const events: CollectionEvent[] = [];
  const looks: ImageLook[] = [];
  const running = collections(
    {
      scheduler: asyncScheduler,
      current: () => ({ settings }),
      measure,
      noteImages: (look) => looks.push(look),
      ...(scene.reclaimer === 'none'
        ? {}
        : {
            directory: {
              reclaimer: {
                listDead: async () => {
                  asked.push('dead');
                  const containers = ['c1', 'c2'].map((id, index) => ({
                    id,
                    owner: 'web',
                    endedAtMs: index,
                    name: id,
                    labels: id === 'c2' ? { 'evictd.protected': 'true' } : {},
                    annotations: {},
                  }));
                  return { containers, sandboxes: [], created: [] };
                },
                listImages: async () => {
                  asked.push('images');
                  return images;
                },
                removeContainer: async (id: string) => {
                  asked.push(`-${id}`);
                  return removed(1);
                },
                removeSandbox: async () => removed(0),
                removeImage: async ({ id }: ListedImage) => {
                  asked.push(`-${id}`);
                  images = images.filter((one) => one.id !== id);
                  return removed(4);
                },
                ...scene.reclaimer,
              },
            },
          }),
    },
    turns$,
    () => scene.former,
  ).subscribe((event) => events.push(event));
  const ends = () =>
    events.flatMap((event) =>
      event.kind === 'notice' && event.notice.kind === 'ended'
        ? [[event.purpose, event.notice.collected.because]]
        : [],
    );
  return { turns$, events, ends, asked, measured, looks, running };
}

function reading(path: string, available: number): FilesystemNotice {
  return {
    kind: 'read',
    reading: {
      path,
      atMs: Date.now(),
      capacityBytes: 100 * GI,
      availableBytes: available * GI,
      usedBytes: (100 - available) * GI,
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

const MINUTE_MS = COLLECT_EACH_MS;

describe('before a pod goes', () => {
  it('collects until threshold and minimum reclaim are regained, on the filesystem in question', async () => {
    const { turns$, ends, asked, measured } = play();
    turns$.next(under(RECLAIM, COLLECTING));
    await vi.advanceTimersByTimeAsync(COLLECTION_LIMIT_MS);
    // 15 % and 5 %: a container frees 1, three images 12. Under pressure no dead container but a protected one stays.
    expect(asked).toStrictEqual(['dead', '-c1', 'images', '-i1', '-i2', '-i3']);
    expect(ends()).toStrictEqual([['pressure', 'regained']]);
    expect(new Set(measured)).toStrictEqual(new Set(['/images']));
  });

  it('keeps a container that it or its pod wants kept, whatever the other says', async () => {
    const said = (value: string) => ({ labels: { 'evictd.protected': value }, annotations: {} });
    const one = (id: string, own: string, pod: string) => ({
      ...{ id, owner: id, endedAtMs: 0, name: id },
      ...said(own),
      pod: said(pod),
    });
    const containers = [
      one('own', 'true', 'false'),
      one('pods', 'false', 'true'),
      one('none', 'false', 'false'),
    ];
    const listDead = async () => ({ containers, sandboxes: [], created: [] });
    const { turns$, asked } = play({ images: [], reclaimer: { listDead } });
    turns$.next(under(RECLAIM, COLLECTING));
    await vi.advanceTimersByTimeAsync(COLLECTION_LIMIT_MS);
    expect(asked.filter((what) => what.startsWith('-'))).toStrictEqual(['-none']);
  });

  it('C26: tells of the images before any is removed, and who uses them', async () => {
    const used = { ...image('i1'), usedBy: ['c1'] };
    const { turns$, looks, asked } = play({ images: [used, image('i2')] });
    turns$.next(under(RECLAIM, COLLECTING));
    await vi.advanceTimersByTimeAsync(COLLECTION_LIMIT_MS);
    expect(asked).toContain('-i2');
    expect(looks).toHaveLength(1);
    expect(looks[0]?.images).toStrictEqual([used, image('i2')]);
    expect(looks[0]?.memory.get('i1')?.lastUsedAtMs).toBe(looks[0]?.atMs);
  });

  it('by the kubelet’s rules collects all that may go', async () => {
    const { turns$, ends, asked } = play();
    turns$.next({ ...RECLAIM, policy: policy({ rules: RULE_SETS.kubelet }) });
    await vi.advanceTimersByTimeAsync(COLLECTION_LIMIT_MS);
    expect(asked.filter((one) => one.startsWith('-i'))).toHaveLength(4);
    expect(ends()).toStrictEqual([['pressure', 'exhausted']]);
  });

  it('ends at once where there is nothing to collect with', () => {
    const { turns$, ends } = play({ reclaimer: 'none' });
    turns$.next(RECLAIM);
    expect(ends()).toStrictEqual([['pressure', 'away']]);
  });

  it('ends within its limit where the runtime hangs', async () => {
    const { turns$, ends } = play({ reclaimer: { listDead: () => new Promise(() => undefined) } });
    turns$.next(RECLAIM);
    await vi.advanceTimersByTimeAsync(COLLECTION_LIMIT_MS - 1);
    expect(ends()).toStrictEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(ends()).toStrictEqual([['pressure', 'limit']]);
  });

  it('keeps what is fresh, which needs a look that found nothing of it', async () => {
    const known = { firstSeenAtMs: Date.now(), lastUsedAtMs: undefined, wasThere: true };
    const { turns$, asked } = play({ former: new Map([['i2', known]]) });
    turns$.next(CALM);
    await vi.advanceTimersByTimeAsync(1000);
    turns$.next(RECLAIM);
    await vi.advanceTimersByTimeAsync(1000);
    expect(asked.filter((one) => one.startsWith('-i'))).toStrictEqual(['-i2']);
  });
});

describe('without pressure', () => {
  it('looks at the images at once, and tells only of others', async () => {
    const { turns$, events, asked } = play({ available: 50 });
    expect(asked).toStrictEqual([]);
    turns$.next(CALM);
    await vi.advanceTimersByTimeAsync(0);
    expect(asked).toStrictEqual(['images']);
    expect(events.map(({ kind }) => kind)).toStrictEqual(['images']);
    await vi.advanceTimersByTimeAsync(MINUTE_MS);
    expect(events.filter(({ kind }) => kind === 'images')).toHaveLength(1);
  });

  it('collects dead containers each minute, images each five by the marks', async () => {
    const { turns$, asked, ends, measured } = play({ available: 14 });
    turns$.next(CALM);
    await vi.advanceTimersByTimeAsync(MINUTE_MS + 10_000);
    // One of each owner stays; a protected one is nobody’s latest.
    expect(asked).toStrictEqual(['images', 'dead', 'images']);
    expect(ends()).toStrictEqual([['periodic', 'exhausted']]);
    await vi.advanceTimersByTimeAsync((IMAGES_EACH - 1) * MINUTE_MS);
    // 86 % are used: until 80 are.
    expect(asked.filter((one) => one.startsWith('-i'))).toStrictEqual(['-i1', '-i2']);
    expect(ends().at(-1)).toStrictEqual(['periodic', 'regained']);
    expect(new Set(measured)).toStrictEqual(new Set(['/images']));
    await vi.advanceTimersByTimeAsync(2 * IMAGES_EACH * MINUTE_MS);
    expect(asked.filter((one) => one.startsWith('-i'))).toStrictEqual(['-i1', '-i2']);
  });

  it.each<[string, FlagValues, readonly string[]]>([
    ['nothing that is off', { '--image-gc': ['off'], '--container-gc': ['off'] }, []],
    [
      'nothing that is for pressure, but looks',
      { '--image-gc': ['pressure'], '--container-gc': ['pressure'] },
      ['images', 'images'],
    ],
    ['containers alone', { '--image-gc': ['off'], '--container-gc': ['on'] }, ['dead']],
    [
      'containers by number and age',
      { '--image-gc': ['off'], '--container-gc-max-per-pod': ['0'] },
      ['dead', '-c1'],
    ],
  ])('collects %s', async (_, flags, expected) => {
    const { turns$, asked } = play({ flags, available: 90 });
    turns$.next(CALM);
    await vi.advanceTimersByTimeAsync(MINUTE_MS + 10_000);
    expect(asked).toStrictEqual(expected);
  });

  it('removes images that nobody has used for longer than is allowed', async () => {
    const { turns$, asked } = play({
      available: 90,
      flags: { '--image-maximum-gc-age': ['4m'], '--container-gc': ['off'] },
    });
    turns$.next(CALM);
    await vi.advanceTimersByTimeAsync(IMAGES_EACH * MINUTE_MS + 10_000);
    expect(asked.filter((one) => one.startsWith('-i'))).toHaveLength(4);
  });

  it.each<[string, Partial<State>]>([
    ['something is due', { due: [SHORT] }],
    ['a pod is in flight', { inFlight: { podId: '', podName: '', signal: undefined, hard: true } }],
    ['a collection runs', { reclaiming: cause() }],
  ])('waits while %s', async (_, state) => {
    const { turns$, asked } = play({ available: 10 });
    turns$.next(under(CALM, state));
    await vi.advanceTimersByTimeAsync(IMAGES_EACH * MINUTE_MS + 10_000);
    expect(asked).toStrictEqual([]);
    turns$.next(CALM);
    await vi.advanceTimersByTimeAsync(MINUTE_MS);
    expect(asked).not.toStrictEqual([]);
  });

  it('is given up for what pressure asks for', async () => {
    let resolve: (removal: Removal) => void = () => undefined;
    const { turns$, ends, asked } = play({
      available: 10,
      flags: { '--image-gc': ['off'], '--container-gc-max-per-pod': ['0'] },
      reclaimer: {
        removeContainer: (id) => {
          asked.push(`-${id}`);
          return new Promise((done) => {
            resolve = done;
          });
        },
      },
    });
    turns$.next(CALM);
    await vi.advanceTimersByTimeAsync(MINUTE_MS + 100);
    expect(asked).toStrictEqual(['dead', '-c1']);
    turns$.next(RECLAIM);
    await vi.advanceTimersByTimeAsync(100);
    expect(asked).toStrictEqual(['dead', '-c1', 'dead', '-c1']);
    resolve({ kind: 'gone' });
    await vi.advanceTimersByTimeAsync(5000);
    expect(ends()).toStrictEqual([['pressure', 'regained']]);
  });

  it('looks again where the runtime was away', async () => {
    let isAway = true;
    const { turns$, events } = play({
      available: 90,
      flags: { '--container-gc': ['off'] },
      reclaimer: {
        listImages: () =>
          isAway ? Promise.reject(new Error('away')) : Promise.resolve([image('i1')]),
      },
    });
    turns$.next(CALM);
    await vi.advanceTimersByTimeAsync(1000);
    expect(events).toStrictEqual([]);
    isAway = false;
    await vi.advanceTimersByTimeAsync(MINUTE_MS);
    expect(events.map(({ kind }) => kind)).toStrictEqual(['images']);
  });

  it('leaves no timer behind', async () => {
    const { turns$, running } = play({ available: 10 });
    turns$.next(CALM);
    turns$.next(RECLAIM);
    await vi.advanceTimersByTimeAsync(10);
    running.unsubscribe();
    await vi.advanceTimersByTimeAsync(1000);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('what the daemon makes of it', () => {
  const collected: Collected = {
    because: 'regained',
    removed: { container: 1, sandbox: 0, image: 0 },
    inUse: 0,
    failed: 0,
    wouldRemove: 0,
    first: undefined,
    last: undefined,
    tookMs: 1,
  };
  const ended = (purpose: 'pressure' | 'periodic', last?: FilesystemNotice): CollectionEvent => ({
    kind: 'notice',
    purpose,
    notice: {
      kind: 'ended',
      collected: { ...collected, last: last?.kind === 'read' ? last.reading : undefined },
    },
  });

  it('a measurement that is from the end is one of the turn that follows; an older one is not', () => {
    const last = reading('/images', 60);
    expect(collectedUnderPressure(ended('pressure', last), Date.now() + 500)).toStrictEqual({
      measured: last,
    });
    const none = { measured: undefined };
    expect(collectedUnderPressure(ended('pressure', last), Date.now() + 501)).toStrictEqual(none);
    expect(collectedUnderPressure(ended('pressure'), 0)).toStrictEqual(none);
    expect(collectedUnderPressure(ended('periodic', last), Date.now())).toBeUndefined();
    const notice = { kind: 'fault', detail: 'away' } as const;
    expect(
      collectedUnderPressure({ kind: 'notice', purpose: 'pressure', notice }, 0),
    ).toBeUndefined();
  });

  it('the model is told of ends and of images', () => {
    expect(collectionEvents(ended('periodic'), 7)).toStrictEqual([
      { kind: 'collected', purpose: 'periodic', collected, endedAtMs: 7 },
    ]);
    const images = { kind: 'images', images: new Map() } as const;
    expect(collectionEvents(images, 7)).toStrictEqual([images]);
    const notice = { kind: 'fault', detail: 'away' } as const;
    expect(collectionEvents({ kind: 'notice', purpose: 'pressure', notice }, 7)).toStrictEqual([]);
  });
});

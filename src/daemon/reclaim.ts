/** What nobody uses is removed: before a pod goes for a disk, and at intervals where that was asked for. */
import {
  catchError,
  concat,
  defer,
  EMPTY,
  exhaustMap,
  filter,
  from,
  ignoreElements,
  map,
  merge,
  mergeMap,
  Observable,
  of,
  type SchedulerLike,
  switchMap,
  take,
  takeUntil,
  timer,
  withLatestFrom,
} from 'rxjs';
import {
  COLLECTION_LIMIT_MS,
  type CollectionRequest,
  collect,
  type ReclaimDependencies,
  SETTLE_READING_MS,
} from '../actions/reclaim.ts';
import { labelledPod } from '../config/pod-labels.ts';
import type { GarbageSettings, Settings } from '../config/settings.ts';
import type { Decision } from '../core/decision.ts';
import {
  type ImageMarks,
  type ImageMemory,
  imagesSeen,
  type ListedImage,
  levelForMarks,
} from '../core/image-gc.ts';
import type { SignalObservation } from '../core/observation.ts';
import type { Turn } from '../core/pipeline.ts';
import type { Policy } from '../core/policy.ts';
import { SIGNALS } from '../core/signal.ts';
import { isMet } from '../core/threshold.ts';
import type { CollectionEvent, CollectionNotice, CollectionPurpose } from '../ports/collection.ts';
import type { FilesystemNotice, FilesystemReading } from '../ports/filesystem.ts';
import type { PodDirectory } from '../ports/pod-directory.ts';
import type { Reclaimer } from '../ports/reclaimer.ts';
import { diskObservations } from '../sources/disk.ts';
import { FILESYSTEM_DEADLINE_MS, filesystems } from '../sources/filesystem.ts';
import type { ModelEvent } from '../surfaces/status.ts';
import type { Wiring } from './wiring.ts';

/** How often dead containers are removed without pressure, and what images are there is looked at, ms. */
export const COLLECT_EACH_MS = 60_000;

/** Images are removed without pressure at one of so many of these instants. Source: kubelet `ImageGCPeriod`. */
export const IMAGES_EACH = 5;

/** How long a collection without pressure may take, ms. */
const PERIODIC_LIMIT_MS = 50_000;

/** What collections need of the daemon. */
export interface GarbageWiring extends Pick<Wiring, 'scheduler'> {
  readonly directory?: Pick<PodDirectory, 'reclaimer'> | undefined;
  readonly current: () => { readonly settings: Settings };
  /** Is told of each look at the images. */
  readonly noteImages?: ((look: ImageLook) => void) | undefined;
  /** Measures a filesystem, as {@link measured} does where it is left out. */
  readonly measure?: (path: string) => Observable<FilesystemNotice>;
}

/** What images there were, and what was remembered of them then. */
export interface ImageLook {
  readonly images: readonly ListedImage[];
  readonly memory: ImageMemory;
  /** Monotonic ms. */
  readonly atMs: number;
}

type ReclaimDecision = Extract<Decision, { kind: 'reclaim' }>;

/** What is known of images from one look to the next. */
export class ImageBook {
  #memory: ImageMemory | undefined;
  #key = '';
  readonly #scheduler: SchedulerLike;
  readonly #changed: (images: ImageMemory) => void;
  readonly #noteImages: GarbageWiring['noteImages'];

  constructor(
    scheduler: SchedulerLike,
    changed: (images: ImageMemory) => void,
    noteImages?: GarbageWiring['noteImages'],
  ) {
    this.#scheduler = scheduler;
    this.#changed = changed;
    this.#noteImages = noteImages;
  }

  /** Takes up what a former run knew. */
  restore(memory: ImageMemory | undefined): void {
    this.#memory ??= memory;
  }

  /** Takes in a look. Told on is only that other images are there, or used: when they were last used goes on. */
  see(images: readonly ListedImage[]): ImageMemory {
    const atMs = this.#scheduler.now();
    const memory = imagesSeen(this.#memory, images, atMs);
    this.#memory = memory;
    this.#noteImages?.({ images, memory, atMs });
    const key = JSON.stringify(images.map(({ id, usedBy }) => [id, usedBy.length > 0]).sort());
    if (key !== this.#key) this.#changed(memory);
    this.#key = key;
    return memory;
  }
}

/**
 * Carries out what the turns decide to collect, and what is due at intervals; a decision ends what runs without
 * pressure. Each decision has its `ended`, within {@link COLLECTION_LIMIT_MS}.
 *
 * Cold; holds the turns' subscription, one collection and a timer. Errors and completes as the turns do.
 *
 * @param formerImages what a former run knew of images, asked for after the first turn
 */
export function collections(
  wiring: GarbageWiring,
  turns$: Observable<Turn>,
  formerImages: () => ImageMemory | undefined,
): Observable<CollectionEvent> {
  return new Observable((subscriber) => {
    const book = new ImageBook(
      wiring.scheduler,
      (images) => subscriber.next({ kind: 'images', images }),
      wiring.noteImages,
    );
    const decisions$ = turns$.pipe(
      map(({ decision, policy }) => ({ decision, policy })),
      filter((one): one is Decided => one.decision.kind === 'reclaim'),
    );
    const pressure$ = decisions$.pipe(mergeMap((decided) => underPressure(wiring, book, decided)));
    const periodic$ = turns$.pipe(
      take(1),
      switchMap(() => {
        book.restore(formerImages());
        return timer(0, COLLECT_EACH_MS, wiring.scheduler);
      }),
      withLatestFrom(turns$),
      exhaustMap(([count, turn]) =>
        isBusy(turn) ? EMPTY : periodically(wiring, book, count).pipe(takeUntil(decisions$)),
      ),
    );
    subscriber.add(merge(pressure$, periodic$).subscribe(subscriber));
  });
}

interface Decided {
  readonly decision: ReclaimDecision;
  readonly policy: Policy;
}

/** Whether there is something to be done that does not wait. */
function isBusy({ state }: Turn): boolean {
  return state.due.length > 0 || state.inFlight !== undefined || state.reclaiming !== undefined;
}

function underPressure(
  wiring: GarbageWiring,
  book: ImageBook,
  { decision, policy }: Decided,
): Observable<CollectionEvent> {
  const { settings } = wiring.current();
  const { threshold } = decision.cause;
  const { signal } = threshold;
  const { filesystem } = SIGNALS[signal];
  const path = filesystem === undefined ? undefined : settings.filesystems[filesystem];
  const observed = (reading: FilesystemReading): SignalObservation | undefined =>
    filesystem && diskObservations(filesystem, reading).find((one) => one.signal === signal);
  const { containerPolicy, imageMinimumAgeMs } = settings.garbage;
  const request: CollectionRequest = {
    functions: decision.functions,
    containers: { minimumAgeMs: containerPolicy.minimumAgeMs, mostPerOwner: 0 },
    images: { minimumAgeMs: imageMinimumAgeMs, maximumAgeMs: 0, endsFruitless: false },
    isEnough:
      policy.rules.imageOrder === 'kubelet'
        ? undefined
        : (reading) => {
            const observation = observed(reading);
            return observation !== undefined && !isMet(threshold, observation, true);
          },
    availableIn: (reading) => observed(reading)?.available ?? 0,
    limitMs: COLLECTION_LIMIT_MS,
  };
  return carriedOut(wiring, book, 'pressure', path, request);
}

/** Dead containers at each instant, images at some; at the others a look at them, so that ages are known. */
function periodically(
  wiring: GarbageWiring,
  book: ImageBook,
  count: number,
): Observable<CollectionEvent> {
  const { settings } = wiring.current();
  const { garbage } = settings;
  const isDue = count > 0;
  const collectsImages = garbage.images === 'on' && isDue && count % IMAGES_EACH === 0;
  return concat(
    garbage.containers === 'on' && isDue
      ? defer(() =>
          carriedOut(wiring, book, 'periodic', containersPath(settings), containersOf(garbage)),
        )
      : EMPTY,
    collectsImages
      ? defer(() => carriedOut(wiring, book, 'periodic', imagesPath(settings), imagesOf(garbage)))
      : EMPTY,
    garbage.images !== 'off' && !collectsImages ? look(wiring, book) : EMPTY,
  );
}

function look({ directory }: GarbageWiring, book: ImageBook): Observable<never> {
  const reclaimer = directory?.reclaimer;
  if (reclaimer === undefined) return EMPTY;
  return defer(() => from(reclaimer.listImages())).pipe(
    map((images) => book.see(images)),
    ignoreElements(),
    // That the runtime is away is said by whoever lists its pods; the next look comes soon.
    catchError(() => EMPTY),
  );
}

/** Where the images lie. */
function imagesPath({ filesystems: paths }: Settings): string | undefined {
  return paths.imagefs ?? paths.nodefs;
}

function containersPath(settings: Settings): string | undefined {
  return settings.filesystems.containerfs ?? imagesPath(settings);
}

/** Dead containers by age and number. */
export function containersOf({ containerPolicy }: GarbageSettings): CollectionRequest {
  return {
    functions: ['containers'],
    containers: containerPolicy,
    images: { minimumAgeMs: 0, maximumAgeMs: 0, endsFruitless: false },
    isEnough: undefined,
    availableIn: ({ availableBytes }) => availableBytes,
    limitMs: PERIODIC_LIMIT_MS,
  };
}

/** Images by their age, and by the marks. */
export function imagesOf(garbage: GarbageSettings): CollectionRequest {
  const { containerPolicy, marks, imageMinimumAgeMs, imageMaximumAgeMs } = garbage;
  return {
    functions: ['images'],
    containers: containerPolicy,
    images: {
      minimumAgeMs: imageMinimumAgeMs,
      maximumAgeMs: imageMaximumAgeMs,
      endsFruitless: true,
    },
    isEnough: untilLowMark(marks),
    availableIn: ({ availableBytes }) => availableBytes,
    limitMs: PERIODIC_LIMIT_MS,
  };
}

/** Once the high mark was reached, the low one counts. */
function untilLowMark(marks: ImageMarks): (reading: FilesystemReading) => boolean {
  let levelBytes: number | undefined;
  return ({ capacityBytes: capacity, availableBytes: available }) => {
    levelBytes ??= levelForMarks({ capacity, available }, marks);
    return levelBytes === undefined || available >= levelBytes;
  };
}

/** A collection; one that cannot be begun has ended. */
function carriedOut(
  wiring: GarbageWiring,
  book: ImageBook,
  purpose: CollectionPurpose,
  path: string | undefined,
  request: CollectionRequest,
): Observable<CollectionEvent> {
  const { directory, current } = wiring;
  const reclaimer = directory?.reclaimer;
  const notices$ =
    reclaimer === undefined || path === undefined
      ? of(NOT_BEGUN)
      : collect(request, dependenciesOf(wiring, reclaimer, book, path, current().settings.dryRun));
  return notices$.pipe(map((notice) => ({ kind: 'notice', purpose, notice })));
}

/** What the model makes of what is told of collections. */
export function collectionEvents(event: CollectionEvent, nowMs: number): readonly ModelEvent[] {
  if (event.kind === 'images') return [event];
  const { purpose, notice } = event;
  if (notice.kind !== 'ended') return [];
  return [{ kind: 'collected', purpose, collected: notice.collected, endedAtMs: nowMs }];
}

/** So old may be what was measured last for it to be from the collection's end, ms: the next reading decides else. */
const MEASURED_AT_END_MS = 500;

/** That what was decided on has ended, and what was measured at its end; undefined for all else. */
export function collectedUnderPressure(
  event: CollectionEvent,
  nowMs: number,
): { readonly measured: FilesystemNotice | undefined } | undefined {
  if (event.kind !== 'notice' || event.purpose !== 'pressure') return undefined;
  if (event.notice.kind !== 'ended') return undefined;
  const { last } = event.notice.collected;
  const isOld = last === undefined || nowMs - last.atMs > MEASURED_AT_END_MS;
  return { measured: isOld ? undefined : { kind: 'read', reading: last } };
}

const NOT_BEGUN: CollectionNotice = {
  kind: 'ended',
  collected: {
    because: 'away',
    removed: { container: 0, sandbox: 0, image: 0 },
    inUse: 0,
    failed: 0,
    wouldRemove: 0,
    first: undefined,
    last: undefined,
    tookMs: 0,
  },
};

/** What a collection is done with. */
export function dependenciesOf(
  { scheduler, measure }: Pick<GarbageWiring, 'scheduler' | 'measure'>,
  reclaimer: Reclaimer,
  book: ImageBook,
  path: string,
  dryRun: boolean,
): ReclaimDependencies {
  return {
    reclaimer,
    scheduler,
    dryRun,
    measure$: measure?.(path) ?? measured(path, scheduler),
    sparedBecause: (dead) => {
      const told = 'pod' in dead && dead.pod !== undefined ? [dead, dead.pod] : [dead];
      const isProtected = told.some((one) => labelledPod(one.labels, one.annotations).protected);
      return isProtected ? 'protected' : undefined;
    },
    seeImages: (images) => book.see(images),
    wallClock: () => Date.now(),
  };
}

/** By a helper process of its own, which ends with the subscription: the first reading is none from before. */
export function measured(path: string, scheduler: SchedulerLike): Observable<FilesystemNotice> {
  return filesystems({
    paths: [path],
    scheduler,
    deadlineMs: FILESYSTEM_DEADLINE_MS,
    pollAfterMs: () => SETTLE_READING_MS,
  });
}

/** A collection: what nobody uses is removed, and what that frees is measured. */
import { filter, firstValueFrom, Observable, type SchedulerLike, scan } from 'rxjs';
import {
  type ContainerGcPolicy,
  type DeadVerdicts,
  judgeContainers,
  judgeSandboxes,
} from '../core/container-gc.ts';
import {
  type ImageMemory,
  imageKept,
  imageObservation,
  type ListedImage,
  outdatedImages,
  unusedImages,
} from '../core/image-gc.ts';
import type { ReclaimFunction } from '../core/reclaim.ts';
import type {
  Collected,
  CollectedKind,
  CollectionEnd,
  CollectionNotice,
  NamedThing,
} from '../ports/collection.ts';
import type { FilesystemNotice, FilesystemReading } from '../ports/filesystem.ts';
import type {
  Reclaimer,
  Removal,
  RuntimeDeadContainer,
  RuntimeDeadSandbox,
} from '../ports/reclaimer.ts';

/** How long a collection before an eviction may take, ms: a runtime that hangs holds up a full disk no longer. */
export const COLLECTION_LIMIT_MS = 30_000;

/** How far apart the readings are that tell whether space still comes back, ms. */
export const SETTLE_READING_MS = 50;

/**
 * How long the first space is awaited, ms: containerd collects the layers of a container about a second after it
 * was removed, those of an image at once.
 */
export const PATIENCE_MS = { containers: 2000, images: 1000 } as const;

/** How long is waited in all for space that does not come, ms: layers may be shared. */
export const WAITING_LIMIT_MS = 5000;

/** How long space may go on to come back after one removal, ms. */
export const SETTLE_LIMIT_MS = 3000;

/** So many images in a row that free nothing end a collection that no pressure asked for. */
export const FRUITLESS_LIMIT = 5;

/** What is to be collected, and until when. */
export interface CollectionRequest {
  /** In this order. */
  readonly functions: readonly ReclaimFunction[];
  readonly containers: ContainerGcPolicy;
  readonly images: {
    /** One that was first seen less long ago stays, ms. */
    readonly minimumAgeMs: number;
    /** One that nobody has used for so long goes, whatever is available, ms; 0 for none. */
    readonly maximumAgeMs: number;
    /** Whether a few in a row that free nothing are reason to give up. */
    readonly endsFruitless: boolean;
  };
  /** Whether enough is available; undefined where all that may go does. */
  readonly isEnough: ((reading: FilesystemReading) => boolean) | undefined;
  /** What is available of what is short: it tells whether space still comes back. */
  readonly availableIn: (reading: FilesystemReading) => number;
  readonly limitMs: number;
}

export interface ReclaimDependencies {
  readonly reclaimer: Reclaimer;
  readonly scheduler: SchedulerLike;
  /** Says what would be removed, and removes nothing. */
  readonly dryRun: boolean;
  /** Measures the filesystem in question: at the subscription, then each {@link SETTLE_READING_MS}. Cold. */
  readonly measure$: Observable<FilesystemNotice>;
  /** Why somebody wants a container or sandbox kept; undefined where nobody does. */
  readonly sparedBecause: (dead: RuntimeDeadContainer | RuntimeDeadSandbox) => string | undefined;
  /** Takes in what was listed, and tells what is remembered of it. */
  readonly seeImages: (images: readonly ListedImage[]) => ImageMemory;
  /** ms since 1970: runtimes tell times of day. */
  readonly wallClock: () => number;
}

/**
 * Removes what may go, one after the other, until enough is regained by what is measured; sizes that the runtime
 * reports are never added up. What is in use after all is passed over. Nothing is removed after the limit, nor
 * after the subscription's end, but for what the runtime is at.
 *
 * Cold. Completes after `ended`, in any case within the limit; never errors.
 */
export function collect(
  request: CollectionRequest,
  dependencies: ReclaimDependencies,
): Observable<CollectionNotice> {
  return new Observable((subscriber) => {
    const collection = new Collection(request, dependencies, (notice) => subscriber.next(notice));
    const end = (because: CollectionEnd): void => {
      subscriber.next({ kind: 'ended', collected: collection.close(because) });
      subscriber.complete();
    };
    subscriber.add(() => collection.close('limit'));
    subscriber.add(dependencies.scheduler.schedule(() => end('limit'), request.limitMs));
    collection.run().then(end, (error: unknown) => {
      subscriber.next(faultOf(error));
      end('away');
    });
  });
}

/** Where a removal leaves the collection. */
type Step = 'goes on' | CollectionEnd;

class Collection {
  readonly #request: CollectionRequest;
  readonly #dependencies: ReclaimDependencies;
  readonly #tell: (notice: CollectionNotice) => void;
  readonly #startedAtMs: number;
  readonly #removed: Record<CollectedKind, number> = { container: 0, sandbox: 0, image: 0 };
  #inUse = 0;
  #failed = 0;
  #wouldRemove = 0;
  #first: FilesystemReading | undefined;
  #last: FilesystemReading | undefined;
  #isClosed = false;
  #waitedMs = 0;

  constructor(
    request: CollectionRequest,
    dependencies: ReclaimDependencies,
    tell: (notice: CollectionNotice) => void,
  ) {
    this.#request = request;
    this.#dependencies = dependencies;
    this.#tell = tell;
    this.#startedAtMs = dependencies.scheduler.now();
  }

  /** Nothing is begun any more. */
  close(because: CollectionEnd): Collected {
    this.#isClosed = true;
    return {
      because,
      removed: { ...this.#removed },
      inUse: this.#inUse,
      failed: this.#failed,
      wouldRemove: this.#wouldRemove,
      first: this.#first,
      last: this.#last,
      tookMs: this.#dependencies.scheduler.now() - this.#startedAtMs,
    };
  }

  async run(): Promise<CollectionEnd> {
    if (!(await this.#settle(0))) return 'unmeasured';
    this.#first = this.#last;
    for (const what of this.#request.functions) {
      const step = what === 'containers' ? await this.#containers() : await this.#images();
      if (step !== 'goes on') return step;
    }
    return this.#isEnough() ? 'regained' : 'exhausted';
  }

  #isEnough(): boolean {
    const { isEnough } = this.#request;
    return isEnough !== undefined && this.#last !== undefined && isEnough(this.#last);
  }

  async #containers(): Promise<Step> {
    if (this.#isEnough()) return 'regained';
    const { reclaimer, wallClock } = this.#dependencies;
    const listing = await this.#listed(() => reclaimer.listDead());
    if (listing === undefined) return 'away';
    for (const { id, name } of listing.created) {
      this.#tell({ kind: 'kept', what: 'container', id, name, why: 'not started yet' });
    }
    const policy = this.#request.containers;
    const containers = this.#judge('container', listing.containers, (open) =>
      judgeContainers(open, policy, wallClock()),
    );
    const left = new Set(listing.containers.map(({ id }) => id));
    for (const dead of containers) {
      const removal = await this.#remove('container', dead, () =>
        reclaimer.removeContainer(dead.id),
      );
      if (removal === 'stop') return 'away';
      if (removal === 'removed') left.delete(dead.id);
    }
    const sandboxes = this.#judge('sandbox', listing.sandboxes, (open) =>
      judgeSandboxes(open, policy, wallClock(), (id) => left.has(id)),
    );
    for (const dead of sandboxes) {
      const removal = await this.#remove('sandbox', dead, () => reclaimer.removeSandbox(dead.id));
      if (removal === 'stop') return 'away';
    }
    const { container, sandbox } = this.#removed;
    if (container + sandbox === 0) return 'goes on';
    return (await this.#settle(PATIENCE_MS.containers)) ? 'goes on' : 'unmeasured';
  }

  /** Those that may go, and a word about each that stays. */
  #judge<Dead extends RuntimeDeadContainer>(
    what: CollectedKind,
    listed: readonly Dead[],
    judge: (open: readonly Dead[]) => DeadVerdicts<Dead>,
  ): readonly Dead[] {
    const { sparedBecause } = this.#dependencies;
    const open: Dead[] = [];
    for (const dead of listed) {
      const why = sparedBecause(dead);
      if (why === undefined) open.push(dead);
      else this.#tell({ kind: 'kept', what, id: dead.id, name: dead.name, why });
    }
    const { taken, kept } = judge(open);
    for (const { dead, why } of kept) {
      this.#tell({ kind: 'kept', what, id: dead.id, name: dead.name, why });
    }
    return taken;
  }

  async #images(): Promise<Step> {
    const { minimumAgeMs, maximumAgeMs, endsFruitless } = this.#request.images;
    if (maximumAgeMs === 0 && this.#isEnough()) return 'regained';
    const { reclaimer, scheduler, seeImages } = this.#dependencies;
    const listed = await this.#listed(() => reclaimer.listImages());
    if (listed === undefined) return 'away';
    const nowMs = scheduler.now();
    const memory = seeImages(listed);
    const byId = new Map(listed.map((image) => [image.id, image]));
    const observed = listed.map((image) => imageObservation(image, memory, nowMs));
    for (const image of observed) this.#tellKept(image, byId, nowMs);
    const unused = unusedImages(observed, minimumAgeMs, nowMs);
    const outdated = new Set(outdatedImages(unused, maximumAgeMs, nowMs));
    let fruitless = 0;
    for (const one of unused) {
      // The outdated ones come first.
      if (!outdated.has(one) && this.#isEnough()) return 'regained';
      const image = byId.get(one.id);
      if (image === undefined) continue;
      const before = this.#available();
      const removal = await this.#remove('image', { id: image.id, name: nameOf(image) }, () =>
        reclaimer.removeImage(image),
      );
      if (removal === 'stop') return 'away';
      if (removal !== 'removed' || this.#dependencies.dryRun) continue;
      if (!(await this.#settle(PATIENCE_MS.images))) return 'unmeasured';
      fruitless = this.#available() > before ? 0 : fruitless + 1;
      if (endsFruitless && fruitless === FRUITLESS_LIMIT) return 'fruitless';
    }
    return 'goes on';
  }

  #tellKept(
    image: ReturnType<typeof imageObservation>,
    byId: ReadonlyMap<string, ListedImage>,
    nowMs: number,
  ): void {
    const why = imageKept(image, this.#request.images.minimumAgeMs, nowMs);
    const listed = byId.get(image.id);
    if (why === undefined || listed === undefined) return;
    this.#tell({
      kind: 'kept',
      what: 'image',
      id: image.id,
      name: nameOf(listed),
      why: why === 'pinned' ? (listed.pinned ?? why) : why,
    });
  }

  async #listed<T>(list: () => Promise<T>): Promise<T | undefined> {
    try {
      return await list();
    } catch (error) {
      this.#tell(faultOf(error));
      return undefined;
    }
  }

  /** `stop` where nothing more is to be asked of the runtime. */
  async #remove(
    what: CollectedKind,
    { id, name }: { readonly id: string; readonly name: string },
    remove: () => Promise<Removal>,
  ): Promise<'removed' | 'stays' | 'stop'> {
    if (this.#isClosed) return 'stop';
    const named: NamedThing = { what, id, name };
    if (this.#dependencies.dryRun) {
      this.#wouldRemove += 1;
      this.#tell({ ...named, kind: 'wouldRemove' });
      return 'removed';
    }
    const removal = await remove();
    if (this.#isClosed) return 'stop';
    switch (removal.kind) {
      case 'removed':
        this.#removed[what] += 1;
        this.#tell({ ...named, kind: 'removed' });
        return 'removed';
      case 'gone':
        this.#tell({ ...named, kind: 'gone' });
        return 'removed';
      case 'inUse':
        this.#inUse += 1;
        this.#tell({ ...named, kind: 'inUse', detail: removal.detail });
        return 'stays';
      case 'failed':
        this.#failed += 1;
        this.#tell({ ...named, kind: 'failed', detail: removal.detail });
        return removal.isAway ? 'stop' : 'stays';
    }
  }

  /** Infinite before the first reading: that is no rise. */
  #available(): number {
    return this.#last === undefined
      ? Number.POSITIVE_INFINITY
      : this.#request.availableIn(this.#last);
  }

  /**
   * Measures until nothing more comes back, or enough is there; the first space is awaited for as long as
   * `patienceMs`, and in all no longer than {@link WAITING_LIMIT_MS}.
   *
   * @returns whether it could be measured
   */
  async #settle(patienceMs: number): Promise<boolean> {
    const { scheduler, measure$ } = this.#dependencies;
    const startedAtMs = scheduler.now();
    const untilMs = startedAtMs + Math.min(patienceMs, WAITING_LIMIT_MS - this.#waitedMs);
    const limitMs = startedAtMs + SETTLE_LIMIT_MS;
    const settled$ = measure$.pipe(
      scan(
        (settling: Settling, notice): Settling => {
          if (notice.kind === 'failed') return { ...settling, kind: 'failed' };
          this.#last = notice.reading;
          const available = this.#available();
          const rises = available > settling.available;
          const hasRisen = settling.hasRisen || rises;
          const nowMs = scheduler.now();
          const waits = hasRisen ? rises && nowMs < limitMs : nowMs < untilMs;
          const kind = waits && !this.#isEnough() && !this.#isClosed ? 'waits' : 'done';
          return { kind, available, hasRisen };
        },
        { kind: 'waits', available: this.#available(), hasRisen: false },
      ),
      filter(({ kind }) => kind !== 'waits'),
    );
    const { kind, hasRisen } = await firstValueFrom(settled$, { defaultValue: UNSETTLED });
    if (!hasRisen) this.#waitedMs += scheduler.now() - startedAtMs;
    return kind === 'done';
  }
}

function faultOf(error: unknown): CollectionNotice {
  return { kind: 'fault', detail: error instanceof Error ? error.message : String(error) };
}

/** What is never measured. */
const UNSETTLED: Settling = { kind: 'failed', available: 0, hasRisen: false };

interface Settling {
  readonly kind: 'waits' | 'done' | 'failed';
  readonly available: number;
  readonly hasRisen: boolean;
}

/** What people know an image by. */
function nameOf({ id, names: [first = id] }: ListedImage): string {
  return first;
}

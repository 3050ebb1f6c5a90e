import {
  concat,
  defer,
  EMPTY,
  exhaustMap,
  filter,
  ignoreElements,
  Observable,
  of,
  repeat,
  type Subscriber,
  tap,
} from 'rxjs';
import { type Arming, approachLevel, armingFor, inCounter, needsRearming } from '../core/memcg.ts';
import { type Threshold, thresholdId, thresholdLevel } from '../core/threshold.ts';
import type { MemcgEvent, MemcgWatch, NativeAddon } from '../native/types.ts';
import type { NotificationPath } from '../ports/notification.ts';
import type { MemoryReading } from '../ports/readings.ts';

/** What the source says: what the kernel told, or that a threshold is followed otherwise now. */
export type MemcgNotice =
  /** It is time to read. `events` is how many of the kernel's came as one; 0 when armed anew. */
  | { readonly kind: 'wakeup'; readonly events: number }
  /** Usage passed the level at which a hard threshold may soon be crossed. */
  | { readonly kind: 'approach'; readonly events: number }
  | { readonly kind: 'path'; readonly path: NotificationPath };

export interface MemcgInputs {
  readonly native: Pick<NativeAddon, 'watchMemcg'>;
  /** The node's cgroup directory. */
  readonly directory: string;
  /** The memory thresholds. */
  readonly thresholds: readonly Threshold[];
  /** Every reading of the node: arming follows capacity and inactive file. */
  readonly readings$: Observable<MemoryReading>;
}

/**
 * Kernel wake-ups for memory thresholds (cgroup v1). Each threshold is armed at a ladder of usage
 * levels, and armed anew when the levels drift: new first, then a wake-up so that usage is read,
 * then the old is closed; no crossing in between is lost. The kernel takes milliseconds over a
 * level, on libuv's pool: levels are registered one after the other, and readings go on meanwhile.
 * A hard threshold has one level more, below the others, whose event is an `approach`.
 *
 * Cold. A wake-up says "read now", no more. Emits a path for each threshold at first and when it
 * changes; what the kernel refuses is a path that is `degraded`, tried again when the levels
 * drift. Errors and completes with `readings$`. Holds up to six eventfds a threshold, and twice as
 * many while it is armed anew.
 */
export function memcgThresholds(inputs: MemcgInputs): Observable<MemcgNotice> {
  return new Observable((subscriber) => {
    const ladders = inputs.thresholds.map((threshold) => new Ladder(inputs, threshold, subscriber));
    subscriber.add(() => {
      for (const ladder of ladders) ladder.close();
    });
    let latest: MemoryReading | undefined;
    let followed: MemoryReading | undefined;
    const follow = (reading: MemoryReading): Observable<never> => {
      followed = reading;
      return concat(...ladders.map((ladder) => defer(() => ladder.follow(reading))));
    };
    const armed$ = inputs.readings$.pipe(
      tap((reading) => {
        latest = reading;
      }),
      // Most change nothing, and are to cost nothing.
      filter((reading) => ladders.some((ladder) => ladder.rearming(reading) !== undefined)),
      exhaustMap((reading) =>
        defer(() => follow(latest ?? reading)).pipe(
          // What was read while a ladder was armed, its own wake-up's reading too, may have drifted.
          repeat({ delay: () => (followed === latest ? EMPTY : of('again')) }),
        ),
      ),
    );
    subscriber.add(
      armed$.subscribe({
        error: (error: unknown) => subscriber.error(error),
        complete: () => subscriber.complete(),
      }),
    );
  });
}

/** What is to be armed, in bytes of the cgroup's counter, and for which level. */
interface Rearming {
  readonly arming: Arming;
  readonly thresholdBytes: number;
}

/** The eventfds of one threshold. */
class Ladder {
  readonly #inputs: MemcgInputs;
  readonly #threshold: Threshold;
  readonly #notices: Subscriber<MemcgNotice>;
  #arming: Arming | undefined;
  #cgroupId = '';
  #watches: MemcgWatch[] = [];
  #closed = false;

  constructor(inputs: MemcgInputs, threshold: Threshold, notices: Subscriber<MemcgNotice>) {
    this.#inputs = inputs;
    this.#threshold = threshold;
    this.#notices = notices;
  }

  /** What the reading asks to be armed anew; undefined where all may stay. */
  rearming(reading: MemoryReading): Rearming | undefined {
    const thresholdBytes = thresholdLevel(this.#threshold, reading.capacityBytes, false);
    const { capacityBytes, deductedBytes, uncountedBytes } = reading;
    const before = this.#arming?.kind;
    const arming = inCounter(
      armingFor(capacityBytes, thresholdBytes, deductedBytes, before),
      uncountedBytes,
    );
    const isArmed =
      this.#arming !== undefined &&
      reading.cgroupId === this.#cgroupId &&
      !needsRearming(this.#arming, arming, thresholdBytes);
    return isArmed ? undefined : { arming, thresholdBytes };
  }

  /** Arms anew where the reading asks for it; completes when that is done. */
  follow(reading: MemoryReading): Observable<never> {
    const wanted = this.rearming(reading);
    if (wanted === undefined) return EMPTY;
    this.#arming = wanted.arming;
    this.#cgroupId = reading.cgroupId;
    return defer(() => this.#arm(wanted)).pipe(ignoreElements());
  }

  close(): void {
    this.#closed = true;
    for (const watch of this.#watches.splice(0)) watch.close();
  }

  async #arm({ arming, thresholdBytes }: Rearming): Promise<void> {
    const old = this.#watches.length;
    const errors: string[] = [];
    for (const event of eventsOf(arming)) {
      if (!this.#closed) await this.#register(event, 'wakeup', errors);
    }
    const isLive = this.#watches.length > old || arming.kind === 'alwaysMet';
    const approach = isLive && this.#isHard() ? approachLevel(arming, thresholdBytes) : undefined;
    if (approach !== undefined && !this.#closed) {
      await this.#register({ kind: 'usage', bytes: BigInt(approach) }, 'approach', errors);
    }
    if (this.#closed) return;
    this.#notices.next({
      kind: 'path',
      path: {
        threshold: thresholdId(this.#threshold),
        arming: isLive ? arming : undefined,
        degraded: errors[0],
      },
    });
    this.#notices.next({ kind: 'wakeup', events: 0 });
    for (const watch of this.#watches.splice(0, old)) watch.close();
  }

  async #register(event: MemcgEvent, kind: 'wakeup' | 'approach', errors: string[]): Promise<void> {
    let watch: MemcgWatch | undefined;
    try {
      watch = this.#inputs.native.watchMemcg(this.#inputs.directory, event, (count) =>
        this.#notices.next({ kind, events: Number(count) }),
      );
      this.#watches.push(watch);
      await watch.armed;
    } catch (error) {
      errors.push(error instanceof Error ? error.message : String(error));
      if (watch === undefined) return;
      watch.close();
      this.#watches = this.#watches.filter((other) => other !== watch);
    }
  }

  /** Only a hard eviction is a race. */
  #isHard(): boolean {
    return this.#threshold.gracePeriodMs === 0;
  }
}

function eventsOf(arming: Arming): readonly MemcgEvent[] {
  if (arming.kind === 'alwaysMet') return [];
  const levels = arming.levels.map(
    (level): MemcgEvent => ({ kind: 'usage', bytes: BigInt(level) }),
  );
  return arming.kind === 'followed' ? [...levels, { kind: 'pressure', level: 'low' }] : levels;
}

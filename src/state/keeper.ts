import { Observable, type SchedulerLike, type Subscription } from 'rxjs';
import { beforeAnything, changeOf, type Kept, refreshMs } from '../core/persistence.ts';
import type { Snapshot } from '../core/snapshot.ts';
import type { StateStore } from '../ports/state-store.ts';

/** How soon after a change it is written, ms, and how long after the start of the writing before. */
const PACES = {
  eviction: { delayMs: 10, gapMs: 100 },
  threshold: { delayMs: 100, gapMs: 1000 },
} as const;

/** How long after a writing that failed the next one is tried, ms. */
export const TRY_AGAIN_MS = 5000;

/** How long a writing may take before it is said that it hangs, ms; no other is begun meanwhile. */
export const WRITE_LIMIT_MS = 5000;

/** What a writing itself may take of the time in which what is observed is not yet kept, ms. */
export const WRITE_SLACK_MS = 500;

/** How a writing ended, or that it does not. */
export type KeepingNotice =
  | { readonly kind: 'written'; readonly atMs: number }
  | { readonly kind: 'failed'; readonly reason: string };

export interface KeeperInputs {
  readonly store: StateStore;
  /** What there is to write, as it stands. */
  readonly snapshot: (kept: Kept, unsavedMs: number) => Snapshot;
  readonly transitionPeriodMs: () => number;
  /** Whether something could not be written before: it is tried again. */
  readonly hasFailed?: boolean;
  readonly scheduler: SchedulerLike;
}

/**
 * Keeps what outlives a restart: writes after a change, never because nothing happened, one writing at a
 * time; what the first value has of a former run is written already. An eviction is written 10 ms after
 * its decision, ten times a second at most; a threshold's change after 100 ms, once a second at most; what
 * only goes on as `refreshMs` says. What failed is tried again each 5 s.
 *
 * Emits how each writing ended. Errors as the source does, completes never. Holds the source's
 * subscription and two timers; a writing that has begun is not taken back by unsubscribing.
 *
 * Nothing is written on the way from an event to a kill: a change only sets a timer, and a timer does not
 * come in the middle of a turn, which ends with the first signal.
 *
 * @example model$.pipe(keepState({ store, snapshot, transitionPeriodMs, scheduler }))
 * @see auditTime, which has one pace
 */
export function keepState(
  inputs: KeeperInputs,
): (source: Observable<Kept>) => Observable<KeepingNotice> {
  return (source) =>
    new Observable<KeepingNotice>((subscriber) => {
      const keeper = new Keeper(inputs, (notice) => subscriber.next(notice));
      subscriber.add(() => keeper.stop());
      subscriber.add(
        source.subscribe({
          next: (kept) => keeper.take(kept),
          error: (error: unknown) => subscriber.error(error),
        }),
      );
    });
}

class Keeper {
  readonly #inputs: KeeperInputs;
  readonly #tell: (notice: KeepingNotice) => void;
  #kept: Kept | undefined;
  /** What was last handed over to be written. */
  #written: Kept | undefined;
  #startedAtMs = Number.NEGATIVE_INFINITY;
  #failed: boolean;
  #isWriting = false;
  #isStopped = false;
  #timer: { readonly atMs: number; readonly running: Subscription } | undefined;
  #limit: Subscription | undefined;

  constructor(inputs: KeeperInputs, tell: (notice: KeepingNotice) => void) {
    this.#inputs = inputs;
    this.#tell = tell;
    this.#failed = inputs.hasFailed ?? false;
    if (this.#failed) this.#startedAtMs = inputs.scheduler.now();
  }

  take(kept: Kept): void {
    this.#kept = kept;
    this.#written ??= beforeAnything(kept);
    this.#plan();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.running.unsubscribe();
    this.#limit?.unsubscribe();
  }

  /** Sets the timer, or brings it forward. */
  #plan(): void {
    if (this.#isWriting || this.#isStopped) return;
    const atMs = this.#dueAtMs();
    if (atMs === undefined || (this.#timer !== undefined && this.#timer.atMs <= atMs)) return;
    this.#timer?.running.unsubscribe();
    const { scheduler } = this.#inputs;
    const running = scheduler.schedule(() => this.#write(), Math.max(0, atMs - scheduler.now()));
    this.#timer = { atMs, running };
  }

  #dueAtMs(): number | undefined {
    const kept = this.#kept;
    if (kept === undefined || this.#written === undefined) return undefined;
    if (this.#failed) return this.#startedAtMs + TRY_AGAIN_MS;
    const change = changeOf(this.#written, kept);
    if (change === 'none') {
      const goesOnMs = refreshMs(kept.state, this.#inputs.transitionPeriodMs());
      return goesOnMs === undefined ? undefined : this.#startedAtMs + goesOnMs;
    }
    const { delayMs, gapMs } = PACES[change];
    return Math.max(this.#inputs.scheduler.now() + delayMs, this.#startedAtMs + gapMs);
  }

  #write(): void {
    this.#timer = undefined;
    const kept = this.#kept;
    // What has changed may have changed back.
    if (kept === undefined || this.#dueAtMs() === undefined) return;
    const { store, snapshot, scheduler, transitionPeriodMs } = this.#inputs;
    this.#isWriting = true;
    this.#written = kept;
    this.#startedAtMs = scheduler.now();
    this.#limit = scheduler.schedule(
      () => this.#tell({ kind: 'failed', reason: `no answer within ${WRITE_LIMIT_MS} ms` }),
      WRITE_LIMIT_MS,
    );
    const goesOnMs = refreshMs(kept.state, transitionPeriodMs()) ?? 0;
    store.write(snapshot(kept, goesOnMs + WRITE_SLACK_MS)).then(
      () => this.#end({ kind: 'written', atMs: scheduler.now() }),
      (error: Error) => this.#end({ kind: 'failed', reason: error.message }),
    );
  }

  #end(notice: KeepingNotice): void {
    this.#limit?.unsubscribe();
    this.#isWriting = false;
    this.#failed = notice.kind === 'failed';
    if (this.#isStopped) return;
    this.#tell(notice);
    this.#plan();
  }
}

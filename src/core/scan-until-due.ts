import { Observable, type SchedulerLike, Subscription } from 'rxjs';

/** Fed back when the instant that the last result named has come. */
export const DUE = Symbol('due');
export type Due = typeof DUE;

/** Longest single timer, ms: Node fires those over 2^31 − 1 ms at once. */
export const LONGEST_TIMER_MS = 3_600_000;

/**
 * How many inputs are taken in one turn of the event loop. Each may feed the next (an eviction that
 * is refused at once is an input), and signals and wake-ups want to be heard in between.
 */
export const TURN_LIMIT = 16;

/** How many inputs may wait while one is taken; more than that is a loop. */
export const BACKLOG_LIMIT = 10_000;

/**
 * `scan` for a reducer that may ask to be called again at an instant.
 *
 * Each input is reduced to a result, which is emitted. When `dueAtMs(result)` names an instant
 * on the scheduler's clock, the reducer is called with {@link DUE} at that instant, not before,
 * unless a newer result has named another. One timer at a time, none longer than an hour. Inputs
 * that arrive while a result is being emitted wait for their turn, so results come in order.
 *
 * Completion: with the source, once the inputs that wait are taken; the timer is dropped. Errors of
 * the source and of the callbacks end the result. Holds the source's subscription and one timer.
 *
 * @example wakeups$.pipe(scanUntilDue(reduce, (turn) => turn.lookAgainAtMs, scheduler))
 * @see scan, timer
 * @param reduce makes the next result of the last one (undefined at first) and an input
 * @param dueAtMs the instant that a result waits for, ms on the scheduler's clock, or undefined
 * @param scheduler where instants are timed
 */
export function scanUntilDue<I, R>(
  reduce: (last: R | undefined, input: I | Due) => R,
  dueAtMs: (result: R) => number | undefined,
  scheduler: SchedulerLike,
): (source: Observable<I>) => Observable<R> {
  return (source) =>
    new Observable<R>((subscriber) => {
      const timer = new DueTimer(scheduler, () => take(DUE));
      subscriber.add(timer);
      const backlog: (I | Due)[] = [];
      let last: R | undefined;
      let taking = false;
      let completed = false;

      const take = (input: I | Due): void => {
        backlog.push(input);
        if (backlog.length > BACKLOG_LIMIT) {
          subscriber.error(new Error('scanUntilDue: inputs feed on themselves'));
        }
        if (!taking) drain();
      };
      const drain = (): void => {
        taking = true;
        for (let taken = 0; taken < TURN_LIMIT && backlog.length > 0; taken += 1) {
          if (subscriber.closed) return;
          reduceNext(backlog.shift() as I | Due);
        }
        // Still taking, so that what comes before the next turn waits behind what is here.
        if (backlog.length > 0) {
          subscriber.add(scheduler.schedule(drain));
          return;
        }
        taking = false;
        if (completed) subscriber.complete();
      };
      const reduceNext = (input: I | Due): void => {
        let result: R;
        let atMs: number | undefined;
        try {
          result = reduce(last, input);
          atMs = dueAtMs(result);
        } catch (error) {
          subscriber.error(error);
          return;
        }
        last = result;
        timer.set(atMs);
        subscriber.next(result);
      };

      subscriber.add(
        source.subscribe({
          next: take,
          error: (error: unknown) => subscriber.error(error),
          complete: () => {
            completed = true;
            if (!taking) subscriber.complete();
          },
        }),
      );
    });
}

/** One instant to wait for, however far off. */
class DueTimer extends Subscription {
  readonly #scheduler: SchedulerLike;
  readonly #onDue: () => void;
  #atMs: number | undefined;
  #running: Subscription | undefined;

  constructor(scheduler: SchedulerLike, onDue: () => void) {
    super();
    this.#scheduler = scheduler;
    this.#onDue = onDue;
    this.add(() => this.#running?.unsubscribe());
  }

  /** Waits for `atMs` instead of what was waited for before. */
  set(atMs: number | undefined): void {
    if (atMs === this.#atMs || this.closed) return;
    this.#atMs = atMs;
    this.#running?.unsubscribe();
    this.#running = undefined;
    if (atMs !== undefined && atMs !== Number.POSITIVE_INFINITY) this.#wait(atMs);
  }

  #wait(atMs: number): void {
    const delayMs = Math.min(Math.max(atMs - this.#scheduler.now(), 0), LONGEST_TIMER_MS);
    this.#running = this.#scheduler.schedule(() => this.#fire(atMs), delayMs);
  }

  #fire(atMs: number): void {
    this.#running = undefined;
    // A timer may be early by a fraction of a millisecond, and a long wait is done in parts.
    if (this.#scheduler.now() < atMs) {
      this.#wait(atMs);
      return;
    }
    this.#atMs = undefined;
    this.#onDue();
  }
}

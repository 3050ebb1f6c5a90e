import { type SchedulerAction, type SchedulerLike, Subscription } from 'rxjs';
import { LONGEST_TIMER_MS } from '../core/scan-until-due.ts';

/** The monotonic clock, ms with fractions; a step of the wall clock does not move it. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}

/**
 * The live scheduler: Node's timers and the monotonic clock. rxjs' own reads the wall clock, which
 * may be stepped. Delays are whole milliseconds, rounded up, so that nothing is early by more than
 * the timer's own jitter; a delay of 0 is the next turn of the event loop.
 */
export const liveScheduler: SchedulerLike = {
  now: monotonicMs,
  schedule: <T>(work: Work<T>, delay = 0, state?: T) =>
    new LiveAction<T>(work).schedule(state, delay),
};

type Work<T> = (this: SchedulerAction<T>, state: T) => void;

class LiveAction<T> extends Subscription implements SchedulerAction<T> {
  readonly #work: Work<T>;
  #cancel: (() => void) | undefined;

  constructor(work: Work<T>) {
    super();
    this.#work = work;
    this.add(() => this.#cancel?.());
  }

  schedule(state?: T, delay = 0): Subscription {
    if (this.closed) return this;
    this.#cancel?.();
    this.#cancel =
      delay <= 0
        ? inNextTurn(() => this.#run(state))
        : after(Math.ceil(delay), () => this.#run(state));
    return this;
  }

  #run(state: T | undefined): void {
    this.#cancel = undefined;
    this.#work.call(this, state as T);
    // Done unless the work scheduled itself again, as periodic operators do.
    if (this.#cancel === undefined) this.unsubscribe();
  }
}

function inNextTurn(run: () => void): () => void {
  const handle = setImmediate(run);
  return () => clearImmediate(handle);
}

/** In parts of an hour: Node fires a timer of more than 2^31 − 1 ms at once. */
function after(delayMs: number, run: () => void): () => void {
  let handle: NodeJS.Timeout;
  const wait = (leftMs: number): void => {
    const partMs = Math.min(leftMs, LONGEST_TIMER_MS);
    handle = setTimeout(() => (leftMs > partMs ? wait(leftMs - partMs) : run()), partMs);
  };
  wait(delayMs);
  return () => clearTimeout(handle);
}

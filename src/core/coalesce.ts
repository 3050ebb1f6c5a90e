import {
  type MonoTypeOperatorFunction,
  Observable,
  type SchedulerLike,
  type Subscription,
} from 'rxjs';

/**
 * Lets the first values of a storm through at once and merges the rest.
 *
 * In each window of `windowMs`, which the first value opens, the first `burst` values pass without
 * delay; of what comes after them only the last is kept and emitted when the window ends, which
 * opens the next window. So nothing is ever lost but repetition: after the last source value there
 * is always an emission.
 *
 * Completion: a kept value is emitted first, then the result completes. Errors pass at once, a
 * kept value is dropped. Holds one timer on `scheduler` while a window is open.
 *
 * @example wakeups$.pipe(coalesce(4, 5, scheduler)) // at most 4 readings in each window of 5 ms
 * @see throttleTime, which would delay the second event of a pair
 * @param burst values that pass at once in each window, at least 1
 * @param windowMs length of a window, ms
 * @param scheduler where the window is timed
 */
export function coalesce<T>(
  burst: number,
  windowMs: number,
  scheduler: SchedulerLike,
): MonoTypeOperatorFunction<T> {
  return (source) =>
    new Observable<T>((subscriber) => {
      let passed = 0;
      let kept: { readonly value: T } | undefined;
      let window: Subscription | undefined;

      const open = (): void => {
        window = scheduler.schedule(() => {
          passed = 0;
          window = undefined;
          if (kept !== undefined) emit(takeKept(kept));
        }, windowMs);
        subscriber.add(window);
      };
      const takeKept = (held: { readonly value: T }): T => {
        kept = undefined;
        return held.value;
      };
      const emit = (value: T): void => {
        passed += 1;
        if (window === undefined) open();
        subscriber.next(value);
      };

      subscriber.add(
        source.subscribe({
          next: (value) => {
            if (passed < burst) emit(value);
            else kept = { value };
          },
          error: (error: unknown) => subscriber.error(error),
          complete: () => {
            if (kept !== undefined) subscriber.next(takeKept(kept));
            subscriber.complete();
          },
        }),
      );
    });
}

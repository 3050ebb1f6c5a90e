import {
  type MonoTypeOperatorFunction,
  Observable,
  type SchedulerLike,
  type Subscription,
} from 'rxjs';

/**
 * Lets the first values of a storm through at once, and of the rest one each `intervalMs`.
 *
 * There is room for `burst` values, which pass without delay; each takes a place, and a place comes
 * back each `intervalMs`. While there is none only the last value is kept, and emitted as soon as a
 * place is free. So a storm has no hole longer than `intervalMs`, and nothing is ever lost but
 * repetition: after the last source value there is always an emission.
 *
 * Completion: a kept value is emitted first, then the result completes. Errors pass at once, a
 * kept value is dropped. Holds one timer on `scheduler` while a place is taken.
 *
 * @example wakeups$.pipe(coalesce(4, 1, scheduler)) // 4 readings at once, then one each ms
 * @see throttleTime, which would delay the second event of a pair
 * @param burst values that pass at once, at least 1
 * @param intervalMs how often a place comes back, ms
 * @param scheduler where that is timed
 */
export function coalesce<T>(
  burst: number,
  intervalMs: number,
  scheduler: SchedulerLike,
): MonoTypeOperatorFunction<T> {
  return (source) =>
    new Observable<T>((subscriber) => {
      let taken = 0;
      let kept: { readonly value: T } | undefined;
      let timer: Subscription | undefined;

      const giveBack = (): void => {
        timer = scheduler.schedule(() => {
          taken -= 1;
          if (taken > 0) giveBack();
          else timer = undefined;
          if (kept !== undefined) emit(takeKept(kept));
        }, intervalMs);
        subscriber.add(timer);
      };
      const takeKept = (held: { readonly value: T }): T => {
        kept = undefined;
        return held.value;
      };
      const emit = (value: T): void => {
        taken += 1;
        if (timer === undefined) giveBack();
        subscriber.next(value);
      };

      subscriber.add(
        source.subscribe({
          next: (value) => {
            if (taken < burst) emit(value);
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

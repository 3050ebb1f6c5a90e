/** When a runtime is asked for its pods: from time to time, and at each change that is told of. */
import {
  catchError,
  defer,
  exhaustMap,
  from,
  ignoreElements,
  map,
  merge,
  type Observable,
  type ObservableInput,
  of,
  race,
  repeat,
  type SchedulerLike,
  share,
  tap,
  timer,
} from 'rxjs';
import type { PodListing, RuntimePod } from '../../ports/pod-directory.ts';

/** For how long changes are gathered before pods are listed, ms: a pod that starts has several. */
export const GATHER_MS = 50;

/** How soon a runtime that is away is asked again: twice as late each time, up to the second, ms. */
export const FIRST_RETRY_MS = 200;
export const LAST_RETRY_MS = 5000;

export interface ListingInputs {
  readonly list: () => ObservableInput<readonly RuntimePod[]>;
  /** Emits when pods may have changed. */
  readonly changes$: Observable<unknown>;
  /** How soon pods are listed again although nothing told of a change, ms: asked after each listing. */
  readonly eachMs: () => number;
  readonly scheduler: SchedulerLike;
}

/**
 * Listings one after the other: a change that comes during one brings another, and never breaks it off, however
 * many come. Between two passes at least as long as the last one took. Cold; never completes, never errors.
 */
export function listingsOf({
  list,
  changes$,
  eachMs,
  scheduler,
}: ListingInputs): Observable<PodListing> {
  return defer(() => {
    let failures = 0;
    let hasChanged = false;
    let tookMs = 0;
    const noted$ = changes$.pipe(
      tap(() => {
        hasChanged = true;
      }),
      share(),
    );
    const listing$ = defer(() => {
      const startMs = scheduler.now();
      hasChanged = false;
      return from(list()).pipe(
        map((pods): PodListing => {
          failures = 0;
          return { kind: 'listed', pods, atMs: scheduler.now() };
        }),
        catchError((error: Error) => {
          failures += 1;
          return of<PodListing>({ kind: 'away', reason: error.message, atMs: scheduler.now() });
        }),
        tap(() => {
          tookMs = scheduler.now() - startMs;
        }),
      );
    });
    const soon$ = defer(() => timer(Math.max(GATHER_MS, tookMs), scheduler));
    const next$ = defer((): Observable<unknown> => {
      if (hasChanged) return soon$;
      const later$ = timer(failures === 0 ? eachMs() : retryMs(failures), scheduler);
      return race(later$, noted$.pipe(exhaustMap(() => soon$)));
    });
    return merge(noted$.pipe(ignoreElements()), listing$.pipe(repeat({ delay: () => next$ })));
  });
}

function retryMs(failures: number): number {
  return Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** (failures - 1));
}

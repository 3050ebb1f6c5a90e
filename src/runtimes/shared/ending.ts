/** The end of a pod that a runtime runs: by whom its processes are signalled, and how the runtime is told. */
import {
  catchError,
  concat,
  defer,
  EMPTY,
  finalize,
  ignoreElements,
  merge,
  type Observable,
  of,
  retry,
  type SchedulerLike,
  Subscription,
  share,
  switchMap,
  take,
  tap,
  throwError,
  timer,
} from 'rxjs';
import type { PodDirectory, RuntimePod } from '../../ports/pod-directory.ts';
import type { EvictProgress, EvictRequest } from '../../ports/runtime.ts';
import { StartedSince } from './started-since.ts';

/** How often what runs a pod is told of its end, where it refuses or does not answer. */
export const SETTLE_TRIES = 5;

/** How far apart these are at least, ms. */
export const SETTLE_AGAIN_MS = 2000;

/** How many pods may wait for a runtime that is away to be told of them. */
export const MOST_UNSETTLED = 1000;

export interface EndingInputs {
  readonly directory: PodDirectory;
  readonly scheduler: SchedulerLike;
  /** Hot: emits each time that the runtime has listed its pods, and so does answer. */
  readonly listed$: Observable<unknown>;
  readonly note: (notice: EndingNotice) => void;
}

export type EndingNotice =
  /** The runtime took no note of the end of a pod. */
  | { readonly kind: 'unsettled'; readonly podName: string; readonly reason: string }
  /** Before it did, somebody started the pod again: that one is left alone. */
  | { readonly kind: 'startedSince'; readonly podName: string; readonly reason: string }
  /** It does not stop a pod as it was asked to: its processes are sent TERM in its place. */
  | { readonly kind: 'unstopped'; readonly podName: string; readonly reason: string };

/** Ends pods by their cgroups, and has the runtime follow. */
export interface Ending {
  /**
   * Kill first, tidy after. For a hard threshold the processes are signalled through their cgroups, KILL or
   * TERM, in the turn of the subscription. For a soft one with a grace the runtime stops the pod, which sends
   * what its image wants to be stopped by; TERM only where the runtime, or what has the pod in hand for it, does not
   * answer. KILL is by evictd's own clock alone, whether it answers or not: a stop is withdrawn with the eviction, and
   * nothing follows from it. The runtime is told once that is done, and nobody waits for it.
   *
   * @param evict ends the pod's processes through its cgroups
   */
  evict(
    pod: RuntimePod,
    request: EvictRequest,
    evict: (request: EvictRequest) => Observable<EvictProgress>,
  ): Observable<EvictProgress>;
  /** Tells the runtime no more. */
  close(): void;
}

export function endingOf({ directory, scheduler, listed$, note }: EndingInputs): Ending {
  const telling = new Subscription();
  let unsettled = 0;
  /** Goes on by itself. */
  const settle = (pod: RuntimePod): void => {
    if (unsettled >= MOST_UNSETTLED) {
      note({
        kind: 'unsettled',
        podName: pod.name,
        reason: 'too many others are waiting to be told',
      });
      return;
    }
    unsettled += 1;
    // Of one that is away nothing can be expected, however often it is asked, before it lists its pods.
    const again = (error: unknown) =>
      error instanceof StartedSince
        ? throwError(() => error)
        : timer(SETTLE_AGAIN_MS, scheduler).pipe(
            switchMap(() => listed$),
            take(1),
          );
    const told$ = directory.settle(pod).pipe(
      retry({ count: SETTLE_TRIES - 1, delay: again }),
      catchError((error: Error) => {
        const kind = error instanceof StartedSince ? 'startedSince' : 'unsettled';
        note({ kind, podName: pod.name, reason: error.message });
        return EMPTY;
      }),
      finalize(() => {
        unsettled -= 1;
      }),
    );
    telling.add(told$.subscribe());
  };
  /** Emits when TERM is to be sent: the runtime does not answer, or has stopped what it knows of. */
  const stoppedBy = (pod: RuntimePod, graceMs: number): Observable<unknown> => {
    const stopped$ = concat(directory.stop(pod, graceMs), of(undefined));
    // The answer to a stop comes when its grace is over: whether somebody is there is asked beside it.
    return merge(stopped$, directory.answers(pod).pipe(ignoreElements())).pipe(
      take(1),
      catchError((error: Error) => {
        note({ kind: 'unstopped', podName: pod.name, reason: error.message });
        return of(undefined);
      }),
      share({ resetOnComplete: false }),
    );
  };
  return {
    evict: (pod, request, evict) => {
      if (request.rehearsal === true) return evict(request);
      return defer(() => {
        let hasEnded = false;
        const isAsked = !request.hard && request.gracePeriodMs > 0;
        const asked = isAsked
          ? { ...request, stop$: stoppedBy(pod, request.gracePeriodMs) }
          : request;
        return evict(asked).pipe(
          tap(({ kind }) => {
            hasEnded ||= kind === 'killed' || kind === 'empty';
          }),
          finalize(() => {
            if (hasEnded) settle(pod);
          }),
        );
      });
    },
    close: () => telling.unsubscribe(),
  };
}

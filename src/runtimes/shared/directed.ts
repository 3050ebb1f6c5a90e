/**
 * A runtime whose pods a directory names: they are read and ended through their cgroups, and what runs them
 * is told afterwards.
 */
import {
  catchError,
  defer,
  EMPTY,
  finalize,
  ignoreElements,
  merge,
  type Observable,
  retry,
  type SchedulerLike,
  type Subscription,
  tap,
  timer,
} from 'rxjs';
import type { PodObservation } from '../../core/pod.ts';
import type { PodDirectory, PodListing, RuntimePod } from '../../ports/pod-directory.ts';
import type { EvictProgress, EvictRequest, Runtime } from '../../ports/runtime.ts';

/** How often what runs a pod is told of its end, where it does not answer, and how far apart, ms. */
export const SETTLE_TRIES = 5;
export const SETTLE_AGAIN_MS = 2000;

export interface DirectedInputs {
  /** What reads and ends cgroups. */
  readonly cgroups: Runtime;
  readonly directory: PodDirectory;
  /** Tells it which cgroups are pods. */
  readonly select: (pods: readonly RuntimePod[]) => void;
  /** The path of a pod's cgroup as an observation's id has it; undefined for one outside of the node. */
  readonly pathOf: (pod: RuntimePod) => string | undefined;
  readonly scheduler: SchedulerLike;
  /** Is told when the runtime goes away and comes back, and when it took no note of an end. */
  readonly note: (notice: DirectoryNotice) => void;
}

export type DirectoryNotice =
  | { readonly kind: 'away'; readonly reason: string }
  | { readonly kind: 'back'; readonly pods: number }
  | { readonly kind: 'unsettled'; readonly podName: string; readonly reason: string };

/** Listens to the directory until it is closed. */
export function directedRuntime(inputs: DirectedInputs): Runtime {
  const { cgroups, directory, select, pathOf, note } = inputs;
  let byPath: ReadonlyMap<string, RuntimePod> = new Map();
  let trouble: string | undefined = 'the runtime has not answered yet';
  const take = (listing: PodListing): void => {
    if (listing.kind === 'away') {
      const { reason } = listing;
      if (trouble !== reason) note({ kind: 'away', reason });
      trouble = reason;
      return;
    }
    const { pods } = listing;
    if (trouble !== undefined) note({ kind: 'back', pods: pods.length });
    trouble = undefined;
    byPath = new Map(pods.flatMap((pod) => entryOf(pod, pathOf(pod))));
    select([...byPath.values()]);
  };
  const listening: Subscription = directory.listings$.subscribe(take);
  const podOf = (podId: string): RuntimePod | undefined =>
    byPath.get(podId.slice(0, podId.lastIndexOf('@')));
  return {
    capabilities: cgroups.capabilities,
    observePods: (counts): readonly PodObservation[] => cgroups.observePods(counts),
    podsTrouble: () => trouble ?? cgroups.podsTrouble(),
    oomKills: () => cgroups.oomKills(),
    evict: (request) => {
      const pod = podOf(request.podId);
      return pod === undefined ? cgroups.evict(request) : evictKnown(inputs, pod, request);
    },
    close: () => {
      listening.unsubscribe();
      cgroups.close();
      directory.close();
    },
  };
}

function entryOf(
  pod: RuntimePod,
  path: string | undefined,
): readonly (readonly [string, RuntimePod])[] {
  return path === undefined ? [] : [[path, pod]];
}

/**
 * Kill first, tidy after. Without a grace the processes get KILL through their cgroups; with one the runtime
 * stops the pod, which sends the signal and waits as the pod's image says, and KILL comes by evictd's own
 * clock, whether the runtime answers or not.
 */
function evictKnown(
  { cgroups, directory, scheduler, note }: DirectedInputs,
  pod: RuntimePod,
  request: EvictRequest,
): Observable<EvictProgress> {
  return defer(() => {
    let hasEnded = false;
    const stopping$ =
      request.gracePeriodMs <= 0 || request.rehearsal === true
        ? EMPTY
        : directory.stop(pod.id, request.gracePeriodMs).pipe(catchError(() => EMPTY));
    const ending$ = cgroups.evict(request).pipe(
      tap(({ kind }) => {
        hasEnded ||= kind === 'killed' || kind === 'empty';
      }),
      finalize(() => {
        if (hasEnded && request.rehearsal !== true) settle(pod);
      }),
    );
    // Subscribed first, nothing stands before the first signal.
    return merge(ending$, stopping$.pipe(ignoreElements()));
  });
  /** Goes on by itself: nobody waits for it. */
  function settle({ id, name }: RuntimePod): void {
    directory
      .settle(id)
      .pipe(
        retry({ count: SETTLE_TRIES - 1, delay: () => timer(SETTLE_AGAIN_MS, scheduler) }),
        catchError((error: Error) => {
          note({ kind: 'unsettled', podName: name, reason: error.message });
          return EMPTY;
        }),
      )
      .subscribe();
  }
}

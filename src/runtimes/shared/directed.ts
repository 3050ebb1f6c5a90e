/**
 * A runtime whose pods a directory names: they are read and ended through their cgroups, and what runs them
 * is told afterwards.
 */
import { isDeepStrictEqual } from 'node:util';
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
import { toText } from '../../kernel/byte-path.ts';
import type { PodDirectory, PodListing, RuntimePod } from '../../ports/pod-directory.ts';
import type { EvictProgress, EvictRequest, Runtime } from '../../ports/runtime.ts';
import { type ClaimedPod, type ClaimInputs, claimsOf, type Doubt } from './claims.ts';
import { containersOf, evictMembers, mergedObservation } from './members.ts';
import { oncePerPod } from './once-per-pod.ts';

/** How often what runs a pod is told of its end, where it does not answer, and how far apart, ms. */
export const SETTLE_TRIES = 5;
export const SETTLE_AGAIN_MS = 2000;

export interface DirectedInputs extends ClaimInputs {
  /** What reads and ends cgroups. */
  readonly cgroups: Runtime;
  readonly directory: PodDirectory;
  /** Tells it which cgroups are pods, and which are none whatever else says so. */
  readonly select: (pods: readonly ClaimedPod[], doubts: readonly Doubt[]) => void;
  readonly scheduler: SchedulerLike;
  /** Is told when the runtime goes away and comes back, and when it took no note of an end. */
  readonly note: (notice: DirectoryNotice) => void;
}

export type DirectoryNotice =
  | { readonly kind: 'away'; readonly reason: string }
  | { readonly kind: 'back'; readonly pods: number }
  | { readonly kind: 'unsettled'; readonly podName: string; readonly reason: string }
  /** Said once of each pod: it is never evicted. */
  | { readonly kind: 'doubt'; readonly doubt: Doubt };

/** Listens to the directory until it is closed. */
export function directedRuntime(inputs: DirectedInputs): Runtime {
  const { cgroups, directory, select, note } = inputs;
  let byPath: ReadonlyMap<string, ClaimedPod> = new Map();
  let listed: readonly RuntimePod[] | undefined;
  let trouble: string | undefined = 'the runtime has not answered yet';
  const tellDoubt = oncePerPod<Doubt>((doubt) => note({ kind: 'doubt', doubt }));
  const joining = joiner((path) => byPath.get(path), inputs);
  const take = (listing: PodListing): void => {
    if (listing.kind === 'away') {
      const { reason } = listing;
      if (trouble !== reason) note({ kind: 'away', reason });
      trouble = reason;
      return;
    }
    const wasAway = trouble !== undefined;
    trouble = undefined;
    // Most listings tell nothing new.
    if (!isDeepStrictEqual(listed, listing.pods)) {
      listed = listing.pods;
      const { pods, doubts } = claimsOf(listing.pods, inputs);
      byPath = new Map(pods.flatMap((one) => one.paths.map((path) => [path, one] as const)));
      select(pods, doubts);
      tellDoubt(doubts);
    }
    if (wasAway) note({ kind: 'back', pods: listing.pods.length });
  };
  const listening: Subscription = directory.listings$.subscribe(take);
  return {
    capabilities: cgroups.capabilities,
    observePods: (counts) => joining.join(cgroups.observePods(counts)),
    podsTrouble: () => trouble ?? cgroups.podsTrouble(),
    oomKills: () => cgroups.oomKills(),
    evict: (request) => joining.evict(request),
    close: () => {
      listening.unsubscribe();
      cgroups.close();
      directory.close();
    },
  };
}

interface Joiner {
  /** Pods in place of their cgroups. */
  readonly join: (observed: readonly PodObservation[]) => readonly PodObservation[];
  readonly evict: (request: EvictRequest) => Observable<EvictProgress>;
}

/** The members of a pod of several cgroups, by the id that they have together. */
interface Group {
  readonly claimed: ClaimedPod;
  readonly id: string;
  readonly members: ReadonlySet<string>;
}

function joiner(
  claimedAt: (path: string) => ClaimedPod | undefined,
  inputs: DirectedInputs,
): Joiner {
  const { cgroups, pathOf } = inputs;
  let groups: ReadonlyMap<string, Group> = new Map();
  /** By the pod's own id. */
  const ending = new Map<string, Group>();
  /** While it is being ended it stays the pod that it was, whoever of it has ended already. */
  const groupOf = (claimed: ClaimedPod, ids: readonly string[], id: string): Group => {
    const before = ending.get(claimed.pod.id);
    return before !== undefined && ids.every((one) => before.members.has(one))
      ? before
      : { claimed, id, members: new Set(ids) };
  };
  return {
    join: (observed) => {
      const found = new Map<ClaimedPod, PodObservation[]>();
      const others: PodObservation[] = [];
      for (const one of observed) {
        const claimed = claimedAt(pathIn(one.id));
        const members = claimed && found.get(claimed);
        if (claimed === undefined) others.push(one);
        else if (members === undefined) found.set(claimed, [one]);
        else members.push(one);
      }
      const joined = new Map<string, Group>();
      const pods = [...found].map(([claimed, members]) => {
        const merged = mergedObservation(members);
        const containers = containersOf(claimed.pod, pathOf, members, pathIn);
        const ids = members.map(({ id }) => id);
        const group = groupOf(claimed, ids, merged.id);
        if (claimed.paths.length > 1) joined.set(group.id, group);
        return { ...merged, id: group.id, ...(containers === undefined ? {} : { containers }) };
      });
      groups = joined;
      return [...pods, ...others];
    },
    evict: (request) => {
      const group = groups.get(request.podId);
      if (group === undefined) {
        const claimed = claimedAt(pathIn(request.podId));
        return claimed === undefined
          ? cgroups.evict(request)
          : evictKnown(inputs, claimed.pod, request, cgroups.evict(request));
      }
      const { pod } = group.claimed;
      return defer(() => {
        if (request.rehearsal !== true) ending.set(pod.id, group);
        const ending$ = evictMembers(cgroups, [...group.members], request);
        return evictKnown(inputs, pod, request, ending$).pipe(
          finalize(() => {
            if (request.rehearsal !== true) ending.delete(pod.id);
          }),
        );
      });
    },
  };
}

/** The path of a cgroup by its observation's id, as text. */
function pathIn(id: string): string {
  return toText(id.slice(0, id.lastIndexOf('@')));
}

/**
 * Kill first, tidy after. Without a grace the processes get KILL through their cgroups; with one the runtime
 * stops the pod, which sends the signal and waits as the pod's image says, and KILL comes by evictd's own
 * clock, whether the runtime answers or not.
 */
function evictKnown(
  { directory, scheduler, note }: DirectedInputs,
  pod: RuntimePod,
  request: EvictRequest,
  killing$: Observable<EvictProgress>,
): Observable<EvictProgress> {
  return defer(() => {
    let hasEnded = false;
    const stopping$ =
      request.gracePeriodMs <= 0 || request.rehearsal === true
        ? EMPTY
        : directory.stop(pod, request.gracePeriodMs).pipe(catchError(() => EMPTY));
    const ending$ = killing$.pipe(
      tap(({ kind }) => {
        hasEnded ||= kind === 'killed' || kind === 'empty';
      }),
      finalize(() => {
        if (hasEnded && request.rehearsal !== true) settle();
      }),
    );
    // Subscribed first, nothing stands before the first signal.
    return merge(ending$, stopping$.pipe(ignoreElements()));
  });
  /** Goes on by itself: nobody waits for it. */
  function settle(): void {
    directory
      .settle(pod)
      .pipe(
        retry({ count: SETTLE_TRIES - 1, delay: () => timer(SETTLE_AGAIN_MS, scheduler) }),
        catchError((error: Error) => {
          note({ kind: 'unsettled', podName: pod.name, reason: error.message });
          return EMPTY;
        }),
      )
      .subscribe();
  }
}

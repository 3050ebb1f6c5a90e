/**
 * A runtime whose pods a directory names: they are read and ended through their cgroups, and what runs them
 * is told afterwards.
 */
import {
  defer,
  filter,
  finalize,
  type Observable,
  type SchedulerLike,
  type Subscription,
  share,
} from 'rxjs';
import type { PodObservation } from '../../core/pod.ts';
import { toText } from '../../kernel/byte-path.ts';
import type { PodDirectory, PodListing, RuntimePod } from '../../ports/pod-directory.ts';
import type { EvictProgress, EvictRequest, Runtime } from '../../ports/runtime.ts';
import { type ClaimedPod, type ClaimInputs, claimsOf, type Doubt } from './claims.ts';
import { type Ending, type EndingNotice, endingOf } from './ending.ts';
import { containersOf, evictMembers, type MemoryBelow, mergedObservation } from './members.ts';
import { oncePerPod } from './once-per-pod.ts';
import { reused } from './same.ts';

export interface DirectedInputs extends ClaimInputs {
  /** What reads and ends cgroups. */
  readonly cgroups: Runtime;
  readonly directory: PodDirectory;
  /** Tells it which cgroups are pods, and which are none whatever else says so. */
  readonly select: (pods: readonly ClaimedPod[], doubts: readonly Doubt[]) => void;
  readonly memoryBelow?: MemoryBelow | undefined;
  /** What a pod uses of the disks; undefined where it is not known. A kill may wait for it. */
  readonly diskOf?: ((pod: RuntimePod) => DiskFields | undefined) | undefined;
  /** Looks on while a pod is ended. */
  readonly watch?: (
    pod: RuntimePod,
    request: EvictRequest,
    progress$: Observable<EvictProgress>,
  ) => Observable<EvictProgress>;
  readonly scheduler: SchedulerLike;
  /** Is told when the runtime goes away and comes back, and when it took no note of an end. */
  readonly note: (notice: DirectoryNotice) => void;
}

/** What of an observation is about disks. */
export type DiskFields = Pick<PodObservation, 'disk' | 'diskSeen' | 'exclusiveImageBytes'>;

export type DirectoryNotice =
  | { readonly kind: 'away'; readonly reason: string }
  | { readonly kind: 'back'; readonly pods: number }
  | EndingNotice
  /** Said once of each pod: it is never evicted. */
  | { readonly kind: 'doubt'; readonly doubt: Doubt };

export interface DirectedRuntime extends Runtime {
  /** The pod that an observation is of, as the directory has it; undefined for what it does not name. */
  podOf(podId: string): RuntimePod | undefined;
}

/** Listens to the directory until it is closed. */
export function directedRuntime(inputs: DirectedInputs): DirectedRuntime {
  const { cgroups, directory, select, scheduler, note } = inputs;
  const listings$ = directory.listings$.pipe(share());
  const ending = endingOf({
    directory,
    scheduler,
    listed$: listings$.pipe(filter(({ kind }) => kind === 'listed')),
    note,
  });
  let byPath: ReadonlyMap<string, ClaimedPod> = new Map();
  let listed: readonly RuntimePod[] | undefined;
  let trouble: string | undefined = 'the runtime has not answered yet';
  const tellDoubt = oncePerPod<Doubt>((doubt) => note({ kind: 'doubt', doubt }));
  const joining = joiner((path) => byPath.get(path), inputs, ending);
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
    const now = reused(listed ?? [], listing.pods);
    if (listed !== now) {
      listed = now;
      const { pods, doubts } = claimsOf(now, inputs);
      byPath = new Map(pods.flatMap((one) => one.paths.map((path) => [path, one] as const)));
      select(pods, doubts);
      tellDoubt(doubts);
    }
    if (wasAway) note({ kind: 'back', pods: listing.pods.length });
  };
  const listening: Subscription = listings$.subscribe(take);
  return {
    capabilities: cgroups.capabilities,
    observePods: (counts) => joining.join(cgroups.observePods(counts)),
    podsTrouble: () => trouble ?? cgroups.podsTrouble(),
    oomKills: () => cgroups.oomKills(),
    evict: (request) => joining.evict(request),
    podOf: (podId) => joining.claimedBy(podId)?.pod,
    close: () => {
      ending.close();
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
  /** The pod of an observation's id. */
  readonly claimedBy: (podId: string) => ClaimedPod | undefined;
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
  ending: Ending,
): Joiner {
  const { cgroups, pathOf, diskOf, watch = (_pod, _request, progress$) => progress$ } = inputs;
  const { memoryBelow = () => undefined, scheduler } = inputs;
  const memory = { pathOf, pathIn, memoryBelow, nowMs: () => scheduler.now() };
  let groups: ReadonlyMap<string, Group> = new Map();
  /** Those that are being ended, by the pod's own id. */
  const inFlight = new Map<string, Group>();
  /** While it is being ended it stays the pod that it was, whoever of it has ended already. */
  const groupOf = (claimed: ClaimedPod, ids: readonly string[], id: string): Group => {
    const before = inFlight.get(claimed.pod.id);
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
        const containers = containersOf(claimed.pod, members, memory);
        const ids = members.map(({ id }) => id);
        const group = groupOf(claimed, ids, merged.id);
        if (claimed.paths.length > 1) joined.set(group.id, group);
        const { owner } = claimed.pod;
        const more = containers === undefined ? { owner } : { owner, containers };
        return { ...merged, ...more, id: group.id, ...diskOf?.(claimed.pod) };
      });
      groups = joined;
      return [...pods, ...others];
    },
    claimedBy: (podId) => groups.get(podId)?.claimed ?? claimedAt(pathIn(podId)),
    evict: (request) => {
      const group = groups.get(request.podId);
      if (group === undefined) {
        const claimed = claimedAt(pathIn(request.podId));
        if (claimed === undefined) return cgroups.evict(request);
        return watch(claimed.pod, request, ending.evict(claimed.pod, request, cgroups.evict));
      }
      const { pod } = group.claimed;
      return defer(() => {
        if (request.rehearsal !== true) inFlight.set(pod.id, group);
        const evict = (one: EvictRequest) => evictMembers(cgroups, [...group.members], one);
        return watch(pod, request, ending.evict(pod, request, evict)).pipe(
          finalize(() => {
            if (request.rehearsal !== true) inFlight.delete(pod.id);
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

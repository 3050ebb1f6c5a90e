import {
  concat,
  defer,
  delay,
  distinctUntilChanged,
  exhaustMap,
  filter,
  finalize,
  ignoreElements,
  map,
  merge,
  mergeMap,
  Observable,
  of,
  type SchedulerLike,
  share,
  skip,
  startWith,
  switchMap,
  tap,
  throttleTime,
  timer,
} from 'rxjs';
import { type ControlFile, openControlFile } from '../kernel/control-file.ts';
import { numberField } from '../kernel/fields.ts';
import type { NativeAddon } from '../native/types.ts';
import type { LostRace, OomNotice } from '../ports/oom-kills.ts';
import type { OomKillCount } from '../ports/runtime.ts';

/** How long after one look at the kernel's own count a check is an occasion for the next, ms. */
export const OOM_CHECK_MS = 1000;

/**
 * How long after it grew the cgroups are read, ms: the kernel counts a kill first for the machine,
 * then for the cgroup.
 */
export const OOM_SETTLE_MS = 20;

/** From a cgroup's "out of memory", which comes before the kill, to a look at the count, ms. */
export const OOM_WAKEUP_DELAY_MS = 100;

/** How long the cgroups are read in one go, ms: a threshold may be crossed meanwhile. */
const SLICE_MS = 2;

export interface OomKillInputs {
  /** Each is an occasion to look; the count is read once in {@link OOM_CHECK_MS}. */
  readonly checks$: Observable<unknown>;
  /** The kernel says that the node's cgroup is out of memory. */
  readonly wakeups$: Observable<OomWakeup>;
  /** The counts of the pods' cgroups, a pod for each step. */
  readonly counts: () => Iterable<readonly OomKillCount[]>;
  readonly scheduler: SchedulerLike;
  /** `/proc/vmstat`. */
  readonly vmstat?: string;
}

/**
 * Notices the kills of the kernel's OOM killer. Its count for the whole machine is read at each
 * occasion; only when that grew the pods' cgroups are, in slices of {@link SLICE_MS}. What they
 * say at the start is where counting begins; a cgroup that is new since then counts from 0.
 *
 * Cold. Holds `/proc/vmstat` open and a count for each cgroup that had a kill. Completes with its
 * inputs, or, after saying why, where the kernel has no such count (before Linux 4.13).
 */
export function oomKills(inputs: OomKillInputs): Observable<OomNotice> {
  return defer(() => {
    let vmstat: ControlFile;
    try {
      vmstat = openControlFile(inputs.vmstat ?? '/proc/vmstat');
    } catch (error) {
      return of<OomNotice>({ kind: 'degraded', reason: String(error) });
    }
    return watch(inputs, vmstat).pipe(finalize(() => vmstat.close()));
  });
}

function watch(inputs: OomKillInputs, vmstat: ControlFile): Observable<OomNotice> {
  const { checks$, counts, scheduler } = inputs;
  const wakeups$ = inputs.wakeups$.pipe(share());
  const total = (): number | undefined => numberField(vmstat.read(), 'oom_kill ');
  const start = total();
  if (start === undefined) {
    return of({ kind: 'degraded', reason: 'the kernel does not count its OOM kills' });
  }
  let explained = start;
  let known: ReadonlyMap<string, number> = new Map();
  const take = (seen: readonly OomKillCount[]): readonly OomKillCount[] => {
    const grown = growth(known, seen);
    known = new Map(seen.map(({ cgroupId, kills }) => [cgroupId, kills]));
    return grown;
  };
  const pass$ = defer(() => {
    const now = total() ?? explained;
    return inSlices(counts, scheduler).pipe(
      mergeMap((seen) => {
        const races = racesOf(take(seen), scheduler.now());
        const inPods = races.reduce((sum, { kills }) => sum + kills, 0);
        const elsewhere = now - explained - inPods;
        // What the cgroups told beyond it, the machine's count will have at the next look.
        explained = Math.max(now, explained + inPods);
        return [
          ...races.map((race): OomNotice => ({ kind: 'lostRace', race })),
          ...(elsewhere > 0 ? [{ kind: 'elsewhere', kills: elsewhere } as const] : []),
        ];
      }),
    );
  });
  const baseline$ = inSlices(counts, scheduler).pipe(map(take), ignoreElements());
  const degraded$ = wakeups$.pipe(
    map(({ refused }) => refused),
    startWith(undefined),
    distinctUntilChanged(),
    skip(1),
    map((reason): OomNotice => ({ kind: 'degraded', reason })),
  );
  let lookedAtMs = Number.NEGATIVE_INFINITY;
  // No timer of its own: idle, there is one occasion in ten seconds.
  const checksDue$ = checks$.pipe(filter(() => scheduler.now() - lookedAtMs >= OOM_CHECK_MS));
  // The last of these is not to be lost: there may be no other occasion for an hour.
  const wakeupsDue$ = wakeups$.pipe(
    delay(OOM_WAKEUP_DELAY_MS, scheduler),
    throttleTime(OOM_CHECK_MS, scheduler, { leading: true, trailing: true }),
  );
  const looks$ = merge(checksDue$, wakeupsDue$).pipe(
    tap(() => {
      lookedAtMs = scheduler.now();
    }),
    filter(() => (total() ?? explained) > explained),
    exhaustMap(() => concat(timer(OOM_SETTLE_MS, scheduler).pipe(ignoreElements()), pass$)),
  );
  return merge(degraded$, concat(baseline$, looks$));
}

/** The cgroups whose count grew, with what it grew by. */
function growth(
  known: ReadonlyMap<string, number>,
  seen: readonly OomKillCount[],
): readonly OomKillCount[] {
  return seen
    .map((count) => ({ ...count, kills: count.kills - (known.get(count.cgroupId) ?? 0) }))
    .filter(({ kills }) => kills > 0);
}

/** One for each pod. */
function racesOf(grown: readonly OomKillCount[], atMs: number): readonly LostRace[] {
  const pods = new Map<string, OomKillCount[]>();
  for (const count of grown) {
    const others = pods.get(count.podName);
    if (others === undefined) pods.set(count.podName, [count]);
    else others.push(count);
  }
  return [...pods].map(([podName, cgroups]) => {
    const most = cgroups.reduce((one, other) => (other.kills > one.kills ? other : one));
    const kills = cgroups.reduce((sum, one) => sum + one.kills, 0);
    return { podName, cgroup: most.cgroup, kills, atMs };
  });
}

/** All steps of a reading, taken in slices with turns of the event loop in between. */
function inSlices<T>(
  read: () => Iterable<readonly T[]>,
  scheduler: SchedulerLike,
): Observable<readonly T[]> {
  return new Observable((subscriber) => {
    const steps = read()[Symbol.iterator]();
    const all: T[] = [];
    const next = (): void => subscriber.add(scheduler.schedule(slice));
    const slice = (): void => {
      const endMs = scheduler.now() + SLICE_MS;
      do {
        const step = steps.next();
        if (step.done === true) {
          subscriber.next(all);
          subscriber.complete();
          return;
        }
        all.push(...step.value);
      } while (scheduler.now() < endMs);
      next();
    };
    next();
  });
}

/** An "out of memory" of the kernel, or that it will be told from now on; or why it will not. */
export interface OomWakeup {
  readonly refused: string | undefined;
}

/**
 * Wakes up when the node's cgroup runs out of memory; of a pod that meets its own limit the kernel
 * tells only the pod's cgroup and those below it. Registered anew when the node's cgroup is another.
 *
 * Cold. Holds an eventfd. Ends with `cgroupId$`.
 */
export function oomWakeups(
  native: Pick<NativeAddon, 'watchMemcg'>,
  directory: string,
  cgroupId$: Observable<string>,
): Observable<OomWakeup> {
  return cgroupId$.pipe(
    distinctUntilChanged(),
    switchMap(
      () =>
        new Observable<OomWakeup>((subscriber) => {
          const refuse = (error: unknown): void =>
            subscriber.next({ refused: error instanceof Error ? error.message : String(error) });
          try {
            const watch = native.watchMemcg(directory, { kind: 'oom' }, () =>
              subscriber.next({ refused: undefined }),
            );
            subscriber.add(() => watch.close());
            // A node that was removed at this very moment is watched anew, and is no trouble then.
            watch.armed.then(() => subscriber.next({ refused: undefined }), refuse);
          } catch (error) {
            refuse(error);
          }
        }),
    ),
  );
}

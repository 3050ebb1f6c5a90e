/** The streams that the daemon is wired of. */

import {
  distinctUntilChanged,
  EMPTY,
  filter,
  map,
  merge,
  type Observable,
  scan,
  switchMap,
  take,
  withLatestFrom,
} from 'rxjs';
import type { EvictDecision } from '../actions/evict.ts';
import type { Turn, WakeReason } from '../core/pipeline.ts';
import type { FilesystemName } from '../core/signal.ts';
import { thresholdId } from '../core/threshold.ts';
import type { FilesystemNotice } from '../ports/filesystem.ts';
import type { NotificationPath } from '../ports/notification.ts';
import type { OomNotice } from '../ports/oom-kills.ts';
import { diskPollMs } from '../sources/disk.ts';
import { FILESYSTEM_DEADLINE_MS, filesystems } from '../sources/filesystem.ts';
import { type MemcgNotice, memcgThresholds } from '../sources/memcg-threshold.ts';
import { oomKills, oomWakeups } from '../sources/oom-kills.ts';
import { type ModelEvent, OOM_KILLS } from '../surfaces/status.ts';
import { REHEARSED_LISTING_MS } from './rehearsal.ts';
import { PODS } from './reports.ts';
import { watchedPaths } from './settings.ts';
import { notifier, thresholdsOf, type Wiring } from './wiring.ts';

/** Every kernel path there is, where it was asked for and can be had. */
export function kernelNotices(
  wiring: Wiring,
  turns$: Observable<unknown>,
): Observable<MemcgNotice> {
  return wiring.settled$.pipe(
    map(() => notificationKey(wiring)),
    // What is armed stays so where a reload changes nothing about it.
    distinctUntilChanged(),
    switchMap(() => {
      const native = notifier(wiring);
      if (native === undefined) return EMPTY;
      return merge(
        ...wiring.current().view.memory.map(({ signal, directory }) =>
          memcgThresholds({
            native,
            directory,
            thresholds: thresholdsOf(wiring, signal),
            readings$: turns$.pipe(
              map(() => wiring.current().view.reading(signal)),
              filter((reading) => reading !== undefined),
            ),
          }),
        ),
      );
    }),
  );
}

/** By what it is told whether the kernel is to be asked for something else. */
function notificationKey(wiring: Wiring): string {
  const { settings, view } = wiring.current();
  return JSON.stringify([
    notifier(wiring) !== undefined,
    settings.compatibility,
    settings.memorySource,
    view.memory.map(({ signal, directory }) => [signal, directory]),
    settings.policy.thresholds.map(({ signal, kind, value, gracePeriodMs }) => [
      signal,
      kind,
      value.text,
      gracePeriodMs,
    ]),
  ]);
}

/** What is measured of the filesystems that a threshold is about. */
export function filesystemNotices({
  current,
  settled$,
  scheduler,
}: Wiring): Observable<FilesystemNotice> {
  return filesystems({
    paths: settled$.pipe(map(() => watchedPaths(current().settings))),
    scheduler,
    deadlineMs: FILESYSTEM_DEADLINE_MS,
    pollAfterMs: (path, before, now) => {
      const { filesystems: all, policy, polling, pollIntervalMs } = current().settings;
      const { thresholds } = policy;
      return diskPollMs({ paths: all, thresholds, polling, pollIntervalMs }, path, before, now);
    },
  });
}

/** Why a pod that has had TERM gets no KILL by the settings as they are now; undefined when it does. */
export function forbidden(
  { current, runtime }: Wiring,
  { pod, cause }: EvictDecision,
): string | undefined {
  const { settings } = current();
  if (settings.dryRun) return 'dry run';
  const id = cause && thresholdId(cause.threshold);
  if (id !== undefined && !settings.policy.thresholds.some((one) => thresholdId(one) === id)) {
    return 'its threshold is gone';
  }
  const now = runtime.observePods().find((one) => one.id === pod.id);
  return now === undefined ? 'nothing makes it a pod any more' : now.protectedBecause;
}

/** One event for all that a turn says: the model is made anew once. */
export function turnEvent(
  turn: Turn,
  { current, podsTrouble }: Wiring,
  unaccounted: ReadonlyMap<FilesystemName, number> | undefined,
): ModelEvent {
  const { settings, view } = current();
  return {
    kind: 'turn',
    turn,
    readings: view.readings(),
    filesystems: view.filesystems(),
    ...(unaccounted === undefined ? {} : { unaccounted }),
    troubles: new Map([...view.troubles(), [PODS, podsTrouble()]]),
    dryRun: settings.dryRun,
  };
}

/** What a notice has the pipeline read for: nothing where it only tells how a threshold is followed. */
export function wakeReasons(notice: MemcgNotice): readonly WakeReason[] {
  if (notice.kind === 'path') return [];
  // None of the kernel's: armed anew.
  return [notice.events === 0 ? 'asked' : 'wakeup'];
}

/** What the kernel's OOM killer does: looked for at each turn, and when the node runs out of memory. */
export function oomNoticesOf(wiring: Wiring, turns$: Observable<Turn>): Observable<OomNotice> {
  const { node, scheduler, runtime, current, settled$ } = wiring;
  const cgroupId$ = turns$.pipe(
    map(() => current().view.reading('memory.available')?.cgroupId),
    filter((cgroupId) => cgroupId !== undefined),
  );
  const native$ = settled$.pipe(
    map(() => notifier(wiring)),
    distinctUntilChanged(),
  );
  return oomKills({
    checks$: turns$,
    wakeups$: native$.pipe(
      switchMap((native) =>
        native === undefined ? EMPTY : oomWakeups(native, node.directory, cgroupId$),
      ),
    ),
    counts: () => runtime.oomKills(),
    scheduler,
  });
}

export function oomEvents(notice: OomNotice): readonly ModelEvent[] {
  switch (notice.kind) {
    case 'lostRace':
      return [notice];
    case 'elsewhere':
      return [];
    case 'degraded':
      return [{ kind: 'degraded', part: OOM_KILLS, reason: notice.reason }];
  }
}

export function readyOf(
  wiring: Wiring,
  turns$: Observable<Turn>,
  paths$: Observable<NotificationPath>,
): Observable<Turn> {
  const { view } = wiring.current();
  const count = view.memory.flatMap(({ signal }) => thresholdsOf(wiring, signal)).length;
  if (notifier(wiring) === undefined || count === 0) return turns$.pipe(take(1));
  return paths$.pipe(
    scan((armed, path) => armed.add(path.threshold), new Set<string>()),
    filter((armed) => armed.size === count),
    take(1),
    switchMap(() => turns$.pipe(take(1))),
  );
}

/** When a threshold is near and nothing is decided yet: after the turn that the same event brings. */
export function approaches(
  notices$: Observable<MemcgNotice>,
  turns$: Observable<Turn>,
): Observable<unknown> {
  return notices$.pipe(
    filter(({ kind }) => kind === 'approach'),
    withLatestFrom(turns$),
    filter(
      ([, { state, podsRead }]) =>
        state.inFlight === undefined &&
        state.due.length === 0 &&
        podsRead.tookMs <= REHEARSED_LISTING_MS,
    ),
  );
}

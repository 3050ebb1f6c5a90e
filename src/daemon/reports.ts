/** What is logged beside turns and outcomes. */

import {
  distinctUntilChanged,
  filter,
  map,
  type Observable,
  pairwise,
  type Subscription,
  scan,
  skip,
  startWith,
} from 'rxjs';
import { flapping, NOT_FLAPPING } from '../core/flapping.ts';
import type { Turn } from '../core/pipeline.ts';
import type { FilesystemNotice } from '../ports/filesystem.ts';
import type { NotificationPath } from '../ports/notification.ts';
import type { Logger } from '../surfaces/log.ts';
import { filesystemKey, reportFlapping, reportLayout, reportPath } from '../surfaces/report.ts';
import type { RuntimeNotice } from './runtime.ts';
import type { Wiring } from './wiring.ts';

/** What is degraded where the runtime does not answer. */
export const RUNTIME = 'runtime';

/** What is degraded where pods are missing from the listing. */
export const PODS = 'pods';

/** Says when a part cannot be read as it should be, when it can again, and when it is of another cgroup. */
export function reportReadings(
  { logger, current }: Wiring,
  turns$: Observable<Turn>,
): Subscription {
  return turns$
    .pipe(
      map(() => {
        const { view } = current();
        const ids = view.readings().map(({ signal, cgroupId }) => [signal, cgroupId] as const);
        return { troubles: view.troubles(), cgroupIds: new Map<string, string>(ids) };
      }),
      startWith(undefined),
      pairwise(),
    )
    .subscribe(([before, now]) => {
      for (const [part, trouble] of now?.troubles ?? []) {
        const was = before?.troubles.get(part);
        const [wasId, isId] = [before?.cgroupIds.get(part), now?.cgroupIds.get(part)];
        const isNewGroup = wasId !== undefined && isId !== undefined && wasId !== isId;
        // What is said of figures that cannot be true holds numbers, which change.
        if (trouble !== undefined && was === undefined) {
          logger.warn({ part, reason: trouble }, 'degraded');
        } else if (trouble === undefined && (was !== undefined || isNewGroup)) {
          logger.warn({ part }, 'read again as it should be');
        }
      }
    });
}

/** Says which filesystem is which, at first and when that changes, and which has no inode signal. */
export function reportFilesystems(
  { logger, current }: Wiring,
  measured$: Observable<FilesystemNotice>,
): Subscription {
  return measured$
    .pipe(
      map(() => current().view.filesystems()),
      distinctUntilChanged((before, now) => filesystemKey(before) === filesystemKey(now)),
      filter((states) => states.some(({ reading }) => reading !== undefined)),
    )
    .subscribe((states) => reportLayout(logger, states));
}

/** Says when a node condition comes and goes, and when it no longer does. */
export function reportFlaps(logger: Logger, turns$: Observable<Turn>): Subscription {
  return turns$
    .pipe(
      scan(
        ({ flaps }, { conditions, sample: { nowMs }, policy }) => ({
          flaps: flapping(flaps, conditions, nowMs, policy.pressureTransitionPeriodMs),
          nowMs,
        }),
        { flaps: NOT_FLAPPING, nowMs: 0 },
      ),
    )
    .subscribe(({ flaps, nowMs }) => reportFlapping(logger, flaps.notices, nowMs, Date.now()));
}

/** Says when pods are missing from the listing, and when none is any more. */
export function reportPods(
  logger: Logger,
  turns$: Observable<Turn>,
  podsTrouble: () => string | undefined,
): Subscription {
  return turns$
    .pipe(
      map(() => podsTrouble()),
      startWith(undefined),
      distinctUntilChanged(),
      skip(1),
    )
    .subscribe((reason) => {
      if (reason === undefined) logger.warn({ part: PODS }, 'all pods are listed again');
      else logger.warn({ part: PODS, reason }, 'degraded');
    });
}

/** Says what is wrong with a pod that a runtime names. All texts are from outside, and logged as data. */
export function reportPodNotice(
  logger: Logger,
  notice: Extract<RuntimeNotice, { kind: 'doubt' | 'fault' }>,
): void {
  if (notice.kind === 'fault') {
    const { podName: pod, reason } = notice.fault;
    logger.warn({ pod, reason }, 'a label cannot be read: it counts as not given');
    return;
  }
  const { podName: pod, reason, isElsewhere } = notice.doubt;
  logger[isElsewhere ? 'debug' : 'warn']({ pod, reason }, 'no pod: it is never evicted');
}

export function reportPaths(logger: Logger, paths$: Observable<NotificationPath>): Subscription {
  const last = new Map<string, NotificationPath>();
  return paths$.subscribe((path) => {
    reportPath(logger, last.get(path.threshold), path);
    last.set(path.threshold, path);
  });
}

import type { SchedulerLike } from 'rxjs';
import { filter, firstValueFrom, scan, take, timeout, toArray } from 'rxjs';
import type { Settings } from '../config/settings.ts';
import { type Arming, armingFor, inCounter } from '../core/memcg.ts';
import type { SignalObservation } from '../core/observation.ts';
import { approximateCount, formatBytes } from '../core/quantity.ts';
import { SIGNALS, type Signal } from '../core/signal.ts';
import { type Threshold, thresholdLevel } from '../core/threshold.ts';
import { nodeViewOf, watchedPaths } from '../daemon/settings.ts';
import type { NodeCgroup } from '../kernel/node-cgroup.ts';
import type { FilesystemNotice } from '../ports/filesystem.ts';
import type { MemoryReading } from '../ports/readings.ts';
import { FILESYSTEM_DEADLINE_MS, filesystems } from '../sources/filesystem.ts';

/** What this host has of each signal, as `run` would see it first. */
export interface HostFigures {
  readonly observations: ReadonlyMap<Signal, SignalObservation>;
  readonly memory: ReadonlyMap<Signal, MemoryReading>;
  /** By part, a signal or a filesystem: why it cannot be read here. */
  readonly troubles: ReadonlyMap<string, string>;
}

/** Reads every signal that has a threshold, once; waits for no filesystem longer than its deadline. */
export async function hostFigures(
  settings: Settings,
  node: NodeCgroup,
  scheduler: SchedulerLike,
): Promise<HostFigures> {
  const view = nodeViewOf(settings, node, scheduler);
  try {
    for (const notice of await measureOnce(watchedPaths(settings), scheduler)) view.note(notice);
    const observations = view.read();
    const troubles = [...view.troubles()].flatMap(([part, trouble]) =>
      trouble === undefined ? [] : [[part, trouble] as const],
    );
    return {
      observations: new Map(observations.map((one) => [one.signal, one])),
      memory: new Map(view.readings().map((one) => [one.signal, one])),
      troubles: new Map(troubles),
    };
  } finally {
    view.close();
  }
}

/** One notice of each path; none of one that the helper had no turn for. */
function measureOnce(
  paths: readonly string[],
  scheduler: SchedulerLike,
): Promise<readonly FilesystemNotice[]> {
  if (paths.length === 0) return Promise.resolve([]);
  return firstValueFrom(
    filesystems({ paths, scheduler, pollAfterMs: () => Number.MAX_SAFE_INTEGER }).pipe(
      scan(
        (known, notice) => known.set(pathOf(notice), notice),
        new Map<string, FilesystemNotice>(),
      ),
      filter((known) => known.size === paths.length),
      take(1),
      timeout({ first: (paths.length + 1) * FILESYSTEM_DEADLINE_MS, scheduler, with: () => [] }),
      toArray(),
    ),
  ).then(([known]) => [...(known?.values() ?? [])]);
}

function pathOf(notice: FilesystemNotice): string {
  return notice.kind === 'read' ? notice.reading.path : notice.path;
}

/** The threshold's level on this host, in the signal's unit; a hyphen where it cannot be read. */
export function levelHere(threshold: Threshold, { observations }: HostFigures): string {
  const observation = observations.get(threshold.signal);
  if (observation === undefined) return '-';
  const level = thresholdLevel(threshold, observation.capacity, false);
  return approximateCount(level, SIGNALS[threshold.signal].unit);
}

/** What is available of what there is. */
export function availableHere({ signal }: Threshold, { observations }: HostFigures): string {
  const observation = observations.get(signal);
  if (observation === undefined) return '-';
  const { unit } = SIGNALS[signal];
  return `${approximateCount(observation.available, unit)} of ${approximateCount(observation.capacity, unit)}`;
}

/** How its crossing would be heard of. */
export function armedHere(
  threshold: Threshold,
  { memory }: HostFigures,
  isNotified: boolean,
): string {
  const reading = memory.get(threshold.signal);
  if (reading === undefined || !isNotified) return 'polled';
  const { capacityBytes, deductedBytes, uncountedBytes } = reading;
  const bytes = thresholdLevel(threshold, capacityBytes, false);
  return describeArming(inCounter(armingFor(capacityBytes, bytes, deductedBytes), uncountedBytes));
}

function describeArming(arming: Arming): string {
  switch (arming.kind) {
    case 'alwaysMet':
      return 'always met';
    case 'followed':
      return 'reclaim, and close polls';
    case 'armed':
      return `usage of ${formatBytes(arming.levels[0])}`;
  }
}

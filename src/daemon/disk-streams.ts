/** What tells of the disks beside their figures, and what is said of it. */
import { defer, distinctUntilChanged, EMPTY, filter, map, merge, type Observable } from 'rxjs';
import { cgroupOf, pathIn } from '../kernel/hierarchy.ts';
import type { NodeCgroup } from '../kernel/node-cgroup.ts';
import type { ContainerUse, DiskTeller, DiskUseNotice } from '../ports/disk-usage.ts';
import type { FilesystemNotice } from '../ports/filesystem.ts';
import { diskUsage, type FilesystemsNotice, runtimeFilesystems } from '../sources/disk-usage.ts';
import { walker } from '../sources/walker.ts';
import { type Replaced, usageAfterMs, watchesDisks } from './disks.ts';
import type { Wiring } from './wiring.ts';

/** What is degraded where it is not known what pods use, where the runtime keeps things, and where a pod stays. */
export const DISK_USAGE = 'disk usage';
export const RUNTIME_FILESYSTEMS = 'runtime filesystems';
export const LEFT_OVER = 'left over';

export type DiskNotice = DiskUseNotice | FilesystemsNotice;

/** All of it in the background, and only where a threshold is about a disk. */
export function diskNotices(
  { current, scheduler, settled$ }: Wiring,
  teller: DiskTeller | undefined,
  measured$: Observable<FilesystemNotice>,
): Observable<DiskNotice> {
  if (teller === undefined) return EMPTY;
  const isWatched = (): boolean => watchesDisks(current().settings);
  const used$ = defer(() =>
    diskUsage({
      teller,
      walker: walker({ scheduler }),
      scheduler,
      ticks$: measured$.pipe(filter(isWatched)),
      afterMs: () => usageAfterMs(current().settings, current().view.filesystems()),
    }),
  );
  const wanted$ = settled$.pipe(map(isWatched), distinctUntilChanged());
  return merge(used$, runtimeFilesystems(teller, wanted$, scheduler));
}

/** What is to be said after a notice: why a part does not work as it should, undefined where it does. */
export interface Trouble {
  readonly part: string;
  readonly reason: string | undefined;
}

/** Nothing where a notice says nothing of how well things go. */
export function troubleOf(notice: DiskNotice): Trouble | undefined {
  switch (notice.kind) {
    case 'failed':
      return { part: DISK_USAGE, reason: notice.reason };
    case 'used':
      return { part: DISK_USAGE, reason: troubleIn(notice.containers) };
    case 'unknown':
      return { part: RUNTIME_FILESYSTEMS, reason: notice.reason };
    case 'found':
      return { part: RUNTIME_FILESYSTEMS, reason: undefined };
    case 'deleted':
      return undefined;
  }
}

function troubleIn(containers: ReadonlyMap<string, ContainerUse>): string | undefined {
  const troubles = [...containers.values()].flatMap(({ trouble }) => trouble ?? []);
  const [first] = troubles;
  if (first === undefined) return undefined;
  const others = troubles.length - 1;
  return others === 0 ? first : `${first}, and ${others} more`;
}

/** The event of a path that cannot be measured. The reason is the kubelet's. */
export function replacedEvent({ name, path, error, by }: Replaced) {
  const instead = by === undefined ? `${name} is not known` : `${by} stands for it`;
  const message = `${name} cannot be measured where the runtime says that it is, ${path}: ${error}; ${instead}`;
  return { type: 'Warning', reason: 'InvalidDiskCapacity', message } as const;
}

/** The cgroup of a process, relative to the root of the memory hierarchy; undefined where it is gone. */
export function cgroupIn({ hierarchy }: NodeCgroup, pid: number): string | undefined {
  const directory = cgroupOf(pid, 'memory', hierarchy);
  return directory === undefined ? undefined : pathIn(hierarchy, directory).slice(1);
}

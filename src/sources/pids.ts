import type { SignalObservation } from '../core/observation.ts';
import { type ControlFile, openControlFile } from '../kernel/control-file.ts';
import { wholeNumber } from '../kernel/fields.ts';
import type { ReadingFailure } from '../ports/readings.ts';

/** Reads how many tasks more a node may have. */
export interface PidReader {
  /** Fresh counters, or why there are none. Never throws; a cgroup made again is opened again. */
  read(): SignalObservation | ReadingFailure;
  close(): void;
}

export interface PidReaderInputs {
  /** The node's cgroup in the pids hierarchy; undefined for the host, or where there is none. */
  readonly directory: string | undefined;
  /** Where that hierarchy is mounted: the groups between bind the node too. */
  readonly mountPoint?: string | undefined;
  /** The monotonic clock. */
  readonly nowMs: () => number;
  /** Where procfs is mounted. */
  readonly procfs?: string;
}

/** What holds no limit of its own, as the kernel writes it. */
const UNLIMITED = 'max';

/**
 * A reader of `pid.available`. The kernel counts tasks, that is threads, against each limit.
 *
 * A node with a `pids.max` has that as its capacity, and `pids.current` of it is used; of the host,
 * and of a node without a limit, the capacity is the lower of `pid_max` and `threads-max`, and what
 * runs is the total in `/proc/loadavg`. Of the host, the node and what lies between the one counts that
 * leaves least. The files stay open: under the pressure that they tell of
 * nothing more is needed. Source: Linux, admin-guide/cgroup-v1/pids.rst, admin-guide/sysctl/kernel.rst;
 * proc(5), `/proc/loadavg`; kubelet `stats/pidlimit/pidlimit_linux.go`.
 */
export function pidReader({
  directory,
  mountPoint,
  nowMs,
  procfs = '/proc',
}: PidReaderInputs): PidReader {
  const groups = groupsUpTo(mountPoint, directory);
  const files = new Map<string, ControlFile>();
  const read = (path: string): string => {
    const file = files.get(path) ?? openControlFile(path);
    files.set(path, file);
    return file.read().trim();
  };
  const close = (): void => {
    for (const file of files.values()) file.close();
    files.clear();
  };
  const host = () => ({
    capacity: Math.min(
      wholeNumber(read(`${procfs}/sys/kernel/pid_max`)),
      wholeNumber(read(`${procfs}/sys/kernel/threads-max`)),
    ),
    used: tasksOf(read(`${procfs}/loadavg`)),
  });
  const counts = () =>
    groups
      .flatMap((group) => {
        const limit = read(`${group}/pids.max`);
        return limit === UNLIMITED
          ? []
          : [{ capacity: wholeNumber(limit), used: wholeNumber(read(`${group}/pids.current`)) }];
      })
      .reduce(
        (least, one) => (one.capacity - one.used < least.capacity - least.used ? one : least),
        host(),
      );
  const observe = (): SignalObservation => {
    const atMs = nowMs();
    const { capacity, used } = counts();
    return { signal: 'pid.available', capacity, available: Math.max(0, capacity - used), atMs };
  };
  return {
    read: () => {
      try {
        return observe();
      } catch {
        // Counters of a removed cgroup answer ENODEV for ever: look for one made again.
        close();
      }
      try {
        return observe();
      } catch (error) {
        close();
        return { error: error instanceof Error ? error.message : String(error) };
      }
    },
    close,
  };
}

/** The node's group and those above it, without the root, which has no limit. */
function groupsUpTo(
  mountPoint: string | undefined,
  directory: string | undefined,
): readonly string[] {
  if (directory === undefined) return [];
  const top = mountPoint ?? directory.slice(0, directory.lastIndexOf('/'));
  const below = directory
    .slice(top.length)
    .split('/')
    .filter((name) => name !== '');
  return below.map((_, index) => `${top}/${below.slice(0, index + 1).join('/')}`);
}

/** The tasks that exist: behind the stroke of `0.20 0.18 0.12 1/80 11206`. */
function tasksOf(loadavg: string): number {
  const tasks = /^\S+ \S+ \S+ \d+\/(\d+) /.exec(loadavg)?.[1];
  if (tasks === undefined)
    throw new Error(`not a loadavg: ${JSON.stringify(loadavg.slice(0, 80))}`);
  return Number(tasks);
}

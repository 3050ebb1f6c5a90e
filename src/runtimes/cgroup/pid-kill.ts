/**
 * Signalling by number, where there is no pidfd and `--allow-pid-kill` permits it. The number may
 * become another process's between the check and the signal, some microseconds later: no check can
 * do away with that, which is why it must be asked for.
 */

import type { BytePath } from '../../kernel/byte-path.ts';
import { readControlFile } from '../../kernel/control-file.ts';
import { isInCgroup } from '../../kernel/hierarchy.ts';
import type { Pidfd } from '../../native/types.ts';

/**
 * Stands in for the addon's `openPidfd`, for processes of the memory cgroup `pod` (its path within
 * the hierarchy) and of those below. What is opened is known by its start time; each signal is
 * preceded by a look at the start time and the cgroup. No end is told: `onExit` never calls.
 */
export function processByPid(pid: number, pod: BytePath): Pidfd {
  const startedAt = startTime(pid);
  if (startedAt === undefined) throw gone(pid);
  return {
    pid,
    signal: (signal) => {
      // The start time last: whoever has the number then had it when the cgroup was read.
      if (!isInCgroup(pid, 'memory', pod) || startTime(pid) !== startedAt) throw gone(pid);
      process.kill(pid, signal);
    },
    onExit: () => undefined,
    release: () => Promise.reject(new Error('process_mrelease needs a pidfd')),
    close: () => undefined,
  };
}

/** In clock ticks since the boot. Source: proc(5), field 22 of `/proc/[pid]/stat`. */
function startTime(pid: number): string | undefined {
  try {
    const stat = readControlFile(`/proc/${pid}/stat`);
    // The name in field 2 may hold anything, spaces and brackets too; it ends at the last one.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    return undefined;
  }
}

function gone(pid: number): NodeJS.ErrnoException {
  return Object.assign(new Error(`pid ${pid} is no process of the pod`), { code: 'ESRCH' });
}

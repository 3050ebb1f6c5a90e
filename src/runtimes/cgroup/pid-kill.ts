/**
 * Signalling by number, where there is no pidfd and `--allow-pid-kill` permits it. The number may
 * become another process's between the check and the signal, some microseconds later: no check can
 * do away with that, which is why it must be asked for.
 */

import type { BytePath } from '../../kernel/byte-path.ts';
import { isInCgroup } from '../../kernel/hierarchy.ts';
import { statField } from '../../kernel/process-stat.ts';
import type { Pidfd } from '../../native/types.ts';

/**
 * Stands in for the addon's `openPidfd`, for processes of the memory cgroup `pod` (its path within
 * the hierarchy) and of those below. What is opened is known by its start time; each signal is
 * preceded by a look at the start time and the cgroup. No end is told: `onExit` never calls.
 */
export function processByPid(pid: number, pod: BytePath): Pidfd {
  const startedAt = statField(pid, 'startTime');
  if (startedAt === undefined) throw gone(pid);
  return {
    pid,
    signal: (signal) => {
      // The start time last: whoever has the number then had it when the cgroup was read.
      if (!isInCgroup(pid, 'memory', pod) || statField(pid, 'startTime') !== startedAt)
        throw gone(pid);
      process.kill(pid, signal);
    },
    onExit: () => undefined,
    release: () => Promise.reject(new Error('process_mrelease needs a pidfd')),
    close: () => undefined,
  };
}

function gone(pid: number): NodeJS.ErrnoException {
  return Object.assign(new Error(`pid ${pid} is no process of the pod`), { code: 'ESRCH' });
}

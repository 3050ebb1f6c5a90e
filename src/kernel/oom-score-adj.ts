import { readControlRecord } from './control-file.ts';

/** The adjustment at which the kernel's OOM killer never takes a process. Source: proc(5). */
export const OOM_SCORE_ADJ_NEVER = -1000;

/**
 * `/proc/PID/oom_score_adj`; undefined for a process that is gone, or outside of evictd's PID
 * namespace (0). Throws what else open(2) and read(2) give.
 *
 * @param proc where procfs is mounted
 */
export function oomScoreAdj(pid: number, proc = '/proc'): number | undefined {
  if (pid === 0) return undefined;
  try {
    return Number.parseInt(readControlRecord(`${proc}/${pid}/oom_score_adj`), 10);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return undefined;
    throw error;
  }
}

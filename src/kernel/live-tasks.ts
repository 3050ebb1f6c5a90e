import { readdirSync } from 'node:fs';
import { isExiting } from './process-stat.ts';

/** How many threads of a process stand for it. */
const THREAD_LIMIT = 64;

/** A task in procfs: a process by its leading thread, or one of its threads. */
export type Task = Parameters<typeof isExiting>[0];

/**
 * The tasks that tell where a process is: its leading thread; where that has ended while others go on,
 * those others, at most {@link THREAD_LIMIT}. The kernel tells of a cgroup v1 task that has ended that
 * it is in the root of each hierarchy. Empty when the process is gone.
 */
export function liveTasks(pid: number): readonly Task[] {
  if (!isExiting(pid)) return [pid];
  try {
    return readdirSync(`/proc/${pid}/task`)
      .slice(0, THREAD_LIMIT)
      .map((tid): Task => `${pid}/task/${Number(tid)}`)
      .filter((task) => !isExiting(task));
  } catch {
    return [];
  }
}

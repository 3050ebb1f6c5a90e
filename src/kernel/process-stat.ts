import { readControlFile } from './control-file.ts';

/** Where fields of `/proc/[pid]/stat` stand, as proc(5) counts them. */
export const STAT_FIELDS = { parent: 4, flags: 9, startTime: 22 } as const;

/** The first field after the name. */
const STATE = 3;

/** The flag of a task that is on its way out or has ended. Source: Linux, `include/linux/sched.h`. */
const PF_EXITING = 0x4;

/**
 * A field of `/proc/[pid]/stat`, one after the name; undefined when the process is gone.
 *
 * @param task the number of a process, or `PID/task/TID` for a thread
 */
export function statField(
  task: number | `${number}/task/${number}`,
  field: keyof typeof STAT_FIELDS,
): string | undefined {
  try {
    const stat = readControlFile(`/proc/${task}/stat`);
    // The name in field 2 may hold anything, spaces and brackets too; it ends at the last one.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[STAT_FIELDS[field] - STATE];
  } catch {
    return undefined;
  }
}

/** Whether a task is on its way out, or has ended; so is one that is not there any more. */
export function isExiting(task: Parameters<typeof statField>[0]): boolean {
  const flags = statField(task, 'flags');
  return flags === undefined || (Number(flags) & PF_EXITING) !== 0;
}

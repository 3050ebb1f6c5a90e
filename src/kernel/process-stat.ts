import { readControlFile } from './control-file.ts';

/** Where fields of `/proc/[pid]/stat` stand, as proc(5) counts them. */
export const STAT_FIELDS = { parent: 4, startTime: 22 } as const;

/** The first field after the name. */
const STATE = 3;

/** A field of `/proc/[pid]/stat`, one after the name; undefined when the process is gone. */
export function statField(pid: number, field: keyof typeof STAT_FIELDS): string | undefined {
  try {
    const stat = readControlFile(`/proc/${pid}/stat`);
    // The name in field 2 may hold anything, spaces and brackets too; it ends at the last one.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[STAT_FIELDS[field] - STATE];
  } catch {
    return undefined;
  }
}

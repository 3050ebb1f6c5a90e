import { readControlFile } from './control-file.ts';

/** The longest chain of parents that is followed. */
const LONGEST_CHAIN = 1000;

/** A process and its ancestors up to init, the process first. Ends early where /proc does. */
export function ancestry(pid: number): readonly number[] {
  const chain: number[] = [];
  for (let next = pid; next > 0 && chain.length < LONGEST_CHAIN; next = parentOf(next))
    chain.push(next);
  return chain;
}

/** The parent's pid, 0 for none. Source: proc(5), field 4 of `/proc/[pid]/stat`. */
function parentOf(pid: number): number {
  try {
    const stat = readControlFile(`/proc/${pid}/stat`);
    // The name in field 2 may hold anything, spaces and brackets too; it ends at the last one.
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1] ?? 0);
  } catch {
    return 0;
  }
}

import { readControlFile } from './control-file.ts';

/**
 * How many descriptors this process may have open: the soft RLIMIT_NOFILE. Infinity for no limit, and
 * where procfs does not say. Source: proc(5), `/proc/[pid]/limits`.
 */
export function descriptorLimit(limits = '/proc/self/limits'): number {
  try {
    const soft = /^Max open files +(\d+)/m.exec(readControlFile(limits))?.[1];
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/** Whether an error says that there are no descriptors left, here or on the whole machine. */
export function isOutOfDescriptors(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'EMFILE' || code === 'ENFILE';
}

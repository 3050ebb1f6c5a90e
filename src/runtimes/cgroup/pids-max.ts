import { closeSync, writeFileSync } from 'node:fs';
import { asPath, type BytePath } from '../../kernel/byte-path.ts';
import { readControlFile } from '../../kernel/control-file.ts';
import { heldPath, openDirectory } from '../../kernel/directory.ts';
import { compare } from './twin.ts';

/**
 * Has no process of a pod fork any more: sets `pids.max` of its twin in the pids hierarchy to 0,
 * where that holds only processes of the pod. What is there already lives on. Source: Linux,
 * admin-guide/cgroup-v1/pids.rst: it may be set below what there is.
 *
 * @returns what puts the former value back, unless somebody has set another meanwhile; to be called
 * once. Undefined when nothing was set. Never throws.
 */
export function stopForks(directory: BytePath, pod: BytePath): (() => void) | undefined {
  let fd: number | undefined;
  try {
    fd = openDirectory(directory);
    const held = heldPath(fd);
    const before = limitOf(held);
    const { pids, stranger } = compare(held, pod);
    if (before === '0' || stranger !== undefined || pids.length === 0) {
      closeSync(fd);
      return undefined;
    }
    setLimit(held, '0');
    return restorer(fd, held, before);
  } catch {
    // No such group, no such file, or it went meanwhile: the rounds go on without it.
    if (fd !== undefined) closeSync(fd);
    return undefined;
  }
}

function restorer(fd: number, held: BytePath, before: string): () => void {
  return () => {
    try {
      if (limitOf(held) === '0') setLimit(held, before);
    } catch {
      // Gone with the pod.
    } finally {
      closeSync(fd);
    }
  };
}

function limitOf(held: BytePath): string {
  return readControlFile(asPath(`${held}/pids.max`)).trim();
}

/** Without O_CREAT and O_TRUNC: a file that is not there is none of cgroupfs. */
function setLimit(held: BytePath, value: string): void {
  writeFileSync(asPath(`${held}/pids.max`), value, { flag: 'r+' });
}

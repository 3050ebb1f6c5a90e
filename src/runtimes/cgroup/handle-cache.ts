import type { BytePath } from '../../kernel/byte-path.ts';
import { descriptorLimit, isOutOfDescriptors } from '../../kernel/descriptors.ts';
import { openPod, type PodHandle } from './pod-handle.ts';

/** Pod directories that are held open at most. */
export const HANDLE_LIMIT = 1024;

/** Descriptors of one of them: the directory and two of its files. */
const DESCRIPTORS_EACH = 3;

/** Descriptors for all else: Node's own, counters, watches, clients of the socket, pidfds. */
const RESERVED_DESCRIPTORS = 128;

/** How many pods may be held open where a process may have so many descriptors; one at least. */
export function handleLimit(descriptors: number = descriptorLimit()): number {
  const spare = Math.floor((descriptors - RESERVED_DESCRIPTORS) / DESCRIPTORS_EACH);
  return Math.min(HANDLE_LIMIT, Math.max(1, spare));
}

/** Holds pods of one directory open. */
export interface HandleCache {
  /** The handle of a pod, opened if need be. Throws what open(2) gives. */
  get(name: BytePath): PodHandle;
  /** Closes the pod's handle, so that the next `get` opens what the name leads to then. */
  drop(name: BytePath): void;
  /** Closes what is not among `names`. */
  retain(names: ReadonlySet<BytePath>): void;
  close(): void;
}

/**
 * Beyond `limit` the newest handle makes way, not the one that was used longest ago: pods are read in
 * one order, in which that would be the next one's, and all would be opened anew in each pass.
 * Without a descriptor left, all make way.
 *
 * @param limit how many handles stay open
 */
export function handleCache(directory: BytePath, limit: number = handleLimit()): HandleCache {
  const handles = new Map<BytePath, PodHandle>();
  let newest: BytePath = '';
  const drop = (name: BytePath): void => {
    handles.get(name)?.close();
    handles.delete(name);
  };
  /** The newest, or, once that is gone, the one before it. */
  const lastOf = (name: BytePath): BytePath =>
    handles.has(name) ? name : ([...handles.keys()].at(-1) ?? name);
  const close = (): void => {
    for (const name of [...handles.keys()]) drop(name);
  };
  const open = (name: BytePath): PodHandle => {
    try {
      return openPod(directory, name);
    } catch (error) {
      if (!isOutOfDescriptors(error) || handles.size === 0) throw error;
      close();
      return openPod(directory, name);
    }
  };
  return {
    get: (name) => {
      const known = handles.get(name);
      if (known !== undefined) return known;
      if (handles.size >= limit) drop(lastOf(newest));
      const opened = open(name);
      handles.set(name, opened);
      newest = name;
      return opened;
    },
    drop,
    retain: (names) => {
      for (const name of [...handles.keys()]) if (!names.has(name)) drop(name);
    },
    close,
  };
}

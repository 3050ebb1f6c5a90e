import type { BytePath } from '../../kernel/byte-path.ts';
import { openPod, type PodHandle } from './pod-handle.ts';

/** Pod directories that are held open; each costs three descriptors. */
export const HANDLE_LIMIT = 1024;

/** Holds the most recently used pods of one directory open. */
export interface HandleCache {
  /** The handle of a pod, opened if need be. Throws what open(2) gives. */
  get(name: BytePath): PodHandle;
  /** Closes the pod's handle, so that the next `get` opens what the name leads to then. */
  drop(name: BytePath): void;
  /** Closes what is not among `names`. */
  retain(names: ReadonlySet<BytePath>): void;
  close(): void;
}

/** @param limit how many handles stay open; the least recently used is closed beyond it */
export function handleCache(directory: BytePath, limit: number = HANDLE_LIMIT): HandleCache {
  const handles = new Map<BytePath, PodHandle>();
  const drop = (name: BytePath): void => {
    handles.get(name)?.close();
    handles.delete(name);
  };
  return {
    get: (name) => {
      const known = handles.get(name);
      if (known !== undefined) {
        handles.delete(name);
        handles.set(name, known);
        return known;
      }
      const opened = openPod(directory, name);
      handles.set(name, opened);
      const oldest = handles.size > limit ? handles.keys().next().value : undefined;
      if (oldest !== undefined) drop(oldest);
      return opened;
    },
    drop,
    retain: (names) => {
      for (const name of [...handles.keys()]) if (!names.has(name)) drop(name);
    },
    close: () => {
      for (const name of [...handles.keys()]) drop(name);
    },
  };
}

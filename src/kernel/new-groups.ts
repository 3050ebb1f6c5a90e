/** Tells when cgroups are made or removed, as the kernel tells it of any directory. */
import { type FSWatcher, statSync, watch } from 'node:fs';
import { Observable, type Subscriber } from 'rxjs';

/** How many directories are followed. */
export const MOST_FOLLOWED = 32;

export interface GroupWatch {
  /** Follows these directories, and no others; what is not there is followed once it is named again. */
  follow(directories: readonly string[]): void;
  /** Hot: emits at each group that is made or removed right below them. Never errors; of itself it never ends. */
  readonly changes$: Observable<void>;
  close(): void;
}

/** Holds an inotify descriptor, and nothing that keeps the process running. */
export function watchGroups(): GroupWatch {
  const watches = new Map<string, { readonly watching: FSWatcher; readonly inode: bigint }>();
  const listeners = new Set<Subscriber<void>>();
  const drop = (directory: string): void => {
    watches.get(directory)?.watching.close();
    watches.delete(directory);
  };
  const follow = (directory: string): void => {
    try {
      const { ino: inode } = statSync(directory, { bigint: true });
      // One that was made again has the same name; the end of the former one is not told.
      if (watches.get(directory)?.inode === inode) return;
      drop(directory);
      const watching = watch(directory, { persistent: false }, () => {
        for (const listener of listeners) listener.next();
      });
      watching.on('error', () => drop(directory));
      watches.set(directory, { watching, inode });
    } catch {
      // It is gone, or the kernel follows no more: what it would have told comes with the next listing.
      drop(directory);
    }
  };
  return {
    follow: (directories) => {
      const wanted = new Set(directories.slice(0, MOST_FOLLOWED));
      for (const directory of watches.keys()) if (!wanted.has(directory)) drop(directory);
      for (const directory of wanted) follow(directory);
    },
    changes$: new Observable((subscriber) => {
      listeners.add(subscriber);
      return () => listeners.delete(subscriber);
    }),
    close: () => {
      for (const directory of [...watches.keys()]) drop(directory);
    },
  };
}

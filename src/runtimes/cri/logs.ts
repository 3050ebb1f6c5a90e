/** The logs of containers that are gone: with CRI they are left to whoever had the container made. */
import { constants } from 'node:fs';
import { type FileHandle, open, opendir, rmdir, unlink } from 'node:fs/promises';
import { placeBelow } from '../shared/place.ts';

/** How many entries of a directory are looked at for the rotated ones. */
const MOST_ENTRIES = 10_000;

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** How long a filesystem may take, ms. */
const LOGS_DEADLINE_MS = 2000;

/** Removes logs below one directory. Rejects with what the filesystem says, or where it does not within 2 s. */
export interface Logs {
  /** That file and those that were rotated away from it (`FILE.…`). */
  remove(logPath: string): Promise<void>;
  /** The directories that such files were in, as far as they are empty. */
  tidy(logPath: string): Promise<void>;
}

/**
 * No link is followed below `root`: each directory is opened by its name in the one before, and held. What does not
 * lie below it is left alone.
 *
 * @param root absolute
 */
export function logsBelow(root: string): Logs {
  const within = async (
    logPath: string,
    act: (directories: readonly FileHandle[], parts: readonly string[]) => Promise<void>,
  ): Promise<void> => {
    const parts = placeBelow(root, logPath)?.below.split('/');
    if (parts === undefined) return;
    const held: FileHandle[] = [];
    try {
      held.push(await open(root, DIRECTORY));
      for (const part of parts.slice(0, -1)) {
        held.push(await open(`${pathOf(held.at(-1))}/${part}`, DIRECTORY));
      }
      await act(held, parts);
    } catch (error) {
      // Somebody else was first.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    } finally {
      await Promise.all(held.map((handle) => handle.close()));
    }
  };
  // One that hangs keeps a thread of libuv's pool: nothing else is begun until it is back.
  let pending = 0;
  const inTime = (work: () => Promise<void>): Promise<void> =>
    new Promise((resolve, reject) => {
      if (pending > 0) {
        reject(new Error('the filesystem of the logs hangs'));
        return;
      }
      pending += 1;
      AbortSignal.timeout(LOGS_DEADLINE_MS).addEventListener('abort', () =>
        reject(new Error(`the filesystem of the logs: no answer within ${LOGS_DEADLINE_MS} ms`)),
      );
      work()
        .finally(() => {
          pending -= 1;
        })
        .then(resolve, reject);
    });
  const remove = (logPath: string): Promise<void> =>
    within(logPath, async (held, parts) => {
      const directory = pathOf(held.at(-1));
      const file = parts.at(-1) ?? '';
      for (const name of await filesIn(directory)) {
        if (name === file || name.startsWith(`${file}.`)) await unlink(`${directory}/${name}`);
      }
    });
  const tidy = (logPath: string): Promise<void> =>
    within(logPath, async (held, parts) => {
      for (let depth = held.length - 1; depth > 0; depth -= 1) {
        await rmdir(`${pathOf(held[depth - 1])}/${parts[depth - 1]}`);
      }
    }).catch(unless('ENOTEMPTY'));
  return {
    remove: (logPath) => inTime(() => remove(logPath)),
    tidy: (logPath) => inTime(() => tidy(logPath)),
  };
}

/** An open directory itself, whatever becomes of its name. */
function pathOf(handle: FileHandle | undefined): string {
  return `/proc/self/fd/${handle?.fd}`;
}

async function filesIn(directory: string): Promise<readonly string[]> {
  const names: string[] = [];
  let seen = 0;
  for await (const entry of await opendir(directory)) {
    seen += 1;
    if (seen > MOST_ENTRIES) break;
    if (entry.isFile()) names.push(entry.name);
  }
  return names;
}

function unless(code: string): (error: NodeJS.ErrnoException) => void {
  return (error) => {
    if (error.code !== code) throw error;
  };
}

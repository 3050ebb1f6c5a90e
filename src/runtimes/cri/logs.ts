/** The logs of containers that are gone: with CRI they are left to whoever had the container made. */
import { constants } from 'node:fs';
import { type FileHandle, open, opendir, rmdir, unlink } from 'node:fs/promises';
import path from 'node:path';
import { placeBelow } from '../shared/place.ts';

/** How many entries of a directory are looked at for the rotated ones. */
const MOST_ENTRIES = 10_000;

/** The root may be a link: it is named by whoever runs evictd. */
const ROOT = constants.O_RDONLY | constants.O_DIRECTORY;
const DIRECTORY = ROOT | constants.O_NOFOLLOW;

/** What a rotated log has behind the name of the file: a date or a number, and what it is packed with. */
const ROTATED = /^\.\d[\d-]*(?:\.gz|\.tmp)?$/;

/** How long a filesystem may take, ms. */
const LOGS_DEADLINE_MS = 2000;

/** Removes logs below one directory. Rejects with what the filesystem says, or where it does not within 2 s. */
export interface Logs {
  /**
   * That file and those that were rotated away from it (`FILE.DATE`, `FILE.NUMBER.gz`).
   *
   * @param others the logs of those that stay: none of them goes, nor what was rotated away from one
   */
  remove(logPath: string, others: Iterable<string>): Promise<void>;
  /** The directories that such files were in, as far as they are empty. */
  tidy(logPath: string): Promise<void>;
}

/**
 * No link is followed below `root`, which may be one: each directory is opened by its name in the one before, and
 * held. What does not lie below it is left alone.
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
      held.push(await open(root, ROOT));
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
  const remove = (logPath: string, others: Iterable<string>): Promise<void> =>
    within(logPath, async (held, parts) => {
      const directory = pathOf(held.at(-1));
      const file = parts.at(-1) ?? '';
      const kept = namesBeside(logPath, others);
      for (const name of await filesIn(directory)) {
        const isOthers = kept.some((other) => isLogOf(other, name));
        if (isLogOf(file, name) && !isOthers) await unlink(`${directory}/${name}`);
      }
    });
  const tidy = (logPath: string): Promise<void> =>
    within(logPath, async (held, parts) => {
      for (let depth = held.length - 1; depth > 0; depth -= 1) {
        await rmdir(`${pathOf(held[depth - 1])}/${parts[depth - 1]}`);
      }
    }).catch(unless('ENOTEMPTY'));
  return {
    remove: (logPath, others) => inTime(() => remove(logPath, others)),
    tidy: (logPath) => inTime(() => tidy(logPath)),
  };
}

/** Of those paths that lie in the directory of another: their last parts. */
function namesBeside(logPath: string, others: Iterable<string>): readonly string[] {
  const directory = path.dirname(path.normalize(logPath));
  return [...others]
    .map((other) => path.parse(path.normalize(other)))
    .filter(({ dir }) => dir === directory)
    .map(({ base }) => base);
}

/** Whether it is that file, or was rotated away from it. */
function isLogOf(file: string, name: string): boolean {
  return name === file || (name.startsWith(file) && ROTATED.test(name.slice(file.length)));
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

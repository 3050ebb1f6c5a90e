import { closeSync, statSync } from 'node:fs';
import { asPath, type BytePath } from '../../kernel/byte-path.ts';
import { readControlFile } from '../../kernel/control-file.ts';
import { directoryNames, heldPath, openDirectory } from '../../kernel/directory.ts';
import { pidList } from '../../kernel/fields.ts';

/** How many cgroups of one pod are looked at. */
export const SUBTREE_LIMIT = 10_000;

/**
 * A longer path is gone on from a descriptor of its directory: the kernel takes no more than 4,096
 * bytes, while groups can be nested in groups by whoever may write to one.
 */
const LONG_PATH_BYTES = 3000;

/** A cgroup whose children are being walked through. */
interface Level {
  /** A path to it. */
  readonly base: BytePath;
  readonly left: BytePath[];
  readonly fd: number | undefined;
}

/**
 * A cgroup directory and all below it, parents first. A path holds until the next is asked for. What
 * vanishes meanwhile is left out.
 *
 * @param limit how many are enough
 */
export function* subtree(top: BytePath, limit: number = SUBTREE_LIMIT): Generator<BytePath> {
  const levels: Level[] = [];
  try {
    let next: BytePath | undefined = top;
    for (let count = 0; next !== undefined && count < limit; count += 1) {
      yield next;
      levels.push(levelAt(next));
      next = nextOf(levels);
    }
  } finally {
    for (const { fd } of levels) if (fd !== undefined) closeSync(fd);
  }
}

function levelAt(directory: BytePath): Level {
  const left = childNames(directory).toReversed();
  if (left.length === 0 || directory.length <= LONG_PATH_BYTES)
    return { base: directory, left, fd: undefined };
  const fd = openDirectory(directory);
  return { base: heldPath(fd), left, fd };
}

/** The next directory of the innermost level that has one; levels that have none are left. */
function nextOf(levels: Level[]): BytePath | undefined {
  for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
    const name = level.left.pop();
    if (name !== undefined) return `${level.base}/${name}`;
    if (level.fd !== undefined) closeSync(level.fd);
    levels.pop();
  }
  return undefined;
}

/** Links to a directory that has none in it: its name, and its own `.`. */
const LINKS_WITHOUT_CHILDREN = 2;

/** cgroupfs counts a directory's children as links to it: most have none, and need not be listed. */
function childNames(directory: BytePath): readonly BytePath[] {
  try {
    if (statSync(asPath(directory)).nlink === LINKS_WITHOUT_CHILDREN) return [];
    return directoryNames(directory);
  } catch {
    return [];
  }
}

/**
 * The processes of one cgroup. Opened afresh each time: the kernel caches the list of an open
 * `cgroup.procs` for a second after the last read. Empty when the cgroup is gone; throws what else
 * the kernel says, since a list that cannot be read is not empty.
 */
export function processesOf(directory: BytePath): readonly number[] {
  try {
    return pidList(readControlFile(asPath(`${directory}/cgroup.procs`)));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENODEV') return [];
    throw error;
  }
}

/** The file that lists tasks, or processes. */
export type PidKind = 'tasks' | 'cgroup.procs';

/**
 * How many tasks (threads) there are in a cgroup and in all below it, or processes; undefined when
 * a list cannot be read.
 */
export function countBelow(top: BytePath, what: PidKind): number | undefined {
  try {
    let count = 0;
    for (const directory of subtree(top)) count += linesOf(`${directory}/${what}`);
    return count;
  } catch {
    return undefined;
  }
}

function linesOf(path: BytePath): number {
  try {
    return readControlFile(asPath(path)).split('\n').length - 1;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENODEV') return 0;
    throw error;
  }
}

/**
 * The processes of a cgroup and of all below it.
 *
 * @param atMost so many are enough, of as many cgroups
 */
export function processesBelow(top: BytePath, atMost?: number): readonly number[] {
  const pids: number[] = [];
  for (const directory of subtree(top, atMost)) {
    for (const pid of processesOf(directory)) pids.push(pid);
    if (atMost !== undefined && pids.length >= atMost) return pids.slice(0, atMost);
  }
  return pids;
}

import { readdirSync } from 'node:fs';
import { asPath, type BytePath } from '../../kernel/byte-path.ts';
import { readControlFile } from '../../kernel/control-file.ts';
import { pidList } from '../../kernel/fields.ts';

/** How many cgroups of one pod are looked at. */
export const SUBTREE_LIMIT = 10_000;

/**
 * A cgroup directory and all below it, parents first. What vanishes meanwhile is left out.
 *
 * @param limit how many are enough; the children of one cgroup are taken together
 */
export function subtree(top: BytePath, limit: number = SUBTREE_LIMIT): readonly BytePath[] {
  const directories = [top];
  for (let next = 0; next < directories.length && directories.length < limit; next += 1) {
    const directory = directories[next] as string;
    for (const name of childNames(directory)) directories.push(`${directory}/${name}`);
  }
  return directories;
}

function childNames(directory: BytePath): readonly BytePath[] {
  try {
    return readdirSync(asPath(directory), { withFileTypes: true, encoding: 'latin1' })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name);
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

/** The processes of a cgroup and of all below it. */
export function processesBelow(top: BytePath): readonly number[] {
  return subtree(top).flatMap(processesOf);
}

/** Processes, mounts and cgroups of a private runtime, and how they go with it. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, rmdirSync } from 'node:fs';
import path from 'node:path';
import { MEMORY_HIERARCHY } from '../../support/cgroup.ts';
import { until } from '../../support/wait.ts';

/** How long what was ended may take to leave its cgroups, ms. */
const EMPTY_LIMIT_MS = 10_000;

/** Whether a process runs; one that is not waited for yet has ended. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.startsWith('Z') !== true;
  } catch {
    return false;
  }
}

/** Ends a process if it is there. */
export function end(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** The processes whose command line is such; words that are cut or unreadable are none. */
export function processesWith(matches: (words: readonly string[]) => boolean): readonly number[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number)
    .filter((pid) => matches(commandLine(pid)));
}

export function commandLine(pid: number): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  } catch {
    return [];
  }
}

/** Signal 10 in the mask of those that are caught. */
const USR1_BIT = 1n << 9n;

/** Whether a process has a handler for SIGUSR1 by now. */
export function catchesUsr1(pid: number): boolean {
  let status: string;
  try {
    status = readFileSync(`/proc/${pid}/status`, 'utf8');
  } catch {
    return false;
  }
  const mask = /^SigCgt:\s*([0-9a-f]+)$/m.exec(status)?.[1];
  return (BigInt(`0x${mask ?? '0'}`) & USR1_BIT) !== 0n;
}

/** The shims of a containerd, which outlive it: their command lines name its socket. */
export function shimsOf(socketPath: string): readonly number[] {
  return processesWith(
    ([program = '', ...words]) => program.includes('containerd-shim') && words.includes(socketPath),
  );
}

/** Takes off whatever is mounted below a directory, the deepest first. */
export function unmountBelow(directory: string): void {
  const mounts = readFileSync('/proc/mounts', 'utf8').split('\n');
  const points = mounts.map((line) => line.split(' ')[1] ?? '');
  const below = points.filter((point) => point.startsWith(`${directory}/`));
  for (const point of below.sort().reverse()) spawnSync('umount', ['-l', point]);
}

/** The pids in a cgroup of the memory hierarchy and in all below it; none where it is gone. */
export function pidsBelow(cgroup: string): readonly number[] {
  const read = (directory: string): readonly number[] => {
    let own: readonly string[];
    try {
      own = readFileSync(`${directory}/cgroup.procs`, 'utf8').split('\n').filter(Boolean);
    } catch {
      return [];
    }
    return [...own.map(Number), ...directoriesIn(directory).flatMap(read)];
  };
  return read(path.join(MEMORY_HIERARCHY, cgroup));
}

/**
 * Removes the groups that runtimes leave of a node in every hierarchy, once they are empty; the node's own
 * memory cgroup stays, since whoever made it removes it.
 */
export async function removeGroups(node: string): Promise<void> {
  const groups = cgroupMounts().flatMap((mount) => {
    const group = path.join(mount, node);
    return mount === MEMORY_HIERARCHY ? directoriesIn(group) : [group];
  });
  for (const group of groups) {
    await until(`${group} is removed`, () => removeTree(group), { limitMs: EMPTY_LIMIT_MS });
  }
}

function cgroupMounts(): readonly string[] {
  const mounts = readFileSync('/proc/mounts', 'utf8').split('\n');
  return mounts.flatMap((line) => {
    const [, mount = '', type] = line.split(' ');
    return type === 'cgroup' || type === 'cgroup2' ? [mount] : [];
  });
}

/** Whether it is gone; not as long as somebody is in it. */
function removeTree(directory: string): boolean {
  if (!directoriesIn(directory).every(removeTree)) return false;
  try {
    rmdirSync(directory);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EBUSY') return false;
    if (code === 'ENOENT') return true;
    throw error;
  }
}

function directoriesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => path.join(directory, name));
  } catch {
    return [];
  }
}

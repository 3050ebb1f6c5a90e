import { type BytePath, fromText } from './byte-path.ts';
import { readControlFile } from './control-file.ts';

/** Where a hierarchy of cgroups is mounted. */
export interface Hierarchy {
  readonly mountPoint: string;
  /** The cgroup that the mount shows as its root, `/` unless it is a bind mount or a namespace. */
  readonly root: string;
}

/**
 * Finds the v1 hierarchy of a controller. Source: proc(5), `/proc/[pid]/mountinfo`; octal escapes
 * in paths are decoded.
 *
 * @returns undefined when the controller is not mounted as v1
 */
export function findHierarchy(
  controller: string,
  mountinfo = readPaths('/proc/self/mountinfo'),
): Hierarchy | undefined {
  return findMount(
    mountinfo,
    (type, options) => type === 'cgroup' && options.split(',').includes(controller),
  );
}

/**
 * Finds the cgroup2 mount, as on a hybrid host beside the v1 hierarchies.
 *
 * @returns undefined when there is none
 */
export function findUnified(mountinfo = readPaths('/proc/self/mountinfo')): Hierarchy | undefined {
  return findMount(mountinfo, (type) => type === 'cgroup2');
}

function findMount(
  mountinfo: string,
  matches: (type: string, options: string) => boolean,
): Hierarchy | undefined {
  for (const line of mountinfo.split('\n')) {
    const [left, right] = line.split(' - ');
    const [type, , options] = right?.split(' ') ?? [];
    if (type === undefined || !matches(type, options ?? '')) continue;
    const [, , , root, mountPoint] = left?.split(' ') ?? [];
    if (root !== undefined && mountPoint !== undefined) {
      return { mountPoint: decodeOctal(mountPoint), root: decodeOctal(root) };
    }
  }
  return undefined;
}

/** A file that holds paths, which may hold any character: control files are read as Latin-1. */
function readPaths(file: string): string {
  return Buffer.from(readControlFile(file), 'latin1').toString('utf8');
}

function decodeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
}

/**
 * The directory of a process's cgroup in a hierarchy, or undefined when it lies outside of what
 * the mount shows, or the process is gone. Source: cgroups(7), `/proc/[pid]/cgroup`.
 */
export function cgroupOf(
  pid: number | 'self',
  controller: string,
  hierarchy: Hierarchy,
): string | undefined {
  try {
    const path = pathOf(readPaths(`/proc/${pid}/cgroup`), controller);
    return path === undefined ? undefined : directoryIn(hierarchy, path);
  } catch {
    return undefined;
  }
}

/**
 * Whether a process, as its leading thread has it, is in the cgroup at `path` within the hierarchy of
 * a v1 controller, or below it; false when it is gone. The kernel cuts a path of more than 4,096 bytes;
 * where it refuses to tell one, whoever has seen the process listed there is believed.
 */
export function isInCgroup(pid: number, controller: string, path: BytePath): boolean {
  try {
    const found = pathOf(readControlFile(`/proc/${pid}/cgroup`), controller);
    return found !== undefined && (found === path || found.startsWith(`${path}/`));
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENAMETOOLONG';
  }
}

function pathOf(text: string, controller: string): string | undefined {
  for (const line of text.split('\n')) {
    const [, controllers, ...path] = line.split(':');
    if (controllers?.split(',').includes(controller) === true) return path.join(':');
  }
  return undefined;
}

/** The path within its hierarchy of a cgroup whose directory lies below the mount. */
export function pathIn({ mountPoint, root }: Hierarchy, directory: BytePath): BytePath {
  const below = directory.slice(fromText(mountPoint).length);
  return root === '/' ? below || '/' : fromText(root) + below;
}

/** The directory of the same path in another hierarchy; undefined outside of what its mount shows. */
export function sameGroupIn(
  other: Hierarchy,
  hierarchy: Hierarchy,
  directory: BytePath,
): BytePath | undefined {
  const bytes = { mountPoint: fromText(other.mountPoint), root: fromText(other.root) };
  return directoryIn(bytes, pathIn(hierarchy, directory));
}

function directoryIn({ mountPoint, root }: Hierarchy, path: string): string | undefined {
  if (root === '/') return mountPoint + (path === '/' ? '' : path);
  if (path === root) return mountPoint;
  return path.startsWith(`${root}/`) ? mountPoint + path.slice(root.length) : undefined;
}

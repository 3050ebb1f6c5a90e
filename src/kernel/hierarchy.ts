import { readControlFile } from './control-file.ts';

/** Where a cgroup v1 controller is mounted. */
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
  for (const line of mountinfo.split('\n')) {
    const [left, right] = line.split(' - ');
    const [type, , options] = right?.split(' ') ?? [];
    if (type !== 'cgroup' || options?.split(',').includes(controller) !== true) continue;
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
  let text: string;
  try {
    text = readPaths(`/proc/${pid}/cgroup`);
  } catch {
    return undefined;
  }
  for (const line of text.split('\n')) {
    const [, controllers, ...path] = line.split(':');
    if (controllers?.split(',').includes(controller) === true)
      return directoryIn(hierarchy, path.join(':'));
  }
  return undefined;
}

function directoryIn({ mountPoint, root }: Hierarchy, path: string): string | undefined {
  if (root === '/') return mountPoint + (path === '/' ? '' : path);
  if (path === root) return mountPoint;
  return path.startsWith(`${root}/`) ? mountPoint + path.slice(root.length) : undefined;
}

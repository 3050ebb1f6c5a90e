import { asPath, type BytePath, fromText, toText } from './byte-path.ts';
import { readControlFile, readPathsFile } from './control-file.ts';
import { directoryNames } from './directory.ts';
import { liveTasks, type Task } from './live-tasks.ts';
import { parseMounts, readMountinfo } from './mountinfo.ts';

/** Where a hierarchy of cgroups is mounted. */
export interface Hierarchy {
  readonly mountPoint: string;
  /** The cgroup that the mount shows as its root, `/` unless it is a bind mount or a namespace. */
  readonly root: string;
  /**
   * Where the root of evictd's own cgroup namespace lies below the mount point, `/a/b`, where the mount
   * shows more than the namespace: the kernel tells all paths from there.
   */
  readonly namespace?: string;
}

/**
 * Finds the v1 hierarchy of a controller. Source: proc(5), `/proc/[pid]/mountinfo`; octal escapes
 * in paths are decoded.
 *
 * @returns undefined when the controller is not mounted as v1
 */
export function findHierarchy(
  controller: string,
  mountinfo = readMountinfo(),
): Hierarchy | undefined {
  return findMount(
    mountinfo,
    (type, options) => type === 'cgroup' && options.split(',').includes(controller),
    controller,
  );
}

/**
 * Finds the cgroup2 mount, as on a hybrid host beside the v1 hierarchies.
 *
 * @returns undefined when there is none
 */
export function findUnified(mountinfo = readMountinfo()): Hierarchy | undefined {
  return findMount(mountinfo, (type) => type === 'cgroup2', '');
}

function findMount(
  mountinfo: string,
  matches: (type: string, options: string) => boolean,
  controller: string,
): Hierarchy | undefined {
  for (const { type, superOptions, mountPoint, root } of parseMounts(mountinfo).values()) {
    if (matches(type, superOptions)) return withNamespace({ mountPoint, root }, controller);
  }
  return undefined;
}

/** How many cgroups are looked at for the root of evictd's own cgroup namespace. */
const NAMESPACE_SEARCH_LIMIT = 10_000;

/** A mount point that lies so many levels above the root of the namespace: `/..`, `/../..`. */
const ABOVE = /^(?:\/\.\.)+$/;

/**
 * Finds the root of the own cgroup namespace below the mount point: the cgroup that holds evictd itself
 * where the kernel says that it is. Not found where evictd has been moved out of it.
 */
function withNamespace(hierarchy: Hierarchy, controller: string): Hierarchy {
  const { mountPoint, root } = hierarchy;
  if (!ABOVE.test(root)) return hierarchy;
  const own = orUndefined(() => pathOf(readControlFile('/proc/self/cgroup'), controller));
  const depth = root.split('/').length - 1;
  const holdsOwn = (below: BytePath): boolean =>
    orUndefined(() =>
      readControlFile(asPath(`${fromText(mountPoint)}${below}${own}/cgroup.procs`))
        .split('\n')
        .includes(String(process.pid)),
    ) === true;
  const found =
    own === undefined || own.startsWith('/..')
      ? undefined
      : groupsAt(fromText(mountPoint), depth).find(holdsOwn);
  return found === undefined ? hierarchy : { ...hierarchy, namespace: toText(found) };
}

/** The cgroups so many levels below a directory, as paths from there. */
function groupsAt(top: BytePath, depth: number): readonly BytePath[] {
  let level: readonly BytePath[] = [''];
  for (let count = 0; count < depth; count += 1) {
    level = level
      .flatMap((below) =>
        (orUndefined(() => directoryNames(`${top}${below}`)) ?? []).map(
          (name) => `${below}/${name}`,
        ),
      )
      .slice(0, NAMESPACE_SEARCH_LIMIT);
  }
  return level;
}

/** Where `path`, which may begin with `/..`, leads from `/a/b`; empty for the top. */
function resolve(from: BytePath, path: BytePath): BytePath {
  const names = namesOf(from);
  for (const name of namesOf(path)) {
    if (name === '..') names.pop();
    else names.push(name);
  }
  return names.map((name) => `/${name}`).join('');
}

/** How the kernel tells of `/a/c` in a namespace whose root is `/a/b`: `/../c`. */
function relative(from: BytePath, to: BytePath): BytePath {
  const [above, below] = [namesOf(from), namesOf(to)];
  const apart = above.findIndex((name, index) => name !== below[index]);
  const shared = apart === -1 ? above.length : apart;
  return `/${[...above.slice(shared).map(() => '..'), ...below.slice(shared)].join('/')}`;
}

function namesOf(path: BytePath): BytePath[] {
  return path.split('/').filter((name) => name !== '');
}

function orUndefined<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/**
 * The directory of a process's cgroup in a hierarchy, or undefined when it lies outside of what
 * the mount shows, or the process is gone. Source: cgroups(7), `/proc/[pid]/cgroup`.
 */
export function cgroupOf(
  pid: Task | 'self',
  controller: string,
  hierarchy: Hierarchy,
): string | undefined {
  try {
    const path = pathOf(readPathsFile(`/proc/${pid}/cgroup`), controller);
    return path === undefined ? undefined : directoryIn(hierarchy, path);
  } catch {
    return undefined;
  }
}

/**
 * Whether a process is in the cgroup at `path` within the hierarchy of a v1 controller, or below it:
 * where its leading thread is, or, once that has ended, all its other threads; false when it is gone. The
 * kernel cuts a path of more than 4,096 bytes; where it refuses to tell one, whoever has seen the
 * process listed there is believed.
 */
export function isInCgroup(pid: number, controller: string, path: BytePath): boolean {
  const found = memberPath(pid, controller);
  if (found === TOO_LONG || isWithin(found, path)) return true;
  if (found !== ROOT) return false;
  const tasks = liveTasks(pid);
  if (tasks.length === 0 || tasks[0] === pid) return false;
  return tasks.every((task) => {
    const its = memberPath(task, controller);
    return its === TOO_LONG || isWithin(its, path);
  });
}

const ROOT = '/';
const TOO_LONG = Symbol('a path that the kernel refuses to tell');

function memberPath(task: Task, controller: string): BytePath | typeof TOO_LONG | undefined {
  try {
    return pathOf(readControlFile(`/proc/${task}/cgroup`), controller);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENAMETOOLONG' ? TOO_LONG : undefined;
  }
}

function isWithin(found: BytePath | undefined, path: BytePath): boolean {
  return found !== undefined && (found === path || found.startsWith(`${path}/`));
}

function pathOf(text: string, controller: string): string | undefined {
  for (const line of text.split('\n')) {
    const [, controllers, ...path] = line.split(':');
    if (controllers?.split(',').includes(controller) === true) return path.join(':');
  }
  return undefined;
}

/** The path within its hierarchy of a cgroup whose directory lies below the mount. */
export function pathIn({ mountPoint, root, namespace }: Hierarchy, directory: BytePath): BytePath {
  const below = directory.slice(fromText(mountPoint).length);
  if (namespace !== undefined) return relative(fromText(namespace), below);
  return root === '/' ? below || '/' : fromText(root) + below;
}

/** The directory of the same path in another hierarchy; undefined outside of what its mount shows. */
export function sameGroupIn(
  other: Hierarchy,
  hierarchy: Hierarchy,
  directory: BytePath,
): BytePath | undefined {
  const bytes = {
    mountPoint: fromText(other.mountPoint),
    root: fromText(other.root),
    ...(other.namespace === undefined ? {} : { namespace: fromText(other.namespace) }),
  };
  return directoryIn(bytes, pathIn(hierarchy, directory));
}

/**
 * The directory of a cgroup by its path from the root of the hierarchy, as texts; undefined outside of what its
 * mount shows.
 */
export function directoryOf(hierarchy: Hierarchy, path: string): string | undefined {
  return directoryIn(hierarchy, path.startsWith('/') ? path : `/${path}`);
}

function directoryIn({ mountPoint, root, namespace }: Hierarchy, path: string): string | undefined {
  if (namespace !== undefined) {
    const depth = namespace.split('/').length - 1;
    const ups = path.split('/').filter((name) => name === '..').length;
    return ups > depth ? undefined : mountPoint + resolve(namespace, path);
  }
  if (root === '/') return mountPoint + (path === '/' ? '' : path);
  if (path === root) return mountPoint;
  return path.startsWith(`${root}/`) ? mountPoint + path.slice(root.length) : undefined;
}

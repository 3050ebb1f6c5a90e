import { existsSync, realpathSync } from 'node:fs';
import { EvictdError } from '../core/errors.ts';
import { findHierarchy, type Hierarchy } from './hierarchy.ts';

/** The node's cgroup, resolved. */
export interface NodeCgroup {
  /** The directory, without links. */
  readonly directory: string;
  readonly hierarchy: Hierarchy;
  /** Whether it is the root of the hierarchy: the host. */
  readonly isRoot: boolean;
}

/** What a v1 memory cgroup must have to be a node. */
const NEEDED_FILES = [
  'memory.usage_in_bytes',
  'memory.stat',
  'cgroup.event_control',
  'cgroup.procs',
] as const;

/**
 * Resolves `--node-cgroup`: a directory below the memory hierarchy's mount point, or the path of a
 * cgroup relative to it; undefined for the root. Throws EVICTD_NODE_CGROUP when it is none.
 */
export function resolveNodeCgroup(
  given: string | undefined,
  hierarchy = findHierarchy('memory'),
): NodeCgroup {
  const refuse = (why: string): never => {
    const place = { source: '--node-cgroup', ...(given === undefined ? {} : { value: given }) };
    throw new EvictdError('EVICTD_NODE_CGROUP', why, place);
  };
  if (given === '' || given?.includes('\0') === true) refuse('is no path');
  if (hierarchy === undefined) {
    throw new EvictdError(
      'EVICTD_UNSUPPORTED',
      'no cgroup v1 memory hierarchy is mounted on this machine',
    );
  }
  const { mountPoint, root, namespace } = hierarchy;
  if (root.startsWith('/..') && namespace === undefined) {
    throw new EvictdError(
      'EVICTD_UNSUPPORTED',
      `the root of evictd's cgroup namespace is not found below ${mountPoint}: no process could be told to be a pod's`,
    );
  }
  const candidates = [given ?? mountPoint, `${mountPoint}/${given}`].filter((path) =>
    path.startsWith('/'),
  );
  const directory = candidates
    .flatMap((path) => realDirectory(path) ?? [])
    .find((path) => isWithin(path, mountPoint));
  if (directory === undefined) return refuse(`is no cgroup below ${mountPoint}`);
  const missing = NEEDED_FILES.find((file) => !existsSync(`${directory}/${file}`));
  // A file that only the root of a v1 hierarchy has: in a container the mount point may be none.
  const isRoot = existsSync(`${directory}/cgroup.sane_behavior`);
  return missing === undefined ? { directory, hierarchy, isRoot } : refuse(`has no ${missing}`);
}

function realDirectory(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

function isWithin(path: string, mountPoint: string): boolean {
  const top = realpathSync(mountPoint);
  return path === top || path.startsWith(`${top}/`);
}

/**
 * The directory of a cgroup below the node, by its path relative to it. It need not be there yet.
 *
 * @throws EvictdError EVICTD_POD_PARENT for `.` where the node is the root, which holds no pods
 */
export function podParentDirectory({ directory, isRoot }: NodeCgroup, relative: string): string {
  if (relative !== '.') return `${directory}/${relative}`;
  if (!isRoot) return directory;
  throw new EvictdError('EVICTD_POD_PARENT', 'the root of the hierarchy holds no pods', {
    source: '--pod-parent',
    value: relative,
  });
}

import { existsSync, realpathSync } from 'node:fs';
import { EvictdError } from '../core/errors.ts';
import { findHierarchy, type Hierarchy } from './hierarchy.ts';

/** The node's cgroup, resolved. */
export interface NodeCgroup {
  /** The directory, without links. */
  readonly directory: string;
  readonly hierarchy: Hierarchy;
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
 * cgroup relative to it. Throws EVICTD_NODE_CGROUP when it is none, or when it is the root, whose
 * children are no pods.
 */
export function resolveNodeCgroup(given: string, hierarchy = findHierarchy('memory')): NodeCgroup {
  const refuse = (why: string): never => {
    throw new EvictdError('EVICTD_NODE_CGROUP', why, { source: '--node-cgroup', value: given });
  };
  if (given === '' || given.includes('\0')) refuse('is no path');
  if (hierarchy === undefined) {
    throw new EvictdError(
      'EVICTD_UNSUPPORTED',
      'no cgroup v1 memory hierarchy is mounted on this machine',
    );
  }
  const { mountPoint } = hierarchy;
  const candidates = [given, `${mountPoint}/${given}`].filter((path) => path.startsWith('/'));
  const directory = candidates
    .flatMap((path) => realDirectory(path) ?? [])
    .find((path) => isWithin(path, mountPoint));
  if (directory === undefined) return refuse(`is no cgroup below ${mountPoint}`);
  if (directory === realpathSync(mountPoint))
    return refuse('is the root of the hierarchy, whose children are no pods');
  const missing = NEEDED_FILES.find((file) => !existsSync(`${directory}/${file}`));
  return missing === undefined ? { directory, hierarchy } : refuse(`has no ${missing}`);
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

import { quote } from '../core/errors.ts';

/** Linux' limit for one name in a path, in bytes. */
const MAX_NAME_BYTES = 255;
/** Linux' limit for a path, in bytes, less its ending NUL. */
const MAX_PATH_BYTES = 4095;

/**
 * Why `path` can be no cgroup below another; undefined when it can be. It is relative, and says
 * where it leads without links and without `.` and `..`.
 */
export function relativePathFault(path: string): string | undefined {
  if (path.startsWith('/')) return 'a path relative to the node\'s cgroup starts without "/"';
  if (path.includes('\0')) return 'a name has no NUL';
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) return `a path has at most ${MAX_PATH_BYTES} bytes`;
  return path
    .split('/')
    .map(nameFault)
    .find((fault) => fault !== undefined);
}

function nameFault(name: string): string | undefined {
  if (name === '' || name === '.' || name === '..') return `no cgroup can be named ${quote(name)}`;
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) return `a name has at most ${MAX_NAME_BYTES} bytes`;
  return undefined;
}

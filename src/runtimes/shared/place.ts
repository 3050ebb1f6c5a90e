import type { Place } from '../../ports/disk-usage.ts';

/** PATH_MAX without the NUL. */
const PATH_BYTES_MAX = 4095;

/**
 * A path that is text from outside as a place below a root of ours.
 *
 * @param root absolute
 * @returns undefined for what does not lie below it, or is no plain path: relative, with `..`, `.` or NUL in it,
 * or too long
 */
export function placeBelow(root: string, text: string): Place | undefined {
  const base = root.replace(/\/+$/, '');
  if (!text.startsWith(`${base}/`) || text.includes('\0')) return undefined;
  if (Buffer.byteLength(text) > PATH_BYTES_MAX) return undefined;
  const parts = text
    .slice(base.length)
    .split('/')
    .filter((part) => part !== '');
  if (parts.length === 0 || parts.some((part) => part === '.' || part === '..')) return undefined;
  return { root, below: parts.join('/') };
}

/**
 * The directory of a cgroup that a runtime names by its slice, as the systemd driver does:
 * `kubepods-burstable-pod1.slice` lies in `kubepods.slice/kubepods-burstable.slice`. A path, as the
 * cgroupfs driver has it, is what it is.
 *
 * @returns the path relative to the hierarchy's root, without a slash in front; undefined for what leads
 * nowhere: no name, or one with `.`, `..` or an empty part
 * @see systemd.slice(5)
 */
export function cgroupPathOf(parent: string): string | undefined {
  const path = parent.replace(/^\/+/, '').replace(/\/+$/, '');
  const parts = path.split('/');
  if (parts.some((part) => part === '' || part === '.' || part === '..')) return undefined;
  const [slice = ''] = parts;
  return parts.length === 1 && slice.endsWith(SLICE) ? expanded(slice) : path;
}

const SLICE = '.slice';

function expanded(slice: string): string | undefined {
  const words = slice.slice(0, -SLICE.length).split('-');
  if (words.some((word) => word === '')) return undefined;
  return words.map((_, index) => `${words.slice(0, index + 1).join('-')}${SLICE}`).join('/');
}

import { readPathsFile } from './control-file.ts';

/** A mount, as this process sees it. Source: proc(5), `/proc/[pid]/mountinfo`. */
export interface Mount {
  readonly id: number;
  /** The device of the filesystem, `major:minor`: one for all subvolumes of a btrfs. */
  readonly device: string;
  /** What of the filesystem is shown: `/`, or a directory of it (bind mounts, subvolumes). */
  readonly root: string;
  readonly mountPoint: string;
  /** `ext4`, `fuse.sshfs`. */
  readonly type: string;
  /** What is mounted: `/dev/sda1`, `tmpfs`; any text for most pseudo filesystems, even none. */
  readonly source: string;
  /** Of the filesystem: `rw,memory` for a cgroup v1 hierarchy. */
  readonly superOptions: string;
}

/** The mounts by their id, in the order of the file: a later one may cover an earlier one. */
export function parseMounts(mountinfo: string): ReadonlyMap<number, Mount> {
  const mounts = new Map<number, Mount>();
  for (const line of mountinfo.split('\n')) {
    const mount = parseMount(line);
    if (mount !== undefined) mounts.set(mount.id, mount);
  }
  return mounts;
}

/** A line of mountinfo; undefined when it is none. Octal escapes are decoded. */
export function parseMount(line: string): Mount | undefined {
  // No field holds a space: there it is an escape. The source alone may be empty.
  const fields = line.split(' ');
  const [id = '', , device = '', root, mountPoint] = fields;
  // Before it stand any number of optional fields, none of which is a hyphen.
  const separator = fields.indexOf('-', 6);
  const [type, source, superOptions] = separator === -1 ? [] : fields.slice(separator + 1);
  if (!/^\d+$/.test(id) || !/^\d+:\d+$/.test(device)) return undefined;
  if (root === undefined || mountPoint === undefined) return undefined;
  if (type === undefined || source === undefined || superOptions === undefined) return undefined;
  return {
    id: Number(id),
    device,
    root: decodeOctal(root),
    mountPoint: decodeOctal(mountPoint),
    type: decodeOctal(type),
    source: decodeOctal(source),
    superOptions: decodeOctal(superOptions),
  };
}

/** The text of this process's mountinfo. Throws what `open(2)` and `read(2)` give. */
export function readMountinfo(): string {
  return readPathsFile('/proc/self/mountinfo');
}

/** The kernel escapes space, tab, newline, backslash and `#`, no byte beyond ASCII. */
function decodeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
}

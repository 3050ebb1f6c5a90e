import { FILESYSTEMS, type FilesystemName } from './signal.ts';

/** What a filesystem is known by. */
export interface FilesystemIdentity {
  /** The device that a file there names (`st_dev`), `major:minor`. Btrfs subvolumes have one each. */
  readonly device: string;
  /** The device of the mount in mountinfo: one for all subvolumes; empty where it is not known. */
  readonly mountDevice: string;
  /** What is mounted, as mountinfo has it: `/dev/sda1`, `tmpfs`; empty where it is not known. */
  readonly source: string;
  /** `ext4`, `fuse.sshfs`; empty where it is not known. */
  readonly type: string;
}

/** Those that are watched; what has no path, or could not be read yet, is left out. */
export type FilesystemIdentities = Readonly<Partial<Record<FilesystemName, FilesystemIdentity>>>;

export type FilesystemLayout =
  /** All on one filesystem. */
  | 'single'
  /** Images and containers together, apart from nodefs. */
  | 'dedicatedImagefs'
  /** Images apart, containers on nodefs. */
  | 'splitImagefs'
  /** Containers on a filesystem that holds nothing else; the kubelet has no such layout. */
  | 'separateContainerfs';

/** Which filesystems are one. */
export interface FilesystemLayoutFound {
  readonly layout: FilesystemLayout;
  /** Each known filesystem once, with those that are the same. */
  readonly groups: readonly (readonly FilesystemName[])[];
  /** The same for a person: `nodefs = containerfs, imagefs`; empty where none is known. */
  readonly text: string;
}

/**
 * Tells which of the filesystems are one, and what the kubelet calls the whole. One that is not known
 * is where it is by default: imagefs on nodefs, containerfs on imagefs.
 */
export function filesystemLayout(identities: FilesystemIdentities): FilesystemLayoutFound {
  const groups = groupsOf(identities);
  return {
    layout: layoutOf(groups),
    groups,
    text: groups.map((group) => group.join(' = ')).join(', '),
  };
}

/**
 * Whether two are one filesystem: by their device, by the device of their mounts (btrfs subvolumes,
 * bind mounts), or by the block device that is their source. Any other source is only a name, which
 * several may bear (`tmpfs`, `none`, `overlay`); a FUSE server chooses its own.
 */
export function isSameFilesystem(one: FilesystemIdentity, other: FilesystemIdentity): boolean {
  if (one.device === other.device) return true;
  if (one.mountDevice !== '' && one.mountDevice === other.mountDevice) return true;
  return one.source === other.source && one.type === other.type && isBlockSource(one);
}

function isBlockSource({ source, type }: FilesystemIdentity): boolean {
  return source.startsWith('/dev/') && !/^fuse(\.|$)/.test(type);
}

/** Two that are both the same as a third are one group, whatever tells it. */
function groupsOf(identities: FilesystemIdentities): readonly (readonly FilesystemName[])[] {
  let groups: readonly (readonly FilesystemName[])[] = [];
  for (const name of FILESYSTEMS) {
    const identity = identities[name];
    if (identity === undefined) continue;
    const isSame = (other: FilesystemName): boolean => {
      const known = identities[other];
      return known !== undefined && isSameFilesystem(known, identity);
    };
    const joined = groups.filter((group) => group.some(isSame));
    const apart = groups.filter((group) => !group.some(isSame));
    groups = [...apart, [...joined.flat(), name]];
  }
  return FILESYSTEMS.flatMap((name) => groups.filter(([first]) => first === name));
}

function layoutOf(groups: readonly (readonly FilesystemName[])[]): FilesystemLayout {
  const group = (name: FilesystemName) => groups.find((names) => names.includes(name));
  const nodefs = group('nodefs');
  const imagefs = group('imagefs') ?? nodefs;
  const containerfs = group('containerfs') ?? imagefs;
  if (containerfs === imagefs) return imagefs === nodefs ? 'single' : 'dedicatedImagefs';
  return containerfs === nodefs ? 'splitImagefs' : 'separateContainerfs';
}

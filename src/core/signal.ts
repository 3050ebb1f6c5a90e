/**
 * The eviction signals: what is measured, in which unit, and the node condition that a met
 * threshold raises. Source: kubelet `pkg/kubelet/eviction/api/types.go` and `helpers.go`.
 */

/** The node conditions, named as the kubelet names them. */
export const NODE_CONDITIONS = ['MemoryPressure', 'DiskPressure', 'PIDPressure'] as const;
export type NodeCondition = (typeof NODE_CONDITIONS)[number];

/** What a reading of a signal counts. */
export type SignalUnit = 'bytes' | 'inodes' | 'tasks';

/** What is polled at one pace: see `polling.ts`. */
export type PollKind = 'memory' | 'disk' | 'inodes' | 'pids';

/** The filesystems that have signals, named as the kubelet names them. */
export const FILESYSTEMS = ['nodefs', 'imagefs', 'containerfs'] as const;
export type FilesystemName = (typeof FILESYSTEMS)[number];

interface SignalRow {
  readonly unit: SignalUnit;
  /** The resource's name in eviction messages. */
  readonly resource: 'memory' | 'ephemeral-storage' | 'inodes' | 'pids';
  readonly condition: NodeCondition;
  readonly poll: PollKind;
  /** The filesystem that is measured, where it is one. */
  readonly filesystem: FilesystemName | undefined;
  /** Where it stands in lists: the lowest first. */
  readonly order: number;
  readonly description: string;
}

const BYTES_OF_DISK = {
  unit: 'bytes',
  resource: 'ephemeral-storage',
  condition: 'DiskPressure',
  poll: 'disk',
} as const;

const INODES_OF_DISK = {
  unit: 'inodes',
  resource: 'inodes',
  condition: 'DiskPressure',
  poll: 'inodes',
} as const;

/** One row for each signal; the union {@link Signal} is made of its keys. */
export const SIGNALS = {
  'memory.available': {
    unit: 'bytes',
    resource: 'memory',
    condition: 'MemoryPressure',
    poll: 'memory',
    filesystem: undefined,
    order: 0,
    description: 'capacity less the working set (usage less inactive file) of the node',
  },
  'allocatableMemory.available': {
    unit: 'bytes',
    resource: 'memory',
    condition: 'MemoryPressure',
    poll: 'memory',
    filesystem: undefined,
    order: 1,
    description:
      'the same of the cgroup that holds all pods; each hard threshold of memory.available is one of it too',
  },
  'nodefs.available': {
    ...BYTES_OF_DISK,
    filesystem: 'nodefs',
    order: 2,
    description: 'free space of the filesystem at --nodefs-path, for users without privileges',
  },
  'nodefs.inodesFree': {
    ...INODES_OF_DISK,
    filesystem: 'nodefs',
    order: 3,
    description: 'its free inodes; none where a filesystem does not count them',
  },
  'imagefs.available': {
    ...BYTES_OF_DISK,
    filesystem: 'imagefs',
    order: 4,
    description: 'free space of the filesystem at --imagefs-path, if there is one',
  },
  'imagefs.inodesFree': {
    ...INODES_OF_DISK,
    filesystem: 'imagefs',
    order: 5,
    description: 'its free inodes',
  },
  'containerfs.available': {
    ...BYTES_OF_DISK,
    filesystem: 'containerfs',
    order: 6,
    description: 'free space of the filesystem at --containerfs-path, if there is one',
  },
  'containerfs.inodesFree': {
    ...INODES_OF_DISK,
    filesystem: 'containerfs',
    order: 7,
    description: 'its free inodes',
  },
  'pid.available': {
    unit: 'tasks',
    resource: 'pids',
    condition: 'PIDPressure',
    poll: 'pids',
    filesystem: undefined,
    order: 8,
    description:
      'how many tasks (threads) more the node may have: the lower of pid_max and threads-max, or the ' +
      'pids.max of its cgroup, less what runs',
  },
} as const satisfies Record<string, SignalRow>;

export type Signal = keyof typeof SIGNALS;

/** All signals, in the table's order. */
export const SIGNAL_NAMES = Object.keys(SIGNALS) as readonly Signal[];

/** Whether `text` names a signal. */
export function isSignal(text: string): text is Signal {
  return Object.hasOwn(SIGNALS, text);
}

/** What was found of a pod on the disks, as ranking takes it. */
import type { DiskPart, DiskUsage } from './pod.ts';

/** What was found of one part of a pod. */
export interface FoundUse extends DiskUsage {
  readonly part: DiskPart;
  /** `major:minor` of the filesystem that it lies on; undefined where whoever told the figures did not say. */
  readonly device: string | undefined;
  /** `f_type` of that. */
  readonly type: number | undefined;
}

/** The devices of the filesystems that parts may lie on; undefined where they are not known. */
export interface DiskDevices {
  readonly nodefs: string | undefined;
  readonly containerfs: string | undefined;
}

/** Of these filesystems nothing lies on a disk: tmpfs, ramfs, hugetlbfs. Source: Linux, magic.h. */
const IN_MEMORY: readonly (number | undefined)[] = [0x01021994, 0x858458f6, 0x958458f6];

/** Each of its subvolumes has a device of its own. Source: Linux, magic.h. */
const BTRFS = 0x9123683e;

/**
 * Adds up what was found. Logs and volumes that lie where the writable layers do, apart from nodefs, as Docker has
 * them, count as a layer does; what lies on neither filesystem, such as a volume in memory, is left out.
 */
export function diskOf(
  found: readonly FoundUse[],
  devices: DiskDevices,
): Readonly<Record<DiskPart, DiskUsage>> {
  const sums: Record<DiskPart, DiskUsage> = { root: NONE, logs: NONE, localVolumes: NONE };
  for (const use of found) {
    const part = placeOf(use, devices);
    if (part !== undefined) sums[part] = sum(sums[part], use);
  }
  return sums;
}

const NONE: DiskUsage = { bytes: 0, inodes: 0 };

function placeOf(
  { part, device, type }: FoundUse,
  { nodefs, containerfs }: DiskDevices,
): DiskPart | undefined {
  if (IN_MEMORY.includes(type)) return undefined;
  if (part === 'root' || device === undefined || type === BTRFS || device === nodefs) return part;
  if (device === containerfs) return 'root';
  // Nothing can be told apart yet.
  return nodefs === undefined ? part : undefined;
}

function sum(one: DiskUsage, other: DiskUsage): DiskUsage {
  const isKnown = one.inodes !== undefined && other.inodes !== undefined;
  const both = {
    bytes: one.bytes + other.bytes,
    inodes: isKnown ? one.inodes + other.inodes : undefined,
  };
  if (one.isCut || other.isCut) return { ...both, isLeast: true, isCut: true };
  return one.isLeast || other.isLeast ? { ...both, isLeast: true } : both;
}

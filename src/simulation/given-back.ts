import type { FilesystemStats, MemoryStats, PodStats, Summary } from '../core/kubernetes.ts';

/** What pods use, in whole units. */
interface Use {
  readonly memoryBytes: number;
  readonly processes: number;
  readonly diskBytes: number;
  readonly inodes: number;
}

const NO_USE: Use = { memoryBytes: 0, processes: 0, diskBytes: 0, inodes: 0 };

/**
 * A summary as it would be without these pods: what they use is available, and there are no stats of
 * them. Of disks that is said of nodefs alone, where their files are by default.
 *
 * @param uids the pods' uids
 */
export function withGivenBack(summary: Summary, uids: ReadonlySet<string>): Summary {
  const { node, pods } = summary;
  const gone = (pods ?? []).filter(({ podRef }) => uids.has(podRef.uid));
  if (gone.length === 0 || node === undefined || node === null) return summary;
  const use = gone.map(useOf).reduce(sumOf, NO_USE);
  const { rlimit } = node;
  return {
    ...summary,
    node: {
      ...node,
      memory: memoryWith(node.memory, use),
      fs: filesystemWith(node.fs, use),
      rlimit:
        typeof rlimit?.curproc === 'number'
          ? { ...rlimit, curproc: Math.max(0, rlimit.curproc - use.processes) }
          : rlimit,
      systemContainers: node.systemContainers?.map((container) => ({
        ...container,
        memory: memoryWith(container.memory, use),
      })),
    },
    pods: (pods ?? []).filter(({ podRef }) => !uids.has(podRef.uid)),
  };
}

function useOf(stats: PodStats): Use {
  const storage = stats['ephemeral-storage'];
  return {
    memoryBytes: stats.memory?.workingSetBytes ?? 0,
    processes: stats.process_stats?.process_count ?? 0,
    diskBytes: storage?.usedBytes ?? 0,
    inodes: storage?.inodesUsed ?? 0,
  };
}

function sumOf(left: Use, right: Use): Use {
  return {
    memoryBytes: left.memoryBytes + right.memoryBytes,
    processes: left.processes + right.processes,
    diskBytes: left.diskBytes + right.diskBytes,
    inodes: left.inodes + right.inodes,
  };
}

/** The capacity, which is the sum of both, stays. */
function memoryWith(
  memory: MemoryStats | null | undefined,
  { memoryBytes }: Use,
): MemoryStats | null | undefined {
  const { availableBytes, workingSetBytes } = memory ?? {};
  if (typeof availableBytes !== 'number' || typeof workingSetBytes !== 'number') return memory;
  const back = Math.min(memoryBytes, Math.max(0, workingSetBytes));
  return {
    ...memory,
    availableBytes: availableBytes + back,
    workingSetBytes: workingSetBytes - back,
  };
}

function filesystemWith(
  fs: FilesystemStats | null | undefined,
  { diskBytes, inodes }: Use,
): FilesystemStats | null | undefined {
  if (fs === undefined || fs === null) return fs;
  return {
    ...fs,
    availableBytes: raised(fs.availableBytes, diskBytes, fs.capacityBytes),
    inodesFree: raised(fs.inodesFree, inodes, fs.inodes),
  };
}

function raised(
  available: number | null | undefined,
  by: number,
  capacity: number | null | undefined,
): number | null | undefined {
  if (typeof available !== 'number') return available;
  return Math.min(available + by, capacity ?? Number.MAX_SAFE_INTEGER);
}

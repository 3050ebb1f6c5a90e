import type { Quantity } from './quantity.ts';

/** Source: Kubernetes, "Pod Quality of Service Classes". */
export type QosClass = 'Guaranteed' | 'Burstable' | 'BestEffort';

/** What of a pod lies on a filesystem. Source: kubelet `helpers.go`, `fsStatsType`. */
export type DiskPart = 'root' | 'logs' | 'localVolumes';

export interface DiskUsage {
  readonly bytes: number;
  /** Undefined where nobody counts them. */
  readonly inodes: number | undefined;
  /** Whether there may be more, since a figure is missing, or not all was added up. */
  readonly isLeast?: true;
  /** Whether it is so much that it could not be added up to the end. */
  readonly isCut?: true;
}

/** How figures of disk use came about. */
export interface DiskSeen {
  /** When the oldest of them was found, monotonic ms. */
  readonly atMs: number;
  /** Whether it may be more: what there is was not all looked at. */
  readonly isCut: boolean;
  /** Of it, files that are deleted and that the pod keeps open. */
  readonly deletedBytes: number;
}

/** A container as an eviction message speaks of it. */
export interface ContainerObservation {
  readonly name: string;
  readonly request: Quantity;
  /** Of the resource in question, bytes; undefined where it is not known. */
  readonly usedBytes: number | undefined;
  /** When that was read, monotonic ms; left out where it was with the pod. */
  readonly atMs?: number;
}

/** A pod as it was seen at one instant: all that ranking and protection need. */
export interface PodObservation {
  /**
   * Unique for the life of the pod; a pod made again under the same name has another. Opaque to
   * the core.
   */
  readonly id: string;
  /** What people call it. Text from outside: never a path, never printed unescaped. */
  readonly name: string;
  /** What brings it back once it has ended; left out where that is not known. Opaque to the core. */
  readonly owner?: string;
  readonly priority: number;
  readonly qosClass: QosClass;
  /** The memory request in nano-bytes; 0 for none. */
  readonly memoryRequestNano: bigint;
  /** Usage less inactive file; undefined when it could not be read. */
  readonly workingSetBytes: number | undefined;
  /**
   * Its tasks (threads), or its processes where the kubelet's rules hold; undefined when they were
   * not counted, since no threshold of `pid.available` asks for it, or could not be.
   */
  readonly pids: number | undefined;
  /** The request of ephemeral storage in nano-bytes; none where it is left out. */
  readonly ephemeralStorageRequestNano?: bigint;
  /** What it uses of the node's disks; unknown where it is left out. */
  readonly disk?: Readonly<Record<DiskPart, DiskUsage>> | undefined;
  /** How the figures of its disk use came about; left out where they are as new as the others. */
  readonly diskSeen?: DiskSeen;
  /** What images take that it alone uses and that may be removed, bytes; unknown where it is left out. */
  readonly exclusiveImageBytes?: number | undefined;
  /** False where its source tells nothing at all of it. */
  readonly hasStats?: boolean;
  /**
   * Its containers with their use of a resource, where it is known to be made of some; undefined where what each
   * uses of that one is not known. A decision waits for it unless it is to be `exact`, which may take longer.
   */
  readonly containers?: (
    resource: 'memory' | 'ephemeral-storage',
    how?: 'exact',
  ) => readonly ContainerObservation[] | undefined;
  /** What `pids` counts; tasks where it is left out. */
  readonly pidsAre?: 'tasks' | 'processes';
  /** The grace that the pod asks for, in whole seconds; undefined for none of its own. */
  readonly gracePeriodSeconds: number | undefined;
  /** Why the pod may not be evicted; undefined when it may be. */
  readonly protectedBecause: string | undefined;
  /** Monotonic time at which `workingSetBytes` was read, in ms. */
  readonly atMs: number;
}

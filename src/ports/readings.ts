import type { Signal } from '../core/signal.ts';

/** The signals that a memory cgroup's counters tell. */
export type MemorySignal = Extract<Signal, 'memory.available' | 'allocatableMemory.available'>;

/** Where the figures of a reading come from. */
export type MemoryFigures =
  /** The cgroup's counters. */
  | 'counters'
  /** What `memory.stat` lists, since the counters cannot be true. */
  | 'memory.stat'
  /** `/proc/meminfo`: the host. */
  | 'meminfo';

/** A cgroup's memory at one instant. Bytes. */
export interface MemoryReading {
  readonly signal: MemorySignal;
  /** Monotonic ms. */
  readonly atMs: number;
  readonly figures: MemoryFigures;
  /** Why the counters are not believed, where they are not. */
  readonly refused: string | undefined;
  readonly usageBytes: number;
  readonly inactiveFileBytes: number;
  /** Usage less inactive file, not below 0. */
  readonly workingSetBytes: number;
  /** The hierarchical limit or the host's memory, whichever is less. */
  readonly capacityBytes: number;
  /** Available by each memory source, from 0 to the capacity. */
  readonly availableBytes: Readonly<Record<'workingset' | 'memavailable', number>>;
  /** What of the usage the chosen memory source does not hold against the node. */
  readonly deductedBytes: number;
  /**
   * Usage less what `memory.usage_in_bytes` says, by which the kernel notifies: what the root's
   * counter leaves out. Negative where the counter says too much.
   */
  readonly uncountedBytes: number;
  /** Changes when the cgroup is removed and made again: whatever was armed is gone then. */
  readonly cgroupId: string;
}

/** A failed reading: which part of the host could not be read, and why. */
export interface ReadingFailure {
  readonly error: string;
}

/** The node's memory counters at one instant. Bytes. */
export interface MemoryReading {
  /** Monotonic ms. */
  readonly atMs: number;
  readonly usageBytes: number;
  readonly inactiveFileBytes: number;
  /** Usage less inactive file, not below 0. */
  readonly workingSetBytes: number;
  /** The hierarchical limit or the host's memory, whichever is less. */
  readonly capacityBytes: number;
  /** Changes when the cgroup is removed and made again: whatever was armed is gone then. */
  readonly cgroupId: string;
}

/** A failed reading: which part of the host could not be read, and why. */
export interface ReadingFailure {
  readonly error: string;
}

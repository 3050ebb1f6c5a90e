import type { FilesystemLayout } from './layout.ts';
import type { ReclaimFunction } from './reclaim.ts';
import type { Rules } from './rules.ts';
import type { Threshold } from './threshold.ts';

export type { Compatibility } from './rules.ts';

/** What `memory.available` is made of: capacity less working set, or what the kernel could free. */
export type MemorySource = 'workingset' | 'memavailable';

/** What `step` decides by: checked when it was made, so nothing here is refused later. */
export interface Policy {
  readonly thresholds: readonly Threshold[];
  /** For how long a node condition is held after its threshold was last met. */
  readonly pressureTransitionPeriodMs: number;
  /**
   * The longest grace given to the victim of a soft threshold, in whole seconds; negative leaves
   * it to the pod.
   */
  readonly maxPodGracePeriodSeconds: number;
  /** The grace given to the victim of a hard threshold, in whole seconds. */
  readonly hardEvictionGracePeriodSeconds: number;
  /** Whose rule holds where the kubelet's and evictd's own differ. */
  readonly rules: Rules;
  /** Which filesystems are one: by it pods are ranked for disk, and it says what is collected. */
  readonly layout: FilesystemLayout;
  /** Whether it is known what pods use of the disks: else none is evicted for one. */
  readonly ranksDisk: boolean;
  /** What can be collected before a pod goes for a disk, in this order. */
  readonly reclaims: readonly ReclaimFunction[];
}

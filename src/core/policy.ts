import type { Threshold } from './threshold.ts';

/** Whose figures and rules count where the kubelet's and evictd's differ. */
export type Compatibility = 'kubelet' | 'evictd';

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
}

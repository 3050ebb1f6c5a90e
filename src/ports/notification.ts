import type { Arming } from '../core/memcg.ts';
import type { ThresholdId } from '../core/threshold.ts';

/** How the crossing of a threshold is noticed beside polling, and what stands in the way. */
export interface NotificationPath {
  readonly threshold: ThresholdId;
  /** What is armed; undefined when nothing is, and polling is alone. */
  readonly arming: Arming | undefined;
  /** Why the kernel does not notify, or undefined. */
  readonly degraded: string | undefined;
}

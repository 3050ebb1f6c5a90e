import { armingFor } from './memcg.ts';

/** How often the node is read where only polls can tell the crossing, ms. */
export const CLOSE_POLL_MS = 5;

/**
 * The poll that a memory threshold needs beside the adaptive one, ms; undefined where it needs
 * none. Where what is deducted (inactive file) exceeds the threshold, usage near the limit says nothing of the
 * working set, and it is read every {@link CLOSE_POLL_MS}. All sizes in bytes.
 */
export function closePollMs(
  capacityBytes: number,
  thresholdBytes: number,
  deductedBytes: number,
  usageBytes: number,
): number | undefined {
  // As of what is followed already: that begins at more inactive file than it ends at.
  const arming = armingFor(capacityBytes, thresholdBytes, deductedBytes, 'followed');
  return arming.kind === 'followed' && usageBytes > arming.closeAboveBytes
    ? CLOSE_POLL_MS
    : undefined;
}

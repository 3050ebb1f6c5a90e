import type { Cause } from './decision.ts';
import type { PodObservation } from './pod.ts';
import { formatBytes, formatQuantity } from './quantity.ts';
import { SIGNALS } from './signal.ts';
import { thresholdLevel } from './threshold.ts';

/**
 * Why something is evicted, in the kubelet's words. Source: kubelet `helpers.go`,
 * `evictionMessage`. The pod's name is text from outside and is left to the caller.
 */
export function evictionMessage(cause: Cause, pod: PodObservation | undefined): string {
  const { resource } = SIGNALS[cause.threshold.signal];
  const { threshold, observation } = cause;
  // The threshold itself, also where it is its minimum reclaim that is not regained.
  const level = thresholdLevel(threshold, observation.capacity, false);
  const numbers = `Threshold quantity: ${formatBytes(level)}, available: ${formatBytes(observation.available)}`;
  const node = `The node was low on resource: ${resource}. ${numbers}.`;
  if (pod === undefined) return node;
  const usage =
    pod.workingSetBytes === undefined ? 'an unknown amount' : formatBytes(pod.workingSetBytes);
  return `${node} The pod was using ${usage}, request is ${formatQuantity(pod.memoryRequestNano, 'binary')}.`;
}

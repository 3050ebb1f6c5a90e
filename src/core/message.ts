import type { Cause } from './decision.ts';
import type { PodObservation } from './pod.ts';
import { formatBytes, formatCount, formatQuantity } from './quantity.ts';
import { SIGNALS } from './signal.ts';
import { thresholdLevel } from './threshold.ts';

/**
 * Why something is evicted, in the kubelet's words. Source: kubelet `helpers.go`,
 * `evictionMessage`. The pod's name is text from outside and is left to the caller.
 */
export function evictionMessage(cause: Cause, pod: PodObservation | undefined): string {
  const { resource, unit } = SIGNALS[cause.threshold.signal];
  const { threshold, observation } = cause;
  // The threshold itself, also where it is its minimum reclaim that is not regained.
  const level = thresholdLevel(threshold, observation.capacity, false);
  const available = formatCount(observation.available, unit);
  const numbers = `Threshold quantity: ${formatCount(level, unit)}, available: ${available}`;
  const node = `The node was low on resource: ${resource}. ${numbers}.`;
  if (pod === undefined) return node;
  if (resource === 'pids') {
    return `${node} The pod had ${pod.pids ?? 'an unknown number of'} ${pod.pidsAre ?? 'tasks'}.`;
  }
  const usage =
    pod.workingSetBytes === undefined ? 'an unknown amount' : formatBytes(pod.workingSetBytes);
  return `${node} The pod was using ${usage}, request is ${formatQuantity(pod.memoryRequestNano, 'binary')}.`;
}

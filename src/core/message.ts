import type { Cause, EvictionAnnotations, PodCondition } from './decision.ts';
import type { PodObservation } from './pod.ts';
import { canonicalQuantity, formatBytes, formatCount, formatQuantity } from './quantity.ts';
import type { Rules } from './rules.ts';
import { SIGNALS } from './signal.ts';
import { canonicalLevel } from './threshold.ts';

/** Why something is evicted. */
export interface EvictionText {
  readonly message: string;
  readonly annotations: EvictionAnnotations;
}

/** Reason of every eviction. Source: kubelet `helpers.go`, `Reason`. */
export const EVICTED = 'Evicted';

/** What says of a pod that it was ended for the node's sake. */
export function disruptionTarget(message: string): PodCondition {
  return { type: 'DisruptionTarget', status: 'True', reason: 'TerminationByKubelet', message };
}

/**
 * Why something is evicted, in the kubelet's words. Source: kubelet `helpers.go`,
 * `evictionMessage`. Of a pod that is not known to be made of containers it tells what the whole
 * uses. The pod's name is text from outside and is left to the caller.
 */
export function evictionText(cause: Cause, pod: PodObservation, rules: Rules): EvictionText {
  const { resource } = SIGNALS[cause.threshold.signal];
  if (pod.containers === undefined) {
    return {
      message: `${nodeMessage(cause)}. ${podSentence(cause, pod)}`,
      annotations: {},
    };
  }
  const node = `${nodeMessage(cause)}. `;
  if (pod.hasStats === false) {
    const unknown = rules.unknownUsage === 'evictd' ? 'The usage of the pod is unknown. ' : '';
    return { message: node + unknown, annotations: {} };
  }
  const offending =
    resource === 'memory' || resource === 'ephemeral-storage'
      ? pod.containers(resource).flatMap(({ name, request, usedBytes }) => {
          const isOffending = usedBytes !== undefined && BigInt(usedBytes) * NANO > request.nano;
          return isOffending
            ? [{ name, usage: formatBytes(usedBytes), request: canonicalQuantity(request) }]
            : [];
        })
      : [];
  const sentences = offending.map(
    ({ name, usage, request }) =>
      `Container ${name} was using ${usage}, request is ${request}, has larger consumption of ${resource}. `,
  );
  return {
    message: node + sentences.join(''),
    annotations: {
      offending_containers: offending.map(({ name }) => name).join(','),
      offending_containers_usage: offending.map(({ usage }) => usage).join(','),
      starved_resource: resource,
    },
  };
}

/** The same where it is not about one pod. */
export function nodeText(cause: Cause): string {
  return `${nodeMessage(cause)}.`;
}

const NANO = 1_000_000_000n;

function nodeMessage({ threshold, observation }: Cause): string {
  const { resource, unit } = SIGNALS[threshold.signal];
  // The threshold itself, also where it is its minimum reclaim that is not regained.
  const level = canonicalLevel(threshold, observation.capacity);
  const available = formatCount(observation.available, unit);
  return `The node was low on resource: ${resource}. Threshold quantity: ${level}, available: ${available}`;
}

function podSentence({ threshold }: Cause, pod: PodObservation): string {
  if (SIGNALS[threshold.signal].resource === 'pids') {
    return `The pod had ${pod.pids ?? 'an unknown number of'} ${pod.pidsAre ?? 'tasks'}.`;
  }
  const usage =
    pod.workingSetBytes === undefined ? 'an unknown amount' : formatBytes(pod.workingSetBytes);
  return `The pod was using ${usage}, request is ${formatQuantity(pod.memoryRequestNano, 'binary')}.`;
}

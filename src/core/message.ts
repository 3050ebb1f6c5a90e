import type { Cause, EvictionAnnotations, PodCondition } from './decision.ts';
import type { ContainerObservation, PodObservation } from './pod.ts';
import { canonicalQuantity, formatBytes, formatCount, formatQuantity } from './quantity.ts';
import { type Ranking, usedOnDisk } from './rank.ts';
import { SIGNALS, type Signal } from './signal.ts';
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
 * uses, by evictd's rules of the filesystem that is short. The pod's name is text from outside and is left
 * to the caller.
 */
export function evictionText(cause: Cause, pod: PodObservation, ranking: Ranking): EvictionText {
  const { resource } = SIGNALS[cause.threshold.signal];
  const containers = containersFor(resource, pod);
  if (containers === undefined) {
    return {
      message: `${nodeMessage(cause)}. ${podSentence(cause, pod, ranking)}`,
      annotations: {},
    };
  }
  const node = `${nodeMessage(cause)}. `;
  if (pod.hasStats === false) {
    const unknown =
      ranking.rules.unknownUsage === 'evictd' ? 'The usage of the pod is unknown. ' : '';
    return { message: node + unknown, annotations: {} };
  }
  const offending = containers.flatMap(({ name, request, usedBytes }) => {
    const isOffending = usedBytes !== undefined && BigInt(usedBytes) * NANO > request.nano;
    return isOffending
      ? [{ name, usage: formatBytes(usedBytes), request: canonicalQuantity(request) }]
      : [];
  });
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

/** Why something is evicted for a filesystem on which only images lie; the kubelet has no words for it. */
export function imagesText(
  cause: Cause,
  { exclusiveImageBytes }: Pick<PodObservation, 'exclusiveImageBytes'>,
): EvictionText {
  const bytes = exclusiveImageBytes;
  const sentence =
    bytes === undefined
      ? 'What the images take that the pod alone uses is unknown.'
      : `The pod alone was using images of ${formatBytes(bytes)}.`;
  return { message: `${nodeMessage(cause)}. ${sentence}`, annotations: {} };
}

/**
 * The containers that a message may name; undefined where it tells of the pod as a whole. Of inodes and PIDs a
 * summary tells nothing by container, and the kubelet nothing at all.
 */
function containersFor(
  resource: (typeof SIGNALS)[Signal]['resource'],
  pod: PodObservation,
): readonly ContainerObservation[] | undefined {
  if (pod.containers === undefined) return undefined;
  if (resource === 'memory' || resource === 'ephemeral-storage') return pod.containers(resource);
  return pod.hasStats === undefined ? undefined : [];
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

function podSentence(
  { threshold: { signal } }: Cause,
  pod: PodObservation,
  ranking: Ranking,
): string {
  const requestNano = pod.ephemeralStorageRequestNano ?? 0n;
  switch (SIGNALS[signal].resource) {
    case 'pids':
      return `The pod had ${pod.pids ?? 'an unknown number of'} ${pod.pidsAre ?? 'tasks'}.`;
    case 'inodes':
      return `The pod was using ${diskText(pod, signal, ranking, String) ?? 'an unknown number of inodes'}.`;
    case 'ephemeral-storage':
      return usageSentence(diskText(pod, signal, ranking, formatBytes), requestNano);
    case 'memory':
      return usageSentence(textOf(pod.workingSetBytes), pod.memoryRequestNano);
  }
}

function textOf(usedBytes: number | undefined): string | undefined {
  return usedBytes === undefined ? undefined : formatBytes(usedBytes);
}

function usageSentence(usage: string | undefined, requestNano: bigint): string {
  const request = formatQuantity(requestNano, 'binary');
  return `The pod was using ${usage ?? 'an unknown amount'}, request is ${request}.`;
}

/**
 * Of its local storage: by evictd's rules what lies on the filesystem that is short, whose name is added; by the
 * kubelet's all of it. Undefined where it is not known.
 */
function diskText(
  pod: PodObservation,
  signal: Signal,
  { layout, rules }: Ranking,
  format: (amount: number) => string,
): string | undefined {
  const { filesystem, unit } = SIGNALS[signal];
  const isOwn = rules.nothingThere === 'evictd';
  const used = usedOnDisk(pod, signal, { layout: isOwn ? layout : 'single' });
  if (used === undefined) return undefined;
  const amount = `${format(used.amount)}${unit === 'bytes' ? '' : ' inodes'}`;
  return isOwn ? `${used.isLeast ? 'at least ' : ''}${amount} of ${filesystem}` : amount;
}

import type { KubernetesPod, ResourceList } from './kubernetes.ts';
import type { QosClass } from './pod.ts';
import { parseQuantity } from './quantity.ts';

/** The resources that make a class. */
const RESOURCES = ['cpu', 'memory'] as const;

const CLASSES: readonly string[] = ['Guaranteed', 'Burstable', 'BestEffort'] satisfies QosClass[];

/**
 * The class that the pod's status names, or that its requests and limits of CPU and memory make. One
 * that nobody knows is not BestEffort, as to the kubelet.
 *
 * @throws EvictdError EVICTD_QUANTITY for a quantity that cannot be read
 * @see Kubernetes `qos.GetPodQOS`
 */
export function qosClassOf({ spec, status }: KubernetesPod): QosClass {
  const named = status?.qosClass;
  if (typeof named === 'string' && named !== '') {
    return CLASSES.includes(named) ? (named as QosClass) : 'Burstable';
  }
  const containers = [...(spec.containers ?? []), ...(spec.initContainers ?? [])];
  let isBestEffort = true;
  let isGuaranteed = true;
  for (const name of RESOURCES) {
    let requested = 0n;
    let limited = 0n;
    for (const { resources } of containers) {
      const limit = positive(resources?.limits, name);
      if (limit === undefined) isGuaranteed = false;
      else limited += limit;
      const request = positive(resources?.requests, name);
      if (request !== undefined) requested += request;
    }
    if (requested !== 0n || limited !== 0n) isBestEffort = false;
    if (requested !== limited) isGuaranteed = false;
  }
  if (isBestEffort) return 'BestEffort';
  return isGuaranteed ? 'Guaranteed' : 'Burstable';
}

/** What the list says of a resource; undefined for nothing, and for less. */
function positive(list: ResourceList | null | undefined, name: string): bigint | undefined {
  const text = list?.[name];
  if (text === undefined || text === null) return undefined;
  const nano = parseQuantity(String(text));
  return nano > 0n ? nano : undefined;
}

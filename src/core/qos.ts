import type { KubernetesPod, ResourceList } from './kubernetes.ts';
import type { QosClass } from './pod.ts';
import { parseQuantity } from './quantity.ts';

/** The resources that make a class. */
const RESOURCES = ['cpu', 'memory'] as const;

const CLASSES: readonly string[] = ['Guaranteed', 'Burstable', 'BestEffort'] satisfies QosClass[];

/**
 * The class that the pod's status names, or that its requests and limits of CPU and memory make.
 *
 * @throws EvictdError EVICTD_QUANTITY for a quantity that cannot be read
 * @see Kubernetes `qos.GetPodQOS`
 */
export function qosClassOf({ spec, status }: KubernetesPod): QosClass {
  const named = status?.qosClass;
  if (typeof named === 'string' && CLASSES.includes(named)) return named as QosClass;
  const requests = new Map<string, bigint>();
  const limits = new Map<string, bigint>();
  let isGuaranteed = true;
  for (const { resources } of [...(spec.containers ?? []), ...(spec.initContainers ?? [])]) {
    addAll(requests, resources?.requests);
    isGuaranteed = addAll(limits, resources?.limits) === RESOURCES.length && isGuaranteed;
  }
  if (requests.size === 0 && limits.size === 0) return 'BestEffort';
  const isEqual = [...requests].every(([name, nano]) => limits.get(name) === nano);
  return isGuaranteed && isEqual && requests.size === limits.size ? 'Guaranteed' : 'Burstable';
}

/** Adds what of the list counts; returns how many of the resources that are. */
function addAll(sums: Map<string, bigint>, list: ResourceList | null | undefined): number {
  let count = 0;
  for (const name of RESOURCES) {
    const text = list?.[name];
    if (text === undefined || text === null) continue;
    const nano = parseQuantity(String(text));
    if (nano <= 0n) continue;
    sums.set(name, (sums.get(name) ?? 0n) + nano);
    count += 1;
  }
  return count;
}

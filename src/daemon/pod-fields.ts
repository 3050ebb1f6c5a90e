/** What is said of a pod that a runtime names: by its labels, by its containers', and by the rules of a file. */
import { labelledPod } from '../config/pod-labels.ts';
import type { NamedPodMatcher } from '../config/runtime-rules.ts';
import type { RuntimeContainer, RuntimePod } from '../ports/pod-directory.ts';
import type { RuleFields } from '../runtimes/cgroup/observe.ts';
import type { ClaimedPod } from '../runtimes/shared/claims.ts';
import type { About } from '../runtimes/shared/once-per-pod.ts';

/** A label that cannot be read. */
export interface LabelFault extends About {
  readonly podName: string;
}

/** What holds for a pod. */
export interface PodFieldsFound {
  /** By the paths of its cgroups. */
  readonly fields: ReadonlyMap<string, RuleFields>;
  readonly faults: readonly LabelFault[];
}

/**
 * Joins what is said of a pod:
 *
 * - What the first rule says that matches it wins over its labels, each field by itself; whatever protects it
 *   protects it.
 * - One that is critical to the node is protected.
 * - Of several containers the highest priority and the longest grace count, and one that is protected protects
 *   all. What they ask for is added up, where neither the rule nor a label of the pod itself says it.
 */
export function podFieldsOf(
  { pod, paths }: ClaimedPod,
  pathOf: (cgroup: string) => string | undefined,
  ruleOf: NamedPodMatcher,
): PodFieldsFound {
  const whole = labelledPod(pod.labels, pod.annotations);
  const parts = pod.containers.map((container) => ({
    container,
    labelled: labelledPod(container.labels, {}),
  }));
  const all = [whole, ...parts.map(({ labelled }) => labelled)];
  const rule = ruleOf({
    namespace: pod.namespace,
    name: bareName(pod),
    paths,
    labels: [pod.labels, ...pod.containers.map(({ labels }) => ({ ...pod.labels, ...labels }))],
    images: pod.containers.flatMap(imagesOf),
  });
  const fields: Omit<RuleFields, 'memoryRequestNano'> = {
    name: pod.name,
    priority: rule?.priority ?? most(all.map(({ priority }) => priority)),
    gracePeriodSeconds:
      rule?.gracePeriodSeconds ?? most(all.map(({ gracePeriodSeconds }) => gracePeriodSeconds)),
    protected: pod.isCritical || rule?.protected === true || all.some((one) => one.protected),
  };
  const requests = requestsOf(
    paths,
    rule?.memoryRequestNano ?? whole.memoryRequestNano,
    parts.map(({ container, labelled }) => ({
      path: container.cgroup === undefined ? undefined : pathOf(container.cgroup),
      nano: labelled.memoryRequestNano ?? container.memoryRequest?.nano,
    })),
  );
  const faults = [...new Set(all.flatMap((one) => one.faults))];
  return {
    fields: new Map(
      paths.map((path) => [path, { ...fields, memoryRequestNano: requests.get(path) }]),
    ),
    faults: faults.map((reason) => ({ podId: pod.id, podName: pod.name, reason })),
  };
}

/** Undefined for what is not known; that a dead container was made of one says nothing of what runs. */
function imagesOf({ images, isRunning }: RuntimeContainer): readonly (string | undefined)[] {
  return images ?? (isRunning ? [undefined] : []);
}

/** Without the namespace in front. */
function bareName({ namespace, name }: RuntimePod): string {
  return namespace === undefined ? name : name.slice(namespace.length + 1);
}

/**
 * What each cgroup asks for; nothing for one of which only the kernel tells. What the pod as a whole asks for is
 * put down to its first cgroup, so that the sum is right.
 */
function requestsOf(
  paths: readonly string[],
  wholeNano: bigint | undefined,
  containers: readonly { readonly path: string | undefined; readonly nano: bigint | undefined }[],
): ReadonlyMap<string, bigint> {
  if (wholeNano !== undefined) {
    return new Map(paths.map((path, index) => [path, index === 0 ? wholeNano : 0n]));
  }
  const requests = new Map<string, bigint>();
  for (const { path, nano } of containers) {
    if (nano === undefined) continue;
    const own = path !== undefined && paths.includes(path) ? path : paths[0];
    if (own !== undefined) requests.set(own, (requests.get(own) ?? 0n) + nano);
  }
  return requests;
}

function most(numbers: readonly (number | undefined)[]): number | undefined {
  const known = numbers.filter((one) => one !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}

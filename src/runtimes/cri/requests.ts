/**
 * What a kubelet's own figures tell of a pod that CRI has no field for. Pure.
 *
 * A kubelet hands a container's memory request to no runtime. It works the request into `oom_score_adj`, from
 * which it can be told again to one thousandth of the machine's memory.
 *
 * @see Kubernetes, "Node-pressure Eviction", section "Node out of memory behavior"
 */

/** As the kubelet sets it for what is Guaranteed, and for what is critical to the node. */
export const OOM_SCORE_ADJ_KEPT = -997;

/** Of a Burstable container the least and the most. */
const BURSTABLE = { least: 2, most: 999 } as const;

/** The most there is: BestEffort. */
const OOM_SCORE_ADJ_FIRST = 1000;

/** What a runtime was told of a container. */
export interface ContainerResources {
  readonly oomScoreAdj: number;
  /** 0 for none. */
  readonly limitBytes: number;
}

/**
 * The memory request of a container that a kubelet made, bytes: the least that it can be, so that usage is never
 * taken for less above its request than it is. Undefined where nothing tells it.
 *
 * @param capacityBytes the machine's memory
 */
export function requestBytes(
  { oomScoreAdj, limitBytes }: ContainerResources,
  capacityBytes: number,
): number | undefined {
  if (oomScoreAdj === OOM_SCORE_ADJ_FIRST) return 0;
  if (oomScoreAdj === OOM_SCORE_ADJ_KEPT) return limitBytes > 0 ? limitBytes : undefined;
  if (oomScoreAdj < BURSTABLE.least || oomScoreAdj > BURSTABLE.most) return undefined;
  // The most stands for the least request that there is, and for none.
  if (oomScoreAdj === BURSTABLE.most) return 0;
  return Math.floor(((OOM_SCORE_ADJ_FIRST - oomScoreAdj) * capacityBytes) / OOM_SCORE_ADJ_FIRST);
}

/**
 * Whether a kubelet takes a pod for critical to the node: one that is not Guaranteed, and yet is kept from the OOM
 * killer as if it were.
 *
 * @param cgroup relative to the hierarchy's root
 */
export function isNodeCritical(cgroup: string, containers: readonly ContainerResources[]): boolean {
  return (
    isBelowGuaranteed(cgroup) &&
    containers.some(({ oomScoreAdj }) => oomScoreAdj === OOM_SCORE_ADJ_KEPT)
  );
}

/** Whether a cgroup lies where a kubelet has its pods. */
export function isKubelets(cgroup: string): boolean {
  return cgroup.split('/').some((part) => /(?:^|-)kubepods(?:\.slice)?$/.test(part));
}

/** Whether it lies where a kubelet has pods that ask for nothing. */
export function isBestEffort(cgroup: string): boolean {
  return isBelow(cgroup, /(?:^|-)besteffort(?:\.slice)?$/);
}

/** Whether it lies where a kubelet has pods that are Burstable or BestEffort. */
function isBelowGuaranteed(cgroup: string): boolean {
  return isBelow(cgroup, /(?:^|-)(?:burstable|besteffort)(?:\.slice)?$/);
}

function isBelow(cgroup: string, qosFolder: RegExp): boolean {
  const parts = cgroup.split('/');
  return parts.some(
    (part, index) =>
      /(?:^|-)kubepods(?:\.slice)?$/.test(part) && qosFolder.test(parts[index + 1] ?? ''),
  );
}

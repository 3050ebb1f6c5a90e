/**
 * Who is evicted, said a second time: from the Kubernetes documentation ("Node-pressure Eviction", "Pod
 * selection for kubelet eviction") and the rows of `src/core/rules.ts`, as a selection over plain data
 * that narrows the pods down until one is left.
 */
import type {
  ContainerStats,
  FilesystemStats,
  KubernetesContainer,
  KubernetesPod,
  PodStats,
  ResourceList,
} from '../../src/core/kubernetes.ts';
import type { Compatibility } from '../../src/core/policy.ts';
import type { Signal } from '../../src/core/signal.ts';
import type { ImageEntry, Scenario } from '../../src/simulation/scenario.ts';
import { msOf, nanoOf } from './plain.ts';

const NANO = 1_000_000_000n;

/** What the choice depends on. */
export interface Choice {
  readonly signal: Signal;
  readonly node: Scenario['node'];
  readonly compatibility: Compatibility;
  readonly statsOf: (pod: KubernetesPod) => PodStats | undefined;
  /** What images take that it alone uses and that could be removed; undefined where nothing tells. */
  readonly imagesOf: (pod: KubernetesPod) => number | undefined;
}

/** Whether nothing but images lies on the filesystem in question, by which evictd alone ranks. */
export function isOfImages({
  signal,
  node,
  compatibility,
}: Omit<Choice, 'statsOf' | 'imagesOf'>): boolean {
  const isSplit = node.dedicatedImageFs && node.splitImageFs;
  return compatibility === 'evictd' && isSplit && signal.startsWith('imagefs.');
}

/** What could be removed with each pod. */
export function imagesOfPods(
  images: readonly ImageEntry[],
  isThere: (name: string) => boolean,
  isActive: (name: string) => boolean,
): (pod: KubernetesPod) => number | undefined {
  return (pod) => {
    const name = nameOf(pod);
    const own = images.filter(({ usedBy }) => usedBy?.includes(name));
    if (own.length === 0 || !isActive(name)) return undefined;
    return own
      .filter(({ inUse, pinned, age, usedBy = [] }) => {
        const isAlone = inUse !== true && usedBy.every((one) => one === name || !isThere(one));
        return isAlone && pinned !== true && msOf(age) >= 120_000;
      })
      .reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  };
}

export function nameOf({ metadata }: KubernetesPod): string {
  return `${metadata.namespace}/${metadata.name}`;
}

/** "Critical" pods are never evicted: those of a system priority, static pods and their mirrors. */
export function isSpared({ metadata, spec }: KubernetesPod): boolean {
  const source = metadata.annotations?.['kubernetes.io/config.source'] ?? 'api';
  const isMirror = metadata.annotations?.['kubernetes.io/config.mirror'] !== undefined;
  return source !== 'api' || isMirror || (spec.priority ?? 0) >= 2_000_000_000;
}

/** Of several pods the one to go first; undefined of none. */
export function firstToGo(
  pods: readonly KubernetesPod[],
  choice: Choice,
): KubernetesPod | undefined {
  let left = pods.map((pod) => ({
    pod,
    group: groupOf(pod, choice),
    used: usedAbove(pod, choice),
  }));
  if (left.length === 0) return undefined;
  // Those whose usage exceeds their requests are considered before all who keep to theirs.
  const group = Math.min(...left.map((one) => one.group));
  left = left.filter((one) => one.group === group);
  // Then the priority decides.
  const priority = Math.min(...left.map(({ pod }) => pod.spec.priority ?? 0));
  left = left.filter(({ pod }) => (pod.spec.priority ?? 0) === priority);
  // Then how much is used above the request; the kubelet takes those of whom it knows nothing first.
  const unknown = left.filter(({ used }) => used === undefined);
  const known = left.filter(({ used }) => used !== undefined);
  if (choice.compatibility === 'kubelet' ? unknown.length > 0 : known.length === 0) {
    left = unknown;
  } else {
    const most = known.map(({ used }) => used as bigint).reduce(larger);
    left = known.filter(({ used }) => used === most);
  }
  // Whom nothing tells apart goes by name.
  const name = left.map(({ pod }) => nameOf(pod)).sort()[0];
  return left.find(({ pod }) => nameOf(pod) === name)?.pod;
}

/** The smallest is considered first. PIDs are not requested: there all are one group. */
function groupOf(pod: KubernetesPod, choice: Choice): number {
  if (choice.signal === 'pid.available') return 0;
  const used = usageOf(pod, choice);
  const exceeds = used !== undefined && used > requestFor(pod, choice);
  if (used === undefined) return choice.compatibility === 'kubelet' ? 0 : 1;
  if (exceeds) return choice.compatibility === 'kubelet' ? 1 : 0;
  return 2;
}

/** What a pod's usage is compared with: nobody requests inodes or images. */
function requestFor(pod: KubernetesPod, choice: Choice): bigint {
  const { signal, compatibility } = choice;
  if (signal.endsWith('inodesFree') || isOfImages(choice)) return 0n;
  const resource = isMemory(signal) ? 'memory' : 'ephemeral-storage';
  return requestOf(pod, resource, compatibility);
}

function usedAbove(pod: KubernetesPod, choice: Choice): bigint | undefined {
  const used = usageOf(pod, choice);
  if (used === undefined || choice.signal === 'pid.available') return used;
  const isKubeletsInodes =
    choice.signal.endsWith('inodesFree') && choice.compatibility === 'kubelet';
  return isKubeletsInodes
    ? used - requestOf(pod, 'ephemeral-storage', 'kubelet')
    : used - requestFor(pod, choice);
}

function isMemory(signal: Signal): boolean {
  return signal === 'memory.available' || signal === 'allocatableMemory.available';
}

/** In nano-units; undefined for a usage that is not known. To the kubelet a missing part is 0. */
function usageOf(pod: KubernetesPod, choice: Choice): bigint | undefined {
  if (isOfImages(choice)) {
    const bytes = choice.imagesOf(pod);
    return bytes === undefined ? undefined : BigInt(bytes) * NANO;
  }
  const stats = choice.statsOf(pod);
  if (stats === undefined) return undefined;
  const count = countOf(pod, stats, choice);
  if (count === undefined || count === null) {
    return choice.compatibility === 'kubelet' ? 0n : undefined;
  }
  return BigInt(count) * NANO;
}

function countOf(pod: KubernetesPod, stats: PodStats, choice: Choice): number | null | undefined {
  if (choice.signal === 'pid.available') return stats.process_stats?.process_count;
  if (isMemory(choice.signal)) return stats.memory?.workingSetBytes;
  const containers = stats.containers ?? [];
  const volumes = stats.volume ?? [];
  if (containers.length + volumes.length === 0) return undefined;
  const what = choice.signal.endsWith('inodesFree') ? 'inodesUsed' : 'usedBytes';
  const of = (part: FilesystemStats | null | undefined): number => part?.[what] ?? 0;
  const sum = (part: 'rootfs' | 'logs'): number =>
    containers.reduce((all, container: ContainerStats) => all + of(container[part]), 0);
  const local = localVolumesOf(pod).reduce(
    (all, name) => all + of(volumes.find((one) => one.name === name)),
    0,
  );
  const { writable, rest } = liesThere(choice);
  return (writable ? sum('rootfs') : 0) + (rest ? sum('logs') + local : 0);
}

/** Whether what each part of a pod uses of the filesystem in question is told, and is 0: its end frees nothing. */
export function hasNothingThere(pod: KubernetesPod, choice: Choice): boolean {
  const stats = choice.statsOf(pod);
  const isOfDisk = /^(nodefs|imagefs|containerfs)\./.test(choice.signal);
  if (stats === undefined || !isOfDisk || choice.compatibility === 'kubelet') return false;
  if (isOfImages(choice) || countOf(pod, stats, choice) !== 0) return false;
  const { writable, rest } = liesThere(choice);
  const isTold = (part: FilesystemStats | null | undefined): boolean =>
    typeof part?.usedBytes === 'number' && typeof part.inodesUsed === 'number';
  const containers = stats.containers ?? [];
  const local = stats.volume?.filter(({ name }) => localVolumesOf(pod).includes(name)) ?? [];
  return (
    (!writable || containers.every(({ rootfs }) => isTold(rootfs))) &&
    (!rest || (containers.every(({ logs }) => isTold(logs)) && local.every(isTold)))
  );
}

/** The names of the volumes that count as a pod's own. */
function localVolumesOf({ spec }: KubernetesPod): readonly string[] {
  return (spec.volumes ?? [])
    .filter((volume) => {
      const isOnDisk = volume.emptyDir != null && volume.emptyDir.medium !== 'Memory';
      return (
        isOnDisk || volume.hostPath != null || volume.configMap != null || volume.gitRepo != null
      );
    })
    .map(({ name }) => name);
}

/** Whether writable layers, and whether logs and local volumes, lie on the filesystem in question. */
function liesThere({ signal, node }: Choice): { writable: boolean; rest: boolean } {
  const filesystem = signal.split('.')[0];
  if (!node.dedicatedImageFs) return { writable: true, rest: true };
  if (node.splitImageFs) {
    return filesystem === 'imagefs'
      ? { writable: false, rest: false }
      : { writable: true, rest: true };
  }
  return filesystem === 'nodefs'
    ? { writable: false, rest: true }
    : { writable: true, rest: false };
}

type Resource = 'memory' | 'ephemeral-storage';

/** What a pod requests, as the rules say; in nano-units. */
export function requestOf(
  { spec }: KubernetesPod,
  resource: Resource,
  compatibility: Compatibility,
): bigint {
  const of = (list: ResourceList | null | undefined): bigint => nanoOf(list?.[resource]);
  const ofAll = (spec.containers ?? []).map(({ resources }) => of(resources?.requests));
  const together = ofAll.reduce((sum, one) => sum + one, 0n);
  const inits = (spec.initContainers ?? []).map(({ resources, restartPolicy }) => ({
    nano: of(resources?.requests),
    stays: restartPolicy === 'Always',
  }));
  if (compatibility === 'kubelet') {
    const most = inits.map(({ nano }) => nano).reduce(larger, together);
    return most > 0n ? most + of(spec.overhead) : 0n;
  }
  let beside = 0n;
  let peak = 0n;
  for (const { nano, stays } of inits) {
    peak = larger(peak, beside + nano);
    if (stays) beside += nano;
  }
  const running = together + beside;
  return larger(running, peak) + of(spec.overhead);
}

/** Whether a pod uses more of the node's disks than it is allowed to. */
export function exceedsItsLimits(
  { spec }: KubernetesPod,
  stats: PodStats | undefined,
  node: Scenario['node'],
  compatibility: Compatibility,
): boolean {
  if (stats === undefined) return false;
  const above = (used: number | null | undefined, limit: bigint): boolean =>
    typeof used === 'number' && BigInt(used) * NANO > limit;
  for (const { name, emptyDir } of spec.volumes ?? []) {
    const limit = nanoOf(emptyDir?.sizeLimit);
    const volume = stats.volume?.find((one) => one.name === name);
    if (limit > 0n && above(volume?.usedBytes, limit)) return true;
  }
  const total = storageLimitOf(spec);
  if (total !== undefined && above(stats['ephemeral-storage']?.usedBytes ?? 0, total)) return true;
  const countsLayer = compatibility === 'evictd' || !node.dedicatedImageFs;
  return (stats.containers ?? []).some(({ name, logs, rootfs }) => {
    const container = spec.containers?.find((one) => one.name === name);
    const limit = nanoOf(container?.resources?.limits?.['ephemeral-storage']);
    const used = (logs?.usedBytes ?? 0) + (countsLayer ? (rootfs?.usedBytes ?? 0) : 0);
    return limit > 0n && above(used, limit);
  });
}

function larger(one: bigint, other: bigint): bigint {
  if (other > one) return other;
  return one;
}

/** The limit of all containers together; undefined where none has one. */
function storageLimitOf(spec: KubernetesPod['spec']): bigint | undefined {
  const limitOf = (container: KubernetesContainer) =>
    container.resources?.limits?.['ephemeral-storage'];
  const containers = spec.containers ?? [];
  const inits = spec.initContainers ?? [];
  if ([...containers, ...inits].every((one) => limitOf(one) === undefined)) return undefined;
  let running = containers.reduce((sum, one) => sum + nanoOf(limitOf(one)), 0n);
  let beside = 0n;
  let peak = 0n;
  for (const init of inits) {
    const nano = nanoOf(limitOf(init));
    peak = larger(peak, beside + nano);
    if (init.restartPolicy === 'Always') beside += nano;
  }
  running += beside;
  return larger(running, peak) + nanoOf(spec.overhead?.['ephemeral-storage']);
}

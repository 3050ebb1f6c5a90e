import type {
  KubernetesContainer,
  KubernetesPod,
  KubernetesVolume,
  QuantityText,
  ResourceList,
} from './kubernetes.ts';
import type { QosClass } from './pod.ts';
import { qosClassOf } from './qos.ts';
import { addQuantities, type Quantity, readQuantity } from './quantity.ts';
import type { Rules } from './rules.ts';

/** What of a pod does not change from one reading to the next, read once. */
export interface PodSpec {
  /** The uid. */
  readonly id: string;
  /** `namespace/name`. */
  readonly name: string;
  readonly priority: number;
  readonly qosClass: QosClass;
  /** Why it is critical and may never be evicted; undefined where it is not. */
  readonly protectedBecause: string | undefined;
  readonly memoryRequestNano: bigint;
  readonly ephemeralStorageRequestNano: bigint;
  readonly gracePeriodSeconds: number | undefined;
  /** What each container, init containers last, requests; by its name, the first of a name. */
  readonly containers: ReadonlyMap<string, ContainerRequests>;
  /** Volumes whose files lie on nodefs. */
  readonly localVolumes: readonly string[];
  /** What limits its local storage; undefined where nothing does. */
  readonly storageLimits: StorageLimits | undefined;
}

export interface ContainerRequests {
  readonly memory: Quantity;
  readonly ephemeralStorage: Quantity;
}

/** A limit of local storage. */
export interface StorageLimit {
  /** What is limited: the volume or the container; empty for the pod. */
  readonly name: string;
  readonly quantity: Quantity;
  /** How much may be used, in whole bytes; above 2^53 the nearest number there is. */
  readonly mostBytes: number;
}

export interface StorageLimits {
  /** All above 0. */
  readonly emptyDirs: readonly StorageLimit[];
  /** Of all containers together. */
  readonly pod: StorageLimit | undefined;
  /** One for each name. */
  readonly containers: readonly StorageLimit[];
}

/** Pods from here on are the system's own. Source: Kubernetes `SystemCriticalPriority`. */
export const CRITICAL_PRIORITY = 2_000_000_000;

const SOURCE_ANNOTATION = 'kubernetes.io/config.source';
const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';

const NANO = 1_000_000_000n;

const ZERO: Quantity = { nano: 0n, format: 'decimal' };
const NO_REQUESTS: ContainerRequests = { memory: ZERO, ephemeralStorage: ZERO };

/**
 * Reads what the policy needs of a pod.
 *
 * @throws EvictdError EVICTD_QUANTITY for a request or limit that cannot be read
 */
export function podSpec(pod: KubernetesPod, rules: Rules): PodSpec {
  const { metadata, spec } = pod;
  const containers = (spec.containers ?? []).map(quantitiesOf);
  const initContainers = (spec.initContainers ?? []).map(quantitiesOf);
  const all: Containers = { containers, initContainers };
  const overhead = quantitiesIn(spec.overhead);
  return {
    id: metadata.uid,
    name: `${metadata.namespace}/${metadata.name}`,
    priority: spec.priority ?? 0,
    qosClass: qosClassOf(pod),
    protectedBecause: criticalBecause(pod),
    memoryRequestNano: requestOf(all, memoryRequest, overhead.memory, rules),
    ephemeralStorageRequestNano: requestOf(all, storageRequest, overhead.ephemeralStorage, rules),
    gracePeriodSeconds: spec.terminationGracePeriodSeconds ?? undefined,
    containers: containerRequests(all),
    localVolumes: (spec.volumes ?? []).filter(isLocal).map(({ name }) => name),
    storageLimits: storageLimits(spec.volumes ?? [], all, overhead.ephemeralStorage),
  };
}

/** Why a pod is critical; undefined where it is not. Source: kubelet `types.IsCriticalPod`. */
export function criticalBecause({ metadata, spec }: KubernetesPod): string | undefined {
  const annotations = metadata.annotations ?? {};
  const source = annotations[SOURCE_ANNOTATION];
  if (source !== undefined && source !== 'api') return 'static pod';
  if (annotations[MIRROR_ANNOTATION] !== undefined) return 'mirror pod';
  return (spec.priority ?? 0) >= CRITICAL_PRIORITY ? 'critical priority' : undefined;
}

/** A medium is memory, or huge pages. Source: kubelet `localVolumeNames`, `IsLocalEphemeralVolume`. */
function isLocal(volume: KubernetesVolume): boolean {
  const { emptyDir, hostPath, configMap, gitRepo } = volume;
  return (
    isGiven(hostPath) ||
    (isGiven(emptyDir) && (emptyDir?.medium ?? '') === '') ||
    isGiven(configMap) ||
    isGiven(gitRepo)
  );
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function quantityOf(list: ResourceList | null | undefined, name: string): Quantity | undefined {
  const value: QuantityText | null | undefined = list?.[name];
  return value === undefined || value === null ? undefined : readQuantity(String(value));
}

/** What a list says of the resources that are looked at. */
interface Quantities {
  readonly memory: Quantity | undefined;
  readonly ephemeralStorage: Quantity | undefined;
}

const NOTHING: Quantities = { memory: undefined, ephemeralStorage: undefined };

function quantitiesIn(list: ResourceList | null | undefined): Quantities {
  if (list === undefined || list === null) return NOTHING;
  return {
    memory: quantityOf(list, 'memory'),
    ephemeralStorage: quantityOf(list, 'ephemeral-storage'),
  };
}

/** A container with its quantities read, each once. */
interface ContainerQuantities {
  readonly name: string;
  /** Of an init container: that it goes on beside the others. */
  readonly goesOn: boolean;
  readonly requests: Quantities;
  readonly storageLimit: Quantity | undefined;
}

interface Containers {
  readonly containers: readonly ContainerQuantities[];
  readonly initContainers: readonly ContainerQuantities[];
}

function quantitiesOf({
  name,
  resources,
  restartPolicy,
}: KubernetesContainer): ContainerQuantities {
  return {
    name,
    goesOn: restartPolicy === 'Always',
    requests: quantitiesIn(resources?.requests),
    storageLimit: quantityOf(resources?.limits, 'ephemeral-storage'),
  };
}

/** What is summed up of each container. */
type Summand = (container: ContainerQuantities) => Quantity | undefined;

const memoryRequest: Summand = ({ requests }) => requests.memory;
const storageRequest: Summand = ({ requests }) => requests.ephemeralStorage;
const storageLimit: Summand = (container) => container.storageLimit;

/**
 * What the pod requests. The kubelet ranks by an older sum: each init container by itself, also one that
 * goes on, and the overhead only beside a request. Source: kubelet `GetResourceRequestQuantity`.
 */
function requestOf(
  all: Containers,
  summand: Summand,
  overhead: Quantity | undefined,
  rules: Rules,
): bigint {
  const overheadNano = overhead?.nano ?? 0n;
  if (rules.podRequest === 'evictd') return (ofContainers(all, summand)?.nano ?? 0n) + overheadNano;
  let most = 0n;
  for (const container of all.containers) {
    const own = summand(container);
    if (own !== undefined) most += own.nano;
  }
  for (const container of all.initContainers) {
    const own = summand(container);
    if (own !== undefined && own.nano > most) most = own.nano;
  }
  return most === 0n ? 0n : most + overheadNano;
}

/**
 * Of the containers that run together, or of an init container beside those that go on, whichever is
 * more; undefined where none names the resource.
 *
 * Source: Kubernetes, component-helpers `PodRequests` and `PodLimits`.
 */
function ofContainers(
  { containers, initContainers }: Containers,
  summand: Summand,
): Quantity | undefined {
  let together = containers.map(summand).reduce(sumOf, undefined);
  let goingOn: Quantity | undefined;
  let most: Quantity | undefined;
  for (const container of initContainers) {
    const own = summand(container);
    if (container.goesOn) {
      together = sumOf(together, own);
      goingOn = sumOf(goingOn, own);
      most = larger(most, goingOn);
    } else {
      most = larger(most, sumOf(own, goingOn));
    }
  }
  return larger(together, most);
}

function sumOf(left: Quantity | undefined, right: Quantity | undefined): Quantity | undefined {
  if (left === undefined) return right;
  return right === undefined ? left : addQuantities(left, right);
}

function larger(left: Quantity | undefined, right: Quantity | undefined): Quantity | undefined {
  if (left === undefined) return right;
  return right !== undefined && right.nano > left.nano ? right : left;
}

function containerRequests({
  containers,
  initContainers,
}: Containers): ReadonlyMap<string, ContainerRequests> {
  const byName = new Map<string, ContainerRequests>();
  const add = ({ name, requests }: ContainerQuantities): void => {
    if (byName.has(name)) return;
    const { memory = ZERO, ephemeralStorage = ZERO } = requests;
    byName.set(name, requests === NOTHING ? NO_REQUESTS : { memory, ephemeralStorage });
  };
  containers.forEach(add);
  initContainers.forEach(add);
  return byName;
}

/** Source: kubelet `emptyDirLimitEviction` and the two checks after it. */
function storageLimits(
  volumes: readonly KubernetesVolume[],
  all: Containers,
  overhead: Quantity | undefined,
): StorageLimits | undefined {
  const emptyDirs: StorageLimit[] = [];
  for (const { name, emptyDir } of volumes) {
    const text = emptyDir?.sizeLimit;
    const limit = text === undefined || text === null ? undefined : readQuantity(String(text));
    if (limit !== undefined && limit.nano > 0n) emptyDirs.push(limitOf(name, limit));
  }
  const isLimited = ({ storageLimit: limit }: ContainerQuantities): boolean => limit !== undefined;
  const isAnyLimited = all.containers.some(isLimited) || all.initContainers.some(isLimited);
  // Most pods have none.
  if (emptyDirs.length === 0 && !isAnyLimited) return undefined;
  const containers = new Map<string, StorageLimit>();
  for (const { name, storageLimit: limit } of all.containers) {
    if (limit !== undefined && limit.nano !== 0n) containers.set(name, limitOf(name, limit));
  }
  const sum = ofContainers(all, storageLimit);
  const most = sum && sumOf(sum, overhead);
  return { emptyDirs, pod: most && limitOf('', most), containers: [...containers.values()] };
}

function limitOf(name: string, quantity: Quantity): StorageLimit {
  const { nano } = quantity;
  const whole = nano / NANO;
  const isRoundedUp = nano < 0n && whole * NANO !== nano;
  return { name, quantity, mostBytes: Number(isRoundedUp ? whole - 1n : whole) };
}

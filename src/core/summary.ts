/**
 * What the kubelet's Summary API says, as observations of signals and pods.
 * Source: kubelet `helpers.go`, `makeSignalObservations`.
 */
import type {
  ContainerStats,
  FilesystemStats,
  MemoryStats,
  PodStats,
  Summary,
} from './kubernetes.ts';
import type { SignalObservation } from './observation.ts';
import type { ContainerObservation, DiskPart, DiskUsage, PodObservation, QosClass } from './pod.ts';
import type { PodSpec } from './pod-spec.ts';
import type { MemorySource } from './policy.ts';
import type { Rules } from './rules.ts';
import type { Signal } from './signal.ts';
import { parseTimestampNs } from './timestamp.ts';

/** The container of the system that stands for all pods. */
const ALL_PODS = 'pods';

/** How a summary is read. */
export interface SummaryReading {
  readonly summary: Summary;
  /** Monotonic ms. */
  readonly nowMs: number;
  readonly rules: Rules;
  readonly memorySource: MemorySource;
  /** What the kernel could free, bytes, where that is known: the second source of `memory.available`. */
  readonly memAvailableBytes: number | undefined;
}

/** The observations, and which figures could not be true. */
export interface SummaryObservations {
  readonly observations: readonly SignalObservation[];
  readonly refused: readonly Signal[];
}

/** The signals of a summary. A part that is missing has none. */
export function summaryObservations(reading: SummaryReading): SummaryObservations {
  const all = signalsOf(reading);
  if (reading.rules.impossibleSample === 'kubelet') return { observations: all, refused: [] };
  const isPossible = ({ available, capacity }: SignalObservation): boolean =>
    capacity > 0 && available >= 0 && available <= capacity;
  if (all.every(isPossible)) return { observations: all, refused: [] };
  const observations = all.flatMap((one) => {
    if (isPossible(one)) return [one];
    const available = reading.memAvailableBytes;
    const second = available === undefined ? undefined : { ...one, available };
    return one.signal === 'memory.available' && second !== undefined && isPossible(second)
      ? [second]
      : [];
  });
  const refused = all.filter((one) => !isPossible(one)).map(({ signal }) => signal);
  return { observations, refused };
}

function signalsOf({
  summary: { node },
  nowMs,
  memorySource,
  memAvailableBytes,
}: SummaryReading): readonly SignalObservation[] {
  const observations: SignalObservation[] = [];
  const add = (
    signal: Signal,
    available: number | null | undefined,
    capacity: number | null | undefined,
    statsTimeNs: bigint | undefined,
  ): void => {
    if (!isNumber(available) || !isNumber(capacity)) return;
    observations.push({ signal, capacity, available, atMs: nowMs, statsTimeNs });
  };
  const addMemory = (signal: Signal, memory: MemoryStats | null | undefined): void => {
    if (!isNumber(memory?.availableBytes) || !isNumber(memory.workingSetBytes)) return;
    const capacity = memory.availableBytes + memory.workingSetBytes;
    const isNode = signal === 'memory.available' && memorySource === 'memavailable';
    const available = isNode ? (memAvailableBytes ?? memory.availableBytes) : memory.availableBytes;
    add(signal, available, capacity, timeOf(memory));
  };
  const addDisk = (
    name: 'nodefs' | 'imagefs' | 'containerfs',
    stats: FilesystemStats | null | undefined,
  ): void => {
    const timeNs = timeOf(stats);
    add(`${name}.available`, stats?.availableBytes, stats?.capacityBytes, timeNs);
    add(`${name}.inodesFree`, stats?.inodesFree, stats?.inodes, timeNs);
  };
  addMemory('memory.available', node?.memory);
  const allPods = node?.systemContainers?.find(({ name }) => name === ALL_PODS);
  addMemory('allocatableMemory.available', allPods?.memory);
  addDisk('nodefs', node?.fs);
  addDisk('imagefs', node?.runtime?.imageFs);
  addDisk('containerfs', node?.runtime?.containerFs);
  const rlimit = node?.rlimit;
  if (isNumber(rlimit?.maxpid) && isNumber(rlimit.curproc)) {
    add('pid.available', rlimit.maxpid - rlimit.curproc, rlimit.maxpid, timeOf(rlimit));
  }
  return observations;
}

function timeOf(
  stats: { readonly time?: string | null | undefined } | null | undefined,
): bigint | undefined {
  const time = stats?.time;
  const timeNs = typeof time === 'string' ? parseTimestampNs(time) : undefined;
  return timeNs === NO_TIME_NS ? undefined : timeNs;
}

/** What Go writes where there is no time: the first of January of year 1. */
const NO_TIME_NS = parseTimestampNs('0001-01-01T00:00:00Z');

function isNumber(value: number | null | undefined): value is number {
  return typeof value === 'number';
}

/** The stats of each pod by its uid; of two of one uid the last counts. */
export function statsByPod({ pods }: Summary): ReadonlyMap<string, PodStats> {
  const byPod = new Map<string, PodStats>();
  pods?.forEach((stats) => {
    byPod.set(stats.podRef.uid, stats);
  });
  return byPod;
}

/** Pods with what a summary says of each. What only some decisions need is worked out when asked for. */
export function summaryPods(
  specs: readonly PodSpec[],
  stats: ReadonlyMap<string, PodStats>,
  {
    rules,
    nowMs,
    exclusiveImageBytes,
  }: Pick<SummaryReading, 'rules' | 'nowMs'> & {
    readonly exclusiveImageBytes?: ((name: string) => number | undefined) | undefined;
  },
): readonly PodObservation[] {
  return specs.map(
    (spec) =>
      new SummaryPod(spec, stats.get(spec.id), rules, nowMs, exclusiveImageBytes?.(spec.name)),
  );
}

/** To the kubelet what is missing in the stats of a pod is 0; only a pod without any is unknown. */
class SummaryPod implements PodObservation {
  readonly #spec: PodSpec;
  readonly #stats: PodStats | undefined;
  readonly #missing: 0 | undefined;
  readonly id: string;
  readonly name: string;
  readonly priority: number;
  readonly protectedBecause: string | undefined;
  readonly hasStats: boolean;
  readonly pidsAre = 'processes';
  readonly atMs: number;
  readonly exclusiveImageBytes: number | undefined;

  constructor(
    spec: PodSpec,
    stats: PodStats | undefined,
    rules: Rules,
    atMs: number,
    exclusiveImageBytes: number | undefined,
  ) {
    this.#spec = spec;
    this.#stats = stats;
    this.#missing = stats !== undefined && rules.unknownUsage === 'kubelet' ? 0 : undefined;
    this.id = spec.id;
    this.name = spec.name;
    this.priority = spec.priority;
    this.protectedBecause = spec.protectedBecause;
    this.hasStats = stats !== undefined;
    this.atMs = atMs;
    this.exclusiveImageBytes = exclusiveImageBytes;
  }

  get qosClass(): QosClass {
    return this.#spec.qosClass;
  }

  get gracePeriodSeconds(): number | undefined {
    return this.#spec.gracePeriodSeconds;
  }

  get memoryRequestNano(): bigint {
    return this.#spec.memoryRequestNano;
  }

  get ephemeralStorageRequestNano(): bigint {
    return this.#spec.ephemeralStorageRequestNano;
  }

  get workingSetBytes(): number | undefined {
    return this.#stats?.memory?.workingSetBytes ?? this.#missing;
  }

  get pids(): number | undefined {
    return this.#stats?.process_stats?.process_count ?? this.#missing;
  }

  get disk(): Readonly<Record<DiskPart, DiskUsage>> | undefined {
    const stats = this.#stats;
    if (stats === undefined) return undefined;
    const containers = stats.containers ?? [];
    const volumes = stats.volume ?? [];
    if (this.#missing === undefined && containers.length === 0 && volumes.length === 0) {
      return undefined;
    }
    return {
      root: usageOf(containers, 'rootfs'),
      logs: usageOf(containers, 'logs'),
      localVolumes: usageOfVolumes(volumes, this.#spec.localVolumes),
    };
  }

  containers(resource: 'memory' | 'ephemeral-storage'): readonly ContainerObservation[] {
    return (this.#stats?.containers ?? []).flatMap((stats) => {
      const requests = this.#spec.containers.get(stats.name);
      if (requests === undefined) return [];
      const request = resource === 'memory' ? requests.memory : requests.ephemeralStorage;
      const usedBytes = usedBy(stats, resource);
      return [{ name: stats.name, request, usedBytes }];
    });
  }
}

function usedBy(
  { memory, rootfs, logs }: ContainerStats,
  resource: 'memory' | 'ephemeral-storage',
): number | undefined {
  if (resource === 'memory') return memory?.workingSetBytes ?? undefined;
  const [root, log] = [rootfs?.usedBytes, logs?.usedBytes];
  return isNumber(root) && isNumber(log) ? root + log : undefined;
}

function usageOf(containers: readonly ContainerStats[], part: 'rootfs' | 'logs'): DiskUsage {
  return sumOf(containers.map(({ [part]: stats }) => stats));
}

/** What is missing is 0 in the sum, of which it is then known that there may be more. */
function sumOf(all: readonly (FilesystemStats | null | undefined)[]): DiskUsage {
  let bytes = 0;
  let inodes = 0;
  let isLeast = false;
  for (const stats of all) {
    bytes += stats?.usedBytes ?? 0;
    inodes += stats?.inodesUsed ?? 0;
    isLeast ||= !isNumber(stats?.usedBytes) || !isNumber(stats.inodesUsed);
  }
  return isLeast ? { bytes, inodes, isLeast } : { bytes, inodes };
}

/** Of each name once, and of two volumes of one name the first. */
function usageOfVolumes(
  volumes: NonNullable<PodStats['volume']>,
  names: readonly string[],
): DiskUsage {
  return sumOf(
    names.flatMap((name) => {
      // Of a path of the host, for one, nobody tells anything: it is not the pod's.
      const stats = volumes.find((volume) => volume.name === name);
      return stats === undefined ? [] : [stats];
    }),
  );
}

/**
 * evictd's own view in the shape of the kubelet's Summary API, and its pods in that of the Kubernetes API: what
 * reads those reads this. Source: kubernetes/kubelet `pkg/apis/stats/v1alpha1`, kubernetes/api `core/v1`.
 */
import { type DiskDevices, diskOf, type FoundUse } from '../core/disk-use.ts';
import type {
  ContainerStats,
  FilesystemStats,
  KubernetesPod,
  PodStats,
  Summary,
} from '../core/kubernetes.ts';
import type { PodObservation } from '../core/pod.ts';
import { formatQuantity } from '../core/quantity.ts';
import { CGROUP_NAMESPACE } from '../core/recorded.ts';
import type { FilesystemName, Signal } from '../core/signal.ts';
import type { ContainerUse, DiskFacts, PartUse } from '../ports/disk-usage.ts';
import type { RuntimePod } from '../ports/pod-directory.ts';
import type { Model } from './status.ts';

/** The namespace of a runtime's pods that have none. */
const NO_NAMESPACE = 'default';

/** The namespace of what a runtime names, for whoever shows it to others; undefined for a cgroup alone. */
export function namespaceOf(known: RuntimePod | undefined): string | undefined {
  return known && (known.namespace ?? NO_NAMESPACE);
}

/** What a pod's one container is called where nothing says what it is made of. */
const CONTAINER = 'main';

/** What stands for all volumes of a pod where nothing names them. */
const VOLUMES = 'volumes';

/** What the documents are made with, beside the model. */
export interface SummaryContext {
  readonly nodeName: string;
  /** Undefined where nothing tells of disks. */
  readonly disks: DiskFacts | undefined;
  /** The pod that an observation is of, as what runs it knows it. */
  readonly podOf: (podId: string) => RuntimePod | undefined;
  /** Both clocks, read at the same moment. */
  readonly nowMs: number;
  readonly wallMs: number;
}

/** A pod that was seen, and what both documents call it. */
interface NamedPod {
  readonly seen: PodObservation;
  readonly known: RuntimePod | undefined;
  readonly name: string;
  readonly namespace: string;
  /** Unique, whatever labels claim. */
  readonly uid: string;
}

/** The document of `GET /stats/summary`. What is not known is left out. */
export function summaryDocument(model: Model, context: SummaryContext): Summary {
  const time = (atMs: number): string => timeOf(context, atMs);
  const observed = (signal: Signal) =>
    model.turn?.state.observations.find((one) => one.signal === signal);
  const memory = (signal: 'memory.available' | 'allocatableMemory.available') => {
    const seen = observed(signal);
    if (seen === undefined) return undefined;
    const reading = model.readings.find((one) => one.signal === signal);
    return {
      time: time(seen.atMs),
      availableBytes: seen.available,
      ...(reading === undefined ? {} : { usageBytes: reading.usageBytes }),
      // The kubelet's capacity is the sum of both.
      workingSetBytes: seen.capacity - seen.available,
    };
  };
  const ofNode = memory('memory.available');
  const ofPods = memory('allocatableMemory.available');
  const pids = observed('pid.available');
  const told = context.disks?.filesystems;
  const [fs, imageFs, containerFs] = (['nodefs', 'imagefs', 'containerfs'] as const).map((name) =>
    filesystemStats(model, name, time),
  );
  return {
    node: {
      nodeName: context.nodeName,
      ...(ofNode === undefined ? {} : { memory: ofNode }),
      ...(ofPods === undefined ? {} : { systemContainers: [{ name: 'pods', memory: ofPods }] }),
      ...(fs === undefined ? {} : { fs }),
      runtime: {
        ...(imageFs === undefined
          ? {}
          : { imageFs: withUse(imageFs, told?.imageBytes, told?.imageInodes) }),
        ...(containerFs === undefined
          ? {}
          : { containerFs: withUse(containerFs, told?.containerBytes, told?.containerInodes) }),
      },
      ...(pids === undefined
        ? {}
        : {
            rlimit: {
              time: time(pids.atMs),
              maxpid: pids.capacity,
              curproc: pids.capacity - pids.available,
            },
          }),
    } as Summary['node'],
    pods: namedPods(model, context).map((pod) => podStats(pod, model, context)),
  };
}

/** The document of `GET /pods`: of a pod what evictd decides by. One that it never evicts is a static pod. */
export function podList(model: Model, context: SummaryContext) {
  const items = namedPods(model, context).map(
    ({ seen, known, name, namespace, uid }): KubernetesPod => {
      const [first = CONTAINER, ...others] = containerNames(known);
      const volumes = volumeNames(seen, known, context);
      const isRequested = seen.memoryRequestNano > 0n;
      const requests = { memory: formatQuantity(seen.memoryRequestNano, 'binary') };
      return {
        metadata: {
          name,
          namespace,
          uid,
          ...(seen.protectedBecause === undefined
            ? {}
            : { annotations: { 'kubernetes.io/config.source': 'file' } }),
        },
        spec: {
          containers: [
            { name: first, ...(isRequested ? { resources: { requests } } : {}) },
            ...others.map((other) => ({ name: other })),
          ],
          volumes: volumes.map((volume) => ({ name: volume, emptyDir: {} })),
          priority: seen.priority,
          ...(seen.gracePeriodSeconds === undefined
            ? {}
            : { terminationGracePeriodSeconds: seen.gracePeriodSeconds }),
        },
        status: { qosClass: seen.qosClass },
      };
    },
  );
  return { kind: 'PodList', apiVersion: 'v1', items } as const;
}

function timeOf({ nowMs, wallMs }: SummaryContext, atMs: number): string {
  return new Date(wallMs - (nowMs - atMs)).toISOString();
}

function namedPods({ pods }: Model, { podOf }: SummaryContext): readonly NamedPod[] {
  const uids = new Set<string>();
  return pods.map((seen) => {
    const known = podOf(seen.id);
    const namespace = namespaceOf(known) ?? CGROUP_NAMESPACE;
    const isNamed = seen.name.startsWith(`${namespace}/`);
    const name = isNamed ? seen.name.slice(namespace.length + 1) : seen.name;
    const uid = known === undefined || uids.has(known.uid) ? seen.id : known.uid;
    uids.add(uid);
    return { seen, known, name, namespace, uid };
  });
}

/** Of one name once. */
function containerNames(known: RuntimePod | undefined): readonly string[] {
  const names = known?.containers.map(({ name }) => name) ?? [];
  return names.length === 0 ? [CONTAINER] : [...new Set(names)];
}

function filesystemStats(
  model: Model,
  name: FilesystemName,
  time: (atMs: number) => string,
): FilesystemStats | undefined {
  const reading = model.filesystems.find((state) => state.name === name)?.reading;
  if (reading === undefined) return undefined;
  const { atMs, capacityBytes, availableBytes, usedBytes, inodes, inodesFree } = reading;
  const counted = { inodesFree, inodes, inodesUsed: inodes - inodesFree };
  return {
    time: time(atMs),
    availableBytes,
    capacityBytes,
    usedBytes,
    ...(inodes === 0 ? {} : counted),
  };
}

/** With what images or layers use of it, and not with what everything does. */
function withUse(
  { usedBytes: _, inodesUsed: __, ...measured }: FilesystemStats,
  bytes: number | undefined,
  inodes: number | undefined,
): FilesystemStats {
  return {
    ...measured,
    ...(bytes === undefined ? {} : { usedBytes: bytes }),
    ...(inodes === undefined ? {} : { inodesUsed: inodes }),
  };
}

function podStats(pod: NamedPod, model: Model, context: SummaryContext): PodStats {
  const { seen, known, name, namespace, uid } = pod;
  const { disk, diskSeen, workingSetBytes, pids } = seen;
  const time = (atMs: number): string => timeOf(context, atMs);
  const parts = disk && [disk.root, disk.logs, disk.localVolumes];
  return {
    podRef: { name, namespace, uid },
    ...(workingSetBytes === undefined
      ? {}
      : { memory: { time: time(seen.atMs), workingSetBytes } }),
    containers: containerStats(pod, model, context),
    volume: volumeStats(seen, known, model, context),
    ...(parts === undefined
      ? {}
      : {
          'ephemeral-storage': {
            time: time(diskSeen?.atMs ?? seen.atMs),
            ...useOf({
              bytes: parts.reduce((sum, { bytes }) => sum + bytes, 0),
              inodes: parts.reduce<number | undefined>(
                (sum, { inodes }) =>
                  sum === undefined || inodes === undefined ? undefined : sum + inodes,
                0,
              ),
            }),
          },
        }),
    ...(pids === undefined ? {} : { process_stats: { process_count: pids } }),
  };
}

/** Where what is a layer's, and what counts as one, lies by the devices. */
function devicesOf({ filesystems }: Model): DiskDevices {
  const of = (name: FilesystemName) =>
    filesystems.find((state) => state.name === name)?.reading?.device;
  return { nodefs: of('nodefs'), containerfs: of('containerfs') ?? of('imagefs') };
}

/**
 * What each container uses. The sums are those that pods are ranked by: what lies with the layers counts as one,
 * and so do deleted files that are still open, with the first container.
 */
function containerStats(
  { seen, known }: NamedPod,
  model: Model,
  { disks, ...context }: SummaryContext,
): readonly ContainerStats[] {
  const devices = devicesOf(model);
  const memory = new Map(
    seen.containers?.('memory', 'exact')?.map((container) => [container.name, container]) ?? [],
  );
  const time = (atMs: number): string => timeOf({ disks, ...context }, atMs);
  const found = (known?.containers ?? []).flatMap(({ id, name }) => {
    const use = disks?.containers.get(id);
    return use === undefined ? [] : [{ name, disk: diskOf(partsOf(use), devices) }];
  });
  const { disk } = seen;
  const seenAt = time(seen.diskSeen?.atMs ?? seen.atMs);
  return containerNames(known).map((name, index): ContainerStats => {
    const own = found.filter((one) => one.name === name).map((one) => one.disk);
    const sum = (part: 'root' | 'logs', what: 'bytes' | 'inodes'): number | undefined =>
      total(own.map((one) => one[part][what]));
    // What is of no container in particular.
    const rest = (part: 'root' | 'logs', what: 'bytes' | 'inodes'): number | undefined => {
      if (index > 0) return 0;
      const all = disk?.[part][what];
      const others = total(found.map((one) => one.disk[part][what]));
      return all === undefined || others === undefined ? undefined : all - others;
    };
    const part = (of: 'root' | 'logs') => ({
      time: seenAt,
      ...useOf({
        bytes: Math.max(0, (sum(of, 'bytes') ?? 0) + (rest(of, 'bytes') ?? 0)),
        inodes: total([sum(of, 'inodes'), rest(of, 'inodes')]),
      }),
    });
    const { usedBytes, atMs = seen.atMs } = memory.get(name) ?? {};
    return {
      name,
      ...(usedBytes === undefined
        ? {}
        : { memory: { time: time(atMs), workingSetBytes: usedBytes } }),
      ...(disk === undefined ? {} : { rootfs: part('root'), logs: part('logs') }),
    };
  });
}

function total(numbers: readonly (number | undefined)[]): number | undefined {
  return numbers.reduce<number | undefined>(
    (sum, one) => (sum === undefined || one === undefined ? undefined : sum + one),
    0,
  );
}

function useOf({ bytes, inodes }: { readonly bytes: number; readonly inodes: number | undefined }) {
  return { usedBytes: bytes, ...(inodes === undefined ? {} : { inodesUsed: Math.max(0, inodes) }) };
}

function partsOf({ layer, logs }: ContainerUse): readonly FoundUse[] {
  const of = (part: FoundUse['part'], use: PartUse | undefined): readonly FoundUse[] =>
    use === undefined ? [] : [{ part, ...use }];
  return [...of('root', layer), ...of('logs', logs)];
}

/** By name, those that count as local volumes. */
function volumesOf(
  seen: PodObservation,
  known: RuntimePod | undefined,
  { disks }: SummaryContext,
): ReadonlyMap<string, PartUse> {
  if (seen.disk === undefined) return new Map();
  const uses = (known?.containers ?? []).flatMap(({ id }) => disks?.containers.get(id) ?? []);
  return new Map(uses.flatMap(({ volumes }) => [...volumes]));
}

function volumeNames(
  seen: PodObservation,
  known: RuntimePod | undefined,
  context: SummaryContext,
): readonly string[] {
  const names = [...volumesOf(seen, known, context).keys()];
  const isOther = names.length === 0 && (seen.disk?.localVolumes.bytes ?? 0) > 0;
  return isOther ? [VOLUMES] : names;
}

function volumeStats(
  seen: PodObservation,
  known: RuntimePod | undefined,
  model: Model,
  context: SummaryContext,
): NonNullable<PodStats['volume']> {
  const devices = devicesOf(model);
  const found = [...volumesOf(seen, known, context)].map(([name, use]) => {
    const { localVolumes } = diskOf([{ part: 'localVolumes', ...use }], devices);
    return { name, time: timeOf(context, use.atMs), ...useOf(localVolumes) };
  });
  const all = seen.disk?.localVolumes;
  if (all === undefined) return [];
  const rest = all.bytes - found.reduce((sum, { usedBytes }) => sum + usedBytes, 0);
  if (found.length > 0 || rest <= 0) return found;
  const seenAt = timeOf(context, seen.diskSeen?.atMs ?? seen.atMs);
  return [{ name: VOLUMES, time: seenAt, ...useOf(all) }];
}

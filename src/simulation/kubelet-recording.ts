/** What a kubelet answered as a scenario: of its stats and pods what the policy looks at. */
import type { ScenarioConfig } from '../config/scenario-config.ts';
import { formatDuration } from '../core/duration.ts';
import { EvictdError } from '../core/errors.ts';
import type {
  ContainerStats,
  FilesystemStats,
  KubernetesContainer,
  KubernetesPod,
  KubernetesVolume,
  MemoryStats,
  PodStats,
  Summary,
} from '../core/kubernetes.ts';
import { podSpec } from '../core/pod-spec.ts';
import { RULE_SETS } from '../core/rules.ts';
import { fitted, type LeftOut, partFault } from './part.ts';
import type { Scenario, Tick } from './scenario.ts';

/** An answer, or that there was none. */
export interface KubeletSample {
  /** Monotonic ms. */
  readonly atMs: number;
  readonly summary: Summary | undefined;
  /** Those that have not come to their end. */
  readonly pods: readonly KubernetesPod[];
}

export interface KubeletRecording {
  readonly name: string;
  readonly description: string;
  readonly config: ScenarioConfig;
  readonly samples: readonly KubeletSample[];
}

/** What a kubelet said, which may be anything. */
export interface KubeletWords {
  /** Monotonic ms. */
  readonly atMs: number;
  readonly summary: { readonly node: unknown; readonly pods?: unknown };
  readonly pods: readonly unknown[];
}

/** Told what is left out since no scenario can hold it. */
export interface Omissions {
  /** A part of the summary, by its kind. */
  readonly figure: LeftOut;
  /** A pod, by `namespace/name` or else its place in the list, and why. */
  readonly pod: (name: string, fault: EvictdError) => void;
}

/** The sample with those fields alone that a scenario needs, and those that it can hold. */
export function trimmedSample(words: KubeletWords, omissions: Omissions): KubeletSample {
  const pods = words.pods.flatMap((pod, index) => {
    if (isOver(pod)) return [];
    const fault = podFault(pod);
    if (fault === undefined) return [trimmedPod(pod as KubernetesPod)];
    omissions.pod(nameOf(pod) ?? `items[${index}]`, fault);
    return [];
  });
  const uids = new Set<unknown>(pods.map(({ metadata }) => metadata.uid));
  const { node, pods: listed } = words.summary;
  // Of a pod that is not there nothing is kept.
  const stats = Array.isArray(listed) ? listed.filter((one) => uids.has(uidOf(one))) : [];
  const summary = {
    node: fitted('node', node, omissions.figure) ?? {},
    pods: stats.map((one) => fitted('pods[]', one, omissions.figure)).filter(isThere),
  };
  return { atMs: words.atMs, summary: trimmedSummary(summary as Summary), pods };
}

type Foreign<T> = { readonly [K in keyof T]?: unknown } | null | undefined;

/** It has come to its end. */
function isOver(pod: unknown): boolean {
  const { status } = (pod ?? {}) as { readonly status?: Foreign<{ phase: string }> };
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}

function nameOf(pod: unknown): string | undefined {
  const { metadata } = (pod ?? {}) as {
    readonly metadata?: Foreign<KubernetesPod['metadata']>;
  };
  const { namespace, name } = metadata ?? {};
  const isNamed = typeof namespace === 'string' && typeof name === 'string';
  return isNamed ? `${namespace}/${name}` : undefined;
}

function uidOf(stats: unknown): unknown {
  const { podRef } = (stats ?? {}) as { readonly podRef?: Foreign<PodStats['podRef']> };
  return podRef?.uid;
}

function isThere(value: unknown): boolean {
  return value !== undefined;
}

/** Why a pod cannot be read, its shape or its quantities; undefined where it can. */
function podFault(pod: unknown): EvictdError | undefined {
  const fault = partFault({ pods: [pod] });
  if (fault !== undefined) return fault;
  try {
    podSpec(pod as KubernetesPod, RULE_SETS.kubelet);
    return undefined;
  } catch (error) {
    if (error instanceof EvictdError) return error;
    throw error;
  }
}

/** Trimmed samples as a scenario. A pod is what it was when it was first seen. */
export function kubeletScenario(recording: KubeletRecording): Scenario {
  const { name, description, config, samples } = recording;
  const pods = new Map<string, KubernetesPod>();
  const names = new Map<string, string>();
  for (const pod of samples.flatMap((sample) => sample.pods)) {
    const { uid, name: own, namespace } = pod.metadata;
    if (pods.has(uid)) continue;
    // One that was made again under its name.
    let other = own;
    for (let time = 2; names.has(`${namespace}/${other}`); time += 1) other = `${own}@${time}`;
    names.set(`${namespace}/${other}`, uid);
    pods.set(uid, { ...pod, metadata: { ...pod.metadata, name: other } });
  }
  const nameNow = ({ metadata }: KubernetesPod): string => {
    const known = pods.get(metadata.uid)?.metadata ?? metadata;
    return `${known.namespace}/${known.name}`;
  };
  const startMs = samples[0]?.atMs ?? 0;
  return {
    name,
    description,
    config,
    node: nodeOf(samples),
    pods: [...pods.values()],
    ticks: samples.map(
      (sample): Tick => ({
        // Samples are 100 ms apart at least.
        at: formatDuration(Math.round(sample.atMs - startMs)),
        summary: sample.summary ?? null,
        ...(sample.summary === undefined ? {} : { activePods: sample.pods.map(nameNow) }),
      }),
    ),
    evictd: { recorded: true },
  };
}

/**
 * Stats name no device: filesystems whose size or number of inodes differ are two. Containers that are
 * apart from their images are on nodefs.
 */
function nodeOf(samples: readonly KubeletSample[]): Scenario['node'] {
  const node = samples.find(({ summary }) => summary !== undefined)?.summary?.node;
  const [fs, imageFs, containerFs] = [node?.fs, node?.runtime?.imageFs, node?.runtime?.containerFs];
  const dedicatedImageFs = isOther(fs, imageFs);
  return { dedicatedImageFs, splitImageFs: dedicatedImageFs && isOther(imageFs, containerFs) };
}

function isOther(one: Fs, other: Fs): boolean {
  if (one === undefined || one === null || other === undefined || other === null) return false;
  return one.capacityBytes !== other.capacityBytes || one.inodes !== other.inodes;
}

type Fs = FilesystemStats | null | undefined;

function trimmedSummary({ node, pods }: Summary): Summary {
  const { runtime, rlimit } = node ?? {};
  const ofPods = (node?.systemContainers ?? []).filter(({ name }) => name === 'pods');
  return {
    node: compact({
      memory: memoryOf(node?.memory),
      fs: filesystemOf(node?.fs),
      runtime:
        runtime &&
        compact({
          imageFs: filesystemOf(runtime.imageFs),
          containerFs: filesystemOf(runtime.containerFs),
        }),
      rlimit: rlimit && pick(rlimit, ['time', 'maxpid', 'curproc']),
      systemContainers: ofPods.map(({ name, memory }) =>
        compact({ name, memory: memoryOf(memory) }),
      ),
    }),
    pods: (pods ?? []).map(podStats),
  };
}

function podStats(stats: PodStats): PodStats {
  const processes = stats.process_stats;
  return compact({
    podRef: pick(stats.podRef, ['name', 'namespace', 'uid']),
    memory: memoryOf(stats.memory),
    containers: (stats.containers ?? []).map(containerStats),
    volume: (stats.volume ?? []).map((volume) => ({
      name: volume.name,
      ...pick(volume, USE),
    })),
    'ephemeral-storage': stats['ephemeral-storage'] && pick(stats['ephemeral-storage'], USE),
    process_stats: processes && pick(processes, ['process_count']),
  });
}

function containerStats({ name, memory, rootfs, logs }: ContainerStats): ContainerStats {
  return compact({
    name,
    memory: memoryOf(memory),
    rootfs: rootfs && pick(rootfs, USE),
    logs: logs && pick(logs, USE),
  });
}

const USE = ['usedBytes', 'inodesUsed'] as const;

function memoryOf(memory: MemoryStats | null | undefined): MemoryStats | null | undefined {
  return memory && pick(memory, ['time', 'availableBytes', 'workingSetBytes']);
}

function filesystemOf(fs: Fs): Fs {
  return (
    fs && pick(fs, ['time', 'availableBytes', 'capacityBytes', 'usedBytes', 'inodesFree', 'inodes'])
  );
}

function trimmedPod({ metadata, spec, status }: KubernetesPod): KubernetesPod {
  const annotations = Object.entries(metadata.annotations ?? {}).filter(([key]) =>
    /^kubernetes\.io\/config\.(source|mirror)$/.test(key),
  );
  return {
    metadata: {
      ...pick(metadata, ['name', 'namespace', 'uid']),
      ...(annotations.length === 0 ? {} : { annotations: Object.fromEntries(annotations) }),
    },
    spec: compact({
      containers: (spec.containers ?? []).map(trimmedContainer),
      initContainers: spec.initContainers?.map(trimmedContainer),
      volumes: spec.volumes?.map(trimmedVolume),
      priority: spec.priority,
      tolerations: spec.tolerations?.map((one) =>
        pick(one, ['key', 'operator', 'value', 'effect']),
      ),
      terminationGracePeriodSeconds: spec.terminationGracePeriodSeconds,
      overhead: spec.overhead,
    }),
    ...(status?.qosClass ? { status: { qosClass: status.qosClass } } : {}),
  };
}

function trimmedContainer({ name, resources, restartPolicy }: KubernetesContainer) {
  return compact({
    name,
    resources: resources && pick(resources, ['requests', 'limits']),
    restartPolicy,
  });
}

/** Whether a volume's files lie on nodefs: of all but emptyDir its kind alone. */
function trimmedVolume({ name, emptyDir, ...kinds }: KubernetesVolume): KubernetesVolume {
  const isOf = (kind: 'hostPath' | 'configMap' | 'gitRepo') =>
    kinds[kind] === undefined || kinds[kind] === null ? undefined : {};
  return compact({
    name,
    emptyDir: emptyDir && pick(emptyDir, ['medium', 'sizeLimit']),
    hostPath: isOf('hostPath'),
    configMap: isOf('configMap'),
    gitRepo: isOf('gitRepo'),
  });
}

/** The named fields, as far as they are there. */
function pick<T extends object, K extends keyof T>(value: T, keys: readonly K[]): Pick<T, K> {
  return compact(Object.fromEntries(keys.map((key) => [key, value[key]])) as unknown as Pick<T, K>);
}

/** Without the fields that have no value. */
function compact<T extends object>(value: T): T {
  const entries = Object.entries(value).filter(([, one]) => one !== undefined && one !== null);
  return Object.fromEntries(entries) as T;
}

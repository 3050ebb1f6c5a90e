import type { ContainerGcPolicy } from '../core/container-gc.ts';
import type { ImageMarks } from '../core/image-gc.ts';
import type { Compatibility, MemorySource, Policy } from '../core/policy.ts';
import type { PollPace } from '../core/polling.ts';
import type { FilesystemName, PollKind } from '../core/signal.ts';
import type { Threshold } from '../core/threshold.ts';

/** What a `--pod NAME=…` says of a pod that its cgroup has no field for. */
export interface PodSettings {
  readonly name: string;
  readonly priority: number | undefined;
  /** In nano-bytes; replaces `memory.soft_limit_in_bytes`. */
  readonly memoryRequestNano: bigint | undefined;
  readonly gracePeriodSeconds: number | undefined;
  readonly protected: boolean;
}

/** What a rule says of the pods that it matches; undefined for what it leaves open. */
interface RuleSettings {
  readonly priority: number | undefined;
  /** In nano-bytes; replaces `memory.soft_limit_in_bytes`. */
  readonly memoryRequestNano: bigint | undefined;
  readonly gracePeriodSeconds: number | undefined;
  readonly protected: boolean;
}

/** Which cgroups of a host are pods, and what they have no field for. */
export interface CgroupRule extends RuleSettings {
  /** A glob over cgroup paths relative to the node's. */
  readonly cgroup: string;
  /** What the pod is called; by default its path. Only where the glob has no wildcard. */
  readonly name: string | undefined;
}

/** What pods that a runtime names have no field for. What it leaves out matches anything. */
export interface RuntimeRule extends RuleSettings {
  readonly cgroup?: never;
  /** Globs. */
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly image: string | undefined;
  /** A glob for the value of each label that there must be. */
  readonly labels: Readonly<Record<string, string>>;
}

/** Of several rules that match a pod the first one counts. */
export type PodRule = CgroupRule | RuntimeRule;

/** Whether a rule is about cgroups, and makes them pods. */
export function isCgroupRule(rule: PodRule): rule is CgroupRule {
  return rule.cgroup !== undefined;
}

export const COMPATIBILITIES = ['kubelet', 'evictd'] as const satisfies readonly Compatibility[];

/** The grace of hard evictions by default, in seconds. Source: kubelet `eviction_manager.go`: 1. */
export const HARD_GRACE_SECONDS: Readonly<Record<Compatibility, number>> = {
  kubelet: 1,
  evictd: 0,
};

export const MEMORY_SOURCES = [
  'workingset',
  'memavailable',
] as const satisfies readonly MemorySource[];

/** pino's levels, the most talkative first. */
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** What runs the pods; `auto` is the first that answers at a socket that is known. */
export const RUNTIMES = ['cgroup', 'cri', 'docker', 'auto'] as const;
export type RuntimeChoice = (typeof RUNTIMES)[number];

/** What makes containers of Docker or Podman one pod: nothing, one value of a label, a pod of Podman's. */
export type DockerPods =
  | { readonly by: 'container' }
  | { readonly by: 'label'; readonly key: string }
  | { readonly by: 'podman' };

/** When what nobody uses is removed: never, before an eviction for a disk, or at an interval too. */
export const COLLECTINGS = ['off', 'pressure', 'on'] as const;
export type Collecting = (typeof COLLECTINGS)[number];

/** What nobody uses, and when it is removed. */
export interface GarbageSettings {
  readonly containers: Collecting;
  /** Of containers, without pressure. */
  readonly containerPolicy: ContainerGcPolicy;
  readonly images: Collecting;
  readonly marks: ImageMarks;
  readonly imageMinimumAgeMs: number;
  /** 0 for none. */
  readonly imageMaximumAgeMs: number;
}

/** `nice` raises evictd's own CPU priority where that is permitted. */
export const SCHEDULINGS = ['rr', 'nice', 'normal'] as const;
export type Scheduling = (typeof SCHEDULINGS)[number];

/** Everything that `evictd run` was told, checked. Nothing on the host has been looked at yet. */
export interface Settings {
  readonly policy: Policy;
  /** The thresholds as they were given, where others follow from how the filesystems lie. */
  readonly givenThresholds?: readonly Threshold[];
  readonly kernelMemcgNotification: boolean;
  /** As given; resolved against the memory hierarchy by the daemon. Undefined for its root. */
  readonly nodeCgroup: string | undefined;
  /** What events call the node; undefined for the host's name. */
  readonly nodeName: string | undefined;
  /** Cgroups, relative to the node's, whose children are pods; empty for the node's own. */
  readonly podParents: readonly string[];
  readonly compatibility: Compatibility;
  /** Why that compatibility holds, for a person: `--compatibility`, the file's key or its kind. */
  readonly compatibilityBecause: string;
  readonly memorySource: MemorySource;
  /** Whether a pid may be signalled where there is neither pidfd nor a safe `cgroup.kill`. */
  readonly allowPidKill: boolean;
  /** By pod name, a path relative to the node's cgroup. */
  readonly pods: ReadonlyMap<string, PodSettings>;
  /**
   * Whether `--pod` (or nobody) or the rules of a file said which cgroups are pods; the other is made of
   * it. With rules nothing else is one, but for `podParents`.
   */
  readonly podsBy: 'path' | 'rules';
  /** What runs the pods, and the path of the socket at which it is asked; undefined for the usual ones. */
  readonly runtime: { readonly kind: RuntimeChoice; readonly endpoint: string | undefined };
  /** What makes containers of Docker or Podman one pod. */
  readonly dockerPods: DockerPods;
  /** Whether it does not matter that a kubelet evicts the same pods. */
  readonly besideKubelet: boolean;
  /** Rules that say which cgroups are pods, and what holds for those that a runtime names. */
  readonly podRules: readonly PodRule[];
  /** What is removed of what nobody uses. */
  readonly garbage: GarbageSettings;
  /** Where the kubelet keeps its pods, and where their logs are. */
  readonly kubeletRootDir: string;
  readonly podLogsDir: string;
  /**
   * What is measured for each filesystem's signals; undefined where there is no such filesystem, or the runtime
   * says where it is.
   */
  readonly filesystems: Readonly<Record<FilesystemName, string | undefined>>;
  /** How each kind of signal is polled. */
  readonly polling: Readonly<Record<PollKind, PollPace>>;
  /** The configuration file that was read, if one was. */
  readonly configFile: string | undefined;
  /** The longest time between two polls of the node, and between two readings of all pods. */
  readonly pollIntervalMs: number;
  /** `explicit` is false for the default path, which may be left out where it cannot be made. */
  readonly socket: { readonly path: string; readonly explicit: boolean } | undefined;
  /**
   * Where what outlives a restart is kept; undefined for nowhere. `explicit` is false for the default
   * directory, which may be left out where it cannot be written.
   */
  readonly stateDir: { readonly path: string; readonly explicit: boolean } | undefined;
  readonly dryRun: boolean;
  readonly logLevel: LogLevel;
  readonly scheduling: Scheduling;
}

/** Settings and what a person should be told of them; warnings never stop anything. */
export interface CheckedSettings {
  readonly settings: Settings;
  readonly warnings: readonly string[];
  /** What is as it should be, and might surprise. */
  readonly notes: readonly string[];
}

/** Whether nothing names a pod, so that on the host none is, but for what pod parents give. */
export function namesNoPod({ runtime, pods, podRules }: Settings): boolean {
  return runtime.kind === 'cgroup' && pods.size === 0 && !podRules.some(isCgroupRule);
}

/**
 * The one cgroup that holds all pods and is not the node's own, relative to that; undefined where
 * there is none. What its pods may use together is `allocatableMemory.available`.
 */
export function sharedParent(podParents: readonly string[]): string | undefined {
  const [parent, ...others] = podParents;
  return parent === '.' || others.length > 0 ? undefined : parent;
}

import type { Policy } from '../core/policy.ts';

/** What a `--pod NAME=…` says of a pod that its cgroup has no field for. */
export interface PodSettings {
  readonly name: string;
  readonly priority: number | undefined;
  /** In nano-bytes; replaces `memory.soft_limit_in_bytes`. */
  readonly memoryRequestNano: bigint | undefined;
  readonly gracePeriodSeconds: number | undefined;
  readonly protected: boolean;
}

/** pino's levels, the most talkative first. */
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** `nice` raises evictd's own CPU priority where that is permitted. */
export const SCHEDULINGS = ['rr', 'nice', 'normal'] as const;
export type Scheduling = (typeof SCHEDULINGS)[number];

/** Everything that `evictd run` was told, checked. Nothing on the host has been looked at yet. */
export interface Settings {
  readonly policy: Policy;
  readonly kernelMemcgNotification: boolean;
  /** As given; resolved against the memory hierarchy by the daemon. */
  readonly nodeCgroup: string;
  /** By pod name. */
  readonly pods: ReadonlyMap<string, PodSettings>;
  /** The longest time between two polls of the node, and between two readings of all pods. */
  readonly pollIntervalMs: number;
  /** `explicit` is false for the default path, which may be left out where it cannot be made. */
  readonly socket: { readonly path: string; readonly explicit: boolean } | undefined;
  readonly dryRun: boolean;
  readonly logLevel: LogLevel;
  readonly scheduling: Scheduling;
}

/** Settings and what a person should be told of them; warnings never stop anything. */
export interface CheckedSettings {
  readonly settings: Settings;
  readonly warnings: readonly string[];
}

/** What `check-config` makes of the flags: it needs no node. */
export interface CheckedFlags {
  readonly settings: Omit<Settings, 'nodeCgroup'> & { readonly nodeCgroup: string | undefined };
  readonly warnings: readonly string[];
}

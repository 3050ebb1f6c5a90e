/** What the parts of the daemon are given, and what it is to those that run it. */

import type { Observable, SchedulerLike, Subscription } from 'rxjs';
import type { Settings } from '../config/settings.ts';
import type { Moment } from '../core/persistence.ts';
import type { Turn } from '../core/pipeline.ts';
import type { Signal } from '../core/signal.ts';
import type { Snapshot } from '../core/snapshot.ts';
import type { Threshold } from '../core/threshold.ts';
import type { NodeCgroup } from '../kernel/node-cgroup.ts';
import type { NativeAddon } from '../native/types.ts';
import type { DiskFacts } from '../ports/disk-usage.ts';
import type { PodDirectory, RuntimePlace, RuntimePod } from '../ports/pod-directory.ts';
import type { Killing, Runtime } from '../ports/runtime.ts';
import type { StateStore } from '../ports/state-store.ts';
import type { NodeView } from '../sources/node.ts';
import type { Logger } from '../surfaces/log.ts';
import type { Model } from '../surfaces/status.ts';

export interface DaemonInputs {
  readonly settings: Settings;
  readonly node: NodeCgroup;
  /** What events call the node where the settings do not say it. */
  readonly hostName: string;
  /** Undefined where the addon is missing: polling then, and killing as far as that goes without it. */
  readonly native: NativeAddon | undefined;
  readonly scheduler: SchedulerLike;
  readonly logger: Logger;
  /** Undefined where nothing outlives a restart. */
  readonly keeping: Keeping | undefined;
  /** What runs the pods; undefined where cgroups alone are pods. */
  readonly directory?: PodDirectory | undefined;
}

/** What outlives a restart, and by which clocks. */
export interface Keeping {
  readonly store: StateStore;
  /** What a former run left. */
  readonly found: Snapshot | undefined;
  /** When it was written that this is the one who keeps it; undefined where that failed. */
  readonly claimedAtMs: number | undefined;
  /** Why that failed. */
  readonly trouble: string | undefined;
  /** Now; CLOCK_BOOTTIME is known within bounds, of which one or the other is on the safe side. */
  readonly moment: (bound: 'earliest' | 'latest') => Moment;
}

/** A daemon that is wired, and runs once it is started. */
export interface Daemon {
  /** Emits once, when what runs the pods has said what there is, or that it is away; at once without one. */
  readonly answered$: Observable<void>;
  /** What it believes: the last value at once, then every change. Hot once started. */
  readonly model$: Observable<Model>;
  /** Emits once, when every threshold is armed and read, and completes. */
  readonly ready$: Observable<Turn>;
  /**
   * Every turn from here on, after the daemon itself has acted on it. While anybody listens, all pods
   * are read at least each `intervalMs` (less often where that takes long), and now.
   */
  turns(intervalMs: number): Observable<Turn>;
  /** How it ends pods on this machine. */
  readonly killing: Killing;
  /** Goes the way to a kill some two hundred times, signalling nobody. Before `start`. */
  rehearse(): void;
  /** Says that a part does not work as it should, and why. */
  degrade(part: string, reason: string): void;
  /** What it runs by now: as it was given, on the disks as they are. */
  settings(): Settings;
  /** What is known of the disks; undefined where nothing tells of them. */
  disks(): DiskFacts | undefined;
  /** What runs the pods; undefined while it is looked for, and where nothing does. */
  runtimePlace(): RuntimePlace | undefined;
  /** The pod that an observation is of, as what runs it knows it; undefined where nothing does. */
  podOf(podId: string): RuntimePod | undefined;
  /**
   * Runs by other settings from here on; what was observed, and an eviction that runs, go on. What
   * only a start can change stays as it was.
   *
   * @throws EvictdError where this host has no place for them; nothing is changed then
   */
  reload(settings: Settings): void;
  /** Starts watching and evicting; both end with the subscription, and all descriptors are closed. */
  start(): Subscription;
  /** Writes down how things stand, once nothing changes any more; never rejects. */
  keep(): Promise<void>;
}

/** What may change while the daemon runs. */
export interface Current {
  readonly settings: Settings;
  readonly view: NodeView;
}

/** A runtime that is told by the settings which cgroups are pods. */
export interface SelectableRuntime extends Runtime {
  select(settings: Settings): void;
  /** The pods as what runs them listed them last; none where cgroups alone are pods. */
  pods(): readonly RuntimePod[];
  /** The pod that an observation is of, as what runs it knows it; undefined where nothing does. */
  podOf(podId: string): RuntimePod | undefined;
  /** Whether a pod that was evicted for a disk is dead and still holds its space. */
  holdsSpace(): boolean;
}

/** What the parts are joined by. */
export interface Wiring extends Omit<DaemonInputs, 'settings'> {
  readonly runtime: SelectableRuntime;
  readonly current: () => Current;
  /** Why pods are missing; that what runs them is away is told by itself. */
  readonly podsTrouble: () => string | undefined;
  /** Now, and each time that the settings have changed. */
  readonly settled$: Observable<unknown>;
}

/** Tasks are counted where they decide, and for the status where a threshold is about them. */
export function countsPids({ current }: Wiring, signal: Signal | undefined): boolean {
  if (signal !== undefined) return signal === 'pid.available';
  return current().settings.policy.thresholds.some((one) => one.signal === 'pid.available');
}

/** What hears of the kernel's events, where that was asked for and can be had. */
export function notifier({ current, native }: Wiring): NativeAddon | undefined {
  return current().settings.kernelMemcgNotification ? native : undefined;
}

export function thresholdsOf({ current }: Wiring, signal: Signal): readonly Threshold[] {
  return current().settings.policy.thresholds.filter((threshold) => threshold.signal === signal);
}

import type { Observable } from 'rxjs';
import type { RefusalReason } from '../core/decision.ts';
import type { PodObservation } from '../core/pod.ts';
import type { Signal } from '../core/signal.ts';

/** What a runtime cannot do, said instead of silently not done; `null` means it can. */
export interface RuntimeCapabilities {
  /** Why pods cannot be evicted, or null; `cgroup.kill` alone does not reach every pod. */
  readonly evict: string | null;
  readonly killing: Killing;
  /** Why the memory of a dying process cannot be reaped early, or null. */
  readonly reap: string | null;
}

/** How pods are ended on this machine. */
export interface Killing {
  readonly by: 'pidfd' | 'cgroup.kill' | 'pid' | 'nothing';
  /** The same in words, with the reason. */
  readonly detail: string;
}

export interface EvictRequest {
  readonly podId: string;
  readonly podName: string;
  /** Whether a hard threshold is the cause: whoever else could stop the pod is not waited for. */
  readonly hard: boolean;
  /** From TERM to KILL, ms; 0 means KILL at once, without TERM. */
  readonly gracePeriodMs: number;
  /**
   * Stops the pod in another way than by TERM, where it has a grace: subscribed once it is certain that the
   * pod may be ended. TERM is sent at its first emission, to those that are left, and KILL as ever. Only a
   * runtime that wraps another gives it; never errors.
   */
  readonly stop$?: Observable<unknown>;
  /** What it is for; undefined for a limit of the pod's own. */
  readonly signal?: Signal | undefined;
  /** Checks with signal 0 wherever a signal would be sent: nobody is signalled. */
  readonly rehearsal?: boolean;
  /** With `rehearsal`: checks all processes, not only the first ones. */
  readonly everyProcess?: boolean;
  /** Asked before a KILL that follows a grace: why there is to be none after all. */
  readonly forbidden?: () => string | undefined;
  /** A shorter grace, ms from the emission on; each emission can only bring KILL forward. */
  readonly escalations$: Observable<number>;
}

/** How far an eviction has come. */
export type EvictProgress =
  /** Every process was sent TERM, or what runs the pod was asked to stop it. */
  | { readonly kind: 'terminating'; readonly processes: number }
  /** Every process was sent KILL; those that appear later are sent it too. */
  | { readonly kind: 'killed'; readonly processes: number }
  /** No process is left. The last value. */
  | {
      readonly kind: 'empty';
      readonly processes: number;
      readonly chargedBytes: number | undefined;
    }
  /** The pod is left alone from here on. The last value. */
  | { readonly kind: 'refused'; readonly reason: RefusalReason; readonly detail?: string }
  /** How many processes are still there, after a signal and at each change. */
  | { readonly kind: 'remaining'; readonly processes: number }
  /** What stands in the way of a process that is still there. */
  | { readonly kind: 'obstacle'; readonly detail: string };

/** How many processes the kernel's OOM killer has ended in one cgroup of a pod. */
export interface OomKillCount {
  readonly podName: string;
  /** The cgroup's directory, as text: the pod's or one below it. */
  readonly cgroup: string;
  /** Unique for the life of the cgroup. */
  readonly cgroupId: string;
  /** Since the cgroup was made. */
  readonly kills: number;
}

/** What runs pods: lists them, reads them, ends them. */
export interface Runtime {
  readonly capabilities: RuntimeCapabilities;
  /**
   * All pods with fresh usage; their tasks only for a decision about PIDs, or where `counts.pids` asks
   * for them. Synchronous: it stands between an event and its kill. Never throws.
   */
  observePods(counts?: { readonly pids: boolean }): readonly PodObservation[];
  /** Why the last listing may lack pods; undefined when it lacks none. */
  podsTrouble(): string | undefined;
  /**
   * The cgroups in which the kernel's OOM killer has ended somebody, one pod for each step, so that
   * whoever reads may pause in between. Reads each pod only when its turn comes. Never throws.
   */
  oomKills(): Iterable<readonly OomKillCount[]>;
  /**
   * Ends a pod. Cold: subscribing signals the first process in the same turn; unsubscribing stops
   * what would still be done. Completes after `empty` or `refused`; errors when none of
   * its processes could be signalled.
   */
  evict(request: EvictRequest): Observable<EvictProgress>;
  close(): void;
}

/**
 * The native addon, as TypeScript sees it. This file is the one description of the surface; what
 * is not here does not exist. The addon knows file descriptors, not eviction.
 *
 * Every failing system call throws an `Error` that carries `code`, `errno`, `syscall` and, where
 * there is one, `path`, as Node's own do. A wrong argument throws a `TypeError` or a `RangeError`
 * with code `ERR_INVALID_ARG_TYPE`, `ERR_INVALID_ARG_VALUE` or `ERR_OUT_OF_RANGE`; nothing is
 * opened then. Every descriptor is close-on-exec and non-blocking.
 */

/** What a system call that failed reports: the fields of `NodeJS.ErrnoException`. */
export interface SystemError extends Error {
  readonly code: string;
  /** Negative, as in Node. */
  readonly errno: number;
  readonly syscall: string;
  readonly path?: string;
}

/**
 * What to be told of a memory cgroup (v1). Source: Linux, admin-guide/cgroup-v1/memory.rst,
 * sections 9 to 11.
 */
export type MemcgEvent =
  /** `memory.usage_in_bytes` crosses `bytes`, upwards or downwards. */
  | { readonly kind: 'usage'; readonly bytes: bigint }
  /** `memory.memsw.usage_in_bytes` crosses `bytes`; ENOENT where the kernel has no swap accounting. */
  | { readonly kind: 'memsw'; readonly bytes: bigint }
  /** `memory.oom_control`: the cgroup runs out of memory. */
  | { readonly kind: 'oom' }
  /** `memory.pressure_level`: reclaim reached `level`. `mode` defaults to `default`. */
  | {
      readonly kind: 'pressure';
      readonly level: 'low' | 'medium' | 'critical';
      readonly mode?: 'default' | 'local' | 'hierarchy';
    };

/** A watched memory-cgroup event: an eventfd that is polled on the environment's own loop. */
export interface MemcgWatch {
  /** Whether it is still open, be it armed, not yet armed or refused by the kernel. */
  readonly active: boolean;
  /**
   * Resolves when the kernel has taken the registration; a wake-up may come before. Rejects with
   * the `SystemError` of the write to `cgroup.event_control` (`ENODEV` when the cgroup was removed
   * meanwhile); the watch then stays open, without wake-ups, until `close()`.
   *
   * It settles with the result of the write also after `close()`, but whoever has closed the watch
   * need not look: no rejection is unhandled then. In a worker that ends it may never settle.
   */
  readonly armed: Promise<void>;
  /**
   * Deregisters and closes the eventfd, as soon as a registration that is under way has ended.
   * Idempotent. The listener is not called again, not even for what the kernel reported before.
   */
  close(): void;
}

/** A process, held by its pidfd: the number may be reused, this reference cannot. */
export interface Pidfd {
  readonly pid: number;
  /**
   * Sends `signal` (0 to 64; 0 only checks). ESRCH when the process is gone, EPERM when it may
   * not be signalled. Source: pidfd_send_signal(2).
   */
  signal(signal: number): void;
  /**
   * Calls `listener` once when the process has ended (at once, in a later turn, if it has ended
   * already); a later call replaces the listener. Until then it keeps this process alive; `close()`
   * drops the listener.
   */
  onExit(listener: () => void): void;
  /**
   * Has the kernel free the memory of a process that is being killed (process_mrelease(2)), on
   * libuv's pool. Rejects with ENOSYS before Linux 5.15, EINVAL when the process was not killed,
   * ESRCH when it is gone already. Safe against `close()` while it runs.
   */
  release(): Promise<void>;
  /** Closes the descriptor. Idempotent. Every other method then fails with EBADF. */
  close(): void;
}

/** What this kernel offers to this process, probed at the call; `null` means usable. */
export interface NativeCapabilities {
  /** The errno code that `pidfd_open(2)` on this very process gave, or null. */
  readonly pidfd: string | null;
  /** The errno code that says why `process_mrelease(2)` is missing, or null. */
  readonly processMrelease: string | null;
  /** The errno code that `eventfd(2)` gave, or null. */
  readonly eventfd: string | null;
}

export interface NativeAddon {
  /**
   * Registers `event` on the cgroup directory `directory` (an absolute path in a v1 memory
   * hierarchy) and calls `listener` with the eventfd's counter at each wake-up. A wake-up says
   * only "read now": it comes on both crossings and when the cgroup is removed, and none comes
   * when usage is over the level already. So read once `armed` has resolved.
   *
   * Throws what the arguments, the cgroup's files or the eventfd are refused for; the registration
   * itself is `armed`. It is written on libuv's pool, since for `usage` and `memsw` the kernel waits
   * for an RCU grace period (4 to 24 ms, seldom 500, measured on Linux 6.18, two CPUs; `oom` and
   * `pressure` take 0.02 ms). All registrations of one environment are written one after the other,
   * in the order of the calls, so they take one thread of the pool at most; each holds three
   * descriptors meanwhile. The call itself takes 0.15 ms, closing 0.02 ms.
   *
   * `persistent: false` lets the process end while the watch is open, though not while it is being
   * registered; the default is true.
   */
  watchMemcg(
    directory: string,
    event: MemcgEvent,
    listener: (count: bigint) => void,
    options?: { readonly persistent?: boolean },
  ): MemcgWatch;
  /** Opens a pidfd on `pid` (a thread-group leader, 1 to 2^22). Source: pidfd_open(2). */
  openPidfd(pid: number): Pidfd;
  /**
   * Puts the calling thread under the real-time policy `SCHED_RR` at `priority` (1 to 99), reset
   * in children (`SCHED_RESET_ON_FORK`). EPERM without CAP_SYS_NICE, and in a cpu cgroup without a
   * real-time budget. Source: sched(7).
   */
  setRoundRobin(priority: number): void;
  capabilities(): NativeCapabilities;
  /** `git`-independent build facts, for `evictd version`. */
  readonly build: { readonly napi: number; readonly compiler: string; readonly sanitized: boolean };
}

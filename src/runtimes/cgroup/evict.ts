import { Observable, type SchedulerLike, type Subscriber, Subscription } from 'rxjs';
import type { NativeAddon } from '../../native/types.ts';
import type { EvictProgress, EvictRequest } from '../../ports/runtime.ts';
import { thaw } from './freezer.ts';
import type { PodHandle } from './pod-handle.ts';
import { type Held, type RoundResult, signalRound } from './signal-round.ts';
import { processesBelow } from './subtree.ts';

/** How often emptiness is checked at first after a KILL, ms, beside the pidfds that tell it. */
const CHECK_MS = 10;
/** How often it is checked later, and while a grace runs, ms. */
const SLOW_CHECK_MS = 100;
/** For how long after a KILL checks are frequent, ms. */
const FREQUENT_FOR_MS = 200;
/** When the kernel is asked to free the memory of what was killed and is still there, ms. */
export const REAP_AFTER_MS = 50;
/** How many processes are reaped by one eviction: each waits on libuv's pool of four threads. */
const REAP_LIMIT = 16;

/** How many processes a line names. */
const NAMED_OBSTACLES = 5;

/** The signals that are sent; a rehearsal sends 0, which only checks. */
const REAL_SIGNALS = { terminate: 15, kill: 9 } as const;
const NULL_SIGNALS = { terminate: 0, kill: 0 } as const;

export interface EvictDependencies {
  readonly native: NativeAddon;
  readonly scheduler: SchedulerLike;
  /** Whether a pid is evictd's or an ancestor's. */
  readonly isOwn: (pid: number) => boolean;
}

/**
 * Ends the processes of a pod's cgroup and of all below it: TERM and, after the grace, KILL, or
 * KILL at once; repeated until `cgroup.procs` stays empty.
 *
 * Cold; the first signal is sent while subscribing. Emits as {@link EvictProgress} says; completes
 * when the pod is empty or was refused. Unsubscribing stops checks and timers and closes pidfds;
 * signals that were sent stay sent.
 */
export function evictPod(
  handle: PodHandle,
  request: EvictRequest,
  dependencies: EvictDependencies,
): Observable<EvictProgress> {
  return new Observable((subscriber) =>
    new Eviction(handle, request, dependencies, subscriber).start(request),
  );
}

/** One eviction: lives as long as its subscription. */
class Eviction {
  readonly #handle: PodHandle;
  readonly #dependencies: EvictDependencies;
  readonly #subscriber: Subscriber<EvictProgress>;
  readonly #subscription = new Subscription();
  readonly #signals: typeof REAL_SIGNALS | typeof NULL_SIGNALS;
  readonly #held: Held = { pidfds: new Map(), signalled: 0 };
  #killAtMs = Number.POSITIVE_INFINITY;
  #killTimer = new Subscription();
  #checkTimer = new Subscription();
  #killedAtMs: number | undefined;
  #thawTried = false;
  #reapTried = false;
  #obstacle = '';
  #remaining = 0;

  constructor(
    handle: PodHandle,
    { rehearsal = false }: EvictRequest,
    dependencies: EvictDependencies,
    subscriber: Subscriber<EvictProgress>,
  ) {
    this.#handle = handle;
    this.#signals = rehearsal ? NULL_SIGNALS : REAL_SIGNALS;
    this.#dependencies = dependencies;
    this.#subscriber = subscriber;
  }

  start(request: EvictRequest): Subscription {
    this.#subscription.add(() => this.#close());
    const identity = this.#handle.identity();
    if (identity !== 'same') {
      this.#refuse(identity === 'gone' ? 'podGone' : 'podReplaced');
    } else if (request.gracePeriodMs <= 0) {
      this.#kill();
    } else {
      this.#terminate();
      if (!this.#subscriber.closed) {
        this.#killWithin(request.gracePeriodMs);
        this.#subscription.add(
          request.escalations$.subscribe((graceMs) => this.#guard(() => this.#killWithin(graceMs))),
        );
      }
    }
    return this.#subscription;
  }

  #terminate(): void {
    const round = this.#signal(this.#signals.terminate);
    if (!this.#begin(round)) return;
    this.#subscriber.next({ kind: 'terminating', processes: this.#held.signalled });
    this.#report(round);
    this.#checkLater();
  }

  #kill(): void {
    this.#killTimer.unsubscribe();
    const round = this.#signal(this.#signals.kill);
    if (!this.#begin(round)) return;
    this.#killedAtMs = this.#now();
    this.#thawTried = false;
    this.#subscriber.next({ kind: 'killed', processes: this.#held.signalled });
    this.#report(round);
    this.#checkLater();
  }

  /** Whether the eviction goes on: not when evictd is in the pod, nor when there is nothing to do. */
  #begin(round: RoundResult): boolean {
    if (round.ownPid !== undefined) {
      this.#refuse('protected', `pid ${round.ownPid} is evictd or an ancestor of it`);
      return false;
    }
    if (this.#held.signalled > 0) return true;
    if (round.refusals.size === 0) {
      this.#refuse('nothingToKill');
    } else {
      const refusals = [...round.refusals.values()].slice(0, NAMED_OBSTACLES).join('; ');
      this.#subscriber.error(new Error(`no process could be signalled: ${refusals}`));
    }
    return false;
  }

  #signal(signal: number): RoundResult {
    const { native, isOwn } = this.#dependencies;
    const round = signalRound(native, this.#handle.held, signal, this.#held, isOwn);
    for (const pidfd of this.#held.pidfds.values())
      pidfd.onExit(() => this.#guard(() => this.#onExit(pidfd.pid)));
    return round;
  }

  #killWithin(graceMs: number): void {
    const atMs = this.#now() + Math.max(0, graceMs);
    if (this.#killedAtMs !== undefined || atMs >= this.#killAtMs) return;
    this.#killAtMs = atMs;
    this.#killTimer.unsubscribe();
    if (graceMs <= 0) {
      this.#kill();
      return;
    }
    this.#killTimer = this.#dependencies.scheduler.schedule(
      () => this.#guard(() => this.#kill()),
      graceMs,
    );
    this.#subscription.add(this.#killTimer);
  }

  #onExit(pid: number): void {
    this.#held.pidfds.get(pid)?.close();
    this.#held.pidfds.delete(pid);
    if (this.#held.pidfds.size === 0) this.#check();
  }

  #check(): void {
    this.#checkTimer.unsubscribe();
    if (this.#subscriber.closed) return;
    const left = processesBelow(this.#handle.held);
    if (left.length === 0) {
      const chargedBytes = this.#handle.chargedBytes();
      this.#subscriber.next({ kind: 'empty', processes: this.#held.signalled, chargedBytes });
      this.#subscriber.complete();
      return;
    }
    if (left.length !== this.#remaining) {
      this.#remaining = left.length;
      this.#subscriber.next({ kind: 'remaining', processes: left.length });
    }
    this.#pressOn(left);
    this.#checkLater();
  }

  /** What can be done for processes that are still there. */
  #pressOn(left: readonly number[]): void {
    if (!this.#thawTried) {
      this.#thawTried = true;
      this.#tell(thaw(left));
    }
    if (this.#killedAtMs === undefined) return;
    if (left.some((pid) => !this.#held.pidfds.has(pid))) {
      this.#report(this.#signal(this.#signals.kill));
    }
    if (!this.#reapTried && this.#now() - this.#killedAtMs >= REAP_AFTER_MS) {
      this.#reapTried = true;
      this.#reap();
    }
  }

  /** Best effort: what the kernel refuses here it does by itself later. */
  #reap(): void {
    for (const pidfd of [...this.#held.pidfds.values()].slice(0, REAP_LIMIT)) {
      pidfd.release().catch(() => undefined);
    }
  }

  #checkLater(): void {
    if (this.#subscriber.closed) return;
    const sinceKill =
      this.#killedAtMs === undefined ? Number.POSITIVE_INFINITY : this.#now() - this.#killedAtMs;
    const delayMs = sinceKill < FREQUENT_FOR_MS ? CHECK_MS : SLOW_CHECK_MS;
    this.#checkTimer.unsubscribe();
    this.#checkTimer = this.#dependencies.scheduler.schedule(
      () => this.#guard(() => this.#check()),
      delayMs,
    );
    this.#subscription.add(this.#checkTimer);
  }

  #report(round: RoundResult): void {
    this.#tell([...round.refusals.values()]);
  }

  /** Names what stands in the way, once for each change. */
  #tell(obstacles: readonly string[]): void {
    const detail = obstacles.slice(0, NAMED_OBSTACLES).join('; ');
    if (detail === '' || detail === this.#obstacle) return;
    this.#obstacle = detail;
    this.#subscriber.next({ kind: 'obstacle', detail });
  }

  #refuse(
    reason: 'podGone' | 'podReplaced' | 'protected' | 'nothingToKill',
    detail?: string,
  ): void {
    this.#subscriber.next({ kind: 'refused', reason, ...(detail === undefined ? {} : { detail }) });
    this.#subscriber.complete();
  }

  /** What cannot be read or opened in a later turn fails this eviction, not evictd. */
  #guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#subscriber.error(error);
    }
  }

  #now(): number {
    return this.#dependencies.scheduler.now();
  }

  #close(): void {
    this.#killTimer.unsubscribe();
    this.#checkTimer.unsubscribe();
    for (const pidfd of this.#held.pidfds.values()) pidfd.close();
    this.#held.pidfds.clear();
  }
}

import { Observable, type SchedulerLike, type Subscriber, Subscription, take } from 'rxjs';
import type { EvictProgress, EvictRequest } from '../../ports/runtime.ts';
import { thaw } from './freezer.ts';
import type { PodHandle } from './pod-handle.ts';
import { processesBelow } from './subtree.ts';
import { type Means, Victim, type VictimRound } from './victim.ts';

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

export interface EvictDependencies {
  readonly means: Means;
  readonly scheduler: SchedulerLike;
}

/**
 * Ends the processes of a pod's cgroup and of all below it: TERM (or what the request has in its place)
 * and, after the grace, KILL, or KILL at once; repeated until `cgroup.procs` stays empty.
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
  readonly #victim: Victim;
  readonly #scheduler: SchedulerLike;
  readonly #subscriber: Subscriber<EvictProgress>;
  readonly #subscription = new Subscription();
  #killAtMs = Number.POSITIVE_INFINITY;
  #killTimer = new Subscription();
  #checkTimer = new Subscription();
  #killedAtMs: number | undefined;
  readonly #forbidden: () => string | undefined;
  #isInGrace = false;
  #thawTried = false;
  #reapTried = false;
  #obstacle = '';
  #remaining = 0;

  constructor(
    handle: PodHandle,
    { rehearsal = false, everyProcess = false, forbidden = () => undefined }: EvictRequest,
    { means, scheduler }: EvictDependencies,
    subscriber: Subscriber<EvictProgress>,
  ) {
    this.#handle = handle;
    this.#victim = new Victim(
      handle.held,
      means,
      rehearsal ? (everyProcess ? 'all' : 'some') : 'no',
    );
    this.#forbidden = forbidden;
    this.#scheduler = scheduler;
    this.#subscriber = subscriber;
  }

  start(request: EvictRequest): Subscription {
    this.#subscription.add(() => this.#close());
    const identity = this.#handle.identity();
    if (identity !== 'same') {
      this.#refuse(identity === 'gone' ? 'podGone' : 'podReplaced');
    } else if (request.gracePeriodMs <= 0) {
      this.#kill();
    } else if (!this.#victim.canTerminate) {
      // The pressure lasts: without a grace is better than not at all.
      this.#kill();
      this.#tell(['TERM cannot be sent without pidfd and --allow-pid-kill: KILL at once']);
    } else {
      this.#terminate(request.stop$);
      if (!this.#subscriber.closed) {
        this.#killWithin(request.gracePeriodMs);
        this.#subscription.add(
          request.escalations$.subscribe((graceMs) => this.#guard(() => this.#killWithin(graceMs))),
        );
      }
    }
    return this.#subscription;
  }

  /** @param stop$ what stops the pod in its place, see {@link EvictRequest.stop$} */
  #terminate(stop$: Observable<unknown> | undefined): void {
    const round = this.#signal(() =>
      stop$ === undefined ? this.#victim.terminate() : this.#victim.hold(),
    );
    if (!this.#begin(round)) return;
    this.#isInGrace = true;
    this.#subscriber.next({ kind: 'terminating', processes: this.#victim.signalled });
    this.#report(round);
    this.#checkLater();
    if (stop$ === undefined) return;
    this.#subscription.add(
      stop$.pipe(take(1)).subscribe(() => this.#guard(() => this.#terminateRest())),
    );
  }

  /** Those that whoever was to stop them has left. */
  #terminateRest(): void {
    if (this.#subscriber.closed || this.#killedAtMs !== undefined) return;
    const round = this.#signal(() => this.#victim.terminate());
    if (round.veto === undefined) this.#report(round);
    else this.#refuse('protected', round.veto);
  }

  #kill(): void {
    this.#killTimer.unsubscribe();
    const reason = this.#isInGrace ? this.#forbidden() : undefined;
    if (reason !== undefined) {
      this.#refuse('protected', `in its grace: ${reason}`);
      return;
    }
    const round = this.#signal(() => this.#victim.kill());
    if (!this.#begin(round)) return;
    this.#killedAtMs = this.#now();
    this.#thawTried = false;
    this.#subscriber.next({ kind: 'killed', processes: this.#victim.signalled });
    this.#report(round);
    this.#checkLater();
  }

  /** Whether the eviction goes on: not when evictd is in the pod, nor when there is nothing to do. */
  #begin({ veto, unsupported, refusals }: VictimRound): boolean {
    if (veto !== undefined) {
      this.#refuse('protected', veto);
      return false;
    }
    if (this.#victim.signalled > 0) return true;
    if (unsupported !== undefined) this.#refuse('unsupported', unsupported);
    else if (refusals.size === 0) this.#refuse('nothingToKill');
    else this.#fail('no process could be signalled', [...refusals.values()]);
    return false;
  }

  /** A round, and another where the first found nobody at all: a process may just have been forked. */
  #signal(send: () => VictimRound): VictimRound {
    const first = send();
    const isNobody =
      this.#victim.signalled === 0 &&
      first.refusals.size === 0 &&
      first.veto === undefined &&
      first.unsupported === undefined;
    const round = isNobody ? send() : first;
    this.#listen();
    return round;
  }

  #listen(): void {
    for (const pidfd of this.#victim.pidfds.values())
      pidfd.onExit(() => this.#guard(() => this.#onExit(pidfd.pid)));
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
    this.#killTimer = this.#scheduler.schedule(() => this.#guard(() => this.#kill()), graceMs);
    this.#subscription.add(this.#killTimer);
  }

  #onExit(pid: number): void {
    this.#victim.forget(pid);
    if (this.#victim.pidfds.size === 0) this.#check();
  }

  #check(): void {
    this.#checkTimer.unsubscribe();
    if (this.#subscriber.closed) return;
    const left = this.#victim.members(processesBelow(this.#handle.held));
    if (left.length === 0) {
      const chargedBytes = this.#handle.chargedBytes();
      this.#subscriber.next({ kind: 'empty', processes: this.#victim.signalled, chargedBytes });
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
    const round = this.#victim.killRest(left);
    if (round !== undefined) {
      this.#listen();
      this.#report(round);
      if (this.#victim.isOutOfReach(left, round)) {
        this.#fail('what is left cannot be signalled', reasonsOf(round));
        return;
      }
    }
    if (!this.#reapTried && this.#now() - this.#killedAtMs >= REAP_AFTER_MS) {
      this.#reapTried = true;
      this.#reap();
    }
  }

  /** Best effort: what the kernel refuses here it does by itself later. */
  #reap(): void {
    for (const pidfd of [...this.#victim.pidfds.values()].slice(0, REAP_LIMIT)) {
      pidfd.release().catch(() => undefined);
    }
  }

  #checkLater(): void {
    if (this.#subscriber.closed) return;
    const sinceKill =
      this.#killedAtMs === undefined ? Number.POSITIVE_INFINITY : this.#now() - this.#killedAtMs;
    const delayMs = sinceKill < FREQUENT_FOR_MS ? CHECK_MS : SLOW_CHECK_MS;
    this.#checkTimer.unsubscribe();
    this.#checkTimer = this.#scheduler.schedule(() => this.#guard(() => this.#check()), delayMs);
    this.#subscription.add(this.#checkTimer);
  }

  #report(round: VictimRound): void {
    this.#tell(reasonsOf(round));
  }

  /** Names what stands in the way, once for each change. */
  #tell(obstacles: readonly string[]): void {
    const detail = obstacles.slice(0, NAMED_OBSTACLES).join('; ');
    if (this.#subscriber.closed || detail === '' || detail === this.#obstacle) return;
    this.#obstacle = detail;
    this.#subscriber.next({ kind: 'obstacle', detail });
  }

  #fail(what: string, reasons: readonly string[]): void {
    this.#subscriber.error(new Error(`${what}: ${reasons.slice(0, NAMED_OBSTACLES).join('; ')}`));
  }

  #refuse(
    reason: 'podGone' | 'podReplaced' | 'protected' | 'nothingToKill' | 'unsupported',
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
    return this.#scheduler.now();
  }

  #close(): void {
    this.#killTimer.unsubscribe();
    this.#checkTimer.unsubscribe();
    this.#victim.close();
  }
}

/** Why processes were not signalled. */
function reasonsOf({ veto, unsupported, refusals }: VictimRound): readonly string[] {
  return [veto, unsupported, ...refusals.values()].filter((reason) => reason !== undefined);
}

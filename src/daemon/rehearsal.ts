/** The way to a kill, gone once with signal 0, so that it is compiled and in the caches. */

import { concat, connectable, from, of, Subject, take, takeWhile } from 'rxjs';
import { execute } from '../actions/executor.ts';
import type { EvictionOutcome } from '../core/decision.ts';
import { decisionsOf, evictionPipeline } from '../core/pipeline.ts';
import type { Policy } from '../core/policy.ts';
import { RULE_SETS } from '../core/rules.ts';
import type { EvictProgress, Runtime } from '../ports/runtime.ts';
import { pollAfterMs } from './polls.ts';
import type { Wiring } from './wiring.ts';

/** How often the way from a reading to a kill is rehearsed at the start, and for how long, ms. */
export const REHEARSALS = 200;

const REHEARSAL_LIMIT_MS = 250;

/** How long after a rehearsal none is needed, ms: usage may waver about the approach. */
const WARM_FOR_MS = 250;

/** Rehearsals at an approach take no more than one part in so many of the time. */
const REHEARSAL_SHARE = 100;

/**
 * Where all pods take longer to list and read, ms, none is held at an approach: the crossing may come
 * meanwhile, and would have to wait.
 */
export const REHEARSED_LISTING_MS = 5;

/**
 * The whole way from a reading to the signals, on the node's own pods, with signal 0, which only
 * checks: nobody is signalled. Once at the approach of a threshold brings it back into the
 * processor's caches, some two hundred times at the start has all that is lazy made: the first
 * kill is no time to pay for either.
 */
export class Rehearsal {
  readonly #wiring: Wiring;
  readonly #runtime: Runtime;

  /** When the next one at an approach may be, monotonic ms. */
  #coldAtMs = Number.NEGATIVE_INFINITY;

  constructor(wiring: Wiring) {
    this.#wiring = wiring;
    this.#runtime = untilKilled(wiring.runtime);
  }

  /** Once, unless one was held lately; the longer it took, the longer ago that must be. */
  runIfCold(): void {
    const { scheduler } = this.#wiring;
    const startMs = scheduler.now();
    if (startMs < this.#coldAtMs) return;
    this.run(1);
    const tookMs = scheduler.now() - startMs;
    this.#coldAtMs = startMs + Math.max(WARM_FOR_MS, tookMs * REHEARSAL_SHARE);
  }

  /** Returns when done, after `times` or {@link REHEARSAL_LIMIT_MS}. */
  run(times: number): void {
    const { scheduler, current } = this.#wiring;
    const { view } = current();
    const runtime = this.#runtime;
    const outcomes$ = new Subject<EvictionOutcome>();
    const endMs = scheduler.now() + REHEARSAL_LIMIT_MS;
    const turns$ = connectable(
      evictionPipeline(
        {
          wakeups$: of('start'),
          outcomes$,
          // What was measured of filesystems is left for the turn that it was measured for.
          read: view.readCounters,
          readPods: () => runtime.observePods(),
          pollAfterMs: (before, now) => pollAfterMs(this.#wiring, before, now),
          podsIntervalMs: Number.MAX_SAFE_INTEGER,
        },
        () => REHEARSAL_POLICY,
        scheduler,
      ),
    );
    const rehearsed = execute(decisionsOf(turns$), {
      runtime,
      scheduler,
      dryRun: false,
      readAvailable: view.readAvailable,
      askAgain: () => () => undefined,
    })
      .pipe(
        take(times),
        takeWhile(() => scheduler.now() < endMs),
      )
      .subscribe((outcome) => outcomes$.next(outcome));
    turns$.connect().unsubscribe();
    rehearsed.unsubscribe();
  }
}

/** A threshold that no node can satisfy. */
const REHEARSAL_POLICY: Policy = {
  thresholds: [
    {
      signal: 'memory.available',
      kind: 'hard',
      value: {
        kind: 'quantity',
        nano: BigInt(Number.MAX_SAFE_INTEGER) * 1_000_000_000n,
        text: 'rehearsal',
      },
      gracePeriodMs: 0,
      minimumReclaim: undefined,
    },
  ],
  pressureTransitionPeriodMs: 0,
  maxPodGracePeriodSeconds: 0,
  hardEvictionGracePeriodSeconds: 0,
  rules: RULE_SETS.evictd,
  layout: 'single',
  ranksDisk: false,
  reclaims: [],
};

/** The runtime, signalling nobody, and ending each eviction where all signals would be sent. */
function untilKilled(runtime: Runtime): Runtime {
  return {
    ...runtime,
    evict: (request) =>
      concat(
        runtime
          .evict({ ...request, rehearsal: true })
          .pipe(takeWhile(({ kind }) => kind !== 'killed')),
        from<EvictProgress[]>([{ kind: 'refused', reason: 'pressureGone' }]),
      ),
  };
}

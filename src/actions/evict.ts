import {
  catchError,
  connect,
  defer,
  endWith,
  filter,
  interval,
  map,
  merge,
  type Observable,
  of,
  type SchedulerLike,
  scan,
  switchMap,
  take,
} from 'rxjs';
import type { Decision, EvictionOutcome, EvictionTiming } from '../core/decision.ts';
import { SIGNALS, type Signal, type SignalUnit } from '../core/signal.ts';
import { thresholdLevel } from '../core/threshold.ts';
import type { EvictProgress, Runtime } from '../ports/runtime.ts';

/** How far apart the readings are that tell whether a kill still has effect, ms. */
export const EFFECT_READING_MS = 20;
/** How long the effect of a kill is awaited for a hard threshold, ms after the KILL. */
export const HARD_DEADLINE_MS = 5000;
/** The same for a soft one. */
export const SOFT_DEADLINE_MS = 30_000;

/** What changes of a resource are none, and which are much, in the signal's unit. */
interface Grain {
  /** A fall of usage below this is none. */
  readonly settled: number;
  /** Another pod took at least this much while the victim was dying: it does not wait. */
  readonly stillDying: number;
}

const GRAINS: Readonly<Record<SignalUnit, Grain>> = {
  // The kernel charges a cgroup in batches of 64 pages for each CPU: a reading wavers by as much.
  bytes: { settled: 256 * 1024, stillDying: 4 * 2 ** 20 },
  inodes: { settled: 64, stillDying: 1000 },
  tasks: { settled: 1, stillDying: 16 },
};

export type EvictDecision = Extract<Decision, { kind: 'evict' }>;

export interface EvictDependencies {
  readonly runtime: Runtime;
  readonly scheduler: SchedulerLike;
  readonly dryRun: boolean;
  /** A shorter grace for the running eviction, ms. */
  readonly escalations$: Observable<number>;
  /** What is available of the decision's signal now, in its unit; undefined when it cannot be read. */
  readonly readAvailable: (signal: Signal) => number | undefined;
  /**
   * Called at the decision; what it returns is asked before a KILL that follows a grace: why the pod is
   * left alone after all, undefined when it is not.
   */
  readonly askAgain: (decision: EvictDecision) => () => string | undefined;
}

type Event = { readonly kind: 'reading' | 'escalated' | 'ended' } | EvictProgress;

/**
 * Carries out one eviction and says how it ended: exactly one outcome, then completion. Never
 * errors.
 *
 * Right before the first signal the resource is read again; pressure that is gone refuses the
 * eviction. After the KILL its effect is awaited: no process left, then two readings 20 ms apart
 * between which usage no longer falls. What is awaited has a limit, and ends earlier for a hard
 * victim when another pod takes what it is giving back.
 *
 * Cold; the first signal is sent while subscribing. Holds the runtime's eviction and one timer.
 */
export function evict(
  decision: EvictDecision,
  dependencies: EvictDependencies,
): Observable<EvictionOutcome> {
  const { scheduler } = dependencies;
  return defer(() => {
    const start = begin(decision, decision.cause?.observation.atMs ?? scheduler.now());
    return defer(() => carryOut(start, dependencies)).pipe(
      catchError((error: unknown) => of(failed(start, scheduler.now(), error))),
    );
  });
}

function carryOut(start: Eviction, dependencies: EvictDependencies): Observable<EvictionOutcome> {
  const { runtime, scheduler, escalations$ } = dependencies;
  const { decision } = start;
  const refused = refuseBeforehand(start, dependencies);
  if (refused !== undefined) return of(refused);

  const progress$ = runtime.evict({
    podId: decision.pod.id,
    podName: decision.pod.name,
    hard: decision.hard,
    gracePeriodMs: decision.gracePeriodMs,
    signal: decision.cause?.threshold.signal,
    forbidden: dependencies.askAgain(decision),
    escalations$,
  });
  return progress$.pipe(
    connect((shared$) =>
      // An escalation is noted before the runtime acts on it: it decides how long is waited.
      merge(
        escalations$.pipe(map((): Event => ({ kind: 'escalated' }))),
        shared$.pipe(endWith<Event>({ kind: 'ended' })),
        readingsOf(shared$, scheduler),
      ),
    ),
    scan(
      (eviction, event: Event) =>
        advance(eviction, event, scheduler.now(), () => availableFor(decision, dependencies)),
      start,
    ),
    map((eviction) => eviction.outcome),
    filter((outcome) => outcome !== undefined),
    take(1),
  );
}

/** "Read now", each 20 ms from the KILL, or from emptiness where none was needed. */
function readingsOf(
  progress$: Observable<EvictProgress>,
  scheduler: SchedulerLike,
): Observable<Event> {
  return progress$.pipe(
    filter(({ kind }) => kind === 'killed' || kind === 'empty'),
    take(1),
    switchMap(() => interval(EFFECT_READING_MS, scheduler)),
    map((): Event => ({ kind: 'reading' })),
  );
}

/** An eviction in progress, as far as its events tell. Times are monotonic ms; see {@link Grain}. */
interface Eviction {
  readonly decision: EvictDecision;
  readonly hard: boolean;
  readonly decidedAtMs: number;
  readonly firstSignalAtMs: number | undefined;
  readonly killedAtMs: number | undefined;
  readonly emptyAtMs: number | undefined;
  readonly processes: number;
  readonly remaining: number;
  readonly chargedBytes: number | undefined;
  readonly obstacle: string | undefined;
  /** The first reading 20 ms or more after the KILL. */
  readonly baseline: number | undefined;
  /** The last reading since the pod was empty. */
  readonly last: { readonly available: number; readonly atMs: number } | undefined;
  readonly outcome: EvictionOutcome | undefined;
}

function begin(decision: EvictDecision, decidedAtMs: number): Eviction {
  return {
    decision,
    hard: decision.hard,
    decidedAtMs,
    firstSignalAtMs: undefined,
    killedAtMs: undefined,
    emptyAtMs: undefined,
    processes: 0,
    remaining: 0,
    chargedBytes: undefined,
    obstacle: undefined,
    baseline: undefined,
    last: undefined,
    outcome: undefined,
  };
}

/** What there is now of what the eviction is for; a pod over a limit of its own is for nothing else. */
function availableFor(
  { cause }: EvictDecision,
  { readAvailable }: EvictDependencies,
): number | undefined {
  return cause === undefined ? Number.MAX_SAFE_INTEGER : readAvailable(cause.threshold.signal);
}

/** A dry run ends here; so does an eviction whose cause has gone since the decision. */
function refuseBeforehand(
  start: Eviction,
  dependencies: EvictDependencies,
): EvictionOutcome | undefined {
  const base = outcomeBase(start, start.decidedAtMs);
  if (dependencies.dryRun) return { ...base, kind: 'refused', reason: 'dryRun' };
  const { cause } = start.decision;
  const available = availableFor(start.decision, dependencies);
  if (cause === undefined || available === undefined || available < cause.level) return undefined;
  return { ...base, kind: 'refused', reason: 'pressureGone' };
}

function advance(
  eviction: Eviction,
  event: Event,
  nowMs: number,
  readAvailable: () => number | undefined,
): Eviction {
  switch (event.kind) {
    case 'terminating':
      return { ...eviction, firstSignalAtMs: nowMs, processes: event.processes };
    case 'killed':
      return {
        ...eviction,
        firstSignalAtMs: eviction.firstSignalAtMs ?? nowMs,
        // The first one counts: what appears later must not put the deadline off.
        killedAtMs: eviction.killedAtMs ?? nowMs,
        processes: event.processes,
      };
    case 'empty':
      return settle(
        {
          ...eviction,
          emptyAtMs: nowMs,
          processes: event.processes,
          chargedBytes: event.chargedBytes,
        },
        nowMs,
        readAvailable(),
      );
    case 'refused': {
      const base = outcomeBase(eviction, nowMs);
      const detail = event.detail === undefined ? {} : { detail: event.detail };
      return {
        ...eviction,
        outcome: { ...base, kind: 'refused', reason: event.reason, ...detail },
      };
    }
    case 'obstacle':
      return { ...eviction, obstacle: event.detail };
    case 'remaining':
      return { ...eviction, remaining: event.processes };
    case 'escalated':
      return { ...eviction, hard: true };
    case 'ended':
      return eviction.emptyAtMs === undefined
        ? {
            ...eviction,
            outcome: failed(eviction, nowMs, 'the runtime gave up without saying why'),
          }
        : eviction;
    case 'reading':
      return settle(eviction, nowMs, readAvailable());
  }
}

/** What a reading says of the eviction. */
function settle(eviction: Eviction, nowMs: number, available: number | undefined): Eviction {
  const sinceMs = nowMs - (eviction.killedAtMs ?? eviction.emptyAtMs ?? nowMs);
  const isOver = sinceMs >= (eviction.hard ? HARD_DEADLINE_MS : SOFT_DEADLINE_MS);
  if (eviction.emptyAtMs !== undefined) return settleEmpty(eviction, nowMs, available, isOver);
  if (isOver) return { ...eviction, outcome: timedOut(eviction, nowMs, 'deadline') };
  if (!eviction.hard || available === undefined || sinceMs < EFFECT_READING_MS) return eviction;
  if (eviction.baseline === undefined) return { ...eviction, baseline: available };
  return eviction.baseline - available >= stillDying(eviction.decision)
    ? { ...eviction, outcome: timedOut(eviction, nowMs, 'stillDying') }
    : eviction;
}

/** Nobody is left: the memory is back once usage no longer falls, or the time is over. */
function settleEmpty(
  eviction: Eviction,
  nowMs: number,
  available: number | undefined,
  isOver: boolean,
): Eviction {
  const { last } = eviction;
  if (available === undefined)
    return isOver ? { ...eviction, outcome: evicted(eviction, nowMs) } : eviction;
  const isApart = last !== undefined && nowMs - last.atMs >= EFFECT_READING_MS;
  if (isOver || (isApart && available - last.available < grainOf(eviction.decision).settled)) {
    return { ...eviction, outcome: evicted(eviction, nowMs) };
  }
  return last === undefined || isApart
    ? { ...eviction, last: { available, atMs: nowMs } }
    : eviction;
}

function grainOf({ cause }: EvictDecision): Grain {
  return GRAINS[cause === undefined ? 'bytes' : SIGNALS[cause.threshold.signal].unit];
}

function stillDying(decision: EvictDecision): number {
  const { cause } = decision;
  const quarter =
    cause === undefined
      ? 0
      : thresholdLevel(cause.threshold, cause.observation.capacity, false) / 4;
  return Math.max(quarter, grainOf(decision).stillDying);
}

function outcomeBase(
  eviction: Eviction,
  endedAtMs: number,
): {
  readonly podId: string;
  readonly podName: string;
  readonly timing: EvictionTiming;
  readonly processes: number;
} {
  const { decidedAtMs, firstSignalAtMs, killedAtMs, emptyAtMs, processes, decision } = eviction;
  return {
    podId: decision.pod.id,
    podName: decision.pod.name,
    timing: { decidedAtMs, firstSignalAtMs, killedAtMs, emptyAtMs, endedAtMs },
    processes,
  };
}

function evicted(eviction: Eviction, nowMs: number): EvictionOutcome {
  return { ...outcomeBase(eviction, nowMs), kind: 'evicted', chargedBytes: eviction.chargedBytes };
}

function timedOut(
  eviction: Eviction,
  nowMs: number,
  reason: 'stillDying' | 'deadline',
): EvictionOutcome {
  const detail = eviction.obstacle === undefined ? {} : { detail: eviction.obstacle };
  return {
    ...outcomeBase(eviction, nowMs),
    kind: 'timedOut',
    reason,
    remaining: eviction.remaining,
    ...detail,
  };
}

function failed(start: Eviction, nowMs: number, error: unknown): EvictionOutcome {
  const message = error instanceof Error ? error.message : String(error);
  return { ...outcomeBase(start, nowMs), kind: 'failed', error: message };
}

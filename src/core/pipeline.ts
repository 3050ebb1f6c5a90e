import {
  distinctUntilChanged,
  EMPTY,
  filter,
  map,
  merge,
  type Observable,
  type SchedulerLike,
} from 'rxjs';
import { coalesce } from './coalesce.ts';
import { RANK_AGAIN_MS } from './decide.ts';
import type { Decision, EvictionOutcome } from './decision.ts';
import type { SignalObservation } from './observation.ts';
import type { PodObservation } from './pod.ts';
import type { Policy } from './policy.ts';
import { POLL_PACES } from './polling.ts';
import { DUE, type Due, scanUntilDue } from './scan-until-due.ts';
import type { NodeCondition, Signal } from './signal.ts';
import { INITIAL_STATE, type Sample, type State, underAnotherPolicy } from './state.ts';
import { type StepResult, step } from './step.ts';

/** Wake-ups that pass at once; five rungs of a ladder may come together. */
export const WAKEUP_BURST = 4;
/**
 * The shortest time between two of the wake-ups after them, ms: a leak at full speed fills 2 MiB in
 * it, and reclaim near the limit wakes evictd up as often as that.
 */
export const WAKEUP_INTERVAL_MS = 1;

/** The shortest time between two polls while no pod may be evicted, ms. */
export const IMPOSSIBLE_POLL_MS = 100;

/**
 * What says "read now": the kernel (`wakeup`), that something else was measured, such as a filesystem, or whoever
 * runs the pipeline (`asked`), since what it reads has changed.
 */
export type WakeReason = 'wakeup' | 'measured' | 'asked';

/** Why a sample was taken. `start` is the first, `due` a poll or the end of a period. */
export type ReadReason = WakeReason | 'start' | 'outcome' | 'reclaimed' | 'due';

/** What the pipeline is fed with, and how it reads. Reading never throws. */
export interface PipelineInputs {
  /** "Read now", by what a {@link WakeReason} says, else by the kernel. The first one starts the pipeline. */
  readonly wakeups$: Observable<unknown>;
  readonly outcomes$: Observable<EvictionOutcome>;
  /** Emits where a collection that was decided has ended; left out where there are none. */
  readonly reclaimed$?: Observable<unknown>;
  /** Fresh counters of the node; a signal that cannot be read is left out. */
  readonly read: () => readonly SignalObservation[];
  /** All pods, listed and read afresh; for a decision about `signal`, where it is for one. */
  readonly readPods: (signal?: Signal) => readonly PodObservation[];
  /** Whether what was evicted for a disk still holds its space; left out where that is not known. */
  readonly holdsSpace?: () => boolean;
  /** How long until the next poll, ms, after `now` followed `before`. */
  readonly pollAfterMs: (before: ReadSample | undefined, now: ReadSample) => number;
  /** How often all pods are read when nothing is decided, ms; less often where that takes long. */
  readonly podsIntervalMs: number;
  /** What is known before the first sample, which has all pods; by default nothing. */
  readonly initialState?: (policy: Policy, sample: ReadSample) => State;
}

/** A sample for which the node was read. */
export interface ReadSample extends Sample {
  readonly observations: readonly SignalObservation[];
}

/** One round: why it was taken, what was seen, what follows. */
export interface Turn extends StepResult {
  /** By which it was decided. */
  readonly policy: Policy;
  readonly reason: ReadReason;
  readonly sample: ReadSample;
  readonly podsDueAtMs: number;
  /** When all pods were last read, monotonic ms, and how long that took. */
  readonly podsRead: { readonly atMs: number; readonly tookMs: number };
  /** When the next sample is taken if nothing happens before, monotonic ms. */
  readonly lookAgainAtMs: number;
}

/**
 * The eviction pipeline: every wake-up, poll, outcome and ended period becomes a fresh sample, and
 * every sample goes through `step`. Emits a turn for each.
 *
 * A decision is made on counters that were read in the same turn: where `step` asks for pods they
 * are listed at that instant, since the leaking pod may be younger than the last poll. Storms of
 * wake-ups are coalesced; outcomes are not.
 *
 * Cold. Completes when both inputs have; errors as they do, or when reading throws, which is a
 * fault. Holds the inputs' subscriptions and two timers.
 *
 * @param policy what is decided by, asked at each turn
 * @param scheduler the clock of all instants; live, its `now()` is monotonic
 */
export function evictionPipeline(
  inputs: PipelineInputs,
  policy: () => Policy,
  scheduler: SchedulerLike,
): Observable<Turn> {
  const wakeups$ = inputs.wakeups$.pipe(
    coalesce(WAKEUP_BURST, WAKEUP_INTERVAL_MS, scheduler),
    map((value): Input => ({ reason: wakeReason(value) })),
  );
  const outcomes$ = inputs.outcomes$.pipe(
    map((outcome): Input => ({ reason: 'outcome', outcome })),
  );
  const reclaimed$ = (inputs.reclaimed$ ?? EMPTY).pipe(map((): Input => ({ reason: 'reclaimed' })));
  return merge(outcomes$, reclaimed$, wakeups$).pipe(
    scanUntilDue<Input, Turn>(
      (last, input) => takeTurn(inputs, policy(), () => scheduler.now(), last, input),
      (turn) => turn.lookAgainAtMs,
      scheduler,
    ),
  );
}

function wakeReason(value: unknown): WakeReason {
  return value === 'measured' || value === 'asked' ? value : 'wakeup';
}

type Input =
  | { readonly reason: WakeReason | 'reclaimed' }
  | { readonly reason: 'outcome'; readonly outcome: EvictionOutcome };

function takeTurn(
  inputs: PipelineInputs,
  policy: Policy,
  clock: () => number,
  last: Turn | undefined,
  input: Input | Due,
): Turn {
  const nowMs = clock();
  // The first turn reads them.
  let podsRead = last?.podsRead ?? { atMs: nowMs, tookMs: 0 };
  const readPods = (signal?: Signal): readonly PodObservation[] => {
    const startMs = clock();
    const pods = inputs.readPods(signal);
    podsRead = { atMs: nowMs, tookMs: clock() - startMs };
    return pods;
  };
  const reclaimed =
    input !== DUE && input.reason === 'reclaimed' ? ({ reclaimed: true } as const) : {};
  // At first, and where other rules may make other pods.
  const podsDue = last?.policy !== policy || arePodsDue(nowMs, last, input);
  const seen: ReadSample = {
    nowMs,
    observations: inputs.read(),
    ...(podsDue ? { pods: readPods() } : {}),
    ...(inputs.holdsSpace?.() ? { spaceHeld: true } : {}),
    ...(input !== DUE && input.reason === 'outcome' ? { outcome: input.outcome } : {}),
    ...reclaimed,
  };
  const first = step(policy, stateFor(inputs, policy, last, seen), seen);
  const { decision } = first;
  const pods =
    decision.kind === 'observePods' ? readPods(decision.cause.threshold.signal) : undefined;
  const sample: ReadSample = pods === undefined ? seen : { ...seen, pods };
  // The outcome was taken in by the first step; that a collection has ended is not, where that asked for pods.
  const { observations } = seen;
  const result =
    pods === undefined
      ? first
      : step(policy, first.state, { nowMs, observations, pods, ...reclaimed });
  const podsDueAtMs = podsRead.atMs + Math.max(inputs.podsIntervalMs, podsRead.tookMs * READ_SHARE);
  const pollAtMs = nowMs + pollAfterMs(inputs, last, sample, result);
  return {
    ...result,
    policy,
    reason: last === undefined ? 'start' : input === DUE ? 'due' : input.reason,
    sample,
    podsDueAtMs,
    podsRead,
    lookAgainAtMs: Math.min(pollAtMs, podsDueAtMs, result.wakeAtMs ?? pollAtMs),
  };
}

function stateFor(
  { initialState }: PipelineInputs,
  policy: Policy,
  last: Turn | undefined,
  sample: ReadSample,
): State {
  if (last === undefined) return initialState?.(policy, sample) ?? INITIAL_STATE;
  return last.policy === policy ? last.state : underAnotherPolicy(last.state);
}

/** While nobody may be evicted a reading only tells whether somebody takes more: a few a second do. */
function pollAfterMs(
  inputs: PipelineInputs,
  last: Turn | undefined,
  sample: ReadSample,
  { state }: StepResult,
): number {
  const pollMs = inputs.pollAfterMs(last?.sample, sample);
  const isImpossible = state.noCandidateAtMs !== undefined && state.due.length > 0;
  return isImpossible ? Math.max(pollMs, IMPOSSIBLE_POLL_MS) : pollMs;
}

/**
 * All pods are read each interval; and at a wake-up while none may be evicted, since somebody takes
 * memory, and it may be a pod that was not there when they were ranked; the less often the longer it
 * takes.
 */
function arePodsDue(nowMs: number, last: Turn, input: Input | Due): boolean {
  if (input === DUE) return nowMs >= last.podsDueAtMs;
  const isWakeup = input.reason !== 'outcome' && input.reason !== 'reclaimed';
  if (!isWakeup || last.state.noCandidateAtMs === undefined) return false;
  const { atMs, tookMs } = last.podsRead;
  const gapMs = Math.min(Math.max(POLL_PACES.memory.floorMs, tookMs * READ_SHARE), RANK_AGAIN_MS);
  return nowMs - atMs >= gapMs;
}

/** Reading all pods where nothing is decided takes no more than one part in so many of the time. */
const READ_SHARE = 50;

/** What is to be done, as it is decided; inaction is left out. */
export function decisionsOf(
  turns$: Observable<Turn>,
): Observable<Exclude<Decision, { kind: 'none' }>> {
  return turns$.pipe(
    map((turn) => turn.decision),
    filter((decision) => decision.kind !== 'none'),
  );
}

/** The node conditions, at first and at each change. */
export function conditionsOf(turns$: Observable<Turn>): Observable<readonly NodeCondition[]> {
  return turns$.pipe(
    map((turn) => turn.conditions),
    distinctUntilChanged((before, now) => before.join() === now.join()),
  );
}

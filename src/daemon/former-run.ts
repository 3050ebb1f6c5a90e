/** What a former run left, taken up in the first turn, and what is kept for the next one. */

import {
  distinctUntilChanged,
  EMPTY,
  map,
  mergeMap,
  type Observable,
  type Subscription,
  skip,
  startWith,
  take,
  tap,
} from 'rxjs';
import type { EvictDecision } from '../actions/evict.ts';
import type { EvictionOutcome, EvictionRecord } from '../core/decision.ts';
import type { ImageMemory } from '../core/image-gc.ts';
import {
  interrupted,
  type Kept,
  type Moment,
  restored,
  resumedEviction,
  snapshotOf,
} from '../core/persistence.ts';
import type { PipelineInputs, Turn } from '../core/pipeline.ts';
import { type KeepingNotice, keepState } from '../state/keeper.ts';
import { reportRestored } from '../surfaces/report.ts';
import { type Model, type ModelEvent, STATE } from '../surfaces/status.ts';
import type { DaemonInputs, Wiring } from './wiring.ts';

/** What a former run left, taken up in the first turn. */
interface FormerRun {
  readonly initialState: PipelineInputs['initialState'];
  /** The eviction that it was at, where that is still called for. */
  readonly resumed$: (turns$: Observable<Turn>) => Observable<EvictDecision>;
  /** The end of one that is not. */
  readonly interrupted$: (turns$: Observable<Turn>) => Observable<EvictionOutcome>;
  /** What it knew of images, from the first turn on. */
  readonly images: () => ImageMemory | undefined;
}

export function formerRun(
  { keeping, logger }: DaemonInputs,
  say: (event: ModelEvent) => void,
): FormerRun {
  const found = keeping?.found;
  if (keeping === undefined || found === undefined) {
    return {
      initialState: undefined,
      resumed$: () => EMPTY,
      interrupted$: () => EMPTY,
      images: () => undefined,
    };
  }
  let open: EvictionRecord | undefined;
  let images: ImageMemory | undefined;
  /** The first turn, where an eviction is in flight that this run has not begun. */
  const first = (turns$: Observable<Turn>) =>
    turns$.pipe(
      take(1),
      mergeMap((turn) => {
        if (open === undefined) return [];
        const { nowMs, pods = [] } = turn.sample;
        const seen = { state: turn.state, pods, nowMs };
        return [{ record: open, nowMs, decision: resumedEviction(seen, open) }];
      }),
    );
  return {
    initialState: (policy, { nowMs, pods = [] }) => {
      const moment = momentAt(keeping.moment('earliest'), nowMs);
      const listed = new Set(pods.map(({ id }) => id));
      const former = restored(found, policy, moment, (id) => listed.has(id));
      const { state, evictions } = former;
      images = former.images;
      if (state.inFlight !== undefined) {
        open = evictions.findLast(({ outcome }) => outcome === undefined);
      }
      say({ kind: 'restored', evictions, images });
      reportRestored(logger, { file: keeping.store.path, found, state, moment });
      return state;
    },
    images: () => images,
    resumed$: (turns$) =>
      first(turns$).pipe(
        mergeMap(({ decision }) => (decision === undefined ? [] : [decision])),
        tap(({ pod, gracePeriodMs }) =>
          logger.warn({ pod: pod.name, gracePeriodMs }, 'the eviction of a former run goes on'),
        ),
      ),
    interrupted$: (turns$) =>
      first(turns$).pipe(
        mergeMap(({ record, nowMs, decision }) =>
          decision === undefined ? [interrupted(record, record.decidedAtMs, nowMs)] : [],
        ),
      ),
  };
}

/** The same on all clocks at an instant that is a little while ago. */
function momentAt(moment: Moment, nowMs: number): Moment {
  const agoMs = moment.nowMs - nowMs;
  return { ...moment, nowMs, bootMs: moment.bootMs - agoMs, wallMs: moment.wallMs - agoMs };
}

/** What is to outlive a restart; nothing before the first turn. */
export function keptOf({ turn, evictions, images }: Model): readonly Kept[] {
  return turn === undefined ? [] : [{ state: turn.state, evictions, images }];
}

/** Keeps what is to outlive a restart, where that was asked for. */
export function keptNotices(
  { current, scheduler }: Wiring,
  { keeping }: DaemonInputs,
  model$: Observable<Model>,
): Observable<KeepingNotice> {
  if (keeping === undefined) return EMPTY;
  const { store, moment, claimedAtMs } = keeping;
  return model$.pipe(
    mergeMap(keptOf),
    keepState({
      store,
      snapshot: (kept, unsavedMs) => snapshotOf(kept, moment('latest'), unsavedMs),
      transitionPeriodMs: () => current().settings.policy.pressureTransitionPeriodMs,
      hasFailed: claimedAtMs === undefined,
      scheduler,
    }),
  );
}

export function keptEvents(notice: KeepingNotice): readonly ModelEvent[] {
  if (notice.kind === 'failed') return [{ kind: 'degraded', part: STATE, reason: notice.reason }];
  return [
    { kind: 'degraded', part: STATE, reason: undefined },
    { kind: 'kept', atMs: notice.atMs },
  ];
}

/** Says when the state cannot be kept, and when it can again. */
export function reportKeeping(
  { logger, keeping }: DaemonInputs,
  kept$: Observable<KeepingNotice>,
): Subscription {
  // What failed at the start has been said.
  const before = keeping?.trouble;
  return kept$
    .pipe(
      map((notice) => (notice.kind === 'failed' ? notice.reason : undefined)),
      startWith(before),
      distinctUntilChanged(),
      skip(1),
    )
    .subscribe((reason) => {
      if (reason === undefined) logger.warn({ part: STATE }, 'state is kept again');
      else logger.warn({ part: STATE, reason }, 'degraded');
    });
}

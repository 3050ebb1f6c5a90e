/**
 * The composition root: the only file that joins sources, core, actions, runtimes and surfaces. It
 * subscribes once, and owns the only Subjects.
 */
import {
  concat,
  connectable,
  defer,
  distinctUntilChanged,
  EMPTY,
  filter,
  from,
  map,
  merge,
  mergeMap,
  type Observable,
  of,
  pairwise,
  ReplaySubject,
  type SchedulerLike,
  Subject,
  Subscription,
  scan,
  share,
  shareReplay,
  startWith,
  switchMap,
  take,
  takeWhile,
  throttleTime,
  withLatestFrom,
} from 'rxjs';
import { execute } from './actions/executor.ts';
import type { Settings } from './config/settings.ts';
import type { EvictionOutcome } from './core/decision.ts';
import { closePollMs } from './core/following.ts';
import { earliest } from './core/grace.ts';
import { decisionsOf, evictionPipeline, type Turn } from './core/pipeline.ts';
import type { Policy } from './core/policy.ts';
import { nextPollMs } from './core/polling.ts';
import type { Sample } from './core/step.ts';
import { thresholdLevel } from './core/threshold.ts';
import type { NodeCgroup } from './kernel/node-cgroup.ts';
import type { NativeAddon } from './native/types.ts';
import type { NotificationPath } from './ports/notification.ts';
import type { MemoryReading } from './ports/readings.ts';
import type { EvictProgress, Runtime } from './ports/runtime.ts';
import { cgroupRuntime } from './runtimes/cgroup/runtime.ts';
import { type MemcgNotice, memcgThresholds } from './sources/memcg-threshold.ts';
import { isFailure, memoryAvailable, memoryReader } from './sources/memory.ts';
import type { Logger } from './surfaces/log.ts';
import { limitedLogger, reportOutcome, reportPath, reportTurn } from './surfaces/report.ts';
import { EMPTY_MODEL, type Model, type ModelEvent, updateModel } from './surfaces/status.ts';

export interface DaemonInputs {
  readonly settings: Settings;
  readonly node: NodeCgroup;
  /** Undefined where the addon is missing: polling then, and nothing can be killed. */
  readonly native: NativeAddon | undefined;
  readonly scheduler: SchedulerLike;
  readonly logger: Logger;
}

/** A daemon that is wired, and runs once it is started. */
export interface Daemon {
  /** What it believes: the last value at once, then every change. Hot once started. */
  readonly model$: Observable<Model>;
  /** Emits once, when every threshold is armed and read, and completes. */
  readonly ready$: Observable<Turn>;
  /** Goes the way to a kill some two hundred times, signalling nobody. Before `start`. */
  rehearse(): void;
  /** Says that a part does not work as it should, and why. */
  degrade(part: string, reason: string): void;
  /** Starts watching and evicting; both end with the subscription, and all descriptors are closed. */
  start(): Subscription;
}

/** How many parts may say that they are degraded before the daemon starts. */
const REMEMBERED_DEGRADATIONS = 100;

/** Joins the parts. Nothing is armed or signalled before `start`. */
export function createDaemon(inputs: DaemonInputs): Daemon {
  const { settings, scheduler, logger } = inputs;
  const view = nodeView(inputs);
  const runtime = runtimeOf(inputs);
  const rehearsal = new Rehearsal(inputs, view, runtime);
  const outcomes$ = new Subject<EvictionOutcome>();
  // What is degraded at the start is said before anybody listens.
  const degraded$ = new ReplaySubject<ModelEvent>(REMEMBERED_DEGRADATIONS);

  const notices$: Observable<MemcgNotice> = defer(() =>
    kernelNotices(inputs, turns$.pipe(mergeMap(() => view.reading() ?? []))),
  ).pipe(share());
  const turns$ = connectable(
    evictionPipeline(
      {
        wakeups$: merge(of('start'), notices$.pipe(filter(({ kind }) => kind !== 'path'))),
        outcomes$,
        read: view.read,
        readPods: () => runtime.observePods(),
        pollAfterMs: (before, now) => pollAfterMs(inputs, before, now, view.reading()),
        podsIntervalMs: settings.pollIntervalMs,
      },
      settings.policy,
      scheduler,
    ),
  );
  const paths$ = notices$.pipe(mergeMap((notice) => (notice.kind === 'path' ? [notice.path] : [])));
  const events$ = merge(
    turns$.pipe(mergeMap((turn) => turnEvents(turn, view))),
    notices$.pipe(
      map((notice): ModelEvent => (notice.kind === 'path' ? notice : { kind: 'wakeup' })),
    ),
    degraded$,
  );
  const model$ = events$.pipe(
    scan(updateModel, EMPTY_MODEL),
    startWith(EMPTY_MODEL),
    shareReplay(1),
  );

  return {
    model$,
    ready$: readyOf(inputs, turns$, paths$),
    rehearse: () => rehearsal.run(REHEARSALS),
    degrade: (part, reason) => {
      logger.warn({ part, reason }, 'degraded');
      degraded$.next({ kind: 'degraded', part, reason });
    },
    start: () => {
      const running = new Subscription(() => {
        view.close();
        runtime.close();
      });
      const wavering = limitedLogger(logger, () => scheduler.now());
      // First, so that nothing stands between a decision and its first signal.
      running.add(
        execute(decisionsOf(turns$), {
          runtime,
          scheduler,
          dryRun: settings.dryRun,
          readAvailable: () => view.read()[0]?.available,
        }).subscribe((outcome) => outcomes$.next(outcome)),
      );
      running.add(model$.subscribe());
      running.add(
        turns$.pipe(startWith(undefined), pairwise()).subscribe(([before, turn]) => {
          if (turn === undefined) return;
          if (turn.sample.outcome !== undefined) reportOutcome(logger, turn.sample.outcome);
          reportTurn(logger, before, turn, { dryRun: settings.dryRun, wavering });
        }),
      );
      running.add(reportPaths(logger, paths$));
      running.add(reportReadings(logger, turns$, view));
      running.add(turns$.connect());
      // After the turn that the same event brings, should the threshold be crossed already.
      running.add(approaches(notices$, turns$, scheduler).subscribe(() => rehearsal.run(1)));
      return running;
    },
  };
}

/** The node's counters and the last reading of them. */
interface NodeView {
  read(): readonly ReturnType<typeof memoryAvailable>[];
  /** The last reading, none when it failed. */
  reading(): readonly [MemoryReading] | undefined;
  failure(): string | undefined;
  close(): void;
}

function nodeView({ node, scheduler }: DaemonInputs): NodeView {
  const reader = memoryReader(node.directory, () => scheduler.now());
  let last: ReturnType<typeof reader.read> | undefined;
  return {
    read: () => {
      last = reader.read();
      return isFailure(last) ? [] : [memoryAvailable(last)];
    },
    reading: () => (last === undefined || isFailure(last) ? undefined : [last]),
    failure: () => (last !== undefined && isFailure(last) ? last.error : undefined),
    close: () => reader.close(),
  };
}

function runtimeOf(inputs: DaemonInputs): Runtime {
  const { settings, node, native, scheduler } = inputs;
  return cgroupRuntime({
    directory: node.directory,
    hierarchy: node.hierarchy,
    fields: settings.pods,
    native,
    scheduler,
    pid: process.pid,
  });
}

/** Every kernel path there is, where it was asked for and can be had. */
function kernelNotices(
  inputs: DaemonInputs,
  readings$: Observable<MemoryReading>,
): Observable<MemcgNotice> {
  const { settings, native, node } = inputs;
  if (!settings.kernelMemcgNotification || native === undefined) return EMPTY;
  const { thresholds } = settings.policy;
  return memcgThresholds({ native, directory: node.directory, thresholds, readings$ });
}

/** The sooner of the adaptive poll and the one that following the working set needs. */
function pollAfterMs(
  { settings, native }: DaemonInputs,
  before: Sample | undefined,
  now: Sample,
  reading: readonly [MemoryReading] | undefined,
): number {
  const { thresholds } = settings.policy;
  const adaptive = nextPollMs(
    thresholds,
    before?.observations[0],
    now.observations[0],
    settings.pollIntervalMs,
  );
  if (!settings.kernelMemcgNotification || native === undefined || reading === undefined)
    return adaptive;
  const [{ capacityBytes, inactiveFileBytes, usageBytes }] = reading;
  const close = thresholds.map((threshold) =>
    closePollMs(
      capacityBytes,
      thresholdLevel(threshold, capacityBytes, false),
      inactiveFileBytes,
      usageBytes,
    ),
  );
  return earliest([adaptive, ...close.filter((ms) => ms !== undefined)]) ?? adaptive;
}

function turnEvents(turn: Turn, view: NodeView): readonly ModelEvent[] {
  const seen: ModelEvent = { kind: 'turn', turn, reading: view.reading()?.[0] };
  const { outcome } = turn.sample;
  return [
    // From the turn that takes it in: one that comes at once is older than its own decision's turn.
    ...(outcome === undefined ? [] : [{ kind: 'outcome', outcome } as const]),
    seen,
    { kind: 'degraded', part: 'memory', reason: view.failure() },
  ];
}

function readyOf(
  { settings, native }: DaemonInputs,
  turns$: Observable<Turn>,
  paths$: Observable<NotificationPath>,
): Observable<Turn> {
  const count = settings.policy.thresholds.length;
  if (!settings.kernelMemcgNotification || native === undefined || count === 0)
    return turns$.pipe(take(1));
  return paths$.pipe(
    scan((armed, path) => armed.add(path.threshold), new Set<string>()),
    filter((armed) => armed.size === count),
    take(1),
    switchMap(() => turns$.pipe(take(1))),
  );
}

/** Says when the node cannot be read, when it can again, and when it is another cgroup. */
function reportReadings(logger: Logger, turns$: Observable<Turn>, view: NodeView): Subscription {
  return turns$
    .pipe(
      map(() => ({ failure: view.failure(), cgroupId: view.reading()?.[0].cgroupId })),
      distinctUntilChanged(
        (before, now) => before.failure === now.failure && before.cgroupId === now.cgroupId,
      ),
      // The first reading is no change, unless it fails.
      scan(
        (last, now) => ({ ...now, isFirst: last === undefined }),
        undefined as NodeChange | undefined,
      ),
    )
    .subscribe((change) => {
      if (change === undefined) return;
      const { failure, isFirst } = change;
      if (failure !== undefined) logger.warn({ part: 'memory', reason: failure }, 'degraded');
      else if (!isFirst) logger.warn({ part: 'memory' }, 'the node’s cgroup is read again');
    });
}

interface NodeChange {
  readonly failure: string | undefined;
  readonly isFirst: boolean;
}

function reportPaths(logger: Logger, paths$: Observable<NotificationPath>): Subscription {
  const last = new Map<string, NotificationPath>();
  return paths$.subscribe((path) => {
    reportPath(logger, last.get(path.threshold), path);
    last.set(path.threshold, path);
  });
}

/** When a threshold is near and nothing is decided yet: after the turn that the same event brings. */
function approaches(
  notices$: Observable<MemcgNotice>,
  turns$: Observable<Turn>,
  scheduler: SchedulerLike,
): Observable<unknown> {
  return notices$.pipe(
    filter(({ kind }) => kind === 'approach'),
    withLatestFrom(turns$),
    filter(([, { state }]) => state.inFlight === undefined && state.due.length === 0),
    throttleTime(WARM_FOR_MS, scheduler),
  );
}

/** How often the way from a reading to a kill is rehearsed at the start, and for how long, ms. */
const REHEARSALS = 200;
const REHEARSAL_LIMIT_MS = 250;
/** How long after a rehearsal none is needed, ms: usage may waver about the approach. */
const WARM_FOR_MS = 250;

/**
 * The whole way from a reading to the signals, on the node's own pods, with signal 0, which only
 * checks: nobody is signalled. Once at the approach of a threshold brings it back into the
 * processor's caches, some two hundred times at the start has all that is lazy made: the first
 * kill is no time to pay for either.
 */
class Rehearsal {
  readonly #inputs: DaemonInputs;
  readonly #view: NodeView;
  readonly #runtime: Runtime;

  constructor(inputs: DaemonInputs, view: NodeView, runtime: Runtime) {
    this.#inputs = inputs;
    this.#view = view;
    this.#runtime = untilKilled(runtime);
  }

  /** Returns when done, after `times` or {@link REHEARSAL_LIMIT_MS}. */
  run(times: number): void {
    const { scheduler } = this.#inputs;
    const view = this.#view;
    const runtime = this.#runtime;
    const outcomes$ = new Subject<EvictionOutcome>();
    const endMs = scheduler.now() + REHEARSAL_LIMIT_MS;
    const turns$ = connectable(
      evictionPipeline(
        {
          wakeups$: of('start'),
          outcomes$,
          read: view.read,
          readPods: () => runtime.observePods(),
          pollAfterMs: (before, now) => pollAfterMs(this.#inputs, before, now, view.reading()),
          podsIntervalMs: Number.MAX_SAFE_INTEGER,
        },
        REHEARSAL_POLICY,
        scheduler,
      ),
    );
    const rehearsed = execute(decisionsOf(turns$), {
      runtime,
      scheduler,
      dryRun: false,
      readAvailable: () => view.read()[0]?.available,
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

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
  skip,
  startWith,
  switchMap,
  take,
  takeWhile,
  withLatestFrom,
} from 'rxjs';
import { execute } from './actions/executor.ts';
import type { Settings } from './config/settings.ts';
import type { EvictionOutcome } from './core/decision.ts';
import { closePollMs } from './core/following.ts';
import { earliest } from './core/grace.ts';
import type { SignalObservation } from './core/observation.ts';
import { decisionsOf, evictionPipeline, type Turn } from './core/pipeline.ts';
import type { Policy } from './core/policy.ts';
import { nextPollMs } from './core/polling.ts';
import type { Signal } from './core/signal.ts';
import type { Sample } from './core/step.ts';
import { type Threshold, thresholdLevel } from './core/threshold.ts';
import { descendants } from './kernel/ancestry.ts';
import type { NodeCgroup } from './kernel/node-cgroup.ts';
import type { NativeAddon } from './native/types.ts';
import type { NotificationPath } from './ports/notification.ts';
import type { OomNotice } from './ports/oom-kills.ts';
import type { MemoryReading, ReadingFailure } from './ports/readings.ts';
import type { EvictProgress, Killing, Runtime } from './ports/runtime.ts';
import { cgroupRuntime } from './runtimes/cgroup/runtime.ts';
import { type MemcgNotice, memcgThresholds } from './sources/memcg-threshold.ts';
import { isFailure, type MemoryReader, memoryAvailable, memoryReader } from './sources/memory.ts';
import { oomKills, oomWakeups } from './sources/oom-kills.ts';
import type { Logger } from './surfaces/log.ts';
import {
  limitedLogger,
  reportOomKill,
  reportOutcome,
  reportPath,
  reportTurn,
} from './surfaces/report.ts';
import {
  EMPTY_MODEL,
  type Model,
  type ModelEvent,
  OOM_KILLS,
  updateModel,
} from './surfaces/status.ts';

export interface DaemonInputs {
  readonly settings: Settings;
  readonly node: NodeCgroup;
  /** The directory of the cgroup that holds all pods, where there is one that is not the node's. */
  readonly podsParent: string | undefined;
  /** Undefined where the addon is missing: polling then, and killing as far as that goes without it. */
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
  /** How it ends pods on this machine. */
  readonly killing: Killing;
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
    kernelNotices(inputs, view.readers, turns$.pipe(mergeMap(() => view.readings()))),
  ).pipe(share());
  const turns$ = connectable(
    evictionPipeline(
      {
        wakeups$: merge(of('start'), notices$.pipe(filter(({ kind }) => kind !== 'path'))),
        outcomes$,
        read: view.read,
        readPods: () => runtime.observePods(),
        pollAfterMs: (before, now) => pollAfterMs(inputs, before, now, view),
        podsIntervalMs: settings.pollIntervalMs,
      },
      settings.policy,
      scheduler,
    ),
  );
  const oomNotices$ = connectable(oomNoticesOf(inputs, turns$, view, runtime));
  const paths$ = notices$.pipe(mergeMap((notice) => (notice.kind === 'path' ? [notice.path] : [])));
  const events$ = merge(
    turns$.pipe(mergeMap((turn) => turnEvents(turn, view, runtime))),
    notices$.pipe(
      map(
        (notice): ModelEvent =>
          notice.kind === 'path' ? notice : { kind: 'wakeup', events: notice.events },
      ),
    ),
    oomNotices$.pipe(mergeMap(oomEvents)),
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
    killing: runtime.capabilities.killing,
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
          readAvailable: view.readAvailable,
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
      running.add(reportPods(logger, turns$, runtime));
      running.add(oomNotices$.subscribe((notice) => reportOomKill(logger, notice)));
      running.add(oomNotices$.connect());
      running.add(turns$.connect());
      // After the turn that the same event brings, should the threshold be crossed already.
      running.add(approaches(notices$, turns$).subscribe(() => rehearsal.runIfCold()));
      return running;
    },
  };
}

/** The memory counters that are watched and the last reading of each. */
interface NodeView {
  readonly readers: readonly MemoryReader[];
  read(): readonly SignalObservation[];
  /** What is available of one signal, read afresh; that leaves the last readings as they are. */
  readAvailable(signal: Signal): number | undefined;
  /** The last readings, without those that failed. */
  readings(): readonly MemoryReading[];
  reading(signal: Signal): MemoryReading | undefined;
  /** Why a signal was not read as it should be; undefined when it was. */
  trouble(signal: Signal): string | undefined;
  close(): void;
}

function nodeView({ settings, node, podsParent, scheduler }: DaemonInputs): NodeView {
  const { compatibility, memorySource } = settings;
  const common = { compatibility, memorySource, nowMs: () => scheduler.now() };
  const { directory, isRoot } = node;
  const readers = [
    memoryReader({ ...common, signal: 'memory.available', directory, isRoot }),
    ...(podsParent === undefined
      ? []
      : [
          memoryReader({
            ...common,
            signal: 'allocatableMemory.available',
            directory: podsParent,
            isRoot: false,
          }),
        ]),
  ];
  let last: ReadonlyMap<Signal, MemoryReading | ReadingFailure> = new Map();
  const readings = (): readonly MemoryReading[] =>
    [...last.values()].flatMap((one) => (isFailure(one) ? [] : [one]));
  return {
    readers,
    read: () => {
      last = new Map(readers.map((reader) => [reader.signal, reader.read()]));
      return readings().map((reading) => memoryAvailable(reading, memorySource));
    },
    readAvailable: (signal) => {
      const reading = readers.find((reader) => reader.signal === signal)?.read();
      return reading === undefined || isFailure(reading)
        ? undefined
        : memoryAvailable(reading, memorySource).available;
    },
    readings,
    reading: (signal) => readings().find((reading) => reading.signal === signal),
    trouble: (signal) => troubleOf(last.get(signal)),
    close: () => {
      for (const reader of readers) reader.close();
    },
  };
}

function troubleOf(last: MemoryReading | ReadingFailure | undefined): string | undefined {
  if (last === undefined) return undefined;
  if (isFailure(last)) return last.error;
  return last.refused === undefined
    ? undefined
    : `${last.refused}, which cannot be; ${last.figures} takes its place`;
}

function runtimeOf(inputs: DaemonInputs): Runtime {
  const { settings, node, native, scheduler } = inputs;
  return cgroupRuntime({
    directory: node.directory,
    isRoot: node.isRoot,
    parents: settings.podParents,
    hierarchy: node.hierarchy,
    fields: settings.pods,
    native,
    allowPidKill: settings.allowPidKill,
    scheduler,
    pid: process.pid,
    helpers: descendants,
  });
}

/** What hears of the kernel's events, where that was asked for and can be had. */
function notifier({ settings, native }: DaemonInputs): NativeAddon | undefined {
  return settings.kernelMemcgNotification ? native : undefined;
}

function thresholdsOf({ settings }: DaemonInputs, signal: Signal): readonly Threshold[] {
  return settings.policy.thresholds.filter((threshold) => threshold.signal === signal);
}

/** Every kernel path there is, where it was asked for and can be had. */
function kernelNotices(
  inputs: DaemonInputs,
  readers: readonly MemoryReader[],
  readings$: Observable<MemoryReading>,
): Observable<MemcgNotice> {
  const native = notifier(inputs);
  if (native === undefined) return EMPTY;
  return merge(
    ...readers.map(({ signal, directory }) =>
      memcgThresholds({
        native,
        directory,
        thresholds: thresholdsOf(inputs, signal),
        readings$: readings$.pipe(filter((reading) => reading.signal === signal)),
      }),
    ),
  );
}

/** The soonest of the adaptive polls and those that following a working set needs. */
function pollAfterMs(
  inputs: DaemonInputs,
  before: Sample | undefined,
  now: Sample,
  view: NodeView,
): number {
  const { pollIntervalMs } = inputs.settings;
  const isNotified = notifier(inputs) !== undefined;
  return Math.min(
    ...view.readers.map(({ signal }) => {
      const thresholds = thresholdsOf(inputs, signal);
      const of = (sample: Sample | undefined) =>
        sample?.observations.find((observation) => observation.signal === signal);
      const adaptive = nextPollMs(thresholds, of(before), of(now), pollIntervalMs);
      const reading = view.reading(signal);
      if (!isNotified || reading === undefined) return adaptive;
      const { capacityBytes, deductedBytes, usageBytes } = reading;
      const close = thresholds.map((threshold) =>
        closePollMs(
          capacityBytes,
          thresholdLevel(threshold, capacityBytes, false),
          deductedBytes,
          usageBytes,
        ),
      );
      return earliest([adaptive, ...close.filter((ms) => ms !== undefined)]) ?? adaptive;
    }),
  );
}

/** What is degraded where pods are missing from the listing. */
const PODS = 'pods';

function turnEvents(turn: Turn, view: NodeView, runtime: Runtime): readonly ModelEvent[] {
  const seen: ModelEvent = { kind: 'turn', turn, readings: view.readings() };
  const { outcome } = turn.sample;
  return [
    // From the turn that takes it in: one that comes at once is older than its own decision's turn.
    ...(outcome === undefined ? [] : [{ kind: 'outcome', outcome } as const]),
    seen,
    ...view.readers.map(
      ({ signal }): ModelEvent => ({
        kind: 'degraded',
        part: signal,
        reason: view.trouble(signal),
      }),
    ),
    { kind: 'degraded', part: PODS, reason: runtime.podsTrouble() },
  ];
}

/** What the kernel's OOM killer does: looked for at each turn, and when the node runs out of memory. */
function oomNoticesOf(
  inputs: DaemonInputs,
  turns$: Observable<Turn>,
  view: NodeView,
  runtime: Runtime,
): Observable<OomNotice> {
  const { node, scheduler } = inputs;
  const native = notifier(inputs);
  const cgroupId$ = turns$.pipe(
    map(() => view.reading('memory.available')?.cgroupId),
    filter((cgroupId) => cgroupId !== undefined),
  );
  return oomKills({
    checks$: turns$,
    wakeups$: native === undefined ? EMPTY : oomWakeups(native, node.directory, cgroupId$),
    counts: () => runtime.oomKills(),
    scheduler,
  });
}

function oomEvents(notice: OomNotice): readonly ModelEvent[] {
  switch (notice.kind) {
    case 'lostRace':
      return [notice];
    case 'elsewhere':
      return [];
    case 'degraded':
      return [{ kind: 'degraded', part: OOM_KILLS, reason: notice.reason }];
  }
}

function readyOf(
  inputs: DaemonInputs,
  turns$: Observable<Turn>,
  paths$: Observable<NotificationPath>,
): Observable<Turn> {
  const count = inputs.settings.policy.thresholds.length;
  if (notifier(inputs) === undefined || count === 0) return turns$.pipe(take(1));
  return paths$.pipe(
    scan((armed, path) => armed.add(path.threshold), new Set<string>()),
    filter((armed) => armed.size === count),
    take(1),
    switchMap(() => turns$.pipe(take(1))),
  );
}

/** Says when a signal cannot be read as it should be, when it can again, and when it is of another cgroup. */
function reportReadings(logger: Logger, turns$: Observable<Turn>, view: NodeView): Subscription {
  const reports = view.readers.map(({ signal }) =>
    turns$
      .pipe(
        map(() => ({
          trouble: view.trouble(signal),
          cgroupId: view.reading(signal)?.cgroupId,
        })),
        distinctUntilChanged(
          // What is said of figures that cannot be true holds numbers, which change.
          (before, now) =>
            (before.trouble === undefined) === (now.trouble === undefined) &&
            before.cgroupId === now.cgroupId,
        ),
        // The first reading is no change, unless it fails.
        map((change, index) => ({ ...change, isFirst: index === 0 })),
      )
      .subscribe(({ trouble, isFirst }) => {
        if (trouble !== undefined) logger.warn({ part: signal, reason: trouble }, 'degraded');
        else if (!isFirst) logger.warn({ part: signal }, 'read again as it should be');
      }),
  );
  return new Subscription(() => {
    for (const report of reports) report.unsubscribe();
  });
}

/** Says when pods are missing from the listing, and when none is any more. */
function reportPods(logger: Logger, turns$: Observable<Turn>, runtime: Runtime): Subscription {
  return turns$
    .pipe(
      map(() => runtime.podsTrouble()),
      startWith(undefined),
      distinctUntilChanged(),
      skip(1),
    )
    .subscribe((reason) => {
      if (reason === undefined) logger.warn({ part: PODS }, 'all pods are listed again');
      else logger.warn({ part: PODS, reason }, 'degraded');
    });
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
): Observable<unknown> {
  return notices$.pipe(
    filter(({ kind }) => kind === 'approach'),
    withLatestFrom(turns$),
    filter(
      ([, { state, podsRead }]) =>
        state.inFlight === undefined &&
        state.due.length === 0 &&
        podsRead.tookMs <= REHEARSED_LISTING_MS,
    ),
  );
}

/** How often the way from a reading to a kill is rehearsed at the start, and for how long, ms. */
const REHEARSALS = 200;
const REHEARSAL_LIMIT_MS = 250;
/** How long after a rehearsal none is needed, ms: usage may waver about the approach. */
const WARM_FOR_MS = 250;
/** Rehearsals at an approach take no more than one part in so many of the time. */
const REHEARSAL_SHARE = 100;
/**
 * Where all pods take longer to list and read, ms, none is held at an approach: the crossing may come
 * meanwhile, and would have to wait.
 */
const REHEARSED_LISTING_MS = 5;

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

  /** When the next one at an approach may be, monotonic ms. */
  #coldAtMs = Number.NEGATIVE_INFINITY;

  constructor(inputs: DaemonInputs, view: NodeView, runtime: Runtime) {
    this.#inputs = inputs;
    this.#view = view;
    this.#runtime = untilKilled(runtime);
  }

  /** Once, unless one was held lately; the longer it took, the longer ago that must be. */
  runIfCold(): void {
    const { scheduler } = this.#inputs;
    const startMs = scheduler.now();
    if (startMs < this.#coldAtMs) return;
    this.run(1);
    const tookMs = scheduler.now() - startMs;
    this.#coldAtMs = startMs + Math.max(WARM_FOR_MS, tookMs * REHEARSAL_SHARE);
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
          pollAfterMs: (before, now) => pollAfterMs(this.#inputs, before, now, view),
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
      readAvailable: view.readAvailable,
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

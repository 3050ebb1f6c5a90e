/**
 * The composition root: the only file that joins sources, core, actions, runtimes and surfaces. It
 * subscribes once, and owns the only Subjects.
 */
import {
  BehaviorSubject,
  concat,
  connectable,
  defer,
  distinctUntilChanged,
  EMPTY,
  filter,
  firstValueFrom,
  from,
  map,
  merge,
  mergeMap,
  Observable,
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
  tap,
  withLatestFrom,
} from 'rxjs';
import type { EvictDecision } from './actions/evict.ts';
import { execute } from './actions/executor.ts';
import { compilePodRules, holdsHost, podPlacesOf } from './config/pod-globs.ts';
import { labelledPod } from './config/pod-labels.ts';
import { type Settings, sharedParent } from './config/settings.ts';
import type { EvictionOutcome, EvictionRecord } from './core/decision.ts';
import { flapping, NOT_FLAPPING } from './core/flapping.ts';
import { closePollMs } from './core/following.ts';
import {
  interrupted,
  type Kept,
  type Moment,
  restored,
  resumedEviction,
  snapshotOf,
} from './core/persistence.ts';
import {
  decisionsOf,
  evictionPipeline,
  type PipelineInputs,
  type ReadSample,
  type Turn,
} from './core/pipeline.ts';
import type { Policy } from './core/policy.ts';
import { nextPollMs } from './core/polling.ts';
import { RULE_SETS } from './core/rules.ts';
import { SIGNALS, type Signal } from './core/signal.ts';
import type { Snapshot } from './core/snapshot.ts';
import { type Threshold, thresholdId, thresholdLevel } from './core/threshold.ts';
import { descendants } from './kernel/ancestry.ts';
import { findHierarchy, pathIn, sameGroupIn } from './kernel/hierarchy.ts';
import { type NodeCgroup, podParentDirectory } from './kernel/node-cgroup.ts';
import type { NativeAddon } from './native/types.ts';
import type { FilesystemNotice, FilesystemState } from './ports/filesystem.ts';
import type { NotificationPath } from './ports/notification.ts';
import type { OomNotice } from './ports/oom-kills.ts';
import type { PodDirectory, RuntimePod } from './ports/pod-directory.ts';
import type { EvictProgress, Killing, Runtime } from './ports/runtime.ts';
import type { StateStore } from './ports/state-store.ts';
import type { RuleFields } from './runtimes/cgroup/observe.ts';
import { cgroupRuntime, type PodSelection } from './runtimes/cgroup/runtime.ts';
import { type DirectoryNotice, directedRuntime } from './runtimes/shared/directed.ts';
import { diskPollMs } from './sources/disk.ts';
import { FILESYSTEM_DEADLINE_MS, filesystems } from './sources/filesystem.ts';
import { type MemcgNotice, memcgThresholds } from './sources/memcg-threshold.ts';
import { type NodeView, nodeView } from './sources/node.ts';
import { oomKills, oomWakeups } from './sources/oom-kills.ts';
import { type KeepingNotice, keepState } from './state/keeper.ts';
import type { Logger } from './surfaces/log.ts';
import {
  filesystemKey,
  limitedLogger,
  reportFlapping,
  reportLayout,
  reportOomKill,
  reportOutcome,
  reportPath,
  reportRestored,
  reportTurn,
} from './surfaces/report.ts';
import {
  EMPTY_MODEL,
  type Model,
  type ModelEvent,
  OOM_KILLS,
  STATE,
  updateModel,
} from './surfaces/status.ts';

export interface DaemonInputs {
  readonly settings: Settings;
  readonly node: NodeCgroup;
  /** What events call the node where the settings do not say it. */
  readonly hostName: string;
  /** Undefined where the addon is missing: polling then, and killing as far as that goes without it. */
  readonly native: NativeAddon | undefined;
  readonly scheduler: SchedulerLike;
  readonly logger: Logger;
  /** Undefined where nothing outlives a restart. */
  readonly keeping: Keeping | undefined;
  /** What runs the pods; undefined where cgroups alone are pods. */
  readonly directory?: PodDirectory | undefined;
}

/** What outlives a restart, and by which clocks. */
export interface Keeping {
  readonly store: StateStore;
  /** What a former run left. */
  readonly found: Snapshot | undefined;
  /** When it was written that this is the one who keeps it; undefined where that failed. */
  readonly claimedAtMs: number | undefined;
  /** Why that failed. */
  readonly trouble: string | undefined;
  /** Now; CLOCK_BOOTTIME is known within bounds, of which one or the other is on the safe side. */
  readonly moment: (bound: 'earliest' | 'latest') => Moment;
}

/** A daemon that is wired, and runs once it is started. */
export interface Daemon {
  /** What it believes: the last value at once, then every change. Hot once started. */
  readonly model$: Observable<Model>;
  /** Emits once, when every threshold is armed and read, and completes. */
  readonly ready$: Observable<Turn>;
  /**
   * Every turn from here on, after the daemon itself has acted on it. While anybody listens, all pods
   * are read at least each `intervalMs` (less often where that takes long), and now.
   */
  turns(intervalMs: number): Observable<Turn>;
  /** How it ends pods on this machine. */
  readonly killing: Killing;
  /** Goes the way to a kill some two hundred times, signalling nobody. Before `start`. */
  rehearse(): void;
  /** Says that a part does not work as it should, and why. */
  degrade(part: string, reason: string): void;
  /** What it runs by now. */
  settings(): Settings;
  /**
   * Runs by other settings from here on; what was observed, and an eviction that runs, go on. What
   * only a start can change stays as it was.
   *
   * @throws EvictdError where this host has no place for them; nothing is changed then
   */
  reload(settings: Settings): void;
  /** Starts watching and evicting; both end with the subscription, and all descriptors are closed. */
  start(): Subscription;
  /** Writes down how things stand, once nothing changes any more; never rejects. */
  keep(): Promise<void>;
}

/** How many parts may say that they are degraded before the daemon starts. */
const REMEMBERED_DEGRADATIONS = 100;

/** What may change while the daemon runs. */
interface Current {
  readonly settings: Settings;
  readonly view: NodeView;
}

/** What the parts are joined by. */
interface Wiring extends Omit<DaemonInputs, 'settings'> {
  readonly runtime: SelectableRuntime;
  readonly current: () => Current;
  /** Now, and each time that the settings have changed. */
  readonly settled$: Observable<unknown>;
}

/** Joins the parts. Nothing is armed or signalled before `start`. */
export function createDaemon(inputs: DaemonInputs): Daemon {
  const { scheduler, logger } = inputs;
  let current: Current = currentOf(inputs, inputs.settings, []);
  const runtime = runtimeOf(inputs, (notice) => noteDirectory(notice));
  const settled$ = new BehaviorSubject<void>(undefined);
  // After all that depends on the settings has been made anew, or when somebody begins to listen: then
  // the node is read.
  const readNow$ = new Subject<void>();
  const listeners = new Set<{ readonly intervalMs: number }>();
  const wiring: Wiring = { ...inputs, runtime, current: () => current, settled$ };
  const rehearsal = new Rehearsal(wiring);
  const outcomes$ = new Subject<EvictionOutcome>();
  // What is degraded at the start is said before anybody listens.
  const degraded$ = new ReplaySubject<ModelEvent>(REMEMBERED_DEGRADATIONS);
  if (inputs.keeping?.claimedAtMs !== undefined) {
    degraded$.next({ kind: 'kept', atMs: inputs.keeping.claimedAtMs });
  }
  function noteDirectory(notice: DirectoryNotice): void {
    switch (notice.kind) {
      case 'away':
        logger.warn({ part: RUNTIME, reason: notice.reason }, 'degraded');
        degraded$.next({ kind: 'degraded', part: RUNTIME, reason: notice.reason });
        return;
      case 'back':
        logger.info({ pods: notice.pods }, 'the runtime answers');
        degraded$.next({ kind: 'degraded', part: RUNTIME, reason: undefined });
        readNow$.next();
        return;
      case 'unsettled': {
        const { podName: pod, reason } = notice;
        logger.warn({ pod, reason }, 'the runtime took no note of the end of a pod');
      }
    }
  }
  const former = formerRun(inputs, (event) => degraded$.next(event));

  const notices$: Observable<MemcgNotice> = defer(() => kernelNotices(wiring, turns$)).pipe(
    share(),
  );
  const measured$ = filesystemNotices(wiring).pipe(
    tap((notice) => current.view.note(notice)),
    share(),
  );
  const turns$ = connectable(
    evictionPipeline(
      {
        wakeups$: merge(
          of('start'),
          readNow$,
          notices$.pipe(filter(({ kind }) => kind !== 'path')),
          measured$,
        ),
        outcomes$,
        read: () => current.view.read(),
        readPods: (signal) => runtime.observePods({ pids: countsPids(wiring, signal) }),
        pollAfterMs: (before, now) => pollAfterMs(wiring, before, now),
        get podsIntervalMs() {
          const asked = [...listeners].map(({ intervalMs }) => intervalMs);
          return Math.min(current.settings.pollIntervalMs, ...asked);
        },
        ...(former.initialState === undefined ? {} : { initialState: former.initialState }),
      },
      () => current.settings.policy,
      scheduler,
    ),
  );
  const oomNotices$ = connectable(oomNoticesOf(wiring, turns$));
  const paths$ = notices$.pipe(mergeMap((notice) => (notice.kind === 'path' ? [notice.path] : [])));
  const events$ = merge(
    settled$.pipe(
      map(
        (): ModelEvent => ({
          kind: 'reloaded',
          thresholds: current.settings.policy.thresholds.map(thresholdId),
        }),
      ),
    ),
    // From the turn that takes it in: one that comes at once is older than its own decision's turn.
    turns$.pipe(
      map(({ sample }) => sample.outcome),
      filter((outcome) => outcome !== undefined),
      map((outcome): ModelEvent => ({ kind: 'outcome', outcome })),
    ),
    turns$.pipe(map((turn) => turnEvent(turn, wiring))),
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
    ready$: readyOf(wiring, turns$, paths$),
    turns: (intervalMs) =>
      new Observable((subscriber) => {
        const listener = { intervalMs };
        listeners.add(listener);
        const listening = turns$.subscribe(subscriber);
        readNow$.next();
        return () => {
          listeners.delete(listener);
          listening.unsubscribe();
        };
      }),
    killing: runtime.capabilities.killing,
    rehearse: () => rehearsal.run(REHEARSALS),
    degrade: (part, reason) => {
      logger.warn({ part, reason }, 'degraded');
      degraded$.next({ kind: 'degraded', part, reason });
    },
    settings: () => current.settings,
    reload: (settings) => {
      const { view } = current;
      const merged = { ...settings, ...onlyAtStart(current.settings) };
      const next = currentOf(inputs, merged, view.filesystems());
      view.close();
      current = next;
      runtime.select(next.settings);
      settled$.next();
      readNow$.next();
    },
    start: () => {
      const running = new Subscription(() => {
        current.view.close();
        runtime.close();
      });
      const wavering = limitedLogger(logger, () => scheduler.now());
      // First, so that nothing stands between a decision and its first signal.
      running.add(
        execute(merge(former.resumed$(turns$), decisionsOf(turns$)), {
          runtime,
          scheduler,
          get dryRun() {
            return current.settings.dryRun;
          },
          // Of what no threshold is about any more nothing is short.
          readAvailable: (signal) =>
            thresholdsOf(wiring, signal).length === 0
              ? Number.MAX_SAFE_INTEGER
              : current.view.readAvailable(signal),
          // What was decided under other settings may be forbidden by now.
          askAgain: (decision) => {
            const asked = current.settings;
            return () => (current.settings === asked ? undefined : forbidden(wiring, decision));
          },
        }).subscribe((outcome) => outcomes$.next(outcome)),
      );
      running.add(former.interrupted$(turns$).subscribe((outcome) => outcomes$.next(outcome)));
      running.add(model$.subscribe());
      const kept$ = keptNotices(wiring, inputs, model$).pipe(share());
      running.add(kept$.pipe(mergeMap(keptEvents)).subscribe((event) => degraded$.next(event)));
      running.add(reportKeeping(inputs, kept$));
      running.add(
        turns$.pipe(startWith(undefined), pairwise()).subscribe(([before, turn]) => {
          if (turn === undefined) return;
          const { dryRun, nodeName = inputs.hostName } = current.settings;
          if (turn.sample.outcome !== undefined) reportOutcome(logger, turn.sample.outcome);
          reportTurn(logger, before, turn, { dryRun, nodeName, wavering });
        }),
      );
      running.add(reportFlaps(logger, turns$));
      running.add(reportPaths(logger, paths$));
      running.add(reportReadings(wiring, turns$));
      running.add(reportFilesystems(wiring, measured$));
      running.add(reportPods(logger, turns$, runtime));
      running.add(oomNotices$.subscribe((notice) => reportOomKill(logger, notice)));
      running.add(oomNotices$.connect());
      running.add(turns$.connect());
      // After the turn that the same event brings, should the threshold be crossed already.
      running.add(approaches(notices$, turns$).subscribe(() => rehearsal.runIfCold()));
      return running;
    },
    keep: async () => {
      const { keeping } = inputs;
      const [kept] = keptOf(await firstValueFrom(model$));
      if (keeping === undefined || kept === undefined) return;
      const { store, moment } = keeping;
      await store.write(snapshotOf(kept, moment('latest'), 0)).catch((error: Error) => {
        logger.warn({ file: store.path, reason: error.message }, 'state not kept');
      });
    },
  };
}

/** What a former run left, taken up in the first turn. */
interface FormerRun {
  readonly initialState: PipelineInputs['initialState'];
  /** The eviction that it was at, where that is still called for. */
  readonly resumed$: (turns$: Observable<Turn>) => Observable<EvictDecision>;
  /** The end of one that is not. */
  readonly interrupted$: (turns$: Observable<Turn>) => Observable<EvictionOutcome>;
}

function formerRun({ keeping, logger }: DaemonInputs, say: (event: ModelEvent) => void): FormerRun {
  const found = keeping?.found;
  if (keeping === undefined || found === undefined) {
    return { initialState: undefined, resumed$: () => EMPTY, interrupted$: () => EMPTY };
  }
  let open: EvictionRecord | undefined;
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
      const { state, evictions } = restored(found, policy, moment, (id) => listed.has(id));
      if (state.inFlight !== undefined) {
        open = evictions.findLast(({ outcome }) => outcome === undefined);
      }
      say({ kind: 'restored', evictions });
      reportRestored(logger, { file: keeping.store.path, found, state, moment });
      return state;
    },
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
function keptOf({ turn, evictions }: Model): readonly Kept[] {
  return turn === undefined ? [] : [{ state: turn.state, evictions }];
}

/** Keeps what is to outlive a restart, where that was asked for. */
function keptNotices(
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

function keptEvents(notice: KeepingNotice): readonly ModelEvent[] {
  if (notice.kind === 'failed') return [{ kind: 'degraded', part: STATE, reason: notice.reason }];
  return [
    { kind: 'degraded', part: STATE, reason: undefined },
    { kind: 'kept', atMs: notice.atMs },
  ];
}

/** Says when the state cannot be kept, and when it can again. */
function reportKeeping(
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

/** The settings as they stand, and what is read by them. */
function currentOf(
  { node, scheduler }: DaemonInputs,
  settings: Settings,
  before: readonly FilesystemState[],
): Current {
  return { settings, view: nodeViewOf(settings, node, scheduler, before) };
}

/**
 * What is read of a node by the settings; nothing is opened yet.
 *
 * @throws EvictdError EVICTD_POD_PARENT for what is no place of pods on this host
 */
export function nodeViewOf(
  settings: Settings,
  node: NodeCgroup,
  scheduler: SchedulerLike,
  before: readonly FilesystemState[] = [],
): NodeView {
  const { compatibility, memorySource, policy, podParents } = settings;
  const parents = podParents.map((parent) => podParentDirectory(node, parent));
  const pids = findHierarchy('pids');
  const inputs = {
    directory: node.directory,
    isRoot: node.isRoot,
    podsParent: sharedParent(podParents) === undefined ? undefined : parents[0],
    compatibility,
    memorySource,
    pidsDirectory:
      pids === undefined || node.isRoot
        ? undefined
        : sameGroupIn(pids, node.hierarchy, node.directory),
    pidsMountPoint: pids?.mountPoint,
    readsPids: policy.thresholds.some(({ signal }) => signal === 'pid.available'),
    filesystems: settings.filesystems,
    before,
  };
  return nodeView(inputs, () => scheduler.now());
}

/** What a reload leaves as it is: all that was opened or raised once. */
export const ONLY_AT_START = [
  'nodeCgroup',
  'socket',
  'stateDir',
  'scheduling',
  'allowPidKill',
] as const satisfies readonly (keyof Settings)[];
type OnlyAtStart = Pick<Settings, (typeof ONLY_AT_START)[number]>;

function onlyAtStart(settings: Settings): OnlyAtStart {
  return Object.fromEntries(ONLY_AT_START.map((key) => [key, settings[key]])) as OnlyAtStart;
}

function selectionOf({
  podParents,
  podsBy,
  pods,
  podRules,
  compatibility,
}: Settings): PodSelection {
  return {
    parents: podParents,
    fields: pods,
    countProcesses: compatibility === 'kubelet',
    ...(podsBy === 'path'
      ? {}
      : {
          rules: {
            ...podPlacesOf(podRules),
            match: compilePodRules(podRules),
            holdsHost,
          },
        }),
  };
}

/** A runtime that is told by the settings which cgroups are pods. */
interface SelectableRuntime extends Runtime {
  select(settings: Settings): void;
}

function runtimeOf(
  inputs: DaemonInputs,
  note: (notice: DirectoryNotice) => void,
): SelectableRuntime {
  const { settings, node, native, scheduler, directory } = inputs;
  const cgroups = cgroupRuntime({
    directory: node.directory,
    isRoot: node.isRoot,
    hierarchy: node.hierarchy,
    ...selectionOf(settings),
    native,
    allowPidKill: settings.allowPidKill,
    scheduler,
    pid: process.pid,
    helpers: descendants,
  });
  const bySettings = (one: Settings): void => cgroups.select(selectionOf(one));
  if (directory === undefined) return { ...cgroups, select: bySettings };
  let current = settings;
  let pods: readonly RuntimePod[] = [];
  const pathOf = ({ cgroup }: RuntimePod): string | undefined => pathInNode(node, cgroup);
  const select = (): void => {
    cgroups.select(directedSelection(pods, pathOf, current));
  };
  const directed = directedRuntime({
    cgroups,
    directory,
    select: (listed) => {
      pods = listed;
      select();
    },
    pathOf,
    scheduler,
    note,
  });
  return {
    ...directed,
    select: (one) => {
      current = one;
      select();
    },
  };
}

/** The cgroups that a runtime names, and those that the settings do. */
function directedSelection(
  pods: readonly RuntimePod[],
  pathOf: (pod: RuntimePod) => string | undefined,
  settings: Settings,
): PodSelection {
  const own = selectionOf(settings);
  const named = new Map(
    pods.flatMap((pod) => {
      const path = pathOf(pod);
      return path === undefined ? [] : [[path, fieldsOf(pod)] as const];
    }),
  );
  return {
    ...own,
    rules: {
      parents: own.rules?.parents ?? [],
      kubepods: own.rules?.kubepods ?? false,
      globs: own.rules?.globs ?? [],
      holdsHost,
      named: [...named.keys(), ...(own.rules?.named ?? [])],
      match: (path) => named.get(path) ?? own.rules?.match(path),
    },
  };
}

/** What labels say of a pod; of what they do not say its cgroup and its containers tell. */
function fieldsOf({ name, labels, annotations, containers }: RuntimePod): RuleFields {
  const { faults: _, ...fields } = labelledPod(labels, annotations);
  const requests = containers.flatMap(({ memoryRequest }) => memoryRequest?.nano ?? []);
  const memoryRequestNano =
    requests.length === 0 ? undefined : requests.reduce((sum, nano) => sum + nano, 0n);
  return { name, ...fields, memoryRequestNano: fields.memoryRequestNano ?? memoryRequestNano };
}

/** The path of a cgroup relative to the node's; undefined for one that is not in it. */
function pathInNode({ directory, hierarchy }: NodeCgroup, cgroup: string): string | undefined {
  const node = pathIn(hierarchy, directory);
  const below = node === '/' ? '' : node.slice(1);
  if (below === '') return cgroup;
  return cgroup.startsWith(`${below}/`) ? cgroup.slice(below.length + 1) : undefined;
}

/** Tasks are counted where they decide, and for the status where a threshold is about them. */
function countsPids({ current }: Wiring, signal: Signal | undefined): boolean {
  if (signal !== undefined) return signal === 'pid.available';
  return current().settings.policy.thresholds.some((one) => one.signal === 'pid.available');
}

/** What hears of the kernel's events, where that was asked for and can be had. */
function notifier({ current, native }: Wiring): NativeAddon | undefined {
  return current().settings.kernelMemcgNotification ? native : undefined;
}

function thresholdsOf({ current }: Wiring, signal: Signal): readonly Threshold[] {
  return current().settings.policy.thresholds.filter((threshold) => threshold.signal === signal);
}

/** Every kernel path there is, where it was asked for and can be had. */
function kernelNotices(wiring: Wiring, turns$: Observable<unknown>): Observable<MemcgNotice> {
  return wiring.settled$.pipe(
    map(() => notificationKey(wiring)),
    // What is armed stays so where a reload changes nothing about it.
    distinctUntilChanged(),
    switchMap(() => {
      const native = notifier(wiring);
      if (native === undefined) return EMPTY;
      return merge(
        ...wiring.current().view.memory.map(({ signal, directory }) =>
          memcgThresholds({
            native,
            directory,
            thresholds: thresholdsOf(wiring, signal),
            readings$: turns$.pipe(
              map(() => wiring.current().view.reading(signal)),
              filter((reading) => reading !== undefined),
            ),
          }),
        ),
      );
    }),
  );
}

/** By what it is told whether the kernel is to be asked for something else. */
function notificationKey(wiring: Wiring): string {
  const { settings, view } = wiring.current();
  return JSON.stringify([
    notifier(wiring) !== undefined,
    settings.compatibility,
    settings.memorySource,
    view.memory.map(({ signal, directory }) => [signal, directory]),
    settings.policy.thresholds.map(({ signal, kind, value, gracePeriodMs }) => [
      signal,
      kind,
      value.text,
      gracePeriodMs,
    ]),
  ]);
}

/** What is measured of the filesystems that a threshold is about. */
function filesystemNotices({ current, settled$, scheduler }: Wiring): Observable<FilesystemNotice> {
  return filesystems({
    paths: settled$.pipe(map(() => watchedPaths(current().settings))),
    scheduler,
    deadlineMs: FILESYSTEM_DEADLINE_MS,
    pollAfterMs: (path, before, now) => {
      const { filesystems: all, policy, polling, pollIntervalMs } = current().settings;
      const { thresholds } = policy;
      return diskPollMs({ paths: all, thresholds, polling, pollIntervalMs }, path, before, now);
    },
  });
}

/** The paths of the filesystems that a threshold is about, each once. */
export function watchedPaths({ filesystems: paths, policy }: Settings): readonly string[] {
  const named = policy.thresholds.flatMap(({ signal }) => {
    const { filesystem } = SIGNALS[signal];
    return filesystem === undefined ? [] : (paths[filesystem] ?? []);
  });
  return [...new Set(named)];
}

/** The soonest of the adaptive polls and those that following a working set needs. */
function pollAfterMs(wiring: Wiring, before: ReadSample | undefined, now: ReadSample): number {
  const { settings, view } = wiring.current();
  const { pollIntervalMs, polling } = settings;
  const isNotified = notifier(wiring) !== undefined;
  const of = (sample: ReadSample | undefined, signal: Signal) =>
    sample?.observations.find((observation) => observation.signal === signal);
  const adaptive = (signal: Signal): number =>
    nextPollMs(
      thresholdsOf(wiring, signal),
      of(before, signal),
      of(now, signal),
      pollIntervalMs,
      polling[SIGNALS[signal].poll],
    );
  const close = isNotified
    ? view
        .readings()
        .flatMap(({ signal, capacityBytes, deductedBytes, usageBytes }) =>
          thresholdsOf(wiring, signal).map((threshold) =>
            closePollMs(
              capacityBytes,
              thresholdLevel(threshold, capacityBytes, false),
              deductedBytes,
              usageBytes,
            ),
          ),
        )
    : [];
  return Math.min(
    adaptive('pid.available'),
    ...view.memory.map(({ signal }) => adaptive(signal)),
    ...close.filter((ms) => ms !== undefined),
  );
}

/** Why a pod that has had TERM gets no KILL by the settings as they are now; undefined when it does. */
function forbidden(
  { current, runtime }: Wiring,
  { pod, cause }: EvictDecision,
): string | undefined {
  const { settings } = current();
  if (settings.dryRun) return 'dry run';
  const id = cause && thresholdId(cause.threshold);
  if (id !== undefined && !settings.policy.thresholds.some((one) => thresholdId(one) === id)) {
    return 'its threshold is gone';
  }
  const now = runtime.observePods().find((one) => one.id === pod.id);
  return now === undefined ? 'nothing makes it a pod any more' : now.protectedBecause;
}

/** What is degraded where the runtime does not answer. */
const RUNTIME = 'runtime';

/** What is degraded where pods are missing from the listing. */
const PODS = 'pods';

/** One event for all that a turn says: the model is made anew once. */
function turnEvent(turn: Turn, { current, runtime }: Wiring): ModelEvent {
  const { settings, view } = current();
  return {
    kind: 'turn',
    turn,
    readings: view.readings(),
    filesystems: view.filesystems(),
    troubles: new Map([...view.troubles(), [PODS, runtime.podsTrouble()]]),
    dryRun: settings.dryRun,
  };
}

/** What the kernel's OOM killer does: looked for at each turn, and when the node runs out of memory. */
function oomNoticesOf(wiring: Wiring, turns$: Observable<Turn>): Observable<OomNotice> {
  const { node, scheduler, runtime, current, settled$ } = wiring;
  const cgroupId$ = turns$.pipe(
    map(() => current().view.reading('memory.available')?.cgroupId),
    filter((cgroupId) => cgroupId !== undefined),
  );
  const native$ = settled$.pipe(
    map(() => notifier(wiring)),
    distinctUntilChanged(),
  );
  return oomKills({
    checks$: turns$,
    wakeups$: native$.pipe(
      switchMap((native) =>
        native === undefined ? EMPTY : oomWakeups(native, node.directory, cgroupId$),
      ),
    ),
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
  wiring: Wiring,
  turns$: Observable<Turn>,
  paths$: Observable<NotificationPath>,
): Observable<Turn> {
  const { view } = wiring.current();
  const count = view.memory.flatMap(({ signal }) => thresholdsOf(wiring, signal)).length;
  if (notifier(wiring) === undefined || count === 0) return turns$.pipe(take(1));
  return paths$.pipe(
    scan((armed, path) => armed.add(path.threshold), new Set<string>()),
    filter((armed) => armed.size === count),
    take(1),
    switchMap(() => turns$.pipe(take(1))),
  );
}

/** Says when a part cannot be read as it should be, when it can again, and when it is of another cgroup. */
function reportReadings({ logger, current }: Wiring, turns$: Observable<Turn>): Subscription {
  return turns$
    .pipe(
      map(() => {
        const { view } = current();
        const ids = view.readings().map(({ signal, cgroupId }) => [signal, cgroupId] as const);
        return { troubles: view.troubles(), cgroupIds: new Map<string, string>(ids) };
      }),
      startWith(undefined),
      pairwise(),
    )
    .subscribe(([before, now]) => {
      for (const [part, trouble] of now?.troubles ?? []) {
        const was = before?.troubles.get(part);
        const [wasId, isId] = [before?.cgroupIds.get(part), now?.cgroupIds.get(part)];
        const isNewGroup = wasId !== undefined && isId !== undefined && wasId !== isId;
        // What is said of figures that cannot be true holds numbers, which change.
        if (trouble !== undefined && was === undefined) {
          logger.warn({ part, reason: trouble }, 'degraded');
        } else if (trouble === undefined && (was !== undefined || isNewGroup)) {
          logger.warn({ part }, 'read again as it should be');
        }
      }
    });
}

/** Says which filesystem is which, at first and when that changes, and which has no inode signal. */
function reportFilesystems(
  { logger, current }: Wiring,
  measured$: Observable<FilesystemNotice>,
): Subscription {
  return measured$
    .pipe(
      map(() => current().view.filesystems()),
      distinctUntilChanged((before, now) => filesystemKey(before) === filesystemKey(now)),
      filter((states) => states.some(({ reading }) => reading !== undefined)),
    )
    .subscribe((states) => reportLayout(logger, states));
}

/** Says when a node condition comes and goes, and when it no longer does. */
function reportFlaps(logger: Logger, turns$: Observable<Turn>): Subscription {
  return turns$
    .pipe(
      scan(
        ({ flaps }, { conditions, sample: { nowMs }, policy }) => ({
          flaps: flapping(flaps, conditions, nowMs, policy.pressureTransitionPeriodMs),
          nowMs,
        }),
        { flaps: NOT_FLAPPING, nowMs: 0 },
      ),
    )
    .subscribe(({ flaps, nowMs }) => reportFlapping(logger, flaps.notices, nowMs, Date.now()));
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
  reclaims: false,
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

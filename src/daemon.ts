/**
 * The composition root: the only file that joins sources, core, actions, runtimes and surfaces. It
 * subscribes once, and owns the only Subjects.
 */

import {
  BehaviorSubject,
  connectable,
  defer,
  filter,
  firstValueFrom,
  map,
  merge,
  mergeMap,
  Observable,
  of,
  pairwise,
  ReplaySubject,
  Subject,
  Subscription,
  scan,
  share,
  shareReplay,
  startWith,
  take,
  tap,
} from 'rxjs';
import { execute } from './actions/executor.ts';
import type { Settings } from './config/settings.ts';
import type { EvictionOutcome } from './core/decision.ts';
import { snapshotOf } from './core/persistence.ts';
import { decisionsOf, evictionPipeline, type WakeReason } from './core/pipeline.ts';
import { thresholdId } from './core/threshold.ts';
import {
  cgroupIn,
  diskNotices,
  LEFT_OVER,
  replacedEvent,
  type Trouble,
  troubleOf,
} from './daemon/disk-streams.ts';
import { createDisks } from './daemon/disks.ts';
import { formerRun, keptEvents, keptNotices, keptOf, reportKeeping } from './daemon/former-run.ts';
import { pollAfterMs } from './daemon/polls.ts';
import {
  collectedUnderPressure,
  collectionEvents,
  collections,
  type ImageLook,
} from './daemon/reclaim.ts';
import { REHEARSALS, Rehearsal } from './daemon/rehearsal.ts';
import {
  RUNTIME,
  reportFilesystems,
  reportFlaps,
  reportPaths,
  reportPodNotice,
  reportPods,
  reportReadings,
} from './daemon/reports.ts';
import { type RuntimeNotice, runtimeOf } from './daemon/runtime.ts';
import { currentOf, onlyAtStart } from './daemon/settings.ts';
import {
  approaches,
  filesystemNotices,
  forbidden,
  kernelNotices,
  oomEvents,
  oomNoticesOf,
  readyOf,
  turnEvent,
  wakeReasons,
} from './daemon/streams.ts';
import {
  type Current,
  countsPids,
  type Daemon,
  type DaemonInputs,
  thresholdsOf,
  type Wiring,
} from './daemon/wiring.ts';
import type { MemcgNotice } from './sources/memcg-threshold.ts';
import { collectionLog, reportRemains } from './surfaces/collections.ts';
import type { NodeEvent } from './surfaces/events.ts';
import { limitedLogger, reportOomKill, reportOutcome, reportTurn } from './surfaces/report.ts';
import { EMPTY_MODEL, type ModelEvent, updateModel } from './surfaces/status.ts';

/** How many parts may say that they are degraded before the daemon starts. */
const REMEMBERED_DEGRADATIONS = 100;

/** Joins the parts. Nothing is armed or signalled before `start`. */
export function createDaemon(inputs: DaemonInputs): Daemon {
  const { scheduler, logger } = inputs;
  let given = inputs.settings;
  let current: Current = currentOf(inputs, inputs.settings, []);
  // What is degraded at the start is said before anybody listens.
  const degraded$ = new ReplaySubject<ModelEvent>(REMEMBERED_DEGRADATIONS);
  // After all that depends on the settings has been made anew, or when somebody begins to listen: then
  // the node is read.
  const readNow$ = new Subject<void>();
  const said = new Map<string, string>();
  /** Whether the runtime is; undefined until it has answered, or has not. */
  let isAway: boolean | undefined = inputs.directory === undefined ? false : undefined;
  const answered$ = new ReplaySubject<void>(1);
  if (inputs.directory === undefined) answered$.next();
  const disks = createDisks({
    pods: () => runtime.pods(),
    filesystems: () => current.view.filesystems(),
    cgroupOf: (pid) => cgroupIn(inputs.node, pid),
  });
  // It may tell of itself at once: what that is noted in is there.
  const runtime = runtimeOf(inputs, (notice) => noteRuntime(notice), {
    diskOf: ({ id }) => disks.podDisk(id),
    notePods: () => disks.notePods(),
    isNothing: (podId, signal) => disks.isNothing(podId, signal),
    mayRemove: () => current.settings.policy.reclaims.includes('containers'),
  });
  const settled$ = new BehaviorSubject<void>(undefined);
  const listeners = new Set<{ readonly intervalMs: number }>();
  const podsTrouble = () => (isAway === false ? runtime.podsTrouble() : undefined);
  const wiring: Wiring = { ...inputs, runtime, current: () => current, podsTrouble, settled$ };
  const rehearsal = new Rehearsal(wiring);
  const outcomes$ = new Subject<EvictionOutcome>();
  const reclaimed$ = new Subject<void>();
  if (inputs.keeping?.claimedAtMs !== undefined) {
    degraded$.next({ kind: 'kept', atMs: inputs.keeping.claimedAtMs });
  }
  function settleOn(settings: Settings): void {
    const { view } = current;
    const next = currentOf(inputs, settings, view.filesystems());
    view.close();
    current = next;
    settled$.next();
    readNow$.next();
  }
  /** The policy follows where filesystems lie, and what is known of pods' use of them. */
  function followDisks(): void {
    if (inputs.directory?.disks === undefined) return;
    const settings = disks.settingsOf(given);
    if (settings !== current.settings) settleOn(settings);
  }
  function noteRuntime(notice: RuntimeNotice): void {
    switch (notice.kind) {
      case 'away':
        // How it is away may change with each try.
        logger[isAway === true ? 'debug' : 'warn'](
          { part: RUNTIME, reason: notice.reason },
          'degraded',
        );
        isAway = true;
        degraded$.next({ kind: 'degraded', part: RUNTIME, reason: notice.reason });
        answered$.next();
        return;
      case 'back':
        isAway = false;
        logger.info({ pods: notice.pods }, 'the runtime answers');
        degraded$.next({ kind: 'degraded', part: RUNTIME, reason: undefined });
        answered$.next();
        readNow$.next();
        return;
      case 'unsettled': {
        const { podName: pod, reason } = notice;
        logger.warn({ pod, reason }, 'the runtime took no note of the end of a pod');
        return;
      }
      case 'startedSince': {
        const { podName: pod, reason } = notice;
        logger.info(
          { pod, reason },
          'an evicted pod was started again by somebody: it is left alone',
        );
        return;
      }
      case 'unstopped': {
        const { podName: pod, reason } = notice;
        logger.warn({ pod, reason }, 'the runtime does not stop a pod: TERM is sent in its place');
        return;
      }
      case 'doubt':
      case 'fault':
        reportPodNotice(logger, notice);
        return;
      case 'left': {
        const reason = 'it was evicted for a disk, and nobody removes what it left there';
        say({ part: `${LEFT_OVER} ${notice.podName}`, reason });
        return;
      }
      case 'gone':
        say({ part: `${LEFT_OVER} ${notice.podName}`, reason: undefined });
        return;
      case 'removed':
        reportRemains(logger, notice);
        degraded$.next({ kind: 'removed', what: notice.thing.what });
    }
  }
  function sayEvent(event: Pick<NodeEvent, 'type' | 'reason' | 'message'>): void {
    const { nodeName = inputs.hostName } = current.settings;
    logger.warn({ ...event, object: nodeName }, 'event');
    const nodeEvent: NodeEvent = { ...event, pod: undefined, annotations: {} };
    degraded$.next({ kind: 'event', event: nodeEvent, atMs: scheduler.now() });
  }
  /** What changes is said once. */
  function say({ part, reason }: Trouble): void {
    if (said.get(part) === reason) return;
    if (reason === undefined) {
      said.delete(part);
      logger.info({ part }, 'no longer degraded');
    } else {
      said.set(part, reason);
      logger.warn({ part, reason }, 'degraded');
    }
    degraded$.next({ kind: 'degraded', part, reason });
  }
  const former = formerRun(inputs, (event) => degraded$.next(event));

  const notices$: Observable<MemcgNotice> = defer(() => kernelNotices(wiring, turns$)).pipe(
    share(),
  );
  const measured$ = filesystemNotices(wiring).pipe(
    tap((notice) => {
      current.view.note(notice);
      const replaced = inputs.directory?.disks && disks.noteMeasured(notice);
      if (replaced !== undefined) sayEvent(replacedEvent(replaced));
      // Not here: who measures them would be told to measure others.
      if (inputs.directory?.disks !== undefined) scheduler.schedule(followDisks);
    }),
    share(),
  );
  const turns$ = connectable(
    evictionPipeline(
      {
        wakeups$: merge(
          of('start'),
          readNow$.pipe(map((): WakeReason => 'asked')),
          notices$.pipe(mergeMap(wakeReasons)),
          measured$.pipe(map((): WakeReason => 'measured')),
        ),
        outcomes$,
        reclaimed$,
        read: () => current.view.read(),
        readPods: (signal) => runtime.observePods({ pids: countsPids(wiring, signal) }),
        holdsSpace: () => runtime.holdsSpace(),
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
  const garbage = { ...wiring, noteImages: (look: ImageLook) => disks.noteImages(look) };
  const collections$ = collections(garbage, turns$, former.images).pipe(share());
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
    turns$.pipe(
      map((turn) => turnEvent(turn, wiring, inputs.directory?.disks && disks.facts().unaccounted)),
    ),
    notices$.pipe(
      map(
        (notice): ModelEvent =>
          notice.kind === 'path' ? notice : { kind: 'wakeup', events: notice.events },
      ),
    ),
    oomNotices$.pipe(mergeMap(oomEvents)),
    collections$.pipe(mergeMap((event) => collectionEvents(event, scheduler.now()))),
    degraded$,
  );
  const model$ = events$.pipe(
    scan(updateModel, EMPTY_MODEL),
    startWith(EMPTY_MODEL),
    shareReplay(1),
  );

  return {
    answered$: answered$.pipe(take(1)),
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
    podOf: (podId) => runtime.podOf(podId),
    runtimePlace: () => inputs.directory?.place?.(),
    disks: () => (inputs.directory?.disks === undefined ? undefined : disks.facts()),
    reload: (settings) => {
      const merged = { ...settings, ...onlyAtStart(current.settings) };
      const onDisks = inputs.directory?.disks === undefined ? merged : disks.settingsOf(merged);
      const { view } = current;
      const next = currentOf(inputs, onDisks, view.filesystems());
      view.close();
      given = merged;
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
      const logCollection = collectionLog(logger);
      running.add(
        collections$.subscribe((event) => {
          logCollection(event);
          const collected = collectedUnderPressure(event, scheduler.now());
          if (collected === undefined) return;
          // The turn that follows decides by what was measured after it, or by nothing.
          if (collected.measured !== undefined) current.view.note(collected.measured);
          reclaimed$.next();
        }),
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
      running.add(reportPods(logger, turns$, wiring.podsTrouble));
      running.add(oomNotices$.subscribe((notice) => reportOomKill(logger, notice)));
      running.add(
        diskNotices(wiring, inputs.directory?.disks, measured$).subscribe((notice) => {
          disks.note(notice);
          const trouble = troubleOf(notice);
          // Of one that is away it is said once that it is.
          if (trouble !== undefined && (isAway === false || trouble.reason === undefined))
            say(trouble);
          followDisks();
        }),
      );
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

import { existsSync } from 'node:fs';
import { hostname, setPriority } from 'node:os';
import { isatty } from 'node:tty';
import {
  EMPTY,
  firstValueFrom,
  from,
  fromEvent,
  map,
  mergeMap,
  Observable,
  race,
  take,
  throttle,
  timeout,
  timer,
} from 'rxjs';
import { matchersOf } from '../config/print.ts';
import { type CheckedSettings, namesNoPod, type Settings } from '../config/settings.ts';
import { describeError, type ErrorCode, EvictdError } from '../core/errors.ts';
import { type Kept, snapshotOf } from '../core/persistence.ts';
import { INITIAL_STATE } from '../core/state.ts';
import { ONLY_AT_START } from '../daemon/settings.ts';
import type { Daemon, Keeping } from '../daemon/wiring.ts';
import { createDaemon } from '../daemon.ts';
import { bootClock } from '../kernel/boot.ts';
import { type NodeCgroup, podParentDirectory, resolveNodeCgroup } from '../kernel/node-cgroup.ts';
import { isExiting, statField } from '../kernel/process-stat.ts';
import { loadNative, type NativeAddon } from '../native/index.ts';
import { liveScheduler, monotonicMs } from '../sources/live-scheduler.ts';
import { type FoundState, type StateFile, stateFile, type Writer } from '../state/file.ts';
import { type Log, openLog } from '../surfaces/log.ts';
import { sampleLines } from '../surfaces/samples.ts';
import { openSink } from '../surfaces/sink.ts';
import {
  type Documents,
  type Samples,
  type StatusSocket,
  serveStatus,
} from '../surfaces/socket.ts';
import { STATE, statusDocument } from '../surfaces/status.ts';
import { namespaceOf, podList, summaryDocument } from '../surfaces/summary.ts';
import { unlimitedWarnings } from './check-config.ts';
import { kubeletConflict, ON_KUBELETS } from './kubelet-guard.ts';
import type { Reloaded, TellHangups } from './reload.ts';
import { openDirectory } from './runtime-choice.ts';
import { packageVersion } from './version.ts';

/** How long what runs the pods is waited for at the start, ms: one that hangs must not hold up the node's watch. */
const FIRST_ANSWER_MS = 1000;

/** How long log lines may take to get out at the end, ms. */
const FLUSH_LIMIT_MS = 500;
/** How long the state file may take to be read and to be written at the start, and at the end, ms. */
const STATE_LIMITS_MS = { open: 2000, keep: 500 } as const;
const STANDARD_OUTPUT = 1;

/**
 * `evictd run`: watches the node and evicts until SIGTERM or SIGINT. SIGHUP has the configuration
 * read again; on a terminal, which says so that it is gone, it ends evictd too.
 *
 * @param reloading how the settings are read again, and when
 * @returns the exit status
 * @throws EvictdError when it cannot start
 */
export async function runCommand(
  { settings, warnings }: CheckedSettings,
  reloading: Reloading,
): Promise<number> {
  const node = resolveNodeCgroup(settings.nodeCgroup);
  const parents = settings.podParents.map((parent) => podParentDirectory(node, parent));
  const conflict = settings.besideKubelet ? undefined : await kubeletConflict(settings, node);
  if (conflict !== undefined && !settings.dryRun) {
    throw new EvictdError('EVICTD_KUBELET_EVICTS', `${conflict}; ${ON_KUBELETS}`);
  }
  const isTerminal = isatty(STANDARD_OUTPUT);
  const stopped = firstValueFrom(stopSignals(isTerminal));
  const log = await openLog(
    openSink(STANDARD_OUTPUT, liveScheduler),
    settings.logLevel,
    isTerminal,
  );
  for (const warning of warnings) log.logger.warn(warning);
  if (conflict !== undefined) log.logger.warn({ reason: conflict }, 'a kubelet evicts too');
  if (node.isRoot && parents.length === 0 && namesNoPod(settings)) {
    log.logger.warn(
      'nothing is evictable: on the host a pod is what --pod names or what lies below a --pod-parent',
    );
  }

  for (const parent of parents.filter((directory) => !existsSync(directory))) {
    log.logger.warn({ parent }, 'a pod parent is not there yet');
  }
  const absent = (path: string): boolean => !existsSync(`${node.directory}/${path}`);
  for (const pod of [...settings.pods.keys()].filter(absent)) {
    log.logger.warn({ pod }, 'a named pod is not there yet');
  }

  const { addon, ...failure } = loadNative();
  // As a kubelet names its node.
  const hostName = hostname().trim().toLowerCase();
  const clock = steadyWallClock();
  const { keeping, trouble } = await openState(settings, node, clock, log);
  const inputs = {
    settings,
    node,
    hostName,
    native: addon,
    scheduler: liveScheduler,
    logger: log.logger,
    keeping,
    directory: await openDirectory(settings, node, log.logger),
  };
  const daemon = createDaemon(inputs);
  if (trouble !== undefined) daemon.degrade(STATE, trouble);
  if (addon === undefined) daemon.degrade('native', nativeReason(failure, daemon));
  if (process.getuid?.() !== 0 && !settings.dryRun) {
    daemon.degrade('privilege', 'not root: other users’ processes cannot be ended');
  }
  raisePriority(settings, addon, daemon);
  const stateFile = keeping?.store.path;
  const socket = await openSocket({ node, hostName, daemon, log, clock, stateFile });
  // An eviction of a former run is taken up in the first turn, and rehearsed on pods: they must be known.
  await firstValueFrom(race(daemon.answered$, timer(FIRST_ANSWER_MS, liveScheduler)));
  daemon.rehearse();
  daemon.ready$.subscribe((turn) => {
    const { observations } = turn.sample;
    const memory = observations.find(({ signal }) => signal === 'memory.available');
    if (!node.isRoot && memory !== undefined) {
      const { capacity: capacityBytes } = memory;
      for (const warning of unlimitedWarnings({ capacityBytes })) log.logger.warn(warning);
    }
    log.logger.info(
      {
        node: node.directory,
        nodeName: daemon.settings().nodeName ?? hostName,
        signals: observations.map(({ signal, capacity, available }) => ({
          signal,
          capacity,
          available,
        })),
        thresholds: thresholdTexts(settings),
        kernelMemcgNotification: settings.kernelMemcgNotification && addon !== undefined,
        compatibility: settings.compatibility,
        compatibilityBecause: settings.compatibilityBecause,
        dryRun: settings.dryRun,
      },
      'ready',
    );
  });
  const running = daemon.start();
  running.add(
    hangupsOf(reloading)
      .pipe(
        // What comes while a reload runs is one more reload.
        throttle(() => from(reload(daemon, reloading, log)), { leading: true, trailing: true }),
      )
      .subscribe(),
  );
  const signal = await stopped;
  const { turn } = await firstValueFrom(daemon.model$);
  const abandoned = turn?.state.inFlight?.podName;
  running.unsubscribe();
  socket?.close();
  await firstValueFrom(race(daemon.keep(), timer(STATE_LIMITS_MS.keep, liveScheduler)));
  if (abandoned !== undefined) {
    log.logger.warn({ pod: abandoned }, 'eviction abandoned: what it was sent stays sent');
  }
  log.logger.info({ signal, droppedLogLines: log.dropped() }, 'stopped');
  await log.flush(FLUSH_LIMIT_MS);
  return 0;
}

function stopSignals(isTerminal: boolean) {
  const signals = ['SIGTERM', 'SIGINT', ...(isTerminal ? ['SIGHUP'] : [])];
  return race(signals.map((signal) => fromEvent(process, signal).pipe(map(() => signal))));
}

/** How the settings are read again, and when. */
export interface Reloading {
  /** Undefined where a hangup ends the daemon. */
  readonly tellHangups: TellHangups | undefined;
  /** Never rejects. */
  readonly loadAgain: () => Promise<Reloaded>;
}

function hangupsOf({ tellHangups }: Reloading): Observable<void> {
  if (tellHangups === undefined) return EMPTY;
  return new Observable((subscriber) => tellHangups(() => subscriber.next()));
}

/** Takes in the settings as they stand now; bad ones leave the former in force. */
async function reload(daemon: Daemon, { loadAgain }: Reloading, log: Log): Promise<void> {
  const reloaded = await loadAgain();
  try {
    if ('refusal' in reloaded) throw new EvictdError('EVICTD_CONFIG', reloaded.refusal);
    const { settings, warnings } = reloaded.checked;
    const before = daemon.settings();
    daemon.reload(settings);
    log.logger.level = settings.logLevel;
    for (const warning of warnings) log.logger.warn(warning);
    for (const key of ONLY_AT_START) {
      if (JSON.stringify(settings[key]) === JSON.stringify(before[key])) continue;
      log.logger.warn({ setting: key }, 'changed, but takes a restart: it stays as it was');
    }
    log.logger.info(
      {
        thresholds: thresholdTexts(settings),
        pods: settings.podRules.map(matchersOf),
        compatibility: settings.compatibility,
        compatibilityBecause: settings.compatibilityBecause,
      },
      'configuration reloaded',
    );
  } catch (error) {
    const reason = error instanceof EvictdError ? describeError(error) : String(error);
    log.logger.error({ reason }, 'configuration not reloaded: the former one stays in force');
  }
}

function thresholdTexts({ policy }: Settings): readonly string[] {
  return policy.thresholds.map(({ signal, kind, value }) => `${kind}: ${signal}<${value.text}`);
}

function nativeReason(failure: { readonly reason?: string }, { killing }: Daemon): string {
  const { reason = 'unknown reason' } = failure;
  return `evictd polls; ${killing.detail}; npm rebuild evictd builds it: ${reason}`;
}

/** The lowest real-time priority: ahead of every normal process, behind the kernel's own. */
const REAL_TIME_PRIORITY = 1;
const LOWEST_NICE = -20;

/**
 * A daemon that waits for the processor behind a busy node would come late. What is refused falls
 * back to the next best, and is said.
 */
function raisePriority(settings: Settings, native: NativeAddon | undefined, daemon: Daemon): void {
  if (settings.scheduling === 'normal') return;
  if (settings.scheduling === 'rr') {
    const refusal = refusalOf(() => native?.setRoundRobin(REAL_TIME_PRIORITY));
    if (native !== undefined && refusal === undefined) return;
    const why = refusal ?? 'the native addon is missing';
    daemon.degrade('real-time scheduling', `SCHED_RR was refused, nice takes over: ${why}`);
  }
  const refusal = refusalOf(() => setPriority(process.pid, LOWEST_NICE));
  if (refusal !== undefined) daemon.degrade('scheduling', `nice -20 was refused: ${refusal}`);
}

/** The error code that a call gives; undefined when it succeeds. */
function refusalOf(call: () => void): string | undefined {
  try {
    call();
    return undefined;
  } catch (error) {
    // Node's own calls say ERR_SYSTEM_ERROR; the kernel's code is in `info` then.
    const { code, info } = error as {
      readonly code?: string;
      readonly info?: { readonly code?: string };
    };
    return info?.code ?? code ?? String(error);
  }
}

/** Two clocks that are read one after the other tell the same instant this much apart, ms. */
const CLOCK_JITTER_MS = 5;

type WallClock = () => { readonly nowMs: number; readonly wallMs: number };

/**
 * Both clocks at one moment. The wall clock stays as far from the monotonic one as it was, unless it
 * has been set: so one event has one time, whenever it is asked for.
 */
function steadyWallClock(): WallClock {
  let apartMs = Number.NaN;
  return () => {
    const nowMs = liveScheduler.now();
    const isApartMs = Date.now() - nowMs;
    if (!(Math.abs(isApartMs - apartMs) < CLOCK_JITTER_MS)) apartMs = isApartMs;
    return { nowMs, wallMs: nowMs + apartMs };
  };
}

/** How the state file was found. */
interface OpenedState {
  readonly keeping: Keeping | undefined;
  /** Why it is not as it should be. */
  readonly trouble: string | undefined;
}

/**
 * Looks what a former run left; never throws. A directory that cannot be used now is tried again with
 * each writing, but for a default one that need not be there: that is left out.
 */
async function openState(
  settings: Settings,
  node: NodeCgroup,
  clock: WallClock,
  log: Log,
): Promise<OpenedState> {
  const { stateDir, dryRun } = settings;
  if (stateDir === undefined) return { keeping: undefined, trouble: undefined };
  const store = stateFile({
    directory: stateDir.path,
    node: node.directory,
    dryRun,
    writer: { pid: process.pid, startTime: statField(process.pid, 'startTime') ?? '' },
    lives,
  });
  const boot = bootClock(monotonicMs);
  const moment: Keeping['moment'] = (bound) => {
    const { earliestMs, latestMs } = boot.now();
    return {
      ...clock(),
      bootMs: bound === 'earliest' ? earliestMs : latestMs,
      bootId: boot.bootId,
    };
  };
  let found: Keeping['found'];
  try {
    found = foundSnapshot(await inTime(store.open()), store, log);
    // Whoever comes later sees whose it is; and the first writing that counts is not the first one.
    await inTime(store.write(found ?? snapshotOf(NOTHING_KEPT, moment('latest'), 0)));
    const claimedAtMs = monotonicMs();
    const keeping: Keeping = { store, found, moment, claimedAtMs, trouble: undefined };
    return { keeping, trouble: undefined };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    if (!stateDir.explicit && (dryRun || process.getuid?.() !== 0)) {
      return { keeping: undefined, trouble: `nothing is kept over a restart: ${why}` };
    }
    const keeping: Keeping = { store, found, moment, claimedAtMs: undefined, trouble: why };
    return { keeping, trouble: why };
  }
}

const NOTHING_KEPT: Kept = { state: INITIAL_STATE, evictions: [] };

/** Rejects where a filesystem hangs. */
function inTime<T>(work: Promise<T>): Promise<T> {
  const limit = { first: STATE_LIMITS_MS.open, scheduler: liveScheduler };
  return firstValueFrom(from(work).pipe(timeout(limit)));
}

/** What was left, and a word about what could not be used. */
function foundSnapshot(found: FoundState, store: StateFile, log: Log): Keeping['found'] {
  if (found.kind === 'setAside') {
    log.logger.warn(
      { file: store.path, reason: found.reason, movedTo: found.file ?? null },
      'the state file cannot be used and is set aside',
    );
  }
  return found.kind === 'state' ? found.snapshot : undefined;
}

/** One that has ended and is not waited for yet is in the process table with its start time. */
function lives({ pid, startTime }: Writer): boolean {
  const isKnown = pid !== process.pid && startTime !== '';
  return isKnown && statField(pid, 'startTime') === startTime && !isExiting(pid);
}

/** What a default socket may fail with and be left out. */
const LEFT_OUT: readonly ErrorCode[] = ['EVICTD_SOCKET', 'EVICTD_SOCKET_IN_USE'];

/** The status socket; a default one that cannot be made is left out where that is to be expected. */
async function openSocket({
  node,
  hostName,
  daemon,
  log,
  clock,
  stateFile,
}: {
  readonly node: NodeCgroup;
  readonly hostName: string;
  readonly daemon: Daemon;
  readonly log: Log;
  readonly clock: WallClock;
  readonly stateFile: string | undefined;
}): Promise<StatusSocket | undefined> {
  const settings = daemon.settings();
  if (settings.socket === undefined) return undefined;
  const startedAtMs = liveScheduler.now();
  const version = packageVersion();
  const status = async (): Promise<unknown> => {
    const model = await firstValueFrom(daemon.model$);
    const {
      policy,
      podParents,
      memorySource,
      dryRun,
      kernelMemcgNotification,
      nodeName,
      garbage,
      runtime,
    } = daemon.settings();
    return statusDocument(model, {
      version,
      pid: process.pid,
      policy,
      nodeName: nodeName ?? hostName,
      nodeCgroup: node.directory,
      podParents,
      memorySource,
      dryRun,
      kernelMemcgNotification,
      killing: daemon.killing,
      runtime: runtime.kind,
      runtimePlace: daemon.runtimePlace(),
      garbage,
      stateFile,
      startedAtMs,
      ...clock(),
      droppedLogLines: log.dropped(),
    });
  };
  const samples: Samples = (intervalMs) =>
    daemon.model$.pipe(
      take(1),
      mergeMap((model) =>
        sampleLines({
          version,
          nodeCgroup: node.directory,
          startedAt: new Date(clock().wallMs).toISOString(),
          settings: daemon.settings,
          model,
          namespaceOf: (podId) => namespaceOf(daemon.podOf(podId)),
          turns$: daemon.turns(intervalMs),
          intervalMs,
        }),
      ),
    );
  const summary = async () => {
    const { nodeName = hostName } = daemon.settings();
    const model = await firstValueFrom(daemon.model$);
    return { model, context: { nodeName, disks: daemon.disks(), podOf: daemon.podOf, ...clock() } };
  };
  const documents: Documents = {
    // As a kubelet has them.
    '/stats/summary': async () => {
      const { model, context } = await summary();
      return summaryDocument(model, context);
    },
    '/pods': async () => {
      const { model, context } = await summary();
      return podList(model, context);
    },
  };
  try {
    return await serveStatus(settings.socket.path, status, samples, documents);
  } catch (error) {
    const mayBeLeftOut = !settings.socket.explicit && (settings.dryRun || process.getuid?.() !== 0);
    if (!mayBeLeftOut || !(error instanceof EvictdError) || !LEFT_OUT.includes(error.code))
      throw error;
    daemon.degrade('socket', `no status socket: ${error.message}`);
    return undefined;
  }
}

/** The log lines: one for each change of state, with numbers and reason; none for nothing happening. */
import type { Logger } from 'pino';
import type { Cause, Decision, EvictionOutcome } from '../core/decision.ts';
import type { FlapNotice } from '../core/flapping.ts';
import { EVICTED } from '../core/message.ts';
import { isSameBoot, type Moment } from '../core/persistence.ts';
import type { Turn } from '../core/pipeline.ts';
import type { Policy } from '../core/policy.ts';
import { countsImages, isEvictedFor } from '../core/rank.ts';
import { SIGNALS } from '../core/signal.ts';
import type { Snapshot } from '../core/snapshot.ts';
import type { State } from '../core/state.ts';
import { type Threshold, thresholdId, thresholdLevel } from '../core/threshold.ts';
import type { FilesystemState } from '../ports/filesystem.ts';
import type { NotificationPath } from '../ports/notification.ts';
import type { OomNotice } from '../ports/oom-kills.ts';
import { eventsOf, type NodeEvent } from './events.ts';
import { EVICTION_IMPOSSIBLE, layoutOf, OOM_KILLS, outcomeReason } from './status.ts';

/** Logs what changed from one turn to the next. */
export function reportTurn(
  logger: Logger,
  before: Turn | undefined,
  turn: Turn,
  { dryRun = false, nodeName = '', wavering = logger }: ReportOptions = {},
): void {
  reportSample(logger, turn);
  reportUnsatisfiable(logger, before, turn);
  reportThresholds(wavering, before, turn);
  reportConditions(logger, before, turn);
  reportDecision(logger, turn, dryRun);
  const events = eventsOf(turn, dryRun).map((event) => eventFields(event, nodeName));
  const impossible = events.find(({ reason }) => reason === EVICTION_IMPOSSIBLE);
  reportImpossible(logger, before, turn, impossible);
  reportComebacks(logger, before, turn);
  for (const event of events) {
    if (event === impossible) continue;
    // By the kubelet's rules what is of the node comes with each round.
    const isRepeated = event.reason !== EVICTED && turn.policy.rules.repeatedEvent === 'kubelet';
    (isRepeated ? wavering : logger).warn(event, 'event');
  }
  reportNoReclaim(wavering, before, turn);
}

interface EventFields {
  readonly type: NodeEvent['type'];
  readonly reason: string;
  readonly object: string;
  readonly message: string;
  readonly annotations?: NodeEvent['annotations'];
}

/** The event as its line has it. */
function eventFields(
  { type, reason, pod, message, annotations }: NodeEvent,
  nodeName: string,
): EventFields {
  const hasNone = Object.keys(annotations).length === 0;
  return {
    type,
    reason,
    object: pod ?? nodeName,
    message,
    ...(hasNone ? {} : { annotations }),
  };
}

export interface ReportOptions {
  readonly dryRun?: boolean;
  /** What events of the node are about. */
  readonly nodeName?: string;
  /** Where lines go that a reading right at a threshold would repeat without end. */
  readonly wavering?: Wavering;
}

type Wavering = Pick<Logger, 'info' | 'warn'>;

/** How many lines about wavering thresholds are let through in each second. */
const WAVERING_LINES = 10;

/**
 * A logger that lets so many lines through in each second, and says how many it left out when the
 * next second has lines again.
 *
 * @param nowMs the monotonic clock
 */
export function limitedLogger(logger: Logger, nowMs: () => number): Wavering {
  let secondMs = Number.NEGATIVE_INFINITY;
  let lines = 0;
  const limited =
    (level: 'info' | 'warn') =>
    (fields: unknown, text?: string): void => {
      if (nowMs() - secondMs >= 1000) {
        const leftOut = lines - WAVERING_LINES;
        if (leftOut > 0)
          logger.warn({ lines: leftOut }, 'lines about a wavering threshold left out');
        secondMs = nowMs();
        lines = 0;
      }
      lines += 1;
      if (lines <= WAVERING_LINES) logger[level](fields, text);
    };
  return { info: limited('info'), warn: limited('warn') };
}

/** A threshold that is not below the capacity is met whatever is freed: said when it becomes so. */
function reportUnsatisfiable(logger: Logger, before: Turn | undefined, turn: Turn): void {
  for (const threshold of turn.state.met) {
    if (isUnsatisfiable(threshold, turn) && !(before && isUnsatisfiable(threshold, before))) {
      logger.warn(
        thresholdFields(threshold, turn),
        'the threshold is not below the capacity: it is always met',
      );
    }
  }
}

function isUnsatisfiable(threshold: Threshold, turn: Turn): boolean {
  const observation = turn.state.observations.find(({ signal }) => signal === threshold.signal);
  if (observation === undefined) return false;
  return thresholdLevel(threshold, observation.capacity, false) >= observation.capacity;
}

function reportSample(logger: Logger, turn: Turn): void {
  if (!logger.isLevelEnabled('debug')) return;
  const { observations, pods } = turn.sample;
  logger.debug(
    { reason: turn.reason, observations: observations.map(({ atMs: _, ...rest }) => rest) },
    'sample',
  );
  if (pods !== undefined) logger.debug({ pods: pods.length, reason: turn.reason }, 'pods read');
}

function reportThresholds(logger: Wavering, before: Turn | undefined, turn: Turn): void {
  const [was, is] = [before?.state.met ?? [], turn.state.met];
  for (const threshold of is) {
    if (!includes(was, threshold)) logger.warn(thresholdFields(threshold, turn), 'threshold met');
  }
  for (const threshold of was) {
    if (!includes(is, threshold))
      logger.info(thresholdFields(threshold, turn), 'threshold no longer met');
  }
}

function includes(thresholds: readonly Threshold[], one: Threshold): boolean {
  return thresholds.some((other) => thresholdId(other) === thresholdId(one));
}

function thresholdFields(threshold: Threshold, turn: Turn): Record<string, unknown> {
  const observation = turn.state.observations.find(({ signal }) => signal === threshold.signal);
  return {
    signal: threshold.signal,
    kind: threshold.kind,
    ...(observation === undefined
      ? {}
      : {
          // Not `level`: that is the line's own.
          thresholdLevel: thresholdLevel(threshold, observation.capacity, false),
          available: observation.available,
          capacity: observation.capacity,
        }),
    gracePeriodMs: threshold.gracePeriodMs,
  };
}

function reportConditions(logger: Logger, before: Turn | undefined, turn: Turn): void {
  const [was, is] = [before?.conditions ?? [], turn.conditions];
  for (const condition of is)
    if (!was.includes(condition)) logger.warn({ condition }, 'node condition set');
  for (const condition of was)
    if (!is.includes(condition)) logger.info({ condition }, 'node condition cleared');
}

/** Its event, where the rules have one, is told with its numbers. */
function reportImpossible(
  logger: Logger,
  before: Turn | undefined,
  turn: Turn,
  event: EventFields | undefined,
): void {
  const { impossible } = turn.state;
  if (impossible === undefined || impossible === before?.state.impossible) return;
  const { threshold, observation, level } = impossible.cause;
  logger.warn(
    {
      reason: EVICTION_IMPOSSIBLE,
      ...event,
      signal: threshold.signal,
      kind: threshold.kind,
      thresholdLevel: level,
      available: observation.available,
      pods: impossible.pods,
      protectedPods: impossible.protectedPods,
      passedOverPods: impossible.passedOverPods,
      helplessPods: impossible.helplessPods,
    },
    'pressure, but no pod may be evicted',
  );
}

/** Who came straight back, each time that he did. */
function reportComebacks(logger: Logger, before: Turn | undefined, turn: Turn): void {
  const { comebacks } = turn.state;
  if (comebacks === before?.state.comebacks) return;
  for (const [owner, { podName, returns, evictedAtMs, backAtMs, heldUntilMs }] of comebacks) {
    const known = before?.state.comebacks.get(owner);
    if (backAtMs === undefined || (known?.returns ?? 0) === returns) continue;
    logger.warn(
      {
        owner,
        pod: podName,
        returns,
        afterMs: Math.round(backAtMs - evictedAtMs),
        heldForMs: Math.max(0, Math.round(heldUntilMs - backAtMs)),
      },
      'an evicted pod came straight back',
    );
  }
}

/** Disk pressure is a node condition; nothing is freed for it. */
function reportNoReclaim(logger: Wavering, before: Turn | undefined, turn: Turn): void {
  for (const threshold of turn.state.due) {
    const { policy } = turn;
    if (isEvictedFor(threshold.signal, policy)) continue;
    const isOfImages = policy.ranksDisk && countsImages(threshold.signal, policy);
    if (policy.reclaims.length > 0 && !isOfImages) continue;
    if (includes(before?.state.due ?? [], threshold)) continue;
    logger.warn(
      thresholdFields(threshold, turn),
      isOfImages
        ? 'disk pressure: no pod goes, since only images lie there, and none may be removed'
        : 'disk pressure: a node condition, no reclaim was done',
    );
  }
}

function reportDecision(logger: Logger, turn: Turn, dryRun: boolean): void {
  const { decision } = turn;
  switch (decision.kind) {
    case 'observePods':
    case 'none':
      return;
    case 'reclaim':
      logger.info(
        { ...causeFields(decision.cause), functions: decision.functions },
        'collecting what nobody uses',
      );
      reportLeftOut(logger, decision, turn.policy);
      return;
    case 'evict':
      logger[dryRun ? 'info' : 'warn'](
        {
          pod: decision.pod.name,
          ...causeFields(decision.cause),
          gracePeriodMs: decision.gracePeriodMs,
          priority: decision.pod.priority,
          qosClass: decision.pod.qosClass,
          workingSetBytes: decision.pod.workingSetBytes ?? null,
          ...(decision.pod.pids === undefined ? {} : { pids: decision.pod.pids }),
          wakeup: turn.reason,
          reason: decision.message,
        },
        dryRun ? 'dry run: would have evicted' : 'evicting',
      );
      return;
    case 'escalate':
      logger.warn(
        { pod: decision.podName, gracePeriodMs: decision.gracePeriodMs, reason: decision.message },
        'hard threshold crossed: the grace of the running eviction is cut',
      );
  }
}

/** Images that lie elsewhere are left alone, which people ask about. */
function reportLeftOut(
  logger: Logger,
  { functions, cause }: Extract<Decision, { kind: 'reclaim' }>,
  { layout, reclaims }: Policy,
): void {
  const { signal } = cause.threshold;
  const isLeftOut = reclaims.includes('images') && !functions.includes('images');
  if (isLeftOut && SIGNALS[signal].filesystem === 'nodefs') {
    logger.info({ signal, layout }, 'image GC would not help nodefs');
  }
}

/** Nothing for a pod over a limit of its own: the message names that. */
function causeFields(cause: Cause | undefined): Record<string, unknown> {
  if (cause === undefined) return {};
  return {
    signal: cause.threshold.signal,
    kind: cause.threshold.kind,
    thresholdLevel: cause.level,
    available: cause.observation.available,
    reclaiming: cause.reclaiming,
  };
}

/**
 * Logs that a node condition comes and goes, once for each burst, and how often it was in the end.
 *
 * @param nowMs the monotonic clock, of which `wallMs` is the same moment
 */
export function reportFlapping(
  logger: Logger,
  notices: readonly FlapNotice[],
  nowMs: number,
  wallMs: number,
): void {
  for (const { kind, condition, count, sinceMs } of notices) {
    const since = new Date(wallMs - (nowMs - sinceMs)).toISOString();
    if (kind === 'began') logger.warn({ condition, count, since }, 'node condition flaps');
    else logger.info({ condition, count, since }, 'node condition flaps no more');
  }
}

const OUTCOME_LINES = {
  evicted: { level: 'warn', text: 'evicted' },
  refused: { level: 'info', text: 'eviction not carried out' },
  timedOut: { level: 'error', text: 'eviction timed out' },
  failed: { level: 'error', text: 'eviction failed' },
} as const;

/** Logs how an eviction ended. A dry run has said all with its decision. */
export function reportOutcome(logger: Logger, outcome: EvictionOutcome): void {
  if (outcome.kind === 'refused' && outcome.reason === 'dryRun') return;
  const { level, text } = OUTCOME_LINES[outcome.kind];
  const { decidedAtMs, firstSignalAtMs, killedAtMs, emptyAtMs, endedAtMs } = outcome.timing;
  const after = (atMs: number | undefined): number | null =>
    atMs === undefined ? null : Math.round((atMs - decidedAtMs) * 1000) / 1000;
  const reason = outcomeReason(outcome);
  logger[level](
    {
      pod: outcome.podName,
      ...(reason === null ? {} : { reason }),
      processes: outcome.processes,
      ...(outcome.kind === 'evicted' ? { chargedBytes: outcome.chargedBytes ?? null } : {}),
      firstSignalMs: after(firstSignalAtMs),
      killedMs: after(killedAtMs),
      emptyMs: after(emptyAtMs),
      endedMs: after(endedAtMs),
    },
    text,
  );
}

/** Logs a change of how a threshold is followed: at debug where all is well. */
export function reportPath(
  logger: Logger,
  before: NotificationPath | undefined,
  path: NotificationPath,
): void {
  const fields = { threshold: path.threshold, arming: path.arming?.kind ?? 'none' };
  if (path.degraded !== undefined) {
    if (path.degraded !== before?.degraded) {
      logger.warn(
        { ...fields, reason: path.degraded },
        'kernel notification failed: polling takes over',
      );
    }
  } else if (path.arming?.kind !== before?.arming?.kind && path.arming?.kind === 'followed') {
    logger.warn(
      { ...fields, arming: path.arming },
      'no level of usage tells the crossing of this threshold',
    );
  } else {
    logger.debug({ ...fields, arming: path.arming }, 'armed');
  }
}

/** By what it is told whether the filesystems are still the same ones. */
export function filesystemKey(states: readonly FilesystemState[]): string {
  return JSON.stringify(
    states.map(({ name, path, reading }) => [
      name,
      path,
      reading?.device,
      reading?.mountPoint,
      reading?.inodes === 0,
    ]),
  );
}

/** Logs which filesystem is which. */
export function reportLayout(logger: Logger, states: readonly FilesystemState[]): void {
  const { layout, text } = layoutOf(states);
  const known = states.filter(({ reading }) => reading !== undefined);
  logger.info(
    {
      layout,
      groups: text,
      filesystems: known.map(({ name, path, reading }) => ({
        name,
        path,
        device: reading?.device,
        mountPoint: reading?.mountPoint,
        type: reading?.type,
      })),
    },
    'filesystems',
  );
  for (const { name, path } of known.filter(({ reading }) => reading?.inodes === 0)) {
    logger.warn({ filesystem: name, path }, 'does not count inodes: no inode signal');
  }
}

/** Logs what the kernel's OOM killer did. */
export function reportOomKill(logger: Logger, notice: OomNotice): void {
  switch (notice.kind) {
    case 'lostRace': {
      const { podName, cgroup, kills } = notice.race;
      logger.warn({ pod: podName, cgroup, kills }, 'the kernel’s OOM killer was first');
      return;
    }
    case 'elsewhere':
      logger.info({ kills: notice.kills }, 'the kernel’s OOM killer struck outside of the pods');
      return;
    case 'degraded':
      if (notice.reason === undefined) logger.info({ part: OOM_KILLS }, 'no longer degraded');
      else logger.warn({ part: OOM_KILLS, reason: notice.reason }, 'degraded');
  }
}

/** Logs what a former run left. */
export function reportRestored(
  logger: Logger,
  left: {
    readonly file: string;
    readonly found: Snapshot;
    readonly state: State;
    readonly moment: Moment;
  },
): void {
  const { found, state, moment } = left;
  const isSame = isSameBoot(found, moment);
  logger.info(
    {
      file: left.file,
      thresholds: state.met.map(thresholdId),
      conditions: state.conditions,
      evictions: found.evictions.length,
      ...(isSame ? { agoMs: Math.round(moment.bootMs - found.savedAtMs) } : { anotherBoot: true }),
    },
    'state restored',
  );
}

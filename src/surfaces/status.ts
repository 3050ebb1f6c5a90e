import type { GarbageSettings } from '../config/settings.ts';
import type { Decision, EvictionOutcome, EvictionRecord } from '../core/decision.ts';
import { type Flapping, flapping, flapsOf, NOT_FLAPPING } from '../core/flapping.ts';
import { graceEndsAtMs } from '../core/grace.ts';
import type { ImageMemory } from '../core/image-gc.ts';
import { type FilesystemLayoutFound, filesystemLayout } from '../core/layout.ts';
import type { SignalObservation } from '../core/observation.ts';
import type { Turn } from '../core/pipeline.ts';
import type { PodObservation } from '../core/pod.ts';
import type { MemorySource, Policy } from '../core/policy.ts';
import { rankPods } from '../core/rank.ts';
import {
  FILESYSTEMS,
  type FilesystemName,
  type NodeCondition,
  SIGNAL_NAMES,
  SIGNALS,
} from '../core/signal.ts';
import type { Impossibility } from '../core/state.ts';
import {
  resolveValue,
  type Threshold,
  type ThresholdId,
  thresholdId,
  thresholdLevel,
} from '../core/threshold.ts';
import type { Collected, CollectedKind, CollectionPurpose } from '../ports/collection.ts';
import type { FilesystemState } from '../ports/filesystem.ts';
import type { NotificationPath } from '../ports/notification.ts';
import type { LostRace } from '../ports/oom-kills.ts';
import type { RuntimePlace } from '../ports/pod-directory.ts';
import type { MemoryReading } from '../ports/readings.ts';
import type { Killing } from '../ports/runtime.ts';
import { freedBy } from './collections.ts';
import { eventsOf, type NodeEvent } from './events.ts';

/** How many evictions are remembered; the oldest are forgotten beyond it. */
export const REMEMBERED_EVICTIONS = 100;

/** How many lost races are remembered, how many bursts in which nobody could be evicted, how many events. */
export const REMEMBERED_EVENTS = 100;

/** Why nothing is evicted under pressure; Kubernetes names its events in this way. */
export const EVICTION_IMPOSSIBLE = 'EvictionImpossible';

/** The part that is degraded where the OOM killer's doings are noticed late or not at all. */
export const OOM_KILLS = 'OOM kills';

/** The part that is degraded where what is to outlive a restart cannot be kept. */
export const STATE = 'state';

/** The version of the document's shape: raised when a field changes its meaning or goes away. */
export const STATUS_VERSION = 'evictd.dev/v1alpha1';

/** An event, and how often the same one came. */
export interface EventRecord extends NodeEvent {
  /** The first and the last time, monotonic ms. */
  readonly sinceMs: number;
  readonly atMs: number;
  readonly count: number;
}

/** What the daemon believes; instants are monotonic ms. */
export interface Model {
  readonly turn: Turn | undefined;
  readonly readings: readonly MemoryReading[];
  readonly filesystems: readonly FilesystemState[];
  /** By filesystem, what is deleted there and still open, bytes; empty where nobody looks. */
  readonly unaccounted: ReadonlyMap<FilesystemName, number>;
  readonly pods: readonly PodObservation[];
  readonly paths: ReadonlyMap<string, NotificationPath>;
  readonly evictions: readonly EvictionRecord[];
  /** What is known of images; undefined where nobody has looked. */
  readonly images: ImageMemory | undefined;
  readonly collections: Collections;
  /** When what outlives a restart was last written; undefined when it never was. */
  readonly keptAtMs: number | undefined;
  /** One for each burst of pressure in which nobody could be evicted. */
  readonly impossible: readonly Impossibility[];
  /** What Kubernetes would record as events; the newest last. */
  readonly events: readonly EventRecord[];
  /** Which node conditions come and go. */
  readonly flapping: Flapping;
  readonly lostRaces: readonly LostRace[];
  /** Processes of pods that the kernel's OOM killer ended since the start. */
  readonly oomKills: number;
  /** By part: why it does not work as it should. */
  readonly degraded: ReadonlyMap<string, string>;
  /** Events of the kernel, also where several came as one. */
  readonly wakeups: number;
  readonly turns: number;
  /** How often counters were refused since they could not be true. */
  readonly refusedSamples: number;
}

/** What was collected since the start, and removed after an eviction. */
interface Collections {
  readonly count: number;
  readonly removed: Readonly<Record<CollectedKind, number>>;
  /** As it was measured. */
  readonly freedBytes: number;
  readonly last:
    | {
        readonly purpose: CollectionPurpose;
        readonly collected: Collected;
        /** Monotonic ms. */
        readonly endedAtMs: number;
      }
    | undefined;
}

const NO_COLLECTIONS: Collections = {
  count: 0,
  removed: { container: 0, sandbox: 0, image: 0 },
  freedBytes: 0,
  last: undefined,
};

export const EMPTY_MODEL: Model = {
  turn: undefined,
  readings: [],
  filesystems: [],
  unaccounted: new Map(),
  pods: [],
  paths: new Map(),
  evictions: [],
  images: undefined,
  collections: NO_COLLECTIONS,
  keptAtMs: undefined,
  impossible: [],
  events: [],
  flapping: NOT_FLAPPING,
  lostRaces: [],
  oomKills: 0,
  degraded: new Map(),
  wakeups: 0,
  turns: 0,
  refusedSamples: 0,
};

/** What changes the model. */
export type ModelEvent =
  | {
      readonly kind: 'turn';
      readonly turn: Turn;
      readonly readings: readonly MemoryReading[];
      readonly filesystems: readonly FilesystemState[];
      readonly unaccounted?: ReadonlyMap<FilesystemName, number>;
      /** By part: why it was not read as it should be; undefined when it was. */
      readonly troubles: ReadonlyMap<string, string | undefined>;
      /** Whether nobody was evicted that was to be. */
      readonly dryRun: boolean;
    }
  /** Other settings hold from here on: what was said of the former ones' parts no longer does. */
  | { readonly kind: 'reloaded'; readonly thresholds: readonly ThresholdId[] }
  | { readonly kind: 'outcome'; readonly outcome: EvictionOutcome }
  /** What a former run left, before the first turn. */
  | {
      readonly kind: 'restored';
      readonly evictions: readonly EvictionRecord[];
      readonly images?: ImageMemory | undefined;
    }
  /** What nobody used was collected. */
  | {
      readonly kind: 'collected';
      readonly purpose: CollectionPurpose;
      readonly collected: Collected;
      readonly endedAtMs: number;
    }
  | { readonly kind: 'images'; readonly images: ImageMemory }
  /** What an evicted pod had left was removed. */
  | { readonly kind: 'removed'; readonly what: CollectedKind }
  /** What outlives a restart was written. */
  | { readonly kind: 'kept'; readonly atMs: number }
  | { readonly kind: 'path'; readonly path: NotificationPath }
  | { readonly kind: 'wakeup'; readonly events: number }
  | { readonly kind: 'lostRace'; readonly race: LostRace }
  /** What people are told beside what a turn has for them; monotonic ms. */
  | { readonly kind: 'event'; readonly event: NodeEvent; readonly atMs: number }
  | { readonly kind: 'degraded'; readonly part: string; readonly reason: string | undefined };

/** The model after an event; pure, for `scan`. */
export function updateModel(model: Model, event: ModelEvent): Model {
  switch (event.kind) {
    case 'turn':
      return afterTurn(model, event);
    case 'reloaded':
      return afterReload(model, event.thresholds);
    case 'outcome':
      return {
        ...model,
        evictions: withOutcome(model.evictions, event.outcome),
        pods: withoutEvicted(model.pods, event.outcome),
      };
    case 'restored':
      return { ...model, evictions: event.evictions, images: event.images };
    case 'collected':
      return { ...model, collections: withCollection(model.collections, event) };
    case 'images':
      return { ...model, images: event.images };
    case 'removed':
      return { ...model, collections: withRemoved(model.collections, event.what) };
    case 'kept':
      return { ...model, keptAtMs: event.atMs };
    case 'path': {
      const paths = new Map(model.paths).set(event.path.threshold, event.path);
      return withDegraded(
        { ...model, paths },
        `${NOTIFICATION}${event.path.threshold}`,
        event.path.degraded,
      );
    }
    case 'wakeup':
      return { ...model, wakeups: model.wakeups + event.events };
    case 'lostRace':
      return {
        ...model,
        lostRaces: [...model.lostRaces, event.race].slice(-REMEMBERED_EVENTS),
        oomKills: model.oomKills + event.race.kills,
      };
    case 'event':
      return { ...model, events: withEvent(model.events, event.event, event.atMs) };
    case 'degraded':
      return withDegraded(model, event.part, event.reason);
  }
}

function withCollection(
  { count, removed, freedBytes }: Collections,
  { purpose, collected, endedAtMs }: Extract<ModelEvent, { kind: 'collected' }>,
): Collections {
  const { removed: more } = collected;
  return {
    count: count + 1,
    removed: {
      container: removed.container + more.container,
      sandbox: removed.sandbox + more.sandbox,
      image: removed.image + more.image,
    },
    freedBytes: freedBytes + (freedBy(collected).freedBytes ?? 0),
    last: { purpose, collected, endedAtMs },
  };
}

function withRemoved(collections: Collections, what: CollectedKind): Collections {
  const { removed } = collections;
  return { ...collections, removed: { ...removed, [what]: removed[what] + 1 } };
}

/** What was said of signals is said anew at the next reading; of thresholds that are gone it goes. */
function afterReload(model: Model, thresholds: readonly ThresholdId[]): Model {
  const isThreshold = new Set<string>(thresholds);
  const signals = new Set<string>([...SIGNAL_NAMES, ...FILESYSTEMS]);
  const stays = (part: string): boolean =>
    part.startsWith(NOTIFICATION)
      ? isThreshold.has(part.slice(NOTIFICATION.length))
      : !signals.has(part);
  return {
    ...model,
    paths: new Map([...model.paths].filter(([id]) => isThreshold.has(id))),
    degraded: new Map([...model.degraded].filter(([part]) => stays(part))),
  };
}

/** What the part is called that a threshold's kernel path is. */
const NOTIFICATION = 'notification ';

function afterTurn(
  model: Model,
  {
    turn,
    readings,
    filesystems,
    unaccounted,
    troubles,
    dryRun,
  }: Extract<ModelEvent, { kind: 'turn' }>,
): Model {
  const evictions = withDecision(model.evictions, turn);
  return {
    ...model,
    turn,
    readings,
    filesystems,
    unaccounted: unaccounted ?? model.unaccounted,
    evictions,
    impossible: withImpossible(model, turn),
    events: eventsOf(turn, dryRun).reduce(
      (events, event) => withEvent(events, event, turn.sample.nowMs),
      model.events,
    ),
    flapping: flapping(
      model.flapping,
      turn.conditions,
      turn.sample.nowMs,
      turn.policy.pressureTransitionPeriodMs,
    ),
    pods: turn.sample.pods ?? model.pods,
    degraded: withTroubles(model.degraded, troubles),
    turns: model.turns + 1,
    refusedSamples:
      model.refusedSamples + readings.filter(({ refused }) => refused !== undefined).length,
  };
}

/** The same event again is one that came more often. */
function withEvent(
  events: readonly EventRecord[],
  event: NodeEvent,
  atMs: number,
): readonly EventRecord[] {
  const isSame = ({ type, reason, pod, message }: EventRecord): boolean =>
    reason === event.reason &&
    pod === event.pod &&
    message === event.message &&
    type === event.type;
  const known = events.findLast(isSame);
  const record = {
    ...event,
    sinceMs: known?.sinceMs ?? atMs,
    atMs,
    count: (known?.count ?? 0) + 1,
  };
  return [...events.filter((one) => one !== known), record].slice(-REMEMBERED_EVENTS);
}

function withDecision(evictions: readonly EvictionRecord[], turn: Turn): readonly EvictionRecord[] {
  if (turn.decision.kind === 'escalate') return withEscalation(evictions, turn.decision);
  if (turn.decision.kind !== 'evict') return evictions;
  const { pod, hard, gracePeriodMs, message, annotations } = turn.decision;
  const record: EvictionRecord = {
    podId: pod.id,
    podName: pod.name,
    hard,
    gracePeriodMs,
    message,
    annotations,
    decidedAtMs: turn.decision.cause?.observation.atMs ?? turn.sample.nowMs,
    outcome: undefined,
  };
  return [...evictions, record].slice(-REMEMBERED_EVICTIONS);
}

function withImpossible(model: Model, turn: Turn): readonly Impossibility[] {
  const { impossible } = turn.state;
  return impossible === undefined || impossible === model.turn?.state.impossible
    ? model.impossible
    : [...model.impossible, impossible].slice(-REMEMBERED_EVENTS);
}

/** What began as a soft eviction is a hard one from here on. */
function withEscalation(
  evictions: readonly EvictionRecord[],
  { podId, gracePeriodMs, message }: Extract<Decision, { kind: 'escalate' }>,
): readonly EvictionRecord[] {
  return evictions.map((record) =>
    record.podId === podId && record.outcome === undefined
      ? { ...record, hard: true, gracePeriodMs, message }
      : record,
  );
}

/** The last record of the pod without an outcome gets this one. */
function withOutcome(
  evictions: readonly EvictionRecord[],
  outcome: EvictionOutcome,
): readonly EvictionRecord[] {
  const index = evictions.findLastIndex(
    (record) => record.podId === outcome.podId && record.outcome === undefined,
  );
  return index === -1
    ? evictions
    : evictions.with(index, { ...(evictions[index] as EvictionRecord), outcome });
}

/** A pod that has been evicted is none until it is listed again. */
function withoutEvicted(
  pods: readonly PodObservation[],
  { kind, podId }: EvictionOutcome,
): readonly PodObservation[] {
  return kind === 'evicted' ? pods.filter(({ id }) => id !== podId) : pods;
}

function withDegraded(model: Model, part: string, reason: string | undefined): Model {
  return { ...model, degraded: withTroubles(model.degraded, new Map([[part, reason]])) };
}

/** Copied only where something has changed: this is done at each turn. */
function withTroubles(
  before: ReadonlyMap<string, string>,
  troubles: ReadonlyMap<string, string | undefined>,
): ReadonlyMap<string, string> {
  let now: Map<string, string> | undefined;
  for (const [part, reason] of troubles) {
    if (before.get(part) === reason) continue;
    now ??= new Map(before);
    if (reason === undefined) now.delete(part);
    else now.set(part, reason);
  }
  return now ?? before;
}

/** The daemon's own facts in the document. */
export interface StatusContext {
  readonly version: string;
  readonly pid: number;
  readonly policy: Policy;
  readonly nodeName: string;
  readonly nodeCgroup: string;
  readonly podParents: readonly string[];
  readonly memorySource: MemorySource;
  readonly dryRun: boolean;
  readonly kernelMemcgNotification: boolean;
  readonly killing: Killing;
  /** As it was asked for. */
  readonly runtime: string;
  /** Undefined while it is looked for, and where nothing but cgroups is. */
  readonly runtimePlace: RuntimePlace | undefined;
  readonly garbage: Pick<GarbageSettings, 'containers' | 'images'>;
  /** Where what outlives a restart is kept; undefined where nothing is. */
  readonly stateFile: string | undefined;
  readonly startedAtMs: number;
  /** Both clocks, read at the same moment: ages are monotonic, times are for people. */
  readonly nowMs: number;
  readonly wallMs: number;
  readonly droppedLogLines: number;
}

/** The document of `evictd status --json`; its fields are described in docs/reference/status.md. */
export function statusDocument(model: Model, context: StatusContext) {
  const age = (atMs: number): number => Math.max(0, Math.round(context.nowMs - atMs));
  const wall = (atMs: number): string =>
    new Date(context.wallMs - (context.nowMs - atMs)).toISOString();
  return {
    apiVersion: STATUS_VERSION,
    kind: 'Status',
    evictd: {
      version: context.version,
      pid: context.pid,
      startedAt: wall(context.startedAtMs),
      uptimeMs: age(context.startedAtMs),
      dryRun: context.dryRun,
      kernelMemcgNotification: context.kernelMemcgNotification,
    },
    killing: context.killing,
    runtime: {
      kind: context.runtime,
      name: context.runtimePlace?.name ?? null,
      socket: context.runtimePlace?.socket ?? null,
    },
    state: stateStatus(model, context, age, wall),
    node: nodeStatus(model, context),
    signals: inOrder(model.turn?.state.observations ?? []).map((observation) => ({
      signal: observation.signal,
      unit: SIGNALS[observation.signal].unit,
      capacity: observation.capacity,
      available: observation.available,
      readAt: wall(observation.atMs),
      ageMs: age(observation.atMs),
    })),
    filesystems: model.filesystems
      .filter(({ name }) => isWatched(name, context.policy))
      .map((state) => filesystemStatus(state, model.unaccounted.get(state.name), age, wall)),
    layout: layoutStatus(model.filesystems),
    thresholds: context.policy.thresholds.map((threshold) =>
      thresholdStatus(model, threshold, context),
    ),
    conditions: conditionStatus(model, age, wall),
    pods: podStatus(model, age),
    evicting:
      model.turn?.state.inFlight === undefined
        ? null
        : {
            pod: model.turn.state.inFlight.podName,
            hard: model.turn.state.inFlight.hard,
          },
    evictions: model.evictions.map((record) => evictionStatus(record, wall)),
    garbage: garbageStatus(model, context, wall),
    comebacks: comebackStatus(model, context, wall),
    impossible: model.impossible.map(({ atMs, cause, ...counts }) => ({
      reason: EVICTION_IMPOSSIBLE,
      decidedAt: wall(atMs),
      signal: cause.threshold.signal,
      unit: SIGNALS[cause.threshold.signal].unit,
      kind: cause.threshold.kind,
      level: cause.level,
      available: cause.observation.available,
      ...counts,
    })),
    events: model.events.map((event) => eventStatus(event, context.nodeName, wall)),
    lostRaces: model.lostRaces.map(({ podName, cgroup, kills, atMs }) => ({
      pod: podName,
      cgroup,
      kills,
      noticedAt: wall(atMs),
    })),
    degraded: [...model.degraded].map(([part, reason]) => ({ part, reason })),
    counters: {
      samples: model.turns,
      kernelWakeups: model.wakeups,
      lostRaces: model.oomKills,
      droppedLogLines: context.droppedLogLines,
      refusedSamples: model.refusedSamples,
      collections: model.collections.count,
      removedContainers: model.collections.removed.container,
      removedSandboxes: model.collections.removed.sandbox,
      removedImages: model.collections.removed.image,
      freedBytes: model.collections.freedBytes,
    },
  };
}

/** What is collected, what runs for, and how the last collection ended. */
function garbageStatus(
  { turn, collections: { last } }: Model,
  { garbage }: StatusContext,
  wall: (atMs: number) => string,
) {
  const reclaiming = turn?.state.reclaiming;
  return {
    containers: garbage.containers,
    images: garbage.images,
    collectingFor: reclaiming?.threshold.signal ?? null,
    last:
      last === undefined
        ? null
        : {
            purpose: last.purpose,
            because: last.collected.because,
            endedAt: wall(last.endedAtMs),
            tookMs: Math.round(last.collected.tookMs),
            containers: last.collected.removed.container,
            sandboxes: last.collected.removed.sandbox,
            images: last.collected.removed.image,
            inUse: last.collected.inUse,
            failed: last.collected.failed,
            wouldRemove: last.collected.wouldRemove,
            freedBytes: freedBy(last.collected).freedBytes ?? null,
            freedInodes: freedBy(last.collected).freedInodes ?? null,
          },
  };
}

/** In the signals' own order: those of filesystems are read less often. */
function inOrder(observations: readonly SignalObservation[]): readonly SignalObservation[] {
  return [...observations].sort(
    (one, other) => SIGNALS[one.signal].order - SIGNALS[other.signal].order,
  );
}

/** Where what outlives a restart is kept, and when it was last written. */
function stateStatus(
  { keptAtMs, degraded }: Model,
  { stateFile }: StatusContext,
  age: (atMs: number) => number,
  wall: (atMs: number) => string,
) {
  if (stateFile === undefined) return null;
  return {
    file: stateFile,
    writtenAt: keptAtMs === undefined ? null : wall(keptAtMs),
    ageMs: keptAtMs === undefined ? null : age(keptAtMs),
    error: degraded.get(STATE) ?? null,
  };
}

export type StatusDocument = ReturnType<typeof statusDocument>;

/** Whether a threshold is about the filesystem: others are not read. */
function isWatched(name: FilesystemName, { thresholds }: Policy): boolean {
  return thresholds.some(({ signal }) => SIGNALS[signal].filesystem === name);
}

function filesystemStatus(
  { name, path, reading, error, stale }: FilesystemState,
  unaccountedBytes: number | undefined,
  age: (atMs: number) => number,
  wall: (atMs: number) => string,
) {
  const hasInodes = reading !== undefined && reading.inodes > 0;
  return {
    name,
    path,
    mountPoint: reading?.mountPoint ?? null,
    type: reading?.type ?? null,
    source: reading?.source ?? null,
    device: reading?.device ?? null,
    capacityBytes: reading?.capacityBytes ?? null,
    availableBytes: reading?.availableBytes ?? null,
    /** Null where the filesystem does not count them. */
    inodes: hasInodes ? reading.inodes : null,
    inodesFree: hasInodes ? reading.inodesFree : null,
    /** Of files that are deleted and still open; null where nobody looks for them. */
    unaccountedBytes: unaccountedBytes ?? null,
    readAt: reading === undefined ? null : wall(reading.atMs),
    ageMs: reading === undefined ? null : age(reading.atMs),
    stale,
    error: error ?? null,
  };
}

/** Which filesystems are one, of those that were read. */
function layoutStatus(states: readonly FilesystemState[]) {
  const { layout, groups } = layoutOf(states);
  return groups.length === 0 ? null : { kind: layout, groups };
}

/** Which filesystems are one, as they were last read. */
export function layoutOf(states: readonly FilesystemState[]): FilesystemLayoutFound {
  const known = states.flatMap(({ name, reading }) =>
    reading === undefined ? [] : [[name, reading] as const],
  );
  return filesystemLayout(Object.fromEntries(known));
}

/** The node's own memory: what the signal is made of, and what it would be by the other source. */
function nodeStatus(
  model: Model,
  { nodeName, nodeCgroup, podParents, memorySource }: StatusContext,
) {
  const reading = model.readings.find(({ signal }) => signal === 'memory.available');
  return {
    name: nodeName,
    cgroup: nodeCgroup,
    podParents,
    memorySource,
    figures: reading?.figures ?? null,
    usageBytes: reading?.usageBytes ?? null,
    uncountedBytes: reading?.uncountedBytes ?? null,
    inactiveFileBytes: reading?.inactiveFileBytes ?? null,
    workingSetBytes: reading?.workingSetBytes ?? null,
    availableBytes: reading?.availableBytes ?? null,
  };
}

function thresholdStatus(model: Model, threshold: Threshold, context: StatusContext) {
  const id = thresholdId(threshold);
  const state = model.turn?.state;
  const capacity = state?.observations.find(({ signal }) => signal === threshold.signal)?.capacity;
  const isMet = state?.met.some((one) => thresholdId(one) === id) ?? false;
  const graceLeft =
    isMet && state !== undefined
      ? graceEndsAtMs(threshold, state.firstObserved) - context.nowMs
      : 0;
  const { minimumReclaim } = threshold;
  return {
    signal: threshold.signal,
    kind: threshold.kind,
    value: threshold.value.text,
    level: capacity === undefined ? null : thresholdLevel(threshold, capacity, false),
    minimumReclaim: minimumReclaim?.text ?? null,
    minimumReclaimLevel:
      minimumReclaim === undefined || capacity === undefined
        ? null
        : resolveValue(minimumReclaim, capacity),
    gracePeriodMs: threshold.gracePeriodMs,
    met: isMet,
    due: state?.due.some((one) => thresholdId(one) === id) ?? false,
    graceRemainingMs: isMet ? Math.max(0, Math.round(graceLeft)) : null,
    notification: notificationStatus(
      model.paths.get(id),
      context.kernelMemcgNotification,
      threshold,
    ),
  };
}

/** The live path of a threshold, in words that docs/reference/status.md lists. */
function notificationStatus(
  path: NotificationPath | undefined,
  wanted: boolean,
  threshold: Threshold,
) {
  const polling = (detail: string) => ({
    path: 'polling',
    levels: [] as readonly number[],
    detail,
  });
  if (SIGNALS[threshold.signal].poll !== 'memory') {
    return polling('the kernel has no event for this signal');
  }
  if (!wanted) return polling('kernel notification is off (--kernel-memcg-notification)');
  if (path?.arming === undefined) return polling(path?.degraded ?? 'nothing is armed yet');
  const { arming } = path;
  switch (arming.kind) {
    case 'alwaysMet':
      return polling(
        'the threshold is not below the capacity, or no level above 0 can tell it: met, decided at each reading',
      );
    case 'followed':
      return {
        path: 'memcg-pressure',
        levels: arming.levels,
        detail:
          'inactive file exceeds the threshold, so no level of usage tells the working set: ' +
          `reclaim events, and a poll each 5 ms while usage is above ${arming.closeAboveBytes} bytes`,
      };
    case 'armed':
      return {
        path: 'memcg-threshold',
        levels: arming.levels,
        detail: arming.late
          ? 'the threshold is under 2Mi: the crossing itself has no event'
          : (path.degraded ?? ''),
      };
  }
}

function conditionStatus(
  model: Model,
  age: (atMs: number) => number,
  wall: (atMs: number) => string,
) {
  const flaps = flapsOf(model.flapping);
  const held = new Set<NodeCondition>(model.turn?.conditions ?? []);
  const all = new Set<NodeCondition>(Object.values(SIGNALS).map(({ condition }) => condition));
  return [...all].map((type) => {
    const observedAtMs = model.turn?.state.conditionsObserved.get(type);
    const flap = flaps.find(({ condition }) => condition === type);
    return {
      type,
      status: held.has(type),
      lastObservedAgeMs: observedAtMs === undefined ? null : age(observedAtMs),
      flapping: flap === undefined ? null : { count: flap.count, since: wall(flap.sinceMs) },
    };
  });
}

function podStatus(model: Model, age: (atMs: number) => number) {
  const passedOver = model.turn?.state.passedOver;
  return rankPods('memory.available', model.pods).map((pod, index) => ({
    rank: index + 1,
    name: pod.name,
    priority: pod.priority,
    qosClass: pod.qosClass,
    workingSetBytes: pod.workingSetBytes ?? null,
    pids: pod.pids ?? null,
    disk: diskStatus(pod, age),
    requestBytes: resolveValue({ kind: 'quantity', nano: pod.memoryRequestNano, text: '' }, 0),
    gracePeriodSeconds: pod.gracePeriodSeconds ?? null,
    protected: pod.protectedBecause ?? null,
    passedOver: passedOver?.has(pod.id) ?? false,
    ageMs: age(pod.atMs),
  }));
}

/** Who came straight back, as long as that is remembered. */
function comebackStatus({ turn }: Model, { nowMs }: StatusContext, wall: (atMs: number) => string) {
  return [...(turn?.state.comebacks ?? [])].flatMap(([owner, comeback]) => {
    const { podName, returns, evictedAtMs, heldUntilMs } = comeback;
    if (returns === 0) return [];
    const heldForMs = Math.max(0, Math.round(heldUntilMs - nowMs));
    return [{ owner, pod: podName, returns, evictedAt: wall(evictedAtMs), heldForMs }];
  });
}

/** What the pod uses of the disks, and how old that is; null where it is not known. */
function diskStatus({ disk, diskSeen, atMs }: PodObservation, age: (atMs: number) => number) {
  if (disk === undefined) return null;
  const parts = [disk.root, disk.logs, disk.localVolumes];
  const isCounted = parts.every(({ inodes }) => inodes !== undefined);
  const inodes = parts.reduce((sum, part) => sum + (part.inodes ?? 0), 0);
  return {
    bytes: parts.reduce((sum, { bytes }) => sum + bytes, 0),
    inodes: isCounted ? inodes : null,
    rootBytes: disk.root.bytes,
    logsBytes: disk.logs.bytes,
    localVolumesBytes: disk.localVolumes.bytes,
    /** Of it, files that are deleted and that the pod keeps open. */
    unaccountedBytes: diskSeen?.deletedBytes ?? 0,
    isCut: diskSeen?.isCut ?? false,
    ageMs: age(diskSeen?.atMs ?? atMs),
  };
}

function evictionStatus(record: EvictionRecord, wall: (atMs: number) => string) {
  const { outcome } = record;
  const after = (atMs: number | undefined): number | null =>
    atMs === undefined ? null : Math.round((atMs - record.decidedAtMs) * 1000) / 1000;
  return {
    pod: record.podName,
    decidedAt:
      record.decidedWallMs === undefined
        ? wall(record.decidedAtMs)
        : new Date(record.decidedWallMs).toISOString(),
    hard: record.hard,
    gracePeriodMs: record.gracePeriodMs,
    message: record.message,
    annotations: record.annotations ?? {},
    outcome: outcome?.kind ?? null,
    reason: outcomeReason(outcome),
    processes: outcome?.processes ?? null,
    chargedBytes: outcome?.kind === 'evicted' ? (outcome.chargedBytes ?? null) : null,
    /** Each after the decision, ms. */
    timing: {
      firstSignalMs: after(outcome?.timing.firstSignalAtMs),
      killedMs: after(outcome?.timing.killedAtMs),
      emptyMs: after(outcome?.timing.emptyAtMs),
      endedMs: after(outcome?.timing.endedAtMs),
    },
  };
}

function eventStatus(event: EventRecord, nodeName: string, wall: (atMs: number) => string) {
  return {
    type: event.type,
    reason: event.reason,
    object: event.pod ?? nodeName,
    message: event.message,
    annotations: event.annotations,
    time: wall(event.atMs),
    since: wall(event.sinceMs),
    count: event.count,
  };
}

/** Why an eviction did not end as `evicted`. */
export function outcomeReason(outcome: EvictionOutcome | undefined): string | null {
  switch (outcome?.kind) {
    case undefined:
    case 'evicted':
      return null;
    case 'refused':
    case 'timedOut':
      return outcome.detail === undefined ? outcome.reason : `${outcome.reason}: ${outcome.detail}`;
    case 'failed':
      return outcome.error;
  }
}

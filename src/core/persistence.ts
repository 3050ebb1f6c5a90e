/**
 * What outlives a restart: from the policy's state to a snapshot, and back under the clocks of the next
 * run. Pure.
 */
import { type ConditionsObserved, heldConditions } from './conditions.ts';
import type { Decision, EvictionOutcome, EvictionRecord, EvictionTiming } from './decision.ts';
import type { FirstObserved } from './grace.ts';
import type { ImageMemory, ImageTimes } from './image-gc.ts';
import type { PodObservation } from './pod.ts';
import type { Policy } from './policy.ts';
import { type NodeCondition, SIGNALS } from './signal.ts';
import {
  KEPT_EVICTIONS,
  KEPT_IMAGE_ID,
  KEPT_IMAGES,
  type KeptEviction,
  type KeptImages,
  type KeptOutcome,
  type KeptThreshold,
  type KeptTiming,
  type Snapshot,
} from './snapshot.ts';
import { INITIAL_STATE, type InFlight, type State } from './state.ts';
import {
  compareThresholds,
  isMet,
  type Threshold,
  type ThresholdValue,
  thresholdId,
  thresholdLevel,
} from './threshold.ts';

/** So much may a snapshot seem to be of the future, ms: the clock is read to 10 ms at worst. */
export const CLOCK_SLACK_MS = 100;

/** How long a text is kept, characters; a pod's name and what is said about it may be longer. */
const TEXT_KEPT = 2000;

/** One instant on all the clocks that matter. */
export interface Moment {
  /** The daemon's own clock: CLOCK_MONOTONIC, ms. Starts anew with each boot, not with each run. */
  readonly nowMs: number;
  /** CLOCK_BOOTTIME, ms: goes on while the machine is suspended. */
  readonly bootMs: number;
  /** The wall clock, ms since 1970: for people alone. */
  readonly wallMs: number;
  /** Of this boot; empty where it is not known. */
  readonly bootId: string;
}

/** What is kept of a running daemon. */
export interface Kept {
  readonly state: State;
  /** The oldest first. */
  readonly evictions: readonly EvictionRecord[];
  /** Undefined, or left out, where images were never looked at. */
  readonly images?: ImageMemory | undefined;
}

/**
 * What is to be written.
 *
 * @param unsavedMs for how long what is observed from now on may go unwritten
 */
export function snapshotOf(
  { state, evictions, images }: Kept,
  moment: Moment,
  unsavedMs: number,
): Snapshot {
  const boot = (atMs: number): number => moment.bootMs - (moment.nowMs - atMs);
  const isDue = new Set(state.due.map(thresholdId));
  const caused = new Set(state.met.map(({ signal }) => SIGNALS[signal].condition));
  const { inFlight } = state;
  return {
    bootId: moment.bootId,
    savedAtMs: moment.bootMs,
    unsavedMs,
    thresholds: state.met.map((threshold) => ({
      id: thresholdId(threshold),
      value: valueKey(threshold.value),
      gracePeriodMs: threshold.gracePeriodMs,
      firstObservedAtMs: boot(state.firstObserved.get(thresholdId(threshold)) ?? moment.nowMs),
      due: isDue.has(thresholdId(threshold)),
    })),
    conditions: [...state.conditionsObserved].map(([type, atMs]) => ({
      type,
      lastObservedAtMs: boot(atMs),
      held: state.conditions.includes(type),
      caused: caused.has(type),
    })),
    ...(inFlight === undefined ? {} : { inFlight: keptInFlight(inFlight) }),
    evictions: evictions.slice(-KEPT_EVICTIONS).map((record) => keptEviction(record, moment)),
    ...(images === undefined ? {} : { images: keptImages(images, moment) }),
  };
}

function keptImages(images: ImageMemory, { nowMs, bootMs, wallMs }: Moment): KeptImages {
  const boot = (atMs: number): number => bootMs - (nowMs - atMs);
  const isShort = ([id]: readonly [string, ImageTimes]): boolean => id.length <= KEPT_IMAGE_ID;
  return {
    savedWallMs: wallMs,
    seen: [...images]
      .filter(isShort)
      .slice(0, KEPT_IMAGES)
      .map(([id, { firstSeenAtMs, lastUsedAtMs, wasThere }]) => ({
        id,
        firstSeenAtMs: boot(firstSeenAtMs),
        ...(lastUsedAtMs === undefined ? {} : { lastUsedAtMs: boot(lastUsedAtMs) }),
        wasThere,
      })),
  };
}

function keptInFlight({ podId, podName, signal, hard }: InFlight) {
  return { podId, podName: cut(podName), ...(signal === undefined ? {} : { signal }), hard };
}

function keptEviction(record: EvictionRecord, moment: Moment): KeptEviction {
  const agoMs = moment.nowMs - record.decidedAtMs;
  const { outcome } = record;
  return {
    podId: record.podId,
    podName: cut(record.podName),
    hard: record.hard,
    gracePeriodMs: record.gracePeriodMs,
    message: cut(record.message),
    decidedAtMs: moment.bootMs - agoMs,
    decidedWallMs: record.decidedWallMs ?? moment.wallMs - agoMs,
    ...(outcome === undefined ? {} : { outcome: keptOutcome(outcome, record.decidedAtMs) }),
  };
}

function keptOutcome(outcome: EvictionOutcome, decidedAtMs: number): KeptOutcome {
  const base = { timing: keptTiming(outcome.timing, decidedAtMs), processes: outcome.processes };
  switch (outcome.kind) {
    case 'evicted': {
      const { kind, chargedBytes } = outcome;
      return { ...base, kind, ...(chargedBytes === undefined ? {} : { chargedBytes }) };
    }
    case 'refused': {
      const { kind, reason, detail } = outcome;
      return { ...base, kind, reason, ...keptDetail(detail) };
    }
    case 'timedOut': {
      const { kind, reason, remaining, detail } = outcome;
      return { ...base, kind, reason, remaining, ...keptDetail(detail) };
    }
    case 'failed':
      return { ...base, kind: outcome.kind, error: cut(outcome.error) };
  }
}

function keptDetail(detail: string | undefined): { readonly detail?: string } {
  return detail === undefined ? {} : { detail: cut(detail) };
}

function keptTiming(timing: EvictionTiming, decidedAtMs: number): KeptTiming {
  const stage = (name: string, atMs: number | undefined) =>
    atMs === undefined ? {} : { [name]: atMs - decidedAtMs };
  return {
    ...stage('firstSignalMs', timing.firstSignalAtMs),
    ...stage('killedMs', timing.killedAtMs),
    ...stage('emptyMs', timing.emptyAtMs),
    endedMs: timing.endedAtMs - decidedAtMs,
  };
}

function cut(text: string): string {
  return text.length > TEXT_KEPT ? `${text.slice(0, TEXT_KEPT)}…` : text;
}

/** A threshold's value as it is compared over a restart: 1Gi is 1024Mi. */
export function valueKey(value: ThresholdValue): string {
  switch (value.kind) {
    case 'quantity':
      return `quantity ${value.nano}n`;
    case 'percentage':
      return `percentage ${value.nanoPercent}n`;
    case 'fraction':
      return `fraction ${value.fraction}`;
  }
}

/**
 * What a snapshot comes to under this policy, at this moment.
 *
 * Of the same boot: a threshold of the same value and grace is met, and due, as it was, and has been for
 * as long as when that was written, so that no time counts in which evictd did not run. A condition was
 * last observed when it was, or, where it was still caused, when it may have been at the latest: the time
 * in between counts. The eviction in flight is still in flight where its pod is there.
 *
 * Of another boot: no threshold is met, and no eviction runs. When a condition was last observed is not to
 * be told on this boot's clock, so that one that held counts as observed now: it holds for one transition
 * period from here.
 *
 * An eviction that cannot be in flight any more has ended as `interrupted`. Images are as old as they were, and
 * older by the time in which evictd did not run.
 *
 * @param isListed whether a pod of this id is there
 */
export function restored(
  snapshot: Snapshot,
  policy: Policy,
  moment: Moment,
  isListed: (podId: string) => boolean,
): Kept {
  const same = isSameBoot(snapshot, moment);
  const met = same ? policy.thresholds.filter((one) => keptOf(snapshot, one) !== undefined) : [];
  const due = met.filter((threshold) => keptOf(snapshot, threshold)?.due === true);
  const conditionsObserved = restoredConditions(snapshot, policy, moment, same);
  const inFlight = same ? restoredInFlight(snapshot, isListed) : undefined;
  return {
    state: {
      ...INITIAL_STATE,
      met,
      due,
      firstObserved: restoredFirstObserved(snapshot, met, moment.nowMs),
      conditionsObserved,
      conditions: heldConditions(
        conditionsObserved,
        policy.pressureTransitionPeriodMs,
        moment.nowMs,
      ),
      inFlight,
    },
    evictions: restoredEvictions(snapshot, moment, same, inFlight),
    images: restoredImages(snapshot, moment, same),
  };
}

/** Of another boot they are as old as they were, and older by what the wall clock says. */
function restoredImages(
  { images, savedAtMs }: Snapshot,
  moment: Moment,
  same: boolean,
): ImageMemory | undefined {
  if (images === undefined) return undefined;
  const sinceMs = same ? moment.bootMs - savedAtMs : moment.wallMs - images.savedWallMs;
  const monotonic = (atMs: number): number =>
    moment.nowMs - Math.max(0, sinceMs) - (savedAtMs - atMs);
  return new Map(
    images.seen.map(({ id, firstSeenAtMs, lastUsedAtMs, wasThere }) => [
      id,
      {
        firstSeenAtMs: monotonic(firstSeenAtMs),
        lastUsedAtMs: lastUsedAtMs === undefined ? undefined : monotonic(lastUsedAtMs),
        wasThere,
      },
    ]),
  );
}

/** A snapshot of the future is of a clock that is not this one, whatever the boot is called. */
export function isSameBoot(
  { bootId, savedAtMs }: Pick<Snapshot, 'bootId' | 'savedAtMs'>,
  moment: Pick<Moment, 'bootId' | 'bootMs'>,
): boolean {
  return bootId !== '' && bootId === moment.bootId && savedAtMs <= moment.bootMs + CLOCK_SLACK_MS;
}

function keptOf({ thresholds }: Snapshot, threshold: Threshold): KeptThreshold | undefined {
  return thresholds.find(
    ({ id, value, gracePeriodMs }) =>
      id === thresholdId(threshold) &&
      value === valueKey(threshold.value) &&
      gracePeriodMs === threshold.gracePeriodMs,
  );
}

function restoredFirstObserved(
  snapshot: Snapshot,
  met: readonly Threshold[],
  nowMs: number,
): FirstObserved {
  return new Map(
    met.map((threshold) => {
      const { firstObservedAtMs } = keptOf(snapshot, threshold) as KeptThreshold;
      return [thresholdId(threshold), nowMs - (snapshot.savedAtMs - firstObservedAtMs)];
    }),
  );
}

function restoredConditions(
  { conditions, savedAtMs, unsavedMs }: Snapshot,
  { pressureTransitionPeriodMs }: Policy,
  { nowMs, bootMs }: Moment,
  same: boolean,
): ConditionsObserved {
  // What is observed at this instant holds, and nothing is held for no time.
  if (pressureTransitionPeriodMs === 0) return new Map();
  const monotonic = (atMs: number): number => Math.min(nowMs, nowMs - (bootMs - atMs));
  return new Map(
    conditions.flatMap(({ type, lastObservedAtMs, held, caused }): [NodeCondition, number][] => {
      if (!same) return held ? [[type, nowMs]] : [];
      return [[type, monotonic(caused ? savedAtMs + unsavedMs : lastObservedAtMs)]];
    }),
  );
}

function restoredInFlight(
  { inFlight, evictions }: Snapshot,
  isListed: (podId: string) => boolean,
): InFlight | undefined {
  if (inFlight === undefined) return undefined;
  const { podId, podName, signal, hard } = inFlight;
  const isOpen = evictions.some((one) => one.podId === podId && one.outcome === undefined);
  return isOpen && isListed(podId) ? { podId, podName, signal, hard } : undefined;
}

function restoredEvictions(
  { evictions }: Snapshot,
  moment: Moment,
  same: boolean,
  inFlight: InFlight | undefined,
): readonly EvictionRecord[] {
  const running = evictions.findLastIndex(
    ({ podId, outcome }) => podId === inFlight?.podId && outcome === undefined,
  );
  return evictions.map((kept, index) => {
    // Only the distance matters to what is worked out from it: people are shown the wall clock's time.
    const agoMs = same
      ? moment.bootMs - kept.decidedAtMs
      : Math.max(0, moment.wallMs - kept.decidedWallMs);
    const decidedAtMs = moment.nowMs - agoMs;
    return {
      podId: kept.podId,
      podName: kept.podName,
      hard: kept.hard,
      gracePeriodMs: kept.gracePeriodMs,
      message: kept.message,
      decidedAtMs,
      decidedWallMs: kept.decidedWallMs,
      outcome: index === running ? undefined : restoredOutcome(kept, decidedAtMs),
    };
  });
}

function restoredOutcome(kept: KeptEviction, decidedAtMs: number): EvictionOutcome {
  const { podId, podName, outcome } = kept;
  if (outcome === undefined) return interrupted(kept, decidedAtMs, decidedAtMs);
  const { firstSignalMs, killedMs, emptyMs, endedMs } = outcome.timing;
  const after = (ms: number | undefined) => (ms === undefined ? undefined : decidedAtMs + ms);
  const timing: EvictionTiming = {
    decidedAtMs,
    firstSignalAtMs: after(firstSignalMs),
    killedAtMs: after(killedMs),
    emptyAtMs: after(emptyMs),
    endedAtMs: decidedAtMs + endedMs,
  };
  const base = { ...outcome, podId, podName, timing };
  return base.kind === 'evicted' ? { ...base, chargedBytes: base.chargedBytes } : base;
}

/** How an eviction ended whose evictd ended first: what the pod was sent stays sent. */
export function interrupted(
  { podId, podName }: Pick<EvictionRecord, 'podId' | 'podName'>,
  decidedAtMs: number,
  endedAtMs: number,
): EvictionOutcome {
  return {
    podId,
    podName,
    kind: 'refused',
    reason: 'interrupted',
    processes: 0,
    timing: {
      decidedAtMs,
      firstSignalAtMs: undefined,
      killedAtMs: undefined,
      emptyAtMs: undefined,
      endedAtMs,
    },
  };
}

/**
 * The eviction that a former run began and that is still called for: its pod is there and may be
 * evicted, and a threshold of its signal is due. What is left of the pod's grace goes on from where it was
 * promised. Undefined for one that is not to be taken up again.
 *
 * @param seen the first turn of this run
 */
export function resumedEviction(
  seen: { readonly state: State; readonly pods: readonly PodObservation[]; readonly nowMs: number },
  record: EvictionRecord,
): Extract<Decision, { kind: 'evict' }> | undefined {
  const { state, pods, nowMs } = seen;
  const { inFlight } = state;
  const pod = pods.find(({ id }) => id === record.podId);
  if (inFlight === undefined || pod === undefined || pod.protectedBecause !== undefined)
    return undefined;
  const observation = state.observations.find(({ signal }) => signal === inFlight.signal);
  if (observation === undefined) return undefined;
  const [threshold] = state.due
    .filter(({ signal }) => signal === inFlight.signal)
    .sort((one, other) =>
      compareThresholds({ threshold: one, observation }, { threshold: other, observation }),
    );
  if (threshold === undefined) return undefined;
  const reclaiming = !isMet(threshold, observation, false);
  const gracePeriodMs = Math.max(0, record.decidedAtMs + record.gracePeriodMs - nowMs);
  return {
    kind: 'evict',
    pod,
    hard: inFlight.hard,
    gracePeriodMs,
    gracePeriodSeconds: Math.ceil(gracePeriodMs / 1000),
    cause: {
      threshold,
      observation,
      level: thresholdLevel(threshold, observation.capacity, reclaiming),
      reclaiming,
    },
    message: record.message,
    annotations: {},
    condition: undefined,
  };
}

/** How often a condition that is still caused is written again: so many times in its period. */
const REFRESHES = 30;
/** The shortest and the longest time between two writings of what only goes on, ms. */
export const REFRESH_MS = { least: 1000, most: 60_000 } as const;

/**
 * How soon what only goes on is written again, ms: the progress of a grace each second, when a condition
 * was last observed a few times in its transition period; undefined while nothing is met.
 */
export function refreshMs(state: State, pressureTransitionPeriodMs: number): number | undefined {
  if (state.met.length === 0) return undefined;
  if (state.met.length > state.due.length) return REFRESH_MS.least;
  const ms = pressureTransitionPeriodMs / REFRESHES;
  return Math.min(Math.max(ms, REFRESH_MS.least), REFRESH_MS.most);
}

/** What has changed since something was written, by how soon it should be. */
export type Change = 'eviction' | 'threshold' | 'none';

/** What is written at the start of a run: what it was given, before it has seen anything. */
export function beforeAnything({ evictions, images }: Kept): Kept {
  return { state: INITIAL_STATE, evictions, images };
}

/**
 * Whether what is kept has changed, but for the progress of what goes on. An eviction, or a condition that
 * comes or goes, is more than a threshold: right at one a reading wavers.
 */
export function changeOf(written: Kept, now: Kept): Change {
  const [before, after] = [written.state, now.state];
  if (
    written.evictions !== now.evictions ||
    before.inFlight?.podId !== after.inFlight?.podId ||
    before.inFlight?.hard !== after.inFlight?.hard ||
    !isSame(before.conditions, after.conditions)
  ) {
    return 'eviction';
  }
  return written.images === now.images &&
    isSame(before.met, after.met) &&
    isSame(before.due, after.due) &&
    // While something is met this goes on at each reading.
    (after.met.length > 0 || isSameTimes(before.conditionsObserved, after.conditionsObserved))
    ? 'none'
    : 'threshold';
}

function isSameTimes(before: ConditionsObserved, now: ConditionsObserved): boolean {
  return before.size === now.size && [...now].every(([type, atMs]) => before.get(type) === atMs);
}

/** Asked at each turn. */
function isSame<T>(before: readonly T[], now: readonly T[]): boolean {
  return before.length === now.length && before.every((one, at) => one === now[at]);
}

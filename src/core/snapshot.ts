/** What is kept over a restart, as JSON has it: its shape, and the check of what a file gives. */
import type { EvictionOutcome, RefusalReason } from './decision.ts';
import { isSignal, type NodeCondition, SIGNALS, type Signal } from './signal.ts';
import type { ThresholdId } from './threshold.ts';

/** How many evictions are kept; the oldest are forgotten beyond it. */
export const KEPT_EVICTIONS = 100;

/** How many images are kept; what is beyond it counts as seen first after a restart. */
export const KEPT_IMAGES = 2000;

/** How long the id of one may be that is kept, characters: a digest with the name of its kind. */
export const KEPT_IMAGE_ID = 200;

/** How many thresholds and conditions a snapshot may have: more than there can be. */
export const KEPT_LIMIT = 100;

/** How long a text of a snapshot may be, characters: a path of Linux and what is said about it. */
export const KEPT_TEXT = 10_000;

/** A threshold that was met. */
export interface KeptThreshold {
  readonly id: ThresholdId;
  /** As `valueKey` writes it: another value makes it another threshold. */
  readonly value: string;
  readonly gracePeriodMs: number;
  /** CLOCK_BOOTTIME, ms. */
  readonly firstObservedAtMs: number;
  /** Past its grace, and not regained since. */
  readonly due: boolean;
}

/** A node condition that was observed once. */
export interface KeptCondition {
  readonly type: NodeCondition;
  /** CLOCK_BOOTTIME, ms. */
  readonly lastObservedAtMs: number;
  /** Whether it held when this was written. */
  readonly held: boolean;
  /** Whether a threshold caused it right then, so that it may have been observed since. */
  readonly caused: boolean;
}

/** The eviction that was running. */
export interface KeptInFlight {
  readonly podId: string;
  readonly podName: string;
  readonly signal?: Signal;
  readonly hard: boolean;
}

/** When the stages of an eviction were reached, ms after its decision. */
export interface KeptTiming {
  readonly firstSignalMs?: number;
  readonly killedMs?: number;
  readonly emptyMs?: number;
  readonly endedMs: number;
}

type OutcomeOf<Kind> = Extract<EvictionOutcome, { kind: Kind }>;
type Plain<Kind, Field extends keyof OutcomeOf<Kind>> = Pick<OutcomeOf<Kind>, Field>;

/** How an eviction ended; what its pod is called stands beside it. */
export type KeptOutcome = { readonly timing: KeptTiming; readonly processes: number } & (
  | { readonly kind: 'evicted'; readonly chargedBytes?: number }
  | Plain<'refused', 'kind' | 'reason' | 'detail'>
  | Plain<'timedOut', 'kind' | 'reason' | 'remaining' | 'detail'>
  | Plain<'failed', 'kind' | 'error'>
);

/** An eviction that was decided, and how it ended once it has. */
export interface KeptEviction {
  readonly podId: string;
  readonly podName: string;
  readonly hard: boolean;
  readonly gracePeriodMs: number;
  readonly message: string;
  /** CLOCK_BOOTTIME, ms; may be negative where it is older than the boot. */
  readonly decidedAtMs: number;
  /** The wall clock's time of that, ms since 1970. */
  readonly decidedWallMs: number;
  readonly outcome?: KeptOutcome;
}

/** An image, and since when it is known. */
export interface KeptImage {
  readonly id: string;
  /** CLOCK_BOOTTIME, ms; may be negative where it is older than the boot. */
  readonly firstSeenAtMs: number;
  /** The same; left out for one that nobody was seen to use. */
  readonly lastUsedAtMs?: number;
  readonly wasThere: boolean;
}

/** The images of the node's runtime, by two clocks: ages go on over a reboot. */
export interface KeptImages {
  /** The wall clock at the writing, ms since 1970. */
  readonly savedWallMs: number;
  readonly seen: readonly KeptImage[];
}

/** All that is kept; plain data, the same before and after JSON. */
export interface Snapshot {
  /** Of the boot that the times are of; empty where it was not known. */
  readonly bootId: string;
  /** When it was written, CLOCK_BOOTTIME, ms. */
  readonly savedAtMs: number;
  /**
   * For how long what was observed afterwards may have gone unwritten, ms: 0 at an orderly end. A
   * condition that was caused counts as observed until then.
   */
  readonly unsavedMs: number;
  readonly thresholds: readonly KeptThreshold[];
  readonly conditions: readonly KeptCondition[];
  readonly inFlight?: KeptInFlight;
  /** The oldest first. */
  readonly evictions: readonly KeptEviction[];
  /** Left out where images were never looked at, and by versions of evictd that did not. */
  readonly images?: KeptImages;
}

/** What was read, or where it is not what a snapshot is. */
export type ParsedSnapshot = { readonly snapshot: Snapshot } | { readonly fault: string };

/** Checks what JSON gave, field by field; unknown fields are left out. Never throws. */
export function parseSnapshot(value: unknown): ParsedSnapshot {
  try {
    return { snapshot: snapshotOfJson(value) };
  } catch (error) {
    if (error instanceof Fault) return { fault: error.message };
    throw error;
  }
}

/** Says where a value is not what it should be. */
class Fault extends Error {}

type Fields = Readonly<Record<string, unknown>>;
type Read<T> = (value: unknown, at: string) => T;

function snapshotOfJson(value: unknown): Snapshot {
  const fields = object(value, 'state');
  const savedAtMs = field(fields, 'savedAtMs', number, '');
  const inFlight = optional(fields, 'inFlight', inFlightOf, '');
  const images = optional(fields, 'images', imagesOf(savedAtMs), '');
  return {
    bootId: field(fields, 'bootId', text, ''),
    savedAtMs,
    unsavedMs: field(fields, 'unsavedMs', notNegative, ''),
    thresholds: field(fields, 'thresholds', list(KEPT_LIMIT, thresholdOf(savedAtMs)), ''),
    conditions: field(fields, 'conditions', list(KEPT_LIMIT, conditionOf(savedAtMs)), ''),
    ...(inFlight === undefined ? {} : { inFlight }),
    evictions: field(fields, 'evictions', list(KEPT_EVICTIONS, evictionOf), ''),
    ...(images === undefined ? {} : { images }),
  };
}

const imagesOf =
  (savedAtMs: number): Read<KeptImages> =>
  (value, at) => {
    const fields = object(value, at);
    return {
      savedWallMs: field(fields, 'savedWallMs', wallTime, at),
      seen: field(fields, 'seen', list(KEPT_IMAGES, imageOf(savedAtMs)), at),
    };
  };

const imageOf =
  (savedAtMs: number): Read<KeptImage> =>
  (value, at) => {
    const fields = object(value, at);
    const lastUsedAtMs = optional(fields, 'lastUsedAtMs', notAfter(savedAtMs), at);
    return {
      id: field(fields, 'id', text, at),
      firstSeenAtMs: field(fields, 'firstSeenAtMs', notAfter(savedAtMs), at),
      ...(lastUsedAtMs === undefined ? {} : { lastUsedAtMs }),
      wasThere: field(fields, 'wasThere', yesOrNo, at),
    };
  };

const thresholdOf =
  (savedAtMs: number): Read<KeptThreshold> =>
  (value, at) => {
    const fields = object(value, at);
    return {
      id: field(fields, 'id', thresholdIdOf, at),
      value: field(fields, 'value', text, at),
      gracePeriodMs: field(fields, 'gracePeriodMs', notNegative, at),
      firstObservedAtMs: field(fields, 'firstObservedAtMs', notAfter(savedAtMs), at),
      due: field(fields, 'due', yesOrNo, at),
    };
  };

const conditionOf =
  (savedAtMs: number): Read<KeptCondition> =>
  (value, at) => {
    const fields = object(value, at);
    return {
      type: field(fields, 'type', oneOf(CONDITIONS), at),
      lastObservedAtMs: field(fields, 'lastObservedAtMs', notAfter(savedAtMs), at),
      held: field(fields, 'held', yesOrNo, at),
      caused: field(fields, 'caused', yesOrNo, at),
    };
  };

function inFlightOf(value: unknown, at: string): KeptInFlight {
  const fields = object(value, at);
  const signal = optional(fields, 'signal', signalOf, at);
  return {
    podId: field(fields, 'podId', text, at),
    podName: field(fields, 'podName', text, at),
    ...(signal === undefined ? {} : { signal }),
    hard: field(fields, 'hard', yesOrNo, at),
  };
}

function evictionOf(value: unknown, at: string): KeptEviction {
  const fields = object(value, at);
  const outcome = optional(fields, 'outcome', outcomeOf, at);
  return {
    podId: field(fields, 'podId', text, at),
    podName: field(fields, 'podName', text, at),
    hard: field(fields, 'hard', yesOrNo, at),
    gracePeriodMs: field(fields, 'gracePeriodMs', notNegative, at),
    message: field(fields, 'message', text, at),
    decidedAtMs: field(fields, 'decidedAtMs', number, at),
    decidedWallMs: field(fields, 'decidedWallMs', wallTime, at),
    ...(outcome === undefined ? {} : { outcome }),
  };
}

function outcomeOf(value: unknown, at: string): KeptOutcome {
  const fields = object(value, at);
  const base = {
    timing: field(fields, 'timing', timingOf, at),
    processes: field(fields, 'processes', notNegative, at),
  };
  const detail = optional(fields, 'detail', text, at);
  const more = detail === undefined ? {} : { detail };
  const kind = field(fields, 'kind', oneOf(OUTCOME_KINDS), at);
  switch (kind) {
    case 'evicted': {
      const chargedBytes = optional(fields, 'chargedBytes', notNegative, at);
      return { ...base, kind, ...(chargedBytes === undefined ? {} : { chargedBytes }) };
    }
    case 'refused':
      return { ...base, kind, reason: field(fields, 'reason', oneOf(REFUSALS), at), ...more };
    case 'timedOut':
      return {
        ...base,
        kind,
        reason: field(fields, 'reason', oneOf(TIMEOUTS), at),
        remaining: field(fields, 'remaining', notNegative, at),
        ...more,
      };
    case 'failed':
      return { ...base, kind, error: field(fields, 'error', text, at) };
  }
}

function timingOf(value: unknown, at: string): KeptTiming {
  const fields = object(value, at);
  const stages = (['firstSignalMs', 'killedMs', 'emptyMs'] as const).flatMap((name) => {
    const ms = optional(fields, name, number, at);
    return ms === undefined ? [] : [[name, ms] as const];
  });
  return { ...Object.fromEntries(stages), endedMs: field(fields, 'endedMs', number, at) };
}

const OUTCOME_KINDS = ['evicted', 'refused', 'timedOut', 'failed'] as const;
const TIMEOUTS = ['stillDying', 'deadline'] as const;
const REFUSALS: readonly RefusalReason[] = [
  'pressureGone',
  'podGone',
  'podReplaced',
  'protected',
  'nothingToKill',
  'dryRun',
  'unsupported',
  'interrupted',
];
const CONDITIONS: readonly NodeCondition[] = [
  ...new Set(Object.values(SIGNALS).map(({ condition }) => condition)),
];

function field<T>(fields: Fields, name: string, read: Read<T>, at: string): T {
  return read(fields[name], at === '' ? name : `${at}.${name}`);
}

function optional<T>(fields: Fields, name: string, read: Read<T>, at: string): T | undefined {
  return fields[name] === undefined ? undefined : field(fields, name, read, at);
}

function object(value: unknown, at: string): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields;
  throw new Fault(`${at} is no object`);
}

const list =
  <T>(most: number, read: Read<T>): Read<readonly T[]> =>
  (value, at) => {
    if (!Array.isArray(value)) throw new Fault(`${at} is no list`);
    if (value.length > most) throw new Fault(`${at} has more than ${most} entries`);
    return value.map((item, index) => read(item, `${at}[${index}]`));
  };

function text(value: unknown, at: string): string {
  if (typeof value === 'string' && value.length <= KEPT_TEXT) return value;
  throw new Fault(`${at} is no text of at most ${KEPT_TEXT} characters`);
}

/** JSON has neither NaN nor infinity; what is too large for it comes as infinity. */
function number(value: unknown, at: string): number {
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  throw new Fault(`${at} is no number`);
}

function notNegative(value: unknown, at: string): number {
  const found = number(value, at);
  if (found >= 0) return found;
  throw new Fault(`${at} is negative`);
}

const notAfter =
  (limitMs: number): Read<number> =>
  (value, at) => {
    const found = number(value, at);
    if (found <= limitMs) return found;
    throw new Fault(`${at} is later than the state`);
  };

/** What a date can hold. Source: ECMA-262, "Time Values and Time Range". */
const MOST_WALL_MS = 8.64e15;

function wallTime(value: unknown, at: string): number {
  const found = number(value, at);
  if (Math.abs(found) <= MOST_WALL_MS) return found;
  throw new Fault(`${at} is no time`);
}

function yesOrNo(value: unknown, at: string): boolean {
  if (typeof value === 'boolean') return value;
  throw new Fault(`${at} is neither true nor false`);
}

const oneOf =
  <T extends string>(choices: readonly T[]): Read<T> =>
  (value, at) => {
    const found = choices.find((choice) => choice === value);
    if (found === undefined) throw new Fault(`${at} is none of ${choices.join(', ')}`);
    return found;
  };

function signalOf(value: unknown, at: string): Signal {
  if (typeof value === 'string' && isSignal(value)) return value;
  throw new Fault(`${at} is no signal`);
}

function thresholdIdOf(value: unknown, at: string): ThresholdId {
  const [, kind, signal = ''] = /^(hard|soft):(.*)$/.exec(text(value, at)) ?? [];
  if (kind !== undefined && isSignal(signal)) return value as ThresholdId;
  throw new Fault(`${at} names no threshold`);
}

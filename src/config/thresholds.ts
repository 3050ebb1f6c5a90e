import { describeAt, EvictdError } from '../core/errors.ts';
import { parsePercentage, parseQuantity } from '../core/quantity.ts';
import { SIGNAL_NAMES, type Signal } from '../core/signal.ts';
import type { Threshold, ThresholdValue } from '../core/threshold.ts';
import { type PlacedText, placed } from './place.ts';
import { durationWithin } from './ranges.ts';
import type { SignalTexts } from './signal-texts.ts';

/** The texts that thresholds are made of. */
export interface ThresholdTexts {
  readonly hard: SignalTexts;
  readonly soft: SignalTexts;
  readonly softGracePeriod: SignalTexts;
  readonly minimumReclaim: SignalTexts;
  /** Whether all pods share one parent that is not the node's own cgroup. */
  readonly podsHaveParent: boolean;
}

/** Thresholds in the signals' order, hard before soft, and what a person should know of them. */
export interface CheckedThresholds {
  readonly thresholds: readonly Threshold[];
  readonly warnings: readonly string[];
  readonly notes: readonly string[];
}

const ZERO_PERCENT = parsePercentage('0%');
const HUNDRED_PERCENT = parsePercentage('100%');

const parseGracePeriodMs = durationWithin({ min: 0, max: Number.POSITIVE_INFINITY });

/**
 * Makes the thresholds, each checked. Every text is read, also one that no threshold uses. A
 * percentage equal to 0 or 100 switches its threshold or minimum reclaim off.
 *
 * @throws EvictdError EVICTD_THRESHOLD for a level that is not above zero, a negative minimum
 * reclaim, or a soft threshold without grace period; EVICTD_QUANTITY, EVICTD_PERCENTAGE,
 * EVICTD_DURATION for a negative grace period too
 * @see kubelet `eviction/helpers.go`, `ParseThresholdConfig`
 */
export function checkThresholds(texts: ThresholdTexts): CheckedThresholds {
  const { podsHaveParent } = texts;
  const hard = withAllocatable(parseEach(texts.hard, parseLevel), texts.hard, podsHaveParent);
  const soft = parseEach(texts.soft, parseLevel);
  const gracePeriodsMs = parseEach(texts.softGracePeriod, parseGracePeriodMs);
  const minimumReclaims = withAllocatable(
    parseEach(texts.minimumReclaim, parseMinimumReclaim),
    texts.minimumReclaim,
    podsHaveParent,
  );
  const thresholds: Threshold[] = [];
  for (const signal of SIGNAL_NAMES) {
    const minimumReclaim = minimumReclaims.get(signal);
    const [hardValue, softValue] = [hard.get(signal), soft.get(signal)];
    if (hardValue !== undefined) {
      thresholds.push({ signal, kind: 'hard', value: hardValue, gracePeriodMs: 0, minimumReclaim });
    }
    if (softValue !== undefined) {
      const gracePeriodMs =
        gracePeriodsMs.get(signal) ?? refuseWithoutGrace(texts.soft.get(signal));
      thresholds.push({ signal, kind: 'soft', value: softValue, gracePeriodMs, minimumReclaim });
    }
  }
  return {
    thresholds,
    warnings: warningsOf(texts, thresholds),
    notes: notesOf(texts, thresholds),
  };
}

/**
 * What the pods may use together has the node's hard threshold as well, unless it was given one of
 * its own. Source: kubelet `eviction/helpers.go`, `addAllocatableThresholds`.
 */
function withAllocatable<T>(
  values: ReadonlyMap<Signal, T>,
  texts: SignalTexts,
  podsHaveParent: boolean,
): ReadonlyMap<Signal, T> {
  const ofNode = values.get('memory.available');
  if (!podsHaveParent || ofNode === undefined || texts.has('allocatableMemory.available'))
    return values;
  return new Map(values).set('allocatableMemory.available', ofNode);
}

/** Whether the pods' own memory is watched, which depends on where they lie. */
function notesOf({ podsHaveParent }: ThresholdTexts, thresholds: readonly Threshold[]): string[] {
  const isHard = thresholds.some(
    ({ signal, kind }) => signal === 'memory.available' && kind === 'hard',
  );
  if (podsHaveParent || !isHard) return [];
  return ['allocatableMemory.available has no threshold: the pods have no parent of their own'];
}

/** Parses each text; a signal whose parser says undefined is left out. */
function parseEach<T>(
  texts: SignalTexts,
  parse: (text: string) => T | undefined,
): ReadonlyMap<Signal, T> {
  const values = new Map<Signal, T>();
  for (const [signal, { text, place }] of texts) {
    const value = placed(place, () => parse(text));
    if (value !== undefined) values.set(signal, value);
  }
  return values;
}

function parseLevel(text: string): ThresholdValue | undefined {
  const value = parseValue(text);
  if (value?.kind === 'quantity' && value.nano <= 0n) {
    throw new EvictdError('EVICTD_THRESHOLD', 'a threshold must be above zero', { value: text });
  }
  return value;
}

function parseMinimumReclaim(text: string): ThresholdValue | undefined {
  const value = parseValue(text);
  if (value?.kind === 'quantity' && value.nano < 0n) {
    throw new EvictdError('EVICTD_THRESHOLD', 'a minimum reclaim cannot be negative', {
      value: text,
    });
  }
  return value;
}

/** Anything with a `%` is meant as a percentage, well-formed or not. */
function parseValue(text: string): ThresholdValue | undefined {
  if (!text.includes('%')) return { kind: 'quantity', nano: parseQuantity(text), text };
  const nanoPercent = parsePercentage(text);
  const off = nanoPercent === ZERO_PERCENT || nanoPercent === HUNDRED_PERCENT;
  return off ? undefined : { kind: 'percentage', nanoPercent, text };
}

function refuseWithoutGrace(soft: PlacedText | undefined): never {
  const message = 'a soft threshold needs its grace period in --eviction-soft-grace-period';
  throw new EvictdError('EVICTD_THRESHOLD', message, soft?.place);
}

function warningsOf(texts: ThresholdTexts, thresholds: readonly Threshold[]): readonly string[] {
  const has = (signal: Signal, applies: (threshold: Threshold) => boolean) =>
    thresholds.some((threshold) => threshold.signal === signal && applies(threshold));
  return [
    ...[texts.hard, texts.soft, texts.minimumReclaim].flatMap((some) =>
      warnWhere(some, '100% means off, as 0% does', (_, text) => isHundredPercent(text)),
    ),
    ...warnWhere(
      texts.softGracePeriod,
      'with a grace period of 0 the soft threshold acts like a hard one',
      (signal) => has(signal, ({ kind, gracePeriodMs }) => kind === 'soft' && gracePeriodMs === 0),
    ),
    ...warnWhere(
      texts.softGracePeriod,
      'not used: the signal has no soft threshold',
      (signal) => !has(signal, ({ kind }) => kind === 'soft'),
    ),
    ...warnWhere(
      texts.minimumReclaim,
      'not used: the signal has no threshold',
      (signal) => !has(signal, () => true),
    ),
    ...warnWhere(texts.soft, 'never acts before the hard threshold, which is no lower', (signal) =>
      isSoftBelowHard(thresholds, signal),
    ),
    ...(texts.podsHaveParent
      ? []
      : [texts.hard, texts.soft].flatMap((some) =>
          warnWhere(
            some,
            'never met: the pods have no parent of their own',
            (signal) => signal === 'allocatableMemory.available',
          ),
        )),
    ...(thresholds.length === 0 ? ['no eviction threshold is left: nothing will be evicted'] : []),
  ];
}

/** Only values of one kind compare without a capacity. */
function isSoftBelowHard(thresholds: readonly Threshold[], signal: Signal): boolean {
  const levelOf = (kind: Threshold['kind']) =>
    thresholds.find((threshold) => threshold.signal === signal && threshold.kind === kind)?.value;
  const [hard, soft] = [levelOf('hard'), levelOf('soft')];
  if (hard?.kind === 'quantity') return soft?.kind === 'quantity' && soft.nano <= hard.nano;
  if (hard?.kind !== 'percentage') return false;
  return soft?.kind === 'percentage' && soft.nanoPercent <= hard.nanoPercent;
}

function warnWhere(
  texts: SignalTexts,
  message: string,
  applies: (signal: Signal, text: string) => boolean,
): readonly string[] {
  return [...texts]
    .filter(([signal, { text }]) => applies(signal, text))
    .map(([, { place }]) => describeAt(place, message));
}

function isHundredPercent(text: string): boolean {
  return text.includes('%') && parsePercentage(text) === HUNDRED_PERCENT;
}

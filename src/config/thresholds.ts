import { describeAt, EvictdError } from '../core/errors.ts';
import type { Compatibility } from '../core/policy.ts';
import { parsePercentage, parseQuantity } from '../core/quantity.ts';
import {
  FILESYSTEMS,
  type FilesystemName,
  SIGNAL_NAMES,
  SIGNALS,
  type Signal,
} from '../core/signal.ts';
import type { Threshold, ThresholdValue } from '../core/threshold.ts';
import { parseKubeletPercentage } from './kubelet-percentage.ts';
import { type PlacedText, placed } from './place.ts';
import { durationWithin } from './ranges.ts';
import type { SignalTexts } from './signal-texts.ts';

/** The texts that thresholds are made of. */
export interface ThresholdTexts {
  readonly hard: SignalTexts;
  readonly soft: SignalTexts;
  readonly softGracePeriod: SignalTexts;
  readonly minimumReclaim: SignalTexts;
  /** Whose rules hold for what a text may be. */
  readonly compatibility: Compatibility;
  /** Whether all pods share one parent that is not the node's own cgroup. */
  readonly podsHaveParent: boolean;
  /** Whether what the pods may use together is to have thresholds. */
  readonly enforcesPods: boolean;
  /** Whether each filesystem is there to be measured. */
  readonly hasFilesystem: Readonly<Record<FilesystemName, boolean>>;
}

/** Thresholds in the signals' order, hard before soft, and what a person should know of them. */
export interface CheckedThresholds {
  readonly thresholds: readonly Threshold[];
  readonly warnings: readonly string[];
  readonly notes: readonly string[];
}

const parseGracePeriodMs = durationWithin({ min: 0, max: Number.POSITIVE_INFINITY });

/**
 * Makes the thresholds, each checked. Every text is read, also one that no threshold uses. By evictd's
 * own rules a percentage equal to 0 or 100 switches its threshold or minimum reclaim off; by the
 * kubelet's only `0%` and `100%` in these spellings do, and of a threshold alone.
 *
 * @throws EvictdError EVICTD_THRESHOLD for a level that is not above zero, a negative minimum
 * reclaim, or a soft threshold without grace period; EVICTD_QUANTITY, EVICTD_PERCENTAGE,
 * EVICTD_DURATION for a negative grace period too
 * @see kubelet `eviction/helpers.go`, `ParseThresholdConfig`
 */
export function checkThresholds(texts: ThresholdTexts): CheckedThresholds {
  const { level, reclaim } = RULES[texts.compatibility];
  const gracePeriodsMs = parseEach(texts.softGracePeriod, parseGracePeriodMs);
  const softValues = parseEach(texts.soft, level);
  const hardValues = parseEach(texts.hard, level);
  const minimumReclaims = parseEach(texts.minimumReclaim, reclaim);
  const graceOf = (signal: Signal): number =>
    gracePeriodsMs.get(signal) ?? refuseWithoutGrace(texts.soft.get(signal));
  const named = SIGNAL_NAMES.flatMap((signal): readonly Threshold[] => {
    const minimumReclaim = minimumReclaims.get(signal);
    const [hard, soft] = [hardValues.get(signal), softValues.get(signal)];
    return [
      ...(hard === undefined
        ? []
        : [{ signal, kind: 'hard', value: hard, gracePeriodMs: 0, minimumReclaim } as const]),
      ...(soft === undefined
        ? []
        : [
            {
              signal,
              kind: 'soft',
              value: soft,
              gracePeriodMs: graceOf(signal),
              minimumReclaim,
            } as const,
          ]),
    ];
  });
  const thresholds = withAllocatable(named, texts);
  return {
    thresholds,
    warnings: warningsOf(texts, thresholds),
    notes: notesOf(texts, thresholds),
  };
}

/**
 * What the pods may use together has the node's hard threshold as well, with its minimum reclaim; a soft
 * one without a grace is a hard one. Unless it was given one of its own: to the kubelet beside that.
 * Source: kubelet `eviction/helpers.go`, `addAllocatableThresholds`.
 */
function withAllocatable(
  thresholds: readonly Threshold[],
  { podsHaveParent, enforcesPods, compatibility, hard, soft }: ThresholdTexts,
): readonly Threshold[] {
  if (!podsHaveParent || !enforcesPods) return thresholds;
  const signal = 'allocatableMemory.available';
  const isOwn = { hard: hard.has(signal), soft: soft.has(signal) };
  const copies = thresholds
    .filter((one) => one.signal === 'memory.available' && one.gracePeriodMs === 0)
    .filter(({ kind }) => compatibility === 'kubelet' || !isOwn[kind])
    .map((one): Threshold => ({ ...one, signal }));
  return [...thresholds, ...copies].sort(inOrder);
}

/** The signals' order, hard before soft; what is copied comes last. */
function inOrder(left: Threshold, right: Threshold): number {
  const bySignal = SIGNALS[left.signal].order - SIGNALS[right.signal].order;
  return bySignal || Number(left.kind === 'soft') - Number(right.kind === 'soft');
}

/** What is not watched, though one might think so, because of where pods and files lie. */
function notesOf(texts: ThresholdTexts, thresholds: readonly Threshold[]): readonly string[] {
  const isHard = thresholds.some(
    ({ signal, kind }) => signal === 'memory.available' && kind === 'hard',
  );
  return [
    ...(isHard && !texts.podsHaveParent
      ? ['allocatableMemory.available has no threshold: the pods have no parent of their own']
      : []),
    ...FILESYSTEMS.filter((name) => !texts.hasFilesystem[name]).flatMap((name) =>
      absentNotes(name, thresholds),
    ),
  ];
}

function absentNotes(name: FilesystemName, thresholds: readonly Threshold[]): readonly string[] {
  const named = thresholds.flatMap(({ signal }) =>
    SIGNALS[signal].filesystem === name ? [signal] : [],
  );
  if (named.length === 0) return [];
  return [
    `${[...new Set(named)].join(', ')}: not watched, there is no ${name} without --${name}-path`,
  ];
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

/** What a text is; undefined for what is off. */
type ValueParser = (text: string) => ThresholdValue | undefined;

const RULES: Readonly<Record<Compatibility, { level: ValueParser; reclaim: ValueParser }>> = {
  evictd: {
    level: (text) => (isPercentage(text) ? parseOwnPercentage(text) : parseLevel(text)),
    reclaim: (text) => (isPercentage(text) ? parseOwnPercentage(text) : parseReclaim(text)),
  },
  kubelet: {
    level: (text) => (text.endsWith('%') ? parseKubeletLevel(text) : parseLevel(text)),
    reclaim: (text) => (text.endsWith('%') ? parseKubeletReclaim(text) : parseReclaim(text)),
  },
};

/** Anything with a `%` is meant as a percentage, well-formed or not. */
function isPercentage(text: string): boolean {
  return text.includes('%');
}

function parseLevel(text: string): ThresholdValue {
  const nano = parseQuantity(text);
  if (nano > 0n) return { kind: 'quantity', nano, text };
  throw new EvictdError('EVICTD_THRESHOLD', 'a threshold must be above zero', { value: text });
}

function parseReclaim(text: string): ThresholdValue {
  const nano = parseQuantity(text);
  if (nano >= 0n) return { kind: 'quantity', nano, text };
  const message = 'a minimum reclaim cannot be negative';
  throw new EvictdError('EVICTD_THRESHOLD', message, { value: text });
}

function parseOwnPercentage(text: string): ThresholdValue | undefined {
  const nanoPercent = parsePercentage(text);
  return OFF_PERCENT.includes(nanoPercent) ? undefined : { kind: 'percentage', nanoPercent, text };
}

const HUNDRED_PERCENT = parsePercentage('100%');
const OFF_PERCENT = [parsePercentage('0%'), HUNDRED_PERCENT];

/** The spellings that the kubelet takes for off. */
const KUBELET_OFF = ['0%', '100%'];

/** Source: kubelet `eviction/helpers.go`, `parseThresholdStatement`. */
function parseKubeletLevel(text: string): ThresholdValue | undefined {
  if (KUBELET_OFF.includes(text)) return undefined;
  const fraction = parseKubeletPercentage(text);
  // Nothing is below it, as nothing is below 0.
  if (Number.isNaN(fraction)) return undefined;
  if (fraction >= 0 && fraction <= 1) return { kind: 'fraction', fraction, text };
  const message = fraction < 0 ? 'below 0%' : 'above 100%';
  throw new EvictdError('EVICTD_PERCENTAGE', message, { value: text });
}

/**
 * Source: kubelet `eviction/helpers.go`, `parseMinimumReclaims`: above zero, and more than the capacity
 * where somebody wants that. What it would take for NaN and infinity is anybody's guess.
 */
function parseKubeletReclaim(text: string): ThresholdValue {
  const fraction = parseKubeletPercentage(text);
  if (fraction > 0 && Number.isFinite(fraction)) return { kind: 'fraction', fraction, text };
  const message = 'a minimum reclaim in percent must be above 0%';
  throw new EvictdError('EVICTD_PERCENTAGE', message, { value: text });
}

function refuseWithoutGrace(soft: PlacedText | undefined): never {
  const message =
    'a soft threshold needs its grace period in evictionSoftGracePeriod (--eviction-soft-grace-period)';
  throw new EvictdError('EVICTD_THRESHOLD', message, soft?.place);
}

function warningsOf(texts: ThresholdTexts, thresholds: readonly Threshold[]): readonly string[] {
  const has = (signal: Signal, applies: (threshold: Threshold) => boolean) =>
    thresholds.some((threshold) => threshold.signal === signal && applies(threshold));
  return [
    ...PERCENT_WARNINGS[texts.compatibility](texts),
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

/** What may be meant otherwise than it is read. */
const PERCENT_WARNINGS: Readonly<
  Record<Compatibility, (texts: ThresholdTexts) => readonly string[]>
> = {
  evictd: ({ hard, soft, minimumReclaim }) =>
    [hard, soft, minimumReclaim].flatMap((some) =>
      warnWhere(
        some,
        '100% means off, as 0% does',
        (_, text) => isPercentage(text) && parsePercentage(text) === HUNDRED_PERCENT,
      ),
    ),
  kubelet: ({ hard, soft }) =>
    [hard, soft].flatMap((some) => [
      ...warnWhere(some, '100% means off, as 0% does', (_, text) => text === '100%'),
      ...warnWhere(
        some,
        'always met: to the kubelet only 100% in this spelling is off',
        (_, text) => text !== '100%' && kubeletFraction(text) === 1,
      ),
      ...warnWhere(some, 'never met', (_, text) => {
        const fraction = text === '0%' ? undefined : kubeletFraction(text);
        return fraction === 0 || Number.isNaN(fraction);
      }),
    ]),
};

function kubeletFraction(text: string): number | undefined {
  return text.endsWith('%') ? parseKubeletPercentage(text) : undefined;
}

/** Only values of one kind compare without a capacity. */
function isSoftBelowHard(thresholds: readonly Threshold[], signal: Signal): boolean {
  const levelOf = (kind: Threshold['kind']) =>
    thresholds.find((threshold) => threshold.signal === signal && threshold.kind === kind)?.value;
  const [hard, soft] = [levelOf('hard'), levelOf('soft')];
  if (hard?.kind === 'quantity') return soft?.kind === 'quantity' && soft.nano <= hard.nano;
  if (hard?.kind === 'fraction') return soft?.kind === 'fraction' && soft.fraction <= hard.fraction;
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

import { assert, EvictdError } from './errors.ts';
import type { SignalUnit } from './signal.ts';

/** Nano-units in one unit, and nano-percent in one percent. */
const NANO = 1_000_000_000n;
const NANO_DIGITS = 9;

/** Kubernetes' largest quantity, 2^63 − 1 units, in nano-units. */
const MAX_NANO = (2n ** 63n - 1n) * NANO;

/** Nothing longer is looked at, so that no text can cost more than a short one. */
const MAX_LENGTH = 128;

/**
 * The largest power of ten taken. With {@link MAX_LENGTH} it bounds the arithmetic to some 250
 * digits: `2E6024865272343` is refused in constant time. Kubernetes takes exponents of 32 bits.
 */
const MAX_EXPONENT = 99;

const HUNDRED_PERCENT = 100n * NANO;

const QUANTITY =
  /^([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?[0-9]+))?$/;

const PERCENTAGE = /^([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))%$/;

const BINARY_SUFFIXES = {
  Ei: 60n,
  Pi: 50n,
  Ti: 40n,
  Gi: 30n,
  Mi: 20n,
  Ki: 10n,
} as const;

/** Powers of ten. `E` alone is exa; with digits after it, it is an exponent. */
const DECIMAL_SUFFIXES = {
  E: 18,
  P: 15,
  T: 12,
  G: 9,
  M: 6,
  k: 3,
  '': 0,
  m: -3,
  u: -6,
  n: -9,
} as const;

const DECIMAL_POWERS: readonly number[] = Object.values(DECIMAL_SUFFIXES);

/** How a quantity is written: bytes in powers of 1024, counts in powers of 1000, or with an exponent. */
export type QuantityFormat = 'binary' | 'decimal' | 'exponent';

/** A quantity in nano-units, and how it is written. */
export interface Quantity {
  readonly nano: bigint;
  readonly format: QuantityFormat;
}

interface Suffix {
  readonly text: string;
  readonly nano: bigint;
}

/** Each format's suffixes, largest first; the last one, `n`, divides everything. */
const FORMATS: Record<QuantityFormat, readonly Suffix[]> = {
  binary: [
    ...Object.entries(BINARY_SUFFIXES).map(([text, power]) => ({ text, nano: NANO << power })),
    ...decimalSuffixes().filter(({ nano }) => nano <= NANO),
  ],
  decimal: decimalSuffixes(),
  exponent: decimalSuffixes().map(({ nano }, index) => {
    const power = DECIMAL_POWERS[index] as number;
    return { text: power === 0 ? '' : `e${power}`, nano };
  }),
};

/**
 * Reads a Kubernetes resource quantity (`100Mi`, `0.5Gi`, `129e6`, `100m`) as nano-units.
 *
 * Exact, save where Kubernetes is not: what is finer than a nano-unit is rounded away from zero,
 * and what exceeds 2^63 − 1 units either way is capped to that. Kubernetes documents the cap for
 * every quantity but applies it to binary suffixes only; here it holds for all. Takes constant
 * time: over 128 characters, or an exponent beyond ±99, is refused. A number needs a digit, which
 * Kubernetes does not insist on (it reads `Ki` as 0).
 *
 * @throws EvictdError EVICTD_QUANTITY
 * @see apimachinery `resource.ParseQuantity`
 */
export function parseQuantity(text: string): bigint {
  return parsePlainQuantity(text) ?? parseAnyQuantity(text);
}

/**
 * Most quantities are a few digits and a usual suffix, and are read in a fraction of the time: what a suffix
 * multiplies by is a power of two, and one of ten.
 */
const PLAIN_SUFFIXES: ReadonlyMap<string, { readonly two: number; readonly ten: number }> = new Map(
  [
    ['', { two: 1, ten: 0 }],
    ['Ki', { two: 2 ** 10, ten: 0 }],
    ['Mi', { two: 2 ** 20, ten: 0 }],
    ['Gi', { two: 2 ** 30, ten: 0 }],
    ['m', { two: 1, ten: -3 }],
    ['k', { two: 1, ten: 3 }],
    ['M', { two: 1, ten: 6 }],
    ['G', { two: 1, ten: 9 }],
  ],
);

/** A double holds so many digits, times a power of two. */
const PLAIN_DIGITS = 15;

/** In nano-units: the powers of ten that the suffixes lead to, as many digits after the point as there are. */
const POWERS_OF_TEN = Array.from(
  { length: 2 * NANO_DIGITS + 1 },
  (_, power) => 10n ** BigInt(power),
);

const ZERO = '0'.charCodeAt(0);
const POINT = '.'.charCodeAt(0);

/** Undefined for any other form. */
function parsePlainQuantity(text: string): bigint | undefined {
  let value = 0;
  let count = 0;
  let pointAt: number | undefined;
  let at = 0;
  for (; count <= PLAIN_DIGITS; at += 1) {
    const code = text.charCodeAt(at);
    if (code === POINT && pointAt === undefined) {
      pointAt = at;
      continue;
    }
    const digit = code - ZERO;
    // Beyond the end it is no number.
    if (!(digit >= 0 && digit <= 9)) break;
    value = 10 * value + digit;
    count += 1;
  }
  if (count === 0 || count > PLAIN_DIGITS) return undefined;
  const suffix = PLAIN_SUFFIXES.get(text.slice(at));
  if (suffix === undefined) return undefined;
  const fraction = pointAt === undefined ? 0 : at - pointAt - 1;
  const power = POWERS_OF_TEN[suffix.ten + NANO_DIGITS - fraction];
  return power === undefined ? undefined : capped(BigInt(value * suffix.two) * power);
}

function parseAnyQuantity(text: string): bigint {
  const match = text.length > MAX_LENGTH ? null : QUANTITY.exec(text);
  if (match === null) throw refusedQuantity(text, quantityFault(text));
  const [, sign, whole = '', fraction = match[4] ?? '', , binary, decimal, exponent] = match;
  const power = exponent === undefined ? decimalPower(decimal) : Number(exponent);
  if (Math.abs(power) > MAX_EXPONENT) {
    throw refusedQuantity(text, `its exponent is beyond ±${MAX_EXPONENT}`);
  }
  const digits = BigInt(whole + fraction) << binaryPower(binary);
  const magnitude = capped(scaledUp(digits, power + NANO_DIGITS - fraction.length));
  return sign === '-' ? -magnitude : magnitude;
}

/** Below this many units, powers of 1024 are not used: `1000` is not `0.97Ki`. */
const SMALLEST_BINARY = 1024n * NANO;

/**
 * Reads a quantity together with the notation that its text has: with a binary suffix, an exponent, or
 * else a decimal one.
 *
 * @throws EvictdError EVICTD_QUANTITY
 */
export function readQuantity(text: string): Quantity {
  return { nano: parseQuantity(text), format: quantityFormat(text) };
}

/** The notation of a text that {@link parseQuantity} reads. */
export function quantityFormat(text: string): QuantityFormat {
  if (text.endsWith('i')) return 'binary';
  if (!text.includes('e') && !text.includes('E')) return 'decimal';
  return /[eE][+-]?[0-9]/.test(text) ? 'exponent' : 'decimal';
}

/** The sum, in the notation of the first that is not zero. Source: apimachinery `Quantity.Add`. */
export function addQuantities(left: Quantity, right: Quantity): Quantity {
  return {
    nano: left.nano + right.nano,
    format: left.nano === 0n ? right.format : left.format,
  };
}

/**
 * Writes a quantity as Kubernetes does: in its own notation, or, for one with powers of 1024 that is
 * small or no whole number, with decimal suffixes.
 *
 * @see apimachinery `Quantity.CanonicalizeBytes`
 */
export function canonicalQuantity({ nano, format }: Quantity): string {
  const isDecimal =
    format === 'binary' &&
    ((nano < SMALLEST_BINARY && nano > -SMALLEST_BINARY) || nano % NANO !== 0n);
  return formatQuantity(nano, isDecimal ? 'decimal' : format);
}

/**
 * Writes nano-units canonically: the largest suffix that divides them (104857600 bytes are
 * `100Mi`), so that {@link parseQuantity} reads the same value again.
 *
 * @param format powers of 1024 where it is left out
 * @see apimachinery `Quantity.CanonicalizeBytes`
 */
export function formatQuantity(nano: bigint, format: QuantityFormat = 'binary'): string {
  if (nano === 0n) return '0';
  const suffix = FORMATS[format].find((candidate) => nano % candidate.nano === 0n);
  assert(suffix !== undefined, 'one nano-unit divides every quantity');
  return `${nano / suffix.nano}${suffix.text}`;
}

/** A whole count as people read it: bytes in powers of 1024, all else in powers of 1000. */
export function formatCount(count: number, unit: SignalUnit): string {
  return formatQuantity(BigInt(count) * NANO, unit === 'bytes' ? 'binary' : 'decimal');
}

/** Powers of 1024 and of 1000, the smallest first. */
const SCALES = {
  binary: { base: 1024, suffixes: ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'] },
  decimal: { base: 1000, suffixes: ['', 'k', 'M', 'G', 'T', 'P', 'E'] },
} as const;

/** The same for a table that is read at a glance: to one digit after the point, `76.8Gi`. */
export function approximateCount(count: number, unit: SignalUnit): string {
  const { base, suffixes } = SCALES[unit === 'bytes' ? 'binary' : 'decimal'];
  let power = 0;
  // What would be written as 1024.0Mi is 1Gi.
  while (power < suffixes.length - 1 && Math.abs(count) / base ** power >= base - 0.05) power += 1;
  const scaled = count / base ** power;
  return `${Number.isInteger(scaled) ? scaled : scaled.toFixed(1).replace(/\.0$/, '')}${suffixes[power]}`;
}

/** A number of bytes, whole, as an exact quantity with a binary suffix. */
export function formatBytes(count: number): string {
  return formatCount(count, 'bytes');
}

/**
 * Reads a decimal number from 0 to 100 with exactly one `%` as nano-percent (100 % is
 * 100 000 000 000). This is evictd's own rule: the kubelet reads a 32-bit float, with exponents
 * and NaN. Digits finer than 10⁻⁹ % are refused, since they could not be kept.
 *
 * @throws EvictdError EVICTD_PERCENTAGE
 */
export function parsePercentage(text: string): bigint {
  const match = text.length > MAX_LENGTH ? null : PERCENTAGE.exec(text);
  if (match === null) {
    throw refusedPercentage(text, 'not a decimal number from 0 to 100 followed by one %');
  }
  const [, sign, whole = '', digits = match[4] ?? ''] = match;
  const fraction = digits.replace(/0+$/, '');
  if (fraction.length > NANO_DIGITS) {
    throw refusedPercentage(text, `more than ${NANO_DIGITS} digits after the point`);
  }
  const magnitude = BigInt(whole + fraction.padEnd(NANO_DIGITS, '0'));
  if (magnitude > HUNDRED_PERCENT) throw refusedPercentage(text, 'above 100%');
  if (sign === '-' && magnitude !== 0n) throw refusedPercentage(text, 'below 0%');
  return magnitude;
}

/** Writes nano-percent as the shortest decimal number with its `%`: `7.5%`. */
export function formatPercentage(nanoPercent: bigint): string {
  const fraction = `${nanoPercent % NANO}`.padStart(NANO_DIGITS, '0').replace(/0+$/, '');
  return `${nanoPercent / NANO}${fraction === '' ? '' : `.${fraction}`}%`;
}

function decimalSuffixes(): readonly Suffix[] {
  return Object.entries(DECIMAL_SUFFIXES).map(([text, power]) => ({
    text,
    nano: 10n ** BigInt(power + NANO_DIGITS),
  }));
}

function decimalPower(suffix: string | undefined): number {
  return DECIMAL_SUFFIXES[(suffix ?? '') as keyof typeof DECIMAL_SUFFIXES];
}

function binaryPower(suffix: string | undefined): bigint {
  return suffix === undefined ? 0n : BINARY_SUFFIXES[suffix as keyof typeof BINARY_SUFFIXES];
}

/** `digits` × 10^`power`, rounded up to a whole number. */
function scaledUp(digits: bigint, power: number): bigint {
  if (power >= 0) return digits * 10n ** BigInt(power);
  const divisor = 10n ** BigInt(-power);
  return (digits + divisor - 1n) / divisor;
}

function capped(magnitude: bigint): bigint {
  return magnitude > MAX_NANO ? MAX_NANO : magnitude;
}

function quantityFault(text: string): string {
  if (text === '') return 'empty, where a quantity such as 100Mi is expected';
  if (text.length > MAX_LENGTH) return `longer than ${MAX_LENGTH} characters`;
  return 'not a quantity such as 100Mi, 1.5Gi, 129e6 or 104857600';
}

function refusedQuantity(text: string, message: string): EvictdError {
  return new EvictdError('EVICTD_QUANTITY', message, { value: text });
}

function refusedPercentage(text: string, message: string): EvictdError {
  return new EvictdError('EVICTD_PERCENTAGE', message, { value: text });
}

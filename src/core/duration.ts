import { EvictdError } from './errors.ts';

/** Nanoseconds in each unit that Go knows; both micro signs are taken. */
const UNITS = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
} as const;

/** Go holds a duration in 64 bits: −2^63 to 2^63 − 1 ns, some 292 years either way. */
const LIMIT_NS = 2n ** 63n;
const LIMIT_DIGITS = 19;

const NS_PER_MS = 1_000_000n;

/** One number with its unit; a unit ends where the next number begins. */
const PART = /([0-9]+)?(?:\.([0-9]+)?)?([^0-9.]+)?/g;

/** Most durations are of this form, and need no arithmetic beyond 2^53. */
const PLAIN = /^(?:([0-9]{1,6})m)?([0-9]{1,6})(?:(ms)|(?:\.([0-9]{1,3}))?s)$/;

/**
 * Reads a Go duration (`1m30s`, `1.5h`, `500ms`, `0`) as milliseconds, which may have a fraction.
 * Takes the texts that Go takes and gives the nanoseconds that Go gives.
 *
 * @throws EvictdError EVICTD_DURATION: also when it does not fit in Go's 64 bits of nanoseconds
 * @see Go `time.ParseDuration`
 */
export function parseDuration(text: string): number {
  const plain = PLAIN.exec(text);
  if (plain !== null) {
    const [, minutes = '0', whole = '', milli, thousandths = ''] = plain;
    const ms = milli === undefined ? Number(whole + thousandths.padEnd(3, '0')) : Number(whole);
    return Number(minutes) * 60_000 + ms;
  }
  const negative = text.startsWith('-');
  const unsigned = negative || text.startsWith('+') ? text.slice(1) : text;
  if (unsigned === '0') return 0;
  if (unsigned === '') throw refused(text, 'not a duration such as 30s, 1m30s or 500ms');
  const magnitude = sumOfParts(unsigned, text);
  if (!negative && magnitude === LIMIT_NS) throw tooLong(text);
  return nsToMs(negative ? -magnitude : magnitude);
}

/**
 * Writes milliseconds as Go does: `5m0s`, `1m30s`, `500ms`, `0s`. Rounded to a nanosecond.
 *
 * @see Go `time.Duration.String`
 */
export function formatDuration(ms: number): string {
  const ns = msToNs(Math.abs(ms));
  const sign = ms < 0 && ns > 0n ? '-' : '';
  return `${sign}${ns < UNITS.s ? formatBelowSecond(ns) : formatFromSecond(ns)}`;
}

function sumOfParts(unsigned: string, text: string): bigint {
  let sum = 0n;
  for (const [part, whole = '', fraction = '', unit = ''] of unsigned.matchAll(PART)) {
    // The pattern also matches the nothing after the last part.
    if (part === '') break;
    sum += partNs(whole, fraction, unit, text);
    if (sum > LIMIT_NS) throw tooLong(text);
  }
  return sum;
}

function partNs(whole: string, fraction: string, unit: string, text: string): bigint {
  if (whole === '' && fraction === '') {
    throw refused(text, 'not a duration such as 30s, 1m30s or 500ms');
  }
  if (unit === '')
    throw refused(text, `a number lacks its unit (${Object.keys(UNITS).join(', ')})`);
  if (!isUnit(unit)) throw refused(text, `a unit is none of ${Object.keys(UNITS).join(', ')}`);
  const digits = whole.replace(/^0+/, '');
  if (digits.length > LIMIT_DIGITS) throw tooLong(text);
  return BigInt(digits) * UNITS[unit] + fractionNs(fraction, UNITS[unit]);
}

/**
 * Go computes fractions in 64-bit floats and truncates; the same operations in the same order
 * give the same nanoseconds. Digits beyond what 63 bits hold are dropped, as Go drops them.
 */
function fractionNs(fraction: string, unitNs: bigint): bigint {
  let digits = 0n;
  let scale = 1;
  for (const digit of fraction) {
    if (digits > (LIMIT_NS - 1n) / 10n) break;
    const next = digits * 10n + BigInt(digit);
    if (next > LIMIT_NS) break;
    digits = next;
    scale *= 10;
  }
  return BigInt(Math.trunc(Number(digits) * (Number(unitNs) / scale)));
}

function isUnit(text: string): text is keyof typeof UNITS {
  return Object.hasOwn(UNITS, text);
}

/** Whole milliseconds apart from the rest, so that neither is rounded by the other's size. */
function nsToMs(ns: bigint): number {
  return Number(ns / NS_PER_MS) + Number(ns % NS_PER_MS) / Number(NS_PER_MS);
}

function msToNs(ms: number): bigint {
  const wholeMs = Math.trunc(ms);
  return BigInt(wholeMs) * NS_PER_MS + BigInt(Math.round((ms - wholeMs) * Number(NS_PER_MS)));
}

function formatBelowSecond(ns: bigint): string {
  if (ns === 0n) return '0s';
  if (ns < UNITS.us) return `${ns}ns`;
  return ns < UNITS.ms ? `${decimal(ns, UNITS.us)}µs` : `${decimal(ns, UNITS.ms)}ms`;
}

function formatFromSecond(ns: bigint): string {
  const seconds = `${decimal(ns % UNITS.m, UNITS.s)}s`;
  if (ns < UNITS.m) return seconds;
  const minutes = `${(ns % UNITS.h) / UNITS.m}m${seconds}`;
  return ns < UNITS.h ? minutes : `${ns / UNITS.h}h${minutes}`;
}

/** `ns` ÷ `unitNs` (a power of ten), without trailing zeros. */
function decimal(ns: bigint, unitNs: bigint): string {
  const width = `${unitNs}`.length - 1;
  const fraction = `${ns % unitNs}`.padStart(width, '0').replace(/0+$/, '');
  return `${ns / unitNs}${fraction === '' ? '' : `.${fraction}`}`;
}

function tooLong(text: string): EvictdError {
  return refused(text, 'longer than the 2^63 ns (some 292 years) that a duration can be');
}

function refused(text: string, message: string): EvictdError {
  return new EvictdError('EVICTD_DURATION', message, { value: text });
}

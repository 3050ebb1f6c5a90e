import { EvictdError } from '../core/errors.ts';

/** Nothing longer is looked at, so that no text can cost more than a short one. */
const MAX_LENGTH = 128;

const DECIMAL = /^([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([+-]?[0-9]+))?$/;
const HEXADECIMAL =
  /^([+-]?)0[xX](?:([0-9a-fA-F]+)(?:\.([0-9a-fA-F]*))?|\.([0-9a-fA-F]+))[pP]([+-]?[0-9]+)$/;
const INFINITE = /^([+-]?)inf(?:inity)?$/i;

/** An underscore that is not between two digits, or behind `0x` and before one. */
const WRONG_UNDERSCORE = {
  decimal: /(?:^|[^0-9])_|_(?:[^0-9]|$)/,
  hexadecimal: /(?:^|[^0-9a-fA-FxX])_|_(?:[^0-9a-fA-F]|$)/,
} as const;

/** Where a power of ten or two makes 0 or infinity of any text of {@link MAX_LENGTH}. */
const MAX_POWER = 2000;

/** The bits of a 32-bit float's mantissa, the power of two of its smallest step, its largest value. */
const MANTISSA_BITS = 24;
const SMALLEST_POWER = -149;
const LARGEST = (2 - 2 ** -23) * 2 ** 127;

/**
 * Reads a percentage as the kubelet does: all `%` at the end are dropped, the rest is a 32-bit float as
 * Go reads it (exponents, hexadecimal, `Inf`, `NaN`, underscores), divided by 100 in 32 bits. Takes
 * constant time.
 *
 * @returns 0.1 for `10%`; NaN, infinities and negative numbers too, which the caller judges
 * @throws EvictdError EVICTD_PERCENTAGE
 * @see kubelet `eviction/helpers.go`, `parsePercentage`; Go `strconv.ParseFloat`
 */
export function parseKubeletPercentage(text: string): number {
  const float = text.length > MAX_LENGTH ? undefined : parseFloat32(text.replace(/%+$/, ''));
  if (float !== undefined) return Math.fround(float / 100);
  const message = 'not a number that the kubelet reads, followed by %';
  throw new EvictdError('EVICTD_PERCENTAGE', message, { value: text });
}

/** Undefined for what is no number, and for a finite one that 32 bits cannot hold. */
function parseFloat32(text: string): number | undefined {
  if (text.toLowerCase() === 'nan') return Number.NaN;
  const infinite = INFINITE.exec(text);
  if (infinite !== null) return infinite[1] === '-' ? -Infinity : Infinity;
  const digits = text.replaceAll('_', '');
  const base = /^[+-]?0[xX]/.test(text) ? 'hexadecimal' : 'decimal';
  if (WRONG_UNDERSCORE[base].test(text)) return undefined;
  const magnitude =
    magnitudeOf(DECIMAL.exec(digits), 10) ?? magnitudeOf(HEXADECIMAL.exec(digits), 16);
  if (magnitude === undefined || magnitude > LARGEST) return undefined;
  return digits.startsWith('-') ? -magnitude : magnitude;
}

function magnitudeOf(match: RegExpExecArray | null, base: 10 | 16): number | undefined {
  if (match === null) return undefined;
  const [, , whole = '', fraction = match[4] ?? '', , exponent = '0'] = match;
  const digits = BigInt(`${base === 16 ? '0x' : ''}${whole}${fraction}`);
  const limited = Math.min(Math.max(Number(exponent), -MAX_POWER), MAX_POWER);
  const power = base === 16 ? limited - 4 * fraction.length : limited - fraction.length;
  const scale = (base === 16 ? 2n : 10n) ** BigInt(Math.abs(power));
  return power < 0 ? nearestFloat32(digits, scale) : nearestFloat32(digits * scale, 1n);
}

/** The quotient as a 32-bit float, rounded once, half to even; may be above {@link LARGEST}. */
function nearestFloat32(numerator: bigint, denominator: bigint): number {
  let power = Math.max(bits(numerator) - bits(denominator) - MANTISSA_BITS, SMALLEST_POWER);
  let [quotient, rest, divisor] = divided(numerator, denominator, power);
  if (bits(quotient) > MANTISSA_BITS) {
    power += 1;
    [quotient, rest, divisor] = divided(numerator, denominator, power);
  }
  const isUp = 2n * rest > divisor || (2n * rest === divisor && quotient % 2n === 1n);
  return Number(isUp ? quotient + 1n : quotient) * 2 ** power;
}

/** Quotient and rest of `numerator` ÷ (`denominator` × 2^`power`), and what was divided by. */
function divided(numerator: bigint, denominator: bigint, power: number): [bigint, bigint, bigint] {
  const dividend = power < 0 ? numerator << BigInt(-power) : numerator;
  const divisor = power < 0 ? denominator : denominator << BigInt(power);
  return [dividend / divisor, dividend % divisor, divisor];
}

function bits(number: bigint): number {
  return number === 0n ? 0 : number.toString(2).length;
}

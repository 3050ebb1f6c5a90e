import { formatDuration, parseDuration } from '../core/duration.ts';
import { EvictdError } from '../core/errors.ts';

/** Both ends are allowed. */
export interface Range {
  readonly min: number;
  readonly max: number;
}

/** The whole numbers that Kubernetes keeps in 32 bits, such as a priority. */
export const INT32: Range = { min: -(2 ** 31), max: 2 ** 31 - 1 };

/** A number of seconds, as Kubernetes keeps it in 32 bits. */
export const SECONDS: Range = { min: 0, max: INT32.max };

const INTEGER = /^[+-]?[0-9]+$/;

/** More digits than any allowed number has; zeros in front count. */
const MAX_INTEGER_LENGTH = 32;

/**
 * A parser of decimal whole numbers within `range`, which lies within ±(2^53 − 1).
 *
 * @throws EvictdError (the parser) EVICTD_INTEGER
 */
export function integerWithin({ min, max }: Range): (text: string) => number {
  return (text) => {
    const readable = text.length <= MAX_INTEGER_LENGTH && INTEGER.test(text);
    const value = readable ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value === 0 ? 0 : value; // 0 for "-0"
    const message = `not a whole number from ${min} to ${max}`;
    throw new EvictdError('EVICTD_INTEGER', message, { value: text });
  };
}

/**
 * A parser of Go durations within `range`, in milliseconds.
 *
 * @throws EvictdError (the parser) EVICTD_DURATION
 */
export function durationWithin({ min, max }: Range): (text: string) => number {
  return (text) => {
    const ms = parseDuration(text);
    if (ms >= min && ms <= max) return ms;
    const message =
      ms < min ? `shorter than ${formatDuration(min)}` : `longer than ${formatDuration(max)}`;
    throw new EvictdError('EVICTD_DURATION', message, { value: text });
  };
}

const parseSeconds = integerWithin(SECONDS);

/**
 * Reads a pod's grace period: a Go duration of whole seconds, or a bare number of seconds as in
 * terminationGracePeriodSeconds.
 *
 * @throws EvictdError EVICTD_INTEGER for a bare number out of range, EVICTD_DURATION
 */
export function parseGraceSeconds(text: string): number {
  if (/^-?[0-9]+$/.test(text)) return parseSeconds(text);
  const seconds = parseDuration(text) / 1000;
  if (Number.isInteger(seconds) && seconds >= 0 && seconds <= SECONDS.max) return seconds;
  const message = `not a whole number of seconds from 0 to ${SECONDS.max}`;
  throw new EvictdError('EVICTD_DURATION', message, { value: text });
}

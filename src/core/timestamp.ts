/** RFC 3339 with any offset and a fraction; what is finer than a nanosecond is dropped. */
const RFC3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,30})?(?:[Zz]|[+-]\d\d:\d\d)$/;

const NS_PER_SECOND = 1_000_000_000n;
const SECONDS_PER_DAY = 86_400;
const DAYS_IN_MONTH = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as const;
/** Days from the first of January of year 0 to that of 1970. */
const DAYS_TO_1970 = 719_528;

/**
 * Reads a time in RFC 3339 as nanoseconds since 1970; undefined where the text is none. Worked out
 * here, since the core knows no clock and no calendar of the machine's.
 *
 * @see Go `time.RFC3339Nano`
 */
export function parseTimestampNs(text: string): bigint | undefined {
  if (!RFC3339.test(text)) return undefined;
  const [year, month, day] = [digits(text, 0, 4), digits(text, 5, 7), digits(text, 8, 10)];
  const [hour, minute, second] = [digits(text, 11, 13), digits(text, 14, 16), digits(text, 17, 19)];
  const isDate = month >= 1 && month <= 12 && day >= 1 && day <= daysIn(year, month);
  if (!isDate || hour > 23 || minute > 59 || second > 59) return undefined;
  const zone = offsetSeconds(text);
  if (zone === undefined) return undefined;
  const local = daysTo(year, month, day) * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second;
  return BigInt(local - zone) * NS_PER_SECOND + BigInt(fractionNs(text));
}

/** The number that the decimal digits from `start` to before `end` make. */
function digits(text: string, start: number, end: number): number {
  let value = 0;
  for (let at = start; at < end; at += 1) value = 10 * value + text.charCodeAt(at) - ZERO;
  return value;
}

const ZERO = '0'.charCodeAt(0);

/** How far the time's zone is ahead of UTC; undefined where there is no such zone. */
function offsetSeconds(text: string): number | undefined {
  const end = text.length;
  const sign = text[end - 6];
  if (sign !== '+' && sign !== '-') return 0;
  const [hours, minutes] = [digits(text, end - 5, end - 3), digits(text, end - 2, end)];
  if (hours > 24 || minutes > 59) return undefined;
  const seconds = hours * 3600 + minutes * 60;
  return sign === '-' ? -seconds : seconds;
}

/** Where the fraction begins, and how many digits of it count. */
const FRACTION_AT = 20;
const FRACTION_DIGITS = 9;

function fractionNs(text: string): number {
  if (text[FRACTION_AT - 1] !== '.') return 0;
  let at = FRACTION_AT;
  const end = FRACTION_AT + FRACTION_DIGITS;
  while (at < end && isDigit(text.charCodeAt(at))) at += 1;
  let value = digits(text, FRACTION_AT, at);
  for (; at < end; at += 1) value *= 10;
  return value;
}

function isDigit(code: number): boolean {
  return code >= ZERO && code < ZERO + 10;
}

function isLeap(year: number): boolean {
  return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
}

function daysIn(year: number, month: number): number {
  // Asked only of a month that there is.
  return (DAYS_IN_MONTH[month - 1] as number) + (month === 2 && isLeap(year) ? 1 : 0);
}

/** Days since 1970. */
function daysTo(year: number, month: number, day: number): number {
  const before = year - 1;
  const leaps = Math.floor(before / 4) - Math.floor(before / 100) + Math.floor(before / 400);
  let days = year * 365 + leaps + 1 + day - 1;
  for (let one = 1; one < month; one += 1) days += daysIn(year, one);
  return days - DAYS_TO_1970;
}

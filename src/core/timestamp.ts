/** RFC 3339 with any offset and a fraction; what is finer than a nanosecond is dropped. */
const RFC3339 =
  /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,30}))?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/;

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
  const match = RFC3339.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, hour, minute, second] = match.map(Number) as readonly number[] &
    [number, number, number, number, number, number, number];
  const [, , , , , , , fraction = '', sign, offsetHours = '0', offsetMinutes = '0'] = match;
  const isDate = month >= 1 && month <= 12 && day >= 1 && day <= daysIn(year, month);
  if (!isDate || hour > 23 || minute > 59 || second > 59) return undefined;
  if (Number(offsetHours) > 24 || Number(offsetMinutes) > 59) return undefined;
  const local = daysTo(year, month, day) * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second;
  const offset = Number(offsetHours) * 3600 + Number(offsetMinutes) * 60;
  const seconds = sign === '-' ? local + offset : local - offset;
  return BigInt(seconds) * NS_PER_SECOND + BigInt(fraction.slice(0, 9).padEnd(9, '0'));
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

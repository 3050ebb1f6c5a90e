import { readControlFile } from './control-file.ts';

/** How exactly procfs tells the time since the boot, ms. Source: Linux, `fs/proc/uptime.c`. */
const UPTIME_STEP_MS = 10;

/** How exactly it is to be known, ms, and how long that may take. */
const EXACT_MS = 1;
const SETTLE_LIMIT_MS = 2 * UPTIME_STEP_MS;

/** CLOCK_BOOTTIME beside the monotonic clock: the same but for the time spent suspended. */
export interface BootClock {
  /** Of this boot; empty where procfs does not say. */
  readonly bootId: string;
  /** Now, ms: within these bounds. */
  now(): { readonly earliestMs: number; readonly latestMs: number };
}

/** The id of this boot; empty where procfs does not say. Source: random(4). */
export function readBootId(file = '/proc/sys/kernel/random/boot_id'): string {
  try {
    return readControlFile(file).trim();
  } catch {
    return '';
  }
}

/**
 * The clock of the time since the boot, told from `/proc/uptime` and the monotonic clock. The two are a
 * fixed time apart until the machine is suspended, so that each reading, exact to 10 ms, narrows down
 * how much; a reading that does not fit says that it was. Looks until that is known to a
 * millisecond, for 20 ms at most. Where procfs does not tell, the two count as one.
 *
 * @param monotonicMs the monotonic clock, with fractions
 */
export function bootClock(
  monotonicMs: () => number,
  uptime: () => string = () => readControlFile('/proc/uptime'),
  bootId: string = readBootId(),
): BootClock {
  let [low, high] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
  const look = (): void => {
    const beforeMs = monotonicMs();
    const upMs = uptimeMs(uptime);
    const afterMs = monotonicMs();
    const [least, most] =
      upMs === undefined ? [0, 0] : [upMs - afterMs, upMs + UPTIME_STEP_MS - beforeMs];
    [low, high] =
      least > high || most < low ? [least, most] : [Math.max(low, least), Math.min(high, most)];
  };
  const startMs = monotonicMs();
  do look();
  while (high - low > EXACT_MS && monotonicMs() - startMs < SETTLE_LIMIT_MS);
  return {
    bootId,
    now: () => {
      look();
      const nowMs = monotonicMs();
      return { earliestMs: nowMs + low, latestMs: nowMs + high };
    },
  };
}

function uptimeMs(uptime: () => string): number | undefined {
  try {
    const seconds = /^(\d+\.\d+) /.exec(uptime())?.[1];
    return seconds === undefined ? undefined : 1000 * Number(seconds);
  } catch {
    return undefined;
  }
}

import { list, mebibytes, milliseconds } from './format.ts';
import { LEAK } from './plan.ts';

/** An eviction as the daemon's status tells it. */
export interface ToldEviction {
  readonly pod: string;
  readonly outcome: string | null;
}

/** When the daemon decided and had sent SIGKILL, monotonic ms, and what had made it read. */
export interface ToldDecision {
  readonly decidedAtMs: number;
  readonly killedAtMs: number;
  readonly wokenBy: 'kernel' | 'timer' | 'recording';
}

/** What was seen, by the demo itself unless it says otherwise. */
export interface Evidence {
  /** When the kernel told the demo of the crossing, monotonic ms. */
  readonly crossedAtMs: number | undefined;
  /** What the daemon says of the leak's eviction; the times are exact to about 1 ms. */
  readonly decision: ToldDecision | undefined;
  /** How the leak's process ended, and when its pidfd said so. */
  readonly leakEnd: { readonly signal: string | null; readonly atMs: number } | undefined;
  /** All evictions of the daemon's status. */
  readonly evictions: readonly ToldEviction[];
  /** Whether the daemon said that the threshold is no longer met. */
  readonly recovered: boolean;
  /** Processes ended by the kernel's OOM killer in the node. */
  readonly oomKills: number;
  /** The innocent pods, and whether their processes live. */
  readonly others: readonly { readonly pod: string; readonly lives: boolean }[];
  /** The node's highest usage since before the leak, and the usage at which the threshold lies. */
  readonly peakBytes: number;
  readonly levelBytes: number;
}

export type Verdict =
  | { readonly kind: 'shown'; readonly line: string }
  /** What differed from what the demo is there to show. */
  | { readonly kind: 'differed'; readonly differences: readonly string[] };

/** Whether what was seen is what the demo promises: the closing line, or all that differed. Pure. */
export function judge(evidence: Evidence): Verdict {
  const differences = differencesIn(evidence);
  const { crossedAtMs, decision, leakEnd, peakBytes, levelBytes, others } = evidence;
  if (
    differences.length > 0 ||
    crossedAtMs === undefined ||
    decision === undefined ||
    leakEnd === undefined
  ) {
    return { kind: 'differed', differences };
  }
  const eventAtMs = eventTime(crossedAtMs, decision);
  // By another clock, but never later than the death that it caused.
  const killMs = Math.min(decision.killedAtMs, leakEnd.atMs) - eventAtMs;
  const past = mebibytes(Math.max(0, peakBytes - levelBytes), 1);
  const names = list(others.map(({ pod }) => pod));
  const line =
    `${LEAK} was evicted: SIGKILL ${roughly(killMs)} and dead ` +
    `${milliseconds(leakEnd.atMs - eventAtMs)} after the kernel's event, ` +
    `at most ${past} past the threshold; ${names} live`;
  return { kind: 'shown', line };
}

/**
 * The demo may hear of the event later than a daemon that was woken by it and has decided already:
 * then it had come by the time of the decision.
 */
function eventTime(crossedAtMs: number, { decidedAtMs, wokenBy }: ToldDecision): number {
  return wokenBy === 'kernel' ? Math.min(crossedAtMs, decidedAtMs) : crossedAtMs;
}

/** Whole milliseconds, since that is how exact it is. */
function roughly(ms: number): string {
  if (ms <= -1) return `(a poll was quicker) about ${Math.round(-ms)} ms before`;
  return ms < 1 ? 'within 1 ms' : `about ${Math.round(ms)} ms`;
}

function differencesIn(evidence: Evidence): readonly string[] {
  const { crossedAtMs, decision, leakEnd, evictions, recovered, oomKills, others } = evidence;
  const other = evictions.filter(({ pod, outcome }) => pod !== LEAK && outcome !== 'refused');
  const dead = others.filter(({ lives }) => !lives);
  const isEvicted = evictions.some(({ pod, outcome }) => pod === LEAK && outcome === 'evicted');
  const checks: readonly (readonly [boolean, string])[] = [
    [crossedAtMs === undefined, `the kernel told the demo of no crossing${quicker(decision)}`],
    [!isEvicted, `evictd says of no eviction of ${LEAK} that it succeeded`],
    [isEvicted && decision === undefined, `evictd does not say when it killed ${LEAK}`],
    [leakEnd === undefined, `${LEAK} lives`],
    [
      leakEnd !== undefined && leakEnd.signal !== 'SIGKILL',
      `${LEAK} ended by ${leakEnd?.signal ?? 'itself'}, not by SIGKILL`,
    ],
    [
      crossedAtMs !== undefined && leakEnd !== undefined && leakEnd.atMs < crossedAtMs,
      `${LEAK} was dead before the kernel's event`,
    ],
    [other.length > 0, `evictd evicted ${list(other.map(({ pod }) => pod))} too`],
    [dead.length > 0, `${list(dead.map(({ pod }) => pod))} ended`],
    [oomKills > 0, `the kernel's OOM killer ended ${oomKills} of the node's processes`],
    [!recovered, 'evictd did not say that the threshold is no longer met'],
  ];
  return checks.flatMap(([differs, text]) => (differs ? [text] : []));
}

/** The kernel compares usage with its thresholds each 512 KiB: a poll may find less than that. */
function quicker(decision: ToldDecision | undefined): string {
  return decision?.wokenBy === 'timer' ? ': a poll of evictd was quicker; try again' : '';
}

import { formatDuration } from '../core/duration.ts';
import type { SignalObservation } from '../core/observation.ts';
import { approximateCount } from '../core/quantity.ts';
import { SIGNALS } from '../core/signal.ts';
import type { State } from '../core/state.ts';
import { type Threshold, thresholdId, thresholdLevel } from '../core/threshold.ts';

/** Cells on either side of the threshold. */
const HALF = 5;

/** What a gauge looks at beside the reading. */
export interface Gauged {
  readonly thresholds: readonly Threshold[];
  readonly state: State;
  readonly nowMs: number;
}

/**
 * A signal against the nearest of its thresholds, of those that are met if any is:
 * `memory.available ███░░|░░░░░ 60Mi < 100Mi hard`. The mark is the threshold, the bar what is available:
 * as long as it ends to the left of the mark the threshold is met. Undefined for a signal without a
 * threshold.
 */
export function gauge(observation: SignalObservation, gauged: Gauged): string | undefined {
  const { signal, available, capacity } = observation;
  const { state } = gauged;
  const due = new Set(state.due.map(thresholdId));
  const [nearest] = gauged.thresholds
    .filter((threshold) => threshold.signal === signal)
    .map((threshold) => {
      const level = thresholdLevel(threshold, capacity, due.has(thresholdId(threshold)));
      const isMet = available < level;
      return { threshold, level, isMet, distance: Math.abs(available - level) };
    })
    .sort(
      (left, right) => Number(right.isMet) - Number(left.isMet) || left.distance - right.distance,
    );
  if (nearest === undefined) return undefined;
  const { threshold, level } = nearest;
  const { unit } = SIGNALS[signal];
  const relation = `${approximateCount(available, unit)} ${available < level ? '<' : '≥'}`;
  const own = thresholdLevel(threshold, capacity, false);
  const needs = approximateCount(own, unit);
  const more = level === own ? '' : `+${approximateCount(level - own, unit)}`;
  return [signal, bar(available, level), relation, needs + more, kindOf(threshold, gauged)].join(
    ' ',
  );
}

/** Of a soft threshold that is met, for how long of its grace it has been; nothing is left of one that is over. */
function kindOf(threshold: Threshold, { state, nowMs }: Gauged): string {
  const { kind, gracePeriodMs } = threshold;
  const sinceMs = state.firstObserved.get(thresholdId(threshold));
  if (kind === 'hard' || sinceMs === undefined) return kind;
  const [passed, grace] = [formatMs(nowMs - sinceMs), formatMs(gracePeriodMs)];
  return nowMs - sinceMs < gracePeriodMs
    ? `${kind}, ${passed} of ${grace}`
    : `${kind}, past its ${grace}`;
}

/** What is measured has nanoseconds: nobody reads them. */
function formatMs(ms: number): string {
  return formatDuration(Math.round(ms));
}

function bar(available: number, level: number): string {
  const cells = level === 0 ? 2 * HALF : Math.floor((HALF * available) / level);
  const filled = Math.min(2 * HALF, Math.max(0, cells));
  const text = '█'.repeat(filled).padEnd(2 * HALF, '░');
  return `${text.slice(0, HALF)}|${text.slice(HALF)}`;
}

import { formatDuration } from '../core/duration.ts';
import type { SignalObservation } from '../core/observation.ts';
import { approximateCount } from '../core/quantity.ts';
import { SIGNALS } from '../core/signal.ts';
import type { State } from '../core/step.ts';
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
 * A signal against the nearest of its thresholds: `memory.available ███░░|░░░░░ 60Mi < 100Mi hard`. The
 * mark is the threshold, the bar what is available: as long as it ends to the left of the mark the
 * threshold is met. Undefined for a signal without a threshold.
 */
export function gauge(observation: SignalObservation, gauged: Gauged): string | undefined {
  const { signal, available, capacity } = observation;
  const { state, nowMs } = gauged;
  const due = new Set(state.due.map(thresholdId));
  const [nearest] = gauged.thresholds
    .filter((threshold) => threshold.signal === signal)
    .map((threshold) => {
      const level = thresholdLevel(threshold, capacity, due.has(thresholdId(threshold)));
      return { threshold, level, distance: Math.abs(available - level) };
    })
    .sort((left, right) => left.distance - right.distance);
  if (nearest === undefined) return undefined;
  const { threshold, level } = nearest;
  const { unit } = SIGNALS[signal];
  const [has, needs] = [approximateCount(available, unit), approximateCount(level, unit)];
  const relation = `${has} ${available < level ? '<' : '≥'} ${needs}`;
  return [signal, bar(available, level), relation, kindOf(threshold, state, nowMs)].join(' ');
}

/** Of a soft threshold that is met, for how long of its grace it has been. */
function kindOf(threshold: Threshold, { firstObserved }: State, nowMs: number): string {
  const { kind, gracePeriodMs } = threshold;
  const sinceMs = firstObserved.get(thresholdId(threshold));
  if (kind === 'hard' || sinceMs === undefined) return kind;
  return `${kind}, ${formatDuration(nowMs - sinceMs)} of ${formatDuration(gracePeriodMs)}`;
}

function bar(available: number, level: number): string {
  const cells = level === 0 ? 2 * HALF : Math.floor((HALF * available) / level);
  const filled = Math.min(2 * HALF, Math.max(0, cells));
  const text = '█'.repeat(filled).padEnd(2 * HALF, '░');
  return `${text.slice(0, HALF)}|${text.slice(HALF)}`;
}

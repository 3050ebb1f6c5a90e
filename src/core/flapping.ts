/** Node conditions that come and go: told once for each burst, with how often. */
import type { NodeCondition } from './signal.ts';

/** How often a condition must be set for it to flap. */
export const FLAPS = 3;

/**
 * In how many transition periods that must be. A condition that is set holds for one, so that the third
 * time comes after two at the soonest: each may be followed by one more that is calm. What is further
 * apart is pressure that ended and came anew.
 */
export const FLAP_PERIODS = 4;

/** That window is no shorter, ms: there may be no transition period. */
export const MIN_FLAP_WINDOW_MS = 60_000;

/** A burst in which a condition was set again and again. */
export interface Flap {
  readonly condition: NodeCondition;
  /** When (monotonic ms) it was set the first time. */
  readonly sinceMs: number;
  /** How often it was set since then, that time included. */
  readonly count: number;
}

/** That a burst was found, or is over: the condition was not set for a window. */
export interface FlapNotice extends Flap {
  readonly kind: 'began' | 'ended';
}

/** When a condition was set, and the burst that it is in. */
interface Watch {
  /** The last times, monotonic ms, fewer than {@link FLAPS}; oldest first. */
  readonly setAtMs: readonly number[];
  readonly flap: Flap | undefined;
}

/** What is remembered from one turn to the next. */
export interface Flapping {
  readonly conditions: readonly NodeCondition[];
  readonly watches: ReadonlyMap<NodeCondition, Watch>;
  /** What this turn tells. */
  readonly notices: readonly FlapNotice[];
}

export const NOT_FLAPPING: Flapping = { conditions: [], watches: new Map(), notices: [] };

/**
 * Takes in which conditions hold now. Nothing is made anew where nothing has changed: it is done at
 * each turn.
 *
 * @param conditions those that hold
 */
export function flapping(
  before: Flapping,
  conditions: readonly NodeCondition[],
  nowMs: number,
  transitionPeriodMs: number,
): Flapping {
  const windowMs = Math.max(FLAP_PERIODS * transitionPeriodMs, MIN_FLAP_WINDOW_MS);
  const isOver = ({ setAtMs, flap }: Watch): boolean =>
    flap !== undefined && nowMs - (setAtMs.at(-1) as number) > windowMs;
  const isSame = conditions === before.conditions || conditions.join() === before.conditions.join();
  if (isSame && before.notices.length === 0 && ![...before.watches.values()].some(isOver)) {
    return before;
  }
  const watches = new Map(before.watches);
  const notices: FlapNotice[] = [];
  for (const [condition, watch] of before.watches) {
    if (watch.flap === undefined || !isOver(watch)) continue;
    watches.delete(condition);
    notices.push({ kind: 'ended', ...watch.flap });
  }
  for (const condition of conditions) {
    if (before.conditions.includes(condition)) continue;
    const watch = watchAfter(watches.get(condition), condition, nowMs, windowMs);
    if (watch.flap?.count === FLAPS) notices.push({ kind: 'began', ...watch.flap });
    watches.set(condition, watch);
  }
  return { conditions, watches, notices };
}

/** The condition is set. A burst that was found counts on; else its last times tell whether one is. */
function watchAfter(
  before: Watch | undefined,
  condition: NodeCondition,
  nowMs: number,
  windowMs: number,
): Watch {
  const known = (before?.setAtMs ?? []).filter((atMs) => nowMs - atMs <= windowMs);
  const times = [...known, nowMs];
  const setAtMs = times.slice(-(FLAPS - 1));
  const running = before?.flap;
  if (running !== undefined) {
    return { setAtMs, flap: { ...running, count: running.count + 1 } };
  }
  if (times.length < FLAPS) return { setAtMs, flap: undefined };
  return { setAtMs, flap: { condition, sinceMs: times[0] as number, count: FLAPS } };
}

/** The bursts that go on. */
export function flapsOf({ watches }: Flapping): readonly Flap[] {
  return [...watches.values()].flatMap(({ flap }) => (flap === undefined ? [] : [flap]));
}

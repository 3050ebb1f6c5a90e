/**
 * What a runtime is asked about each of its things, once. One that answers late, or not at all, holds up no other
 * and no listing for long, and is asked about again, twice as late each time.
 */
import { type SchedulerLike, timer } from 'rxjs';
import { ASKED_AT_ONCE } from './at-once.ts';
import { keptName } from './texts.ts';

/** How long an answer is waited for before the next question is put beside it, ms: most take a few. */
export const SLOW_MS = 500;

/** How long all of them together are waited for, ms. */
export const ASK_LIMIT_MS = 3000;

/** How soon a question is put again that was not answered: twice as late each time, up to the second, ms. */
export const FIRST_AGAIN_MS = 1000;
export const LAST_AGAIN_MS = 60_000;

/** When it is put again after so many failures before this one, ms from now. */
export function againMs(failures: number): number {
  return Math.min(LAST_AGAIN_MS, FIRST_AGAIN_MS * 2 ** failures);
}

/** How many of those are put at a time, beside the others. */
const AGAIN_AT_ONCE = 2;

/** What is known of a thing. */
export type Known<Answer> =
  | { readonly kind: 'told'; readonly answer: Answer }
  /** The first reason, for as long as it is not told. */
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'gone' }
  | { readonly kind: 'waiting' };

export interface QuestionInputs<Answer> {
  /** With a deadline of its own. Undefined for what is not there any more; rejects where nothing could be learned. */
  readonly ask: (id: string) => Promise<Answer | undefined>;
  readonly scheduler: SchedulerLike;
}

export interface Questions<Answer> {
  /**
   * Asks about those of which nothing is known, and forgets all others. Resolves once each that was not asked about
   * before has answered or is late; never rejects.
   */
  readonly learn: (ids: Iterable<string>) => Promise<void>;
  readonly of: (id: string) => Known<Answer>;
  /** Has it asked again; until then what is known holds. */
  readonly again: (id: string) => void;
  /** When {@link learn} has anything to ask, or to hear, ms from now: 0 or more, and Infinity for never. */
  readonly dueInMs: () => number;
}

interface Entry<Answer> {
  readonly id: string;
  known: Known<Answer>;
  isAsked: boolean;
  /** It was to be asked again while it was being asked. */
  isStale: boolean;
  failures: number;
  dueAtMs: number;
}

/** What is asked one after the other, some at a time. */
interface Lane<Answer> {
  readonly atOnce: number;
  readonly waiting: Entry<Answer>[];
  busy: number;
}

const WAITING = { kind: 'waiting' } as const;

export function questions<Answer>({ ask, scheduler }: QuestionInputs<Answer>): Questions<Answer> {
  const entries = new Map<string, Entry<Answer>>();
  const fresh: Lane<Answer> = { atOnce: ASKED_AT_ONCE, waiting: [], busy: 0 };
  const again: Lane<Answer> = { atOnce: AGAIN_AT_ONCE, waiting: [], busy: 0 };
  const listeners = new Set<() => void>();
  const isQuiet = (): boolean => fresh.busy === 0 && fresh.waiting.length === 0;

  const take = (entry: Entry<Answer>, known: Known<Answer>, dueAtMs: number): void => {
    entry.known = known;
    entry.failures = 0;
    entry.dueAtMs = entry.isStale ? 0 : dueAtMs;
  };
  const fail = (entry: Entry<Answer>, error: unknown): void => {
    const reason = keptName(error instanceof Error ? error.message : String(error));
    entry.dueAtMs = scheduler.now() + againMs(entry.failures);
    entry.failures += 1;
    if (entry.known.kind === 'waiting' || entry.known.kind === 'gone')
      entry.known = { kind: 'failed', reason };
  };
  const put = (lane: Lane<Answer>, entry: Entry<Answer>): void => {
    lane.busy += 1;
    let holdsPlace = true;
    const leave = (): void => {
      if (!holdsPlace) return;
      holdsPlace = false;
      lane.busy -= 1;
      advance(lane);
    };
    const late = timer(SLOW_MS, scheduler).subscribe(leave);
    ask(entry.id)
      .then(
        (answer) =>
          answer === undefined
            ? take(entry, { kind: 'gone' }, 0)
            : take(entry, { kind: 'told', answer }, Number.POSITIVE_INFINITY),
        (error: unknown) => fail(entry, error),
      )
      .finally(() => {
        entry.isAsked = false;
        entry.isStale = false;
        late.unsubscribe();
        leave();
      });
  };
  const advance = (lane: Lane<Answer>): void => {
    while (lane.busy < lane.atOnce) {
      const entry = lane.waiting.shift();
      if (entry === undefined) break;
      if (entries.get(entry.id) === entry) put(lane, entry);
    }
    if (isQuiet()) for (const listener of listeners) listener();
  };
  return {
    learn: (given) => {
      const ids = new Set(given);
      const nowMs = scheduler.now();
      for (const id of entries.keys()) if (!ids.has(id)) entries.delete(id);
      for (const id of ids) {
        let entry = entries.get(id);
        if (entry === undefined) {
          entry = { id, known: WAITING, isAsked: false, isStale: false, failures: 0, dueAtMs: 0 };
          entries.set(id, entry);
        }
        if (entry.isAsked || entry.dueAtMs > nowMs) continue;
        entry.isAsked = true;
        (entry.failures === 0 ? fresh : again).waiting.push(entry);
      }
      const answered = new Promise<void>((resolve) => {
        const end = (): void => {
          listeners.delete(end);
          limit.unsubscribe();
          resolve();
        };
        const limit = timer(ASK_LIMIT_MS, scheduler).subscribe(end);
        listeners.add(end);
      });
      advance(again);
      advance(fresh);
      return answered;
    },
    of: (id) => entries.get(id)?.known ?? WAITING,
    again: (id) => {
      const entry = entries.get(id);
      if (entry === undefined) return;
      entry.isStale = entry.isAsked;
      entry.failures = 0;
      entry.dueAtMs = 0;
    },
    dueInMs: () => {
      const nowMs = scheduler.now();
      const due = [...entries.values()].map((entry) => {
        if (entry.isAsked) return SLOW_MS;
        // What is gone is not in the next listing.
        return entry.known.kind === 'gone' ? Number.POSITIVE_INFINITY : entry.dueAtMs - nowMs;
      });
      return Math.max(0, Math.min(...due, Number.POSITIVE_INFINITY));
    },
  };
}

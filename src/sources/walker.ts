/** Walks over directories one after the other, by helpers that can be left behind. */
import { type SchedulerLike, type Subscription, timer } from 'rxjs';
import type { Place } from '../ports/disk-usage.ts';
import type { HelperProcess } from './helper-process.ts';
import {
  encodeDeleted,
  encodeWalk,
  refusalOf,
  type StartWalk,
  type WalkAnswer,
  type WalkLimits,
  walkProcess,
} from './walk-helper.ts';

/**
 * What a walk over one place may take: what is beyond it is left out, and the figures say so. On a busy node it
 * gets little of the processor for all that time.
 */
export const WALK_LIMITS: WalkLimits = { entries: 10_000_000, cpuMs: 10_000, ms: 20_000 };

/** The same for the descriptors of all processes. */
export const DELETED_LIMITS: WalkLimits = { entries: 200_000, cpuMs: 5000, ms: 10_000 };

/** How much later an answer may come: the helper has what nobody else wants of the processor, ms. */
export const WALK_MARGIN_MS = 5000;

/** How many helpers that hang there may be. */
export const WALKERS_HUNG_MAX = 4;

/** For how long a place whose helper hung or died is left out, ms. */
export const WALK_AGAIN_MS = 600_000;

/** For how many places that is remembered. */
const REMEMBERED_PLACES = 1000;

export interface Walker {
  /** What lies below a place. Never rejects; one call at a time. */
  walk(place: Place): Promise<WalkAnswer>;
  /** What is deleted and that a process keeps open. The same way. */
  deleted(): Promise<WalkAnswer>;
  /** Ends its helper, until the next call. */
  close(): void;
}

export interface WalkerInputs {
  readonly scheduler: SchedulerLike;
  /** Takes the place of the executable in tests. */
  readonly start?: StartWalk;
}

export function walker({ scheduler, start = walkProcess() }: WalkerInputs): Walker {
  const leftOutUntilMs = new Map<string, number>();
  let idle: Running | undefined;
  let busy: Running | undefined;
  let hung = 0;
  const ask = async (frame: Buffer, { ms }: WalkLimits): Promise<WalkAnswer | Lost> => {
    if (hung >= WALKERS_HUNG_MAX) return refused(`${hung} helpers hang already`);
    const running = idle ?? runningWalk(start, scheduler);
    idle = undefined;
    busy = running;
    const answer = await running.ask(frame, ms + WALK_MARGIN_MS);
    busy = undefined;
    if (answer.kind === 'hung') {
      hung += 1;
      void running.gone.then(() => {
        hung -= 1;
      });
    } else if (answer.kind !== 'ended') {
      idle = running;
    }
    return answer;
  };
  const isLeftOut = (key: string): boolean => {
    const untilMs = leftOutUntilMs.get(key) ?? Number.NEGATIVE_INFINITY;
    if (scheduler.now() < untilMs) return true;
    leftOutUntilMs.delete(key);
    return false;
  };
  const leaveOut = (key: string): void => {
    const [oldest] = leftOutUntilMs.keys();
    if (oldest !== undefined && leftOutUntilMs.size >= REMEMBERED_PLACES) {
      leftOutUntilMs.delete(oldest);
    }
    leftOutUntilMs.set(key, scheduler.now() + WALK_AGAIN_MS);
  };
  return {
    walk: async (place) => {
      const refusal = refusalOf(place);
      if (refusal !== undefined) return refused(refusal);
      const key = `${place.root}/${place.below}`;
      if (isLeftOut(key)) return refused('left out for a while: a walk over it hung');
      const answer = await ask(encodeWalk(place, WALK_LIMITS), WALK_LIMITS);
      if (answer.kind === 'hung') leaveOut(key);
      return isLost(answer) ? refused(answer.reason) : answer;
    },
    deleted: async () => {
      const answer = await ask(encodeDeleted(DELETED_LIMITS), DELETED_LIMITS);
      return isLost(answer) ? refused(answer.reason) : answer;
    },
    close: () => {
      idle?.end();
      busy?.end();
      idle = undefined;
    },
  };
}

/** A helper that gives no answer. */
type Lost = { readonly kind: 'hung' | 'ended'; readonly reason: string };

function isLost(answer: WalkAnswer | Lost): answer is Lost {
  return answer.kind === 'hung' || answer.kind === 'ended';
}

function refused(error: string): WalkAnswer {
  return { kind: 'refused', error };
}

/** A helper that was started. */
interface Running {
  /** Sends a request; killed where no answer comes in time. Never rejects. */
  ask(frame: Buffer, deadlineMs: number): Promise<WalkAnswer | Lost>;
  /** Resolves when it is gone. */
  readonly gone: Promise<void>;
  end(): void;
}

function runningWalk(start: StartWalk, scheduler: SchedulerLike): Running {
  let answered: (answer: WalkAnswer | Lost) => void = () => undefined;
  let lost: Lost | undefined;
  let isGone: () => void = () => undefined;
  const gone = new Promise<void>((resolve) => {
    isGone = resolve;
  });
  const process: HelperProcess = start((event) => {
    if (event.kind === 'answer') {
      answered(event.answer);
      return;
    }
    lost = { kind: 'ended', reason: event.reason };
    answered(lost);
    isGone();
  });
  return {
    ask: (frame, deadlineMs) =>
      new Promise((resolve) => {
        if (lost !== undefined) {
          resolve(lost);
          return;
        }
        const limit: Subscription = timer(deadlineMs, scheduler).subscribe(() => {
          process.end();
          resolve({ kind: 'hung', reason: `no answer within ${deadlineMs} ms` });
        });
        answered = (answer) => {
          limit.unsubscribe();
          resolve(answer);
        };
        process.send(frame);
      }),
    gone,
    end: () => process.end(),
  };
}

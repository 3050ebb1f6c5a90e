import { NEVER, of, type SchedulerLike, Subject, throwError } from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import { describe, expect, it } from 'vitest';
import type { Kept } from '../../src/core/persistence.ts';
import type { Snapshot } from '../../src/core/snapshot.ts';
import { INITIAL_STATE, type State } from '../../src/core/state.ts';
import {
  type KeepingNotice,
  keepState,
  TRY_AGAIN_MS,
  WRITE_LIMIT_MS,
  WRITE_SLACK_MS,
} from '../../src/state/keeper.ts';
import { softThreshold, threshold } from '../support/builders.ts';

const SOFT = softThreshold();
const HARD = threshold();

const NONE: Kept['evictions'] = [];

const kept = (state: Partial<State> = {}, evictions = NONE): Kept => ({
  state: { ...INITIAL_STATE, ...state },
  evictions,
});

/** Another eviction. */
const evicted = (state: Partial<State> = {}): Kept => kept(state, []);

const CALM = kept();
const GRACE = kept({ met: [SOFT] });
const DUE = kept({ met: [HARD], due: [HARD] });

interface Scene {
  /** What is kept, and when, ms. */
  readonly kept: readonly (readonly [number, Kept])[];
  /** How long a writing takes, ms. */
  readonly tookMs?: number;
  /** Whether the writing that begins at this instant fails. */
  readonly fails?: (atMs: number) => boolean;
  readonly transitionMs?: number;
  readonly hasFailed?: boolean;
  /** When it is unsubscribed. */
  readonly untilMs: number;
}

interface Seen {
  /** Instants, ms. */
  readonly writings: readonly number[];
  readonly unsavedMs: readonly number[];
  readonly notices: readonly (readonly [number, string])[];
  /** The most writings that were under way at once. */
  readonly atOnce: number;
}

/** A promise of virtual time. */
function inVirtualTime(scheduler: SchedulerLike, tookMs: number, error: Error | undefined) {
  const then = (resolved: () => void, rejected: (error: Error) => void): void => {
    scheduler.schedule(() => (error === undefined ? resolved() : rejected(error)), tookMs);
  };
  return { then } as unknown as Promise<void>;
}

function play({
  kept: all,
  tookMs = 5,
  fails,
  transitionMs = 300_000,
  hasFailed = false,
  untilMs,
}: Scene): Seen {
  const writings: number[] = [];
  const unsaved: number[] = [];
  const notices: [number, string][] = [];
  let [underWay, atOnce] = [0, 0];
  const scheduler = new TestScheduler(() => undefined);
  scheduler.run(() => {
    const source$ = new Subject<Kept>();
    for (const [atMs, one] of all) scheduler.schedule(() => source$.next(one), atMs);
    const running = source$
      .pipe(
        keepState({
          store: {
            path: '/state',
            write: () => {
              const nowMs = scheduler.now();
              writings.push(nowMs);
              underWay += 1;
              atOnce = Math.max(atOnce, underWay);
              scheduler.schedule(() => {
                underWay -= 1;
              }, tookMs);
              const error = fails?.(nowMs) === true ? new Error('ENOSPC') : undefined;
              return inVirtualTime(scheduler, tookMs, error);
            },
          },
          snapshot: (_, unsavedMs) => {
            unsaved.push(unsavedMs);
            return {} as Snapshot;
          },
          transitionPeriodMs: () => transitionMs,
          hasFailed,
          scheduler,
        }),
      )
      .subscribe((notice) => notices.push([scheduler.now(), say(notice)]));
    scheduler.schedule(() => running.unsubscribe(), untilMs);
  });
  return { writings, unsavedMs: unsaved, notices, atOnce };
}

function say(notice: KeepingNotice): string {
  return notice.kind === 'written' ? `written at ${notice.atMs}` : notice.reason;
}

/** Every 10 ms from one instant to another, by turns. */
function flapping(fromMs: number, toMs: number, ...states: readonly Kept[]) {
  return Array.from(
    { length: (toMs - fromMs) / 10 },
    (_, at) => [fromMs + 10 * at, states[at % states.length] as Kept] as const,
  );
}

describe('keepState', () => {
  it('writes nothing while nothing happens', () => {
    const { writings, notices } = play({
      kept: flapping(0, 60_000, CALM, kept(), kept({ metAtMs: 3 })),
      untilMs: 3_600_000,
    });
    expect(writings).toEqual([]);
    expect(notices).toEqual([]);
  });

  it('writes what the first reading has found, and says so', () => {
    const { writings, notices } = play({ kept: [[0, GRACE]], untilMs: 500 });
    expect(writings).toEqual([100]);
    expect(notices).toEqual([[105, 'written at 105']]);
  });

  it('writes the progress of a grace each second', () => {
    const { writings, unsavedMs } = play({
      kept: [[0, CALM], ...flapping(5000, 8000, GRACE)],
      untilMs: 8000,
    });
    expect(writings).toEqual([5100, 6100, 7100]);
    expect(unsavedMs).toEqual([1000, 1000, 1000].map((ms) => ms + WRITE_SLACK_MS));
  });

  it('writes of what is only due a few times in a transition period', () => {
    const { writings, unsavedMs } = play({
      kept: [[0, DUE]],
      transitionMs: 60_000,
      untilMs: 6500,
    });
    expect(writings).toEqual([100, 2100, 4100, 6100]);
    expect(unsavedMs[0]).toBe(2000 + WRITE_SLACK_MS);
  });

  it('writes once a second where a reading wavers', () => {
    let [atMs, met] = [0, false];
    const wavering = Array.from({ length: 300 }, () => {
      met = !met;
      atMs += 10;
      const conditionsObserved = new Map([['MemoryPressure', met ? atMs : atMs - 10] as const]);
      return [atMs, kept({ met: met ? [SOFT] : [], conditionsObserved })] as const;
    });
    const { writings } = play({ kept: [[0, CALM], ...wavering], untilMs: 3000 });
    expect(writings).toEqual([110, 1110, 2110]);
  });

  it('writes nothing of what has changed back', () => {
    const { writings } = play({
      kept: [
        [0, CALM],
        [5000, GRACE],
        [5050, CALM],
      ],
      untilMs: 60_000,
    });
    expect(writings).toEqual([]);
  });

  it('writes an eviction soon, ten times a second at most', () => {
    const many = Array.from({ length: 50 }, (_, at) => [5000 + 10 * at, evicted()] as const);
    const { writings } = play({ kept: [[0, CALM], ...many], untilMs: 60_000 });
    expect(writings).toEqual([5010, 5110, 5210, 5310, 5410, 5510]);
  });

  it('does not let a threshold put off an eviction', () => {
    const { writings } = play({
      kept: [
        [0, GRACE],
        [300, DUE],
        [400, evicted({ met: [SOFT] })],
      ],
      untilMs: 600,
    });
    expect(writings).toEqual([100, 410]);
  });

  it('has one writing under way, however long it takes', () => {
    const many = Array.from({ length: 100 }, (_, at) => [10 * at, evicted()] as const);
    const { writings, atOnce } = play({ kept: many, tookMs: 400, untilMs: 5000 });
    expect(atOnce).toBe(1);
    // What came meanwhile is written 10 ms after the end of the one before.
    expect(writings).toEqual([20, 430, 840, 1250]);
  });

  it('tries again each 5 s what failed, until it succeeds', () => {
    const { writings, notices } = play({
      kept: flapping(0, 12_000, GRACE, DUE),
      fails: (atMs) => atMs < 10_000,
      untilMs: 12_000,
    });
    expect(writings.slice(0, 3)).toEqual([0, 1, 2].map((n) => 100 + n * TRY_AGAIN_MS));
    expect(notices.slice(0, 3)).toEqual([
      [105, 'ENOSPC'],
      [5105, 'ENOSPC'],
      [10_105, 'written at 10105'],
    ]);
  });

  it('tries again while nothing else happens', () => {
    const { writings } = play({
      kept: [
        [0, CALM],
        [1000, evicted()],
      ],
      fails: (atMs) => atMs < 2000,
      untilMs: 60_000,
    });
    expect(writings).toEqual([1010, 1010 + TRY_AGAIN_MS]);
  });

  it('tries again what failed before', () => {
    const { writings } = play({ kept: [[0, CALM]], hasFailed: true, untilMs: 60_000 });
    expect(writings).toEqual([TRY_AGAIN_MS]);
  });

  it('says of a writing that hangs that it does, and begins no other', () => {
    const { writings, notices } = play({
      kept: flapping(0, 20_000, GRACE, DUE),
      tookMs: 12_000,
      untilMs: 12_500,
    });
    expect(writings[0]).toBe(100);
    expect(writings[1]).toBeGreaterThanOrEqual(12_100);
    expect(notices).toEqual([
      [100 + WRITE_LIMIT_MS, 'no answer within 5000 ms'],
      [12_100, 'written at 12100'],
    ]);
  });

  it('ends with its subscription', () => {
    const { writings, notices } = play({ kept: [[0, GRACE]], tookMs: 50, untilMs: 120 });
    expect(writings).toEqual([100]);
    expect(notices).toEqual([]);
    expect(play({ kept: [[0, GRACE]], untilMs: 99 }).writings).toEqual([]);
  });

  it('errors as its source does', () => {
    const inputs = {
      store: { path: '', write: () => Promise.resolve() },
      snapshot: () => ({}) as Snapshot,
      transitionPeriodMs: () => 0,
      scheduler: new TestScheduler(() => undefined),
    };
    const errors: unknown[] = [];
    throwError(() => 'planted')
      .pipe(keepState(inputs))
      .subscribe({ error: (error) => errors.push(error) });
    expect(errors).toEqual(['planted']);
    let completed = false;
    const running = of(CALM)
      .pipe(keepState(inputs))
      .subscribe({
        complete: () => {
          completed = true;
        },
      });
    expect(completed).toBe(false);
    running.unsubscribe();
    NEVER.pipe(keepState(inputs)).subscribe().unsubscribe();
  });
});

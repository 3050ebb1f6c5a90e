import { concat, firstValueFrom, interval, map, NEVER, of, take, timer } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { evictionPipeline, type Turn } from '../../src/core/pipeline.ts';
import { LONGEST_TIMER_MS, scanUntilDue } from '../../src/core/scan-until-due.ts';
import { liveScheduler, monotonicMs } from '../../src/sources/live-scheduler.ts';
import { MI, observation, outcome, pod, policy, softThreshold } from '../support/builders.ts';
import { within } from '../support/wait.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

describe('the live scheduler, in real time', () => {
  it('goes by the monotonic clock', () => {
    const before = Number(process.hrtime.bigint()) / 1e6;
    const now = liveScheduler.now();
    expect(now).toBeGreaterThanOrEqual(before);
    expect(now).toBeLessThanOrEqual(monotonicMs());
  });

  it('runs a delay of 0 in the next turn, before any timer', async () => {
    const order: string[] = [];
    const run = (name: string) => order.push(name);
    const done = new Promise<void>((resolve) => {
      liveScheduler.schedule(() => {
        run('delay');
        resolve();
      }, 2);
    });
    liveScheduler.schedule(() => run('next'));
    run('now');
    await within(done, 5000, 'a delay of 2 ms');
    expect(order).toStrictEqual(['now', 'next', 'delay']);
  });

  it('is never early for what waits by instants', async () => {
    const target = liveScheduler.now() + 3.7;
    const due$ = of('start').pipe((source) =>
      concat(source, NEVER).pipe(
        scanUntilDue<string, number>(
          () => liveScheduler.now(),
          (at) => (at < target ? target : undefined),
          liveScheduler,
        ),
        take(2),
      ),
    );
    const last = new Promise<number>((resolve) => {
      let seen = 0;
      due$.subscribe({
        next: (at) => {
          seen = at;
        },
        complete: () => resolve(seen),
      });
    });
    expect(await within(last, 5000, 'an instant 3.7 ms off')).toBeGreaterThanOrEqual(target);
  });

  it('carries what rxjs makes of it: timer and interval', async () => {
    const ticks$ = interval(1, liveScheduler).pipe(take(3));
    expect(await within(firstValueFrom(timer(1, liveScheduler)), 5000, 'a timer')).toBe(0);
    const last = firstValueFrom(ticks$.pipe(take(3), map(String)));
    expect(await within(last, 5000, 'an interval')).toBe('0');
  });
});

describe('the live scheduler, under fake timers', () => {
  beforeEach(() => {
    vi.useFakeTimers({
      now: Date.UTC(2026, 0, 1),
      toFake: [
        'setTimeout',
        'clearTimeout',
        'setImmediate',
        'clearImmediate',
        'hrtime',
        'Date',
        'performance',
      ],
    });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('rounds delays up, so that nothing is early', () => {
    const run = vi.fn();
    liveScheduler.schedule(run, 4.2);
    vi.advanceTimersByTime(4);
    expect(run).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(run).toHaveBeenCalledOnce();
  });

  it('waits 1000h in parts of an hour at most, and can be stopped in any of them', () => {
    const starts = vi.spyOn(globalThis, 'setTimeout');
    let ran = 0;
    liveScheduler.schedule(() => {
      ran += 1;
    }, 1000 * HOUR_MS);
    const stopped = liveScheduler.schedule(() => {
      ran += 10;
    }, 1000 * HOUR_MS);
    vi.advanceTimersByTime(999 * HOUR_MS);
    expect(ran).toBe(0);
    stopped.unsubscribe();
    vi.advanceTimersByTime(HOUR_MS);
    expect(ran).toBe(1);
    expect(Math.max(...starts.mock.calls.map(([, delayMs]) => delayMs ?? 0))).toBe(HOUR_MS);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('hands the state to the work', () => {
    const run = vi.fn();
    liveScheduler.schedule<string>(run, 1, 'state');
    liveScheduler.schedule<string>(run, 0, 'at once');
    vi.advanceTimersByTime(1);
    expect(run.mock.calls).toStrictEqual([['at once'], ['state']]);
  });

  it.each([0, 10])('cancels work with a delay of %d when it is unsubscribed', (delayMs) => {
    const run = vi.fn();
    const action = liveScheduler.schedule(run, delayMs);
    action.unsubscribe();
    expect(vi.getTimerCount()).toBe(0);
    vi.advanceTimersByTime(20);
    expect(run).not.toHaveBeenCalled();
  });

  it('work may schedule itself again, and is closed when it does not', () => {
    const times: number[] = [];
    const startMs = liveScheduler.now();
    const action = liveScheduler.schedule<number>(
      function (left) {
        times.push(Math.round(liveScheduler.now() - startMs));
        if (left > 0) this.schedule(left - 1, 5);
      },
      5,
      2,
    );
    vi.advanceTimersByTime(100);
    expect(times).toStrictEqual([5, 10, 15]);
    expect(action.closed).toBe(true);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('work that is scheduled twice runs once, at the later call’s time', () => {
    const run = vi.fn();
    const action = liveScheduler.schedule(run, 5) as ReturnType<typeof liveScheduler.schedule> & {
      schedule(state: undefined, delayMs: number): unknown;
    };
    action.schedule(undefined, 20);
    vi.advanceTimersByTime(19);
    expect(run).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(run).toHaveBeenCalledOnce();
    action.schedule(undefined, 1);
    expect(vi.getTimerCount()).toBe(0);
  });

  /** One reading that is met at the start, none afterwards; conditions as they change. */
  const conditionChanges = (transitionMs: number) => {
    const startMs = liveScheduler.now();
    const changes: [number, string][] = [];
    const subscription = evictionPipeline(
      {
        wakeups$: concat(of('start'), NEVER),
        outcomes$: NEVER,
        read: () => [observation(liveScheduler.now() - startMs < 1 ? 50 * MI : 500 * MI)],
        readPods: () => [],
        pollAfterMs: () => DAY_MS,
        podsIntervalMs: Number.MAX_SAFE_INTEGER,
      },
      () => policy({ pressureTransitionPeriodMs: transitionMs }),
      liveScheduler,
    ).subscribe(({ conditions }) => {
      const now = conditions.join();
      if (changes.at(-1)?.[1] !== now) changes.push([liveScheduler.now() - startMs, now]);
    });
    return { changes, subscription };
  };

  it('a transition period of 1000h: no timer is longer than an hour, none fires at once', () => {
    const timers = vi.spyOn(globalThis, 'setTimeout');
    const { changes, subscription } = conditionChanges(1000 * HOUR_MS);
    vi.advanceTimersByTime(1000 * HOUR_MS - 1);
    expect(changes).toStrictEqual([[0, 'MemoryPressure']]);
    vi.advanceTimersByTime(1);
    expect(changes).toHaveLength(2);
    expect(changes[1]?.[0]).toBeGreaterThanOrEqual(1000 * HOUR_MS);
    expect(changes[1]?.[1]).toBe('');
    const delays = timers.mock.calls.map(([, delayMs]) => delayMs ?? 0);
    expect(Math.max(...delays)).toBe(LONGEST_TIMER_MS);
    expect(vi.getTimerCount()).toBe(1);
    subscription.unsubscribe();
    expect(vi.getTimerCount()).toBe(0);
  });

  it.each([
    ['a day ahead', DAY_MS],
    ['a day back', -DAY_MS],
  ])('the wall clock is stepped %s: grace and transition are as long as before', (_, stepMs) => {
    const startMs = liveScheduler.now();
    const said: string[] = [];
    const say = (turn: Turn): void => {
      const seconds = Math.round((liveScheduler.now() - startMs) / 1000);
      const words = `${turn.decision.kind} ${turn.conditions.join()}`;
      if (said.at(-1)?.endsWith(words) !== true) said.push(`${seconds} s: ${words}`);
    };
    const subscription = evictionPipeline(
      {
        wakeups$: concat(of('start'), NEVER),
        outcomes$: timer(40_000, liveScheduler).pipe(map(() => outcome('leak'))),
        read: () => [observation(liveScheduler.now() - startMs < 35_000 ? 150 * MI : 500 * MI)],
        readPods: () => [pod('leak')],
        pollAfterMs: () => 10_000,
        podsIntervalMs: DAY_MS,
      },
      () =>
        policy({
          thresholds: [softThreshold({ gracePeriodMs: 30_000 })],
          pressureTransitionPeriodMs: 60_000,
        }),
      liveScheduler,
    ).subscribe(say);
    vi.advanceTimersByTime(15_000);
    vi.setSystemTime(Date.now() + stepMs);
    vi.advanceTimersByTime(17_000);
    vi.setSystemTime(Date.now() + stepMs);
    vi.advanceTimersByTime(100_000);
    expect(said).toStrictEqual([
      '0 s: none MemoryPressure',
      '30 s: evict MemoryPressure',
      // What is in flight has its outcome at 40 s; the last reading that was met was at 30 s.
      '40 s: none MemoryPressure',
      '90 s: none ',
    ]);
    subscription.unsubscribe();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('a timer that is early by a fraction does not miss the instant', () => {
    const startMs = liveScheduler.now();
    const late = { atMs: undefined as number | undefined };
    let skewMs = 0;
    const early = {
      now: () => liveScheduler.now() - skewMs,
      schedule: liveScheduler.schedule,
    };
    const targetMs = startMs + 100;
    const subscription = concat(of('start'), NEVER)
      .pipe(
        scanUntilDue<string, number>(
          (last) => (last ?? 0) + 1,
          (count) => (count === 1 ? targetMs : undefined),
          early,
        ),
      )
      .subscribe((count) => {
        if (count === 2) late.atMs = early.now();
      });
    // By its own clock the timer of 100 ms fires 0.4 ms too soon.
    skewMs = 0.4;
    vi.advanceTimersByTime(100);
    expect(late.atMs).toBeUndefined();
    vi.advanceTimersByTime(1);
    expect(late.atMs).toBeGreaterThanOrEqual(targetMs);
    subscription.unsubscribe();
    expect(vi.getTimerCount()).toBe(0);
  });
});

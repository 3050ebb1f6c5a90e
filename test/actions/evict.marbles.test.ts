import { EMPTY, map, merge, NEVER, type Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { type EvictDecision, type EvictDependencies, evict } from '../../src/actions/evict.ts';
import type { RefusalReason } from '../../src/core/decision.ts';
import type { EvictProgress, EvictRequest } from '../../src/ports/runtime.ts';
import { cause, evictDecision, MI, outcome, threshold, value } from '../support/builders.ts';
import { type Marbles, marbles } from '../support/marbles.ts';

/** What a scripted runtime says: t TERM, k KILL, e empty, o an obstacle, r 2 left. */
const PROGRESS = {
  t: { kind: 'terminating', processes: 3 },
  k: { kind: 'killed', processes: 3 },
  K: { kind: 'killed', processes: 4 },
  e: { kind: 'empty', processes: 4, chargedBytes: 4096 },
  o: { kind: 'obstacle', detail: 'pid 7: EPERM' },
  r: { kind: 'remaining', processes: 2 },
} as const satisfies Record<string, EvictProgress>;

const HARD = evictDecision();
const SOFT = evictDecision({ hard: false, gracePeriodMs: 10_000 });
const EVICTED = { kind: 'evicted', chargedBytes: 4096 } as const;
const DEADLINE = { kind: 'timedOut', reason: 'deadline' } as const;
const STILL_DYING = { kind: 'timedOut', reason: 'stillDying' } as const;

interface Scene {
  readonly decision?: EvictDecision;
  readonly dryRun?: boolean;
  readonly escalations$?: Observable<number>;
  /** What is available at an instant; 50Mi by default, half of the threshold. */
  readonly available?: (nowMs: number) => number | undefined;
}

/** Carries out an eviction on a runtime that emits `progress`; remembers what it was asked for. */
function play(
  { scheduler }: Marbles,
  progress: Observable<EvictProgress> | (() => Observable<EvictProgress>),
  { decision = HARD, dryRun = false, escalations$ = NEVER, available = () => 50 * MI }: Scene = {},
) {
  const requests: EvictRequest[] = [];
  const dependencies: EvictDependencies = {
    runtime: {
      capabilities: { evict: null, killing: { by: 'pidfd', detail: '' }, reap: null },
      observePods: () => [],
      podsTrouble: () => undefined,
      oomKills: () => [],
      evict: (request) => {
        requests.push(request);
        return typeof progress === 'function' ? progress() : progress;
      },
      close: () => undefined,
    },
    scheduler,
    dryRun,
    escalations$,
    readAvailable: () => available(scheduler.now()),
    askAgain: () => () => undefined,
  };
  return { outcome$: evict(decision, dependencies), requests };
}

describe('before the first signal', () => {
  const until = { kind: 'refused' } as const;

  it('a dry run ends: nobody is asked anything', () => {
    marbles((helpers) => {
      const { outcome$, requests } = play(helpers, NEVER, { dryRun: true });
      helpers.expectObservable(outcome$).toBe('(x|)', {
        x: outcome('leak', { ...until, reason: 'dryRun' }),
      });
      helpers.flush();
      expect(requests).toStrictEqual([]);
    });
  });

  it.each([
    ['a byte below the level: on it goes', 100 * MI - 1, true],
    ['exactly at the level: gone', 100 * MI, false],
    ['far above it: gone', 500 * MI, false],
    ['unknown: on it goes', undefined, true],
  ])('pressure is measured again, %s', (_, available, goesOn) => {
    marbles((helpers) => {
      const scene = play(
        helpers,
        helpers.cold('r', { r: { kind: 'refused', reason: 'podGone' } }),
        {
          available: () => available,
        },
      );
      helpers.expectObservable(scene.outcome$).toBe('(x|)', {
        x: outcome('leak', { ...until, reason: goesOn ? 'podGone' : 'pressureGone' }),
      });
      helpers.flush();
      expect(scene.requests).toHaveLength(goesOn ? 1 : 0);
    });
  });

  it('goes by the level that was decided on, with the minimum reclaim where that was the cause', () => {
    marbles((helpers) => {
      const decision = evictDecision({ cause: cause({ level: 150 * MI, reclaiming: true }) });
      const { outcome$ } = play(helpers, helpers.cold('t', PROGRESS), {
        decision,
        available: () => 149 * MI,
      });
      helpers.expectObservable(outcome$, '^ 100ms !').toBe('-');
    });
  });

  it('asks for the pod that was decided on, with its grace', () => {
    marbles((helpers) => {
      const escalations$ = helpers.hot<number>('-');
      const scene = play(helpers, NEVER, { decision: SOFT, escalations$ });
      helpers.expectObservable(scene.outcome$, '^!').toBe('-');
      helpers.flush();
      expect(scene.requests).toStrictEqual([
        {
          podId: 'id-of-leak',
          podName: 'leak',
          hard: false,
          gracePeriodMs: 10_000,
          signal: 'memory.available',
          forbidden: expect.any(Function),
          escalations$,
        },
      ]);
    });
  });

  it('is cold: nothing is read or signalled before it is subscribed', () => {
    marbles((helpers) => {
      let readings = 0;
      const available = () => {
        readings += 1;
        return 0;
      };
      const { requests } = play(helpers, NEVER, { available });
      expect([readings, requests]).toStrictEqual([0, []]);
    });
  });
});

describe('the end of a victim', () => {
  it('TERM honoured: evicted after two readings 20 ms apart, no KILL', () => {
    marbles((helpers) => {
      const progress = helpers.cold('t 99ms (e|)', PROGRESS);
      const subscription = '         ^ 99ms !';
      const expected = '             120ms (x|)';
      const { outcome$ } = play(helpers, progress, { decision: SOFT });
      helpers.expectObservable(outcome$).toBe(expected, {
        x: outcome('leak', EVICTED, {
          timing: { firstSignalAtMs: 0, emptyAtMs: 100, endedAtMs: 120 },
          processes: 4,
        }),
      });
      helpers.expectSubscriptions(progress.subscriptions).toBe(subscription);
    });
  });

  it('TERM ignored: KILL at the end of the grace', () => {
    marbles((helpers) => {
      const progress = helpers.cold('t 9999ms k 29ms (e|)', PROGRESS);
      //                     readings each 20 ms from the KILL on: 10020, 10040, 10060
      const expected = '             10060ms (x|)';
      const { outcome$ } = play(helpers, progress, { decision: SOFT });
      helpers.expectObservable(outcome$).toBe(expected, {
        x: outcome('leak', EVICTED, {
          timing: { firstSignalAtMs: 0, killedAtMs: 10_000, emptyAtMs: 10_030, endedAtMs: 10_060 },
          processes: 4,
        }),
      });
    });
  });

  it('KILL at once', () => {
    marbles((helpers) => {
      const progress = helpers.cold('k 18ms (e|)', PROGRESS);
      const expected = '             40ms (x|)';
      const { outcome$ } = play(helpers, progress);
      helpers.expectObservable(outcome$).toBe(expected, {
        x: outcome('leak', EVICTED, {
          timing: { firstSignalAtMs: 0, killedAtMs: 0, emptyAtMs: 19, endedAtMs: 40 },
          processes: 4,
        }),
      });
    });
  });

  it.each([
    ['falls by less than 256Ki: settled', 256 * 1024 - 1, 40],
    ['falls by 256Ki: another 20 ms', 256 * 1024, 60],
    ['stays: settled', 0, 40],
    ['rises, as another pod grows: settled', -10 * MI, 40],
  ])('usage after the end %s', (_, freedBytes, endedAtMs) => {
    marbles((helpers) => {
      const progress = helpers.cold('k 18ms (e|)', PROGRESS);
      const available = (nowMs: number) => 50 * MI + (nowMs >= 40 ? freedBytes : 0);
      const { outcome$ } = play(helpers, progress, { available });
      helpers.expectObservable(outcome$).toBe(`${endedAtMs}ms (x|)`, {
        x: outcome('leak', EVICTED, {
          timing: { firstSignalAtMs: 0, killedAtMs: 0, emptyAtMs: 19, endedAtMs },
          processes: 4,
        }),
      });
    });
  });

  it('waits as long as usage falls, until the deadline', () => {
    marbles((helpers) => {
      const progress = helpers.cold('k 18ms (e|)', PROGRESS);
      // What is available rises with time; before the first signal it is below the level.
      const available = (nowMs: number) => 50 * MI + nowMs * MI;
      const { outcome$ } = play(helpers, progress, { available });
      helpers.expectObservable(outcome$).toBe('5000ms (x|)', {
        x: outcome('leak', EVICTED, {
          timing: { firstSignalAtMs: 0, killedAtMs: 0, emptyAtMs: 19, endedAtMs: 5000 },
          processes: 4,
        }),
      });
    });
  });

  it.each([
    ['hard, from the KILL', HARD, 'k 18ms (e|)', 5000, 0],
    ['soft, from the KILL', SOFT, 'k 18ms (e|)', 30_000, 0],
    ['soft, from emptiness where no KILL was needed', SOFT, 't 18ms (e|)', 30_019, undefined],
  ])(
    'is settled at the deadline where usage cannot be read: %s',
    (_, decision, script, endedAtMs, killedAtMs) => {
      marbles((helpers) => {
        const { outcome$ } = play(helpers, helpers.cold(script, PROGRESS), {
          decision,
          available: () => undefined,
        });
        helpers.expectObservable(outcome$).toBe(`${endedAtMs}ms (x|)`, {
          x: outcome('leak', EVICTED, {
            timing: { firstSignalAtMs: 0, killedAtMs, emptyAtMs: 19, endedAtMs },
            processes: 4,
          }),
        });
      });
    },
  );

  it('does not count two readings that are closer than 20 ms', () => {
    marbles((helpers) => {
      // Empty at 25: the reading at 40 is 15 ms later, the one at 60 is the second.
      const progress = helpers.cold('k 24ms (e|)', PROGRESS);
      const { outcome$ } = play(helpers, progress);
      helpers.expectObservable(outcome$.pipe(map(({ kind }) => kind))).toBe('60ms (x|)', {
        x: 'evicted',
      });
    });
  });

  it('names what stays charged, or that it is unknown', () => {
    marbles((helpers) => {
      const unknown = { kind: 'empty', processes: 1, chargedBytes: undefined } as const;
      const progress = helpers.cold<EvictProgress>('(ke|)', { k: PROGRESS.k, e: unknown });
      const { outcome$ } = play(helpers, progress);
      helpers.expectObservable(outcome$).toBe('20ms (x|)', {
        x: outcome(
          'leak',
          { kind: 'evicted', chargedBytes: undefined },
          {
            timing: { firstSignalAtMs: 0, killedAtMs: 0, emptyAtMs: 0, endedAtMs: 20 },
            processes: 1,
          },
        ),
      });
    });
  });
});

describe('a victim that does not end', () => {
  const killed = (endedAtMs: number, processes = 3) => ({
    timing: { firstSignalAtMs: 0, killedAtMs: 0, endedAtMs },
    processes,
  });

  it.each([
    ['hard: 5 s after the KILL', HARD, 5000],
    ['soft: 30 s after the KILL', SOFT, 30_000],
  ])('times out, %s', (_, decision, endedAtMs) => {
    marbles((helpers) => {
      const progress = helpers.cold('k', PROGRESS);
      const { outcome$ } = play(helpers, progress, { decision });
      helpers.expectObservable(outcome$).toBe(`${endedAtMs}ms (x|)`, {
        x: outcome('leak', DEADLINE, killed(endedAtMs)),
      });
      helpers.expectSubscriptions(progress.subscriptions).toBe(`^ ${endedAtMs - 1}ms !`);
    });
  });

  it('ends in time: empty just before the deadline', () => {
    marbles((helpers) => {
      const progress = helpers.cold('k 4950ms (e|)', PROGRESS);
      const { outcome$ } = play(helpers, progress);
      helpers.expectObservable(outcome$.pipe(map(({ kind }) => kind))).toBe('4980ms (x|)', {
        x: 'evicted',
      });
    });
  });

  it('says what stands in the way', () => {
    marbles((helpers) => {
      const { outcome$ } = play(helpers, helpers.cold('k-or', PROGRESS));
      helpers.expectObservable(outcome$).toBe('5000ms (x|)', {
        x: outcome('leak', { ...DEADLINE, remaining: 2, detail: 'pid 7: EPERM' }, killed(5000)),
      });
    });
  });

  it('is not given more time by a KILL that is repeated', () => {
    marbles((helpers) => {
      const { outcome$ } = play(helpers, helpers.cold('k 999ms K 999ms K', PROGRESS));
      helpers.expectObservable(outcome$).toBe('5000ms (x|)', {
        x: outcome('leak', DEADLINE, killed(5000, 4)),
      });
    });
  });

  it('has no deadline while it is in its grace', () => {
    marbles((helpers) => {
      const { outcome$ } = play(helpers, helpers.cold('t', PROGRESS), { decision: SOFT });
      helpers.expectObservable(outcome$, '^ 60m !').toBe('-');
    });
  });

  it.each([
    // threshold, what another pod took since the first reading 20 ms after the KILL, still waited for
    ['100Mi: short of a quarter', '100Mi', 25 * MI - 1, false],
    ['100Mi: a quarter', '100Mi', 25 * MI, true],
    ['8Mi: short of 4Mi', '8Mi', 4 * MI - 1, false],
    ['8Mi: 4Mi', '8Mi', 4 * MI, true],
  ])(
    'is not waited for when another pod takes what it gives back, %s',
    (_, text, taken, isOver) => {
      marbles((helpers) => {
        const decision = evictDecision({
          cause: cause({ threshold: threshold({ value: value(text) }), level: 100 * MI }),
        });
        // Before the baseline, which is taken at 20 ms, more than that is taken: it does not count.
        const available = (nowMs: number) =>
          nowMs < 20 ? 90 * MI : 50 * MI - (nowMs >= 100 ? taken : 0);
        const { outcome$ } = play(helpers, helpers.cold('k', PROGRESS), { decision, available });
        const endedAtMs = isOver ? 100 : 5000;
        helpers.expectObservable(outcome$).toBe(`${endedAtMs}ms (x|)`, {
          x: outcome('leak', isOver ? STILL_DYING : DEADLINE, killed(endedAtMs)),
        });
      });
    },
  );

  it('the first reading that can be read 20 ms after the KILL is the baseline', () => {
    marbles((helpers) => {
      const available = (nowMs: number) => {
        if (nowMs === 20) return undefined;
        return nowMs < 60 ? 50 * MI : 25 * MI;
      };
      const { outcome$ } = play(helpers, helpers.cold('k', PROGRESS), { available });
      helpers.expectObservable(outcome$).toBe('60ms (x|)', {
        x: outcome('leak', STILL_DYING, killed(60)),
      });
    });
  });

  it('is waited for in any case when it is a soft victim', () => {
    marbles((helpers) => {
      const { outcome$ } = play(helpers, helpers.cold('k', PROGRESS), {
        decision: SOFT,
        available: (nowMs) => (nowMs < 100 ? 99 * MI : 0),
      });
      helpers.expectObservable(outcome$).toBe('30s (x|)', {
        x: outcome('leak', DEADLINE, killed(30_000)),
      });
    });
  });

  it('goes on waiting where usage cannot be read', () => {
    marbles((helpers) => {
      const { outcome$ } = play(helpers, helpers.cold('k', PROGRESS), {
        available: () => undefined,
      });
      helpers.expectObservable(outcome$).toBe('5s (x|)', {
        x: outcome('leak', DEADLINE, killed(5000)),
      });
    });
  });
});

describe('an escalation', () => {
  it('reaches the runtime, and makes a soft victim a hard one', () => {
    marbles((helpers) => {
      const escalations$ = helpers.hot('1s 0', { 0: 0 });
      const killed$ = escalations$.pipe(map(() => PROGRESS.k));
      const progress = () => merge(helpers.cold('t', PROGRESS), killed$);
      const { outcome$, requests } = play(helpers, progress, { decision: SOFT, escalations$ });
      helpers.expectObservable(outcome$).toBe('6s (x|)', {
        x: outcome('leak', DEADLINE, {
          timing: { firstSignalAtMs: 0, killedAtMs: 1000, endedAtMs: 6000 },
          processes: 3,
        }),
      });
      helpers.flush();
      expect(requests[0]?.escalations$).toBe(escalations$);
    });
  });

  it('after the KILL shortens what is waited, from the KILL on', () => {
    marbles((helpers) => {
      const escalations$ = helpers.hot('10001ms 0', { 0: 0 });
      const { outcome$ } = play(helpers, helpers.cold('k', PROGRESS), {
        decision: SOFT,
        escalations$,
      });
      // 5 s are over at the next reading.
      helpers.expectObservable(outcome$).toBe('10020ms (x|)', {
        x: outcome('leak', DEADLINE, {
          timing: { firstSignalAtMs: 0, killedAtMs: 0, endedAtMs: 10_020 },
          processes: 3,
        }),
      });
    });
  });

  it('is no longer listened to when the eviction has ended', () => {
    marbles((helpers) => {
      const escalations$ = helpers.hot<number>('-');
      const { outcome$ } = play(helpers, helpers.cold('(ke|)', PROGRESS), { escalations$ });
      helpers.expectObservable(outcome$.pipe(map(({ kind }) => kind))).toBe('20ms (x|)', {
        x: 'evicted',
      });
      helpers.expectSubscriptions(escalations$.subscriptions).toBe('^ 19ms !');
    });
  });
});

describe('what the runtime says', () => {
  const refusals: readonly RefusalReason[] = [
    'podGone',
    'podReplaced',
    'protected',
    'nothingToKill',
  ];

  it.each(refusals)('refused, %s', (reason) => {
    marbles((helpers) => {
      const detail = 'pid 1 is an ancestor';
      const progress = helpers.cold('5ms (r|)', {
        r: { kind: 'refused', reason, detail } as const,
      });
      const { outcome$ } = play(helpers, progress);
      helpers.expectObservable(outcome$).toBe('5ms (x|)', {
        x: outcome('leak', { kind: 'refused', reason, detail }, { timing: { endedAtMs: 5 } }),
      });
    });
  });

  it('error: failed', () => {
    marbles((helpers) => {
      const progress = helpers.cold<EvictProgress>('5ms #', {}, new Error('EPERM'));
      const { outcome$ } = play(helpers, progress);
      helpers.expectObservable(outcome$).toBe('5ms (x|)', {
        x: outcome('leak', { kind: 'failed', error: 'EPERM' }, { timing: { endedAtMs: 5 } }),
      });
    });
  });

  it('error that is none: failed with its text', () => {
    marbles((helpers) => {
      const { outcome$ } = play(helpers, helpers.cold<EvictProgress>('#'));
      helpers.expectObservable(outcome$).toBe('(x|)', {
        x: outcome('leak', { kind: 'failed', error: 'error' }),
      });
    });
  });

  it('throws: failed', () => {
    marbles((helpers) => {
      const { outcome$ } = play(helpers, () => {
        throw new Error('a fault');
      });
      helpers.expectObservable(outcome$).toBe('(x|)', {
        x: outcome('leak', { kind: 'failed', error: 'a fault' }),
      });
    });
  });

  it.each([
    ['before', 0],
    ['after', 20],
  ])('reading throws %s the first signal: failed', (_, atMs) => {
    marbles((helpers) => {
      const available = (nowMs: number) => {
        if (nowMs >= atMs) throw new Error('EIO');
        return 50 * MI;
      };
      const { outcome$ } = play(helpers, helpers.cold('k', PROGRESS), { available });
      helpers.expectObservable(outcome$).toBe(atMs === 0 ? '(x|)' : '20ms (x|)', {
        x: outcome('leak', { kind: 'failed', error: 'EIO' }, { timing: { endedAtMs: atMs } }),
      });
    });
  });

  it.each([
    ['nothing at all', '|', 0, undefined],
    ['nothing after TERM', 't---|', 4, 0],
  ])(
    '%s, and ends: failed, not waited for without end',
    (_, script, endedAtMs, firstSignalAtMs) => {
      marbles((helpers) => {
        const { outcome$ } = play(helpers, helpers.cold(script, PROGRESS), { decision: SOFT });
        const error = 'the runtime gave up without saying why';
        helpers.expectObservable(outcome$).toBe(`${endedAtMs}ms (x|)`, {
          x: outcome(
            'leak',
            { kind: 'failed', error },
            {
              timing: { firstSignalAtMs, endedAtMs },
              processes: firstSignalAtMs === undefined ? 0 : 3,
            },
          ),
        });
      });
    },
  );

  it('nothing, for ever: waits until it is unsubscribed', () => {
    marbles((helpers) => {
      const progress = helpers.cold<EvictProgress>('-');
      const { outcome$ } = play(helpers, progress);
      helpers.expectObservable(outcome$, '^ 60s !').toBe('-');
      helpers.expectSubscriptions(progress.subscriptions).toBe('^ 60s !');
    });
  });

  it('is no longer asked when it is unsubscribed early: no timer stays', () => {
    marbles((helpers) => {
      const { scheduler } = helpers;
      const progress = helpers.cold('k', PROGRESS);
      const { outcome$ } = play(helpers, progress);
      helpers.expectObservable(outcome$, '^ 99ms !').toBe('-');
      helpers.expectSubscriptions(progress.subscriptions).toBe('^ 99ms !');
      helpers.flush();
      expect(scheduler.actions.filter(({ closed }) => !closed)).toStrictEqual([]);
    });
  });

  it('ends though the escalations have ended', () => {
    marbles((helpers) => {
      const { outcome$ } = play(helpers, helpers.cold('(ke|)', PROGRESS), { escalations$: EMPTY });
      helpers.expectObservable(outcome$.pipe(map(({ kind }) => kind))).toBe('20ms (x|)', {
        x: 'evicted',
      });
    });
  });
});

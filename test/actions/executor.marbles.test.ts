import { map, merge, NEVER, type Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { execute } from '../../src/actions/executor.ts';
import type { Decision } from '../../src/core/decision.ts';
import type { EvictProgress } from '../../src/ports/runtime.ts';
import { cause, escalateDecision, evictDecision, MI, pod } from '../support/builders.ts';
import { type Marbles, marbles } from '../support/marbles.ts';

type Deed = Exclude<Decision, { kind: 'none' }>;

const DECISIONS = {
  a: evictDecision({ pod: pod('a'), hard: false, gracePeriodMs: 1000 }),
  b: evictDecision({ pod: pod('b'), hard: false, gracePeriodMs: 1000 }),
  o: { kind: 'observePods', cause: cause() },
  x: escalateDecision({ podId: 'id-of-a', podName: 'a', gracePeriodMs: 7 }),
} as const satisfies Record<string, Deed>;

/** A pod of 10 ms: it is empty at once when it is escalated. The outcome comes 20 ms after. */
function play(helpers: Marbles, decisions$: Observable<Deed>, dyingMs = 10) {
  const calls: string[] = [];
  const { scheduler } = helpers;
  const log = (what: string) => calls.push(`${scheduler.now()} ${what}`);
  const empty: EvictProgress = { kind: 'empty', processes: 1, chargedBytes: 0 };
  const outcomes$ = execute(decisions$, {
    scheduler,
    dryRun: false,
    askAgain: () => () => undefined,
    readAvailable: () => 50 * MI,
    runtime: {
      capabilities: { evict: null, killing: { by: 'pidfd', detail: '' }, reap: null },
      observePods: () => [],
      podsTrouble: () => undefined,
      oomKills: () => [],
      evict: ({ podName, escalations$ }) => {
        log(`evict ${podName}`);
        const cut$ = escalations$.pipe(
          map((graceMs) => {
            log(`cut ${podName} to ${graceMs}`);
            return empty;
          }),
        );
        return merge(helpers.cold(`${dyingMs}ms e`, { e: empty }), cut$);
      },
      close: () => undefined,
    },
  });
  return { calls, outcomes$: outcomes$.pipe(map(({ podName, kind }) => `${podName} ${kind}`)) };
}

const ENDED = { a: 'a evicted', b: 'b evicted' };

describe('execute', () => {
  it('evicts, and says how it ended', () => {
    marbles((helpers) => {
      const decisions$ = helpers.hot('-a-', DECISIONS);
      const { outcomes$, calls } = play(helpers, decisions$);
      helpers.expectObservable(outcomes$, '^ 99ms !').toBe('31ms a', ENDED);
      helpers.expectSubscriptions(decisions$.subscriptions).toBe('^ 99ms !');
      helpers.flush();
      expect(calls).toStrictEqual(['1 evict a']);
    });
  });

  it('brings an escalation to the eviction that runs', () => {
    marbles((helpers) => {
      const decisions$ = helpers.hot('-a 499ms x', DECISIONS);
      const { outcomes$, calls } = play(helpers, decisions$, 1000);
      helpers.expectObservable(outcomes$, '^ 3s !').toBe('521ms a', ENDED);
      helpers.flush();
      expect(calls).toStrictEqual(['1 evict a', '501 cut a to 7']);
    });
  });

  it('brings one that comes in the same instant, after its eviction was decided', () => {
    marbles((helpers) => {
      const { outcomes$, calls } = play(helpers, helpers.hot('-(ax)', DECISIONS), 1000);
      helpers.expectObservable(outcomes$, '^ 3s !').toBe('21ms a', ENDED);
      helpers.flush();
      expect(calls).toStrictEqual(['1 evict a', '1 cut a to 7']);
    });
  });

  it('does nothing for an escalation when nothing runs, nor for a wish to see pods', () => {
    marbles((helpers) => {
      const { outcomes$, calls } = play(helpers, helpers.hot('-xo-|', DECISIONS));
      helpers.expectObservable(outcomes$).toBe('----|');
      helpers.flush();
      expect(calls).toStrictEqual([]);
    });
  });

  it('has one eviction at a time', () => {
    marbles((helpers) => {
      const { outcomes$, calls } = play(helpers, helpers.hot('ab', DECISIONS));
      helpers.expectObservable(outcomes$, '^ 99ms !').toBe('30ms a 29ms b', ENDED);
      helpers.flush();
      expect(calls).toStrictEqual(['0 evict a', '30 evict b']);
    });
  });

  it('completes after the last eviction, having subscribed the decisions once', () => {
    marbles((helpers) => {
      const decisions$ = helpers.cold('(ab|)', DECISIONS);
      const { outcomes$ } = play(helpers, decisions$);
      helpers.expectObservable(outcomes$).toBe('30ms a 29ms (b|)', ENDED);
      helpers.expectSubscriptions(decisions$.subscriptions).toBe('(^!)');
    });
  });

  it('never', () => {
    marbles((helpers) => {
      helpers.expectObservable(play(helpers, NEVER).outcomes$, '^ 9ms !').toBe('-');
    });
  });

  it('empty', () => {
    marbles((helpers) => {
      const decisions$ = helpers.cold<Deed>('|');
      helpers.expectObservable(play(helpers, decisions$).outcomes$).toBe('|');
    });
  });

  it('error: fails with it, and lets the eviction go', () => {
    marbles((helpers) => {
      const decisions$ = helpers.hot<Deed>('a--#', DECISIONS);
      helpers.expectObservable(play(helpers, decisions$).outcomes$).toBe('---#');
      helpers.expectSubscriptions(decisions$.subscriptions).toBe('^--!');
      helpers.flush();
      expect(helpers.scheduler.actions.filter(({ closed }) => !closed)).toStrictEqual([]);
    });
  });

  it('early unsubscribe: the eviction is let go, no timer stays', () => {
    marbles((helpers) => {
      const { scheduler } = helpers;
      const decisions$ = helpers.hot('a', DECISIONS);
      const { outcomes$ } = play(helpers, decisions$);
      helpers.expectObservable(outcomes$, '^ 24ms !').toBe('-');
      helpers.expectSubscriptions(decisions$.subscriptions).toBe('^ 24ms !');
      helpers.flush();
      expect(scheduler.actions.filter(({ closed }) => !closed)).toStrictEqual([]);
    });
  });

  it('an eviction that throws ends as failed; the next one is carried out', () => {
    marbles((helpers) => {
      const outcomes$ = execute(helpers.hot('ab', DECISIONS), {
        scheduler: helpers.scheduler,
        dryRun: false,
        askAgain: () => () => undefined,
        readAvailable: () => {
          throw new Error('a fault');
        },
        runtime: {
          capabilities: { evict: null, killing: { by: 'pidfd', detail: '' }, reap: null },
          observePods: () => [],
          podsTrouble: () => undefined,
          oomKills: () => [],
          evict: () => NEVER,
          close: () => undefined,
        },
      }).pipe(map(({ podName, kind }) => `${podName} ${kind}`));
      helpers.expectObservable(outcomes$, '^ 9ms !').toBe('ab', { a: 'a failed', b: 'b failed' });
    });
  });
});

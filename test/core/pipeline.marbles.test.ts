import {
  filter,
  ignoreElements,
  interval,
  map,
  NEVER,
  type Observable,
  of,
  type SchedulerLike,
  startWith,
} from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { EvictionOutcome } from '../../src/core/decision.ts';
import {
  conditionsOf,
  decisionsOf,
  evictionPipeline,
  type PipelineInputs,
  type Turn,
} from '../../src/core/pipeline.ts';
import type { Policy } from '../../src/core/policy.ts';
import { RECLAIM_FUNCTIONS } from '../../src/core/reclaim.ts';
import type { Signal } from '../../src/core/signal.ts';
import { INITIAL_STATE } from '../../src/core/state.ts';
import {
  MI,
  observation,
  outcome,
  pod,
  policy,
  softThreshold,
  threshold,
} from '../support/builders.ts';
import { type Marbles, marbles } from '../support/marbles.ts';

const LEAK = pod('leak', { workingSetBytes: 300 * MI });
const WEB = pod('web', { priority: 1000, workingSetBytes: 10 * MI });

interface Scene extends Partial<Omit<PipelineInputs, 'read' | 'pollAfterMs'>> {
  readonly by?: Policy;
  /** What is available at an instant; undefined where it cannot be read. 500Mi by default. */
  readonly available?: (nowMs: number) => number | undefined;
  readonly pollAfterMs?: number;
  /** What is read; `memory.available` by default. */
  readonly signal?: Signal;
}

/** A pipeline on scripted counters; remembers when the node and the pods were read. */
function play({ scheduler }: Marbles, scene: Scene) {
  const { by = BY, available = () => 500 * MI, pollAfterMs = 3_600_000 } = scene;
  const reads: number[] = [];
  const podReads: number[] = [];
  const inputs: PipelineInputs = {
    wakeups$: scene.wakeups$ ?? NEVER,
    outcomes$: scene.outcomes$ ?? NEVER,
    read: () => {
      reads.push(scheduler.now());
      const now = available(scheduler.now());
      const { signal = 'memory.available' } = scene;
      return now === undefined ? [] : [observation(now, { signal, atMs: scheduler.now() })];
    },
    readPods: () => {
      podReads.push(scheduler.now());
      return scene.readPods?.() ?? [WEB, LEAK];
    },
    pollAfterMs: () => pollAfterMs,
    podsIntervalMs: scene.podsIntervalMs ?? 3_600_000,
    ...(scene.reclaimed$ === undefined ? {} : { reclaimed$: scene.reclaimed$ }),
    ...(scene.holdsSpace === undefined ? {} : { holdsSpace: scene.holdsSpace }),
    ...(scene.initialState === undefined ? {} : { initialState: scene.initialState }),
  };
  return { turns$: evictionPipeline(inputs, () => by, scheduler), reads, podReads };
}

const BY = policy();

/** `wakeup evict leak`, `due calm`. */
function say({ reason, decision }: Turn): string {
  switch (decision.kind) {
    case 'none':
      return `${reason} ${decision.why}`;
    case 'evict':
      return `${reason} evict ${decision.pod.name}`;
    case 'escalate':
      return `${reason} escalate ${decision.podName}`;
    case 'observePods':
    case 'reclaim':
      return `${reason} ${decision.kind}`;
  }
}

const said = (turns$: Observable<Turn>) => turns$.pipe(map(say));

describe('evictionPipeline', () => {
  it('makes a turn of each wake-up and of each poll', () => {
    marbles((helpers) => {
      const wakeups$ = helpers.hot(' w---w---------');
      const until = '               ^------------!';
      const expected = '            s---c----d----';
      const { turns$ } = play(helpers, { wakeups$, pollAfterMs: 5 });
      helpers.expectObservable(said(turns$), until).toBe(expected, {
        s: 'start calm',
        c: 'wakeup calm',
        d: 'due calm',
      });
      helpers.expectSubscriptions(wakeups$.subscriptions).toBe(until);
    });
  });

  it('says what each wake-up was for: the kernel’s unless it is told otherwise', () => {
    marbles((helpers) => {
      const wakeups$ = helpers.hot(' w---m---a---x', {
        w: 'start',
        m: 'measured',
        a: 'asked',
        x: 'anything',
      });
      const until = '               ^------------!';
      const { turns$ } = play(helpers, { wakeups$, pollAfterMs: 50 });
      helpers.expectObservable(said(turns$), until).toBe('s---m---a---x', {
        s: 'start calm',
        m: 'measured calm',
        a: 'asked calm',
        x: 'wakeup calm',
      });
    });
  });

  it('takes along whether space is held that a pod left', () => {
    marbles((helpers) => {
      const wakeups$ = helpers.hot('--w---w--');
      const { scheduler } = helpers;
      const { turns$ } = play(helpers, { wakeups$, holdsSpace: () => scheduler.now() < 4 });
      const held$ = turns$.pipe(map(({ sample }) => sample.spaceHeld ?? false));
      helpers.expectObservable(held$, '^-------!').toBe('--t---f--', { t: true, f: false });
    });
  });

  it('takes the end of a collection for a sample of its own, also where that asks for pods', () => {
    marbles((helpers) => {
      const wakeups$ = helpers.hot('  w---w---------w--');
      const reclaimed$ = helpers.hot('--------r---------');
      const until = '                ^----------------!';
      const expected = '             c---m---e-----f--';
      const by = policy({
        thresholds: [threshold({ signal: 'nodefs.available' })],
        ranksDisk: true,
        reclaims: RECLAIM_FUNCTIONS,
      });
      const { turns$ } = play(helpers, {
        wakeups$,
        reclaimed$,
        by,
        signal: 'nodefs.available',
        available: () => 50 * MI,
      });
      helpers.expectObservable(said(turns$), until).toBe(expected, {
        c: 'start reclaim',
        m: 'wakeup reclaiming',
        e: 'reclaimed evict leak',
        f: 'wakeup evicting',
      });
      helpers.expectSubscriptions(reclaimed$.subscriptions).toBe(until);
    });
  });

  it('begins with what is known already, once', () => {
    marbles((helpers) => {
      const wakeups$ = helpers.hot(' w 9ms w');
      const asked: unknown[] = [];
      const { turns$ } = play(helpers, {
        wakeups$,
        initialState: (by, { nowMs, pods }) => {
          asked.push([by, nowMs, pods]);
          return { ...INITIAL_STATE, conditionsObserved: new Map([['DiskPressure', -5]]) };
        },
      });
      const conditions$ = turns$.pipe(map(({ conditions }) => conditions.join()));
      helpers.expectObservable(conditions$, '^ 20ms !').toBe('c 9ms c', { c: 'DiskPressure' });
      helpers.flush();
      expect(asked).toStrictEqual([[BY, 0, [WEB, LEAK]]]);
    });
  });

  it('decides in the turn of the wake-up, on counters and pods that are read then', () => {
    marbles((helpers) => {
      const wakeups$ = helpers.hot(' w 99ms w');
      const expected = '            c 99ms e';
      // The leaking pod is younger than the last time that all pods were read.
      const { turns$, reads, podReads } = play(helpers, {
        wakeups$,
        available: (nowMs) => (nowMs < 100 ? 500 : 50) * MI,
        readPods: () => (helpers.scheduler.now() < 100 ? [WEB] : [WEB, LEAK]),
      });
      helpers.expectObservable(said(turns$), '^ 200ms !').toBe(expected, {
        c: 'start calm',
        e: 'wakeup evict leak',
      });
      helpers.flush();
      expect([reads, podReads]).toStrictEqual([
        [0, 100],
        [0, 100],
      ]);
    });
  });

  it('while nobody may be evicted polls no oftener than is of use, and finds who may', () => {
    marbles((helpers) => {
      const { scheduler } = helpers;
      let isGuarded = true;
      const { turns$, reads, podReads } = play(helpers, {
        wakeups$: of('start'),
        available: () => 50 * MI,
        pollAfterMs: 5,
        readPods: () => [{ ...LEAK, ...(isGuarded ? { protectedBecause: 'configured' } : {}) }],
      });
      scheduler.schedule(() => {
        isGuarded = false;
      }, 1100);
      const evictions$ = said(turns$).pipe(filter((text) => text.includes('evict ')));
      helpers.expectObservable(evictions$, '^ 2004ms !').toBe('2000ms e', { e: 'due evict leak' });
      helpers.flush();
      expect(reads).toStrictEqual(Array.from({ length: 21 }, (_, index) => index * 100));
      expect(podReads).toStrictEqual([0, 1000, 2000]);
    });
  });

  it('while nobody may be evicted ranks each second, and at once when the kernel wakes it', () => {
    marbles((helpers) => {
      const wakeups$ = helpers.hot(' w 1299ms w');
      const guarded = { ...LEAK, protectedBecause: 'configured' };
      // A second leaking pod that was not there when the pods were ranked.
      const { turns$, podReads } = play(helpers, {
        wakeups$,
        pollAfterMs: 100,
        available: () => 50 * MI,
        readPods: () => (helpers.scheduler.now() < 1250 ? [guarded] : [guarded, WEB]),
      });
      const decided$ = turns$.pipe(filter(({ decision }) => decision.kind === 'evict'));
      helpers
        .expectObservable(said(decided$), '^ 1400ms !')
        .toBe('1300ms e', { e: 'wakeup evict web' });
      helpers.flush();
      expect(podReads).toStrictEqual([0, 1000, 1300]);
    });
  });

  it('while nobody may be evicted reads the pods at wake-ups the less often the longer it takes', () => {
    marbles(({ scheduler, flush, expectObservable }) => {
      let tookMs = 0;
      const slow: SchedulerLike = {
        schedule: scheduler.schedule.bind(scheduler),
        now: () => {
          const nowMs = scheduler.now() + tookMs;
          tookMs = 0;
          return nowMs;
        },
      };
      const podReads: number[] = [];
      const inputs: PipelineInputs = {
        wakeups$: interval(100, scheduler).pipe(startWith('start')),
        outcomes$: NEVER,
        read: () => [observation(50 * MI, { atMs: scheduler.now() })],
        readPods: () => {
          podReads.push(scheduler.now());
          tookMs = 10;
          return [{ ...LEAK, protectedBecause: 'configured' }];
        },
        pollAfterMs: () => 3_600_000,
        podsIntervalMs: 3_600_000,
      };
      const turns$ = evictionPipeline(inputs, () => BY, slow).pipe(ignoreElements());
      expectObservable(turns$, '^ 1650ms !').toBe('');
      flush();
      expect(podReads).toStrictEqual([0, 500, 1000, 1500]);
    });
  });

  it('takes the next candidate with the outcome of the last, measured afresh', () => {
    marbles((helpers) => {
      const ended = {
        f: outcome('leak', { kind: 'failed', error: 'EPERM' }),
        e: outcome('web'),
      };
      const wakeups$ = helpers.hot(' w---------------');
      const outcomes$ = helpers.hot('-----f----e', ended);
      const expected = '            l----w----n';
      const { turns$, podReads } = play(helpers, { wakeups$, outcomes$, available: () => 0 });
      helpers.expectObservable(said(turns$), '^ 20ms !').toBe(expected, {
        l: 'start evict leak',
        w: 'outcome evict web',
        // `web` may be taken again: it was evicted, and is listed none the less.
        n: 'outcome evict web',
      });
      helpers.flush();
      expect(podReads).toStrictEqual([0, 5, 10]);
    });
  });

  it('reads no pods for an escalation, which comes with the wake-up', () => {
    marbles((helpers) => {
      const by = policy({ thresholds: [threshold(), softThreshold({ gracePeriodMs: 1000 })] });
      const wakeups$ = helpers.hot(' w 1499ms w 99ms w');
      const expected = '            c 999ms e 499ms x 99ms n';
      const { turns$, podReads } = play(helpers, {
        wakeups$,
        by,
        available: (nowMs) => (nowMs < 1500 ? 150 : 50) * MI,
      });
      helpers.expectObservable(said(turns$), '^ 2s !').toBe(expected, {
        c: 'start calm',
        e: 'due evict leak',
        x: 'wakeup escalate leak',
        n: 'wakeup evicting',
      });
      helpers.flush();
      expect(podReads).toStrictEqual([0, 1000]);
    });
  });

  it('acts when a soft grace ends, not at the next poll and not before', () => {
    marbles((helpers) => {
      const by = policy({ thresholds: [softThreshold({ gracePeriodMs: 30_000 })] });
      const { turns$ } = play(helpers, {
        wakeups$: helpers.cold('w'),
        by,
        available: () => 150 * MI,
        pollAfterMs: 7000,
      });
      const decided = decisionsOf(turns$).pipe(map(({ kind }) => kind));
      helpers.expectObservable(decided, '^ 60s !').toBe('30s e', { e: 'evict' });
    });
  });

  it('does nothing when the pressure is gone before the grace ends', () => {
    marbles((helpers) => {
      const by = policy({ thresholds: [softThreshold({ gracePeriodMs: 30_000 })] });
      const { turns$ } = play(helpers, {
        wakeups$: helpers.cold('w'),
        by,
        available: (nowMs) => (nowMs < 20_000 ? 150 : 250) * MI,
        pollAfterMs: 7000,
      });
      helpers.expectObservable(decisionsOf(turns$), '^ 5m !').toBe('-');
    });
  });

  it('clears a condition when its transition period ends', () => {
    marbles((helpers) => {
      const { turns$ } = play(helpers, {
        wakeups$: helpers.hot('w 99ms w'),
        outcomes$: helpers.hot('50ms e', { e: outcome('leak') }),
        available: (nowMs) => (nowMs < 50 ? 50 : 500) * MI,
        by: policy({ pressureTransitionPeriodMs: 300_000 }),
      });
      helpers.expectObservable(conditionsOf(turns$), '^ 400s !').toBe('p 299999ms n', {
        p: ['MemoryPressure'],
        n: [],
      });
    });
  });

  it('under another policy reads the pods again, and forgets what a dry run has said', () => {
    marbles((helpers) => {
      const wakeups$ = helpers.hot(' w-w-w');
      const outcomes$ = helpers.hot('-o---', {
        o: outcome('leak', { kind: 'refused', reason: 'dryRun' }),
      });
      const policies = [policy(), policy()] as const;
      const podReads: number[] = [];
      const turns$ = evictionPipeline(
        {
          wakeups$,
          outcomes$,
          read: () => [observation(50 * MI, { atMs: helpers.scheduler.now() })],
          readPods: () => {
            podReads.push(helpers.scheduler.now());
            return [LEAK];
          },
          pollAfterMs: () => 3_600_000,
          podsIntervalMs: 3_600_000,
        },
        () => policies[helpers.scheduler.now() < 4 ? 0 : 1],
        helpers.scheduler,
      );
      helpers.expectObservable(said(turns$), '^----!').toBe('eos-x', {
        e: 'start evict leak',
        o: 'outcome said',
        s: 'wakeup said',
        x: 'wakeup evict leak',
      });
      helpers.flush();
      expect(podReads).toStrictEqual([0, 4]);
    });
  });

  it('coalesces a storm of wake-ups, but no outcomes', () => {
    marbles((helpers) => {
      const wakeups$ = helpers.cold(' (wwwwwww)');
      const outcomes$ = helpers.hot(' ---(oooooo)', { o: outcome('nobody') });
      const { turns$, reads } = play(helpers, { wakeups$, outcomes$ });
      helpers.expectObservable(turns$, '^ 50ms !');
      helpers.flush();
      // Four at once, the other three as one when a place is free.
      expect(reads).toStrictEqual([0, 0, 0, 0, 1, 3, 3, 3, 3, 3, 3]);
    });
  });

  it('reads all pods each interval, also between polls, and counts from the last reading', () => {
    marbles((helpers) => {
      const { turns$, reads, podReads } = play(helpers, {
        wakeups$: helpers.hot('w 24ms w', {}),
        available: (nowMs) => (nowMs === 25 ? 50 : 500) * MI,
        pollAfterMs: 7,
        podsIntervalMs: 10,
      });
      helpers.expectObservable(turns$, '^ 40ms !');
      helpers.flush();
      expect(reads).toStrictEqual([0, 7, 10, 17, 20, 25, 32, 35]);
      // At 25 for the decision; the next is 10 ms after that.
      expect(podReads).toStrictEqual([0, 10, 20, 25, 35]);
    });
  });

  it('says when it looks again, and asks how long by the last sample and this one', () => {
    marbles((helpers) => {
      const asked: (number | undefined)[][] = [];
      const turns$ = evictionPipeline(
        {
          wakeups$: helpers.cold('w'),
          outcomes$: NEVER,
          read: () => [],
          readPods: () => [],
          pollAfterMs: (before, now) => {
            asked.push([before?.nowMs, now.nowMs]);
            return 4;
          },
          podsIntervalMs: 6,
        },
        () => BY,
        helpers.scheduler,
      );
      const look = turns$.pipe(map((turn) => turn.lookAgainAtMs));
      helpers.expectObservable(look, '^--------!').toBe('a---b-c--', { a: 4, b: 6, c: 10 });
      helpers.flush();
      expect(asked).toStrictEqual([
        [undefined, 0],
        [0, 4],
        [4, 6],
      ]);
    });
  });

  it('goes on where the signal cannot be read', () => {
    marbles((helpers) => {
      const { turns$ } = play(helpers, {
        wakeups$: helpers.cold('w'),
        available: (nowMs) => (nowMs === 5 ? undefined : 50 * MI),
        pollAfterMs: 5,
      });
      helpers.expectObservable(said(turns$), '^-----------!').toBe('e----n----n-', {
        e: 'start evict leak',
        n: 'due evicting',
      });
    });
  });

  it('never: without a first wake-up nothing is read', () => {
    marbles((helpers) => {
      const { turns$, reads } = play(helpers, { pollAfterMs: 5 });
      helpers.expectObservable(turns$, '^ 60s !').toBe('-');
      helpers.flush();
      expect(reads).toStrictEqual([]);
    });
  });

  it('completes when both inputs have', () => {
    marbles((helpers) => {
      const wakeups$ = helpers.hot<string>('     --|  ');
      const outcomes$ = helpers.hot<EvictionOutcome>('-----|');
      const { turns$ } = play(helpers, { wakeups$, outcomes$ });
      helpers.expectObservable(turns$).toBe('       -----|');
    });
  });

  it('fails as its inputs do, and lets the other go', () => {
    marbles((helpers) => {
      const wakeups$ = helpers.hot('w--#');
      const outcomes$ = helpers.hot<EvictionOutcome>('-');
      const { turns$ } = play(helpers, { wakeups$, outcomes$, pollAfterMs: 2 });
      helpers.expectObservable(said(turns$)).toBe('w-d#', { w: 'start calm', d: 'due calm' });
      helpers.expectSubscriptions(outcomes$.subscriptions).toBe('^--!');
    });
  });

  it('fails with outcomes$', () => {
    marbles((helpers) => {
      const wakeups$ = helpers.hot('---');
      const { turns$ } = play(helpers, { wakeups$, outcomes$: helpers.hot<EvictionOutcome>('-#') });
      helpers.expectObservable(turns$).toBe('-#');
      helpers.expectSubscriptions(wakeups$.subscriptions).toBe('^!');
    });
  });

  it.each(['read', 'readPods', 'pollAfterMs'] as const)('fails when %s throws', (callback) => {
    marbles((helpers) => {
      const wakeups$ = helpers.hot('-w-');
      const inputs: PipelineInputs = {
        wakeups$,
        outcomes$: NEVER,
        read: () => [observation(0)],
        readPods: () => [],
        pollAfterMs: () => 5,
        podsIntervalMs: 5,
        [callback]: () => {
          throw 'error';
        },
      };
      helpers.expectObservable(evictionPipeline(inputs, () => BY, helpers.scheduler)).toBe('-#');
      helpers.expectSubscriptions(wakeups$.subscriptions).toBe('^!');
    });
  });

  it('stops when it is unsubscribed: no timer, no subscription stays', () => {
    marbles((helpers) => {
      const { scheduler } = helpers;
      const wakeups$ = helpers.hot('            w-');
      const outcomes$ = helpers.hot<EvictionOutcome>('-');
      const { turns$, reads } = play(helpers, { wakeups$, outcomes$, pollAfterMs: 5 });
      helpers.expectObservable(turns$, '       ^ 11ms !');
      helpers.expectSubscriptions(wakeups$.subscriptions).toBe('^ 11ms !');
      helpers.expectSubscriptions(outcomes$.subscriptions).toBe('^ 11ms !');
      helpers.flush();
      expect(reads).toStrictEqual([0, 5, 10]);
      expect(scheduler.actions.filter(({ closed }) => !closed)).toStrictEqual([]);
    });
  });

  it('starts with nothing known for each subscriber', () => {
    marbles((helpers) => {
      const { turns$ } = play(helpers, { wakeups$: of('start'), available: () => 0 });
      const values = { e: 'start evict leak' };
      helpers.expectObservable(said(turns$), '^----!').toBe('e', values);
      helpers.expectObservable(said(turns$), '--^--!').toBe('--e', values);
    });
  });

  it('polls for a day: nothing is decided, nothing piles up', () => {
    marbles((helpers) => {
      const { turns$, reads } = play(helpers, { wakeups$: helpers.cold('w'), pollAfterMs: 60_000 });
      helpers.expectObservable(decisionsOf(turns$), '^ 86399s !').toBe('-');
      helpers.flush();
      expect(reads).toHaveLength(1440);
      expect(helpers.scheduler.actions.filter(({ closed }) => !closed)).toStrictEqual([]);
    });
  });
});

/** Turns without anything but what the operators look at. */
const turn = (fields: Partial<Turn>): Turn => fields as Turn;

describe('decisionsOf', () => {
  const none = turn({ decision: { kind: 'none', why: 'calm' } });
  const escalate = { kind: 'escalate', podId: '1' } as const;
  const e = turn({ decision: escalate as never });

  it.each([
    ['never', '-', '-'],
    ['empty', '|', '|'],
    ['one', '-e-|', '-d-|'],
    ['many, inaction left out, repetition not', 'nene|', '-d-d|'],
    ['error', '-e#', '-d#'],
  ])('%s', (_, source, expected) => {
    marbles(({ hot, expectObservable }) => {
      const turns$ = hot(source, { n: none, e });
      expectObservable(decisionsOf(turns$)).toBe(expected, { d: escalate });
    });
  });

  it('endless, until it is unsubscribed', () => {
    marbles(({ hot, expectObservable, expectSubscriptions }) => {
      const turns$ = hot('          -e-e-e', { e });
      const until = '               ^---!';
      expectObservable(decisionsOf(turns$), until).toBe('-d-d', { d: escalate });
      expectSubscriptions(turns$.subscriptions).toBe(until);
    });
  });
});

describe('conditionsOf', () => {
  const values = {
    n: turn({ conditions: [] }),
    p: turn({ conditions: ['MemoryPressure'] }),
    q: turn({ conditions: ['MemoryPressure'] }),
  };
  const conditions = { n: [], p: ['MemoryPressure'] };

  it.each([
    ['never', '-', '-'],
    ['empty', '|', '|'],
    ['one', '-n|', '-n|'],
    ['many: at first and at each change', 'nnpqpnn|', 'n-p--n-|'],
    ['error', '-p#', '-p#'],
  ])('%s', (_, source, expected) => {
    marbles(({ hot, expectObservable }) => {
      expectObservable(conditionsOf(hot(source, values))).toBe(expected, conditions);
    });
  });

  it('endless, until it is unsubscribed', () => {
    marbles(({ hot, expectObservable, expectSubscriptions }) => {
      const turns$ = hot('          -n-p-n', values);
      const until = '               ^---!';
      expectObservable(conditionsOf(turns$), until).toBe('-n-p', conditions);
      expectSubscriptions(turns$.subscriptions).toBe(until);
    });
  });
});

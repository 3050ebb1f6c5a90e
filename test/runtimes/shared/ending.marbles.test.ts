import { defer, EMPTY, NEVER, Observable, of, throwError, using } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { PodDirectory, RuntimePod } from '../../../src/ports/pod-directory.ts';
import type { EvictProgress, EvictRequest } from '../../../src/ports/runtime.ts';
import {
  type EndingNotice,
  endingOf,
  MOST_UNSETTLED,
  SETTLE_TRIES,
} from '../../../src/runtimes/shared/ending.ts';
import { StartedSince } from '../../../src/runtimes/shared/started-since.ts';
import { type Marbles, marbles } from '../../support/marbles.ts';

const POD: RuntimePod = {
  id: 'id-of-web',
  name: 'default/web',
  uid: 'uid-of-web',
  owner: 'owner',
  namespace: 'default',
  cgroups: ['kubepods/web'],
  doubt: undefined,
  isCritical: false,
  labels: {},
  annotations: {},
  containers: [],
};

const SOFT: EvictRequest = {
  podId: 'web@1',
  podName: 'default/web',
  hard: false,
  gracePeriodMs: 10_000,
  escalations$: NEVER,
};
const HARD: EvictRequest = { ...SOFT, hard: true, gracePeriodMs: 0 };

/** What the cgroups say: t that somebody was asked to stop it, k KILL, e empty, r refused. */
const PROGRESS = {
  t: { kind: 'terminating', processes: 1 },
  k: { kind: 'killed', processes: 1 },
  e: { kind: 'empty', processes: 1, chargedBytes: 0 },
  r: { kind: 'refused', reason: 'podReplaced' },
} as const satisfies Record<string, EvictProgress>;

const failing = (message: string): Observable<never> => throwError(() => new Error(message));

/** An ending on a scripted runtime; says what that was asked for, and what was told. */
function scene(
  { scheduler }: Marbles,
  {
    listed$ = NEVER,
    ...script
  }: Partial<Pick<PodDirectory, 'settle' | 'stop' | 'answers'>> & {
    readonly listed$?: Observable<unknown>;
  },
) {
  const asked: (readonly [string, ...unknown[]])[] = [];
  const noted = (what: readonly [string, ...unknown[]], answer$: Observable<never>) =>
    defer(() => {
      asked.push([...what, scheduler.now()]);
      return answer$;
    });
  const notices: EndingNotice[] = [];
  const directory: PodDirectory = {
    listings$: NEVER,
    settle: (pod) => noted(['settle', pod.id], script.settle?.(pod) ?? EMPTY),
    stop: (pod, graceMs) => noted(['stop', pod.id, graceMs], script.stop?.(pod, graceMs) ?? NEVER),
    answers: (pod) => noted(['answers'], script.answers?.(pod) ?? EMPTY),
    close: () => undefined,
  };
  const note = (notice: EndingNotice) => void notices.push(notice);
  return { ending: endingOf({ directory, scheduler, listed$, note }), asked, notices };
}

/** What the cgroups are handed to end it with; they say nothing. */
function handed(helpers: Marbles, request: EvictRequest) {
  const requests: EvictRequest[] = [];
  const { ending, asked } = scene(helpers, {});
  const evict = (one: EvictRequest) => {
    requests.push(one);
    return NEVER;
  };
  ending.evict(POD, request, evict).subscribe();
  return { requests, asked };
}

describe('who sends the first signal', () => {
  it.each<[string, EvictRequest]>([
    ['for a hard threshold without a grace', HARD],
    ['for a hard one with a grace', { ...HARD, gracePeriodMs: 1000 }],
    ['for a soft one without a grace', { ...SOFT, gracePeriodMs: 0 }],
    ['in a rehearsal', { ...SOFT, rehearsal: true }],
  ])('evictd: %s', (_, request) => {
    marbles((helpers) => {
      const { requests, asked } = handed(helpers, request);
      expect(requests).toStrictEqual([request]);
      expect(asked).toEqual([]);
    });
  });

  it('the runtime, for a soft threshold with a grace, and only once it is certain', () => {
    marbles((helpers) => {
      const { requests, asked } = handed(helpers, SOFT);
      expect(requests).toEqual([{ ...SOFT, stop$: expect.anything() }]);
      expect(asked).toEqual([]);
      requests[0]?.stop$?.subscribe();
      expect(asked).toEqual([
        ['stop', POD.id, 10_000, 0],
        ['answers', 0],
      ]);
    });
  });

  it.each<[string, Partial<PodDirectory>, string, readonly EndingNotice[]]>([
    ['not as long as it is being stopped', {}, '-', []],
    ['it has stopped what it knows of', { stop: () => EMPTY }, '(a|)', []],
    [
      'it refuses',
      { stop: () => failing('no such container') },
      '(a|)',
      [{ kind: 'unstopped', podName: POD.name, reason: 'no such container' }],
    ],
    [
      'it does not answer at all',
      { answers: () => failing('deadline') },
      '(a|)',
      [{ kind: 'unstopped', podName: POD.name, reason: 'deadline' }],
    ],
  ])('evictd after all, when: %s', (_, script, expected, told) => {
    marbles((helpers) => {
      const { ending, notices } = scene(helpers, script);
      const evict = ({ stop$ = NEVER }: EvictRequest) => {
        helpers.expectObservable(stop$, '^ 20s !').toBe(expected, { a: undefined });
        return NEVER;
      };
      ending.evict(POD, SOFT, evict).subscribe();
      helpers.flush();
      expect(notices).toEqual(told);
    });
  });

  it.each<[string, string, number]>([
    ['spared: it is protected by now', 't----(r|)', 5],
    ['over', 't----(e|)', 5],
    ['given up', 't-------', 8],
  ])('the stop is withdrawn with an eviction that is %s', (_, diagram, atMs) => {
    marbles((helpers) => {
      const withdrawn: number[] = [];
      const stop = () => new Observable<never>(() => () => withdrawn.push(helpers.scheduler.now()));
      const { ending } = scene(helpers, { stop });
      // As long as its eviction lasts, as the cgroups have it.
      const evict = ({ stop$ = NEVER }: EvictRequest) =>
        using(
          () => stop$.subscribe(),
          () => helpers.cold<EvictProgress>(diagram, PROGRESS),
        );
      helpers.expectObservable(ending.evict(POD, SOFT, evict), '^-------!').toBe(diagram, PROGRESS);
      helpers.flush();
      expect(withdrawn).toEqual([atMs]);
    });
  });

  it('it is asked once, however many cgroups a pod has', () => {
    marbles((helpers) => {
      const { ending, asked } = scene(helpers, {});
      const evict = ({ stop$ = NEVER }: EvictRequest) => {
        stop$.subscribe();
        stop$.subscribe();
        return NEVER;
      };
      ending.evict(POD, SOFT, evict).subscribe();
      expect(asked.map(([what]) => what)).toEqual(['stop', 'answers']);
    });
  });
});

describe('the runtime is told', () => {
  const told = (helpers: Marbles, request: EvictRequest, diagram: string) => {
    const { ending, asked } = scene(helpers, {});
    const progress$ = helpers.cold<EvictProgress>(diagram, PROGRESS);
    helpers.expectObservable(ending.evict(POD, request, () => progress$)).toBe(diagram, PROGRESS);
    helpers.flush();
    return asked;
  };

  it.each<[string, EvictRequest, string, readonly unknown[]]>([
    ['once it is over', HARD, 'k--(e|)', [['settle', POD.id, 3]]],
    ['where it ended by itself', SOFT, 't--(e|)', [['settle', POD.id, 3]]],
    ['where it failed after the KILL', HARD, 'k--#', [['settle', POD.id, 3]]],
    ['not of one that was left alone', HARD, '(r|)', []],
    ['not of a rehearsal', { ...HARD, rehearsal: true }, 'k--(e|)', []],
  ])('%s', (_, request, diagram, expected) => {
    marbles((helpers) => {
      expect(told(helpers, request, diagram)).toEqual(expected);
    });
  });

  it('where the eviction is given up after the KILL', () => {
    marbles((helpers) => {
      const { ending, asked } = scene(helpers, {});
      const progress$ = helpers.cold<EvictProgress>('k-------', PROGRESS);
      helpers
        .expectObservable(
          ending.evict(POD, HARD, () => progress$),
          '^--!',
        )
        .toBe('k', PROGRESS);
      helpers.flush();
      expect(asked).toEqual([['settle', POD.id, 3]]);
    });
  });

  it('again with the next listing after a while, and then no more', () => {
    marbles((helpers) => {
      const { ending, asked, notices } = scene(helpers, {
        settle: () => failing('away'),
        listed$: helpers.hot('1s a 1999ms a 5s a 10s a 10s a 10s a 10s a'),
      });
      ending.evict(POD, HARD, () => of(PROGRESS.e)).subscribe();
      helpers.expectObservable(NEVER, '^ 60s !').toBe('');
      helpers.flush();
      // Tries are 2 s apart at least, and each waits for a runtime that answers.
      expect(asked.map((one) => one.at(-1))).toEqual([0, 3000, 8001, 18_002, 28_003]);
      expect(asked).toHaveLength(SETTLE_TRIES);
      expect(notices).toEqual([{ kind: 'unsettled', podName: POD.name, reason: 'away' }]);
    });
  });

  it('not again where somebody has started it since', () => {
    marbles((helpers) => {
      const { ending, asked, notices } = scene(helpers, {
        settle: () => throwError(() => new StartedSince('started again')),
        listed$: helpers.hot('3s a 5s a'),
      });
      ending.evict(POD, HARD, () => of(PROGRESS.e)).subscribe();
      helpers.expectObservable(NEVER, '^ 60s !').toBe('');
      helpers.flush();
      expect(asked).toHaveLength(1);
      expect(notices).toEqual([
        { kind: 'startedSince', podName: POD.name, reason: 'started again' },
      ]);
    });
  });

  it('of so many pods that wait, and no more', () => {
    marbles((helpers) => {
      const { ending, asked, notices } = scene(helpers, { settle: () => NEVER });
      for (let n = 0; n <= MOST_UNSETTLED; n += 1) {
        ending.evict(POD, HARD, () => of(PROGRESS.e)).subscribe();
      }
      expect(asked).toHaveLength(MOST_UNSETTLED);
      expect(notices.map(({ kind }) => kind)).toEqual(['unsettled']);
    });
  });
});

import { map, NEVER, type Observable, timer } from 'rxjs';
import { expect, it } from 'vitest';
import type { PodListing } from '../../../src/ports/pod-directory.ts';
import { listingsOf } from '../../../src/runtimes/shared/listings.ts';
import { type Marbles, marbles } from '../../support/marbles.ts';

const EACH_MS = 10_000;

interface Answer {
  readonly tookMs: number;
  readonly away?: string;
}

/** When listings begin until `endMs`, and what came of them. */
function play(
  helpers: Marbles,
  endMs: number,
  {
    changes$ = NEVER,
    answer = () => ({ tookMs: 20 }),
  }: {
    readonly changes$?: Observable<unknown>;
    readonly answer?: (startMs: number) => Answer;
  },
) {
  const { scheduler } = helpers;
  const begun: number[] = [];
  const said: PodListing[] = [];
  const list = () => {
    begun.push(scheduler.now());
    const { tookMs, away } = answer(scheduler.now());
    return timer(tookMs, scheduler).pipe(
      map(() => {
        if (away !== undefined) throw new Error(away);
        return [];
      }),
    );
  };
  const listings$ = listingsOf({ list, changes$, eachMs: () => EACH_MS, scheduler });
  const listening = listings$.subscribe((one) => said.push(one));
  scheduler.schedule(() => listening.unsubscribe(), endMs);
  helpers.flush();
  return { begun, said };
}

it('pods are listed at once, and again so long after each listing', () => {
  marbles((helpers) => {
    const { begun, said } = play(helpers, 25_000, {});
    expect(begun).toEqual([0, 10_020, 20_040]);
    expect(said[0]).toEqual({ kind: 'listed', pods: [], atMs: 20 });
    expect(said).toHaveLength(3);
  });
});

it('a change brings a listing once others were gathered', () => {
  marbles((helpers) => {
    const changes$ = helpers.hot('1s (aaa) 25ms a');
    // Begun from the first of them, 50 ms later; the wait for the next begins anew.
    expect(play(helpers, 11_000, { changes$ }).begun).toEqual([0, 1050]);
  });
});

it('one that comes during a listing brings another', () => {
  marbles((helpers) => {
    const changes$ = helpers.hot('10ms a');
    expect(play(helpers, 5000, { changes$ }).begun).toEqual([0, 70]);
  });
});

it('changes without end break no listing off, and leave the runtime half of the time', () => {
  marbles((helpers) => {
    const changes$ = timer(0, 5, helpers.scheduler);
    const { begun, said } = play(helpers, 1000, { changes$, answer: () => ({ tookMs: 100 }) });
    expect(begun).toEqual([0, 200, 400, 600, 800]);
    expect(said).toHaveLength(5);
  });
});

it('a runtime that is away is asked ever less often, and at each change', () => {
  marbles((helpers) => {
    const changes$ = helpers.hot('12s a');
    const answer = (startMs: number) => ({
      tookMs: 0,
      ...(startMs < 12_000 ? { away: 'refused' } : {}),
    });
    const { begun, said } = play(helpers, 15_000, { changes$, answer });
    expect(begun).toEqual([0, 200, 600, 1400, 3000, 6200, 11_200, 12_050]);
    expect(said.at(0)).toEqual({ kind: 'away', reason: 'refused', atMs: 0 });
    expect(said.at(-1)).toEqual({ kind: 'listed', pods: [], atMs: 12_050 });
  });
});

import { concat, NEVER, type Observable, of, Subject } from 'rxjs';
import { describe, expect, it } from 'vitest';
import {
  BACKLOG_LIMIT,
  DUE,
  type Due,
  LONGEST_TIMER_MS,
  scanUntilDue,
  TURN_LIMIT,
} from '../../src/core/scan-until-due.ts';
import { marbles } from '../support/marbles.ts';

/** Strings that a reducer made so far: `'a'` and then due gives `'a!'`. */
const name = (last: string | undefined, input: string | Due): string =>
  input === DUE ? `${last}!` : input;

/** Due 5 ms after the moment of the call, for results that end in none of `!`. */
const oneLater =
  (now: () => number) =>
  (result: string): number | undefined =>
    result.endsWith('!') ? undefined : now() + 5;

describe('scanUntilDue', () => {
  it('reduces each input, and again when its instant has come', () => {
    marbles(({ hot, expectObservable, expectSubscriptions, scheduler }) => {
      const source = hot('  -a---------b---|');
      const subscription = '^--------------!';
      const expected = '    -a----A----b---|';
      const values = { a: 'a', A: 'a!', b: 'b' };
      const due = oneLater(() => scheduler.now());
      expectObservable(source.pipe(scanUntilDue(name, due, scheduler))).toBe(expected, values);
      expectSubscriptions(source.subscriptions).toBe(subscription);
    });
  });

  it('forgets an instant when a newer result names another', () => {
    marbles(({ hot, expectObservable, scheduler }) => {
      const source = hot('  -a--b----------|');
      const expected = '    -a--b----B-----|';
      const values = { a: 'a', b: 'b', B: 'b!' };
      const due = oneLater(() => scheduler.now());
      expectObservable(source.pipe(scanUntilDue(name, due, scheduler))).toBe(expected, values);
    });
  });

  it('keeps the instant that a newer result names again', () => {
    marbles(({ hot, expectObservable, scheduler }) => {
      const source = hot('  -a--b----------|');
      const expected = '    -a--b-B--------|';
      const values = { a: 'a', b: 'b', B: 'b!' };
      const due = (result: string) => (result.endsWith('!') ? undefined : 6);
      expectObservable(source.pipe(scanUntilDue(name, due, scheduler))).toBe(expected, values);
    });
  });

  it('waits for nothing where a newer result names nothing', () => {
    marbles(({ hot, expectObservable, scheduler }) => {
      const source = hot('  -a--b----------|');
      const expected = '    -a--b----------|';
      const due = (result: string) => (result === 'a' ? 6 : undefined);
      expectObservable(source.pipe(scanUntilDue(name, due, scheduler))).toBe(expected);
    });
  });

  it('takes an instant that is past in the next turn, not in this one', () => {
    marbles(({ hot, expectObservable, scheduler }) => {
      const source = hot('  -----a----|');
      const expected = '    -----(aA)-|';
      const due = (result: string) => (result === 'a' ? 2 : undefined);
      expectObservable(source.pipe(scanUntilDue(name, due, scheduler))).toBe(expected, {
        a: 'a',
        A: 'a!',
      });
    });
  });

  it('may go on for ever by itself', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, scheduler }) => {
      const source = cold(' a--------------');
      const subscription = '^------------!';
      const expected = '    a----b----c---';
      const values = { a: 'a', b: 'a!', c: 'a!!' };
      const due = () => scheduler.now() + 5;
      const result = source.pipe(scanUntilDue(name, due, scheduler));
      expectObservable(result, subscription).toBe(expected, values);
      expectSubscriptions(source.subscriptions).toBe(subscription);
    });
  });

  it('never waits for infinity', () => {
    marbles(({ cold, expectObservable, scheduler }) => {
      const source = cold(' a----');
      const due = () => Number.POSITIVE_INFINITY;
      expectObservable(source.pipe(scanUntilDue(name, due, scheduler))).toBe('a----');
      scheduler.schedule(() => expect(scheduler.actions).toStrictEqual([]), 10);
    });
  });

  it('never', () => {
    marbles(({ hot, expectObservable, expectSubscriptions, scheduler }) => {
      const source = hot('  -----');
      const subscription = '^---!';
      const due = () => 0;
      const result = source.pipe(scanUntilDue(name, due, scheduler));
      expectObservable(result, subscription).toBe('-----');
      expectSubscriptions(source.subscriptions).toBe(subscription);
    });
  });

  it('empty', () => {
    marbles(({ cold, expectObservable, scheduler }) => {
      expectObservable(cold('|').pipe(scanUntilDue(name, () => 0, scheduler))).toBe('|');
    });
  });

  it('drops the timer when the source completes', () => {
    marbles(({ hot, expectObservable, scheduler }) => {
      const source = hot('  -a--|');
      const expected = '    -a--|';
      const due = oneLater(() => scheduler.now());
      expectObservable(source.pipe(scanUntilDue(name, due, scheduler))).toBe(expected);
    });
  });

  it('drops the timer when the source fails', () => {
    marbles(({ hot, expectObservable, expectSubscriptions, scheduler }) => {
      const source = hot('  -a--#');
      const subscription = '^---!';
      const expected = '    -a--#';
      const due = oneLater(() => scheduler.now());
      expectObservable(source.pipe(scanUntilDue(name, due, scheduler))).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe(subscription);
    });
  });

  it('drops the timer when it is unsubscribed', () => {
    marbles(({ hot, expectObservable, expectSubscriptions, scheduler }) => {
      const source = hot('  -a-------');
      const subscription = '^---!';
      const expected = '    -a-------';
      const due = oneLater(() => scheduler.now());
      const result = source.pipe(scanUntilDue(name, due, scheduler));
      expectObservable(result, subscription).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe(subscription);
    });
  });

  it('fails with an error that the reducer throws for an input', () => {
    marbles(({ hot, expectObservable, expectSubscriptions, scheduler }) => {
      const source = hot('  -a-b-c-|');
      const subscription = '^--!';
      const expected = '    -a-#';
      const reduce = (_: string | undefined, input: string | Due): string => {
        if (input === 'b') throw 'error';
        return name(undefined, input);
      };
      expectObservable(source.pipe(scanUntilDue(reduce, () => undefined, scheduler))).toBe(
        expected,
      );
      expectSubscriptions(source.subscriptions).toBe(subscription);
    });
  });

  it('fails with an error that the reducer throws when its instant has come', () => {
    marbles(({ hot, expectObservable, expectSubscriptions, scheduler }) => {
      const source = hot('  -a--------|');
      const subscription = '^-----!';
      const expected = '    -a----#';
      const reduce = (_: string | undefined, input: string | Due): string => {
        if (input === DUE) throw 'error';
        return input;
      };
      const due = oneLater(() => scheduler.now());
      expectObservable(source.pipe(scanUntilDue(reduce, due, scheduler))).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe(subscription);
    });
  });

  it('fails with an error that is thrown while an instant is named; the result is lost', () => {
    marbles(({ hot, expectObservable, expectSubscriptions, scheduler }) => {
      const source = hot('  -a-b-c-|');
      const subscription = '^--!';
      const expected = '    -a-#';
      const due = (result: string): undefined => {
        if (result === 'b') throw 'error';
      };
      expectObservable(source.pipe(scanUntilDue(name, due, scheduler))).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe(subscription);
    });
  });

  it('waits longer than any one timer may run, in parts', () => {
    marbles(({ hot, expectObservable, scheduler }) => {
      const delays: number[] = [];
      const watched = {
        now: () => scheduler.now(),
        schedule: ((work: never, delay: number, state: never) => {
          delays.push(delay);
          return scheduler.schedule(work, delay, state);
        }) as typeof scheduler.schedule,
      };
      const source = hot('  a--');
      const expected = '    a 3599999999ms A';
      const due = (result: string) => (result === 'a' ? 3_600_000_000 : undefined);
      const result = source.pipe(scanUntilDue(name, due, watched));
      expectObservable(result, '^ 3600000010ms !').toBe(expected, { a: 'a', A: 'a!' });
      scheduler.schedule(() => {
        expect(delays).toHaveLength(1000);
        expect(Math.max(...delays)).toBe(LONGEST_TIMER_MS);
      }, 3_600_000_005);
    });
  });

  it('waits for the rest where a timer is early by a fraction', () => {
    marbles(({ hot, expectObservable, scheduler }) => {
      const early = {
        now: () => scheduler.now(),
        schedule: ((work: never, delay: number, state: never) =>
          scheduler.schedule(work, Math.ceil(delay / 2), state)) as typeof scheduler.schedule,
      };
      const source = hot('  a----------');
      const expected = '    a--------A-';
      const due = (result: string) => (result === 'a' ? 9 : undefined);
      const result = source.pipe(scanUntilDue(name, due, early));
      expectObservable(result, '^---------!').toBe(expected, { a: 'a', A: 'a!' });
    });
  });

  it('reduces inputs that come while a result is delivered in their order', () => {
    marbles(({ scheduler }) => {
      const source = new Subject<string>();
      const seen: string[] = [];
      source.pipe(scanUntilDue(name, () => undefined, scheduler)).subscribe((result) => {
        seen.push(`> ${result}`);
        if (result === 'a') {
          source.next('b');
          source.next('c');
        }
        seen.push(`< ${result}`);
      });
      source.next('a');
      expect(seen).toStrictEqual(['> a', '< a', '> b', '< b', '> c', '< c']);
    });
  });

  it('takes what waits before it completes', () => {
    marbles(({ scheduler }) => {
      const source = new Subject<string>();
      const seen: string[] = [];
      source.pipe(scanUntilDue(name, () => 5, scheduler)).subscribe({
        next: (result) => {
          seen.push(result);
          if (result !== 'a') return;
          source.next('b');
          source.complete();
        },
        complete: () => seen.push('|'),
      });
      source.next('a');
      expect(seen).toStrictEqual(['a', 'b', '|']);
      expect(scheduler.actions.filter(({ closed }) => !closed)).toStrictEqual([]);
    });
  });

  it('takes nothing that waits after it was unsubscribed', () => {
    marbles(({ scheduler }) => {
      const source = new Subject<string>();
      const seen: string[] = [];
      const subscription = source
        .pipe(scanUntilDue(name, () => 5, scheduler))
        .subscribe((result) => {
          seen.push(result);
          source.next('b');
          subscription.unsubscribe();
        });
      source.next('a');
      expect(seen).toStrictEqual(['a']);
      expect(source.observed).toBe(false);
      expect(scheduler.actions.filter(({ closed }) => !closed)).toStrictEqual([]);
    });
  });

  it('sets no timer for a result whose subscriber is gone already', () => {
    marbles(({ scheduler }) => {
      let unsubscribe = (): void => undefined;
      const reduce = (_: string | undefined, input: string | Due): string => {
        unsubscribe();
        return name(undefined, input);
      };
      const source = new Subject<string>();
      const subscription = source.pipe(scanUntilDue(reduce, () => 5, scheduler)).subscribe();
      unsubscribe = () => subscription.unsubscribe();
      source.next('a');
      expect(scheduler.actions).toStrictEqual([]);
    });
  });

  it('fails where inputs feed on themselves without end', () => {
    marbles(({ scheduler }) => {
      const source = new Subject<number>();
      let seen = 0;
      let failure: unknown;
      const result: Observable<number> = source.pipe(
        scanUntilDue<number, number>(
          (last) => (last ?? 0) + 1,
          () => undefined,
          scheduler,
        ),
      );
      result.subscribe({
        next: () => {
          seen += 1;
          for (let more = 0; more <= BACKLOG_LIMIT; more += 1) source.next(more);
        },
        error: (error: unknown) => {
          failure = error;
        },
      });
      source.next(0);
      expect(failure).toStrictEqual(new Error('scanUntilDue: inputs feed on themselves'));
      expect(seen).toBe(1);
      expect(source.observed).toBe(false);
    });
  });

  it('bears as many inputs as the limit says', () => {
    marbles(({ scheduler }) => {
      const source = new Subject<number>();
      let seen = 0;
      source
        .pipe(
          scanUntilDue<number, number>(
            () => 0,
            () => undefined,
            scheduler,
          ),
        )
        .subscribe(() => {
          seen += 1;
          if (seen > 1) return;
          for (let more = 0; more < BACKLOG_LIMIT; more += 1) source.next(more);
        });
      source.next(0);
      // A turn takes so many, the next turns the rest.
      expect(seen).toBe(TURN_LIMIT);
      scheduler.flush();
      expect(seen).toBe(BACKLOG_LIMIT + 1);
    });
  });

  it('starts afresh with each subscriber', () => {
    marbles(({ expectObservable, scheduler }) => {
      const count = (last: number | undefined): number => (last ?? 0) + 1;
      const source = concat(of('x', 'y'), NEVER);
      const result = source.pipe(
        scanUntilDue(count, (one) => (one === 2 ? scheduler.now() + 4 : undefined), scheduler),
      );
      const values = { 1: 1, 2: 2, 3: 3 };
      expectObservable(result, '^-----!').toBe('(12)3----', values);
      expectObservable(result, '-----^-----!').toBe('-----(12)3', values);
    });
  });
});

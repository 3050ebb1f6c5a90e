import { of, Subject } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { coalesce } from '../../src/core/coalesce.ts';
import { marbles } from '../support/marbles.ts';

describe('coalesce(2, 5 ms)', () => {
  it('lets single values pass at once', () => {
    marbles(({ hot, expectObservable, expectSubscriptions, scheduler }) => {
      const source = hot('  -a---------b---------c|');
      const subscription = '^---------------------!';
      const expected = '    -a---------b---------c|';
      expectObservable(source.pipe(coalesce(2, 5, scheduler))).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe(subscription);
    });
  });

  it('keeps the last of what comes beyond the burst until a place is free', () => {
    marbles(({ hot, expectObservable, scheduler }) => {
      //            places free: |....|....|
      const source = hot('  -abcd--------|');
      const expected = '    -ab---d------|';
      expectObservable(source.pipe(coalesce(2, 5, scheduler))).toBe(expected);
    });
  });

  it('gives a storm one value each interval after the burst, evenly', () => {
    marbles(({ hot, expectObservable, scheduler }) => {
      //            places free: |....|....|....|
      const source = hot('  -abcdefghijklmn--------|');
      const expected = '    -ab---f----k----n------|';
      expectObservable(source.pipe(coalesce(2, 5, scheduler))).toBe(expected);
    });
  });

  it('has the whole burst again once every place came back', () => {
    marbles(({ hot, expectObservable, scheduler }) => {
      const source = hot('  -ab---------cd-----|');
      const expected = '    -ab---------cd-----|';
      expectObservable(source.pipe(coalesce(2, 5, scheduler))).toBe(expected);
    });
  });

  it('has as much of it as came back', () => {
    marbles(({ hot, expectObservable, scheduler }) => {
      //            places free: |....|....|
      const source = hot('  -ab-----cd-------|');
      const expected = '    -ab-----c--d-----|';
      expectObservable(source.pipe(coalesce(2, 5, scheduler))).toBe(expected);
    });
  });

  it('keeps a value that is undefined, as a wake-up may be', () => {
    marbles(({ hot, expectObservable, scheduler }) => {
      const values = { a: 1, b: 2, u: undefined };
      const source = hot('  -abu-----|', values);
      const expected = '    -ab---u--|';
      expectObservable(source.pipe(coalesce(2, 5, scheduler))).toBe(expected, values);
    });
  });

  it('never', () => {
    marbles(({ hot, expectObservable, expectSubscriptions, scheduler }) => {
      const source = hot('  ----------');
      const subscription = '^--------!';
      const expected = '    ----------';
      expectObservable(source.pipe(coalesce(2, 5, scheduler)), subscription).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe(subscription);
    });
  });

  it('empty', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, scheduler }) => {
      const source = cold(' |');
      const subscription = '(^!)';
      const expected = '    |';
      expectObservable(source.pipe(coalesce(2, 5, scheduler))).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe(subscription);
    });
  });

  it('emits a kept value before it completes', () => {
    marbles(({ hot, expectObservable, scheduler }) => {
      const source = hot('  -abc|   ');
      const expected = '    -ab-(c|)';
      expectObservable(source.pipe(coalesce(2, 5, scheduler))).toBe(expected);
    });
  });

  it('drops a kept value on an error, which passes at once', () => {
    marbles(({ hot, expectObservable, expectSubscriptions, scheduler }) => {
      const source = hot('  -abc#');
      const subscription = '^---!';
      const expected = '    -ab-#';
      expectObservable(source.pipe(coalesce(2, 5, scheduler))).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe(subscription);
    });
  });

  it('endless, until it is unsubscribed: the kept value is dropped', () => {
    marbles(({ hot, expectObservable, expectSubscriptions, scheduler }) => {
      const source = hot('  -abcd-----');
      const subscription = '^----!';
      const expected = '    -ab-------';
      expectObservable(source.pipe(coalesce(2, 5, scheduler)), subscription).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe(subscription);
    });
  });

  it('lets each subscriber have its own places', () => {
    marbles(({ hot, expectObservable, scheduler }) => {
      const result = hot('  -abcd-----|').pipe(coalesce(2, 5, scheduler));
      expectObservable(result).toBe('-ab---d---|');
      expectObservable(result, '--^').toBe('--bc---d--|');
    });
  });

  it('holds no timer while no place is taken, and none after the end', () => {
    marbles(({ scheduler }) => {
      const timers = () => scheduler.actions.length;
      const source = new Subject<number>();
      const subscription = source.pipe(coalesce(1, 5, scheduler)).subscribe();
      expect(timers()).toBe(0);
      source.next(1);
      source.next(2);
      expect(timers()).toBe(1);
      subscription.unsubscribe();
      expect(scheduler.actions.filter(({ closed }) => !closed)).toStrictEqual([]);
      expect(source.observed).toBe(false);
    });
  });

  it('takes a value that comes while another is delivered into the same burst', () => {
    marbles(({ scheduler }) => {
      const source = new Subject<string>();
      const seen: string[] = [];
      source.pipe(coalesce(2, 5, scheduler)).subscribe((value) => {
        seen.push(`${scheduler.now()} ${value}`);
        if (value === 'a') for (const next of ['b', 'c', 'd']) source.next(next);
      });
      scheduler.schedule(() => source.next('a'), 1);
      scheduler.schedule(() => expect(seen).toStrictEqual(['1 a', '1 b', '6 d']), 20);
    });
  });

  it('passes a synchronous storm as the burst and the last', () => {
    marbles(({ expectObservable, scheduler }) => {
      const source = of('a', 'b', 'c', 'd');
      expectObservable(source.pipe(coalesce(2, 5, scheduler))).toBe('(abd|)');
    });
  });
});

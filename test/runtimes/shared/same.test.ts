import { describe, expect, it } from 'vitest';
import { isSame, reused } from '../../../src/runtimes/shared/same.ts';
import { runtimePod } from '../../support/runtime-pods.ts';

describe('isSame', () => {
  it.each<[unknown, unknown, boolean]>([
    [1, 1, true],
    [1, 2, false],
    [1n, 1n, true],
    ['a', 'a', true],
    [Number.NaN, Number.NaN, true],
    [undefined, undefined, true],
    [undefined, null, false],
    [null, null, true],
    [{}, null, false],
    [[], [], true],
    [[], {}, false],
    [[1, [2]], [1, [2]], true],
    [[1, 2], [1], false],
    [{ a: { b: [1n] } }, { a: { b: [1n] } }, true],
    [{ a: 1 }, { a: 2 }, false],
    [{ a: undefined }, { b: undefined }, false],
    [{ a: undefined }, {}, false],
    [{ toString: undefined }, {}, false],
  ])('%o and %o: %j', (one, other, expected) => {
    expect(isSame(one, other)).toBe(expected);
    expect(isSame(other, one)).toBe(expected);
  });
});

describe('reused', () => {
  const [a, b] = [runtimePod('a'), runtimePod('b')];
  const again = (id: string, labels = {}) => runtimePod(id, { labels });

  it('is the listing before where nothing is new', () => {
    const before = [a, b];
    expect(reused(before, [again('a'), again('b')])).toBe(before);
    expect(reused([], [])).toEqual([]);
  });

  it('takes from it what has not changed', () => {
    const c = runtimePod('c');
    const changed = again('b', { app: 'x' });
    const now = reused([a, b], [c, again('a'), changed]);
    expect(now).toEqual([c, a, changed]);
    expect(now.map((one, index) => one === [c, a, changed][index])).toEqual([true, true, true]);
  });

  it('notices what has gone, another order, and two of one id', () => {
    expect(reused([a, b], [again('a')])).toEqual([a]);
    expect(reused([a, b], [again('b'), again('a')]).map(({ id }) => id)).toEqual(['b', 'a']);
    const before = [a];
    expect(reused(before, [again('a'), again('a')])).toHaveLength(2);
  });
});

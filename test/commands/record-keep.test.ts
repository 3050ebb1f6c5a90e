import { describe, expect, it } from 'vitest';
import { Kept } from '../../src/commands/record/keep.ts';

/** Small letters are calm. */
function kept(samples: string, limit: number): readonly [string, number] {
  const all = new Kept<string>(limit, (sample) => sample === sample.toLowerCase());
  for (const sample of samples) all.add(sample);
  return [all.samples.join(''), all.dropped];
}

describe('the samples that are kept', () => {
  it.each<[string, number, string, number]>([
    ['', 2, '', 0],
    ['abc', 3, 'abc', 0],
    ['abcd', 3, 'bcd', 1],
    ['abcdefgh', 3, 'fgh', 5],
    // Between two times of pressure one that is calm stays.
    ['AbcD', 3, 'AcD', 1],
    ['AbcDE', 4, 'AcDE', 1],
    // Where nothing is calm twice, the oldest goes.
    ['ABCD', 3, 'BCD', 1],
    ['AbCd', 3, 'bCd', 1],
  ])('%s with room for %i is %s, %i dropped', (samples, limit, left, dropped) => {
    expect(kept(samples, limit)).toEqual([left, dropped]);
  });

  it('never are more than the limit, and the last one is the last', () => {
    for (let limit = 2; limit < 9; limit += 1) {
      for (const samples of ['aAbBcCdDeE', 'aaaaaBBBBBccccc', 'ABCDEFGHIJK', 'abcdefghijk']) {
        const [left, dropped] = kept(samples, limit);
        expect(left.length).toBe(Math.min(limit, samples.length));
        expect(left.length + dropped).toBe(samples.length);
        expect(left.at(-1)).toBe(samples.at(-1));
      }
    }
  });
});

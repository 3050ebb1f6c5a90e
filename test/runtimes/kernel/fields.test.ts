import { describe, expect, it } from 'vitest';
import { numberField, pidList, wholeNumber } from '../../../src/kernel/fields.ts';

describe('numberField', () => {
  const stat =
    'cache 1\ninactive_file 22\ntotal_inactive_file 333\nlimit 9223372036854771712\nlast 5';

  it.each([
    ['cache ', 1],
    ['inactive_file ', 22],
    ['total_inactive_file ', 333],
    ['last ', 5],
    ['limit ', Number.MAX_SAFE_INTEGER],
  ])('finds %j', (name, value) => {
    expect(numberField(stat, name)).toBe(value);
  });

  it.each(['file ', 'total_inactive_file_2 ', 'missing ', 'cach '])('has no %j', (name) => {
    expect(numberField(stat, name)).toBeUndefined();
  });

  it('reads what has a unit and padding', () => {
    expect(numberField('MemTotal:       24682972 kB\n', 'MemTotal:')).toBe(24_682_972);
  });

  it('gives nothing for what is no number, and for an empty file', () => {
    expect(numberField('a x\nb 2', 'a ')).toBeUndefined();
    expect(numberField('', 'a ')).toBeUndefined();
    expect(numberField('a ', 'a ')).toBeUndefined();
  });
});

describe('wholeNumber', () => {
  it.each([
    ['0\n', 0],
    ['4096\n', 4096],
    ['9223372036854771712\n', Number.MAX_SAFE_INTEGER],
  ])('%j', (text, value) => {
    expect(wholeNumber(text)).toBe(value);
  });

  it.each(['', '\n', 'twelve', '1 2', 'NaN', 'Infinity'])('refuses %j', (text) => {
    expect(() => wholeNumber(text)).toThrow('not a number');
  });
});

describe('pidList', () => {
  it('lists one a line', () => {
    expect(pidList('')).toEqual([]);
    expect(pidList('1\n22\n333\n')).toEqual([1, 22, 333]);
    expect(pidList('0\n5\n')).toEqual([0, 5]);
  });
});

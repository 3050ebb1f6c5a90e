import { describe, expect, it } from 'vitest';
import { nearestName, suggestion } from '../../src/config/nearest.ts';

const NAMES = ['memory.available', 'memory.free', 'pid'];

describe('nearestName', () => {
  it.each([
    ['memory.available', 'memory.available'],
    ['memry.available', 'memory.available'],
    ['memoory.available', 'memory.available'],
    ['Memory.Available', 'memory.available'],
    ['memory.fee', 'memory.free'],
    ['pod', 'pid'],
    // Both sides of a third of the name's length.
    ['XXXXXy.available', 'memory.available'],
    ['XXXXXX.available', undefined],
    ['pXX', undefined],
    ['', undefined],
    ['x'.repeat(1_000_000), undefined],
  ])('%s is nearest to %s', (text, name) => {
    expect(nearestName(text, NAMES)).toBe(name);
  });

  it('takes the first of equally near names, and none of none', () => {
    expect(nearestName('aaX', ['aab', 'aac'])).toBe('aab');
    expect(nearestName('aaX', ['abb', 'aac'])).toBe('aac');
    expect(nearestName('aaX', [])).toBeUndefined();
  });
});

describe('suggestion', () => {
  it('is empty when no name is near', () => {
    expect(suggestion('pod', NAMES)).toBe(' (did you mean pid?)');
    expect(suggestion('bogus', NAMES)).toBe('');
  });
});

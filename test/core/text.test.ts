import { describe, expect, it } from 'vitest';
import { compareText } from '../../src/core/text.ts';

describe('compareText', () => {
  it.each([
    ['a', 'b', -1],
    ['b', 'a', 1],
    ['a', 'a', 0],
    // By code unit: no locale moves a capital or an umlaut.
    ['B', 'a', -1],
    ['z', 'ä', -1],
    ['pod-10', 'pod-9', -1],
    ['', 'a', -1],
  ])('%j and %j give %d', (left, right, expected) => {
    expect(compareText(left, right)).toBe(expected);
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { flow, table, wrap } from '../../src/simulation/layout.ts';

describe('table', () => {
  it('aligns its columns and escapes what could drive a terminal', () => {
    expect(
      table(
        ['a', 'bcd'],
        [
          ['long', '1'],
          ['\u001b', ''],
        ],
      ),
    ).toEqual(['a       bcd', 'long    1', '\\u001b']);
  });
});

describe('flow', () => {
  it.each<[readonly string[], readonly string[]]>([
    [[], []],
    [['aa', 'bb'], ['aa  bb']],
    [['aaaa', 'bbbb'], ['aaaa  bbbb']],
    [
      ['aaaa', 'bbbbb'],
      ['aaaa', 'bbbbb'],
    ],
    [
      ['a'.repeat(20), 'b'],
      ['a'.repeat(20), 'b'],
    ],
  ])('%j in lines of 10 is %j', (parts, lines) => {
    expect(flow(parts, 10)).toEqual(lines);
  });
});

describe('wrap', () => {
  it.each<[string, readonly string[]]>([
    ['', ['']],
    ['one two', ['one two']],
    ['one two three', ['one two', 'three']],
    ['0123456789', ['0123456789']],
    ['0123456789ab cd', ['0123456789', 'ab cd']],
    ['a 0123456789ab', ['a', '0123456789', 'ab']],
  ])('%j in lines of 10 is %j', (text, lines) => {
    expect(wrap(text, 10)).toEqual(lines);
  });

  it('loses nothing but spaces, and is never wider', () => {
    fc.assert(
      fc.property(fc.string(), fc.integer({ min: 1, max: 20 }), (text, width) => {
        const lines = wrap(text, width);
        expect(lines.every((line) => line.length <= width)).toBe(true);
        expect(lines.join('').replaceAll(' ', '')).toBe(text.replaceAll(' ', ''));
      }),
    );
  });
});

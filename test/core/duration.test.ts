import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatDuration, parseDuration } from '../../src/core/duration.ts';
import { EvictdError } from '../../src/core/errors.ts';

function codeOf(parse: () => unknown): string | undefined {
  try {
    parse();
    return undefined;
  } catch (error) {
    if (error instanceof EvictdError) return error.code;
    throw error;
  }
}

describe('parseDuration', () => {
  it.each([
    ['0', 0],
    ['+0', 0],
    ['-0', 0],
    ['0s', 0],
    ['5s', 5_000],
    ['30s', 30_000],
    ['1478s', 1_478_000],
    ['-5s', -5_000],
    ['+5s', 5_000],
    ['5.0s', 5_000],
    ['5.6s', 5_600],
    ['5.s', 5_000],
    ['.5s', 500],
    ['1.004s', 1_004],
    ['100.00100s', 100_001],
    ['10ns', 0.00001],
    ['11us', 0.011],
    ['12µs', 0.012],
    ['12μs', 0.012],
    ['13ms', 13],
    ['90000ms', 90_000],
    ['2m5ms', 120_005],
    ['2m0.25s', 120_250],
    ['10.5s', 10_500],
    ['0.001s', 1],
    ['0.0001s', 0.1],
    ['14s', 14_000],
    ['15m', 900_000],
    ['16h', 57_600_000],
    ['1m30s', 90_000],
    ['1.5s', 1_500],
    ['500ms', 500],
    ['2.5m', 150_000],
    ['5m0s', 300_000],
    ['1h0m0s', 3_600_000],
    ['3h30m', 12_600_000],
    ['10.5s4m', 250_500],
    ['1s1s', 2_000],
    ['1h2m3s4ms5us6ns', 3_723_004.005006],
    ['39h9m14.425s', 140_954_425],
    ['1000h', 3_600_000_000],
    ['0000000000000000000000000000000000001s', 1_000],
    // Go's own cases of fractions that exceed what a float or 63 bits hold.
    ['0.3333333333333333333h', 1_200_000],
    ['0.100000000000000000000h', 360_000],
    ['0.9223372036854775809s', 922.337203],
    ['0.830103483285477580700h', 2_988_372.539827],
    // The numbers are the floats nearest to what is meant.
    ['9223372036854775807ns', 9_223_372_036_854.775],
    ['-9223372036854775807ns', -9_223_372_036_854.775],
    ['-9223372036854775808ns', -9_223_372_036_854.775],
    ['9223372036s', 9_223_372_036_000],
    ['2562047h47m16.854775807s', 9_223_372_036_854.775],
    ['-2562047h47m16.854775808s', -9_223_372_036_854.775],
  ])('%s', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each([
    '',
    '+',
    '-',
    ' ',
    '3',
    '00',
    '1.5',
    's',
    '.',
    '.s',
    '-.',
    '+.s',
    '..5s',
    '1..5s',
    '1.5.5s',
    '--5s',
    '+-5s',
    '1-5s',
    '1s-5s',
    ' 5s',
    '5s ',
    '5 s',
    '1m 30s',
    '5S',
    '5sec',
    '5min',
    '1d',
    '1w',
    '1e3s',
    'NaNs',
    '1,5s',
    '5s,',
    '1s3',
    '٣s',
    '5constructor',
  ])('refuses %j', (text) => {
    expect(codeOf(() => parseDuration(text))).toBe('EVICTD_DURATION');
  });

  it.each([
    '9223372036854775808ns',
    '-9223372036854775809ns',
    '9223372036854775.808us',
    '9223372036854ms775us808ns',
    '9223372037s',
    '2562048h',
    '3000000h',
    `${'9'.repeat(19)}ns`,
    `${'9'.repeat(20)}ns`,
    `${'9'.repeat(1_000_000)}ns`,
    '9223372036854775808ns9223372036854775808ns',
  ])('refuses %s: longer than 64 bits of nanoseconds', (text) => {
    expect(() => parseDuration(text)).toThrow(/longer than the 2\^63 ns/);
  });

  it('names the fault and keeps the value', () => {
    expect(() => parseDuration('5')).toThrow(/lacks its unit/);
    expect(() => parseDuration('5d')).toThrow(/none of ns, us, µs, μs, ms, s, m, h/);
    expect(() => parseDuration('x')).toThrow(expect.objectContaining({ place: { value: 'x' } }));
  });

  it('throws nothing but EVICTD_DURATION', () => {
    const nearly = fc.stringMatching(/^[-+]?([0-9]{0,22}[.]?[0-9]{0,22}[a-zµ]{0,2}){0,4}$/);
    fc.assert(
      fc.property(fc.oneof(fc.string(), nearly), (text) => {
        const code = codeOf(() => parseDuration(text));
        return code === undefined || code === 'EVICTD_DURATION';
      }),
    );
  });
});

describe('formatDuration', () => {
  it.each([
    [0, '0s'],
    [-0, '0s'],
    [0.000001, '1ns'],
    [0.000999, '999ns'],
    [0.0011, '1.1µs'],
    [0.999999, '999.999µs'],
    [1, '1ms'],
    [1.5, '1.5ms'],
    [500, '500ms'],
    [999.999999, '999.999999ms'],
    [1_000, '1s'],
    [1_500, '1.5s'],
    [59_999, '59.999s'],
    [60_000, '1m0s'],
    [90_000, '1m30s'],
    [300_000, '5m0s'],
    [3_599_999, '59m59.999s'],
    [3_600_000, '1h0m0s'],
    [3_600_000_000, '1000h0m0s'],
    [-90_000, '-1m30s'],
    [-0.0000001, '0s'],
    [9_223_372_036_854, '2562047h47m16.854s'],
  ])('%d ms: %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });

  it('is read again as the same value', () => {
    const limitMs = 9_223_372_036_854;
    fc.assert(
      fc.property(fc.integer({ min: -limitMs, max: limitMs }), (ms) => {
        expect(parseDuration(formatDuration(ms))).toBe(ms);
      }),
    );
  });

  it('is read again as the same nanoseconds', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 3_600_000_000_000 }), (ns) => {
        const ms = ns / 1_000_000;
        expect(Math.round(parseDuration(formatDuration(ms)) * 1_000_000)).toBe(ns);
      }),
    );
  });
});

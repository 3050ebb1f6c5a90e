import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  assert,
  describeAt,
  describeError,
  ERRORS,
  type ErrorPlace,
  EvictdError,
  escapeControl,
  quote,
  withPlace,
} from '../../src/core/errors.ts';

describe('EvictdError', () => {
  it('has a code, the exit status of the table, a place and a cause', () => {
    const cause = new Error('EADDRINUSE');
    const error = new EvictdError('EVICTD_SOCKET', 'cannot listen', { source: '--socket' }, cause);
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({
      name: 'EvictdError',
      code: 'EVICTD_SOCKET',
      message: 'cannot listen',
      exitStatus: ERRORS.EVICTD_SOCKET.exitStatus,
      place: { source: '--socket' },
      cause,
    });
  });

  it('without a cause has no such field, and stands nowhere', () => {
    const error = new EvictdError('EVICTD_USAGE', 'no such flag');
    expect(Object.hasOwn(error, 'cause')).toBe(false);
    expect(error.place).toStrictEqual({});
  });

  it('of a person has status 2, one of evictd itself status 1', () => {
    expect(ERRORS.EVICTD_USAGE.exitStatus).toBe(2);
    expect(ERRORS.EVICTD_INTERNAL.exitStatus).toBe(1);
  });
});

describe('withPlace', () => {
  const inner = new EvictdError(
    'EVICTD_QUANTITY',
    'is no quantity',
    { value: '10Xi', key: 'memory.available' },
    'why',
  );

  it('adds what is not known yet, and keeps code, message and cause', () => {
    expect(withPlace(inner, { source: '--eviction-hard' })).toMatchObject({
      code: 'EVICTD_QUANTITY',
      message: 'is no quantity',
      cause: 'why',
      place: { source: '--eviction-hard', key: 'memory.available', value: '10Xi' },
    });
  });

  it('leaves what is there already', () => {
    expect(withPlace(inner, { value: 'outer', key: 'outer' }).place).toStrictEqual(inner.place);
  });
});

describe('describeError', () => {
  it.each<[ErrorPlace, string]>([
    [{}, 'is wrong'],
    [{ source: '--x' }, '--x: is wrong'],
    [{ key: 'memory.available' }, 'memory.available: is wrong'],
    [{ value: '10Xi' }, '"10Xi": is wrong'],
    [{ value: '' }, '"": is wrong'],
    [{ source: '--x', key: 'k' }, '--x: k: is wrong'],
    [{ source: '--x', value: 'v' }, '--x "v": is wrong'],
    [{ source: '--x', key: 'k', value: 'v' }, '--x: k "v": is wrong'],
    [{ key: 'web\n{"msg":"ready"}' }, 'web\\u000a{"msg":"ready"}: is wrong'],
    [{ value: '\u001b[2J' }, '"\\u001b[2J": is wrong'],
  ])('%j reads %j', (place, expected) => {
    expect(describeError(new EvictdError('EVICTD_POD', 'is wrong', place))).toBe(expected);
    expect(describeAt(place, 'is wrong')).toBe(expected);
  });
});

describe('escapeControl', () => {
  it.each([
    ['plain text, ß and 名前', 'plain text, ß and 名前'],
    ['tab\tnewline\nreturn\r', 'tab\\u0009newline\\u000areturn\\u000d'],
    ['\u0000 \u001f', '\\u0000 \\u001f'],
    ['\u007f\u0080\u009f', '\\u007f\\u0080\\u009f'],
    ['\u2028\u2029', '\\u2028\\u2029'],
    ['\u202a\u202e', '\\u202a\\u202e'],
    ['\u2066\u2069', '\\u2066\\u2069'],
    // The neighbours on both sides stay.
    [' ~\u00a0\u2027\u202f\u2065\u206a', ' ~\u00a0\u2027\u202f\u2065\u206a'],
  ])('%j becomes %j', (text, expected) => {
    expect(escapeControl(text)).toBe(expected);
  });

  it('gives one line that drives no terminal, whatever comes in', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(escapeControl(text)).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u);
      }),
    );
  });
});

describe('quote', () => {
  it.each([
    ['', '""'],
    ['10%', '"10%"'],
    ['say "x"', '"say \\"x\\""'],
    ['a\nb', '"a\\nb"'],
    ['\u202egnp.exe', '"\\u202egnp.exe"'],
    ['\u009b2J', '"\\u009b2J"'],
    ['x'.repeat(200), `"${'x'.repeat(200)}"`],
    ['x'.repeat(201), `"${'x'.repeat(200)}…"`],
  ])('%j is shown as %j', (text, expected) => {
    expect(quote(text)).toBe(expected);
  });
});

describe('assert', () => {
  it('does nothing when the condition holds', () => {
    expect(() => assert(true, 'never')).not.toThrow();
  });

  it('fails with EVICTD_INTERNAL when it does not', () => {
    expect(() => assert(false, 'two evictions in flight')).toThrow(
      expect.objectContaining({ code: 'EVICTD_INTERNAL', message: 'two evictions in flight' }),
    );
  });
});

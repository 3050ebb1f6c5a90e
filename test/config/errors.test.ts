import { describe, expect, it } from 'vitest';
import { placed } from '../../src/config/place.ts';
import {
  assert,
  describeAt,
  describeError,
  type ErrorPlace,
  EvictdError,
  escapeControl,
  quote,
  withPlace,
} from '../../src/core/errors.ts';

describe('EvictdError', () => {
  it('has its code’s exit status, and a cause if it was given one', () => {
    const cause = new Error('why');
    expect(new EvictdError('EVICTD_SOCKET', 'm', {}, cause)).toMatchObject({
      exitStatus: 4,
      cause,
    });
    expect(new EvictdError('EVICTD_USAGE', 'm')).not.toHaveProperty('cause');
  });
});

describe('withPlace', () => {
  it('adds what the place lacks and keeps the rest', () => {
    const cause = new Error('why');
    const error = new EvictdError('EVICTD_QUANTITY', 'm', { value: 'inner' }, cause);
    const placedError = withPlace(error, { source: '--pod', value: 'outer' });
    expect(placedError).toMatchObject({ code: 'EVICTD_QUANTITY', message: 'm', cause });
    expect(placedError.place).toEqual({ source: '--pod', value: 'inner' });
  });
});

describe('placed', () => {
  it('leaves other errors and results alone', () => {
    const other = new TypeError('other');
    const fail = () => {
      throw other;
    };
    expect(() => placed({ source: '--pod' }, fail)).toThrow(other);
    expect(placed({ source: '--pod' }, () => 5)).toBe(5);
  });
});

describe('describeError', () => {
  it.each<[ErrorPlace, string]>([
    [{}, 'm'],
    [{ source: '--pod' }, '--pod: m'],
    [{ source: '--pod', key: 'web' }, '--pod: web: m'],
    [{ source: '--pod', key: 'web', value: 'x' }, '--pod: web "x": m'],
    [{ value: '' }, '"": m'],
    [{ key: 'a\nb' }, 'a\\u000ab: m'],
  ])('%j', (place, text) => {
    expect(describeAt(place, 'm')).toBe(text);
    expect(describeError(new EvictdError('EVICTD_POD', 'm', place))).toBe(text);
  });
});

describe('quote and escapeControl', () => {
  it.each([
    ['a"b', '"a\\"b"'],
    ['\u001b[31m', '"\\u001b[31m"'],
    ['\u009b', '"\\u009b"'],
    ['\u202e', '"\\u202e"'],
    ['x'.repeat(200), `"${'x'.repeat(200)}"`],
    ['x'.repeat(201), `"${'x'.repeat(200)}…"`],
  ])('quote(%j)', (text, quoted) => {
    expect(quote(text)).toBe(quoted);
  });

  it.each([
    ['plain ü', 'plain ü'],
    ['\u0000\u001f\u007f\u0080\u009f', '\\u0000\\u001f\\u007f\\u0080\\u009f'],
    [
      '\u2027\u2028\u202e\u202f\u2065\u2066\u2069\u206a',
      '\u2027\\u2028\\u202e\u202f\u2065\\u2066\\u2069\u206a',
    ],
  ])('escapeControl(%j)', (text, escaped) => {
    expect(escapeControl(text)).toBe(escaped);
  });
});

describe('assert', () => {
  it('fails with EVICTD_INTERNAL when the condition does not hold', () => {
    expect(() => assert(true, 'm')).not.toThrow();
    expect(() => assert(false, 'm')).toThrow(
      expect.objectContaining({ code: 'EVICTD_INTERNAL', message: 'm', exitStatus: 1 }),
    );
  });
});

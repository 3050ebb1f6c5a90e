import { describe, expect, it } from 'vitest';
import { placed } from '../../src/config/place.ts';
import { EvictdError } from '../../src/core/errors.ts';

describe('placed', () => {
  it('says where a refused value stood', () => {
    const refuse = () => {
      throw new EvictdError('EVICTD_POD', 'is wrong', { value: 'x' });
    };
    expect(() => placed({ source: '--pod', value: 'outer' }, refuse)).toThrow(
      expect.objectContaining({ place: { source: '--pod', value: 'x' } }),
    );
  });

  it('leaves other errors and results alone', () => {
    const other = new TypeError('other');
    const fail = () => {
      throw other;
    };
    expect(() => placed({ source: '--pod' }, fail)).toThrow(other);
    expect(placed({ source: '--pod' }, () => 5)).toBe(5);
  });
});

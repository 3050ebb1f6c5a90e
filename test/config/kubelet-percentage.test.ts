import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseKubeletPercentage } from '../../src/config/kubelet-percentage.ts';
import type { EvictdError } from '../../src/core/errors.ts';

const percent = (float: number): number => Math.fround(Math.fround(float) / 100);

describe('parseKubeletPercentage', () => {
  it.each([
    ['10%', percent(10)],
    ['10', percent(10)],
    ['10%%%', percent(10)],
    ['+7.5%', percent(7.5)],
    ['-7.5%', percent(-7.5)],
    ['.5%', percent(0.5)],
    ['5.%', percent(5)],
    ['1e1%', percent(10)],
    ['100E-1%', percent(10)],
    ['1_0%', percent(10)],
    ['1_0.0_5e0_1%', percent(100.5)],
    ['0x1p3%', percent(8)],
    ['0X.8P4%', percent(8)],
    ['0x_Ap0%', percent(10)],
    ['inf%', Infinity],
    ['-Infinity%', -Infinity],
    ['NaN%', Number.NaN],
    ['0%', 0],
    ['1e-400%', 0],
    ['1e-9999999999%', 0],
    // The smallest step of 32 bits, half of it (to even), and a little more than half.
    ['1e-45%', percent(2 ** -149)],
    ['7.006492321624085e-46%', 0],
    ['7.0064923216240854e-46%', percent(2 ** -149)],
    ['3.4028235e38%', percent((2 - 2 ** -23) * 2 ** 127)],
    // Between two floats, by less than a double can tell: rounded once, not twice.
    ['16777217%', percent(16_777_216)],
    ['16777217.0000000000000000000001%', percent(16_777_218)],
    ['16777218.9999999999999999999999%', percent(16_777_218)],
    ['16777219%', percent(16_777_220)],
  ])('reads %s', (text, fraction) => {
    expect(parseKubeletPercentage(text)).toBe(fraction === 0 ? 0 : fraction);
  });

  it.each([
    '%',
    '',
    ' 5%',
    '5 %',
    '.%',
    'e1%',
    '1e%',
    '5,5%',
    '0x10%',
    '0xp1%',
    '_1%',
    '1_%',
    '1__0%',
    '1_.5%',
    '1e_1%',
    '+NaN%',
    'infin%',
    '--1%',
    '3.5e38%',
    '1e99999999999%',
    `${'1'.repeat(128)}%`,
  ])('refuses %j', (text) => {
    expect(() => parseKubeletPercentage(text)).toThrow(
      expect.objectContaining({ code: 'EVICTD_PERCENTAGE', place: { value: text } }),
    );
  });

  it('is what rounding a double gives, where that is exact', () => {
    fc.assert(
      fc.property(fc.float({ noNaN: true, noDefaultInfinity: true }), (float) => {
        const read = parseKubeletPercentage(`${float}%`);
        expect(read === 0 ? 0 : read).toBe(percent(float) === 0 ? 0 : percent(float));
      }),
    );
  });

  it('takes constant time and throws nothing but its code', () => {
    const text = fc.oneof(
      fc.string({ maxLength: 200 }),
      fc.stringMatching(/^[+-]?[0-9_.]{0,60}([eEpP][+-]?[0-9]{1,60})?%?$/),
      fc.stringMatching(/^0x[0-9a-f_.]{0,60}p[+-]?[0-9]{1,60}%$/),
    );
    fc.assert(
      fc.property(text, (given) => {
        const start = performance.now();
        try {
          parseKubeletPercentage(given);
        } catch (error) {
          expect((error as EvictdError).code).toBe('EVICTD_PERCENTAGE');
        }
        expect(performance.now() - start).toBeLessThan(100);
      }),
      { numRuns: 500 },
    );
  });
});

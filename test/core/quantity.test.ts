import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EvictdError } from '../../src/core/errors.ts';
import {
  addQuantities,
  approximateCount,
  canonicalQuantity,
  formatBytes,
  formatPercentage,
  formatQuantity,
  parsePercentage,
  parseQuantity,
  type QuantityFormat,
  quantityFormat,
  readQuantity,
} from '../../src/core/quantity.ts';
import { resolveValue } from '../../src/core/threshold.ts';

const NANO = 1_000_000_000n;
const MAX_UNITS = 2n ** 63n - 1n;

function codeOf(parse: () => unknown): string | undefined {
  try {
    parse();
    return undefined;
  } catch (error) {
    if (error instanceof EvictdError) return error.code;
    throw error;
  }
}

describe('parseQuantity', () => {
  const units: readonly (readonly [string, bigint])[] = [
    ['0', 0n],
    ['-0', 0n],
    ['000', 0n],
    ['0Ki', 0n],
    ['1', 1n],
    ['+1', 1n],
    ['-1', -1n],
    ['007', 7n],
    ['1k', 1_000n],
    ['1M', 1_000_000n],
    ['1G', 10n ** 9n],
    ['1T', 10n ** 12n],
    ['1P', 10n ** 15n],
    ['1E', 10n ** 18n],
    ['1Ki', 1n << 10n],
    ['1Mi', 1n << 20n],
    ['1Gi', 1n << 30n],
    ['1Ti', 1n << 40n],
    ['1Pi', 1n << 50n],
    ['1Ei', 1n << 60n],
    ['100Mi', 104_857_600n],
    ['0.5Gi', 536_870_912n],
    ['.5Gi', 536_870_912n],
    ['+5Gi', 5n << 30n],
    ['5.Gi', 5n << 30n],
    ['-3.5Ki', -3_584n],
    ['129e6', 129_000_000n],
    ['129E6', 129_000_000n],
    ['1E3', 1_000n],
    ['1e+3', 1_000n],
    ['1e03', 1_000n],
    ['5000e-3', 5n],
    ['1e18', 10n ** 18n],
    ['9223372036854775807', MAX_UNITS],
    ['-9223372036854775807', -MAX_UNITS],
  ];
  it.each(units)('%s', (text, value) => {
    expect(parseQuantity(text)).toBe(value * NANO);
  });

  const nanoUnits: readonly (readonly [string, bigint])[] = [
    ['100m', 100_000_000n],
    ['1.5m', 1_500_000n],
    ['0.000001m', 1n],
    ['0.0000001m', 1n],
    ['1.1Gi', 1_181_116_006_400_000_000n],
    ['0.123456789Mi', 129_453_825_982_464n],
    ['999999999999999n', 999_999_999_999_999n],
    ['.5k', 500_000_000_000n],
    ['1u', 1_000n],
    ['1n', 1n],
    ['1e-9', 1n],
    ['0.000000001', 1n],
    // Finer than a nano-unit: up, away from zero.
    ['0.1n', 1n],
    ['-0.1n', -1n],
    ['1.0000000001', 1_000_000_001n],
    ['-1.0000000001', -1_000_000_001n],
    ['0.0000000001Ki', 103n],
    ['1e-99', 1n],
    ['0e-99', 0n],
  ];
  it.each(nanoUnits)('%s in nano-units', (text, value) => {
    expect(parseQuantity(text)).toBe(value);
  });

  it.each([
    '9223372036854775808',
    '9223372036854775807.000000001',
    '8Ei',
    '10E',
    '999999999999999Gi',
    '999999999999999G',
    '99999999999999.9G',
    '1e19',
    '1e99',
    `${'9'.repeat(128)}`,
  ])('%s is capped to 2^63 − 1 units', (text) => {
    expect(parseQuantity(text)).toBe(MAX_UNITS * NANO);
    if (text.length < 128) expect(parseQuantity(`-${text}`)).toBe(-MAX_UNITS * NANO);
  });

  it('keeps what is just below the cap', () => {
    expect(parseQuantity('9223372036854775806.999999999')).toBe(MAX_UNITS * NANO - 1n);
  });

  it.each([
    '',
    ' ',
    '.',
    '+',
    '-',
    'Ki',
    '.Ki',
    '5 Gi',
    ' 5Gi',
    '5Gi ',
    '5Gi\n',
    '5gi',
    '5GI',
    '5ki',
    '5K',
    '5g',
    '5KB',
    '5MiB',
    '5i',
    '--5',
    '+-5',
    '1.1.1',
    '1,5',
    '1_000',
    '0x10',
    'NaN',
    'Infinity',
    '1e',
    '1e+',
    '1e1.5',
    '1e3Ki',
    '1Ki3',
    '1Ee3',
    '1E3E',
    '٣',
    '5%',
    '100Mi,',
  ])('refuses %j', (text) => {
    expect(codeOf(() => parseQuantity(text))).toBe('EVICTD_QUANTITY');
  });

  // Constant time is a matter of what is computed: the exponent and the length have limits.
  it.each([
    ['1e99', undefined],
    ['1e100', 'EVICTD_QUANTITY'],
    ['1e-99', undefined],
    ['1e-100', 'EVICTD_QUANTITY'],
    ['2E6024865272343', 'EVICTD_QUANTITY'],
    ['2E-6024865272343', 'EVICTD_QUANTITY'],
    ['0E6024865272343', 'EVICTD_QUANTITY'],
    [`1e${'9'.repeat(120)}`, 'EVICTD_QUANTITY'],
    [`1e${'0'.repeat(120)}1`, undefined],
    ['1'.repeat(128), undefined],
    ['1'.repeat(129), 'EVICTD_QUANTITY'],
    [`0.${'1'.repeat(126)}`, undefined],
    [`0.${'1'.repeat(127)}`, 'EVICTD_QUANTITY'],
    ['1'.repeat(1_000_000), 'EVICTD_QUANTITY'],
  ])('limits exponent and length: %s', (text, code) => {
    expect(codeOf(() => parseQuantity(text))).toBe(code);
  });

  it('says what is wrong and keeps the value', () => {
    expect(() => parseQuantity('')).toThrow(/empty/);
    expect(() => parseQuantity('1e100')).toThrow(/exponent/);
    expect(() => parseQuantity('1'.repeat(129))).toThrow(/longer than 128/);
    expect(() => parseQuantity('5 Gi')).toThrow(
      expect.objectContaining({ place: { value: '5 Gi' } }),
    );
  });

  it('rounds 100m up to one whole byte when asked in bytes', () => {
    const value = { kind: 'quantity', nano: parseQuantity('100m'), text: '100m' } as const;
    expect(resolveValue(value, 1)).toBe(1);
  });

  it('throws nothing but EVICTD_QUANTITY', () => {
    const nearly = fc.stringMatching(
      /^[-+ ]?[0-9]{0,25}[.]?[0-9]{0,25}[eEKMGTPkinum]{0,2}[-+]?[0-9]{0,20}$/,
    );
    fc.assert(
      fc.property(fc.oneof(fc.string(), nearly), (text) => {
        const code = codeOf(() => parseQuantity(text));
        return code === undefined || code === 'EVICTD_QUANTITY';
      }),
    );
  });

  it('never exceeds the cap', () => {
    const number = fc.tuple(fc.bigInt({ min: 0n }), fc.integer({ min: -99, max: 99 }));
    fc.assert(
      fc.property(number, ([digits, exponent]) => {
        const text = `${digits}e${exponent}`;
        return text.length > 128 || parseQuantity(text) <= MAX_UNITS * NANO;
      }),
    );
  });
});

describe('approximateCount', () => {
  it.each([
    [0, 'bytes', '0'],
    [1023, 'bytes', '1023'],
    [1024, 'bytes', '1Ki'],
    [1536, 'bytes', '1.5Ki'],
    [2 ** 20 - 1, 'bytes', '1Mi'],
    [82_434_093_056, 'bytes', '76.8Gi'],
    [Number.MAX_SAFE_INTEGER, 'bytes', '8Pi'],
    [999, 'tasks', '999'],
    [1000, 'tasks', '1k'],
    [32_668, 'tasks', '32.7k'],
    [1_048_576, 'inodes', '1M'],
  ] as const)('%d %s is %s', (count, unit, text) => {
    expect(approximateCount(count, unit)).toBe(text);
  });
});

describe('formatBytes', () => {
  it.each([
    [0, '0'],
    [1, '1'],
    [1024, '1Ki'],
    [100 * 2 ** 20, '100Mi'],
    [100 * 2 ** 20 + 1, '104857601'],
  ])('%i is %s', (count, text) => {
    expect(formatBytes(count)).toBe(text);
  });
});

describe('formatQuantity', () => {
  it.each([
    [0n, 'binary', '0'],
    [104_857_600n * NANO, 'binary', '100Mi'],
    [-104_857_600n * NANO, 'binary', '-100Mi'],
    [1023n * NANO, 'binary', '1023'],
    [1024n * NANO, 'binary', '1Ki'],
    [1025n * NANO, 'binary', '1025'],
    [1536n * NANO, 'binary', '1536'],
    [1_000_000n * NANO, 'binary', '1000000'],
    [(1n << 60n) * NANO, 'binary', '1Ei'],
    [MAX_UNITS * NANO, 'binary', '9223372036854775807'],
    [NANO / 10n, 'binary', '100m'],
    [1n, 'binary', '1n'],
    [0n, 'decimal', '0'],
    [999n * NANO, 'decimal', '999'],
    [1000n * NANO, 'decimal', '1k'],
    [1024n * NANO, 'decimal', '1024'],
    [129_000_000n * NANO, 'decimal', '129M'],
    [10n ** 18n * NANO, 'decimal', '1E'],
    [1_500n, 'decimal', '1500n'],
    [-1_000n, 'decimal', '-1u'],
    [0n, 'exponent', '0'],
    [NANO, 'exponent', '1'],
    [999n * NANO, 'exponent', '999'],
    [129_000_000n * NANO, 'exponent', '129e6'],
    [10_000n * NANO, 'exponent', '10e3'],
    [-(10n ** 18n) * NANO, 'exponent', '-1e18'],
    [1_500n * (NANO / 1000n), 'exponent', '1500e-3'],
    [1n, 'exponent', '1e-9'],
  ] as const)('%d nano-units, %s: %s', (nano, format, text) => {
    expect(formatQuantity(nano, format)).toBe(text);
  });

  it('has powers of 1024 without a format', () => {
    expect(formatQuantity(104_857_600n * NANO)).toBe('100Mi');
    expect(formatQuantity(1000n * NANO)).toBe('1000');
  });

  it('is read again as the same value', () => {
    const nano = fc.oneof(
      fc.bigInt({ min: -MAX_UNITS * NANO, max: MAX_UNITS * NANO }),
      fc.bigInt({ min: -(2n ** 33n), max: 2n ** 33n }).map((mebi) => mebi * (NANO << 20n)),
    );
    fc.assert(
      fc.property(nano, fc.constantFrom('binary', 'decimal', 'exponent'), (value, format) => {
        expect(parseQuantity(formatQuantity(value, format))).toBe(value);
      }),
    );
  });
});

describe('quantityFormat', () => {
  it.each<[string, QuantityFormat]>([
    ['100Mi', 'binary'],
    ['1.5Gi', 'binary'],
    ['0Ki', 'binary'],
    ['100M', 'decimal'],
    ['100', 'decimal'],
    ['1500m', 'decimal'],
    // `E` alone is exa; with digits after it, it is an exponent.
    ['1E', 'decimal'],
    ['1E3', 'exponent'],
    ['1e3', 'exponent'],
    ['1e+3', 'exponent'],
    ['5000e-3', 'exponent'],
    ['1Ei', 'binary'],
  ])('%s is %s', (text, format) => {
    expect(quantityFormat(text)).toBe(format);
  });
});

describe('readQuantity', () => {
  it('keeps the value with its notation', () => {
    expect(readQuantity('0.5Gi')).toStrictEqual({ nano: 536_870_912n * NANO, format: 'binary' });
    expect(readQuantity('129e6')).toStrictEqual({ nano: 129_000_000n * NANO, format: 'exponent' });
  });

  it.each(['', '5 Gi', '1e3Ki', '2E6024865272343'])('refuses %j', (text) => {
    expect(codeOf(() => readQuantity(text))).toBe('EVICTD_QUANTITY');
  });
});

describe('addQuantities', () => {
  it.each([
    ['1Gi', '1G', '2073741824'],
    ['1G', '1Gi', '2073741824'],
    ['1Gi', '512Mi', '1536Mi'],
    ['1G', '500M', '1500M'],
    ['1e3', '1k', '2e3'],
    ['1k', '1e3', '2k'],
    // The first that is not zero has the notation.
    ['0', '1Gi', '1Gi'],
    ['0', '1e3', '1e3'],
    ['1Gi', '0', '1Gi'],
    ['0Ki', '1k', '1k'],
    ['0', '0Ki', '0'],
    ['1Gi', '-1Gi', '0'],
    ['1Gi', '500m', '1073741824500m'],
  ])('%s and %s are %s', (left, right, sum) => {
    expect(canonicalQuantity(addQuantities(readQuantity(left), readQuantity(right)))).toBe(sum);
  });
});

describe('canonicalQuantity', () => {
  it.each([
    ['100Mi', '100Mi'],
    ['0.5Gi', '512Mi'],
    ['1024Mi', '1Gi'],
    ['1025Ki', '1025Ki'],
    // Powers of 1024 are neither for what is small nor for fractions.
    ['1Ki', '1Ki'],
    ['0.5Ki', '512'],
    ['-0.5Ki', '-512'],
    ['-1Ki', '-1Ki'],
    ['1000Ki', '1000Ki'],
    ['0.0001Ki', '102400u'],
    ['1.0001Ki', '1024102400u'],
    ['0Ki', '0'],
    ['1000', '1k'],
    ['1024', '1024'],
    ['104857600', '104857600'],
    ['129M', '129M'],
    ['1500m', '1500m'],
    ['1E', '1E'],
    ['129e6', '129e6'],
    ['1000e3', '1e6'],
    ['1.5e3', '1500'],
    ['5e-3', '5e-3'],
  ])('%s is written %s', (text, expected) => {
    expect(canonicalQuantity(readQuantity(text))).toBe(expected);
  });
});

describe('parsePercentage', () => {
  it.each([
    ['0%', 0n],
    ['-0%', 0n],
    ['0.00%', 0n],
    ['5%', 5n * NANO],
    ['+5%', 5n * NANO],
    ['05%', 5n * NANO],
    ['7.5%', 7_500_000_000n],
    ['.5%', 500_000_000n],
    ['5.%', 5n * NANO],
    ['0.000000001%', 1n],
    ['5.0000000000000%', 5n * NANO],
    ['99.999999999%', 100n * NANO - 1n],
    ['100%', 100n * NANO],
    ['100.000%', 100n * NANO],
    [`${'0'.repeat(126)}5%`, 5n * NANO],
  ])('%s', (text, nanoPercent) => {
    expect(parsePercentage(text)).toBe(nanoPercent);
  });

  it.each([
    '',
    '%',
    '.%',
    '5',
    '5%%',
    '%5',
    '5 %',
    ' 5%',
    '5% ',
    '5%\n',
    '-5%',
    '-0.000000001%',
    '--5%',
    '+-5%',
    '100.000000001%',
    '101%',
    '1e1%',
    '1E0%',
    'NaN%',
    'Inf%',
    '0x5%',
    '5Mi%',
    '1,5%',
    '0.0000000001%',
    '1.0000000001%',
    `${'0'.repeat(127)}5%`,
    `${'9'.repeat(1_000_000)}%`,
  ])('refuses %s', (text) => {
    expect(codeOf(() => parsePercentage(text))).toBe('EVICTD_PERCENTAGE');
  });

  it('throws nothing but EVICTD_PERCENTAGE', () => {
    const nearly = fc.stringMatching(/^[-+]?[0-9]{0,4}[.]?[0-9]{0,12}[e]?%{0,2}$/);
    fc.assert(
      fc.property(fc.oneof(fc.string(), nearly), (text) => {
        const code = codeOf(() => parsePercentage(text));
        return code === undefined || code === 'EVICTD_PERCENTAGE';
      }),
    );
  });
});

describe('formatPercentage', () => {
  it.each([
    [0n, '0%'],
    [1n, '0.000000001%'],
    [7_500_000_000n, '7.5%'],
    [100n * NANO, '100%'],
  ])('%d nano-percent: %s', (nanoPercent, text) => {
    expect(formatPercentage(nanoPercent)).toBe(text);
  });

  it('is read again as the same value', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 100n * NANO }), (nanoPercent) => {
        expect(parsePercentage(formatPercentage(nanoPercent))).toBe(nanoPercent);
      }),
    );
  });
});

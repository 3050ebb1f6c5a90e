import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseTimestampNs } from '../../src/core/timestamp.ts';

/** Of 2026-01-01T00:00:00Z, ns since 1970. */
const START_NS = 1_767_225_600_000_000_000n;
const SECOND_NS = 1_000_000_000n;

describe('parseTimestampNs', () => {
  it.each<[string, bigint]>([
    ['1970-01-01T00:00:00Z', 0n],
    ['1969-12-31T23:59:59Z', -SECOND_NS],
    ['2026-01-01T00:00:00Z', START_NS],
    ['2026-01-01t00:00:00z', START_NS],
    ['2026-01-01T00:00:01Z', START_NS + SECOND_NS],
    // Fractions to the nanosecond; more digits are dropped.
    ['2026-01-01T00:00:00.5Z', START_NS + SECOND_NS / 2n],
    ['2026-01-01T00:00:00.000000001Z', START_NS + 1n],
    ['2026-01-01T00:00:00.0000000019Z', START_NS + 1n],
    // Any offset.
    ['2026-01-01T01:00:00+01:00', START_NS],
    ['2025-12-31T18:30:00-05:30', START_NS],
    ['2026-01-01T00:00:00+00:00', START_NS],
    ['2026-01-01T00:00:00-00:00', START_NS],
    ['2026-01-02T00:00:00+24:00', START_NS],
    // Leap days, the first and last of a month and a year.
    ['2024-02-29T12:00:00Z', 1_709_208_000n * SECOND_NS],
    ['2000-02-29T00:00:00Z', 951_782_400n * SECOND_NS],
    ['2000-03-01T00:00:00Z', 951_868_800n * SECOND_NS],
    ['9999-12-31T23:59:59Z', 253_402_300_799n * SECOND_NS],
    ['0001-01-01T00:00:00Z', -62_135_596_800n * SECOND_NS],
  ])('%s', (text, expected) => {
    expect(parseTimestampNs(text)).toBe(expected);
  });

  it.each([
    '',
    'now',
    '2026-01-01',
    '2026-01-01T00:00:00',
    '2026-01-01 00:00:00Z',
    '2026-01-01T00:00Z',
    '2026-01-01T00:00:00.Z',
    '2026-01-01T00:00:00+0100',
    '2026-01-01T00:00:00+25:00',
    '2026-01-01T00:00:00+01:61',
    ' 2026-01-01T00:00:00Z',
    '2026-01-01T00:00:00Z ',
    '26-01-01T00:00:00Z',
    '2026-00-01T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-01-00T00:00:00Z',
    '2026-01-32T00:00:00Z',
    '2026-04-31T00:00:00Z',
    '2026-02-29T00:00:00Z',
    '1900-02-29T00:00:00Z',
    '2026-01-01T24:00:00Z',
    '2026-01-01T00:60:00Z',
    '2026-01-01T00:00:60Z',
    `2026-01-01T00:00:00.${'1'.repeat(31)}Z`,
    '٢026-01-01T00:00:00Z',
  ])('of %j tells nothing', (text) => {
    expect(parseTimestampNs(text)).toBeUndefined();
  });

  it('reads every instant as JavaScript writes it', () => {
    const instants = fc.date({
      min: new Date('0001-01-01T00:00:00Z'),
      max: new Date('9999-12-31T23:59:59.999Z'),
      noInvalidDate: true,
    });
    fc.assert(
      fc.property(instants, (instant) => {
        expect(parseTimestampNs(instant.toISOString())).toBe(
          BigInt(instant.getTime()) * 1_000_000n,
        );
      }),
      { numRuns: 2000 },
    );
  });
});

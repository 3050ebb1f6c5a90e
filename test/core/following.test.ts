import { describe, expect, it } from 'vitest';
import { CLOSE_POLL_MS, closePollMs } from '../../src/core/following.ts';
import { MI } from '../support/builders.ts';

describe('closePollMs, capacity 512Mi, threshold 32Mi', () => {
  it.each([
    ['usage in the zone, inactive file above the threshold', 33 * MI, 448 * MI + 1, CLOSE_POLL_MS],
    ['usage at the edge of the zone', 33 * MI, 448 * MI, undefined],
    ['usage far from it', 33 * MI, 100 * MI, undefined],
    ['usage in the zone, but a level tells the crossing', 26 * MI, 511 * MI, undefined],
    ['no inactive file at all', 0, 511 * MI, undefined],
  ])('%s', (_, inactiveFileBytes, usageBytes, expected) => {
    expect(closePollMs(512 * MI, 32 * MI, inactiveFileBytes, usageBytes)).toBe(expected);
  });

  it('is none where the threshold is always met', () => {
    expect(closePollMs(512 * MI, 512 * MI, 600 * MI, 511 * MI)).toBeUndefined();
  });

  it('is 5 ms', () => {
    expect(CLOSE_POLL_MS).toBe(5);
  });
});

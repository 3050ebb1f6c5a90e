import { expect } from 'vitest';
import type { StatusDocument } from '../../../src/surfaces/status.ts';

/** Fails unless each was decided after the one before had ended; instants are whole milliseconds. */
export function expectOneAtATime(evictions: StatusDocument['evictions']): void {
  for (const [index, { decidedAt }] of evictions.entries()) {
    const before = evictions[index - 1];
    if (before === undefined) continue;
    const endedMs = Date.parse(before.decidedAt) + (before.timing.endedMs ?? Infinity);
    expect(Date.parse(decidedAt)).toBeGreaterThanOrEqual(Math.floor(endedMs) - 1);
  }
}

import { describe, expect, it } from 'vitest';
import type { Removal } from '../../../src/ports/reclaimer.ts';
import {
  AGAIN_DEADLINE_MS,
  patienceOf,
  REMOVE_DEADLINE_MS,
} from '../../../src/runtimes/shared/patience.ts';

const HANGS: Removal = { kind: 'failed', detail: 'no answer', isAway: true };
const REMOVED: Removal = { kind: 'removed' };

/** Removes one thing after the other; says how long each was given. */
function removals(answers: boolean) {
  const asked: (readonly [string, number])[] = [];
  const patience = patienceOf(() =>
    answers ? Promise.resolve() : Promise.reject(new Error('no')),
  );
  const remove = (key: string, removal: Removal): Promise<Removal> =>
    patience(key, async (deadlineMs) => {
      asked.push([key, deadlineMs]);
      return removal;
    });
  return { remove, asked };
}

describe('patienceOf', () => {
  it('has the one removal failed that hangs while the runtime answers, and waits less for it next time', async () => {
    const { remove, asked } = removals(true);
    expect(await remove('a', HANGS)).toEqual({ ...HANGS, isAway: false });
    expect(await remove('b', REMOVED)).toEqual(REMOVED);
    expect(await remove('a', HANGS)).toEqual({ ...HANGS, isAway: false });
    expect(await remove('a', REMOVED)).toEqual(REMOVED);
    await remove('a', REMOVED);
    expect(asked).toEqual([
      ['a', REMOVE_DEADLINE_MS],
      ['b', REMOVE_DEADLINE_MS],
      ['a', AGAIN_DEADLINE_MS],
      ['a', AGAIN_DEADLINE_MS],
      ['a', REMOVE_DEADLINE_MS],
    ]);
  });

  it('leaves it at that where the runtime does not answer: it is away', async () => {
    const { remove, asked } = removals(false);
    expect(await remove('a', HANGS)).toEqual(HANGS);
    await remove('a', HANGS);
    expect(asked.map(([, deadlineMs]) => deadlineMs)).toEqual([
      REMOVE_DEADLINE_MS,
      REMOVE_DEADLINE_MS,
    ]);
  });

  it('asks nothing where a removal was refused', async () => {
    const refused: Removal = { kind: 'failed', detail: 'no space', isAway: false };
    const { remove } = removals(false);
    expect(await remove('a', refused)).toBe(refused);
  });
});

import { describe, expect, it } from 'vitest';
import { MEBI } from '../../src/commands/demo/plan.ts';
import { type Evidence, judge } from '../../src/commands/demo/verdict.ts';

const GOOD: Evidence = {
  crossedAtMs: 1000,
  decision: { decidedAtMs: 1001.9, killedAtMs: 1002.4, wokenBy: 'kernel' },
  leakEnd: { signal: 'SIGKILL', atMs: 1020.25 },
  evictions: [{ pod: 'leak', outcome: 'evicted' }],
  recovered: true,
  oomKills: 0,
  others: [
    { pod: 'web', lives: true },
    { pod: 'cache', lives: true },
    { pod: 'batch', lives: true },
  ],
  peakBytes: 449.5 * MEBI,
  levelBytes: 448 * MEBI,
};

const lineOf = (changes: Partial<Evidence>) => {
  const verdict = judge({ ...GOOD, ...changes });
  return verdict.kind === 'shown' ? verdict.line : verdict;
};

describe('what the demo promises', () => {
  it('is said in one line', () => {
    expect(lineOf({})).toBe(
      "leak was evicted: SIGKILL about 2 ms and dead 20.3 ms after the kernel's event, " +
        'at most 1.5Mi past the threshold; web, cache and batch live',
    );
  });

  it.each<[string, Partial<Evidence>, string]>([
    [
      'a demo that heard of the event after the daemon',
      { decision: { decidedAtMs: 995, killedAtMs: 998, wokenBy: 'kernel' } },
      'SIGKILL about 3 ms and dead 25.3 ms after',
    ],
    [
      'a KILL of the same ms',
      { decision: { decidedAtMs: 1000, killedAtMs: 1000.9, wokenBy: 'kernel' } },
      'SIGKILL within 1 ms and dead 20.3 ms after',
    ],
    [
      'a poll that was quicker than the event',
      { decision: { decidedAtMs: 995, killedAtMs: 998, wokenBy: 'timer' } },
      'SIGKILL (a poll was quicker) about 2 ms before and dead 20.3 ms after',
    ],
    [
      'a poll that was not',
      { decision: { decidedAtMs: 1003, killedAtMs: 1004, wokenBy: 'timer' } },
      'SIGKILL about 4 ms and dead 20.3 ms after',
    ],
    [
      'a KILL that seems to follow the death',
      { decision: { decidedAtMs: 1002, killedAtMs: 1025, wokenBy: 'kernel' } },
      'SIGKILL about 20 ms and',
    ],
    ['a peak that seems to be below', { peakBytes: 0 }, 'at most 0.0Mi past'],
    [
      'another eviction that was refused',
      {
        evictions: [
          { pod: 'batch', outcome: 'refused' },
          { pod: 'leak', outcome: 'evicted' },
        ],
      },
      'leak was evicted',
    ],
  ])('allows for %s', (_name, changes, part) => {
    expect(lineOf(changes)).toContain(part);
  });
});

describe('what differs', () => {
  it.each<[Partial<Evidence>, string]>([
    [{ crossedAtMs: undefined }, 'the kernel told the demo of no crossing'],
    [
      {
        crossedAtMs: undefined,
        decision: { decidedAtMs: 995, killedAtMs: 998, wokenBy: 'timer' },
      },
      'the kernel told the demo of no crossing: a poll of evictd was quicker; try again',
    ],
    [{ decision: undefined }, 'evictd does not say when it killed leak'],
    [{ evictions: [] }, 'evictd says of no eviction of leak that it succeeded'],
    [
      { evictions: [{ pod: 'leak', outcome: 'timedOut' }] },
      'evictd says of no eviction of leak that it succeeded',
    ],
    [
      { evictions: [{ pod: 'leak', outcome: null }] },
      'evictd says of no eviction of leak that it succeeded',
    ],
    [{ leakEnd: undefined }, 'leak lives'],
    [{ leakEnd: { signal: 'SIGTERM', atMs: 1020 } }, 'leak ended by SIGTERM, not by SIGKILL'],
    [{ leakEnd: { signal: null, atMs: 1020 } }, 'leak ended by itself, not by SIGKILL'],
    [{ leakEnd: { signal: 'SIGKILL', atMs: 999 } }, "leak was dead before the kernel's event"],
    [
      { evictions: [...GOOD.evictions, { pod: 'batch', outcome: 'evicted' }] },
      'evictd evicted batch too',
    ],
    [{ evictions: [...GOOD.evictions, { pod: 'web', outcome: null }] }, 'evictd evicted web too'],
    [
      {
        others: [
          { pod: 'web', lives: false },
          { pod: 'cache', lives: false },
        ],
      },
      'web and cache ended',
    ],
    [{ oomKills: 1 }, "the kernel's OOM killer ended 1 of the node's processes"],
    [{ recovered: false }, 'evictd did not say that the threshold is no longer met'],
  ])('%j', (changes, difference) => {
    expect(judge({ ...GOOD, ...changes })).toEqual({
      kind: 'differed',
      differences: [difference],
    });
  });

  it('is all said', () => {
    const verdict = judge({ ...GOOD, leakEnd: undefined, evictions: [], oomKills: 2 });
    expect(verdict.kind === 'differed' && verdict.differences).toHaveLength(3);
  });
});

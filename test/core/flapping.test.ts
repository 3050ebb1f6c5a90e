import { describe, expect, it } from 'vitest';
import {
  FLAP_PERIODS,
  type FlapNotice,
  type Flapping,
  flapping,
  flapsOf,
  MIN_FLAP_WINDOW_MS,
  NOT_FLAPPING,
} from '../../src/core/flapping.ts';
import type { NodeCondition } from '../../src/core/signal.ts';

const S = 1000;
const TRANSITION_MS = 300 * S;
const WINDOW_MS = FLAP_PERIODS * TRANSITION_MS;

type Turn = readonly [atMs: number, ...conditions: NodeCondition[]];

/** What each of the turns tells, with its instant. */
function told(
  turns: readonly Turn[],
  transitionPeriodMs = TRANSITION_MS,
): { readonly notices: readonly (readonly [number, FlapNotice])[]; readonly last: Flapping } {
  let last = NOT_FLAPPING;
  const notices = turns.flatMap(([atMs, ...conditions]) => {
    last = flapping(last, conditions, atMs, transitionPeriodMs);
    return last.notices.map((notice) => [atMs, notice] as const);
  });
  return { notices, last };
}

/** Set at each of the instants, and cleared right before it. */
const setAt = (...instants: readonly number[]): readonly Turn[] =>
  instants.flatMap((atMs): readonly Turn[] => [[atMs - 0.5], [atMs, 'DiskPressure']]);

const disk = (kind: FlapNotice['kind'], sinceMs: number, count: number): FlapNotice => ({
  kind,
  condition: 'DiskPressure',
  sinceMs,
  count,
});

describe('flapping', () => {
  // k/k#115516: 9.9 % at 0, 10.1 % from 10 to 320, 9.9 % at 330, and so on, with a period of 5 minutes.
  it('tells of C04 at the third time, and not again while it goes on', () => {
    const cycles = [0, 330, 660, 990, 1320, 1650].map((second) => second * S);
    expect(told(setAt(...cycles)).notices).toStrictEqual([[660 * S, disk('began', 0, 3)]]);
  });

  it.each<[string, readonly number[], readonly number[]]>([
    ['once', [0], []],
    ['twice', [0, 330 * S], []],
    ['three times in the window', [0, 1, WINDOW_MS], [WINDOW_MS]],
    ['three times in more than the window', [0, 1, WINDOW_MS + 1], []],
    ['the first of four too early', [0, 600, WINDOW_MS + 1, WINDOW_MS + 2], [WINDOW_MS + 2]],
    ['twice, and twice long after', [0, 1, 3 * WINDOW_MS, 3 * WINDOW_MS + 1], []],
  ])('%s', (_, instants, expected) => {
    const { notices } = told(setAt(...instants));
    expect(notices.map(([atMs]) => atMs)).toEqual(expected);
  });

  it('counts on in a burst, and tells the count when it is over', () => {
    const lastMs = 5 * TRANSITION_MS;
    const instants = [0, 1, 2, 3, 5].map((period) => period * TRANSITION_MS);
    const burst = told(setAt(...instants));
    expect(flapsOf(burst.last)).toStrictEqual([
      { condition: 'DiskPressure', sinceMs: 0, count: 5 },
    ]);
    const calm = (atMs: number): readonly Turn[] => [...setAt(...instants), [atMs]];
    expect(told(calm(lastMs + WINDOW_MS)).notices).toHaveLength(1);
    const over = told(calm(lastMs + WINDOW_MS + 1));
    expect(over.notices.slice(1)).toStrictEqual([[lastMs + WINDOW_MS + 1, disk('ended', 0, 5)]]);
    expect(flapsOf(over.last)).toStrictEqual([]);
  });

  it('is over for a condition that stays, too', () => {
    const turns: readonly Turn[] = [...setAt(0, 10, 20), [20 + WINDOW_MS + 1, 'DiskPressure']];
    expect(told(turns).notices.map(([, { kind }]) => kind)).toEqual(['began', 'ended']);
  });

  it('begins anew after its end, also in the turn of its end', () => {
    const again = 20 + WINDOW_MS + 1000;
    const { notices } = told([
      ...setAt(0, 10, 20),
      [30],
      [again, 'DiskPressure'],
      ...setAt(again + 600, again + 1200),
    ]);
    expect(notices).toStrictEqual([
      [20, disk('began', 0, 3)],
      [again, disk('ended', 0, 3)],
      [again + 1200, disk('began', again, 3)],
    ]);
  });

  it('counts each condition for itself', () => {
    const { notices, last } = told([
      [0, 'DiskPressure'],
      [1, 'DiskPressure', 'MemoryPressure'],
      [2, 'MemoryPressure'],
      [3, 'DiskPressure', 'MemoryPressure'],
      [4],
      [5, 'DiskPressure', 'MemoryPressure'],
      [6],
    ]);
    expect(notices).toStrictEqual([[5, disk('began', 0, 3)]]);
    expect(flapsOf(last).map(({ condition }) => condition)).toEqual(['DiskPressure']);
  });

  it.each([0, 1, MIN_FLAP_WINDOW_MS / FLAP_PERIODS])(
    'has a window of a minute with a transition period of %d ms',
    (transitionPeriodMs) => {
      const within = told(setAt(0, 1, MIN_FLAP_WINDOW_MS), transitionPeriodMs);
      expect(within.notices).toHaveLength(1);
      const beyond = told(setAt(0, 1, MIN_FLAP_WINDOW_MS + 1), transitionPeriodMs);
      expect(beyond.notices).toHaveLength(0);
    },
  );

  it('makes nothing anew where nothing changes, and tells each notice once', () => {
    const { last } = told(setAt(0, 10, 20));
    const next = flapping(last, ['DiskPressure'], 30, TRANSITION_MS);
    expect(next.notices).toEqual([]);
    expect(flapping(next, ['DiskPressure'], 40, TRANSITION_MS)).toBe(next);
  });

  it('remembers a limited number of times', () => {
    const { last } = told(setAt(...Array.from({ length: 1000 }, (_, turn) => turn * 1000)));
    expect(last.watches.get('DiskPressure')?.setAtMs).toHaveLength(2);
    expect(flapsOf(last)[0]?.count).toBe(1000);
  });
});

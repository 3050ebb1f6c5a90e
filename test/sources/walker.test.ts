import { describe, expect, it } from 'vitest';
import type { HelperProcess } from '../../src/sources/helper-process.ts';
import type { WalkAnswer, WalkEvent } from '../../src/sources/walk-helper.ts';
import {
  WALK_AGAIN_MS,
  WALK_LIMITS,
  WALK_MARGIN_MS,
  WALKERS_HUNG_MAX,
  walker,
} from '../../src/sources/walker.ts';
import { clock } from '../support/clock.ts';

const WALKED: WalkAnswer = {
  kind: 'walked',
  device: '8:1',
  type: 1,
  bytes: 10,
  inodes: 1,
  cut: undefined,
  holders: [],
};
const DEADLINE_MS = WALK_LIMITS.ms + WALK_MARGIN_MS;

/** How a helper behaves that was asked about a path. */
type Behaviour = 'answers' | 'hangs' | 'dies';

/** Helpers that behave by the path below the root. */
function scene(behaviourOf: (below: string) => Behaviour = () => 'answers') {
  const time = clock();
  const started: { readonly tell: (event: WalkEvent) => void; isEnded: boolean }[] = [];
  const { scheduler } = time;
  const walks = walker({
    scheduler,
    start: (tell): HelperProcess => {
      const helper = { tell, isEnded: false };
      started.push(helper);
      return {
        pid: started.length,
        send: (frame) => {
          const below = frame.subarray(16 + frame.readUInt16LE(12)).toString();
          const behaviour = behaviourOf(below);
          if (behaviour === 'answers') {
            scheduler.schedule(() => tell({ kind: 'answer', answer: WALKED }), 1);
          }
          if (behaviour === 'dies') {
            scheduler.schedule(() => tell({ kind: 'ended', reason: 'killed' }), 1);
          }
        },
        end: () => {
          helper.isEnded = true;
        },
      };
    },
  });
  const walk = (below: string) => walks.walk({ root: '/r', below });
  return { time, started, walks, walk };
}

describe('a walker', () => {
  it('starts a helper when it is asked, and asks that one again', async () => {
    const { time, started, walks, walk } = scene();
    expect(started).toHaveLength(0);
    for (const below of ['a', 'b']) {
      const answer = walk(below);
      await time.pass(1);
      expect(await answer).toBe(WALKED);
    }
    const deleted = walks.deleted();
    await time.pass(1);
    expect(await deleted).toBe(WALKED);
    expect(started).toHaveLength(1);
    walks.close();
    expect(started[0]?.isEnded).toBe(true);
    const again = walk('c');
    await time.pass(1);
    expect(await again).toBe(WALKED);
    expect(started).toHaveLength(2);
  });

  it('refuses what leads away without asking anybody', async () => {
    const { started, walk } = scene();
    expect(await walk('../etc')).toMatchObject({ kind: 'refused' });
    expect(started).toHaveLength(0);
  });

  it('leaves one that hangs behind, and its place out for a while', async () => {
    let behaviour: Behaviour = 'hangs';
    const { time, started, walk } = scene((below) => (below === 'bad' ? behaviour : 'answers'));
    const bad = walk('bad');
    await time.pass(DEADLINE_MS - 1);
    expect(started[0]?.isEnded).toBe(false);
    await time.pass(1);
    expect(await bad).toStrictEqual({
      kind: 'refused',
      error: `no answer within ${DEADLINE_MS} ms`,
    });
    expect(started[0]?.isEnded).toBe(true);
    const good = walk('good');
    await time.pass(1);
    expect(await good).toBe(WALKED);
    expect(await walk('bad')).toMatchObject({ error: 'left out for a while: a walk over it hung' });
    behaviour = 'answers';
    await time.pass(WALK_AGAIN_MS);
    const again = walk('bad');
    await time.pass(1);
    expect(await again).toBe(WALKED);
  });

  it('one that dies is no fault of the place', async () => {
    let behaviour: Behaviour = 'dies';
    const { time, started, walk } = scene(() => behaviour);
    const first = walk('a');
    await time.pass(1);
    expect(await first).toStrictEqual({ kind: 'refused', error: 'killed' });
    behaviour = 'answers';
    const second = walk('a');
    await time.pass(1);
    expect(await second).toBe(WALKED);
    expect(started).toHaveLength(2);
  });

  it('has no more than a few that hang, and goes on once one of them has ended', async () => {
    let behaviour: Behaviour = 'hangs';
    const { time, started, walk } = scene(() => behaviour);
    for (let count = 0; count < WALKERS_HUNG_MAX; count += 1) {
      const answer = walk(`${count}`);
      await time.pass(DEADLINE_MS);
      await answer;
    }
    expect(await walk('more')).toStrictEqual({
      kind: 'refused',
      error: `${WALKERS_HUNG_MAX} helpers hang already`,
    });
    expect(started).toHaveLength(WALKERS_HUNG_MAX);
    started[0]?.tell({ kind: 'ended', reason: 'killed' });
    behaviour = 'answers';
    await time.pass(0);
    const again = walk('more');
    await time.pass(1);
    expect(await again).toBe(WALKED);
  });

  it('closed while it walks: the walk is refused', async () => {
    const { time, started, walks, walk } = scene(() => 'hangs');
    const answer = walk('a');
    await time.pass(1);
    walks.close();
    expect(started[0]?.isEnded).toBe(true);
    started[0]?.tell({ kind: 'ended', reason: 'evictd-walk ended by SIGKILL' });
    expect(await answer).toMatchObject({ error: 'evictd-walk ended by SIGKILL' });
  });
});

import { VirtualTimeScheduler } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { ASKED_AT_ONCE } from '../../../src/runtimes/shared/at-once.ts';
import {
  ASK_LIMIT_MS,
  FIRST_AGAIN_MS,
  LAST_AGAIN_MS,
  questions,
  SLOW_MS,
} from '../../../src/runtimes/shared/questions.ts';

const ids = (count: number) => Array.from({ length: count }, (_, index) => String(index));

/** Lets what promises bring on happen. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** What is asked, and answered by the tests: an answer, an error, or that it is gone. */
function asking() {
  const scheduler = new VirtualTimeScheduler();
  const open = new Map<string, (answer: Promise<string | undefined>) => void>();
  const asked: string[] = [];
  const known = questions<string>({
    scheduler,
    ask: (id) => {
      asked.push(id);
      return new Promise((resolve) => open.set(id, resolve));
    },
  });
  let learned = 0;
  return {
    asked,
    of: known.of,
    again: known.again,
    dueInMs: known.dueInMs,
    learn: (all: readonly string[]) => {
      const learning = known.learn(all).then(() => {
        learned += 1;
      });
      learning.catch(() => undefined);
      return settled();
    },
    learned: () => learned,
    answer: (id: string, answer: string | undefined | Error) => {
      const given = answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
      open.get(id)?.(given);
      return settled();
    },
    /** So long later. */
    later: async (ms: number) => {
      scheduler.maxFrames = scheduler.now() + ms;
      scheduler.schedule(() => undefined, ms);
      scheduler.flush();
      await settled();
    },
  };
}

describe('questions', () => {
  it('are asked once, and known from then on until the thing is gone', async () => {
    const { learn, learned, answer, asked, of, dueInMs } = asking();
    await learn(['a', 'b']);
    expect([asked, learned(), of('a')]).toEqual([['a', 'b'], 0, { kind: 'waiting' }]);
    await answer('a', 'A');
    await answer('b', undefined);
    expect([of('a'), of('b')]).toEqual([{ kind: 'told', answer: 'A' }, { kind: 'gone' }]);
    expect([learned(), dueInMs()]).toEqual([1, Number.POSITIVE_INFINITY]);
    await learn(['a']);
    expect([asked, learned()]).toEqual([['a', 'b'], 2]);
    await learn([]);
    await learn(['a']);
    expect([asked, of('a')]).toEqual([['a', 'b', 'a'], { kind: 'waiting' }]);
  });

  it('are some at a time, and those that are late hold up no other', async () => {
    const { learn, learned, answer, asked, later, of } = asking();
    const all = ids(2 * ASKED_AT_ONCE);
    await learn(all);
    expect(asked).toEqual(all.slice(0, ASKED_AT_ONCE));
    await answer('0', 'A');
    expect(asked).toEqual(all.slice(0, ASKED_AT_ONCE + 1));
    await later(SLOW_MS);
    expect(asked).toEqual(all);
    expect(learned()).toBe(0);
    for (const id of all.slice(ASKED_AT_ONCE)) await answer(id, 'A');
    expect([learned(), of('1')]).toEqual([1, { kind: 'waiting' }]);
    // What answers late is known at the next look, and was not asked again.
    await answer('1', 'late');
    await learn(all);
    expect([asked, of('1')]).toEqual([all, { kind: 'told', answer: 'late' }]);
  });

  it('are waited for so long together', async () => {
    const { learn, learned, later, asked } = asking();
    await learn(ids(1000));
    await later(ASK_LIMIT_MS - 1);
    expect(learned()).toBe(0);
    await later(1);
    expect(learned()).toBe(1);
    const before = asked.length;
    expect(before).toBeLessThan(100);
    await later(SLOW_MS);
    expect(asked.length).toBeGreaterThan(before);
  });

  it('are put again, twice as late each time, and not waited for', async () => {
    const { learn, learned, answer, asked, later, of, dueInMs } = asking();
    const delays: number[] = [];
    for (let round = 0; round < 8; round += 1) {
      await learn(['a']);
      expect([asked.length, learned()]).toEqual([round + 1, round === 0 ? 0 : 2 * round + 1]);
      await answer('a', new Error(`broken ${round}`));
      // The first reason stays: a pod's doubt is said once.
      expect(of('a')).toEqual({ kind: 'failed', reason: 'broken 0' });
      delays.push(dueInMs());
      await later(dueInMs() - 1);
      await learn(['a']);
      expect(asked).toHaveLength(round + 1);
      await later(1);
    }
    expect(delays).toEqual(
      [1, 2, 4, 8, 16, 32, 60, 60].map((times) => Math.min(LAST_AGAIN_MS, times * FIRST_AGAIN_MS)),
    );
    await learn(['a']);
    await answer('a', 'A');
    expect(of('a')).toEqual({ kind: 'told', answer: 'A' });
  });

  it('are put again when told so, and what was known holds until then', async () => {
    const { learn, answer, asked, again, of, dueInMs } = asking();
    await learn(['a']);
    await answer('a', 'old');
    again('a');
    expect([of('a'), dueInMs()]).toEqual([{ kind: 'told', answer: 'old' }, 0]);
    await learn(['a']);
    // It changes once more while it is being asked.
    again('a');
    await answer('a', 'between');
    expect([asked, of('a')]).toEqual([['a', 'a'], { kind: 'told', answer: 'between' }]);
    await learn(['a']);
    await answer('a', 'new');
    await learn(['a']);
    expect([asked, of('a')]).toEqual([['a', 'a', 'a'], { kind: 'told', answer: 'new' }]);
  });
});

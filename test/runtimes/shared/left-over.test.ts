import { describe, expect, it } from 'vitest';
import { SPACE_HELD_MOST_MS } from '../../../src/core/space.ts';
import type { RemainsState } from '../../../src/ports/pod-directory.ts';
import {
  ALIVE_AFTER_MS,
  LOOK_EACH_MS,
  leftOvers,
  MOST_LEFT_OVER,
  UNTOLD_MS,
} from '../../../src/runtimes/shared/left-over.ts';
import { clock } from '../../support/clock.ts';
import { runtimePod } from '../../support/runtime-pods.ts';

function scene({ mayRemove = false } = {}) {
  const time = clock();
  const states = new Map<string, RemainsState | Error>();
  const removed: string[] = [];
  const said: string[] = [];
  let looks = 0;
  const left = leftOvers({
    remains: {
      stateOf: ({ id }) => {
        looks += 1;
        const state = states.get(id) ?? 'gone';
        return state instanceof Error ? Promise.reject(state) : Promise.resolve(state);
      },
      remove: ({ id }, tell) => {
        removed.push(id);
        tell({ what: 'container', id: `c-${id}`, name: `${id}-main` });
        states.set(id, 'gone');
        return Promise.resolve();
      },
    },
    mayRemove: () => mayRemove,
    scheduler: time.scheduler,
    note: (notice) => {
      const { kind, podName } = notice;
      const what =
        notice.kind === 'removed'
          ? ` ${notice.thing.what} ${notice.thing.name} ${notice.thing.id}`
          : '';
      said.push(`${kind} ${podName}${what}`);
    },
  });
  const hold = (id: string, state: RemainsState | Error = 'dead'): void => {
    states.set(id, state);
    left.hold(runtimePod(id));
  };
  return { time, states, removed, said, left, hold, looks: () => looks };
}

describe('what is left over', () => {
  it('holds space until it is gone, and nobody looks any more', async () => {
    const { time, states, left, hold, looks } = scene();
    expect(left.any()).toBe(false);
    hold('fat');
    expect(left.any()).toBe(true);
    await time.pass(3 * LOOK_EACH_MS);
    expect(left.any()).toBe(true);
    states.set('fat', 'gone');
    await time.pass(LOOK_EACH_MS);
    expect(left.any()).toBe(false);
    const before = looks();
    await time.pass(60_000);
    expect(looks()).toBe(before);
    hold('again');
    await time.pass(LOOK_EACH_MS);
    expect(looks()).toBe(before + 1);
  });

  it('is removed where that may be, once it is dead', async () => {
    const { time, states, said, left, hold, removed } = scene({ mayRemove: true });
    hold('fat', 'running');
    await time.pass(LOOK_EACH_MS);
    expect(removed).toEqual([]);
    states.set('fat', 'dead');
    await time.pass(2 * LOOK_EACH_MS);
    expect(removed).toEqual(['fat']);
    expect(said).toEqual(['removed fat container fat-main c-fat']);
    expect(left.any()).toBe(false);
  });

  it('is a pod again where it was started again', async () => {
    const { time, left, hold, removed } = scene({ mayRemove: true });
    hold('web', 'running');
    await time.pass(ALIVE_AFTER_MS - 1);
    expect(left.any()).toBe(true);
    await time.pass(LOOK_EACH_MS);
    expect(left.any()).toBe(false);
    expect(removed).toEqual([]);
  });

  it('is there as long as the runtime does not say that it is not', async () => {
    const { time, left, hold, states } = scene();
    hold('fat', new Error('14 UNAVAILABLE'));
    await time.pass(SPACE_HELD_MOST_MS - 1);
    expect(left.any()).toBe(true);
    states.set('fat', 'gone');
    await time.pass(LOOK_EACH_MS);
    expect(left.any()).toBe(false);
  });

  it('is not waited for any more after half a minute, and told as long as it is there', async () => {
    const { time, left, hold, states, said } = scene();
    hold('fat');
    await time.pass(SPACE_HELD_MOST_MS);
    expect(left.any()).toBe(false);
    hold('next');
    expect(left.any()).toBe(true);
    states.set('fat', 'gone');
    states.set('next', 'gone');
    await time.pass(LOOK_EACH_MS);
    expect(said).toEqual(['left fat', 'gone fat']);
  });

  it('is told once it has stayed for a while, and when it is gone', async () => {
    const { time, states, said, hold } = scene();
    hold('fat');
    hold('short');
    await time.pass(UNTOLD_MS - LOOK_EACH_MS);
    states.set('short', 'gone');
    await time.pass(LOOK_EACH_MS);
    await time.pass(60_000);
    expect(said).toEqual(['left fat']);
    states.set('fat', 'gone');
    await time.pass(LOOK_EACH_MS);
    expect(said).toEqual(['left fat', 'gone fat']);
  });

  it('is forgotten where there is too much of it, the oldest first', async () => {
    const { time, left, hold, states } = scene();
    for (let count = 0; count <= MOST_LEFT_OVER; count += 1) hold(`${count}`);
    for (let count = 1; count <= MOST_LEFT_OVER; count += 1) states.set(`${count}`, 'gone');
    await time.pass(LOOK_EACH_MS);
    // The first one is there still, and nobody remembers it.
    expect(left.any()).toBe(false);
  });

  it('is held once, and not at all after the end', async () => {
    const { time, left, hold, looks } = scene();
    hold('fat');
    hold('fat');
    await time.pass(LOOK_EACH_MS);
    expect(looks()).toBe(1);
    left.close();
    await time.pass(60_000);
    expect([left.any(), looks()]).toEqual([false, 1]);
  });
});

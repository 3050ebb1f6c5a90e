import { VirtualTimeScheduler } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { CriClient } from '../../../src/runtimes/cri/client.ts';
import { imageNames, type Use } from '../../../src/runtimes/cri/image-names.ts';
import { FIRST_AGAIN_MS, SLOW_MS } from '../../../src/runtimes/shared/questions.ts';

const [A, B, C] = ['a', 'b', 'c'].map((digit) => digit.repeat(64)) as [string, string, string];

const image = (
  id: string,
  repoTags: readonly string[] = [],
  repoDigests: readonly string[] = [],
) => ({
  id,
  repoTags,
  repoDigests,
});

/** A runtime with these images at each question; `undefined` is one that does not answer, `never` one that hangs. */
function runtime(...answers: readonly (readonly object[] | undefined | 'never')[]) {
  const scheduler = new VirtualTimeScheduler();
  const asked: string[] = [];
  const client: CriClient = {
    call: async (method) => {
      const images = answers[Math.min(asked.length, answers.length - 1)];
      asked.push(method);
      if (images === undefined) throw new Error('away');
      if (images === 'never') return new Promise(() => undefined);
      return { images } as never;
    },
    close: () => undefined,
  };
  const { learn, namesOf } = imageNames(client, scheduler);
  return {
    asked,
    learn: (...uses: readonly Use[]) => learn(uses),
    namesOf,
    later: (ms: number): void => {
      scheduler.maxFrames = scheduler.now() + ms;
      scheduler.schedule(() => undefined, ms);
      scheduler.flush();
    },
  };
}

describe('imageNames', () => {
  it('knows what is named by an id once it has learned of it', async () => {
    const { asked, learn, namesOf } = runtime([
      image(`sha256:${A}`, ['localhost/web:1', 'localhost/web:2']),
      image(`sha256:${B}`, [], ['localhost/db@sha256:00']),
      image(`sha256:${C}`),
    ]);
    expect(namesOf('1')).toBeUndefined();
    const uses: readonly Use[] = [
      ['1', `sha256:${A}`],
      ['2', A],
      ['3', B],
      ['4', 'localhost/x:1'],
      ['5', C],
      ['6', 'd'.repeat(64)],
    ];
    await learn(...uses);
    expect(['1', '2', '3', '4', '5', '6'].map(namesOf)).toEqual([
      ['localhost/web:1', 'localhost/web:2'],
      ['localhost/web:1', 'localhost/web:2'],
      ['localhost/db@sha256:00'],
      ['localhost/x:1'],
      undefined,
      undefined,
    ]);
    await learn(...uses);
    expect(asked).toEqual(['ListImages']);
  });

  it('asks of nothing that has a name', async () => {
    const { asked, learn } = runtime([]);
    await learn(['1', 'localhost/x:1'], ['2', 'sha256:short'], ['3', '']);
    expect(asked).toEqual([]);
  });

  it('keeps a container’s name though the image loses it, until the container is gone', async () => {
    const { learn, namesOf, asked } = runtime([image(A, ['db:1'])], [image(A), image(B, ['db:1'])]);
    await learn(['1', A]);
    await learn(['1', A], ['2', B], ['3', A]);
    expect(['1', '2', '3'].map(namesOf)).toEqual([['db:1'], ['db:1'], undefined]);
    await learn();
    expect(namesOf('1')).toBeUndefined();
    expect(asked).toHaveLength(2);
  });

  it('asks again after a while where it was not answered', async () => {
    const { asked, learn, namesOf, later } = runtime(undefined, undefined, [image(A, ['web:1'])]);
    for (const [waitMs, count] of [
      [0, 1],
      [FIRST_AGAIN_MS - 1, 1],
      [1, 2],
      [FIRST_AGAIN_MS, 2],
      [FIRST_AGAIN_MS, 3],
    ] as const) {
      expect(namesOf('1')).toBeUndefined();
      later(waitMs);
      await learn(['1', A]);
      expect(asked).toHaveLength(count);
    }
    expect(namesOf('1')).toEqual(['web:1']);
  });

  it('waits for an answer that is late no longer than that, and asks one question at a time', async () => {
    const { asked, learn, later } = runtime('never');
    let isLearned = false;
    const learning = learn(['1', A]).then(() => {
      isLearned = true;
    });
    later(SLOW_MS - 1);
    await Promise.resolve();
    expect(isLearned).toBe(false);
    later(1);
    await learning;
    await learn(['1', A], ['2', B]);
    expect(asked).toHaveLength(1);
  });
});

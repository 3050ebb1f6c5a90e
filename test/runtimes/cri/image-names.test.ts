import { describe, expect, it } from 'vitest';
import type { CriClient } from '../../../src/runtimes/cri/client.ts';
import { imageNames } from '../../../src/runtimes/cri/image-names.ts';

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

/** A runtime with these images; `undefined` is one that does not answer. */
function runtime(...answers: readonly (readonly object[] | undefined)[]) {
  const asked: string[] = [];
  const client: CriClient = {
    call: async (method) => {
      const images = answers[Math.min(asked.length, answers.length - 1)];
      asked.push(method);
      if (images === undefined) throw new Error('away');
      return { images } as never;
    },
    close: () => undefined,
  };
  const names = imageNames(client);
  /** Tells of images, and waits for what is asked because of that. */
  const learn = async (...images: readonly string[]): Promise<void> => {
    names.learn(images);
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { asked, learn, nameOf: names.nameOf };
}

describe('imageNames', () => {
  it('asks for what is named by an id, once', async () => {
    const { asked, learn, nameOf } = runtime([
      image(`sha256:${A}`, ['localhost/web:1', 'localhost/web:2']),
      image(`sha256:${B}`, [], ['localhost/db@sha256:00']),
    ]);
    expect(nameOf(A)).toBe(A);
    await learn(`sha256:${A}`, A, B, 'localhost/x:1', C);
    expect(['localhost/x:1', `sha256:${A}`, A, B, C].map(nameOf)).toEqual([
      'localhost/x:1',
      'localhost/web:1',
      'localhost/web:1',
      'localhost/db@sha256:00',
      C,
    ]);
    await learn(`sha256:${A}`, C);
    expect(asked).toEqual(['ListImages']);
  });

  it('asks of nothing that has a name', async () => {
    const { asked, learn } = runtime([]);
    await learn('localhost/x:1', 'sha256:short', '');
    expect(asked).toEqual([]);
  });

  it('asks again for another, and where it was not answered', async () => {
    const web = [image(A, ['web:1'])];
    const { asked, learn, nameOf } = runtime(undefined, web, [...web, image(B, ['db:1'])]);
    await learn(A);
    expect(nameOf(A)).toBe(A);
    await learn(A);
    expect(nameOf(A)).toBe('web:1');
    await learn(A, B);
    expect(nameOf(B)).toBe('db:1');
    expect(asked).toHaveLength(3);
  });

  it('asks one question at a time', async () => {
    const { asked, learn } = runtime([image(A, ['web:1'])]);
    await Promise.all([learn(A), learn(B)]);
    expect(asked).toHaveLength(1);
  });
});

import { expect, it } from 'vitest';
import { oncePerPod, REMEMBERED } from '../../../src/runtimes/shared/once-per-pod.ts';

const about = (podId: string, reason = 'why') => ({ podId, reason });

it('says the same of one pod once, until it is no longer so', () => {
  const said: string[] = [];
  const tell = oncePerPod<ReturnType<typeof about>>(({ podId, reason }) =>
    said.push(`${podId} ${reason}`),
  );
  tell([about('a'), about('a'), about('b')]);
  tell([about('b'), about('a'), about('a', 'else')]);
  expect(said).toEqual(['a why', 'b why', 'a else']);
  tell([about('b')]);
  tell([about('a'), about('b')]);
  expect(said).toEqual(['a why', 'b why', 'a else', 'a why']);
});

it('remembers so much, and says no more', () => {
  let said = 0;
  const tell = oncePerPod(() => {
    said += 1;
  });
  const many = Array.from({ length: REMEMBERED + 5 }, (_, at) => about(`p${at}`));
  tell(many);
  tell(many);
  expect(said).toBe(REMEMBERED);
});

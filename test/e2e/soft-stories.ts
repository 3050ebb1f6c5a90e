/** A soft eviction on a runtime: who sends which signal, and by whose clock. */
import { expect, it, onTestFinished } from 'vitest';
import { isAlive, isGone, stage } from './leak-stories.ts';
import { QUIT_IMAGE } from './support/image.ts';
import { end, pidsBelow } from './support/left-over.ts';
import type { MadePod, RuntimeHost } from './support/runtime-host.ts';
import { untilAnswer } from './support/until-answer.ts';

const LIMIT_MS = 30_000;
const GRACE_MS = 3000;

/** How soon a runtime that does not answer is done without, and how late a clock may be, ms. */
const ANSWER_MS = 1000;
const LATE_MS = 500;

const SOFT = [
  '--eviction-hard=memory.available<20Mi',
  '--eviction-soft=memory.available<150Mi',
  '--eviction-soft-grace-period=memory.available=300ms',
  '--eviction-max-pod-grace-period=3',
];

/** Ends by saying which signal it was sent. */
const SAYS_SIGNAL = 'trap "exit 41" QUIT; trap "exit 42" TERM';

/** Stays. */
const STAYS = 'trap "" QUIT TERM';

/** @param host what `beforeAll` has started by the time that a test runs */
export function softStories(host: () => RuntimeHost): void {
  const evicted = async (
    traps: string,
    { stopped = false }: { readonly stopped?: boolean } = {},
  ) => {
    const { holds, leaks, watch, knows } = stage(host());
    const web = await holds('web', 20);
    const pod = await leaks('leak', { mib: 380, traps, image: QUIT_IMAGE });
    const daemon = await watch(SOFT);
    await knows(daemon, [web, pod]);
    if (stopped) {
      onTestFinished(() => end(host().pid(), 'SIGCONT'));
      end(host().pid(), 'SIGSTOP');
    }
    pod.begin();
    const [eviction] = await daemon.ended(1, LIMIT_MS);
    expect(pidsBelow(pod.cgroup)).toEqual([]);
    end(host().pid(), 'SIGCONT');
    expect(eviction).toMatchObject({ pod: pod.name, outcome: 'evicted', hard: false });
    await isGone(host(), pod);
    await isAlive(host(), web);
    const { firstSignalMs, killedMs, emptyMs } = eviction?.timing ?? {};
    const since = (atMs: number | null | undefined) =>
      typeof atMs === 'number' ? atMs - (firstSignalMs ?? Number.NaN) : undefined;
    return {
      said: daemon.said(),
      exitCode: await exitCodeOf(pod),
      killedMs: since(killedMs),
      emptyMs: since(emptyMs),
    };
  };
  const exitCodeOf = (pod: MadePod): Promise<number> =>
    untilAnswer('the runtime has an exit code', () => host().exitCode(pod), LIMIT_MS);

  it('has the runtime stop a pod for a soft threshold, with the signal that its image wants', async () => {
    const { exitCode, killedMs, said } = await evicted(SAYS_SIGNAL);
    expect([exitCode, killedMs]).toEqual([41, undefined]);
    expect(said.filter((line) => line.includes('TERM is sent'))).toEqual([]);
  });

  it('sends TERM itself where the runtime does not answer', async () => {
    const { exitCode, killedMs, emptyMs, said } = await evicted(SAYS_SIGNAL, { stopped: true });
    expect([exitCode, killedMs]).toEqual([42, undefined]);
    expect(emptyMs).toBeLessThan(ANSWER_MS + LATE_MS);
    expect(said).toContain('the runtime does not stop a pod: TERM is sent in its place');
  });

  it.each([
    ['a runtime that answers', false],
    ['one that does not', true],
  ])('sends KILL by its own clock at the end of the grace, with %s', async (_, stopped) => {
    const { exitCode, killedMs } = await evicted(STAYS, { stopped });
    expect(exitCode).toBe(137);
    // The runtime counts whole seconds from when it was asked: its own KILL may be first by a little.
    if (killedMs === undefined) expect(stopped).toBe(false);
    else {
      expect(killedMs).toBeGreaterThanOrEqual(GRACE_MS - 1);
      expect(killedMs).toBeLessThan(GRACE_MS + LATE_MS);
    }
  });
}

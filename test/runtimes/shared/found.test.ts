import { concat, defer, EMPTY, mergeMap, NEVER, of, throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { PodDirectory, PodListing, RuntimePod } from '../../../src/ports/pod-directory.ts';
import {
  type Candidate,
  type Choice,
  foundDirectory,
  LOOK_LIMIT_MS,
} from '../../../src/runtimes/shared/found.ts';
import { type Marbles, marbles } from '../../support/marbles.ts';
import { runtimePod } from '../../support/runtime-pods.ts';

const POD = runtimePod('a');
const listed = (...pods: readonly RuntimePod[]): PodListing => ({ kind: 'listed', pods, atMs: 0 });
const away = (reason: string): PodListing => ({ kind: 'away', reason, atMs: 0 });

/**
 * A socket that answers each look with the next of these, the last one for ever, and remembers what was asked of
 * it; `undefined` is one that is not there, `hung` one that does not answer.
 */
function socket(name: string, ...answers: readonly (PodListing | 'hung' | undefined)[]) {
  const log: string[] = [];
  let looks = 0;
  const next = () => {
    const answer = answers[Math.min(looks, answers.length - 1)];
    looks += 1;
    return answer;
  };
  let answer: PodListing | 'hung' | undefined;
  const directory: PodDirectory = {
    listings$: defer(() => {
      log.push('look');
      return answer === 'hung' || answer === undefined ? NEVER : concat(of(answer), NEVER);
    }),
    settle: ({ id }) => {
      log.push(`settle ${id}`);
      return EMPTY;
    },
    stop: ({ id }, graceMs) => {
      log.push(`stop ${id} ${graceMs}`);
      return EMPTY;
    },
    answers: () => {
      log.push('answers');
      return EMPTY;
    },
    close: () => log.push('close'),
  };
  const candidate: Candidate = {
    name,
    socketPath: `/run/${name}`,
    isThere: () => {
      answer = next();
      return answer !== undefined;
    },
    open: () => {
      log.push('open');
      return of(directory);
    },
  };
  return { candidate, log };
}

type Socket = ReturnType<typeof socket>;

function find({ scheduler }: Pick<Marbles, 'scheduler'>, ...sockets: readonly Socket[]) {
  const choices: Choice[] = [];
  const directory = foundDirectory({
    candidates: sockets.map(({ candidate }) => candidate),
    scheduler,
    onChoice: (choice) => choices.push(choice),
  });
  return { directory, choices };
}

/** What is emitted, with its time. */
function heard({ scheduler, flush }: Marbles, directory: PodDirectory, untilMs: number) {
  const said: unknown[] = [];
  const listening = directory.listings$.subscribe((listing) => {
    const what = listing.kind === 'away' ? listing.reason : listing.pods.map(({ id }) => id).join();
    said.push([scheduler.now(), what]);
  });
  scheduler.schedule(() => listening.unsubscribe(), untilMs);
  flush();
  return said;
}

describe('foundDirectory', () => {
  it('takes the first that has pods, says why, and closes the others', () => {
    marbles((helpers) => {
      const sockets = [
        socket('one', undefined),
        socket('two', listed()),
        socket('three', listed(POD)),
        socket('four', listed(POD, runtimePod('b'))),
      ] as const;
      const { directory, choices } = find(helpers, ...sockets);
      expect(heard(helpers, directory, 20_000)).toEqual([[0, 'a']]);
      expect(choices).toEqual([
        {
          name: 'three',
          socketPath: '/run/three',
          reason:
            'has 1 pods; one at /run/one is not there; two at /run/two has 0 pods; four at /run/four has 2 pods',
        },
      ]);
      expect(sockets.map(({ log }) => log.join())).toEqual([
        '',
        'open,look,close',
        'open,look,look',
        'open,look,close',
      ]);
    });
  });

  it('goes on looking each second while somebody answers who has none', () => {
    marbles((helpers) => {
      const one = socket('one', listed(), listed(), listed(), listed(POD));
      const { directory, choices } = find(helpers, one, socket('two', away('no')));
      expect(heard(helpers, directory, 20_000)).toEqual([
        [0, ''],
        [1000, ''],
        [2000, ''],
        [3000, 'a'],
      ]);
      expect(choices).toHaveLength(1);
    });
  });

  it('is away while nobody answers, and looks again ever later', () => {
    marbles((helpers) => {
      const one = socket('one', undefined);
      const two = socket('two', away('refused'));
      const { directory } = find(helpers, one, two);
      const said = heard(helpers, directory, 36_000) as [number, string][];
      expect(said.map(([atMs]) => atMs)).toEqual([0, 1000, 3000, 7000, 15_000, 25_000, 35_000]);
      expect(new Set(said.map(([, what]) => what))).toEqual(
        new Set(['no runtime answers: one at /run/one is not there; two at /run/two refused']),
      );
    });
  });

  it('finds one that comes later', () => {
    marbles((helpers) => {
      const one = socket('one', undefined, undefined, listed(POD));
      const { directory, choices } = find(helpers, one);
      const said = heard(helpers, directory, 20_000) as [number, string][];
      expect(said.at(-1)).toEqual([3000, 'a']);
      expect(choices[0]?.reason).toBe('has 1 pods');
    });
  });

  it('waits so long for one that hangs, and takes another', () => {
    marbles((helpers) => {
      const { directory, choices } = find(
        helpers,
        socket('one', 'hung'),
        socket('two', listed(POD)),
      );
      expect(heard(helpers, directory, 20_000)).toEqual([[LOOK_LIMIT_MS, 'a']]);
      expect(choices[0]).toMatchObject({ name: 'two' });
      expect(choices[0]?.reason).toMatch(/one at \/run\/one .*imeout/);
    });
  });

  it('takes one that cannot be opened for one that does not answer', () => {
    marbles((helpers) => {
      const { candidate } = socket('one', listed(POD));
      const open = () => throwError(() => new Error('no such module'));
      const { directory } = find(helpers, { candidate: { ...candidate, open }, log: [] });
      expect(heard(helpers, directory, 500)).toEqual([
        [0, 'no runtime answers: one at /run/one no such module'],
      ]);
    });
  });

  it('tells the one that was taken of ends, and nobody before', () => {
    marbles((helpers) => {
      const one = socket('one', listed(POD));
      const { directory } = find(helpers, one);
      const errors: string[] = [];
      directory.settle(POD).subscribe({ error: (error: Error) => errors.push(error.message) });
      expect(errors).toEqual(['no runtime was found yet']);
      heard(helpers, directory, 10);
      directory.settle(POD).subscribe();
      directory.stop(POD, 5).subscribe();
      directory.answers(POD).subscribe();
      directory.close();
      expect(one.log.slice(-4)).toEqual(['settle a', 'stop a 5', 'answers', 'close']);
    });
  });

  it('closes what it has opened, and what is opened later', () => {
    marbles((helpers) => {
      const one = socket('one', listed());
      const late = socket('late', listed());
      const { cold } = helpers;
      const opening = { a: undefined };
      const slow: Candidate = {
        ...late.candidate,
        open: () => cold('9ms (a|)', opening).pipe(mergeMap(() => late.candidate.open())),
      };
      const { directory } = find(helpers, one, { candidate: slow, log: late.log });
      const listening = directory.listings$.subscribe();
      helpers.scheduler.schedule(() => directory.close(), 5);
      helpers.scheduler.schedule(() => listening.unsubscribe(), 50);
      helpers.flush();
      expect(one.log).toEqual(['open', 'look', 'close']);
      expect(late.log.slice(0, 2)).toEqual(['open', 'close']);
    });
  });
});

import { map, merge, of, type SchedulerAction, type SchedulerLike, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { FilesystemNotice, FilesystemReading } from '../../src/ports/filesystem.ts';
import { type FilesystemInputs, filesystems } from '../../src/sources/filesystem.ts';
import type {
  FilesystemFigures,
  HelperAnswer,
  StartHelper,
} from '../../src/sources/filesystem-helper.ts';
import { marbles } from '../support/marbles.ts';

function figures(overrides: Partial<FilesystemFigures> = {}): HelperAnswer {
  return {
    kind: 'figures',
    figures: {
      device: '8:1',
      blockBytes: 4096n,
      blocks: 1000n,
      blocksFree: 300n,
      blocksAvailable: 250n,
      inodes: 100n,
      inodesFree: 40n,
      mountLine: '27 1 8:1 / /mnt rw - ext4 /dev/sda1 rw',
      ...overrides,
    },
  };
}

/** What a path's probe does at a time. */
type Behaviour =
  /** Answers after so many ms. */
  | number
  /** Never answers; a kill ends the helper at once. */
  | 'hangs'
  /** Never answers; the helper ends only at this instant, ms. */
  | { readonly stuckUntilMs: number }
  /** The helper ends in the middle, after 1 ms. */
  | 'crashes'
  | { readonly answer: HelperAnswer };

interface Play {
  readonly paths?: readonly string[];
  /** Other paths, from an instant on. */
  readonly changes?: readonly (readonly [number, readonly string[]])[];
  readonly behaves?: (path: string, nowMs: number) => Behaviour;
  /** Why a helper cannot be started, at a time. */
  readonly refuses?: (nowMs: number) => string | undefined;
  readonly untilMs: number;
  readonly pollAfterMs?: FilesystemInputs['pollAfterMs'];
  readonly onNotice?: (notice: FilesystemNotice, unsubscribe: () => void) => void;
  /** Has each helper say this without being asked, 5 ms after its start. */
  readonly unasked?: HelperAnswer;
}

/** Everything that happens, in virtual time, and the most helpers that lived at once. */
function play(options: Play) {
  const log: string[] = [];
  let most = 0;
  let living = 0;
  let timersLeft = 0;
  marbles(({ scheduler, flush }) => {
    const say = (text: string) => log.push(`${scheduler.now()} ${text}`);
    // What the source still has on the scheduler: at the end it may be nothing.
    const open = new Set<object>();
    const counted: SchedulerLike = {
      now: () => scheduler.now(),
      schedule: <T>(
        work: (this: SchedulerAction<T>, state: T) => void,
        delay?: number,
        state?: T,
      ) => {
        const key = {};
        open.add(key);
        const action = scheduler.schedule<T>(
          function (given) {
            open.delete(key);
            work.call(this, given as T);
          },
          delay,
          state,
        );
        action.add(() => open.delete(key));
        return action;
      },
    };
    let started = 0;
    const startHelper: StartHelper = (tell) => {
      started += 1;
      const name = `h${started}`;
      const refusal = options.refuses?.(scheduler.now());
      let behaviour: Behaviour | undefined;
      let isOver = false;
      const over = (reason: string) => {
        if (isOver) return;
        isOver = true;
        if (refusal === undefined) living -= 1;
        tell({ kind: 'ended', reason });
      };
      if (refusal !== undefined) {
        scheduler.schedule(() => over(refusal));
        return { pid: Number.NaN, ask: () => undefined, end: () => undefined };
      }
      say(`start ${name}`);
      living += 1;
      most = Math.max(most, living);
      let ended = false;
      const { unasked } = options;
      if (unasked !== undefined) scheduler.schedule(() => tell(unasked), 5);
      return {
        pid: 1000 + started,
        ask: (path) => {
          say(`${name} ${path}`);
          behaviour = options.behaves?.(path, scheduler.now()) ?? 1;
          if (behaviour === 'crashes') scheduler.schedule(() => over('crashed'), 1);
          if (typeof behaviour === 'number') {
            scheduler.schedule(() => ended || tell(figures()), behaviour);
          } else if (typeof behaviour === 'object' && 'answer' in behaviour) {
            const { answer } = behaviour;
            scheduler.schedule(() => ended || tell(answer), 1);
          }
        },
        end: () => {
          if (ended) return;
          ended = true;
          say(`end ${name}`);
          const untilMs =
            typeof behaviour === 'object' && 'stuckUntilMs' in behaviour
              ? behaviour.stuckUntilMs
              : 0;
          scheduler.schedule(() => over('killed'), Math.max(2, untilMs - scheduler.now()));
        },
      };
    };
    const subscription = filesystems({
      paths: merge(
        of(options.paths ?? ['/a']),
        ...(options.changes ?? []).map(([atMs, paths]) =>
          timer(atMs, scheduler).pipe(map(() => paths)),
        ),
      ),
      scheduler: counted,
      pollAfterMs: options.pollAfterMs ?? (() => 5000),
      startHelper,
    }).subscribe((notice) => {
      if (notice.kind === 'read') say(`read ${notice.reading.path}`);
      else say(`${notice.stale ? 'stale' : 'failed'} ${notice.path}: ${notice.error}`);
      options.onNotice?.(notice, () => subscription.unsubscribe());
    });
    scheduler.schedule(() => {
      subscription.unsubscribe();
      timersLeft = open.size;
    }, options.untilMs);
    flush();
  });
  expect(timersLeft).toBe(0);
  return { log, most };
}

/** The readings of one probe that answers so. */
function readingOf(answer: HelperAnswer): FilesystemReading {
  const seen: FilesystemReading[] = [];
  play({
    untilMs: 100,
    behaves: () => ({ answer }),
    onNotice: (notice) => {
      if (notice.kind === 'read') seen.push(notice.reading);
    },
  });
  const [reading] = seen;
  if (reading === undefined) throw new Error('nothing was read');
  return reading;
}

describe('filesystems', () => {
  it('probes at once, then after each answer, with one helper', () => {
    expect(play({ paths: ['/a', '/b', '/a'], untilMs: 6000 }).log).toEqual([
      '0 start h1',
      '0 h1 /a',
      '1 read /a',
      '1 h1 /b',
      '2 read /b',
      '5001 h1 /a',
      '5002 read /a',
      '5002 h1 /b',
      '5003 read /b',
      '6000 end h1',
    ]);
  });

  it('nothing to watch: no helper, no timer, no end', () => {
    expect(play({ paths: [], untilMs: 10_000 }).log).toEqual([]);
  });

  it('asks for the next poll with the readings before and now', () => {
    const asked: string[] = [];
    play({
      untilMs: 2500,
      behaves: (_, nowMs) => (nowMs < 1500 ? 1 : 'crashes'),
      pollAfterMs: (path, before, now) => {
        asked.push(`${path} ${before?.atMs} ${now?.atMs}`);
        return 1000;
      },
    });
    expect(asked).toEqual(['/a undefined 1', '/a 1 1002', '/a 1002 undefined']);
  });

  it('a poll of 0 ms or less is 10 ms', () => {
    const { log } = play({ untilMs: 50, pollAfterMs: () => -1 });
    expect(log.filter((line) => line.includes('read'))).toEqual([
      '1 read /a',
      '12 read /a',
      '23 read /a',
      '34 read /a',
      '45 read /a',
    ]);
  });

  it('other paths: what stays keeps its pace, what is new is probed at once, what went is not', () => {
    const { log } = play({
      paths: ['/a', '/b'],
      changes: [[1000, ['/b', '/c']]],
      untilMs: 6000,
    });
    expect(log).toEqual([
      '0 start h1',
      '0 h1 /a',
      '1 read /a',
      '1 h1 /b',
      '2 read /b',
      '1000 h1 /c',
      '1001 read /c',
      '5002 h1 /b',
      '5003 read /b',
      '6000 end h1',
    ]);
  });

  it('a path that hangs keeps its one helper, however often the paths change', () => {
    const { log, most } = play({
      paths: ['/hung'],
      behaves: (path) => (path === '/hung' ? { stuckUntilMs: 60_000 } : 1),
      changes: [...Array(20).keys()].map(
        (index) => [3000 + 100 * index, ['/hung', `/other${index}`]] as const,
      ),
      untilMs: 30_000,
    });
    expect(log.filter((line) => line.includes(' /hung'))).toEqual([
      '0 h1 /hung',
      '1000 stale /hung: no answer within 1000 ms',
      expect.stringMatching(/^2000 stale .hung: no answer, and the helper 1001 cannot be killed/),
    ]);
    expect(most).toBe(2);
  });

  it('a path that was left and comes back is the same one, and is measured once its helper has ended', () => {
    const { log } = play({
      paths: ['/hung'],
      behaves: (_, nowMs) => (nowMs < 10_000 ? { stuckUntilMs: 10_000 } : 1),
      changes: [
        [3000, ['/other']],
        [5000, ['/hung']],
      ],
      untilMs: 12_000,
    });
    expect(
      log.filter((line) => line.includes('h2 /hung') || line.includes('read /hung'))[0],
    ).toMatch(/^1\d{4} /);
  });

  it('never more than 16 helpers, whatever hangs that is watched no more', () => {
    const { most } = play({
      paths: ['/hung'],
      behaves: () => ({ stuckUntilMs: 1_000_000 }),
      changes: [...Array(40).keys()].map(
        (index) => [3000 * (index + 1), [`/hung${index}`]] as const,
      ),
      untilMs: 200_000,
    });
    expect(most).toBe(16);
  });

  it('unsubscribing at a notice stops everything', () => {
    const { log } = play({
      paths: ['/a', '/b'],
      untilMs: 10_000,
      onNotice: (_, unsubscribe) => unsubscribe(),
    });
    expect(log).toEqual(['0 start h1', '0 h1 /a', '1 read /a', '1 end h1']);
  });

  it('a path that cannot be read fails, with its name, and is polled on', () => {
    const refused: HelperAnswer = { kind: 'refused', error: 'ENOENT: no such file, open' };
    const { log } = play({
      untilMs: 1500,
      behaves: () => ({ answer: refused }),
      pollAfterMs: () => 1000,
    });
    expect(log).toEqual([
      '0 start h1',
      '0 h1 /a',
      "1 failed /a: ENOENT: no such file, open '/a'",
      '1001 h1 /a',
      "1002 failed /a: ENOENT: no such file, open '/a'",
      '1500 end h1',
    ]);
  });

  it.each([
    ['a relative path', 'a/b', 'EINVAL: not an absolute path, "a/b"'],
    ['an empty one', '', 'EINVAL: not an absolute path, ""'],
    ['one with NUL', '/a\0b', 'EINVAL: not an absolute path, "/a\\u0000b"'],
    ['4,095 bytes', `/${'ß'.repeat(2047)}`, undefined],
    ['4,096 bytes', `/${'ß'.repeat(2047)}x`, 'ENAMETOOLONG: a path of more than 4095 bytes'],
  ])('%s: refused before a helper is asked, or not', (_, path, error) => {
    const { log } = play({ paths: [path], untilMs: 100 });
    if (error === undefined) expect(log).toContain(`1 read ${path}`);
    else expect(log).toEqual([`0 failed ${path}: ${error}`]);
  });
});

describe('a filesystem that hangs', () => {
  it('is stale at the deadline; another helper serves the rest', () => {
    const behaves = (path: string) => (path === '/hung' ? 'hangs' : 1);
    expect(play({ paths: ['/hung', '/b'], behaves, untilMs: 1500 }).log).toEqual([
      '0 start h1',
      '0 h1 /hung',
      '1000 end h1',
      '1000 stale /hung: no answer within 1000 ms',
      '1000 start h2',
      '1000 h2 /b',
      '1001 read /b',
      '1500 end h2',
    ]);
  });

  it('an answer right before the deadline counts', () => {
    const { log } = play({ behaves: () => 999, untilMs: 1500 });
    expect(log).toEqual(['0 start h1', '0 h1 /a', '999 read /a', '1500 end h1']);
  });

  it('is probed again with a growing distance, at most 10 s, and at once regularly after an answer', () => {
    const { log } = play({
      behaves: (_, nowMs) => (nowMs > 60_000 ? 1 : 'hangs'),
      pollAfterMs: () => 500,
      untilMs: 80_000,
    });
    const asked = log.filter((line) => line.endsWith(' /a') && line.includes(' h'));
    const times = asked.map((line) => Number(line.split(' ')[0]));
    expect(times.slice(0, 9)).toEqual([
      0, 2000, 5000, 10_000, 19_000, 30_000, 41_000, 52_000, 63_000,
    ]);
    expect(times[9]).toBe(63_501);
  });

  it('comes after those that answer, when all are due at once', () => {
    const { log } = play({
      paths: ['/hung', '/b', '/c'],
      behaves: (path) => (path === '/hung' ? 'hangs' : 1),
      pollAfterMs: (path) => (path === '/hung' ? 4000 : 3999),
      untilMs: 5500,
    });
    const asked = log.filter((line) => /^500\d h\d/.test(line)).map((line) => line.split(' ')[2]);
    expect(asked).toEqual(['/b', '/c', '/hung']);
  });

  it('several that hang delay the others by one deadline, not one each', () => {
    const { log, most } = play({
      paths: ['/hung1', '/hung2', '/hung3', '/ok'],
      behaves: (path) => (path === '/ok' ? 1 : { stuckUntilMs: 1e6 }),
      untilMs: 3000,
    });
    expect(log).toContain('1001 read /ok');
    expect(most).toBe(4);
  });

  it('a path that came to wait meanwhile has its turn at the deadline of what hangs', () => {
    const { log } = play({
      paths: ['/hung', '/ok'],
      behaves: (path, nowMs) => (path === '/ok' || nowMs < 100 ? 1 : { stuckUntilMs: 1e6 }),
      pollAfterMs: (path) => (path === '/ok' ? 1398 : 999),
      untilMs: 2500,
    });
    expect(log.slice(5)).toEqual([
      '1000 h1 /hung',
      '2000 end h1',
      '2000 stale /hung: no answer within 1000 ms',
      '2000 start h2',
      '2000 h2 /ok',
      '2001 read /ok',
      '2500 end h2',
    ]);
  });

  it('a path that came to wait meanwhile waits a deadline at most', () => {
    const { log } = play({
      paths: ['/hung1', '/hung2', '/ok'],
      behaves: (path, nowMs) => (path === '/ok' || nowMs < 100 ? 1 : { stuckUntilMs: 1e6 }),
      // Due at 1000, 1001 and 1600: /ok is behind both.
      pollAfterMs: (path) => (path === '/ok' ? 1597 : 999),
      untilMs: 3000,
    });
    expect(log).toContain('2000 h2 /hung2');
    expect(log).toContain('2600 h3 /ok');
  });
});

describe('a helper that cannot be killed', () => {
  it('keeps its path until it ends, which is then probed at once; others go on', () => {
    const { log, most } = play({
      paths: ['/stuck', '/b'],
      behaves: (path, nowMs) => (path === '/b' || nowMs > 20_000 ? 1 : { stuckUntilMs: 20_500 }),
      untilMs: 24_000,
    });
    expect(log).toEqual([
      '0 start h1',
      '0 h1 /stuck',
      '1000 end h1',
      '1000 stale /stuck: no answer within 1000 ms',
      '1000 start h2',
      '1000 h2 /b',
      '1001 read /b',
      '2000 stale /stuck: no answer, and the helper 1001 cannot be killed: left out until it ends',
      '6001 h2 /b',
      '6002 read /b',
      '11002 h2 /b',
      '11003 read /b',
      '16003 h2 /b',
      '16004 read /b',
      '20500 h2 /stuck',
      '20501 read /stuck',
      '21004 h2 /b',
      '21005 read /b',
      '24000 end h2',
    ]);
    expect(most).toBe(2);
  });

  it('all paths stuck: as many helpers, and none is started again', () => {
    const { log, most } = play({
      paths: ['/a', '/b', '/c'],
      behaves: () => ({ stuckUntilMs: 1e6 }),
      untilMs: 100_000,
    });
    expect(most).toBe(3);
    expect(log.filter((line) => line.includes('start'))).toHaveLength(3);
  });
});

describe('a helper that fails', () => {
  it('dies at a path: that fails, the next helper serves the next', () => {
    const behaves = (path: string) => (path === '/bad' ? 'crashes' : 1);
    expect(play({ paths: ['/bad', '/b'], behaves, untilMs: 500 }).log).toEqual([
      '0 start h1',
      '0 h1 /bad',
      '1 failed /bad: crashed',
      '1 start h2',
      '1 h2 /b',
      '2 read /b',
      '500 end h2',
    ]);
  });

  it('cannot be started: failed, and tried again', () => {
    const { log } = play({
      refuses: (nowMs) => (nowMs < 1500 ? 'spawn evictd-fs EAGAIN' : undefined),
      pollAfterMs: () => 700,
      untilMs: 3500,
    });
    expect(log).toEqual([
      '0 failed /a: spawn evictd-fs EAGAIN',
      '1000 failed /a: spawn evictd-fs EAGAIN',
      '3000 start h3',
      '3000 h3 /a',
      '3001 read /a',
      '3500 end h3',
    ]);
  });

  it('says what nobody asked for: it is ended, and the next is another', () => {
    const { log } = play({ untilMs: 5500, unasked: figures() });
    expect(log).toEqual([
      '0 start h1',
      '0 h1 /a',
      '1 read /a',
      '5 end h1',
      '5001 start h2',
      '5001 h2 /a',
      '5002 read /a',
      '5006 end h2',
    ]);
  });
});

describe('a reading', () => {
  it('has sizes in bytes, the device, and the mount', () => {
    expect(readingOf(figures())).toStrictEqual({
      path: '/a',
      atMs: 1,
      capacityBytes: 4_096_000,
      availableBytes: 1_024_000,
      usedBytes: 2_867_200,
      inodes: 100,
      inodesFree: 40,
      device: '8:1',
      mountDevice: '8:1',
      source: '/dev/sda1',
      type: 'ext4',
      mountPoint: '/mnt',
    });
  });

  it.each([
    ['no inode counts', { inodes: 0n, inodesFree: 0n }, { inodes: 0, inodesFree: 0 }],
    ['fewer inodes than are free', { inodes: 5n, inodesFree: 6n }, { inodes: 5, inodesFree: 5 }],
    ['more available than there is', { blocksAvailable: 1001n }, { availableBytes: 4_096_000 }],
    ['more free than there is', { blocksFree: 1001n }, { usedBytes: 0 }],
    ['less than nothing free', { blocksFree: 2n ** 64n - 5n }, { usedBytes: 4_096_000 }],
    ['less than nothing available', { blocksAvailable: 2n ** 64n - 5n }, { availableBytes: 0 }],
    [
      'more than a number holds',
      { blocks: 2n ** 60n, blocksAvailable: 2n ** 59n },
      { capacityBytes: Number.MAX_SAFE_INTEGER, availableBytes: Number.MAX_SAFE_INTEGER },
    ],
    [
      'no mount that is known',
      { mountLine: '' },
      { device: '8:1', mountDevice: '', source: '', type: '', mountPoint: '' },
    ],
    [
      'a btrfs subvolume',
      { device: '0:44', mountLine: '9 1 0:43 /sub /b rw - btrfs /dev/sdb rw' },
      { device: '0:44', mountDevice: '0:43', source: '/dev/sdb', type: 'btrfs' },
    ],
  ] as const)('%s', (_, given, expected) => {
    expect(readingOf(figures(given))).toMatchObject(expected);
  });
});

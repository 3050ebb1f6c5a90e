import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import {
  asapScheduler,
  EMPTY,
  lastValueFrom,
  NEVER,
  type Observable,
  of,
  type SchedulerLike,
  Subject,
  tap,
} from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { NativeAddon } from '../../src/native/types.ts';
import type { OomNotice } from '../../src/ports/oom-kills.ts';
import type { OomKillCount } from '../../src/ports/runtime.ts';
import { type OomWakeup, oomKills, oomWakeups } from '../../src/sources/oom-kills.ts';
import { marbles } from '../support/marbles.ts';

let directory: string;
let vmstat: string;

beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'evictd-oom-'));
  vmstat = path.join(directory, 'vmstat');
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** What the machine counts, and each cgroup, by `pod` or `pod/below`. */
interface Counts {
  readonly total: number;
  readonly cgroups?: Readonly<Record<string, number>>;
}

function countsOf({ cgroups = {} }: Counts): readonly (readonly OomKillCount[])[] {
  return Object.entries(cgroups).map(([name, kills]) => {
    const podName = name.split('/')[0] as string;
    return [{ podName, cgroup: `/node/${name}`, cgroupId: name, kills }];
  });
}

/** Looks at each of these, two seconds apart; what is told, without the times. */
function play(start: Counts, ...later: readonly Counts[]): readonly unknown[] {
  const told: unknown[] = [];
  marbles(({ cold, scheduler, flush }) => {
    let now = start;
    const set = (counts: Counts): void => {
      now = counts;
      writeFileSync(vmstat, `pgfault 5\noom_kill ${counts.total}\nthp 1\n`);
    };
    set(start);
    const frames = later.map((_, n) => `2s ${n}`).join(' ');
    const values = Object.fromEntries(later.map((counts, n) => [String(n), counts]));
    oomKills({
      checks$: cold(`${frames} 2s |`, values).pipe(tap(set)),
      wakeups$: EMPTY,
      counts: () => countsOf(now),
      scheduler,
      vmstat,
    }).subscribe((notice) => told.push(shorten(notice)));
    flush();
  });
  return told;
}

function shorten(notice: OomNotice): string {
  switch (notice.kind) {
    case 'lostRace':
      return `${notice.race.podName} ${notice.race.cgroup} ${notice.race.kills}`;
    case 'elsewhere':
      return `elsewhere ${notice.kills}`;
    case 'degraded':
      return `degraded: ${notice.reason}`;
  }
}

describe('oomKills', () => {
  it.each<[string, Counts, readonly Counts[], readonly string[]]>([
    ['nothing', { total: 3, cgroups: { db: 2 } }, [{ total: 3, cgroups: { db: 2 } }], []],
    [
      'a kill in a pod, once',
      { total: 3, cgroups: { db: 2 } },
      [
        { total: 4, cgroups: { db: 3 } },
        { total: 4, cgroups: { db: 3 } },
      ],
      ['db /node/db 1'],
    ],
    [
      'a kill in a pod that is new',
      { total: 3 },
      [{ total: 5, cgroups: { new: 2 } }],
      ['new /node/new 2'],
    ],
    [
      'kills in several cgroups of a pod, with the one that had the most',
      { total: 0 },
      [{ total: 6, cgroups: { 'db/a': 1, 'db/b': 3, web: 2 } }],
      ['db /node/db/b 4', 'web /node/web 2'],
    ],
    [
      'kills in no pod, and such whose cgroup is gone',
      { total: 3, cgroups: { db: 2 } },
      [{ total: 6, cgroups: { web: 1 } }],
      ['web /node/web 1', 'elsewhere 2'],
    ],
    [
      'a cgroup made again, which counts from 0',
      { total: 3, cgroups: { 'db@1': 2 } },
      [{ total: 4, cgroups: { 'db@2': 1 } }],
      ['db@2 /node/db@2 1'],
    ],
    [
      'a kill that the cgroup told before the machine did, once',
      { total: 0 },
      [
        { total: 1, cgroups: { db: 2 } },
        { total: 2, cgroups: { db: 2 } },
        { total: 3, cgroups: { db: 3 } },
      ],
      ['db /node/db 2', 'db /node/db 1'],
    ],
  ])('tells %s', (_, start, later, told) => {
    expect(play(start, ...later)).toStrictEqual(told);
  });

  it('reads the count once a second, and the cgroups only when it grew', () => {
    let passes = 0;
    marbles(({ cold, scheduler, expectObservable }) => {
      writeFileSync(vmstat, 'oom_kill 1\n');
      const kill = () => writeFileSync(vmstat, 'oom_kill 2\n');
      const told$ = oomKills({
        // At 100 ms the first look, a kill at 300 ms, and the next is due at 1,100 ms.
        checks$: cold('100ms a 99ms a 99ms k 798ms a a 9s |').pipe(
          tap((value) => value === 'k' && kill()),
        ),
        wakeups$: EMPTY,
        counts: () => {
          passes += 1;
          return [];
        },
        scheduler,
        vmstat,
      });
      expectObservable(told$).toBe('1120ms e 8980ms |', { e: { kind: 'elsewhere', kills: 1 } });
    });
    expect(passes).toBe(2);
  });

  it('looks a little after the kernel says that the node is out of memory', () => {
    marbles(({ cold, scheduler, expectObservable }) => {
      writeFileSync(vmstat, 'oom_kill 1\n');
      const wakeups$ = cold<OomWakeup>('500ms a', { a: { refused: undefined } }).pipe(
        tap(() => writeFileSync(vmstat, 'oom_kill 2\n')),
      );
      const told$ = oomKills({ checks$: NEVER, wakeups$, counts: () => [], scheduler, vmstat });
      expectObservable(told$, '5s !').toBe('620ms e', { e: { kind: 'elsewhere', kills: 1 } });
    });
  });

  it('reads many pods in slices', () => {
    writeFileSync(vmstat, 'oom_kill 0\n');
    const slices: number[] = [];
    let read = 0;
    function* counts(): Generator<readonly OomKillCount[]> {
      for (; read < 5; read += 1) yield [];
    }
    // Each step takes a millisecond.
    const slow: SchedulerLike = {
      now: () => read,
      schedule: (...scheduled: Parameters<SchedulerLike['schedule']>) => {
        slices.push(read);
        return asapScheduler.schedule(...scheduled);
      },
    };
    const inputs = { checks$: EMPTY, wakeups$: EMPTY, counts, scheduler: slow, vmstat };
    return lastValueFrom(oomKills(inputs), { defaultValue: undefined }).then(() => {
      expect(slices).toStrictEqual([0, 2, 4]);
    });
  });

  it.each<[string, () => Observable<OomWakeup>, RegExp]>([
    ['there is no file', () => EMPTY, /ENOENT/],
    [
      'the kernel does not count',
      () => {
        writeFileSync(vmstat, 'pgfault 5\n');
        return EMPTY;
      },
      /does not count/,
    ],
    [
      'the kernel refuses to wake it up',
      () => {
        writeFileSync(vmstat, 'oom_kill 5\n');
        return of({ refused: 'EACCES' });
      },
      /EACCES/,
    ],
  ])('says why it cannot tell: %s', (_, prepare, why) => {
    const told: OomNotice[] = [];
    const wakeups$ = prepare();
    marbles(({ scheduler, flush }) => {
      oomKills({ checks$: EMPTY, wakeups$, counts: () => [], scheduler, vmstat }).subscribe(
        (notice) => told.push(notice),
      );
      flush();
    });
    expect(told).toStrictEqual([{ kind: 'degraded', reason: expect.stringMatching(why) }]);
  });
});

it('is no longer degraded once the kernel wakes it up again', () => {
  writeFileSync(vmstat, 'oom_kill 5\n');
  marbles(({ cold, scheduler, expectObservable }) => {
    const values = { a: { refused: undefined }, r: { refused: 'ENODEV' } };
    const wakeups$ = cold<OomWakeup>('aarra|', values);
    const told$ = oomKills({ checks$: EMPTY, wakeups$, counts: () => [], scheduler, vmstat });
    expectObservable(told$, '^ 50ms !').toBe('--r-a', {
      r: { kind: 'degraded', reason: 'ENODEV' },
      a: { kind: 'degraded', reason: undefined },
    });
  });
});

describe('oomWakeups', () => {
  function play(armed: () => Promise<void>) {
    const log: string[] = [];
    let fire = (): void => undefined;
    const watchMemcg: NativeAddon['watchMemcg'] = (where, event, listener) => {
      log.push(`open ${where} ${event.kind}`);
      fire = () => listener(1n);
      return { active: true, armed: armed(), close: () => log.push('close') };
    };
    const cgroupId$ = new Subject<string>();
    const running = oomWakeups({ watchMemcg }, '/node', cgroupId$).subscribe(({ refused }) =>
      log.push(refused ?? 'wakeup'),
    );
    return { log, cgroupId$, fire: () => fire(), end: () => running.unsubscribe() };
  }

  it('watches the node, and anew once it is another cgroup', () => {
    const { log, cgroupId$, fire, end } = play(() => Promise.resolve());
    cgroupId$.next('1');
    cgroupId$.next('1');
    fire();
    cgroupId$.next('2');
    end();
    const watched = ['open /node oom', 'wakeup', 'close', 'open /node oom', 'close'];
    expect(log).toStrictEqual(watched);
  });

  it('says that it is watched from now on', async () => {
    const { log, cgroupId$ } = play(() => Promise.resolve());
    cgroupId$.next('1');
    await new Promise((resolve) => setImmediate(resolve));
    expect(log).toStrictEqual(['open /node oom', 'wakeup']);
  });

  it('says what it is refused, now or later', async () => {
    const later = play(() => Promise.reject(new Error('ENODEV')));
    later.cgroupId$.next('1');
    await new Promise((resolve) => setImmediate(resolve));
    expect(later.log).toStrictEqual(['open /node oom', 'ENODEV']);
    const now = play(() => {
      throw new Error('ENOENT');
    });
    now.cgroupId$.next('1');
    expect(now.log).toStrictEqual(['open /node oom', 'ENOENT']);
  });
});

import { Subject } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { Threshold } from '../../src/core/threshold.ts';
import type { MemcgEvent, NativeAddon } from '../../src/native/types.ts';
import type { MemoryReading } from '../../src/ports/readings.ts';
import { memcgThresholds } from '../../src/sources/memcg-threshold.ts';
import { MI, reading, softThreshold, threshold, value } from '../support/builders.ts';

/** `usage 480`, in Mi, or `pressure low`. */
function nameOf(event: MemcgEvent): string {
  if (event.kind === 'usage') return `usage ${Number(event.bytes) / MI}`;
  return event.kind === 'pressure' ? `pressure ${event.level}` : event.kind;
}

const inactive = (mi: number) => reading({ deductedBytes: mi * MI });
const AT_32 = threshold({ value: value('32Mi') });

/** What the kernel takes, in a later turn: milliseconds in truth. */
const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

interface FakeOptions {
  /** Which events are refused, and whether at the call or, as `armed`, later. */
  readonly refusals?: Map<string, { readonly error: string; readonly at: 'call' | 'armed' }>;
}

/** An addon that only writes down what is asked of it. */
function fakeAddon(log: string[], { refusals = new Map() }: FakeOptions) {
  const open = new Map<number, { readonly name: string; readonly listener: () => void }>();
  let opened = 0;
  const watchMemcg: NativeAddon['watchMemcg'] = (directory, event, listener) => {
    expect(directory).toBe('/node');
    const name = nameOf(event);
    const refusal = refusals.get(name) ?? refusals.get('all');
    if (refusal?.at === 'call') throw new Error(refusal.error);
    opened += 1;
    const key = opened;
    log.push(`open ${name}`);
    open.set(key, { name, listener: () => listener(1n) });
    return {
      get active() {
        return open.has(key);
      },
      armed: nextTurn().then(() => {
        if (refusal !== undefined) throw new Error(refusal.error);
      }),
      close: () => {
        if (open.delete(key)) log.push(`close ${name}`);
      },
    };
  };
  return { watchMemcg, open };
}

/** The source on a fake addon. */
function play(thresholds: readonly Threshold[] = [AT_32], options: FakeOptions = {}) {
  const log: string[] = [];
  const native = fakeAddon(log, options);
  const readings$ = new Subject<MemoryReading>();
  let onWakeup = (): void => undefined;
  const subscription = memcgThresholds({
    native,
    directory: '/node',
    thresholds,
    readings$,
  }).subscribe({
    next: (notice) => {
      if (notice.kind !== 'path') {
        log.push(notice.kind);
        onWakeup();
        return;
      }
      const { path } = notice;
      const degraded = path.degraded === undefined ? '' : `, ${path.degraded}`;
      log.push(`path ${path.threshold} ${path.arming?.kind ?? 'none'}${degraded}`);
    },
    error: (error: unknown) => log.push(`error ${error}`),
    complete: () => log.push('complete'),
  });
  const settled = async (): Promise<void> => {
    // Each of up to six levels of two thresholds takes a turn.
    for (let turn = 0; turn < 30; turn += 1) await nextTurn();
  };
  return {
    readings$,
    subscription,
    log,
    settled,
    /** Gives a reading, and what is done because of it. */
    read: async (one: MemoryReading): Promise<readonly string[]> => {
      log.length = 0;
      readings$.next(one);
      await settled();
      return [...log];
    },
    isOpen: () => [...native.open.values()].map(({ name }) => name),
    fire: (name: string): void => {
      for (const watch of native.open.values()) if (watch.name === name) watch.listener();
    },
    /** As the daemon does: each wake-up is a reading, in the same turn. */
    readAtWakeups: (one: () => MemoryReading): void => {
      onWakeup = () => readings$.next(one());
    },
  };
}

/** The approach comes last, though it lies lowest: what decides is armed first. */
const LADDER = [480, 481, 482, 484, 488, 448].map((mi) => `usage ${mi}`);
const opens = (names: readonly string[]) => names.map((name) => `open ${name}`);
const closes = (names: readonly string[]) => names.map((name) => `close ${name}`);

describe('memcgThresholds', () => {
  it('registers the ladder with the first reading, says so, and wakes up', async () => {
    const { read, isOpen } = play();
    expect(isOpen()).toStrictEqual([]);
    expect(await read(reading())).toStrictEqual([
      ...opens(LADDER),
      'path hard:memory.available armed',
      'wakeup',
    ]);
    expect(isOpen()).toStrictEqual(LADDER);
  });

  it('registers one level after the other, and is armed when the kernel has taken all', async () => {
    const { readings$, log, isOpen, settled } = play();
    readings$.next(reading());
    expect(isOpen()).toStrictEqual(LADDER.slice(0, 1));
    await nextTurn();
    expect(isOpen()).toStrictEqual(LADDER.slice(0, 2));
    expect(log).not.toContain('wakeup');
    await settled();
    expect(log.at(-1)).toBe('wakeup');
  });

  it('passes on each event of the kernel as a wake-up', async () => {
    const { read, fire, log } = play();
    await read(reading());
    log.length = 0;
    fire('usage 480');
    fire('usage 488');
    expect(log).toStrictEqual(['wakeup', 'wakeup']);
  });

  it('tells the approach of a hard threshold from its crossing', async () => {
    const { read, fire, log } = play();
    await read(reading());
    log.length = 0;
    fire('usage 448');
    expect(log).toStrictEqual(['approach']);
  });

  it('does not look out for the approach of a soft threshold', async () => {
    const { read, isOpen } = play([softThreshold({ value: value('32Mi') })]);
    await read(reading());
    expect(isOpen()).toStrictEqual(LADDER.slice(0, 5));
  });

  it('arms anew when the level drifts: the new first, a reading, then the old is closed', async () => {
    const { read, isOpen } = play();
    await read(reading());
    const moved = [485, 486, 487, 489, 493, 453].map((mi) => `usage ${mi}`);
    expect(await read(inactive(5))).toStrictEqual([
      ...opens(moved),
      'path hard:memory.available armed',
      'wakeup',
      ...closes(LADDER),
    ]);
    expect(isOpen()).toStrictEqual(moved);
  });

  it('arms where the counter stands, which leaves memory out on the host', async () => {
    const { read, isOpen } = play();
    await read(reading({ uncountedBytes: 100 * MI }));
    expect(isOpen()).toStrictEqual([380, 381, 382, 384, 388, 348].map((mi) => `usage ${mi}`));
    await read(reading({ uncountedBytes: 110 * MI }));
    expect(isOpen()[0]).toBe('usage 370');
    expect(await read(reading({ uncountedBytes: 500 * MI }))).toContain(
      'path hard:memory.available alwaysMet',
    );
  });

  it('leaves what is armed alone while the level drifts by no more than an eighth', async () => {
    const { read } = play();
    await read(reading());
    expect(await read(inactive(4))).toStrictEqual([]);
    expect(await read(reading({ usageBytes: 500 * MI }))).toStrictEqual([]);
  });

  it('sees a drift that comes while it is arming', async () => {
    const { readings$, settled, isOpen } = play();
    readings$.next(inactive(20));
    readings$.next(inactive(10));
    readings$.next(reading());
    await settled();
    expect(isOpen()).toStrictEqual(LADDER);
  });

  it('sees a drift in the reading that its own wake-up brings', async () => {
    const { readings$, readAtWakeups, settled, isOpen } = play();
    readAtWakeups(reading);
    readings$.next(inactive(20));
    await settled();
    expect(isOpen()).toStrictEqual(LADDER);
  });

  it('arms each threshold, and only those anew that drifted', async () => {
    const { read } = play([AT_32, softThreshold({ value: value('128Mi') })]);
    const says = (log: readonly string[]) => log.filter((line) => !/^(open|close)/.test(line));
    expect(says(await read(reading()))).toStrictEqual([
      'path hard:memory.available armed',
      'wakeup',
      'path soft:memory.available armed',
      'wakeup',
    ]);
    // 5 Mi are more than an eighth of 32, and less than an eighth of 128.
    expect(says(await read(inactive(5)))).toStrictEqual([
      'path hard:memory.available armed',
      'wakeup',
    ]);
  });

  it('follows a new capacity', async () => {
    const { read, isOpen } = play();
    await read(reading());
    await read(reading({ capacityBytes: 256 * MI }));
    expect(isOpen()[0]).toBe('usage 224');
  });

  it('listens to reclaim too where inactive file exceeds the threshold, and stops it after', async () => {
    const { read, isOpen } = play();
    await read(reading());
    const followed = ['usage 510', 'usage 511', 'pressure low'];
    expect(await read(inactive(33))).toStrictEqual([
      ...opens(followed),
      'path hard:memory.available followed',
      'wakeup',
      ...closes(LADDER),
    ]);
    await read(reading());
    expect(isOpen()).toStrictEqual(LADDER);
  });

  it('registers nothing where the threshold is always met, and says so', async () => {
    const { read, isOpen } = play([threshold({ value: value('1Gi') })]);
    expect(await read(reading())).toStrictEqual(['path hard:memory.available alwaysMet', 'wakeup']);
    expect(isOpen()).toStrictEqual([]);
    expect(await read(reading())).toStrictEqual([]);
  });

  it('registers everything again for a cgroup that was made again', async () => {
    const { read, isOpen } = play();
    await read(reading());
    expect(await read(reading({ cgroupId: '2' }))).toStrictEqual([
      ...opens(LADDER),
      'path hard:memory.available armed',
      'wakeup',
      ...closes(LADDER),
    ]);
    expect(isOpen()).toStrictEqual(LADDER);
  });

  it.each(['call', 'armed'] as const)(
    'is degraded where the kernel refuses (%s), tries again when the level drifts, and recovers',
    async (at) => {
      const refusals = new Map([['all', { error: 'ENOSPC', at }]]);
      const { read, isOpen } = play([AT_32], { refusals });
      expect((await read(reading())).slice(-2)).toStrictEqual([
        'path hard:memory.available none, ENOSPC',
        'wakeup',
      ]);
      expect(isOpen()).toStrictEqual([]);
      expect(await read(reading())).toStrictEqual([]);
      refusals.clear();
      expect((await read(inactive(8))).at(-2)).toBe('path hard:memory.available armed');
      expect(isOpen()).toHaveLength(6);
    },
  );

  it.each(['call', 'armed'] as const)(
    'is armed and degraded where one rung is refused (%s)',
    async (at) => {
      const refusals = new Map([['usage 482', { error: 'EINVAL', at }]]);
      const { read, isOpen } = play([AT_32], { refusals });
      expect((await read(reading())).slice(-2)).toStrictEqual([
        'path hard:memory.available armed, EINVAL',
        'wakeup',
      ]);
      expect(isOpen()).toStrictEqual(LADDER.filter((name) => name !== 'usage 482'));
      // The refused rung is none of the old ones that are closed later.
      refusals.clear();
      await read(inactive(8));
      expect(isOpen()).toHaveLength(6);
      expect(isOpen()[0]).toBe('usage 488');
    },
  );

  it.each([
    ['unsubscribed', []],
    ['complete', ['complete']],
    ['failed', ['error EIO']],
  ])('closes all when it is %s, and arms no more', async (how, said) => {
    const { read, readings$, subscription, log, isOpen, settled } = play();
    await read(reading());
    readings$.next(inactive(8));
    log.length = 0;
    if (how === 'unsubscribed') subscription.unsubscribe();
    if (how === 'complete') readings$.complete();
    if (how === 'failed') readings$.error('EIO');
    await settled();
    expect(log.filter((line) => !/^(open|close|path|wakeup)/.test(line))).toStrictEqual(said);
    expect(isOpen()).toStrictEqual([]);
    expect(readings$.observed).toBe(false);
  });

  it('may be unsubscribed while it says how a threshold is followed', async () => {
    const log: string[] = [];
    const native = fakeAddon(log, {});
    const readings$ = new Subject<MemoryReading>();
    const subscription = memcgThresholds({
      native,
      directory: '/node',
      thresholds: [AT_32],
      readings$,
    }).subscribe(() => subscription.unsubscribe());
    readings$.next(reading());
    for (let turn = 0; turn < 10; turn += 1) await nextTurn();
    expect(log).toStrictEqual([...opens(LADDER), ...closes(LADDER)]);
    expect(native.open.size).toBe(0);
  });
});

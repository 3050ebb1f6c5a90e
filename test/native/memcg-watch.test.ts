import { once } from 'node:events';
import { rmdirSync, writeFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { describe, expect, onTestFinished, test } from 'vitest';

import {
  armedWatch,
  createMemoryCgroup,
  EventCounter,
  MEBIBYTE,
  MemoryUser,
  removeCgroup,
  settle,
  watch,
} from './support.ts';

const LEVEL_BYTES = 64 * MEBIBYTE;
const ABOVE_BYTES = 80 * MEBIBYTE;
const REGISTRATIONS = 50;

describe('usage', () => {
  for (const kind of ['usage', 'memsw'] as const) {
    test(`${kind}: one event on the way up, one on the way down, none before (case L01)`, async () => {
      const cgroup = createMemoryCgroup();
      const user = await MemoryUser.start(cgroup);
      const events = new EventCounter();
      await armedWatch(cgroup, { kind, bytes: BigInt(LEVEL_BYTES) }, events.listener);
      await settle();
      expect(events.total).toBe(0n);

      await user.hold(ABOVE_BYTES);
      await settle();
      expect(events.total).toBe(1n);

      await user.hold(0);
      await settle();
      expect(events.total).toBe(2n);
    });
  }

  test('no event at registration when usage is above already; one on the way down', async () => {
    const cgroup = createMemoryCgroup();
    const user = await MemoryUser.start(cgroup);
    await user.hold(ABOVE_BYTES);
    const events = new EventCounter();
    await armedWatch(cgroup, { kind: 'usage', bytes: BigInt(LEVEL_BYTES) }, events.listener);
    await settle();
    expect(events.total).toBe(0n);

    await user.hold(0);
    await settle();
    expect(events.total).toBe(1n);
  });

  test('usage of a child group counts, usage of a neighbour does not', async () => {
    const cgroup = createMemoryCgroup();
    const inside = await MemoryUser.start(createMemoryCgroup(cgroup));
    const neighbour = await MemoryUser.start(createMemoryCgroup());
    const events = new EventCounter();
    await armedWatch(cgroup, { kind: 'usage', bytes: BigInt(LEVEL_BYTES) }, events.listener);

    await neighbour.hold(ABOVE_BYTES);
    await settle();
    expect(events.total).toBe(0n);

    await inside.hold(ABOVE_BYTES);
    await settle();
    expect(events.total).toBe(1n);
  });

  test('two watches on one level are both told', async () => {
    const cgroup = createMemoryCgroup();
    const user = await MemoryUser.start(cgroup);
    const first = new EventCounter();
    const second = new EventCounter();
    await armedWatch(cgroup, { kind: 'usage', bytes: BigInt(LEVEL_BYTES) }, first.listener);
    await armedWatch(cgroup, { kind: 'usage', bytes: BigInt(LEVEL_BYTES) }, second.listener);
    await user.hold(ABOVE_BYTES);
    await settle();
    expect([first.total, second.total]).toEqual([1n, 1n]);
  });

  test('the smallest and the greatest level are taken by the kernel', async () => {
    const cgroup = createMemoryCgroup();
    for (const bytes of [0n, 2n ** 63n - 1n]) {
      await armedWatch(cgroup, { kind: 'usage', bytes }, () => undefined);
    }
  });
});

test('the removal of the cgroup is an event, and the watch stays active until it is closed', async () => {
  const cgroup = createMemoryCgroup();
  const events = new EventCounter();
  const event = { kind: 'usage', bytes: BigInt(LEVEL_BYTES) } as const;
  const removed = await armedWatch(cgroup, event, events.listener);
  rmdirSync(cgroup);
  await events.reaches(1n);
  expect(removed.active).toBe(true);
  removed.close();
  expect(removed.active).toBe(false);
});

test('oom: told when the group runs out of memory', async () => {
  const cgroup = createMemoryCgroup();
  writeFileSync(`${cgroup}/memory.limit_in_bytes`, String(LEVEL_BYTES));
  const user = await MemoryUser.start(cgroup);
  const events = new EventCounter();
  await armedWatch(cgroup, { kind: 'oom' }, events.listener);
  await user.hold(LEVEL_BYTES / 2);
  await settle();
  expect(events.total).toBe(0n);

  const exited = once(user.process, 'exit');
  user.request(ABOVE_BYTES);
  await events.reaches(1n);
  // The kernel kills the only process of the group.
  expect(await exited).toEqual([null, 'SIGKILL']);
});

describe('pressure', () => {
  for (const level of ['low', 'medium', 'critical'] as const) {
    for (const mode of [undefined, 'default', 'local', 'hierarchy'] as const) {
      test(`${level}, mode ${mode ?? 'left out'}: registered`, async () => {
        const event = { kind: 'pressure', level, ...(mode === undefined ? {} : { mode }) } as const;
        await armedWatch(createMemoryCgroup(), event, () => undefined);
      });
    }
  }

  test('low: told when page cache has to be reclaimed', async () => {
    const cgroup = createMemoryCgroup();
    writeFileSync(`${cgroup}/memory.limit_in_bytes`, String(LEVEL_BYTES));
    // Not a tmpfs: what is written to a disk can be reclaimed.
    const user = await MemoryUser.start(cgroup, '/var/tmp');
    const events = new EventCounter();
    await armedWatch(cgroup, { kind: 'pressure', level: 'low' }, events.listener);
    user.request(4 * LEVEL_BYTES);
    await events.reaches(1n);
  });
});

describe('close', () => {
  test('ends the events and is idempotent', async () => {
    const cgroup = createMemoryCgroup();
    const user = await MemoryUser.start(cgroup);
    const events = new EventCounter();
    const event = { kind: 'usage', bytes: BigInt(LEVEL_BYTES) } as const;
    const closed = await armedWatch(cgroup, event, events.listener);
    closed.close();
    closed.close();
    expect(closed.active).toBe(false);
    await user.hold(ABOVE_BYTES);
    await settle();
    expect(events.total).toBe(0n);
  });

  test('a listener may close its own watch', async () => {
    const cgroup = createMemoryCgroup();
    const user = await MemoryUser.start(cgroup);
    const events = new EventCounter();
    const own = watch(cgroup, { kind: 'usage', bytes: BigInt(LEVEL_BYTES) }, (count) => {
      own.close();
      events.listener(count);
    });
    await own.armed;
    await user.hold(ABOVE_BYTES);
    await events.reaches(1n);
    expect(own.active).toBe(false);
    await user.hold(0);
    await settle();
    expect(events.total).toBe(1n);
  });

  test('drops what the kernel reported before', async () => {
    // Both are signalled by the same removal; whichever is served first closes the other.
    const cgroup = createMemoryCgroup();
    const events = new EventCounter();
    const pair: Array<ReturnType<typeof watch>> = [];
    for (let index = 0; index < 2; index += 1) {
      pair.push(
        watch(cgroup, { kind: 'oom' }, (count) => {
          for (const either of pair) either.close();
          events.listener(count);
        }),
      );
    }
    await Promise.all(pair.map((either) => either.armed));
    removeCgroup(cgroup);
    await events.reaches(1n);
    await settle();
    expect(events.total).toBe(1n);
  });
});

describe('armed', () => {
  test('resolves with nothing, and is one promise that cannot be replaced', async () => {
    const opened = watch(createMemoryCgroup(), { kind: 'usage', bytes: 1n }, () => undefined);
    const { armed } = opened;
    expect(armed).toBeInstanceOf(Promise);
    expect(Reflect.set(opened, 'armed', undefined)).toBe(false);
    expect(opened.armed).toBe(armed);
    expect(await armed).toBeUndefined();
    expect(opened.active).toBe(true);
  });

  test('resolves also after close; no event comes', async () => {
    const cgroup = createMemoryCgroup();
    const user = await MemoryUser.start(cgroup);
    const events = new EventCounter();
    const event = { kind: 'usage', bytes: BigInt(LEVEL_BYTES) } as const;
    const closed = watch(cgroup, event, events.listener);
    closed.close();
    expect(closed.active).toBe(false);
    expect(await closed.armed).toBeUndefined();
    await user.hold(ABOVE_BYTES);
    await settle();
    expect(events.total).toBe(0n);
  });

  test('the loop goes on during each of 50 registrations', async () => {
    const cgroup = createMemoryCgroup();
    let turns = 0;
    let immediate = setImmediate(function count() {
      turns += 1;
      immediate = setImmediate(count);
    });
    onTestFinished(() => clearImmediate(immediate));
    for (let level = 1; level <= REGISTRATIONS; level += 1) {
      const before = turns;
      await armedWatch(cgroup, { kind: 'usage', bytes: BigInt(level * MEBIBYTE) }, () => undefined);
      expect(turns).toBeGreaterThan(before);
    }
  });

  test('many settle in the order of the calls, and leave the pool to others', async () => {
    const cgroup = createMemoryCgroup();
    const settled: Array<number | string> = [];
    const levels = Array.from({ length: REGISTRATIONS }, (_, index) => index + 1);
    const registrations = levels.map(async (level) => {
      const event = { kind: 'usage', bytes: BigInt(level * MEBIBYTE) } as const;
      await watch(cgroup, event, () => undefined).armed;
      settled.push(level);
    });
    const other = stat(cgroup).then(() => settled.push('other'));
    await Promise.all([...registrations, other]);
    expect(settled.filter((entry) => entry !== 'other')).toEqual(levels);
    // On four threads at once nearly all of them would have come first.
    expect(settled.indexOf('other')).toBeLessThan(REGISTRATIONS / 2);
  });
});

test('promise callbacks run before the loop goes on', async () => {
  const cgroup = createMemoryCgroup();
  const events = new EventCounter();
  const order: string[] = [];
  await armedWatch(cgroup, { kind: 'oom' }, (count) => {
    setImmediate(() => order.push('immediate'));
    process.nextTick(() => order.push('tick'));
    queueMicrotask(() => order.push('microtask'));
    events.listener(count);
  });
  removeCgroup(cgroup);
  await events.reaches(1n);
  await settle();
  expect(order).toEqual(['tick', 'microtask', 'immediate']);
});

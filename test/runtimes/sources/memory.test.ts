import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  isFailure,
  type MemoryReaderInputs,
  memoryAvailable,
  memoryReader,
} from '../../../src/sources/memory.ts';
import { MEMORY_HIERARCHY, makeCgroup } from '../../support/cgroup.ts';
import { spawnMemory } from '../../support/child.ts';
import { describeWith } from '../../support/skip.ts';
import { copyOf, fixture, openDescriptors } from '../support.ts';

const MI = 2 ** 20;
const hostBytes =
  1024 * Number(/^MemTotal:\s+(\d+)/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1]);

/** A reader of a directory, closed with the test; the reading, or a failed test. */
function readerOf(directory: string, overrides: Partial<MemoryReaderInputs> = {}) {
  const reader = memoryReader({
    signal: 'memory.available',
    directory,
    isRoot: false,
    compatibility: 'evictd',
    memorySource: 'workingset',
    nowMs: () => 42,
    ...overrides,
  });
  onTestFinished(() => reader.close());
  const reading = () => {
    const read = reader.read();
    if (isFailure(read)) throw new Error(read.error);
    return read;
  };
  const failure = () => {
    const read = reader.read();
    return isFailure(read) ? read.error : undefined;
  };
  return { reader, reading, failure };
}

describe('memoryReader', () => {
  it('reads the files of this kernel', () => {
    const { reading } = readerOf(fixture('cgroup-v1', 'node'));
    const read = reading();
    expect(read).toMatchObject({
      atMs: 42,
      usageBytes: 21_467_136,
      inactiveFileBytes: 20_000_768,
      workingSetBytes: 21_467_136 - 20_000_768,
      capacityBytes: 512 * MI,
    });
    expect(memoryAvailable(read, 'workingset')).toEqual({
      signal: 'memory.available',
      capacity: 512 * MI,
      available: 512 * MI - (21_467_136 - 20_000_768),
      atMs: 42,
    });
  });

  it('takes the host for the capacity of a node without a limit', () => {
    const directory = copyOf('cgroup-v1', 'node');
    const stat = path.join(directory, 'memory.stat');
    const text = readFileSync(stat, 'utf8').replace(
      /(hierarchical_memory_limit) \d+/,
      '$1 9223372036854771712',
    );
    writeFileSync(stat, text);
    expect(readerOf(directory).reading().capacityBytes).toBe(hostBytes);
  });

  it('counts no working set and nothing available below 0', () => {
    const directory = copyOf('cgroup-v1', 'node');
    const usage = path.join(directory, 'memory.usage_in_bytes');
    writeFileSync(usage, '4096\n');
    const { reading } = readerOf(directory);
    expect(reading().workingSetBytes).toBe(0);
    expect(memoryAvailable(reading(), 'workingset').available).toBe(512 * MI);
    writeFileSync(usage, `${536 * MI}\n`);
    expect(memoryAvailable(reading(), 'workingset').available).toBe(0);
  });

  it('takes a missing row for nothing', () => {
    const read = readerOf(fixture('cgroup-v1', 'broken', 'no-inactive-file')).reading();
    expect(read).toMatchObject({ inactiveFileBytes: 0, capacityBytes: hostBytes });
  });

  it.each([
    ['empty-usage', 'not a number'],
    ['wrong-usage', 'not a number: "twelve'],
    ['no-stat', 'ENOENT'],
    ['no-such-directory', 'ENOENT'],
  ])('says why it cannot read %s, and leaves nothing open', (name, why) => {
    const before = openDescriptors();
    const { failure } = readerOf(fixture('cgroup-v1', 'broken', name));
    for (let n = 0; n < 20; n += 1) expect(failure()).toContain(why);
    expect(openDescriptors()).toBe(before);
  });

  it('recovers when the files do', () => {
    const directory = copyOf('cgroup-v1', 'node');
    const usage = path.join(directory, 'memory.usage_in_bytes');
    const { reading, failure } = readerOf(directory);
    expect(reading().usageBytes).toBe(21_467_136);
    writeFileSync(usage, '');
    expect(failure()).toContain('not a number');
    writeFileSync(usage, '8192\n');
    expect(reading().usageBytes).toBe(8192);
  });

  it('holds three descriptors, and none once closed', () => {
    const before = openDescriptors();
    const { reader, reading } = readerOf(fixture('cgroup-v1', 'node'));
    for (let n = 0; n < 100; n += 1) reading();
    expect(openDescriptors()).toBe(before + 3);
    reader.close();
    reader.close();
    expect(openDescriptors()).toBe(before);
  });
});

/** A cgroup directory with these counters, and a limit. */
function cgroupWith(usage: number, stat: Readonly<Record<string, number>>): string {
  const directory = copyOf('cgroup-v1', 'node');
  writeFileSync(path.join(directory, 'memory.usage_in_bytes'), `${usage}\n`);
  const lines = Object.entries(stat).map(([name, value]) => `${name} ${value}\n`);
  writeFileSync(path.join(directory, 'memory.stat'), lines.join(''));
  return directory;
}

/** A `/proc/meminfo` with these lines, in KiB. */
function meminfoWith(fields: Readonly<Record<string, number>>): string {
  const file = path.join(copyOf('cgroup-v1', 'node'), 'meminfo');
  const lines = Object.entries(fields).map(([name, kib]) => `${name}: ${kib} kB\n`);
  writeFileSync(file, lines.join(''));
  return file;
}

describe('counters that cannot be true', () => {
  const LIMIT = 1000 * MI;
  const stat = {
    hierarchical_memory_limit: LIMIT,
    total_rss: 300 * MI,
    total_inactive_file: 100 * MI,
    total_active_file: 50 * MI,
    total_unevictable: 10 * MI,
    total_shmem: 20 * MI,
  };

  it.each([
    ['at the capacity', LIMIT, 'counters', 100 * MI],
    ['5 % above it', 1.05 * LIMIT, 'counters', 50 * MI],
    ['a byte more', 1.05 * LIMIT + 1, 'memory.stat', 640 * MI],
  ])('usage %s', (_, usage, figures, available) => {
    const read = readerOf(cgroupWith(usage, stat)).reading();
    expect(read.figures).toBe(figures);
    expect(read.refused === undefined).toBe(figures === 'counters');
    expect(memoryAvailable(read, 'workingset').available).toBe(available);
  });

  it('are nothing available while forced charges may explain them', () => {
    const read = readerOf(cgroupWith(1.05 * LIMIT, { ...stat, total_inactive_file: 0 })).reading();
    expect(memoryAvailable(read, 'workingset').available).toBe(0);
  });

  it('are armed by the offset between the counter and the second source', () => {
    const read = readerOf(cgroupWith(2 * LIMIT, stat)).reading();
    expect(read.usageBytes).toBe(460 * MI);
    expect(read.uncountedBytes).toBe(460 * MI - 2 * LIMIT);
  });

  it('leave the signal unknown where the second source cannot be true either', () => {
    const { failure } = readerOf(cgroupWith(2 * LIMIT, { ...stat, total_rss: 2 * LIMIT }));
    expect(failure()).toBe(
      `memory.stat adds up to ${2 * LIMIT + 160 * MI} of a capacity of ${LIMIT}`,
    );
  });

  it('case C12: usage far above the capacity evicts nobody', () => {
    const directory = cgroupWith(80_342_220_800, {
      hierarchical_memory_limit: 32_879_017_984,
      total_rss: 9_000_000_000,
      total_inactive_file: 10_048_962_560,
      total_active_file: 2_000_000_000,
      total_unevictable: 0,
    });
    const read = readerOf(directory).reading();
    expect(read.refused).toBe(
      `memory.usage_in_bytes is 80342220800 of a capacity of ${read.capacityBytes}`,
    );
    expect(read.capacityBytes).toBe(Math.min(32_879_017_984, hostBytes));
    expect(memoryAvailable(read, 'workingset').available).toBe(read.capacityBytes - 11_000_000_000);
  });
});

describe('memory sources', () => {
  // Case C14: 31 of 32 GiB used, most of it page cache that is in use but could be dropped.
  const GI = 1024 * MI;
  const stat = {
    hierarchical_memory_limit: 16 * GI,
    total_inactive_file: GI,
    total_active_file: 10 * GI,
    total_shmem: GI / 2,
  };

  it('case C14: the working set holds active page cache against the node, memavailable does not', () => {
    const directory = cgroupWith(15 * GI, stat);
    const workingset = readerOf(directory).reading();
    expect(workingset.availableBytes).toEqual({ workingset: 2 * GI, memavailable: 11.5 * GI });
    expect(memoryAvailable(workingset, 'workingset').available).toBe(2 * GI);
    expect(workingset.deductedBytes).toBe(GI);
    const memavailable = readerOf(directory, { memorySource: 'memavailable' }).reading();
    expect(memoryAvailable(memavailable, 'memavailable').available).toBe(11.5 * GI);
    // Usage at which it would be 0, less the capacity: what the level to arm is put up by.
    expect(memavailable.deductedBytes).toBe(10.5 * GI);
  });

  it('never deduct less than nothing: shared memory may exceed the page cache', () => {
    const directory = cgroupWith(GI, { ...stat, total_shmem: 20 * GI });
    const read = readerOf(directory, { memorySource: 'memavailable' }).reading();
    expect(read.deductedBytes).toBe(0);
    expect(read.availableBytes.memavailable).toBe(15 * GI);
  });
});

describe('the root', () => {
  const HOST = {
    MemTotal: 1000 * 1024,
    MemFree: 300 * 1024,
    MemAvailable: 550 * 1024,
    SReclaimable: 40 * 1024,
    'Inactive(file)': 150 * 1024,
  };
  /** The counter has 200 MiB less than the host uses: kernel memory, slab, huge pages. */
  const rootOf = (overrides: Partial<MemoryReaderInputs> = {}, host = HOST, counter = 460 * MI) =>
    readerOf(
      cgroupWith(counter, {
        hierarchical_memory_limit: Number.MAX_SAFE_INTEGER,
        total_inactive_file: 120 * MI,
      }),
      { isRoot: true, meminfo: meminfoWith(host), ...overrides },
    );

  it('is read from meminfo, by evictd’s own rule', () => {
    const read = rootOf().reading();
    expect(read).toMatchObject({
      figures: 'meminfo',
      refused: undefined,
      capacityBytes: 1000 * MI,
      usageBytes: 660 * MI,
      inactiveFileBytes: 150 * MI,
      workingSetBytes: 510 * MI,
      availableBytes: { workingset: 490 * MI, memavailable: 550 * MI },
      deductedBytes: 150 * MI,
      uncountedBytes: 200 * MI,
    });
  });

  it('has MemAvailable where that is asked for', () => {
    const read = rootOf({ memorySource: 'memavailable' }).reading();
    expect(memoryAvailable(read, 'memavailable').available).toBe(550 * MI);
    expect(read.deductedBytes).toBe(210 * MI);
  });

  it('has the kubelet’s figure where that is asked for', () => {
    const read = rootOf({ compatibility: 'kubelet' }).reading();
    expect(read).toMatchObject({
      figures: 'counters',
      usageBytes: 460 * MI,
      inactiveFileBytes: 120 * MI,
      uncountedBytes: 0,
      availableBytes: { workingset: 660 * MI },
    });
  });

  it('goes back to meminfo where the kubelet’s figure cannot be true', () => {
    const read = rootOf({ compatibility: 'kubelet' }, HOST, 2000 * MI).reading();
    expect(read).toMatchObject({
      figures: 'meminfo',
      refused: `memory.usage_in_bytes is ${2000 * MI} of a capacity of ${1000 * MI}`,
      usageBytes: 660 * MI,
    });
  });

  it.each([
    ['more free than there is', { ...HOST, MemFree: 1001 * 1024 }, 'more memory is free'],
    ['no MemAvailable', { ...HOST, MemAvailable: Number.NaN }, 'meminfo has no MemAvailable'],
  ])('is unknown where meminfo has %s', (_, host, why) => {
    expect(rootOf({}, host).failure()).toContain(why);
  });
});

describeWith({ root: true, cgroupV1: true }, 'memoryReader, on this host', () => {
  it('finds what the root’s counter leaves out', () => {
    const read = readerOf(MEMORY_HIERARCHY, { isRoot: true }).reading();
    expect(read.capacityBytes).toBe(hostBytes);
    expect(read.uncountedBytes).toBeGreaterThan(0);
    expect(read.workingSetBytes).toBeLessThan(read.usageBytes);
  });
});

describeWith({ root: true, cgroupV1: true }, 'memoryReader, on a real cgroup', () => {
  it('sees what a process takes', async () => {
    const cgroup = makeCgroup({ limitBytes: 256 * MI });
    onTestFinished(() => cgroup.remove());
    const child = await spawnMemory({ cgroups: [cgroup.path] });
    onTestFinished(() => void child.kill());
    const { reading } = readerOf(cgroup.path);
    const before = reading();
    expect(before.capacityBytes).toBe(256 * MI);
    await child.grow(64 * MI);
    const grown = reading().usageBytes - before.usageBytes;
    // The kernel charges in batches: the reading before may be some of one too high.
    expect(grown).toBeGreaterThan(63 * MI);
    expect(grown).toBeLessThan(72 * MI);
    cgroup.write('memory.limit_in_bytes', 128 * MI);
    expect(reading().capacityBytes).toBe(128 * MI);
  });

  it('opens a cgroup again that was removed and made again', async () => {
    const parent = makeCgroup();
    onTestFinished(() => parent.remove());
    const first = parent.child('node', { limitBytes: 64 * MI });
    const { reading, failure } = readerOf(first.path);
    const { cgroupId } = reading();
    await first.remove();
    expect(failure()).toMatch(/ENOENT|ENODEV/);
    parent.child('node', { limitBytes: 128 * MI });
    const again = reading();
    expect(again.capacityBytes).toBe(128 * MI);
    expect(again.cgroupId).not.toBe(cgroupId);
  });

  it('notices a cgroup that was made again between two readings', async () => {
    const parent = makeCgroup();
    onTestFinished(() => parent.remove());
    const first = parent.child('node', { limitBytes: 64 * MI });
    const { reading } = readerOf(first.path);
    const { cgroupId } = reading();
    await first.remove();
    parent.child('node', { limitBytes: 128 * MI });
    expect(reading()).toMatchObject({ capacityBytes: 128 * MI });
    expect(reading().cgroupId).not.toBe(cgroupId);
  });
});

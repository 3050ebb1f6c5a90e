import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  isFailure,
  type MemoryReaderInputs,
  memoryAvailable,
  memoryReader,
} from '../../../src/sources/memory.ts';
import { makeCgroup } from '../../support/cgroup.ts';
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
    expect(grown).toBeGreaterThanOrEqual(64 * MI);
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

import { describe, expect, it } from 'vitest';
import { FILESYSTEMS, isSignal, SIGNAL_NAMES, SIGNALS } from '../../src/core/signal.ts';

describe('signals', () => {
  it('are those of the table, each with its unit and condition', () => {
    expect(SIGNAL_NAMES).toStrictEqual([
      'memory.available',
      'allocatableMemory.available',
      'nodefs.available',
      'nodefs.inodesFree',
      'imagefs.available',
      'imagefs.inodesFree',
      'containerfs.available',
      'containerfs.inodesFree',
      'pid.available',
    ]);
    expect(SIGNALS['memory.available']).toMatchObject({
      unit: 'bytes',
      resource: 'memory',
      condition: 'MemoryPressure',
    });
    expect(SIGNALS['allocatableMemory.available']).toMatchObject({
      unit: 'bytes',
      resource: 'memory',
      condition: 'MemoryPressure',
    });
  });

  it.each(FILESYSTEMS)('of %s are bytes and inodes, and DiskPressure', (filesystem) => {
    expect(SIGNALS[`${filesystem}.available`]).toMatchObject({
      unit: 'bytes',
      resource: 'ephemeral-storage',
      condition: 'DiskPressure',
      poll: 'disk',
      filesystem,
    });
    expect(SIGNALS[`${filesystem}.inodesFree`]).toMatchObject({
      unit: 'inodes',
      resource: 'inodes',
      condition: 'DiskPressure',
      poll: 'inodes',
      filesystem,
    });
  });

  it('of PIDs are tasks, and PIDPressure', () => {
    expect(SIGNALS['pid.available']).toMatchObject({
      unit: 'tasks',
      resource: 'pids',
      condition: 'PIDPressure',
      poll: 'pids',
      filesystem: undefined,
    });
  });

  it('are acted on memory first, in an order of their own', () => {
    const orders = SIGNAL_NAMES.map((name) => SIGNALS[name].order);
    expect(orders).toStrictEqual([...orders].sort((one, other) => one - other));
    expect(new Set(orders).size).toBe(orders.length);
  });

  it.each([
    ['memory.available', true],
    ['allocatableMemory.available', true],
    ['memory.avail', false],
    ['Memory.available', false],
    ['nodefs.available', true],
    ['nodefs.inodes', false],
    ['', false],
    // What every object has is no signal.
    ['toString', false],
    ['__proto__', false],
    ['constructor', false],
  ])('isSignal(%j) is %j', (text, expected) => {
    expect(isSignal(text)).toBe(expected);
  });
});

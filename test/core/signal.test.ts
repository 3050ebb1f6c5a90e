import { describe, expect, it } from 'vitest';
import { isSignal, SIGNAL_NAMES, SIGNALS } from '../../src/core/signal.ts';

describe('signals', () => {
  it('are those of the table, each with its unit and condition', () => {
    expect(SIGNAL_NAMES).toStrictEqual(['memory.available', 'allocatableMemory.available']);
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

  it.each([
    ['memory.available', true],
    ['allocatableMemory.available', true],
    ['memory.avail', false],
    ['Memory.available', false],
    ['nodefs.available', false],
    ['', false],
    // What every object has is no signal.
    ['toString', false],
    ['__proto__', false],
    ['constructor', false],
  ])('isSignal(%j) is %j', (text, expected) => {
    expect(isSignal(text)).toBe(expected);
  });
});

import { describe, expect, it } from 'vitest';
import { wakeReasons } from '../../src/daemon/streams.ts';

describe('wakeReasons', () => {
  it('is the kernel only where it has told of something', () => {
    const path = {
      threshold: 'hard:memory.available' as const,
      arming: undefined,
      degraded: undefined,
    };
    expect(wakeReasons({ kind: 'wakeup', events: 2 })).toEqual(['wakeup']);
    expect(wakeReasons({ kind: 'approach', events: 1 })).toEqual(['wakeup']);
    expect(wakeReasons({ kind: 'wakeup', events: 0 })).toEqual(['asked']);
    expect(wakeReasons({ kind: 'path', path })).toEqual([]);
  });
});

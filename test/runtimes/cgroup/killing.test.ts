import { describe, expect, it } from 'vitest';
import type { NativeAddon } from '../../../src/native/types.ts';
import { killingOf } from '../../../src/runtimes/cgroup/killing.ts';

const UNIFIED = { mountPoint: '/sys/fs/cgroup/unified', root: '/' };

/** An addon on a kernel that gives pidfds, or refuses them with this code. */
function addonWith(pidfd: string | null): NativeAddon {
  const capabilities = { pidfd, processMrelease: null, eventfd: null };
  return { capabilities: () => capabilities } as unknown as NativeAddon;
}

describe('killingOf', () => {
  it.each([
    ['with pidfds', addonWith(null), false, UNIFIED, 'pidfd', 'pidfd'],
    ['with pidfds, whatever else', addonWith(null), true, undefined, 'pidfd', 'pidfd'],
    ['without the addon', undefined, false, UNIFIED, 'cgroup.kill', 'without TERM'],
    ['without pidfds', addonWith('ENOSYS'), false, UNIFIED, 'cgroup.kill', '(ENOSYS)'],
    ['where it is permitted', undefined, true, UNIFIED, 'pid', '/unified holds exactly'],
    ['without a cgroup2 mount', undefined, true, undefined, 'pid', 'missing: by number'],
    ['at all', undefined, false, undefined, 'nothing', 'nothing is evicted'],
  ] as const)('%s', (_, native, allowPidKill, unified, by, detail) => {
    const killing = killingOf({ native, allowPidKill, unified });
    expect(killing).toEqual({ by, detail: expect.stringContaining(detail) });
  });
});

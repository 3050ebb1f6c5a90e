import { afterEach, describe, expect, it, vi } from 'vitest';
import { checkConfigCommand, renderCheck, renderKilling } from '../../src/commands/check-config.ts';
import { settingsFromFlags } from '../../src/config/flags.ts';

const NOTE =
  "allocatableMemory.available has no threshold: the pods share no parent but the node's own cgroup";

afterEach(() => {
  vi.restoreAllMocks();
});

describe('renderCheck', () => {
  it('prints the effective thresholds as a table', () => {
    const checked = settingsFromFlags({
      '--eviction-hard': ['memory.available<104857600'],
      '--eviction-soft': ['memory.available<07.50%'],
      '--eviction-soft-grace-period': ['memory.available=90s'],
      '--eviction-minimum-reclaim': ['memory.available=0.5Gi'],
    });
    expect(renderCheck(checked)).toBe(
      [
        'SIGNAL            KIND  THRESHOLD  GRACE PERIOD  MINIMUM RECLAIM',
        'memory.available  hard  100Mi      -             512Mi',
        'memory.available  soft  7.5%       1m30s         512Mi',
        `note: ${NOTE}`,
        '',
      ].join('\n'),
    );
  });

  it('prints the default threshold', () => {
    expect(renderCheck(settingsFromFlags({}))).toBe(
      [
        'SIGNAL            KIND  THRESHOLD  GRACE PERIOD  MINIMUM RECLAIM',
        'memory.available  hard  100Mi      -             -',
        `note: ${NOTE}`,
        '',
      ].join('\n'),
    );
  });

  it('prints warnings alone when no threshold is left', () => {
    expect(renderCheck(settingsFromFlags({ '--eviction-hard': [''] }))).toBe(
      'warning: no eviction threshold is left: nothing will be evicted\n',
    );
  });
});

describe('renderKilling', () => {
  it.each([
    ['pidfd', 'by pidfd'],
    ['cgroup.kill', 'by cgroup.kill only'],
    ['pid', 'by pid'],
    ['nothing', 'not at all'],
  ] as const)('%s', (by, words) => {
    expect(renderKilling({ by, detail: 'why' })).toBe(`killing: ${words} (why)\n`);
  });
});

describe('checkConfigCommand', () => {
  it('ends with 0 when the flags are valid, warnings or not', async () => {
    const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
    expect(await checkConfigCommand({ '--eviction-hard': [''] })).toBe(0);
    expect(write).toHaveBeenCalledExactlyOnceWith(
      expect.stringMatching(
        /^warning: no eviction threshold is left: nothing will be evicted\nkilling: by .+\n$/,
      ),
    );
  });

  it('prints nothing and fails with the code of what is wrong', async () => {
    const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
    await expect(checkConfigCommand({ '--poll-interval': ['1'] })).rejects.toMatchObject({
      code: 'EVICTD_DURATION',
      exitStatus: 2,
    });
    expect(write).not.toHaveBeenCalled();
  });
});

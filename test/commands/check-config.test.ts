import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  checkConfigCommand,
  hostWarnings,
  remainderWarnings,
  renderCheck,
  renderKilling,
} from '../../src/commands/check-config.ts';
import { settingsFromFlags } from '../../src/config/flags.ts';
import { liveScheduler } from '../../src/sources/live-scheduler.ts';
import { MI, reading } from '../support/builders.ts';
import { MEMORY_HIERARCHY } from '../support/cgroup.ts';
import { describeWith } from '../support/skip.ts';

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
        'note: --eviction-max-pod-grace-period is 0: victims of soft thresholds get KILL at once, no TERM',
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

describe('remainderWarnings', () => {
  const { policy } = settingsFromFlags({
    '--eviction-hard': ['memory.available<100Mi'],
    '--eviction-soft': ['memory.available<300Mi'],
    '--eviction-soft-grace-period': ['memory.available=1m'],
  }).settings;

  it('names each threshold that is smaller than what the counter leaves out', () => {
    const warningsAt = (uncountedBytes: number) =>
      remainderWarnings(policy.thresholds, reading({ uncountedBytes }));
    expect(warningsAt(100 * MI)).toEqual([]);
    expect(warningsAt(100 * MI + 1)).toEqual([
      "--eviction-hard: memory.available<100Mi is less than the 104857601 bytes that the kubelet's " +
        'figure leaves out on this host: memory runs out before it is met',
    ]);
    expect(warningsAt(300 * MI + 1)).toHaveLength(2);
  });
});

describe('hostWarnings', () => {
  const settings = (compatibility: string) =>
    settingsFromFlags({
      '--compatibility': [compatibility],
      '--eviction-hard': ['memory.available<1'],
    }).settings;

  it('are of the host alone, and of the kubelet’s figure alone', () => {
    const host = (isRoot: boolean) => () => ({
      directory: MEMORY_HIERARCHY,
      hierarchy: { mountPoint: MEMORY_HIERARCHY, root: '/' },
      isRoot,
    });
    expect(hostWarnings(settings('evictd'), liveScheduler, host(true))).toEqual([]);
    expect(hostWarnings(settings('kubelet'), liveScheduler, host(false))).toEqual([]);
    const missing = () => {
      throw new Error('no hierarchy');
    };
    expect(hostWarnings(settings('kubelet'), liveScheduler, missing)).toEqual([]);
  });
});

describeWith({ root: true, cgroupV1: true }, 'hostWarnings, on this host', () => {
  it('reads what the root’s counter leaves out', () => {
    const { settings } = settingsFromFlags({
      '--compatibility': ['kubelet'],
      '--eviction-hard': ['memory.available<1'],
    });
    expect(hostWarnings(settings, liveScheduler)).toEqual([
      expect.stringMatching(/^--eviction-hard: memory\.available<1 is less than the \d+ bytes/),
    ]);
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

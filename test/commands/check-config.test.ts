import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  checkConfigCommand,
  hostWarnings,
  remainderWarnings,
  renderCheck,
  renderKilling,
} from '../../src/commands/check-config.ts';
import type { FlagValues } from '../../src/config/flags.ts';
import { loadSettings } from '../../src/config/load.ts';
import { EvictdError } from '../../src/core/errors.ts';
import { liveScheduler } from '../../src/sources/live-scheduler.ts';
import { fixture } from '../runtimes/support.ts';
import { MI, reading } from '../support/builders.ts';
import { makeCgroup } from '../support/cgroup.ts';
import { describeWith } from '../support/skip.ts';

const NOTE = 'allocatableMemory.available has no threshold: the pods have no parent of their own';

afterEach(() => {
  vi.restoreAllMocks();
});

/** The default thresholds of disks switched off, so that none is lost. */
const NO_DISK =
  'nodefs.available<0%,nodefs.inodesFree<0%,imagefs.available<0%,imagefs.inodesFree<0%';

describe('renderCheck', () => {
  it('prints the effective thresholds as a table', () => {
    const checked = loadSettings({
      '--eviction-hard': [`memory.available<104857600,${NO_DISK}`],
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

  it('prints the default thresholds', () => {
    expect(renderCheck(loadSettings({}))).toBe(
      [
        'SIGNAL              KIND  THRESHOLD  GRACE PERIOD  MINIMUM RECLAIM',
        'memory.available    hard  100Mi      -             -',
        'nodefs.available    hard  10%        -             -',
        'nodefs.inodesFree   hard  5%         -             -',
        'imagefs.available   hard  15%        -             -',
        'imagefs.inodesFree  hard  5%         -             -',
        `note: ${NOTE}`,
        'note: imagefs.available, imagefs.inodesFree: not watched, there is no imagefs without --imagefs-path',
        '',
      ].join('\n'),
    );
  });

  it('prints warnings alone when no threshold is left', () => {
    expect(renderCheck(loadSettings({ '--eviction-hard': [''] }))).toBe(
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
  const { policy } = loadSettings({
    '--eviction-hard': ['memory.available<100Mi'],
    '--eviction-soft': ['memory.available<300Mi'],
    '--eviction-soft-grace-period': ['memory.available=1m'],
  }).settings;

  it('names each threshold that is smaller than what the counter leaves out', () => {
    const warningsAt = (uncountedBytes: number) =>
      remainderWarnings(policy.thresholds, reading({ uncountedBytes }));
    expect(warningsAt(100 * MI)).toEqual([]);
    expect(warningsAt(100 * MI + 1)).toEqual([
      "--eviction-hard: memory.available<100Mi is less than the 104857601 that the kubelet's " +
        'figure leaves out on this host: memory runs out before it is met',
    ]);
    expect(warningsAt(300 * MI + 1)).toHaveLength(2);
  });
});

describe('hostWarnings', () => {
  const settings = (values: FlagValues) => loadSettings(values).settings;

  /** A node of the fixtures, said to be the root or not. */
  const node = (isRoot: boolean) => () => ({
    directory: fixture('cgroup-v1', 'node'),
    hierarchy: { mountPoint: '/no/such', root: '/' },
    isRoot,
  });

  it.each<[string, FlagValues, boolean, readonly string[]]>([
    ['nothing to say', {}, false, []],
    [
      'nothing evictable',
      {},
      true,
      [expect.stringMatching(/^nothing is evictable: on the host a pod is what --pod names/)],
    ],
    [
      'what is not there',
      { '--pod-parent': ['.', 'nope'], '--pod': ['pod-a=protected', 'dbb=protected'] },
      false,
      ['--pod-parent "nope": no such cgroup here yet', '--pod "dbb": no such cgroup here yet'],
    ],
    [
      'a runtime that is not there',
      { '--runtime': ['cri'], '--runtime-endpoint': ['unix:///no/such.sock'] },
      true,
      ['no socket is here yet: /no/such.sock: until one is, no pod is evictable'],
    ],
    [
      'a place of logs that is not there, of a runtime that is',
      {
        '--runtime': ['cri'],
        // Any file.
        '--runtime-endpoint': ['unix:///proc/self/stat'],
        '--pod-logs-dir': ['/no/such'],
      },
      false,
      ['--pod-logs-dir "/no/such": no such directory here yet'],
    ],
    [
      'a threshold above the capacity',
      { '--eviction-hard': ['memory.available<1Gi'] },
      false,
      [
        "--eviction-hard: memory.available<1Gi is not below this node's capacity of 512Mi: always met",
      ],
    ],
  ])('%s', (_, values, isRoot, expected) => {
    expect(hostWarnings(settings(values), liveScheduler, node(isRoot))).toEqual(expected);
  });

  it('say what run would refuse here, and nothing where there is nothing to be asked', () => {
    const refuse = () => {
      throw new EvictdError('EVICTD_NODE_CGROUP', 'is no cgroup', { value: 'x' });
    };
    expect(hostWarnings(settings({}), liveScheduler, refuse)).toEqual([
      'run would refuse here: "x": is no cgroup',
    ]);
    const missing = () => {
      throw new Error('no hierarchy');
    };
    expect(hostWarnings(settings({}), liveScheduler, missing)).toEqual([]);
  });
});

describeWith({ root: true, cgroupV1: true }, 'hostWarnings, on this host', () => {
  it('reads what the root’s counter leaves out', () => {
    const given = {
      '--compatibility': ['kubelet'],
      '--pod': ['nobody='],
      '--eviction-hard': ['memory.available<1'],
    };
    const warnings = (values: FlagValues) =>
      hostWarnings(loadSettings(values).settings, liveScheduler).filter(
        (warning) => !warning.startsWith('--pod "nobody"'),
      );
    expect(warnings(given)).toEqual([
      expect.stringMatching(/^--eviction-hard: memory\.available<1 is less than the \d+\w* that/),
    ]);
    expect(warnings({ ...given, '--compatibility': ['evictd'] })).toEqual([]);
  });

  it('refuses what run would refuse on any host: the root as a place of pods', () => {
    const { settings } = loadSettings({ '--pod-parent': ['.'] });
    expect(() => hostWarnings(settings, liveScheduler)).toThrow(
      'the root of the hierarchy holds no pods',
    );
  });

  it('warns of a node without a limit of its own', async () => {
    const node = makeCgroup();
    onTestFinished(() => node.remove());
    const of = () =>
      hostWarnings(loadSettings({ '--node-cgroup': [node.path] }).settings, liveScheduler);
    const unlimited = "the node's cgroup has no memory limit: its capacity is the host's memory";
    expect(of()).toEqual([expect.stringContaining(unlimited)]);
    node.write('memory.limit_in_bytes', 2 ** 30);
    expect(of()).toEqual([]);
  });
});

describe('checkConfigCommand', () => {
  it('ends with 0 when the flags are valid, warnings or not', async () => {
    const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
    const values = { '--eviction-hard': [''], '--pod-parent': ['.'] };
    expect(await checkConfigCommand({ ...values, '--node-cgroup': ['/no/such'] })).toBe(0);
    expect(write).toHaveBeenCalledExactlyOnceWith(
      expect.stringMatching(
        /^warning: no eviction .+\nwarning: run would refuse here: .+\nkilling: .+\ncompatibility: evictd .+\n$/,
      ),
    );
  });

  it('says whose rules a file brings', async () => {
    const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
    const file = new URL('../fixtures/kubelet/k3s.yaml', import.meta.url).pathname;
    expect(await checkConfigCommand({ '--config': [file] })).toBe(0);
    const [text] = write.mock.calls[0] ?? [];
    expect(text).toMatch(/^nodefs\.available +hard +5% +- +10% +\S+ +\S+ of \S+ +polled$/m);
    expect(text).toMatch(/^imagefs\.available +hard +5% +- +10% +- +- +polled$/m);
    expect(text).toContain(
      `note: ${file}: what evictd does not use of a KubeletConfiguration: address,`,
    );
    expect(text).toContain(`compatibility: kubelet (${file} is a KubeletConfiguration)\n`);
  });

  it('prints the configuration instead', async () => {
    const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
    const values: FlagValues = { '--print-config': ['true'], '--dry-run': ['true'] };
    expect(await checkConfigCommand(values)).toBe(0);
    expect(write).toHaveBeenCalledExactlyOnceWith(
      expect.stringMatching(
        /^# yaml-language-server.+\napiVersion: evictd.+\n[\s\S]+\ndryRun: true\n/,
      ),
    );
  });

  it('counts inodes and tasks in powers of 1000', () => {
    const checked = loadSettings({
      '--eviction-hard': ['nodefs.inodesFree<1024000,nodefs.available<1048576,pid.available<2k'],
    });
    expect(renderCheck(checked)).toMatch(
      /nodefs\.available +hard +1Mi[\s\S]+nodefs\.inodesFree +hard +1024k[\s\S]+pid\.available +hard +2k/,
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

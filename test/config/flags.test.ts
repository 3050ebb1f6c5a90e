import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type FlagValues, isSwitchedOn, socketPathFromFlags } from '../../src/config/flags.ts';
import { loadSettings } from '../../src/config/load.ts';
import { OPTION_LIST, type OptionName } from '../../src/config/options.ts';
import { describeError, type ErrorCode, EvictdError } from '../../src/core/errors.ts';
import { POLL_PACES } from '../../src/core/polling.ts';
import { RULE_SETS } from '../../src/core/rules.ts';
import { SIGNALS } from '../../src/core/signal.ts';

const NANO = 1_000_000_000n;

function refusalOf(values: FlagValues): EvictdError {
  try {
    loadSettings(values);
  } catch (error) {
    if (error instanceof EvictdError) return error;
    throw error;
  }
  throw new Error(`not refused: ${JSON.stringify(values)}`);
}

function settingsOf(values: FlagValues) {
  return loadSettings(values).settings;
}

/** The thresholds for memory: the defaults for disks are not what these tests are about. */
function thresholdsOf(values: FlagValues) {
  return settingsOf(values).policy.thresholds.filter(
    ({ signal }) => SIGNALS[signal].resource === 'memory',
  );
}

/** Warnings but the one that C10 asks for, of which there are tests of their own. */
function warningsOf(values: FlagValues) {
  return loadSettings(values).warnings.filter((warning) => !warning.includes('drops the default'));
}

/** Notes but for those of filesystems that are not there. */
function notesOf(values: FlagValues) {
  return loadSettings(values).notes.filter((note) => !note.includes('not watched'));
}

function quantity(text: string, units: bigint) {
  return { kind: 'quantity', nano: units * NANO, text };
}

describe('--node-name', () => {
  it.each([['a'], ['Node_1.example'], ['a'.repeat(253)]])('may be %s', (name) => {
    expect(settingsOf({ '--node-name': ['x', name] }).nodeName).toBe(name);
  });

  it('is left to the host by default', () => {
    expect(settingsOf({}).nodeName).toBeUndefined();
  });
});

describe('loadSettings', () => {
  it('has the kubelet’s defaults', () => {
    const percentage = (percent: bigint) => ({
      kind: 'percentage',
      nanoPercent: percent * NANO,
      text: `${percent}%`,
    });
    const hard = (signal: string, level: object) => ({
      signal,
      kind: 'hard',
      value: level,
      gracePeriodMs: 0,
      minimumReclaim: undefined,
    });
    expect(loadSettings({ '--node-cgroup': ['/node'] })).toEqual({
      settings: {
        policy: {
          thresholds: [
            hard('memory.available', quantity('100Mi', 104_857_600n)),
            hard('nodefs.available', percentage(10n)),
            hard('nodefs.inodesFree', percentage(5n)),
            hard('imagefs.available', percentage(15n)),
            hard('imagefs.inodesFree', percentage(5n)),
          ],
          pressureTransitionPeriodMs: 300_000,
          maxPodGracePeriodSeconds: 0,
          hardEvictionGracePeriodSeconds: 0,
          rules: RULE_SETS.evictd,
          layout: 'single',
          ranksDisk: false,
          reclaims: [],
        },
        kernelMemcgNotification: false,
        nodeCgroup: '/node',
        nodeName: undefined,
        podParents: [],
        compatibility: 'evictd',
        compatibilityBecause: 'the default',
        memorySource: 'workingset',
        allowPidKill: false,
        pods: new Map(),
        podsBy: 'path',
        podRules: [],
        runtime: { kind: 'cgroup', endpoint: undefined },
        dockerPods: { by: 'container' },
        besideKubelet: false,
        garbage: {
          containers: 'off',
          containerPolicy: { minimumAgeMs: 0, mostPerOwner: 1 },
          images: 'off',
          marks: { highPercent: 85, lowPercent: 80 },
          imageMinimumAgeMs: 120_000,
          imageMaximumAgeMs: 0,
        },
        kubeletRootDir: '/var/lib/kubelet',
        podLogsDir: '/var/log/pods',
        filesystems: { nodefs: '/var/lib', imagefs: undefined, containerfs: undefined },
        polling: POLL_PACES,
        configFile: undefined,
        pollIntervalMs: 10_000,
        socket: { path: '/run/evictd/evictd.sock', explicit: false },
        stateDir: { path: '/var/lib/evictd', explicit: false },
        dryRun: false,
        logLevel: 'info',
        scheduling: 'rr',
      },
      warnings: [],
      notes: [
        'allocatableMemory.available has no threshold: the pods have no parent of their own',
        'imagefs.available, imagefs.inodesFree: not watched, there is no imagefs without --imagefs-path',
      ],
    });
  });

  it('takes the host for the node where none is given', () => {
    expect(loadSettings({}).settings.nodeCgroup).toBeUndefined();
  });

  it('passes warnings on', () => {
    const values = { '--node-cgroup': ['/node'], '--eviction-hard': [''] };
    expect(loadSettings(values).warnings).toEqual([
      'no eviction threshold is left: nothing will be evicted',
    ]);
  });
});

describe('pod parents', () => {
  it.each([
    [['kubepods'], ['kubepods']],
    [
      ['kubepods.slice/', 'a/b', 'kubepods.slice'],
      ['kubepods.slice', 'a/b'],
    ],
    [['.'], ['.']],
    [
      ['…', 'a b=c,d'],
      ['…', 'a b=c,d'],
    ],
  ])('reads %j', (given, podParents) => {
    expect(settingsOf({ '--pod-parent': given }).podParents).toEqual(podParents);
  });

  it.each([
    ['', /no cgroup can be named ""/],
    ['/kubepods', /starts without "\/"/],
    ['/', /starts without "\/"/],
    ['a//b', /no cgroup can be named ""/],
    ['a/./b', /no cgroup can be named "\."/],
    ['..', /no cgroup can be named "\.\."/],
    ['a/../../b', /no cgroup can be named "\.\."/],
    ['a\0', /no NUL/],
    ['x'.repeat(256), /at most 255 bytes/],
  ])('refuses %j', (given, message) => {
    const error = refusalOf({ '--pod-parent': [given] });
    expect(error).toMatchObject({
      code: 'EVICTD_POD_PARENT',
      place: { source: '--pod-parent', value: given },
    });
    expect(error.message).toMatch(message);
  });
});

describe('allocatableMemory.available', () => {
  const parents = { '--pod-parent': ['kubepods'] };
  const namesOf = (values: FlagValues) =>
    thresholdsOf(values).map(({ signal, kind, value }) => `${kind} ${signal}<${value.text}`);

  it('has a copy of the hard threshold, with its minimum reclaim, where the pods share a parent', () => {
    const thresholds = thresholdsOf({
      ...parents,
      '--eviction-hard': ['memory.available<1Gi'],
      '--eviction-soft': ['memory.available<2Gi'],
      '--eviction-soft-grace-period': ['memory.available=1m'],
      '--eviction-minimum-reclaim': ['memory.available=5%'],
    });
    const [hard, , copy] = thresholds;
    expect(thresholds).toHaveLength(3);
    expect(copy).toEqual({ ...hard, signal: 'allocatableMemory.available' });
  });

  it('has the minimum reclaim of what it is a copy of, and one of its own has its own', () => {
    const reclaims = (values: FlagValues) =>
      thresholdsOf({ ...parents, ...values }).map(({ signal, minimumReclaim }) => [
        signal.split('.')[0],
        minimumReclaim?.text,
      ]);
    const hard = 'memory.available<50Mi';
    const reclaim = '--eviction-minimum-reclaim';
    expect(
      reclaims({ '--eviction-hard': [hard], [reclaim]: ['allocatableMemory.available=1Gi'] }),
    ).toStrictEqual([
      ['memory', undefined],
      ['allocatableMemory', undefined],
    ]);
    const own = [hard, 'allocatableMemory.available<500Mi'];
    expect(
      reclaims({ '--eviction-hard': [own.join(',')], [reclaim]: ['memory.available=1Gi'] }),
    ).toStrictEqual([
      ['memory', '1Gi'],
      ['allocatableMemory', undefined],
    ]);
  });

  it('is there beside one of its own, by the kubelet’s rules', () => {
    const own = ['memory.available<500Mi,allocatableMemory.available<100Mi'];
    const named = namesOf({
      ...parents,
      '--eviction-hard': own,
      '--compatibility': ['kubelet'],
    });
    expect(named).toStrictEqual([
      'hard memory.available<500Mi',
      'hard allocatableMemory.available<100Mi',
      'hard allocatableMemory.available<500Mi',
    ]);
  });

  it('has one of a soft threshold without grace as well, which is a hard one', () => {
    const soft = {
      ...parents,
      '--eviction-hard': ['memory.available<0%'],
      '--eviction-soft': ['memory.available<2Gi'],
    };
    const of = (grace: string) =>
      thresholdsOf({ ...soft, '--eviction-soft-grace-period': [`memory.available=${grace}`] }).map(
        ({ kind, signal, gracePeriodMs }) => [kind, signal, gracePeriodMs],
      );
    expect(of('0s')).toStrictEqual([
      ['soft', 'memory.available', 0],
      ['soft', 'allocatableMemory.available', 0],
    ]);
    expect(of('1ms')).toStrictEqual([['soft', 'memory.available', 1]]);
  });

  it.each<[string, FlagValues, readonly string[]]>([
    [
      'the default',
      parents,
      ['hard memory.available<100Mi', 'hard allocatableMemory.available<100Mi'],
    ],
    [
      'one of its own',
      { ...parents, '--eviction-hard': ['memory.available<1Gi,allocatableMemory.available<2Gi'] },
      ['hard memory.available<1Gi', 'hard allocatableMemory.available<2Gi'],
    ],
    [
      'switched off',
      { ...parents, '--eviction-hard': ['memory.available<1Gi,allocatableMemory.available<0%'] },
      ['hard memory.available<1Gi'],
    ],
    ['no parent', {}, ['hard memory.available<100Mi']],
    ['the node as parent', { '--pod-parent': ['.'] }, ['hard memory.available<100Mi']],
    ['two parents', { '--pod-parent': ['a', 'b'] }, ['hard memory.available<100Mi']],
    ['no hard threshold', { ...parents, '--eviction-hard': [''] }, []],
  ])('with %s', (_, values, expected) => {
    expect(namesOf(values)).toEqual(expected);
  });

  it('says where no copy is made, and warns where its own threshold is never met', () => {
    const note =
      'allocatableMemory.available has no threshold: the pods have no parent of their own';
    expect(notesOf({})).toEqual([note]);
    expect(notesOf(parents)).toEqual([]);
    expect(loadSettings({ '--eviction-hard': [''] }).notes).toEqual([]);
    const own = { '--eviction-hard': ['allocatableMemory.available<1Gi'] };
    expect(warningsOf({ ...own, ...parents })).toEqual([]);
    expect(warningsOf(own)).toEqual([
      '--eviction-hard: allocatableMemory.available "1Gi": never met: the pods have no parent of their own',
    ]);
  });
});

describe('thresholds', () => {
  it('puts hard before soft, both with the signal’s minimum reclaim', () => {
    const minimumReclaim = quantity('10Mi', 10n << 20n);
    expect(
      thresholdsOf({
        '--eviction-soft': ['memory.available<1Gi'],
        '--eviction-soft-grace-period': ['memory.available=1m30s'],
        '--eviction-hard': ['memory.available<5%'],
        '--eviction-minimum-reclaim': ['memory.available=10Mi'],
      }),
    ).toEqual([
      {
        signal: 'memory.available',
        kind: 'hard',
        value: { kind: 'percentage', nanoPercent: 5n * NANO, text: '5%' },
        gracePeriodMs: 0,
        minimumReclaim,
      },
      {
        signal: 'memory.available',
        kind: 'soft',
        value: quantity('1Gi', 1n << 30n),
        gracePeriodMs: 90_000,
        minimumReclaim,
      },
    ]);
  });

  it.each([
    [['memory.available<200Mi']],
    [[' memory.available < 200Mi ']],
    [[',memory.available<200Mi,,']],
    [['', 'memory.available<200Mi']],
    [['memory.available<200Mi', '']],
  ])('reads %j', (hard) => {
    expect(thresholdsOf({ '--eviction-hard': hard })).toMatchObject([
      { kind: 'hard', value: quantity('200Mi', 200n << 20n) },
    ]);
  });

  it.each(['0%', '0.0%', '100%', '100.00%', '-0%'])('%s switches a threshold off', (percentage) => {
    expect(thresholdsOf({ '--eviction-hard': [`memory.available<${percentage}`] })).toEqual([]);
  });

  it.each(['0.000000001%', '99.999999999%', '1n', '9223372036854775807'])(
    '%s leaves a threshold on',
    (value) => {
      expect(thresholdsOf({ '--eviction-hard': [`memory.available<${value}`] })).toHaveLength(1);
    },
  );

  it.each([
    ['0', quantity('0', 0n)],
    ['1', quantity('1', 1n)],
    ['0%', undefined],
    ['100%', undefined],
    ['5%', { kind: 'percentage', nanoPercent: 5n * NANO, text: '5%' }],
  ])('takes a minimum reclaim of %s', (text, minimumReclaim) => {
    const values = { '--eviction-minimum-reclaim': [`memory.available=${text}`] };
    expect(thresholdsOf(values)).toMatchObject([{ minimumReclaim }]);
  });

  it.each([
    ['0', 0],
    ['0s', 0],
    ['1ns', 0.000001],
    ['1000h', 3_600_000_000],
  ])('takes a soft grace period of %s', (text, gracePeriodMs) => {
    const values = {
      '--eviction-soft': ['memory.available<1Gi'],
      '--eviction-soft-grace-period': [`memory.available=${text}`],
    };
    expect(thresholdsOf(values)[1]).toMatchObject({ kind: 'soft', gracePeriodMs });
  });

  const hard = '--eviction-hard';
  const soft = '--eviction-soft';
  const grace = '--eviction-soft-grace-period';
  const reclaim = '--eviction-minimum-reclaim';
  const key = 'memory.available';

  it.each<[OptionName, string, ErrorCode, string | undefined, string, RegExp]>([
    [
      hard,
      `${key}>100Mi`,
      'EVICTD_THRESHOLD',
      undefined,
      `${key}>100Mi`,
      /expected SIGNAL<VALUE, not SIGNAL>VALUE/,
    ],
    [hard, `${key}=100Mi`, 'EVICTD_THRESHOLD', undefined, `${key}=100Mi`, /not SIGNAL=VALUE/],
    [hard, `${key}<=100Mi`, 'EVICTD_THRESHOLD', undefined, `${key}<=100Mi`, /not SIGNAL<=VALUE/],
    [hard, `${key}>=100Mi`, 'EVICTD_THRESHOLD', undefined, `${key}>=100Mi`, /not SIGNAL>=VALUE/],
    [hard, key, 'EVICTD_THRESHOLD', undefined, key, /expected SIGNAL<VALUE$/],
    [hard, ' ', 'EVICTD_THRESHOLD', undefined, ' ', /expected SIGNAL<VALUE$/],
    [hard, `${key}<1Mi, `, 'EVICTD_THRESHOLD', undefined, ' ', /expected SIGNAL<VALUE$/],
    [hard, `${key}<0`, 'EVICTD_THRESHOLD', key, '0', /above zero/],
    [hard, `${key}<-1`, 'EVICTD_THRESHOLD', key, '-1', /above zero/],
    [hard, `${key}<`, 'EVICTD_QUANTITY', key, '', /empty/],
    [hard, `${key}<5 Gi`, 'EVICTD_QUANTITY', key, '5 Gi', /not a quantity/],
    [hard, `${key}<<5Gi`, 'EVICTD_QUANTITY', key, '<5Gi', /not a quantity/],
    [hard, `${key}<1m30s`, 'EVICTD_QUANTITY', key, '1m30s', /not a quantity/],
    [hard, `${key}<2E6024865272343`, 'EVICTD_QUANTITY', key, '2E6024865272343', /exponent/],
    [hard, `${key}<5%%`, 'EVICTD_PERCENTAGE', key, '5%%', /one %/],
    [hard, `${key}<-5%`, 'EVICTD_PERCENTAGE', key, '-5%', /below 0%/],
    [hard, `${key}<101%`, 'EVICTD_PERCENTAGE', key, '101%', /above 100%/],
    [hard, `${key}<NaN%`, 'EVICTD_PERCENTAGE', key, 'NaN%', /decimal number/],
    [hard, `${key}<1e1%`, 'EVICTD_PERCENTAGE', key, '1e1%', /decimal number/],
    [hard, `${key}<1Gi,${key}<2Gi`, 'EVICTD_THRESHOLD', key, '2Gi', /named twice/],
    [hard, `${key}<1Gi,${key}<1Gi`, 'EVICTD_THRESHOLD', key, '1Gi', /named twice/],
    [
      hard,
      'memry.available<1Gi',
      'EVICTD_SIGNAL',
      'memry.available',
      '1Gi',
      /did you mean memory.available\?\); known signals: memory.available/,
    ],
    [
      hard,
      'Memory.available<1Gi',
      'EVICTD_SIGNAL',
      'Memory.available',
      '1Gi',
      /did you mean memory.available/,
    ],
    [
      hard,
      'bogus<1Gi',
      'EVICTD_SIGNAL',
      'bogus',
      '1Gi',
      /^unknown signal; known signals: memory.available, allocatableMemory.available, nodefs/,
    ],
    [hard, '<1Gi', 'EVICTD_THRESHOLD', undefined, '<1Gi', /names no signal/],
    [hard, 'constructor<1Gi', 'EVICTD_SIGNAL', 'constructor', '1Gi', /unknown signal/],
    [soft, `${key}<1Gi`, 'EVICTD_THRESHOLD', key, '1Gi', /needs its grace period/],
    [soft, `${key}>1Gi`, 'EVICTD_THRESHOLD', undefined, `${key}>1Gi`, /not SIGNAL>VALUE/],
    [soft, `${key}<0`, 'EVICTD_THRESHOLD', key, '0', /above zero/],
    [
      grace,
      `${key}<30s`,
      'EVICTD_THRESHOLD',
      undefined,
      `${key}<30s`,
      /expected SIGNAL=VALUE, not SIGNAL<VALUE/,
    ],
    [grace, `${key}==30s`, 'EVICTD_THRESHOLD', undefined, `${key}==30s`, /not SIGNAL==VALUE/],
    [grace, `${key}=30`, 'EVICTD_DURATION', key, '30', /lacks its unit/],
    [grace, `${key}=-1ns`, 'EVICTD_DURATION', key, '-1ns', /shorter than 0s/],
    [grace, `${key}=`, 'EVICTD_DURATION', key, '', /not a duration/],
    [grace, `${key}=1s,${key}=2s`, 'EVICTD_THRESHOLD', key, '2s', /named twice/],
    [grace, 'memory=30s', 'EVICTD_SIGNAL', 'memory', '30s', /unknown signal/],
    [reclaim, `${key}=-1`, 'EVICTD_THRESHOLD', key, '-1', /negative/],
    [reclaim, `${key}=-1%`, 'EVICTD_PERCENTAGE', key, '-1%', /below 0%/],
    [reclaim, `${key}=5gi`, 'EVICTD_QUANTITY', key, '5gi', /not a quantity/],
    [reclaim, `${key}<5Gi`, 'EVICTD_THRESHOLD', undefined, `${key}<5Gi`, /expected SIGNAL=VALUE/],
  ])('%s refuses %j', (flag, text, code, placeKey, value, message) => {
    const error = refusalOf({ [flag]: [text] });
    expect(error).toMatchObject({ code, exitStatus: 2 });
    expect(error.place).toEqual(
      placeKey === undefined ? { source: flag, value } : { source: flag, key: placeKey, value },
    );
    expect(error.message).toMatch(message);
  });

  it.each([
    ['200Mi', '100Mi', true],
    ['200Mi', '200Mi', true],
    ['200Mi', '201Mi', false],
    ['10%', '5%', true],
    ['10%', '11%', false],
    // Only the node's capacity could tell.
    ['200Mi', '5%', false],
    ['5%', '200Mi', false],
  ])('hard at %s, soft at %s: warns %j', (hard, soft, warns) => {
    const warnings = warningsOf({
      '--eviction-hard': [`memory.available<${hard}`],
      '--eviction-soft': [`memory.available<${soft}`],
      '--eviction-soft-grace-period': ['memory.available=1m'],
    });
    expect(warnings).toEqual(
      warns
        ? [
            `--eviction-soft: memory.available "${soft}": never acts before the hard threshold, which is no lower`,
          ]
        : [],
    );
  });

  it('notes that the kubelet’s default leaves the victims of soft thresholds no time', () => {
    const soft = {
      '--eviction-soft': ['memory.available<1Gi'],
      '--eviction-soft-grace-period': ['memory.available=1m'],
    };
    const note =
      '--eviction-max-pod-grace-period is 0: victims of soft thresholds get KILL at once, no TERM';
    expect(loadSettings(soft).notes).toContain(note);
    const longer = { ...soft, '--eviction-max-pod-grace-period': ['30'] };
    expect(loadSettings(longer).notes).not.toContain(note);
    expect(notesOf({})).not.toContain(note);
  });

  it('refuses a signal named twice in two uses of a flag', () => {
    const values = { '--eviction-hard': ['memory.available<1Gi', 'memory.available<2Gi'] };
    expect(refusalOf(values)).toMatchObject({ code: 'EVICTD_THRESHOLD', place: { value: '2Gi' } });
  });

  it('says place, value and reason in one line', () => {
    expect(
      describeError(refusalOf({ '--eviction-hard': ['memory.available<5\u001b[31mGi'] })),
    ).toBe(
      '--eviction-hard: memory.available "5\\u001b[31mGi": not a quantity such as 100Mi, 1.5Gi, 129e6 or 104857600',
    );
  });
});

describe('warnings', () => {
  const used = {
    '--eviction-soft': ['memory.available<1Gi'],
    '--eviction-soft-grace-period': ['memory.available=30s'],
    '--eviction-minimum-reclaim': ['memory.available=10Mi'],
  };

  it('gives none where everything is used', () => {
    expect(loadSettings(used).warnings).toEqual([]);
  });

  it.each<[string, FlagValues, readonly string[]]>([
    [
      'a soft threshold with grace 0s (C07)',
      { ...used, '--eviction-soft-grace-period': ['memory.available=0s'] },
      [
        '--eviction-soft-grace-period: memory.available "0s": ' +
          'with a grace period of 0 the soft threshold acts like a hard one',
      ],
    ],
    [
      'a grace period without soft threshold',
      { '--eviction-soft-grace-period': ['memory.available=30s'] },
      [
        '--eviction-soft-grace-period: memory.available "30s": not used: the signal has no soft threshold',
      ],
    ],
    [
      'a grace period of a soft threshold that is off',
      { ...used, '--eviction-soft': ['memory.available<0%'] },
      [
        '--eviction-soft-grace-period: memory.available "30s": not used: the signal has no soft threshold',
      ],
    ],
    [
      'a minimum reclaim without threshold',
      { '--eviction-hard': [''], '--eviction-minimum-reclaim': ['memory.available=10Mi'] },
      [
        '--eviction-minimum-reclaim: memory.available "10Mi": not used: the signal has no threshold',
        'no eviction threshold is left: nothing will be evicted',
      ],
    ],
    [
      'no threshold',
      { '--eviction-hard': [''] },
      ['no eviction threshold is left: nothing will be evicted'],
    ],
    [
      'only a threshold that is off',
      { '--eviction-hard': ['memory.available<0%'] },
      ['no eviction threshold is left: nothing will be evicted'],
    ],
    [
      'a threshold of 100 %, which may be meant as always met',
      { ...used, '--eviction-hard': ['memory.available<100.0%'] },
      ['--eviction-hard: memory.available "100.0%": 100% means off, as 0% does'],
    ],
  ])('%s', (_, values, warnings) => {
    expect(warningsOf(values)).toEqual(warnings);
  });

  it('takes a soft threshold that is off without grace period', () => {
    expect(thresholdsOf({ '--eviction-soft': ['memory.available<100%'] })).toHaveLength(1);
  });
});

describe('single values', () => {
  it.each<[OptionName, string, object]>([
    ['--eviction-max-pod-grace-period', '60', { policy: { maxPodGracePeriodSeconds: 60 } }],
    ['--eviction-max-pod-grace-period', '-1', { policy: { maxPodGracePeriodSeconds: -1 } }],
    ['--eviction-max-pod-grace-period', '-0', { policy: { maxPodGracePeriodSeconds: 0 } }],
    [
      '--eviction-max-pod-grace-period',
      '2147483647',
      { policy: { maxPodGracePeriodSeconds: 2_147_483_647 } },
    ],
    [
      '--eviction-max-pod-grace-period',
      '-2147483648',
      { policy: { maxPodGracePeriodSeconds: -2_147_483_648 } },
    ],
    [
      '--hard-eviction-grace-period-seconds',
      '0',
      { policy: { hardEvictionGracePeriodSeconds: 0 } },
    ],
    [
      '--hard-eviction-grace-period-seconds',
      '+5',
      { policy: { hardEvictionGracePeriodSeconds: 5 } },
    ],
    ['--eviction-pressure-transition-period', '0s', { policy: { pressureTransitionPeriodMs: 0 } }],
    [
      '--eviction-pressure-transition-period',
      '1000h',
      { policy: { pressureTransitionPeriodMs: 3_600_000_000 } },
    ],
    ['--poll-interval', '50ms', { pollIntervalMs: 50 }],
    ['--poll-interval', '1h', { pollIntervalMs: 3_600_000 }],
    ['--kernel-memcg-notification', 'true', { kernelMemcgNotification: true }],
    ['--kernel-memcg-notification', 'false', { kernelMemcgNotification: false }],
    ['--dry-run', 'true', { dryRun: true }],
    ['--log-level', 'trace', { logLevel: 'trace' }],
    ['--log-level', 'silent', { logLevel: 'silent' }],
    ['--scheduling', 'normal', { scheduling: 'normal' }],
    ['--node-cgroup', 'pods/node', { nodeCgroup: 'pods/node' }],
    ['--socket', '/s', { socket: { path: '/s', explicit: true } }],
    ['--socket', '/run/evictd/evictd.sock', { socket: { explicit: true } }],
    ['--socket', 'none', { socket: undefined }],
    ['--state-dir', '/s', { stateDir: { path: '/s', explicit: true } }],
    ['--state-dir', '/var/lib/evictd', { stateDir: { explicit: true } }],
    ['--state-dir', 'none', { stateDir: undefined }],
    ['--socket', `/${'a'.repeat(106)}`, { socket: { path: `/${'a'.repeat(106)}` } }],
  ])('%s takes %s', (flag, text, expected) => {
    expect(settingsOf({ [flag]: [text] })).toMatchObject(expected);
  });

  it.each<[OptionName, string, ErrorCode]>([
    ['--eviction-max-pod-grace-period', '', 'EVICTD_INTEGER'],
    ['--eviction-max-pod-grace-period', '1.5', 'EVICTD_INTEGER'],
    ['--eviction-max-pod-grace-period', '60s', 'EVICTD_INTEGER'],
    ['--eviction-max-pod-grace-period', '1e3', 'EVICTD_INTEGER'],
    ['--eviction-max-pod-grace-period', '0x10', 'EVICTD_INTEGER'],
    ['--eviction-max-pod-grace-period', ' 60', 'EVICTD_INTEGER'],
    ['--eviction-max-pod-grace-period', '2147483648', 'EVICTD_INTEGER'],
    ['--eviction-max-pod-grace-period', '-2147483649', 'EVICTD_INTEGER'],
    ['--eviction-max-pod-grace-period', '0'.repeat(33), 'EVICTD_INTEGER'],
    ['--hard-eviction-grace-period-seconds', '-1', 'EVICTD_INTEGER'],
    ['--hard-eviction-grace-period-seconds', '2147483648', 'EVICTD_INTEGER'],
    ['--eviction-pressure-transition-period', '-1ns', 'EVICTD_DURATION'],
    ['--eviction-pressure-transition-period', '300', 'EVICTD_DURATION'],
    ['--eviction-pressure-transition-period', '3000000h', 'EVICTD_DURATION'],
    ['--poll-interval', '49.999999ms', 'EVICTD_DURATION'],
    ['--poll-interval', '0', 'EVICTD_DURATION'],
    ['--poll-interval', '1h0.000001ms', 'EVICTD_DURATION'],
    ['--poll-interval', 'fast', 'EVICTD_DURATION'],
    ['--kernel-memcg-notification', 'yes', 'EVICTD_CHOICE'],
    ['--kernel-memcg-notification', '', 'EVICTD_CHOICE'],
    ['--dry-run', 'True', 'EVICTD_CHOICE'],
    ['--log-level', 'INFO', 'EVICTD_CHOICE'],
    ['--log-level', 'verbose', 'EVICTD_CHOICE'],
    ['--scheduling', 'realtime', 'EVICTD_CHOICE'],
    ['--node-cgroup', '', 'EVICTD_NODE_CGROUP'],
    ['--node-cgroup', 'a\0b', 'EVICTD_NODE_CGROUP'],
    ['--node-name', '', 'EVICTD_NODE_NAME'],
    ['--node-name', 'a b', 'EVICTD_NODE_NAME'],
    ['--node-name', 'a\n', 'EVICTD_NODE_NAME'],
    ['--node-name', '-a', 'EVICTD_NODE_NAME'],
    ['--node-name', 'a.', 'EVICTD_NODE_NAME'],
    ['--node-name', 'a'.repeat(254), 'EVICTD_NODE_NAME'],
    ['--socket', '', 'EVICTD_SOCKET_PATH'],
    ['--state-dir', '', 'EVICTD_STATE_DIR'],
    ['--state-dir', 'state', 'EVICTD_STATE_DIR'],
    ['--state-dir', 'None', 'EVICTD_STATE_DIR'],
    ['--state-dir', '/a\0b', 'EVICTD_STATE_DIR'],
    ['--state-dir', `/${'a'.repeat(4095)}`, 'EVICTD_STATE_DIR'],
    ['--socket', 'evictd.sock', 'EVICTD_SOCKET_PATH'],
    ['--socket', 'None', 'EVICTD_SOCKET_PATH'],
    ['--socket', '/run/', 'EVICTD_SOCKET_PATH'],
    ['--socket', '/a\0b', 'EVICTD_SOCKET_PATH'],
    ['--socket', `/${'a'.repeat(107)}`, 'EVICTD_SOCKET_PATH'],
    ['--socket', `/${'ä'.repeat(54)}`, 'EVICTD_SOCKET_PATH'],
  ])('%s refuses %j', (flag, text, code) => {
    expect(refusalOf({ [flag]: [text] })).toMatchObject({
      code,
      exitStatus: 2,
      place: { source: flag, value: text },
    });
  });

  it('lets the last one count, but checks all', () => {
    expect(settingsOf({ '--poll-interval': ['1s', '2s'] })).toMatchObject({
      pollIntervalMs: 2_000,
    });
    expect(refusalOf({ '--poll-interval': ['1', '2s'] })).toMatchObject({ place: { value: '1' } });
  });
});

describe('isSwitchedOn and socketPathFromFlags', () => {
  it('reads switches of other commands', () => {
    expect(isSwitchedOn({}, '--json')).toBe(false);
    expect(isSwitchedOn({ '--json': ['true'] }, '--json')).toBe(true);
    expect(isSwitchedOn({ '--plain': ['true', 'false'] }, '--plain')).toBe(false);
  });

  it('needs a socket', () => {
    expect(socketPathFromFlags({})).toBe('/run/evictd/evictd.sock');
    expect(socketPathFromFlags({ '--socket': ['/s'] })).toBe('/s');
    expect(() => socketPathFromFlags({ '--socket': ['none'] })).toThrow(
      expect.objectContaining({ code: 'EVICTD_SOCKET_PATH' }),
    );
  });
});

it('throws nothing but coded errors with their flag', () => {
  const name = fc.constantFrom(...OPTION_LIST.map((option) => option.name));
  const text = fc.oneof(
    fc.string(),
    fc.stringMatching(/^(memory\.available|pod|)[<=>][0-9.]{0,4}(Mi|%|s|)(,.{0,9})?$/),
  );
  fc.assert(
    fc.property(fc.dictionary(name, fc.array(text, { maxLength: 2 }), { maxKeys: 3 }), (values) => {
      try {
        loadSettings(values, {
          readConfigFile: () => 'apiVersion: evictd.dev/v1alpha1\nkind: EvictdConfiguration\n',
        });
      } catch (error) {
        expect(error).toBeInstanceOf(EvictdError);
        expect(error).toMatchObject({ exitStatus: 2 });
        expect(values).toHaveProperty(String((error as EvictdError).place.source));
      }
    }),
  );
});

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { FlagValues } from '../../src/config/flags.ts';
import { KUBELET_FIELDS } from '../../src/config/kubelet-fields.ts';
import { loadSettings } from '../../src/config/load.ts';
import { FILE, KUBELET, load, OWN } from './support.ts';

const fixture = (name: string): string =>
  new URL(`../fixtures/kubelet/${name}`, import.meta.url).pathname;

/** Files as they are on nodes, with the flags that say the same. */
const FIXTURES: readonly (readonly [file: string, flags: FlagValues])[] = [
  ['kubeadm.yaml', { '--eviction-pressure-transition-period': ['0s'] }],
  [
    'k3s.yaml',
    {
      '--eviction-hard': ['imagefs.available<5%,nodefs.available<5%'],
      '--eviction-minimum-reclaim': ['imagefs.available=10%,nodefs.available=10%'],
      '--eviction-pressure-transition-period': ['5m0s'],
    },
  ],
  [
    'eks.json',
    { '--eviction-hard': ['memory.available<100Mi,nodefs.available<10%,nodefs.inodesFree<5%'] },
  ],
  [
    'every-field.yaml',
    {
      '--eviction-hard': [
        'memory.available<100Mi,nodefs.available<10%,nodefs.inodesFree<5%',
        'imagefs.available<15%,pid.available<10%',
      ],
      '--merge-default-eviction-settings': ['true'],
      '--eviction-soft': ['memory.available<1.5Gi,nodefs.available<15%'],
      '--eviction-soft-grace-period': ['memory.available=1m30s,nodefs.available=2m'],
      '--eviction-pressure-transition-period': ['30s'],
      '--eviction-max-pod-grace-period': ['60'],
      '--eviction-minimum-reclaim': [
        'memory.available=0Mi,nodefs.available=500Mi,imagefs.available=2Gi',
      ],
      '--enforce-node-allocatable': [
        'pods,system-reserved-compressible,kube-reserved-compressible',
      ],
      '--kernel-memcg-notification': ['true'],
      '--pod-logs-dir': ['/var/log/pods/'],
    },
  ],
];

describe('a real KubeletConfiguration', () => {
  it.each(FIXTURES)(
    '%s is taken as it stands: what --compatibility kubelet does',
    (file, flags) => {
      const path = fixture(file);
      const parent = { '--pod-parent': ['kubepods.slice'] };
      const fromFile = loadSettings({ '--config': [path], ...parent });
      const fromFlags = loadSettings({ '--compatibility': ['kubelet'], ...flags, ...parent });
      expect(fromFile.settings).toEqual({
        ...fromFlags.settings,
        compatibilityBecause: `${path} is a KubeletConfiguration`,
        configFile: path,
      });
      expect(fromFile.settings.policy.hardEvictionGracePeriodSeconds).toBe(1);
      expect(fromFile.warnings).toHaveLength(fromFlags.warnings.length);
    },
  );

  it('every-field.yaml has every field that there is today', () => {
    const text = readFileSync(fixture('every-field.yaml'), 'utf8');
    const named = [...text.matchAll(/^([A-Za-z0-9]+):/gm)].map(([, name]) => name);
    const old = ['podManifestPath', 'manifestURL', 'manifestURLHeader', 'podHousekeepingPeriod'];
    expect(KUBELET_FIELDS.filter((name) => !named.includes(name))).toEqual(old);
  });

  it('kubeadm.yaml has the kubelet’s default thresholds, copied for what pods may use together', () => {
    const { settings, warnings } = loadSettings({
      '--config': [fixture('kubeadm.yaml')],
      '--pod-parent': ['kubepods.slice'],
    });
    const named = settings.policy.thresholds.map(
      ({ kind, signal, value }) => `${kind} ${signal}<${value.text}`,
    );
    expect(named).toEqual([
      'hard memory.available<100Mi',
      'hard allocatableMemory.available<100Mi',
      'hard nodefs.available<10%',
      'hard nodefs.inodesFree<5%',
      'hard imagefs.available<15%',
      'hard imagefs.inodesFree<5%',
    ]);
    expect(warnings).toEqual([
      `${fixture('kubeadm.yaml')}:22: evictionPressureTransitionPeriod "0s": means 5m0s to the kubelet`,
    ]);
  });

  it('k3s.yaml has lost the protection of memory, and evictd says so', () => {
    expect(loadSettings({ '--config': [fixture('k3s.yaml')] }).warnings).toEqual([
      expect.stringContaining(
        'memory.available<100Mi, nodefs.inodesFree<5%, imagefs.inodesFree<5%',
      ),
    ]);
  });
});

describe('enforceNodeAllocatable', () => {
  const parent: FlagValues = { '--pod-parent': ['kubepods'] };
  const isCopied = (text: string, flags: FlagValues = {}): boolean =>
    load(text, { ...parent, ...flags }).settings.policy.thresholds.some(
      ({ signal }) => signal === 'allocatableMemory.available',
    );

  it.each([
    ['', true],
    ['enforceNodeAllocatable: [pods]\n', true],
    ['enforceNodeAllocatable: [system-reserved, pods]\n', true],
    ['enforceNodeAllocatable: [kube-reserved, system-reserved]\n', false],
    ['enforceNodeAllocatable: [none]\n', false],
    ['enforceNodeAllocatable: []\n', false],
  ])('%j', (line, expected) => {
    expect(isCopied(`${KUBELET}${line}`)).toBe(expected);
    expect(isCopied(`${OWN}${line}`)).toBe(expected);
  });

  it.each([
    [['pods'], true],
    [['kube-reserved, pods'], true],
    [['kube-reserved', 'pods'], true],
    [['none'], false],
    [[''], false],
  ])('--enforce-node-allocatable %j', (given, expected) => {
    const file = `${OWN}enforceNodeAllocatable: ${expected ? '[]' : '[pods]'}\n`;
    expect(isCopied(file, { '--enforce-node-allocatable': given })).toBe(expected);
  });
});

describe('C06: a transition period of 0s', () => {
  const line = 'evictionPressureTransitionPeriod: 0s\n';

  it('is 5m0s to the kubelet, with a warning', () => {
    const { settings, warnings } = load(`${KUBELET}${line}`);
    expect(settings.policy.pressureTransitionPeriodMs).toBe(300_000);
    expect(warnings).toEqual([
      `${FILE}:3: evictionPressureTransitionPeriod "0s": means 5m0s to the kubelet`,
    ]);
    const flags = {
      '--compatibility': ['kubelet'],
      '--eviction-pressure-transition-period': ['0s'],
    };
    expect(loadSettings(flags)).toMatchObject({
      settings: { policy: { pressureTransitionPeriodMs: 300_000 } },
      warnings: ['--eviction-pressure-transition-period "0s": means 5m0s to the kubelet'],
    });
  });

  it('is 0 by evictd’s own rules', () => {
    const { settings, warnings } = load(`${OWN}${line}`);
    expect(settings.policy.pressureTransitionPeriodMs).toBe(0);
    expect(warnings).toEqual([]);
  });

  it('of more than nothing stands under both', () => {
    for (const head of [KUBELET, OWN]) {
      const { settings } = load(`${head}evictionPressureTransitionPeriod: 1ns\n`);
      expect(settings.policy.pressureTransitionPeriodMs).toBe(0.000001);
    }
  });
});

describe('C07: a soft threshold with a grace period of 0s', () => {
  it.each([
    ['kubelet', KUBELET, 1],
    ['evictd', OWN, 0],
  ])('acts like a hard one under %s, and is warned about', (_, head, seconds) => {
    const { settings, warnings } = load(
      `${head}evictionSoft: {memory.available: 1Gi}\nevictionSoftGracePeriod: {memory.available: 0s}\n`,
    );
    expect(settings.policy).toMatchObject({ hardEvictionGracePeriodSeconds: seconds });
    expect(settings.policy.thresholds[1]).toMatchObject({ kind: 'soft', gracePeriodMs: 0 });
    expect(warnings).toEqual([
      `${FILE}:4: evictionSoftGracePeriod: memory.available "0s": ` +
        'with a grace period of 0 the soft threshold acts like a hard one',
    ]);
  });
});

describe('C09: the grammar of quantities', () => {
  it.each([
    ['129e6', 129_000_000n * 10n ** 9n],
    ['0.5Gi', 536_870_912n * 10n ** 9n],
    ['100m', 10n ** 8n],
    ['1Ei', 2n ** 60n * 10n ** 9n],
    ['9223372036854775807', (2n ** 63n - 1n) * 10n ** 9n],
    ['+5Gi', 5n * 2n ** 30n * 10n ** 9n],
    ['.5Gi', 2n ** 29n * 10n ** 9n],
    ['5.Gi', 5n * 2n ** 30n * 10n ** 9n],
  ])('%s is read by both kinds, exactly', (text, nano) => {
    for (const head of [KUBELET, OWN]) {
      const { settings } = load(`${head}evictionHard: {memory.available: "${text}"}\n`);
      expect(settings.policy.thresholds[0]?.value).toEqual({ kind: 'quantity', nano, text });
    }
  });

  it.each(['1e3Ki', '2E6024865272343', '5 Gi', '5gi', '5KB', ''])(
    '%j is refused by both',
    (text) => {
      for (const head of [KUBELET, OWN]) {
        const line = `${head}evictionHard: {memory.available: "${text}"}\n`;
        expect(() => load(line)).toThrow(expect.objectContaining({ code: 'EVICTD_QUANTITY' }));
      }
    },
  );
});

describe('C10: default thresholds that are dropped', () => {
  const only = 'evictionHard: {memory.available: 200Mi}\n';
  const signalsOf = (text: string, flags: FlagValues = {}) =>
    load(text, flags).settings.policy.thresholds.map(
      ({ signal, value }) => `${signal}<${value.text}`,
    );

  it.each([
    ['kubelet', KUBELET],
    ['evictd', OWN],
  ])('are named in a warning under %s', (_, head) => {
    expect(signalsOf(head + only)).toEqual(['memory.available<200Mi']);
    expect(load(head + only).warnings).toEqual([
      `${FILE}:3: evictionHard: naming some signals drops the default thresholds of the others: ` +
        'nodefs.available<10%, nodefs.inodesFree<5%, imagefs.available<15%, imagefs.inodesFree<5%; ' +
        'mergeDefaultEvictionSettings (--merge-default-eviction-settings) keeps them',
    ]);
  });

  it.each([
    ['the kubelet’s kind', `${KUBELET}${only}mergeDefaultEvictionSettings: true\n`, {}],
    ['evictd’s kind', `${OWN}${only}mergeDefaultEvictionSettings: true\n`, {}],
    ['the flag', KUBELET + only, { '--merge-default-eviction-settings': ['true'] }],
  ])('are kept by mergeDefaultEvictionSettings in %s', (_, text, flags) => {
    expect(signalsOf(text, flags)).toEqual([
      'memory.available<200Mi',
      'nodefs.available<10%',
      'nodefs.inodesFree<5%',
      'imagefs.available<15%',
      'imagefs.inodesFree<5%',
    ]);
    expect(load(text, flags).warnings).toEqual([]);
  });

  it('are not missed where all are named, or none', () => {
    const all =
      'evictionHard: {memory.available: 1Mi, nodefs.available: 0%, nodefs.inodesFree: 0%, ' +
      'imagefs.available: 0%, imagefs.inodesFree: 0%}\n';
    expect(load(OWN + all).warnings).toEqual([]);
    expect(signalsOf(OWN + all)).toEqual(['memory.available<1Mi']);
    const none = 'no eviction threshold is left: nothing will be evicted';
    expect(load(`${OWN}evictionHard: {}\n`).warnings).toEqual([none]);
    expect(loadSettings({ '--eviction-hard': [''] }).warnings).toEqual([none]);
  });
});

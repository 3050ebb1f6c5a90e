import { describe, expect, it } from 'vitest';
import { settingsFromFlags } from '../../src/config/check.ts';
import { optionsOf } from '../../src/config/options.ts';
import { type PolicyTexts, parsePolicy } from '../../src/config/policy-texts.ts';
import { describeError, EvictdError } from '../../src/core/errors.ts';
import { RULE_SETS } from '../../src/core/rules.ts';

const MEMORY = { evictionHard: 'memory.available<100Mi' } as const;

function refusalOf(texts: object): string {
  try {
    parsePolicy(texts);
  } catch (error) {
    if (error instanceof EvictdError) return `${error.code} ${describeError(error)}`;
    throw error;
  }
  throw new Error('not refused');
}

/** Every field, each with another value than its default. */
const ALL: Required<PolicyTexts> = {
  evictionHard: 'memory.available<100Mi,nodefs.available<10%',
  evictionSoft: 'memory.available<300Mi',
  evictionSoftGracePeriod: 'memory.available=1m30s',
  evictionMinimumReclaim: 'memory.available=50Mi',
  mergeDefaultEvictionSettings: true,
  evictionMaxPodGracePeriod: 60,
  evictionPressureTransitionPeriod: '30s',
  hardEvictionGracePeriodSeconds: 5,
  enforceNodeAllocatable: ['pods'],
  compatibility: 'kubelet',
};

describe('parsePolicy', () => {
  it('reads a threshold as a flag has it', () => {
    expect(parsePolicy(MEMORY).policy.thresholds).toEqual([
      {
        signal: 'memory.available',
        kind: 'hard',
        value: { kind: 'quantity', nano: 104_857_600n * 10n ** 9n, text: '100Mi' },
        gracePeriodMs: 0,
        minimumReclaim: undefined,
      },
    ]);
  });

  it('is as evictd run has it by the same flags', () => {
    const flags = {
      '--eviction-hard': ['memory.available<100Mi,nodefs.available<10%'],
      '--eviction-soft': ['memory.available<300Mi'],
      '--eviction-soft-grace-period': ['memory.available=1m30s'],
      '--eviction-minimum-reclaim': ['memory.available=50Mi'],
      '--merge-default-eviction-settings': ['true'],
      '--eviction-max-pod-grace-period': ['60'],
      '--eviction-pressure-transition-period': ['30s'],
      '--hard-eviction-grace-period-seconds': ['5'],
      '--enforce-node-allocatable': ['pods'],
      '--compatibility': ['kubelet'],
      '--pod-parent': ['kubepods'],
    };
    const { policy } = parsePolicy(ALL);
    expect(policy).toEqual(settingsFromFlags(flags).settings.policy);
    expect(policy.thresholds.map(({ kind, signal }) => `${kind} ${signal}`)).toContain(
      'hard allocatableMemory.available',
    );
    expect(policy.rules).toBe(RULE_SETS.kubelet);
    expect(policy.hardEvictionGracePeriodSeconds).toBe(5);
  });

  it('has the defaults of evictd run where nothing is said', () => {
    expect(parsePolicy({})).toEqual({
      policy: settingsFromFlags({}).settings.policy,
      warnings: [],
    });
  });

  it('takes signals as a map, as a KubeletConfiguration has them', () => {
    const evictionSoft = { 'memory.available': '300Mi' };
    const evictionSoftGracePeriod = { 'memory.available': '1m30s' };
    const asMap = parsePolicy({
      evictionHard: { 'memory.available': '100Mi' },
      evictionSoft,
      evictionSoftGracePeriod,
    });
    const asText = parsePolicy({
      ...MEMORY,
      evictionSoft: 'memory.available<300Mi',
      evictionSoftGracePeriod: 'memory.available=1m30s',
    });
    expect(asMap).toEqual(asText);
    expect(asMap.policy.thresholds).toHaveLength(2);
  });

  it('warns where defaults are dropped, and of no flag of the daemon', () => {
    const { warnings } = parsePolicy({ evictionHard: 'allocatableMemory.available<1Gi' });
    expect(warnings).toEqual([
      expect.stringMatching(/^evictionHard: naming some signals drops the default thresholds/),
    ]);
  });

  it('has a field for each flag that simulate takes of a policy', () => {
    const keys = optionsOf('simulate').flatMap(({ key }) => (key === undefined ? [] : [key.name]));
    // What memory.available is made of is whoever's who measures.
    const wanted = keys.filter((key) => key !== 'memorySource');
    expect(Object.keys(ALL).sort()).toEqual([...wanted].sort());
  });

  it.each<[object, string]>([
    [
      { evictionHard: 'memory.available<100Mx' },
      'EVICTD_QUANTITY evictionHard: memory.available "100Mx": not a quantity such as 100Mi, 1.5Gi, ' +
        '129e6 or 104857600',
    ],
    [
      { evictionHard: 'memory.available=1Gi' },
      'EVICTD_THRESHOLD evictionHard "memory.available=1Gi": expected SIGNAL<VALUE, not SIGNAL=VALUE',
    ],
    [{ evictionHard: 5 }, 'EVICTD_CONFIG evictionHard: must be a text or a map of signals'],
    [{ evictionHard: [] }, 'EVICTD_CONFIG evictionHard: must be a text or a map of signals'],
    [
      { evictionHrad: '' },
      'EVICTD_CONFIG evictionHrad: no field of a policy (did you mean evictionHard?)',
    ],
    [{ socket: '/s' }, 'EVICTD_CONFIG socket: no field of a policy'],
    [{ toString: '' }, 'EVICTD_CONFIG toString: no field of a policy'],
    [{ enforceNodeAllocatable: 'pods' }, 'EVICTD_CONFIG enforceNodeAllocatable: must be a list'],
    [{ compatibility: ['kubelet'] }, 'EVICTD_CONFIG compatibility: must be a single value'],
    [{ compatibility: 'kubelt' }, 'EVICTD_CHOICE compatibility "kubelt": '],
    [
      { evictionPressureTransitionPeriod: 30 },
      'EVICTD_DURATION evictionPressureTransitionPeriod "30": ',
    ],
    [{ evictionSoft: 'memory.available<1Gi' }, 'EVICTD_THRESHOLD evictionSoft: memory.available'],
  ])('refuses %j', (texts, said) => {
    expect(refusalOf(texts)).toContain(said);
  });

  it('takes what is undefined for what is not there', () => {
    const texts = { evictionSoft: undefined } as unknown as PolicyTexts;
    expect(parsePolicy({ ...MEMORY, ...texts })).toEqual(parsePolicy(MEMORY));
  });
});

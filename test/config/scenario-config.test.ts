import { describe, expect, it } from 'vitest';
import { type ScenarioConfig, scenarioSettings } from '../../src/config/scenario-config.ts';
import { describeError, EvictdError } from '../../src/core/errors.ts';
import { RULE_SETS } from '../../src/core/rules.ts';
import { softThreshold, threshold, value } from '../support/builders.ts';

const settingsOf = (config: ScenarioConfig) => scenarioSettings(config, {}).settings;
const policyOf = (config: ScenarioConfig) => settingsOf(config).policy;

/** The field is of a type that it must not have. */
const odd = (config: object): ScenarioConfig => config;

describe('scenarioSettings', () => {
  it('of nothing has no threshold: the defaults do not come in', () => {
    expect(policyOf({})).toStrictEqual({
      thresholds: [],
      pressureTransitionPeriodMs: 300_000,
      maxPodGracePeriodSeconds: 0,
      hardEvictionGracePeriodSeconds: 0,
      rules: RULE_SETS.evictd,
      layout: 'single',
      ranksDisk: false,
      reclaims: [],
    });
    expect(scenarioSettings({}, {}).warnings).toStrictEqual([
      'no eviction threshold is left: nothing will be evicted',
    ]);
  });

  it('reads the fields of a KubeletConfiguration', () => {
    const { policy, compatibility } = settingsOf({
      enforceNodeAllocatable: [],
      evictionHard: { 'memory.available': '100Mi' },
      evictionSoft: { 'nodefs.available': '15%' },
      evictionSoftGracePeriod: { 'nodefs.available': '1m30s' },
      evictionMinimumReclaim: { 'memory.available': '5%' },
      evictionPressureTransitionPeriod: '2.5m',
      evictionMaxPodGracePeriod: -1,
      hardEvictionGracePeriodSeconds: 3,
    });
    expect(compatibility).toBe('evictd');
    expect(policy).toMatchObject({
      pressureTransitionPeriodMs: 150_000,
      maxPodGracePeriodSeconds: -1,
      hardEvictionGracePeriodSeconds: 3,
    });
    expect(policy.thresholds).toStrictEqual([
      threshold({ minimumReclaim: value('5%') }),
      softThreshold({ signal: 'nodefs.available', value: value('15%'), gracePeriodMs: 90_000 }),
    ]);
  });

  it.each<[string, readonly string[] | undefined, readonly string[]]>([
    ['left out', undefined, ['memory.available', 'allocatableMemory.available']],
    ['pods', ['pods'], ['memory.available', 'allocatableMemory.available']],
    [
      'pods and more',
      ['pods', 'kube-reserved'],
      ['memory.available', 'allocatableMemory.available'],
    ],
    ['something else', ['kube-reserved'], ['memory.available']],
    ['none', ['none'], ['memory.available']],
    ['nothing', [], ['memory.available']],
  ])('enforceNodeAllocatable %s: hard memory thresholds are copied or not', (_, list, signals) => {
    const policy = policyOf({
      evictionHard: { 'memory.available': '100Mi' },
      ...(list === undefined ? {} : { enforceNodeAllocatable: list }),
    });
    expect(policy.thresholds.map(({ signal }) => signal)).toStrictEqual(signals);
  });

  it('by the kubelet’s rules has its defaults', () => {
    const { policy, compatibility } = settingsOf({
      compatibility: 'kubelet',
      evictionPressureTransitionPeriod: '0s',
    });
    expect(compatibility).toBe('kubelet');
    expect(policy).toMatchObject({
      rules: RULE_SETS.kubelet,
      hardEvictionGracePeriodSeconds: 1,
      pressureTransitionPeriodMs: 300_000,
    });
    expect(policyOf({ evictionPressureTransitionPeriod: '0s' })).toMatchObject({
      pressureTransitionPeriodMs: 0,
    });
  });

  it('reads percentages by the rules that hold', () => {
    const config: ScenarioConfig = { evictionHard: { 'nodefs.available': '1e1%' } };
    const [one] = policyOf({ ...config, compatibility: 'kubelet' }).thresholds;
    expect(one?.value).toMatchObject({ kind: 'fraction', fraction: Math.fround(0.1) });
    expect(() => settingsOf(config)).toThrow(
      expect.objectContaining({ code: 'EVICTD_PERCENTAGE' }),
    );
  });

  it('keeps the defaults of other signals where that is asked for, and warns where they are lost', () => {
    const evictionHard = { 'memory.available': '200Mi' };
    const merged = policyOf({ evictionHard, mergeDefaultEvictionSettings: true });
    expect(merged.thresholds.map(({ signal }) => signal)).toContain('nodefs.available');
    const { settings, warnings } = scenarioSettings({ evictionHard }, {});
    expect(settings.policy.thresholds.map(({ signal }) => signal)).not.toContain(
      'nodefs.available',
    );
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatch(/^evictionHard: .*drops the default thresholds.*nodefs\.available/);
  });

  it('reads the source of memory', () => {
    expect(settingsOf({ memorySource: 'memavailable' }).memorySource).toBe('memavailable');
    expect(settingsOf({}).memorySource).toBe('workingset');
  });

  it('what is null is left out', () => {
    const nothing = Object.fromEntries(
      [
        ...['evictionPressureTransitionPeriod', 'evictionMaxPodGracePeriod', 'compatibility'],
        ...['hardEvictionGracePeriodSeconds', 'memorySource', 'mergeDefaultEvictionSettings'],
        ...['evictionHard', 'evictionSoft', 'evictionSoftGracePeriod', 'evictionMinimumReclaim'],
        'enforceNodeAllocatable',
      ].map((field) => [field, null]),
    );
    expect(settingsOf(odd(nothing))).toStrictEqual(settingsOf({}));
  });

  it('flags hold in place of the file, signal by signal as they are given', () => {
    const config: ScenarioConfig = {
      evictionHard: { 'memory.available': '100Mi', 'pid.available': '100' },
      evictionMaxPodGracePeriod: 60,
      enforceNodeAllocatable: [],
    };
    const { policy } = scenarioSettings(config, {
      '--eviction-hard': ['memory.available<300Mi'],
      '--compatibility': ['kubelet'],
    }).settings;
    expect(policy.thresholds).toStrictEqual([threshold({ value: value('300Mi') })]);
    expect(policy).toMatchObject({ maxPodGracePeriodSeconds: 60, rules: RULE_SETS.kubelet });
  });

  it.each<[string, ScenarioConfig, string, string]>([
    // what, the configuration, the code, the place in its text
    [
      'an unknown signal',
      { evictionHard: { 'memory.avail': '1Gi' } },
      'EVICTD_SIGNAL',
      'evictionHard: memory.avail',
    ],
    [
      'no quantity',
      { evictionHard: { 'memory.available': '5 Gi' } },
      'EVICTD_QUANTITY',
      'evictionHard: memory.available',
    ],
    [
      'a quantity of zero',
      { evictionHard: { 'memory.available': '0' } },
      'EVICTD_THRESHOLD',
      'evictionHard: memory.available',
    ],
    [
      'a negative quantity',
      { evictionSoft: { 'memory.available': '-1Gi' } },
      'EVICTD_THRESHOLD',
      'evictionSoft: memory.available',
    ],
    [
      'more than all',
      { evictionHard: { 'nodefs.available': '101%' } },
      'EVICTD_PERCENTAGE',
      'evictionHard: nodefs.available',
    ],
    [
      'a number in place of a text',
      odd({ evictionHard: { 'pid.available': 100 } }),
      'EVICTD_CONFIG',
      'evictionHard: pid.available',
    ],
    [
      'null in place of a text',
      odd({ evictionMinimumReclaim: { 'pid.available': null } }),
      'EVICTD_CONFIG',
      'evictionMinimumReclaim: pid.available',
    ],
    [
      'soft without a grace',
      { evictionSoft: { 'memory.available': '1Gi' } },
      'EVICTD_THRESHOLD',
      'evictionSoft: memory.available',
    ],
    [
      'a grace that is no duration',
      {
        evictionSoft: { 'memory.available': '1Gi' },
        evictionSoftGracePeriod: { 'memory.available': '30' },
      },
      'EVICTD_DURATION',
      'evictionSoftGracePeriod: memory.available',
    ],
    [
      'a negative reclaim',
      {
        evictionHard: { 'memory.available': '1Gi' },
        evictionMinimumReclaim: { 'memory.available': '-1' },
      },
      'EVICTD_THRESHOLD',
      'evictionMinimumReclaim: memory.available',
    ],
    [
      'a period that is none',
      { evictionPressureTransitionPeriod: '5' },
      'EVICTD_DURATION',
      'evictionPressureTransitionPeriod',
    ],
    [
      'a negative period',
      { evictionPressureTransitionPeriod: '-5m' },
      'EVICTD_DURATION',
      'evictionPressureTransitionPeriod',
    ],
    [
      'seconds that are no whole number',
      { evictionMaxPodGracePeriod: 1.5 },
      'EVICTD_INTEGER',
      'evictionMaxPodGracePeriod',
    ],
    [
      'seconds beyond 32 bits',
      { evictionMaxPodGracePeriod: 2 ** 31 },
      'EVICTD_INTEGER',
      'evictionMaxPodGracePeriod',
    ],
    [
      'a negative hard grace',
      { hardEvictionGracePeriodSeconds: -1 },
      'EVICTD_INTEGER',
      'hardEvictionGracePeriodSeconds',
    ],
    ['other rules', { compatibility: 'docker' }, 'EVICTD_CHOICE', 'compatibility'],
    ['another source', { memorySource: 'guess' }, 'EVICTD_CHOICE', 'memorySource'],
    [
      'another enforcement',
      { enforceNodeAllocatable: ['pods', 'all'] },
      'EVICTD_CHOICE',
      'enforceNodeAllocatable',
    ],
    [
      'none beside another',
      { enforceNodeAllocatable: ['pods', 'none'] },
      'EVICTD_CHOICE',
      'enforceNodeAllocatable',
    ],
  ])('refuses %s where it stands', (_, config, code, place) => {
    const refused = ((): unknown => {
      try {
        return settingsOf(config);
      } catch (error) {
        return error;
      }
    })();
    expect(refused).toBeInstanceOf(EvictdError);
    expect(refused).toMatchObject({ code });
    expect(describeError(refused as EvictdError)).toMatch(
      new RegExp(`^${place.replaceAll('.', '\\.')}`),
    );
  });
});

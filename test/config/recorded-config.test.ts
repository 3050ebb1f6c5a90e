import { describe, expect, it } from 'vitest';
import { settingsFromFlags } from '../../src/config/check.ts';
import type { FlagValues } from '../../src/config/flags.ts';
import { recordedConfig } from '../../src/config/recorded-config.ts';
import { scenarioSettings } from '../../src/config/scenario-config.ts';

const recorded = (flags: FlagValues) => recordedConfig(settingsFromFlags(flags).settings);

const FLAGS = {
  '--pod-parent': ['kubepods'],
  '--eviction-hard': ['memory.available<10%,pid.available<5'],
  '--eviction-soft': ['memory.available<20%'],
  '--eviction-soft-grace-period': ['memory.available=1m30s'],
  '--eviction-minimum-reclaim': ['memory.available=50Mi'],
} as const satisfies FlagValues;

describe('a recorded configuration', () => {
  it.each([
    { '--compatibility': ['evictd'] },
    { '--compatibility': ['kubelet'] },
    { '--compatibility': ['kubelet'], '--hard-eviction-grace-period-seconds': ['0'] },
    { '--compatibility': ['kubelet'], '--eviction-pressure-transition-period': ['0s'] },
    { '--compatibility': ['evictd'], '--eviction-pressure-transition-period': ['0s'] },
    { '--compatibility': ['evictd'], '--hard-eviction-grace-period-seconds': ['1'] },
  ] as const satisfies readonly FlagValues[])('read again is the same policy: %o', (flags) => {
    const { policy } = settingsFromFlags({ ...FLAGS, ...flags }).settings;
    expect(scenarioSettings(recorded({ ...FLAGS, ...flags }), {}).settings.policy).toEqual(policy);
  });

  it.each([
    ['evictd', '0', undefined],
    ['evictd', '1', 1],
    ['kubelet', '0', 0],
    ['kubelet', '1', undefined],
  ] as const)(
    'by the rules of %s names a grace of %s s unless it is the default',
    (of, given, named) => {
      const grace = { '--hard-eviction-grace-period-seconds': [given] };
      const config = recorded({ '--compatibility': [of], ...grace });
      expect(config.hardEvictionGracePeriodSeconds).toBe(named);
    },
  );

  it.each([
    ['evictd', 'kubelet', 1],
    ['kubelet', 'evictd', 0],
  ] as const)('of %s by the rules of %s has the grace of these: %i s', (of, by, seconds) => {
    const config = recorded({ '--compatibility': [of] });
    const { policy } = scenarioSettings(config, { '--compatibility': [by] }).settings;
    expect(policy.hardEvictionGracePeriodSeconds).toBe(seconds);
    // The other default that is the rule set's business is the same in both.
    expect(policy.pressureTransitionPeriodMs).toBe(300_000);
  });
});

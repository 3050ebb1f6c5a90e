import { describe, expect, it } from 'vitest';
import { settingsFromFlags } from '../../src/config/check.ts';
import type { FlagValues } from '../../src/config/flags.ts';
import { loadSettings } from '../../src/config/load.ts';
import { describeError, EvictdError } from '../../src/core/errors.ts';
import { FILE, KUBELET, OWN } from './support.ts';

const CRI = { '--runtime': ['cri'] };

const refusal = (load: () => unknown): string => {
  try {
    load();
  } catch (error) {
    if (error instanceof EvictdError) return `${error.code} ${describeError(error)}`;
    throw error;
  }
  return 'taken';
};

describe('what nobody uses', () => {
  it.each<[FlagValues, readonly string[]]>([
    [{}, []],
    [CRI, []],
    [{ ...CRI, '--image-gc': ['pressure'] }, ['images']],
    [{ ...CRI, '--image-gc': ['on'], '--container-gc': ['on'] }, ['containers', 'images']],
    [{ '--runtime': ['docker'], '--container-gc': ['pressure'] }, ['containers']],
    [{ '--runtime': ['auto'], '--container-gc': ['pressure'] }, ['containers']],
  ])('%j: %j can be collected before a pod goes', (flags, expected) => {
    expect(settingsFromFlags(flags).settings.policy.reclaims).toStrictEqual(expected);
  });

  it('has marks, ages and a number', () => {
    const flags = {
      ...CRI,
      '--image-gc': ['on'],
      '--container-gc': ['pressure'],
      '--image-gc-high-threshold': ['90'],
      '--image-gc-low-threshold': ['0'],
      '--image-minimum-gc-age': ['1m'],
      '--image-maximum-gc-age': ['72h'],
      '--container-gc-minimum-age': ['10s'],
      '--container-gc-max-per-pod': ['-1'],
    };
    expect(settingsFromFlags(flags).settings.garbage).toStrictEqual({
      containers: 'pressure',
      containerPolicy: { minimumAgeMs: 10_000, mostPerOwner: -1 },
      images: 'on',
      marks: { highPercent: 90, lowPercent: 0 },
      imageMinimumAgeMs: 60_000,
      imageMaximumAgeMs: 259_200_000,
    });
  });

  it.each<[FlagValues, string]>([
    [
      { '--image-gc': ['on'] },
      'EVICTD_CHOICE --image-gc "on": takes --runtime cri, docker or auto',
    ],
    [
      { '--container-gc': ['pressure'] },
      'EVICTD_CHOICE --container-gc "pressure": takes --runtime cri, docker or auto',
    ],
    [
      { '--runtime-endpoint': ['unix:///run/x.sock'] },
      'EVICTD_CHOICE --runtime-endpoint "unix:///run/x.sock": takes --runtime cri, docker or auto',
    ],
    [
      { ...CRI, '--docker-pods': ['compose'] },
      'EVICTD_CHOICE --docker-pods "compose": takes --runtime docker or auto',
    ],
    [
      { ...CRI, '--image-gc': ['yes'] },
      'EVICTD_CHOICE --image-gc "yes": none of off, pressure, on',
    ],
    [
      { '--image-gc-high-threshold': ['101'] },
      'EVICTD_INTEGER --image-gc-high-threshold "101": not a whole number from 0 to 100',
    ],
    [
      { '--image-gc-low-threshold': ['85%'] },
      'EVICTD_INTEGER --image-gc-low-threshold "85%": not a whole number from 0 to 100',
    ],
    [
      { '--image-gc-low-threshold': ['85'] },
      'EVICTD_INTEGER --image-gc-low-threshold "85": not below the high threshold, 85',
    ],
    [
      { '--image-gc-high-threshold': ['80'] },
      'EVICTD_INTEGER --image-gc-low-threshold "80": not below the high threshold, 80',
    ],
    [
      { '--image-minimum-gc-age': ['-1s'] },
      'EVICTD_DURATION --image-minimum-gc-age "-1s": shorter than 0s',
    ],
    [
      { '--image-maximum-gc-age': ['2m'] },
      'EVICTD_DURATION --image-maximum-gc-age "2m0s": not longer than the minimum age, 2m0s',
    ],
    [
      { '--container-gc-minimum-age': ['soon'] },
      'EVICTD_DURATION --container-gc-minimum-age "soon": not a duration such as 30s, 1m30s or 500ms',
    ],
    [
      { '--container-gc-max-per-pod': ['1.5'] },
      'EVICTD_INTEGER --container-gc-max-per-pod "1.5": not a whole number from -2147483648 to 2147483647',
    ],
  ])('%j: %s', (flags, expected) => {
    expect(refusal(() => settingsFromFlags(flags))).toBe(expected);
  });
});

describe('in a file', () => {
  const load = (text: string, flags: FlagValues = {}) =>
    loadSettings({ '--config': [FILE], ...flags }, { readConfigFile: () => text });

  it('a KubeletConfiguration gives marks and ages, and switches nothing on', () => {
    const text =
      `${KUBELET}imageGCHighThresholdPercent: 70\nimageGCLowThresholdPercent: 60\n` +
      'imageMinimumGCAge: 0s\nimageMaximumGCAge: 1h\n';
    const { settings, warnings } = load(text);
    expect(settings.garbage).toMatchObject({
      containers: 'off',
      images: 'off',
      marks: { highPercent: 70, lowPercent: 60 },
      imageMinimumAgeMs: 120_000,
      imageMaximumAgeMs: 3_600_000,
    });
    expect(warnings).toStrictEqual([]);
    const on = load(text, { ...CRI, '--image-gc': ['on'] });
    expect(on.settings.garbage.images).toBe('on');
    expect(on.warnings).toStrictEqual([
      `${FILE}:5: imageMinimumGCAge "0s": means 2m0s to the kubelet`,
    ]);
  });

  it('an EvictdConfiguration says all of it; 0 is 0', () => {
    const { settings } = load(
      `${OWN}runtime: docker\nimageGC: on\ncontainerGC: off\nimageMinimumGCAge: 0s\n`,
    );
    expect(settings.garbage).toMatchObject({
      containers: 'off',
      images: 'on',
      imageMinimumAgeMs: 0,
    });
  });

  it.each([
    ['imageGC: "on"', 'EVICTD_CHOICE', ':3: imageGC "on": takes --runtime'],
    ['imageGC: true', 'EVICTD_CONFIG', ':3: imageGC "true": must be a text'],
    [
      'imageGCHighThresholdPercent: 80',
      'EVICTD_INTEGER',
      '--image-gc-low-threshold "80": not below',
    ],
    [
      'imageGCLowThresholdPercent: "80"',
      'EVICTD_CONFIG',
      ':3: imageGCLowThresholdPercent "80": must be',
    ],
    ['imageMaximumGCAge: 5s', 'EVICTD_DURATION', ':3: imageMaximumGCAge "5s": not longer than'],
  ])('%s: %s', (line, code, expected) => {
    const said = refusal(() => load(`${OWN}${line}\n`));
    expect(said).toContain(code);
    expect(said).toContain(expected);
  });
});

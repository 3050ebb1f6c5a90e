import { describe, expect, it } from 'vitest';
import type { KubernetesPod, PodStats } from '../../src/core/kubernetes.ts';
import type { FilesystemLayout } from '../../src/core/layout.ts';
import { podSpec } from '../../src/core/pod-spec.ts';
import { RULE_SETS } from '../../src/core/rules.ts';
import { exceededStorageLimit } from '../../src/core/storage-limits.ts';
import { GI, MI } from '../support/builders.ts';
import { container, containerStats, kubernetesPod, podStats } from '../support/kubernetes.ts';

type Spec = KubernetesPod['spec'];
type Stats = Omit<PodStats, 'podRef'>;

const STORAGE = 'ephemeral-storage';

const exceeded = (
  spec: Spec,
  stats: Stats | undefined,
  layout: FilesystemLayout = 'single',
  rules = RULE_SETS.evictd,
) =>
  exceededStorageLimit(
    podSpec(kubernetesPod('web', spec), rules),
    stats && podStats('web', stats),
    layout,
    rules,
  );

const cache = (sizeLimit: string | number | null): Spec => ({
  volumes: [{ name: 'cache', emptyDir: { sizeLimit } }],
});
const cacheUses = (usedBytes: number | null): Stats => ({ volume: [{ name: 'cache', usedBytes }] });
const limited = (limit: string): Spec => ({
  containers: [container('main', {}, { [STORAGE]: limit })],
});

describe('exceededStorageLimit', () => {
  it.each<[string, Spec, Stats | undefined, string | undefined]>([
    [
      'an emptyDir a byte over',
      cache('1Gi'),
      cacheUses(GI + 1),
      'Usage of EmptyDir volume "cache" exceeds the limit "1Gi". ',
    ],
    ['an emptyDir at its limit', cache('1Gi'), cacheUses(GI), undefined],
    [
      'a limit as a number, canonical in the message',
      cache(1_000_000),
      cacheUses(1_000_001),
      'Usage of EmptyDir volume "cache" exceeds the limit "1M". ',
    ],
    ['a limit of 0 is none', cache('0'), cacheUses(GI), undefined],
    ['a negative limit is none', cache('-1'), cacheUses(GI), undefined],
    ['no limit', cache(null), cacheUses(GI), undefined],
    ['of no emptyDir', { volumes: [{ name: 'cache', hostPath: {} }] }, cacheUses(GI), undefined],
    // C18: the kubelet ends here.
    ['a volume whose use is not told', cache('1Gi'), cacheUses(null), undefined],
    ['the same, left out', cache('1Gi'), { volume: [{ name: 'cache' }] }, undefined],
    [
      'a volume without stats',
      cache('1Gi'),
      { volume: [{ name: 'x', usedBytes: 2 * GI }] },
      undefined,
    ],
    ['no volumes in the stats', cache('1Gi'), { volume: null }, undefined],
    ['a pod without stats', cache('1Gi'), undefined, undefined],
    [
      'two stats of one name: the last counts',
      cache('1Gi'),
      {
        volume: [
          { name: 'cache', usedBytes: 1 },
          { name: 'cache', usedBytes: 2 * GI },
        ],
      },
      'Usage of EmptyDir volume "cache" exceeds the limit "1Gi". ',
    ],
    [
      'the first volume that exceeds is named',
      {
        volumes: [
          { name: 'a', emptyDir: { sizeLimit: '1Gi' } },
          { name: 'b', emptyDir: { sizeLimit: '1Mi' } },
          { name: 'c', emptyDir: { sizeLimit: '2Mi' } },
        ],
      },
      { volume: ['c', 'b', 'a'].map((name) => ({ name, usedBytes: 3 * MI })) },
      'Usage of EmptyDir volume "b" exceeds the limit "1Mi". ',
    ],
    [
      'the pod over the sum of its containers',
      {
        containers: [
          container('a', {}, { [STORAGE]: '1Gi' }),
          container('b', {}, { [STORAGE]: '512Mi' }),
        ],
      },
      { [STORAGE]: { usedBytes: 1536 * MI + 1 } },
      'Pod ephemeral local storage usage exceeds the total limit of containers 1536Mi. ',
    ],
    ['the pod at it', limited('1Gi'), { [STORAGE]: { usedBytes: GI } }, undefined],
    ['its use is not told', limited('1Gi'), { [STORAGE]: {} }, undefined],
    ['it is null', limited('1Gi'), { [STORAGE]: null }, undefined],
    [
      'no limit of it',
      { containers: [container('a')] },
      { [STORAGE]: { usedBytes: GI } },
      undefined,
    ],
    [
      'a container over its limit, by layer and logs together',
      limited('100Mi'),
      { containers: [containerStats('main', { rootfs: 60 * MI, logs: 40 * MI + 1 })] },
      'Container main exceeded its local ephemeral storage limit "100Mi". ',
    ],
    [
      'a container at it',
      limited('100Mi'),
      { containers: [containerStats('main', { rootfs: 60 * MI, logs: 40 * MI })] },
      undefined,
    ],
    [
      'its logs alone',
      limited('1Mi'),
      { containers: [containerStats('main', { logs: MI + 1 })] },
      'Container main exceeded its local ephemeral storage limit "1Mi". ',
    ],
    ['nothing is told of it', limited('1Mi'), { containers: [{ name: 'main' }] }, undefined],
    [
      'what is null is not known',
      limited('1Mi'),
      { containers: [{ name: 'main', rootfs: null, logs: { usedBytes: null } }] },
      undefined,
    ],
    [
      'a container without a limit beside one',
      limited('1Mi'),
      { containers: [containerStats('other', { rootfs: GI })] },
      undefined,
    ],
    ['no containers in the stats', limited('1Mi'), { containers: null }, undefined],
    ['nothing is limited', {}, { [STORAGE]: { usedBytes: GI } }, undefined],
  ])('%s', (_, spec, stats, expected) => {
    expect(exceeded(spec, stats)).toBe(expected);
    expect(exceeded(spec, stats, 'single', RULE_SETS.kubelet)).toBe(expected);
  });

  it('looks at volumes first, then at the pod, then at its containers', () => {
    const spec: Spec = { ...cache('1Mi'), ...limited('1Mi') };
    const volume = cacheUses(GI);
    const pod: Stats = { [STORAGE]: { usedBytes: GI } };
    const containers: Stats = { containers: [containerStats('main', { rootfs: GI })] };
    expect(exceeded(spec, { ...volume, ...pod, ...containers })).toMatch(/^Usage of EmptyDir/);
    expect(exceeded(spec, { ...pod, ...containers })).toMatch(/^Pod ephemeral/);
    expect(exceeded(spec, containers)).toMatch(/^Container main/);
  });

  it.each<[FilesystemLayout, keyof typeof RULE_SETS, boolean]>([
    // C29 (k/k#99280): the kubelet looks at logs only.
    ['single', 'kubelet', true],
    ['dedicatedImagefs', 'kubelet', false],
    ['splitImagefs', 'kubelet', false],
    ['single', 'evictd', true],
    ['dedicatedImagefs', 'evictd', true],
    ['splitImagefs', 'evictd', true],
  ])('with %s by the rules of %s the writable layer counts: %s', (layout, rules, counts) => {
    const stats: Stats = { containers: [containerStats('main', { rootfs: 5 * GI, logs: MI })] };
    expect(exceeded(limited('1Gi'), stats, layout, RULE_SETS[rules]) !== undefined).toBe(counts);
    const logs: Stats = { containers: [containerStats('main', { logs: GI + 1 })] };
    expect(exceeded(limited('1Gi'), logs, layout, RULE_SETS[rules])).toBeDefined();
  });
});

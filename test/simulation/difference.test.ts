import { describe, expect, it } from 'vitest';
import { difference, tellDifference } from '../../src/simulation/difference.ts';
import { simulate } from '../../src/simulation/engine.ts';
import { GI, MI } from '../support/builders.ts';
import { scenario, scenarioPod, shortage, tick } from '../support/stories.ts';

const LATER = {
  '--eviction-soft': ['memory.available<200Mi'],
  '--eviction-soft-grace-period': ['memory.available=1m'],
} as const;

describe('tellDifference', () => {
  it('shows both outcomes, marks what differs and says what would have happened', () => {
    expect(tellDifference(shortage(), LATER).split('\n')).toEqual([
      'shortage: Memory runs short of a soft threshold, then of a hard one.',
      '',
      '          as configured                                    | with --eviction-soft=memory.available<200Mi',
      '                                                           | --eviction-soft-grace-period=memory.available=1m',
      '0s        memory.available 2Gi',
      '          calm                                             | calm',
      '10s       memory.available 400Mi',
      '          MemoryPressure                                   ≠ calm',
      '1m10s     memory.available 300Mi',
      '          MemoryPressure                                   ≠ calm',
      '          evicts default/batch, grace 10s                  ≠',
      '1m20s     memory.available 60Mi',
      '          MemoryPressure                                   | MemoryPressure',
      '          evicts default/web, grace 1s                     ≠ evicts default/batch, grace 1s',
      '1m30s     memory.available 3Gi',
      '          MemoryPressure                                   | MemoryPressure',
      '3m0s      no summary',
      '          MemoryPressure                                   | MemoryPressure',
      '3m10s     memory.available 3Gi',
      '          calm                                             | calm',
      '',
      'what would have happened with --eviction-soft=memory.available<200Mi',
      '--eviction-soft-grace-period=memory.available=1m: default/batch is evicted at 1m20s, not at 1m10s; default/web',
      'stays; MemoryPressure holds in 3 of 7 rounds, not 5',
      '',
    ]);
  });

  it('marks nothing where nothing differs', () => {
    const text = tellDifference(shortage(), { '--eviction-max-pod-grace-period': ['31'] });
    expect(text).not.toContain('≠');
    expect(text).toMatch(/31: the same\n$/);
  });

  it('marks a configuration that is none', () => {
    const text = tellDifference(shortage(), { '--eviction-soft-grace-period': [''] });
    expect(text).toMatch(/^ +≠ configuration error: .*$/m);
    expect(text).toMatch(/: nothing, it is no configuration\n$/);
  });

  it('prints nothing that could drive a terminal', () => {
    const text = tellDifference({ ...shortage(), description: '\u001b[31m' }, LATER);
    expect(text).toContain('\\u001b[31m');
    expect(text).not.toContain('\u001b');
  });
});

describe('difference', () => {
  const short = scenario({
    pods: [scenarioPod('web'), scenarioPod('db', { priority: 5 })],
    ticks: [
      tick('0s', { availableBytes: 150 * MI }, { admit: [scenarioPod('new')] }),
      tick('10s', { availableBytes: 50 * MI, uses: { web: GI, db: MI } }),
      tick('20s', { availableBytes: GI, uses: {} }),
    ],
  });
  const said = (flags: Parameters<typeof tellDifference>[1], of = short) =>
    difference(simulate(of), simulate(of, { flags }));

  it.each<[string, Parameters<typeof tellDifference>[1]]>([
    ['the same', { '--compatibility': ['evictd'] }],
    ['default/web has a grace of 1s, not 0s', { '--compatibility': ['kubelet'] }],
    [
      'default/web stays; MemoryPressure holds in 0 of 3 rounds, not 2',
      { '--eviction-hard': ['memory.available<10Mi'] },
    ],
    [
      'default/web is evicted at 0s, not at 10s; default/db is evicted at 10s; ' +
        'MemoryPressure holds in 3 of 3 rounds, not 2; default/new is refused at 0s',
      { '--eviction-hard': ['memory.available<200Mi'] },
    ],
    ['nothing, it is no configuration', { '--eviction-hard': ['memory.available<x'] }],
  ])('is: %s', (expected, flags) => {
    expect(said(flags)).toBe(expected);
  });

  it('counts collections', () => {
    const fs = { availableBytes: GI, capacityBytes: 100 * GI, inodesFree: 1, inodes: 2 };
    const full = scenario({
      config: {},
      pods: [],
      ticks: [{ at: '0s', summary: { node: { fs }, pods: [] } }],
    });
    expect(said({ '--eviction-hard': ['nodefs.available<2Gi'] }, full)).toBe(
      'DiskPressure holds in 1 of 1 rounds, not 0; containers are collected in 1 of 1 rounds, not 0; ' +
        'images are collected in 1 of 1 rounds, not 0',
    );
  });

  it('is of a configuration that is right at last', () => {
    const broken = { ...short, config: { evictionHard: { 'memory.available': 'x' } } };
    expect(said({ '--eviction-hard': [''] }, broken)).toBe('it would have run at all');
  });
});

import { describe, expect, it } from 'vitest';
import { tellStory } from '../../src/simulation/story.ts';
import { GI, MI } from '../support/builders.ts';
import { scenario, scenarioPod, shortage, summary, tick } from '../support/stories.ts';

const story = (...args: Parameters<typeof scenario>) =>
  tellStory(scenario(...args), { flags: {}, explain: false });

describe('tellStory', () => {
  it('has a line for each round, with gauge, conditions, decision and reason', () => {
    expect(tellStory(shortage(), { flags: {}, explain: false }).split('\n')).toEqual([
      'shortage: Memory runs short of a soft threshold, then of a hard one.',
      "the kubelet's rules, transition period 1m0s  hard memory.available<100Mi",
      'soft memory.available<500Mi for 1m0s  hard allocatableMemory.available<100Mi',
      '  warning: evictionHard: naming some signals drops the default thresholds of the others:',
      '  nodefs.available<10%, nodefs.inodesFree<5%, imagefs.available<15%, imagefs.inodesFree<5%;',
      '  mergeDefaultEvictionSettings (--merge-default-eviction-settings) keeps them',
      '',
      '0s        memory.available █████|█████ 2Gi ≥ 500Mi soft  calm',
      '10s       memory.available ████░|░░░░░ 400Mi < 500Mi soft, 0s of 1m0s  MemoryPressure',
      '1m10s     memory.available ███░░|░░░░░ 300Mi < 500Mi soft, past its 1m0s  MemoryPressure',
      '          evicts default/batch, grace 10s: The node was low on resource: memory. Threshold quantity:',
      '          500Mi, available: 300Mi.',
      '1m20s     memory.available ███░░|░░░░░ 60Mi < 100Mi hard  MemoryPressure',
      '          evicts default/web, grace 1s: The node was low on resource: memory. Threshold quantity:',
      '          100Mi, available: 60Mi.',
      '1m30s     memory.available █████|█████ 3Gi ≥ 500Mi soft  MemoryPressure',
      '3m0s      no summary  MemoryPressure',
      '3m10s     memory.available █████|█████ 3Gi ≥ 500Mi soft  calm',
      'in the end: evicted: default/batch at 1m10s, default/web at 1m20s; no condition holds',
      '',
    ]);
  });

  it('explains each ranking', () => {
    const text = tellStory(shortage(), { flags: {}, explain: true });
    const rows = text
      .split('\n')
      .filter((line) => /^ {12}/.test(line))
      .map((line) => line.trim().replaceAll(/ {2,}/g, ' | '));
    expect(rows).toEqual([
      'rank | pod | standing | priority | above request | why here',
      '1 | default/batch | exceeds | 0 | 300Mi | evicted | comes first',
      '2 | default/node | exceeds | 2000001000 | 2Gi | protected: critical priority | priority 2000001000 is above 0',
      '3 | default/web | within | 1000 | -124Mi | within its request',
      'rank | pod | standing | priority | above request | why here',
      '1 | default/node | exceeds | 2000001000 | 2Gi | protected: critical priority | comes first',
      '2 | default/web | within | 1000 | -124Mi | evicted | within its request',
    ]);
  });

  it('C26: explains a ranking by the images that a pod alone uses', () => {
    const image = (id: string, sizeBytes: number, ...usedBy: readonly string[]) => ({
      id,
      sizeBytes,
      age: '1h',
      usedBy: usedBy.map((name) => `default/${name}`),
    });
    const round = tick('0s', { availableBytes: GI });
    const runtime = { imageFs: { inodesFree: 5, inodes: 1000 } };
    const text = tellStory(
      scenario({
        config: { evictionHard: { 'imagefs.inodesFree': '10%' } },
        node: { dedicatedImageFs: true, splitImageFs: true },
        pods: ['none', 'large', 'small', 'unknown'].map((name) => scenarioPod(name)),
        ticks: [
          {
            ...round,
            summary: { ...round.summary, node: { ...round.summary?.node, runtime } },
            evictd: {
              images: [
                image('shared', 9 * GI, 'none', 'small'),
                image('of-small', GI, 'small'),
                image('of-large', 3 * GI, 'large'),
              ],
            },
          },
        ],
      }),
      { flags: { '--compatibility': ['evictd'] }, explain: true },
    );
    const rows = text
      .split('\n')
      .filter((line) => /^ {12}/.test(line))
      .map((line) => line.trim().replaceAll(/ {2,}/g, ' | '));
    expect(rows).toEqual([
      'rank | pod | standing | priority | own images | why here',
      '1 | default/large | exceeds | 0 | 3Gi | evicted | comes first',
      '2 | default/small | exceeds | 0 | 1Gi | uses less: 1Gi to 3Gi',
      '3 | default/unknown | unknown | 0 | unknown | not known to exceed its request',
      '4 | default/none | within | 0 | 0 | its end frees nothing | known to be within its request',
    ]);
  });

  it.each([
    ['kubelet', ['silent', 'big', 'small', 'twin', 'within']],
    ['evictd', ['big', 'small', 'twin', 'silent', 'within']],
  ])(
    'says of equal pods and those without stats why they stand there, by %s',
    (compatibility, order) => {
      const text = tellStory(
        scenario({
          config: { compatibility, evictionHard: { 'memory.available': '100Mi' } },
          pods: [
            ...['silent', 'twin', 'small', 'big'].map((name) => scenarioPod(name)),
            scenarioPod('within', {
              containers: [{ name: 'm', resources: { requests: { memory: '1Gi' } } }],
            }),
          ],
          ticks: [
            tick('0s', {
              availableBytes: MI,
              uses: { big: 3 * MI, small: MI, twin: MI, within: MI },
            }),
          ],
        }),
        { flags: {}, explain: true },
      );
      const rows = text.split('\n').filter((line) => /^ +\d /.test(line));
      expect(rows.map((row) => /default\/(\w+)/.exec(row)?.[1])).toEqual(order);
      const reasons = Object.fromEntries(
        rows.map((row) => [/default\/(\w+)/.exec(row)?.[1], row.trim().split(/ {2,}/).at(-1)]),
      );
      expect(reasons).toMatchObject({
        small: 'uses less: 1Mi to 3Mi',
        twin: 'equal, so by name',
        ...(compatibility === 'kubelet'
          ? { silent: 'comes first', big: 'exceeds its request, but has stats' }
          : {
              silent: 'not known to exceed its request',
              within: 'known to be within its request',
            }),
      });
    },
  );

  it('tells of a collection and what it gave', () => {
    const disk = (availableBytes: number) => ({
      node: { fs: { availableBytes, capacityBytes: 100 * GI, inodesFree: 1000, inodes: 2000 } },
      pods: [],
    });
    const text = story({
      config: { evictionHard: { 'nodefs.available': '10Gi' } },
      ticks: [{ at: '0s', summary: disk(9 * GI), summaryAfterReclaim: disk(20 * GI) }],
    });
    expect(text).toMatch(/^0s +nodefs\.available ████░\|░░░░░ 9Gi < 10Gi hard {2}.*DiskPressure$/m);
    const acts =
      / +collects containers and images: nodefs\.available 9Gi → 20Gi\n +that was enough$/m;
    expect(text).toMatch(acts);
  });

  it('tells of kills that fail and of those that take their time', () => {
    const uses = { web: 900 * MI };
    const failing = story({
      config: { compatibility: 'kubelet', evictionHard: { 'memory.available': '100Mi' } },
      ticks: [tick('0s', { availableBytes: MI, uses }, { killFails: ['default/web'] })],
    });
    expect(failing).toContain('evicts default/web, grace 1s, which fails: The node was low');
    expect(failing).toContain('in the end: no pod was evicted; MemoryPressure holds');
    const slow = story({
      evictd: { kills: { 'default/web': { takes: '15s' } } },
      ticks: [
        tick('0s', { availableBytes: MI, uses }),
        tick('10s', { availableBytes: MI, uses }),
        tick('20s', { availableBytes: GI, uses: {} }),
      ],
    });
    expect(slow).toMatch(/^10s .*\n +waits for the end of default\/web$/m);
    expect(slow).toMatch(/^20s .*\n +default\/web ended at 15s: evicted$/m);
  });

  it('tells of admissions, figures that cannot be true and pressure that nobody can end', () => {
    const text = story({
      pods: [scenarioPod('web', { priority: 2_000_000_000 })],
      ticks: [
        tick('0s', { availableBytes: -GI }),
        tick('10s', { availableBytes: MI }, { admit: [scenarioPod('new')] }),
        tick('10m0s', { availableBytes: GI }, { admit: [scenarioPod('new')] }),
      ],
    });
    expect(text).toContain('refused, since it cannot be true: memory.available');
    expect(text).toContain('no pod may be evicted');
    expect(text).toContain(
      'refuses default/new: The node had condition: [MemoryPressure].\n10m0s ',
    );
    expect(text).toMatch(/^10m0s .* calm\n +admits default\/new$/m);
  });

  it('shows a soft threshold that is met before a hard one that is nearer, and what is to be regained', () => {
    const text = story({
      config: {
        evictionHard: { 'memory.available': '100Mi' },
        evictionSoft: { 'memory.available': '300Mi' },
        evictionSoftGracePeriod: { 'memory.available': '20s' },
        evictionMinimumReclaim: { 'memory.available': '50Mi' },
      },
      ticks: ['0s', '10.0005s', '20s'].map((at) => tick(at, { availableBytes: 150 * MI })),
    });
    expect(text).toMatch(/^0s .* 150Mi < 300Mi soft, 0s of 20s {2}MemoryPressure$/m);
    expect(text).toMatch(/^10\.001s .* 150Mi < 300Mi soft, 10\.001s of 20s {2}MemoryPressure$/m);
    expect(text).toMatch(/^20s .* 150Mi < 300Mi\+50Mi soft, past its 20s {2}MemoryPressure$/m);
  });

  it('folds rounds that say nothing new, and keeps the first and the last of them', () => {
    const calm = (at: number) => tick(`${at}s`, { availableBytes: 4 * GI });
    const ticks = [...[0, 10, 20, 30, 40].map(calm), tick('50s', { availableBytes: MI })];
    const rounds = story({ ticks })
      .split('\n')
      .filter((line) => /^(\d|\s+…)/.test(line));
    expect(rounds.map((line) => line.trim().split(/ {2,}/)[0])).toEqual([
      '0s',
      '… 3 rounds like it',
      '40s',
      '50s',
    ]);
    expect(story({ ticks: ticks.slice(2) })).not.toContain('…');
  });

  it('says what is not decided since its figures are no newer', () => {
    const old = summary({ availableBytes: MI });
    const memory = { ...old.node?.memory, time: '2026-01-01T00:00:00Z' };
    const same = { ...old, node: { memory } };
    const text = story({ ticks: ['0s', '10s'].map((at) => ({ at, summary: same })) });
    expect(text).toMatch(
      /^10s .*\n +decides nothing: the figures are no newer than those before \(memory\.available\)$/m,
    );
  });

  it('says of which signal nothing was ever read', () => {
    const config = { evictionHard: { 'memory.available': '100Mi', 'pid.available': '10' } };
    expect(story({ config })).toContain(
      '\nnever read, though thresholds are about it: pid.available\n',
    );
  });

  it('has the reason of a recording for a pod that is protected by any rules', () => {
    const metadata = {
      ...scenarioPod('web').metadata,
      annotations: { 'kubernetes.io/config.source': 'file' },
    };
    for (const compatibility of ['kubelet', 'evictd']) {
      const text = tellStory(
        scenario({
          config: { compatibility, evictionHard: { 'memory.available': '100Mi' } },
          pods: [{ ...scenarioPod('web'), metadata }],
          ticks: [tick('0s', { availableBytes: MI })],
          evictd: { protected: { 'default/web': 'holds no process' } },
        }),
        { flags: {}, explain: true },
      );
      expect(text).toContain('protected: holds no process');
    }
  });

  it('tells of a configuration error', () => {
    expect(story({ config: { evictionHard: { 'memory.available': 'x' } } })).toMatch(
      /^configuration error: .*"x".*\n\nnothing was run\n$/m,
    );
  });

  it('prints nothing that could drive a terminal', () => {
    const name = '\u001b[31m\n\u202e';
    const pod = { ...scenarioPod('web'), metadata: { name, namespace: name, uid: 'uid-web' } };
    const text = tellStory(
      scenario({
        name,
        description: name,
        pods: [pod],
        ticks: [{ at: '0s', summary: summary({ availableBytes: MI }), admit: [pod] }],
      }),
      { flags: {}, explain: true },
    );
    expect(text).toContain('\\u001b[31m\\u000a\\u202e/');
    expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u202e]/u);
  });

  it('has no threshold to speak of', () => {
    const text = story({ config: {} });
    expect(text).toContain("evictd's own rules, transition period 5m0s  no threshold\n");
    expect(text).toMatch(/^0s +calm$/m);
  });
});

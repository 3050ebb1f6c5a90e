import { describe, expect, it } from 'vitest';
import { EvictdError } from '../../src/core/errors.ts';
import type { KubernetesPod } from '../../src/core/kubernetes.ts';
import { type ObservedStep, simulate } from '../../src/simulation/engine.ts';
import type {
  ImageEntry,
  Scenario,
  SimulationResult,
  Tick,
  TickExtension,
} from '../../src/simulation/scenario.ts';
import { GI, MI } from '../support/builders.ts';
import {
  podCase,
  type RoundCase,
  run,
  scenarioOf,
  summaryCase,
  victims,
} from '../support/scenarios.ts';

const BOTH = ['kubelet', 'evictd'] as const;

/** `leak` goes first, then `batch`; `web` is within its request. */
const PODS: readonly KubernetesPod[] = [
  podCase('web', { memoryRequest: '300Mi', memoryLimit: '300Mi' }),
  podCase('batch'),
  podCase('leak', { grace: 30 }),
];
const USE = {
  web: { memoryBytes: 200 * MI },
  batch: { memoryBytes: 50 * MI },
  leak: { memoryBytes: 500 * MI },
};
const HARD = { evictionHard: { 'memory.available': '100Mi' } };
const SOFT_TOO = {
  ...HARD,
  evictionSoft: { 'memory.available': '200Mi' },
  evictionSoftGracePeriod: { 'memory.available': '10s' },
  evictionMaxPodGracePeriod: 60,
};

const low = (available: number) => ({ available: available * MI, capacity: GI });
const round = (at: number, available: number, rest: Omit<RoundCase, 'at'> = {}): RoundCase => ({
  at,
  memory: low(available),
  use: USE,
  ...rest,
});
const summary = (available: number) => summaryCase({ memory: low(available), use: USE });

/** A scenario of which some parts are others. */
const scenario = (rounds: readonly RoundCase[], parts: Partial<Scenario> = {}): Scenario => ({
  ...scenarioOf('unit', HARD, PODS, rounds),
  ...parts,
});

/** The first round is another. */
const withTick = (tick: object): Scenario => {
  const [first] = scenario([round(0, 50)]).ticks;
  return scenario([], { ticks: [{ ...first, ...tick } as Tick] });
};

const facts = ({ ticks }: SimulationResult) => ticks.map(({ evictd }) => evictd);

describe('a configuration that is wrong', () => {
  it.each<[Scenario['config'], RegExp]>([
    [{ evictionHard: { 'memory.avail': '1Gi' } }, /^evictionHard: memory\.avail/],
    [{ evictionHard: { 'memory.available': '5 Gi' } }, /^evictionHard: memory\.available "5 Gi": /],
    [{ evictionSoft: { 'memory.available': '1Gi' } }, /grace/],
    [{ evictionPressureTransitionPeriod: 'soon' }, /evictionPressureTransitionPeriod/],
    [{ compatibility: 'docker' }, /compatibility/],
  ])('%j is a result', (config, error) => {
    const result = simulate(scenario([round(0, 50)], { config }));
    expect(result).toStrictEqual({
      name: 'unit',
      error: expect.stringMatching(error),
      ticks: [],
    });
  });

  it('by a flag is one too', () => {
    const flags = { '--eviction-hard': ['memory.available<lots'] };
    const { error, ticks } = simulate(scenario([round(0, 50)]), { flags });
    expect(error).toMatch(/--eviction-hard/);
    expect(ticks).toStrictEqual([]);
  });

  it('is none of the next scenario', () => {
    simulate(scenario([], { config: { compatibility: 'docker' } }));
    expect(simulate(scenario([round(0, 50)])).error).toBeUndefined();
  });
});

describe('a scenario that cannot be read', () => {
  const refusal = (one: Scenario): unknown => {
    try {
      return simulate(one);
    } catch (error) {
      return error;
    }
  };
  const hurt = (spec: object): KubernetesPod =>
    ({ ...podCase('odd'), spec: { ...podCase('odd').spec, ...spec } }) as KubernetesPod;
  const container = (requests: object) => ({
    containers: [{ name: 'a', resources: { requests } }],
  });
  const images = (image: object): TickExtension => ({ images: [image as ImageEntry] });
  const disk = { config: { evictionHard: { 'imagefs.available': '10Gi' } } };
  const imagefs = { availableBytes: 5 * GI, capacityBytes: 100 * GI };

  it.each<[string, Scenario, string]>([
    [
      'a request that is no quantity',
      scenario([round(0, 50)], { pods: [...PODS, hurt(container({ memory: '5 Gi' }))] }),
      'pods[3].spec.containers[0].resources.requests.memory: ',
    ],
    [
      'an overhead that is none',
      scenario([round(0, 50)], { pods: [hurt({ overhead: { memory: 'x' } })] }),
      'pods[0].spec.overhead.memory: ',
    ],
    ['a time without a unit', withTick({ at: '5' }), 'ticks[0].at: '],
    ['no time', withTick({ at: '' }), 'ticks[0].at: '],
    [
      'an active pod that is not there',
      withTick({ activePods: ['default/web', 'default/wbe'] }),
      'ticks[0].activePods[1]: no pod of the scenario: "default/wbe"',
    ],
    [
      'a pod to be admitted with a request that is none',
      withTick({ admit: [hurt(container({ cpu: '1 core' }))] }),
      'ticks[0].admit[0].spec.containers[0].resources.requests.cpu: ',
    ],
    [
      'the time of a sample',
      withTick({ evictd: { samples: [{ after: 'a while', summary: summary(50) }] } }),
      'ticks[0].evictd.samples',
    ],
    [
      'how long a kill takes',
      scenario([round(0, 50)], { evictd: { kills: { 'default/leak': { takes: '2' } } } }),
      'evictd.kills["default/leak"].takes: ',
    ],
    [
      'a configuration that holds from a round on',
      withTick({ evictd: { config: { evictionHard: { 'memory.available': '1x' } } } }),
      'ticks[0].evictd.config: ',
    ],
    [
      'the age of an image',
      {
        ...scenario([{ at: 0, imagefs, evictd: images({ id: 'i', sizeBytes: 1, age: 'old' }) }]),
        ...disk,
      },
      'evictd.images[0]: ',
    ],
    [
      'when it was last used',
      {
        ...scenario([
          { at: 0, imagefs, evictd: images({ id: 'i', sizeBytes: 1, age: '1h', lastUsed: '1' }) },
        ]),
        ...disk,
      },
      'evictd.images[0]: ',
    ],
  ])('%s: EVICTD_SCENARIO, and where it is', (_, one, place) => {
    const error = refusal(one);
    expect(error).toBeInstanceOf(EvictdError);
    expect(error).toMatchObject({ code: 'EVICTD_SCENARIO', exitStatus: 2 });
    expect((error as EvictdError).message.slice(0, place.length)).toBe(place);
  });
});

describe('a round', () => {
  it.each(BOTH)('has no influence on another scenario, and the same result again; %s', (rules) => {
    const one = scenario([round(0, 50), round(10, 50)]);
    const result = run(one, rules);
    expect(run(one, rules)).toStrictEqual(result);
    expect(victims(result)).toStrictEqual([['leak'], ['batch']]);
  });

  it('tells everything of an eviction', () => {
    const { name, ticks } = run(scenario([round(0, 50)]), 'kubelet');
    const message =
      'The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. ' +
      'Container main was using 500Mi, request is 0, has larger consumption of memory. ';
    expect(name).toBe('unit');
    expect(ticks).toStrictEqual([
      {
        at: '0s',
        nodeConditions: ['MemoryPressure'],
        reclaim: [],
        events: [
          {
            object: 'node',
            type: 'Warning',
            reason: 'EvictionThresholdMet',
            message: 'Attempting to reclaim memory',
          },
          { object: 'default/leak', type: 'Warning', reason: 'Evicted', message },
        ],
        evicted: [
          {
            pod: 'default/leak',
            gracePeriodSeconds: 1,
            reason: 'Evicted',
            message,
            annotations: {
              offending_containers: 'main',
              offending_containers_usage: '500Mi',
              starved_resource: 'memory',
            },
          },
        ],
        ranked: ['default/leak', 'default/batch', 'default/web'],
        admit: [],
        evictd: { disruptionTarget: ['default/leak'] },
      },
    ]);
  });

  it.each(BOTH)('that could not be read does nothing; %s', (rules) => {
    const rounds = [round(0, 500), round(10, 50)];
    const { ticks } = scenario(rounds);
    const unread = scenario(rounds, {
      ticks: ticks.map((tick, index) => (index === 1 ? { ...tick, summary: null } : tick)),
    });
    expect(victims(run(unread, rules))).toStrictEqual([[], []]);
    expect(run(unread, rules).ticks[1]).toMatchObject({ nodeConditions: [], events: [] });
  });

  it.each(BOTH)('ranks the active pods in their order, also such as went before; %s', (rules) => {
    const named = ['default/web', 'default/leak'];
    const result = run(
      scenario([round(0, 50), round(10, 50), round(20, 50, { activePods: named })]),
      rules,
    );
    expect(victims(result)).toStrictEqual([['leak'], ['batch'], ['leak']]);
    expect(result.ticks[1]?.ranked).toStrictEqual(['default/batch', 'default/web']);
    expect(result.ticks[2]?.ranked).toStrictEqual(['default/leak', 'default/web']);
  });

  it.each(BOTH)('admits by the conditions after it; %s', (rules) => {
    const admit = [podCase('new'), podCase('other', { memoryRequest: '1Mi' })];
    const { ticks } = run(scenario([round(0, 500, { admit }), round(10, 50, { admit })]), rules);
    expect(ticks.map((tick) => tick.admit.map((one) => one.admit))).toStrictEqual([
      [true, true],
      [false, true],
    ]);
    expect(ticks[1]?.admit[0]).toStrictEqual({
      pod: 'default/new',
      admit: false,
      reason: 'Evicted',
      message: 'The node had condition: [MemoryPressure]. ',
    });
  });

  it('evicts nobody twice in a round: who went for a limit of his own is gone when a threshold is met', () => {
    const pod = (name: string, limit: string) => ({
      metadata: { name, namespace: 'd', uid: name },
      spec: {
        containers: [{ name: 'c', resources: { limits: { 'ephemeral-storage': limit } } }],
      },
      status: { qosClass: 'BestEffort' },
    });
    const stats = (name: string) => ({
      podRef: { name, namespace: 'd', uid: name },
      containers: [
        {
          name: 'c',
          rootfs: { usedBytes: 50, inodesUsed: 1 },
          logs: { usedBytes: 0, inodesUsed: 1 },
        },
      ],
      'ephemeral-storage': { usedBytes: 50 },
    });
    const fs = { availableBytes: 50, capacityBytes: 1000, inodesFree: 50, inodes: 100 };
    const result = simulate({
      name: 'limits-and-pressure',
      description: '',
      config: { evictionHard: { 'nodefs.available': '100' } },
      node: { dedicatedImageFs: false, splitImageFs: false },
      pods: [pod('a', '10'), pod('b', '10'), pod('c', '1000')],
      ticks: [
        {
          at: '0s',
          killFails: ['d/b'],
          activePods: ['d/a', 'd/b', 'd/c'],
          summary: {
            node: { fs, runtime: { imageFs: fs, containerFs: fs } },
            pods: ['a', 'b', 'c'].map(stats),
          },
        },
      ],
    });
    expect(result.error).toBeUndefined();
    expect(result.ticks[0]?.evicted.map((one) => [one.pod, one.killFailed ?? false])).toEqual([
      ['d/a', false],
      ['d/b', true],
      ['d/c', false],
    ]);
  });

  it('evicts all that are over their own limits, before anything else', () => {
    const limited = [
      podCase('a', { storageLimit: '1Gi' }),
      podCase('b', { storageLimit: '1Gi' }),
      podCase('c', { storageLimit: '1Gi', priority: 2_000_000_000 }),
      podCase('leak'),
    ];
    const use = {
      a: { rootfsBytes: 2 * GI },
      b: { rootfsBytes: 2 * GI },
      c: { rootfsBytes: 2 * GI },
      leak: { memoryBytes: 500 * MI },
    };
    const one = scenario([round(0, 500, { use })], { pods: limited });
    const off = { config: { ...HARD, localStorageCapacityIsolation: false } };
    for (const rules of BOTH) {
      expect(victims(run(one, rules))).toStrictEqual([['a', 'b']]);
      expect(victims(run({ ...one, ...off }, rules))).toStrictEqual([[]]);
    }
    const { ticks } = run(one, 'kubelet');
    expect(ticks[0]?.evicted[0]).toMatchObject({ gracePeriodSeconds: 1, annotations: {} });
    expect(facts(run(one, 'evictd'))).toStrictEqual([undefined]);
  });

  it('tells its warnings once, and of thresholds that are replaced', () => {
    const config = {
      evictionHard: { 'nodefs.available': '1Gi', 'containerfs.available': '2Gi' },
    };
    const { evictd } = simulate(scenario([round(0, 500)], { config }));
    expect(evictd?.warnings).toContain(
      'hard containerfs.available: replaced, containerfs follows nodefs or imagefs',
    );
    const whole = {
      'memory.available': '100Mi',
      'nodefs.available': '10%',
      'nodefs.inodesFree': '5%',
      'imagefs.available': '15%',
      'imagefs.inodesFree': '5%',
    };
    const quiet = simulate(scenario([round(0, 500)], { config: { evictionHard: whole } }));
    expect(quiet).not.toHaveProperty('evictd');
  });

  it('is followed step by step', () => {
    const steps: ObservedStep[] = [];
    simulate(scenario([round(0, 500), round(10, 50)]), { onStep: (one) => steps.push(one) });
    expect(
      steps.map(({ tick, sample, result }) => [tick, sample.nowMs, result.decision.kind]),
    ).toStrictEqual([
      [0, 0, 'none'],
      [1, 10_000, 'evict'],
      // Its outcome.
      [1, 10_000, 'none'],
    ]);
  });
});

describe('a kill that fails', () => {
  const rounds = [
    round(0, 50, { killFails: ['default/leak'] }),
    round(10, 50),
    round(70, 50),
    round(80, 50),
  ];

  it('counts by the kubelet’s rules, and the pod is a candidate again', () => {
    const result = run(scenario(rounds), 'kubelet');
    expect(victims(result)).toStrictEqual([['leak!'], ['leak'], ['batch'], ['web']]);
    expect(result.ticks[0]?.evicted[0]?.killFailed).toBe(true);
    expect(result.ticks[1]?.evicted[0]).not.toHaveProperty('killFailed');
  });

  it('has the next candidate go in the same round by evictd’s own, and is passed over for 60 s', () => {
    expect(victims(run(scenario(rounds), 'evictd'))).toStrictEqual([
      ['leak!', 'batch'],
      ['web'],
      ['leak'],
      [],
    ]);
  });

  it('of everybody leaves no candidate', () => {
    const killFails = ['default/leak', 'default/batch', 'default/web'];
    const result = run(scenario([round(0, 50, { killFails })]), 'evictd');
    expect(victims(result)).toStrictEqual([['leak!', 'batch!', 'web!']]);
    expect(facts(result)[0]?.why).toBe('noCandidate');
  });
});

describe('a collection whose effect is not read', () => {
  it.each(['evictd', 'kubelet'] as const)(
    'puts nobody off for ever where rounds are as far apart as collections; %s',
    (rules) => {
      const at = (seconds: number) => ({
        at: `${seconds}s`,
        summary: {
          node: {
            fs: {
              time: new Date(Date.UTC(2026) + 1000 * seconds).toISOString(),
              availableBytes: GI,
              capacityBytes: 100 * GI,
            },
          },
          pods: [],
        },
      });
      const result = run(
        {
          ...scenario([], { pods: [podCase('web')] }),
          config: { evictionHard: { 'nodefs.available': '10Gi' } },
          ticks: [0, 10, 20].map(at),
        },
        rules,
      );
      const first = rules === 'kubelet' ? 0 : 1;
      expect(victims(result)).toStrictEqual(
        [0, 1, 2].map((round) => (round === first ? ['web'] : [])),
      );
    },
  );
});

describe('a kill that takes time', () => {
  const slow = (takes: string, outcome?: 'evicted' | 'timedOut' | 'failed' | 'nothingToKill') => ({
    kills: { 'default/leak': { takes, ...(outcome === undefined ? {} : { outcome }) } },
  });

  it('is over when it is over: until then nobody else goes', () => {
    const one = scenario([round(0, 50), round(4, 50), round(6, 50)], { evictd: slow('5s') });
    const result = run(one, 'evictd');
    expect(victims(result)).toStrictEqual([['leak'], [], ['batch']]);
    expect(facts(result).map((fact) => fact?.ended)).toStrictEqual([
      undefined,
      undefined,
      [{ pod: 'default/leak', at: '5s', outcome: 'evicted' }],
    ]);
  });

  it('that ends at the very moment of a round has ended', () => {
    const one = scenario([round(0, 50), round(5, 50)], { evictd: slow('5s') });
    expect(victims(run(one, 'evictd'))).toStrictEqual([['leak'], ['batch']]);
  });

  it.each([
    ['timedOut', [['leak!'], ['batch'], ['leak!']]],
    ['failed', [['leak!'], ['batch'], ['leak!']]],
    // Without a process it is looked at again after a second.
    ['nothingToKill', [['leak!'], ['leak!'], ['leak!']]],
  ] as const)('and comes to nothing: %s', (outcome, expected) => {
    const one = scenario([round(0, 50), round(6, 50), round(70, 50)], {
      evictd: slow('2s', outcome),
    });
    const result = run(one, 'evictd');
    expect(victims(result)).toStrictEqual(expected);
    expect(facts(result)[1]?.ended).toStrictEqual([{ pod: 'default/leak', at: '2s', outcome }]);
  });

  it.each([
    ['timedOut', [['leak!', 'batch']]],
    ['nothingToKill', [['leak!', 'batch']]],
    ['evicted', [['leak']]],
  ] as const)('takes none, and the outcome is %s', (outcome, expected) => {
    const kills = { 'default/leak': { outcome } };
    expect(victims(run(scenario([round(0, 50)], { evictd: { kills } }), 'evictd'))).toStrictEqual(
      expected,
    );
  });

  it('is followed by that of the next pod over its own limit, by new figures', () => {
    const pods = ['a', 'b'].map((name) => podCase(name, { storageLimit: '1Gi' }));
    const use = { a: { rootfsBytes: 2 * GI }, b: { rootfsBytes: 2 * GI } };
    const kills = { 'default/a': { takes: '2s' }, 'default/b': { takes: '3s' } };
    const rounds = [round(0, 500, { use }), round(10, 500, { use }), round(20, 500)];
    const result = run(scenario(rounds, { pods, evictd: { kills } }), 'evictd');
    expect(victims(result)).toStrictEqual([['a'], ['b'], []]);
    expect(facts(result).map((fact) => fact?.ended)).toStrictEqual([
      undefined,
      [{ pod: 'default/a', at: '2s', outcome: 'evicted' }],
      [{ pod: 'default/b', at: '13s', outcome: 'evicted' }],
    ]);
  });

  it('waits for the grace of a soft victim first', () => {
    const one = {
      ...scenario([round(0, 150), round(10, 150), round(41, 150), round(42, 150)], {
        evictd: slow('1500ms'),
      }),
      config: SOFT_TOO,
    };
    const result = run(one, 'evictd');
    expect(victims(result)).toStrictEqual([[], ['leak'], [], ['batch']]);
    expect(result.ticks[1]?.evicted[0]?.gracePeriodSeconds).toBe(30);
    expect(facts(result)[3]?.ended?.[0]?.at).toBe('41.5s');
  });

  it('is cut short where a hard threshold is crossed in the grace', () => {
    const one = {
      ...scenario([round(0, 150), round(10, 150), round(20, 50), round(21, 50), round(22, 50)], {
        evictd: slow('1500ms'),
      }),
      config: SOFT_TOO,
    };
    const result = run(one, 'evictd');
    expect(victims(result)).toStrictEqual([[], ['leak'], [], [], ['batch']]);
    expect(facts(result).map((fact) => fact?.escalated)).toStrictEqual([
      undefined,
      undefined,
      ['default/leak'],
      undefined,
      undefined,
    ]);
    expect(facts(result)[4]?.ended?.[0]?.at).toBe('21.5s');
  });

  it('is not put off by being cut short', () => {
    const one = {
      ...scenario([round(0, 150), round(10, 150), round(40, 50), round(41.5, 500)], {
        evictd: slow('1500ms'),
      }),
      config: { ...SOFT_TOO, hardEvictionGracePeriodSeconds: 20 },
    };
    expect(facts(run(one, 'evictd'))[3]?.ended?.[0]?.at).toBe('41.5s');
  });

  it('is no matter of the kubelet’s rules', () => {
    const one = scenario([round(0, 50), round(4, 50)], { evictd: slow('5s', 'timedOut') });
    expect(victims(run(one, 'kubelet'))).toStrictEqual([['leak'], ['batch']]);
  });
});

describe('samples after a round', () => {
  const samples = [
    { after: '0s', summary: summary(150) },
    { after: '1.5s', summary: summary(50) },
    { after: '3s', summary: summary(40) },
    { after: '4s', summary: null },
  ];
  const one = scenario([round(0, 500, { evictd: { samples } }), round(10, 500)]);

  it('are taken in at their moments', () => {
    const seen: [number, string][] = [];
    const result = simulate(one, {
      onStep: ({ sample, result: { decision } }) => seen.push([sample.nowMs, decision.kind]),
    });
    expect(victims(result)).toStrictEqual([['leak', 'batch'], []]);
    expect(seen).toStrictEqual([
      [0, 'none'],
      [0, 'none'],
      [1500, 'evict'],
      [1500, 'none'],
      [3000, 'evict'],
      [3000, 'none'],
      [4000, 'none'],
      [10_000, 'none'],
    ]);
    expect(result.ticks).toHaveLength(2);
  });

  it('see a kill end among them', () => {
    const kills = { 'default/leak': { takes: '1s' } };
    const result = run({ ...one, evictd: { kills } }, 'evictd');
    expect(victims(result)).toStrictEqual([['leak', 'batch'], []]);
    expect(facts(result)[0]?.ended).toStrictEqual([
      { pod: 'default/leak', at: '2.5s', outcome: 'evicted' },
    ]);
  });

  it('are no matter of the kubelet’s rules', () => {
    expect(victims(run(one, 'kubelet'))).toStrictEqual([[], []]);
  });
});

describe('what only evictd has', () => {
  it.each([
    ['evictd', [['batch']]],
    ['kubelet', [['leak']]],
  ] as const)('a pod that is protected otherwise; %s', (rules, expected) => {
    const evictd = { protected: { 'default/leak': 'holds a process at -1000' } };
    expect(victims(run(scenario([round(0, 50)], { evictd }), rules))).toStrictEqual(expected);
  });

  it.each([
    ['evictd', [[], ['leak'], ['batch']]],
    ['kubelet', [[], [], []]],
  ] as const)('a configuration that holds from a round on; %s', (rules, expected) => {
    const config = { evictionHard: { 'memory.available': '300Mi' } };
    const result = run(
      scenario([round(0, 200), round(10, 200, { evictd: { config } }), round(20, 200)]),
      rules,
    );
    expect(victims(result)).toStrictEqual(expected);
  });

  it.each([
    ['evictd', undefined],
    ['kubelet', 'leak'],
  ] as const)('figures that cannot be true; %s', (rules, expected) => {
    const memory = { available: -100 * MI, capacity: GI };
    const result = run(scenario([round(0, 0, { memory })]), rules);
    expect(victims(result)[0]?.[0]).toBe(expected);
    expect(facts(result)[0]?.refused).toStrictEqual(
      rules === 'evictd' ? ['memory.available'] : undefined,
    );
  });

  it('a second source of memory', () => {
    const memory = { available: -100 * MI, capacity: GI };
    const of = (bytes: number) =>
      victims(
        run(scenario([round(0, 0, { memory, evictd: { memAvailableBytes: bytes } })]), 'evictd'),
      );
    expect([of(500 * MI), of(50 * MI)]).toStrictEqual([[[]], [['leak']]]);
  });
});

describe('a collection', () => {
  const config = {
    evictionHard: { 'imagefs.available': '10Gi' },
    evictionMinimumReclaim: { 'imagefs.available': '1Gi' },
  };
  const imagefs = (gibibytes: number) => ({
    availableBytes: gibibytes * GI,
    capacityBytes: 100 * GI,
  });
  const use = {
    leak: { rootfsBytes: 5 * GI },
    batch: { rootfsBytes: GI },
    web: { rootfsBytes: MI },
  };
  const at = (gibibytes: number) => summaryCase({ imagefs: imagefs(gibibytes), use });
  const collecting = (rest: Partial<RoundCase>): Scenario => ({
    ...scenarioOf('unit', config, PODS, [{ at: 0, imagefs: imagefs(5), use, ...rest }]),
  });

  it.each(BOTH)('is followed by the reading after it; %s', (rules) => {
    const enough = run(collecting({ summaryAfterReclaim: at(11) }), rules);
    expect(victims(enough)).toStrictEqual([[]]);
    expect(enough.ticks[0]?.reclaim).toStrictEqual(['containers', 'images']);
    expect(victims(run(collecting({ summaryAfterReclaim: at(10) }), rules))).toStrictEqual([
      ['leak'],
    ]);
    // Missing: as before.
    expect(victims(run(collecting({}), rules))).toStrictEqual([['leak']]);
  });

  it('is not followed by one where reading fails', () => {
    expect(victims(run(collecting({ summaryAfterReclaim: null }), 'kubelet'))).toStrictEqual([
      ['leak'],
    ]);
    expect(victims(run(collecting({ summaryAfterReclaim: null }), 'evictd'))).toStrictEqual([[]]);
  });

  it('that fails counts as one', () => {
    const failing = collecting({ imageGCFails: true, containerGCFails: true });
    for (const rules of BOTH) {
      expect(run(failing, rules).ticks[0]?.reclaim).toStrictEqual(['containers', 'images']);
    }
  });

  it.each([
    ['evictd', [[]], 3],
    ['kubelet', [['leak']], undefined],
  ] as const)('is waited for while space still rises; %s', (rules, expected, readings) => {
    const settling = { summariesSettling: [at(9), at(12), at(12), at(13)] };
    const result = run(collecting({ summaryAfterReclaim: at(7), evictd: settling }), rules);
    expect(victims(result)).toStrictEqual(expected);
    expect(facts(result)[0]?.settlingReadings).toBe(readings);
  });

  it('is not waited for where nothing came back', () => {
    const settling = { summariesSettling: [at(50)] };
    const result = run(collecting({ summaryAfterReclaim: at(5), evictd: settling }), 'evictd');
    expect(victims(result)).toStrictEqual([['leak']]);
  });

  it('takes images until enough is regained; all by the kubelet’s rules', () => {
    const images: readonly ImageEntry[] = [
      { id: 'used', sizeBytes: 9 * GI, age: '10h', lastUsed: '1m', inUse: true },
      { id: 'old', sizeBytes: 4 * GI, age: '9h' },
      { id: 'older', sizeBytes: 4 * GI, age: '10h', lastUsed: '9h30m' },
      { id: 'recent', sizeBytes: 4 * GI, age: '10h', lastUsed: '5m' },
      { id: 'pinned', sizeBytes: 9 * GI, age: '20h', pinned: true },
      { id: 'fresh', sizeBytes: 9 * GI, age: '1m59s' },
    ];
    const one = collecting({ summaryAfterReclaim: at(13), evictd: { images } });
    expect(facts(run(one, 'evictd'))[0]?.images).toStrictEqual(['older', 'old']);
    expect(facts(run(one, 'kubelet'))[0]?.images).toStrictEqual([
      'older',
      'old',
      'recent',
      'fresh',
    ]);
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseDuration } from '../../src/core/duration.ts';
import type { RecordedPod, RecordedTurn } from '../../src/core/recorded.ts';
import { simulate } from '../../src/simulation/engine.ts';
import { type Recording, scenarioOf } from '../../src/simulation/recording.ts';
import type { Scenario } from '../../src/simulation/scenario.ts';
import { MI } from '../support/builders.ts';
import { count, report } from '../support/counts.ts';
import { runWorld, type Told, worlds } from './run.ts';

/** The bound is only there to end a hang. */
const PROPERTY_LIMIT_MS = count(120_000, 1_800_000);

/** To the microsecond, which is what a recording keeps. */
const rounded = ({ victims, conditions }: Told): Told => ({
  victims: victims.map(({ atMs, pod }) => ({ atMs: Number(atMs.toFixed(3)), pod })),
  conditions,
});

/** Since when a disk is well is not known where a recording lacks when it was last seen short. */
const withoutDisk = (told: Told): Told => ({
  ...rounded(told),
  conditions: told.conditions.map((held) => held.filter((one) => one !== 'DiskPressure')),
});

/** What a replay does, said as a run says it: a pod's lives have one name. */
function replayed(scenario: Scenario): Told {
  const { ticks, error } = simulate(JSON.parse(JSON.stringify(scenario)) as Scenario);
  expect(error).toBeUndefined();
  return {
    // A replay counts from its first turn, as the run does.
    victims: ticks.flatMap(({ at, evicted }) =>
      evicted.map(({ pod }) => ({
        atMs: parseDuration(at),
        pod: pod.replace(/^cgroup\/|@.*$/g, ''),
      })),
    ),
    conditions: ticks.map(({ nodeConditions }) => nodeConditions),
  };
}

describe('a recorded run', () => {
  it(
    'is decided again as it was decided: the same victims at the same moments',
    () => {
      let evictions = 0;
      let collections = 0;
      fc.assert(
        fc.property(worlds, (world) => {
          const { recording, told, hidesDisk } = runWorld(world);
          const known = hidesDisk ? withoutDisk : rounded;
          evictions += told.victims.length;
          collections += recording.turns.filter(({ reclaimed }) => reclaimed).length;
          expect(known(replayed(scenarioOf(recording)))).toEqual(known(told));
        }),
        { numRuns: count(40, 1000) },
      );
      report(`${evictions} evictions, ${collections} collections`);
      expect(collections).toBeGreaterThan(3);
      expect(evictions).toBeGreaterThan(20);
    },
    PROPERTY_LIMIT_MS,
  );
});

const pod = (overrides: Partial<RecordedPod> = {}): RecordedPod => ({
  id: 'leak@1',
  name: 'leak',
  priority: 0,
  qosClass: 'BestEffort',
  memoryRequest: '0',
  workingSetBytes: 300 * MI,
  pids: null,
  gracePeriodSeconds: null,
  protected: null,
  ...overrides,
});

const WEB = pod({ id: 'web@2', name: 'web', priority: 1000, workingSetBytes: 50 * MI });

const turn = (atMs: number, availableMi: number, overrides: Partial<RecordedTurn> = {}) => ({
  kind: 'turn' as const,
  atMs,
  reason: 'due' as const,
  signals: [
    { signal: 'memory.available' as const, capacity: 512 * MI, available: availableMi * MI },
  ],
  pods: [pod(), WEB],
  calm: availableMi >= 64,
  decision: { kind: 'none' as const, why: 'calm' },
  outcome: null,
  ...overrides,
});

const EVICT = { kind: 'evict', podId: 'leak@1', gracePeriodMs: 0 } as const;

const recording = (overrides: Partial<Recording> = {}): Recording => ({
  name: 'incident',
  description: 'one',
  config: { evictionHard: { 'memory.available': '64Mi' }, evictionPressureTransitionPeriod: '1s' },
  node: { dedicatedImageFs: false, splitImageFs: false },
  pods: [],
  evicting: false,
  turns: [],
  ...overrides,
});

/** The leak is evicted at 60Mi, which takes 150 ms. */
const INCIDENT = recording({
  turns: [
    turn(5000, 400, { pods: [pod({ workingSetBytes: 10 * MI }), WEB] }),
    turn(6000, 120),
    turn(6100, 60, { decision: EVICT }),
    turn(6200, 40, { pods: null }),
    turn(6250, 380, {
      pods: [pod({ workingSetBytes: 0, protected: 'holds no process' }), WEB],
      outcome: { podId: 'leak@1', kind: 'evicted' },
    }),
    turn(8000, 380, { pods: [pod({ workingSetBytes: 0, protected: 'holds no process' }), WEB] }),
  ],
});

describe('scenarioOf', () => {
  it('counts from the first turn, keeps capacities, and says how the kill went', () => {
    const { ticks, pods, evictd } = scenarioOf(INCIDENT);
    expect(ticks.map(({ at }) => at)).toEqual(['0s', '1s', '1.1s', '1.2s', '1.25s', '3s']);
    expect(ticks[2]?.summary?.node?.memory).toEqual({
      availableBytes: 60 * MI,
      workingSetBytes: 452 * MI,
    });
    expect(pods.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)).toEqual([
      'cgroup/leak',
      'cgroup/web',
    ]);
    const kill = { takes: '149.999ms', outcome: 'evicted' };
    expect(evictd?.kills).toEqual({ 'cgroup/leak': kill });
    expect(ticks[2]?.evictd?.kills).toEqual({ 'cgroup/leak': kill });
    // Who was not read is where he was; who is dead is not.
    expect(ticks.map(({ activePods }) => activePods?.length)).toEqual([2, 2, 2, 2, 1, 1]);
  });

  it('evicts for a disk as it was, and nobody else while the space is held', () => {
    const disk = (bytes: number) => ({
      root: { bytes, inodes: 3 },
      logs: { bytes: MI, inodes: 1 },
      localVolumes: { bytes: 2 * MI, inodes: null },
    });
    const signals = (availableMi: number) => [
      { signal: 'imagefs.available' as const, capacity: 512 * MI, available: availableMi * MI },
    ];
    const fat = pod({ disk: disk(300 * MI) });
    const slim = pod({ id: 'slim@3', name: 'slim', disk: disk(MI) });
    const held = { pods: [slim], spaceHeld: true, calm: false } as const;
    const scenario = scenarioOf(
      recording({
        config: { evictionHard: { 'imagefs.available': '64Mi' } },
        node: { dedicatedImageFs: true, splitImageFs: false },
        turns: [
          turn(0, 400, { signals: signals(200), pods: [fat, slim] }),
          turn(1000, 400, { signals: signals(50), pods: [fat, slim], decision: EVICT }),
          turn(2000, 400, {
            ...held,
            signals: signals(50),
            outcome: { podId: 'leak@1', kind: 'evicted' },
          }),
          turn(20_000, 400, { ...held, signals: signals(50) }),
          turn(21_000, 400, { signals: signals(350), pods: [slim] }),
        ],
      }),
    );
    expect(replayed(scenario).victims).toEqual([{ atMs: 1000, pod: 'leak' }]);
    expect(scenario.evictd?.ranksDisk).toBe(true);
    expect(scenarioOf(INCIDENT).evictd?.ranksDisk).toBe(false);
    const [stats] = scenario.ticks[0]?.summary?.pods ?? [];
    expect(stats).toMatchObject({
      containers: [
        {
          name: 'main',
          rootfs: { usedBytes: 300 * MI, inodesUsed: 3 },
          logs: { usedBytes: MI, inodesUsed: 1 },
        },
      ],
      volume: [{ usedBytes: 2 * MI }],
    });
  });

  it('C26: evicts for images as it was', () => {
    const use = { bytes: 0, inodes: 0 };
    const disk = { root: use, logs: use, localVolumes: use };
    const low = {
      signals: [{ signal: 'imagefs.available' as const, capacity: 512 * MI, available: 50 * MI }],
    };
    const some = pod({ disk, exclusiveImageBytes: 30 * MI });
    const none = pod({ id: 'none@3', name: 'none', disk, exclusiveImageBytes: 0, priority: -10 });
    const unknown = pod({ id: 'new@4', name: 'new', disk, priority: -20 });
    const scenario = scenarioOf(
      recording({
        config: { evictionHard: { 'imagefs.available': '64Mi' } },
        node: { dedicatedImageFs: true, splitImageFs: true },
        turns: [
          turn(0, 400, { ...low, pods: [none, some, unknown], decision: EVICT }),
          turn(1000, 400, { ...low, outcome: { podId: 'leak@1', kind: 'evicted' } }),
        ],
      }),
    );
    expect(replayed(scenario).victims[0]).toEqual({ atMs: 0, pod: 'leak' });
    expect(scenario.ticks[0]?.evictd?.images).toEqual([
      { id: 'images of cgroup/none', sizeBytes: 0, age: '1h', usedBy: ['cgroup/none'] },
      { id: 'images of cgroup/leak', sizeBytes: 30 * MI, age: '1h', usedBy: ['cgroup/leak'] },
    ]);
    expect(scenario.evictd?.reclaims).toBe(true);
    expect(scenarioOf(INCIDENT).evictd?.reclaims).toBe(false);
  });

  it('leaves out what was decided before, and is not known', () => {
    const { turns } = INCIDENT;
    const late = recording({ evicting: true, turns: turns.slice(3) });
    expect(scenarioOf(late).ticks).toHaveLength(2);
    expect(replayed(scenarioOf(late)).victims).toEqual([]);
  });

  it('has an eviction that did not end go on to the end', () => {
    const scenario = scenarioOf(recording({ turns: INCIDENT.turns.slice(0, 4) }));
    expect(replayed(scenario).victims).toEqual([{ atMs: 1100, pod: 'leak' }]);
  });

  it('protects who was always protected, and for as long as somebody was', () => {
    const guarded = { ...WEB, protected: 'configured' };
    const scenario = scenarioOf(
      recording({
        turns: [
          turn(0, 400, { pods: [pod({ protected: 'holds no process' }), guarded] }),
          turn(1000, 400, { pods: [pod(), guarded] }),
        ],
      }),
    );
    expect(scenario.ticks.map(({ activePods }) => activePods)).toEqual([
      ['cgroup/web'],
      ['cgroup/leak', 'cgroup/web'],
    ]);
    expect(scenario.evictd?.protected).toEqual({ 'cgroup/web': 'configured' });
    expect(scenario.pods[1]?.metadata.annotations).toEqual({
      'kubernetes.io/config.source': 'file',
    });
  });

  it('has another pod for each change of what a scenario says once, and for each life', () => {
    const turns = [
      turn(0, 400),
      turn(1000, 400, { pods: [pod({ memoryRequest: '64Mi', qosClass: 'Burstable' })] }),
      turn(2000, 400, { pods: [pod({ id: 'leak@7' })] }),
      ...INCIDENT.turns.slice(2, 5).map((one) => ({ ...one, atMs: one.atMs + 1000 })),
      turn(9000, 400),
    ];
    const { pods, ticks } = scenarioOf(recording({ turns }));
    expect(pods.map(({ metadata: { name, uid } }) => [name, uid])).toEqual([
      ['leak', 'leak@1'],
      ['web', 'web@2'],
      ['leak@2', 'leak@1@2'],
      ['leak@3', 'leak@7'],
      ['leak@4', 'leak@1@3'],
    ]);
    expect(ticks.at(-1)?.activePods).toEqual(['cgroup/leak@4', 'cgroup/web']);
  });

  it('has filesystems, PIDs, what pods may use together, and a configuration that changed', () => {
    const { ticks } = scenarioOf(
      recording({
        turns: [
          {
            ...turn(0, 400, { pods: [pod({ pids: 7, workingSetBytes: null })] }),
            signals: [
              { signal: 'allocatableMemory.available', capacity: 300, available: 100 },
              { signal: 'nodefs.available', capacity: 10, available: 4 },
              { signal: 'imagefs.inodesFree', capacity: 9, available: 3 },
              { signal: 'pid.available', capacity: 100, available: 60 },
            ],
            config: { evictionHard: {} },
          },
        ],
      }),
    );
    expect(ticks[0]?.summary).toEqual({
      node: {
        systemContainers: [{ name: 'pods', memory: { availableBytes: 100, workingSetBytes: 200 } }],
        fs: { availableBytes: 4, capacityBytes: 10 },
        runtime: { imageFs: { inodesFree: 3, inodes: 9 } },
        rlimit: { maxpid: 100, curproc: 40 },
      },
      pods: [
        {
          podRef: { name: 'leak', namespace: 'cgroup', uid: 'leak@1' },
          process_stats: { process_count: 7 },
        },
      ],
    });
    expect(ticks[0]?.evictd?.config).toEqual({ evictionHard: {} });
  });

  it('calls a runtime’s pod as the runtime does, its namespace apart', () => {
    const web = pod({ id: 'w@1', name: 'shop/web', namespace: 'shop' });
    const none = pod({ id: 'n@1', name: 'batch', namespace: 'default' });
    const inCgroup = pod({ id: 'c@1', name: 'shop/web' });
    const { pods, ticks } = scenarioOf(
      recording({ pods: [], turns: [turn(0, 400, { pods: [web, none, inCgroup] })] }),
    );
    const names = [
      ['shop', 'web'],
      ['default', 'batch'],
      ['cgroup', 'shop/web'],
    ];
    expect(pods.map(({ metadata: { namespace, name } }) => [namespace, name])).toEqual(names);
    expect(ticks[0]?.activePods).toEqual(names.map((parts) => parts.join('/')));
    expect(
      ticks[0]?.summary?.pods?.map(({ podRef: { namespace, name } }) => [namespace, name]),
    ).toEqual(names);
  });

  describe('in which collecting helped', () => {
    const disk = (availableMi: number) => ({
      signal: 'nodefs.available' as const,
      capacity: 1000 * MI,
      available: availableMi * MI,
    });
    const on = (availableMi: number, overrides: Partial<RecordedTurn> = {}) => {
      const one = turn(0, 400, overrides);
      return { ...one, signals: [...one.signals, disk(availableMi)] };
    };
    const files = { bytes: 0, inodes: 1 };
    const fat = pod({
      disk: { root: { bytes: 300 * MI, inodes: 9 }, logs: files, localVolumes: files },
    });
    const of = (overrides: Partial<Recording> = {}) =>
      recording({
        pods: [fat],
        config: { evictionHard: { 'nodefs.available': '100Mi' } },
        turns: [
          { ...on(500, { pods: [fat] }), atMs: 0 },
          { ...on(150), atMs: 1000, pods: null },
          { ...on(50, { decision: { kind: 'reclaim' } }), atMs: 2000, pods: null },
          {
            ...on(60, { decision: { kind: 'none', why: 'reclaiming' } }),
            atMs: 3000,
            pods: null,
          },
          {
            ...on(400, { decision: { kind: 'none', why: 'reclaimed' }, reclaimed: true }),
            atMs: 4000,
            pods: null,
          },
          { ...on(400), atMs: 5000, pods: null },
        ],
        ...overrides,
      });
    const run = (scenario: Scenario, flags = {}) =>
      simulate(scenario, { flags }).ticks.map(({ reclaim, evicted }) => [
        ...(reclaim.length > 0 ? ['collects'] : []),
        ...evicted.map(({ pod: name }) => name),
      ]);

    it('nobody is evicted, and it is said where that ended', () => {
      const scenario = scenarioOf(of());
      expect(scenario.evictd?.reclaims).toBe(true);
      expect(scenario.ticks.map(({ evictd }) => evictd?.collection)).toEqual([
        ...Array<undefined>(4).fill(undefined),
        'ended',
        undefined,
      ]);
      expect(run(scenario)).toEqual([[], [], ['collects'], [], [], []]);
    });

    it('nor by the kubelet’s rules, nor with a threshold that is met a while before', () => {
      const scenario = scenarioOf(of());
      expect(run(scenario, { '--compatibility': ['kubelet'] })).toEqual([
        [],
        [],
        ['collects'],
        ['collects'],
        [],
        [],
      ]);
      const higher = { '--eviction-hard': ['nodefs.available<200Mi'] };
      expect(run(scenario, higher)).toEqual([[], ['collects'], [], [], [], []]);
    });

    it('somebody is where what it regained is not enough', () => {
      const higher = { '--eviction-hard': ['nodefs.available<450Mi'] };
      expect(run(scenarioOf(of()), higher)).toEqual([
        [],
        ['collects'],
        [],
        [],
        ['cgroup/leak'],
        [],
      ]);
    });

    it('nobody is while it had not ended', () => {
      const scenario = scenarioOf(of({ turns: of().turns.slice(0, 4) }));
      expect(scenario.ticks.at(-1)?.evictd).toEqual({ collection: 'runs' });
      expect(run(scenario)).toEqual([[], [], ['collects'], []]);
    });

    it('what is decided after its end, or long before it, has freed nothing', () => {
      const late = of();
      const turns = late.turns.map((one, index) =>
        index < 2 ? one : { ...one, atMs: one.atMs + 35_001 },
      );
      const higher = { '--eviction-hard': ['nodefs.available<200Mi'] };
      const [, second] = run(scenarioOf(of({ turns })), higher);
      expect(second).toEqual(['collects', 'cgroup/leak']);
    });
  });

  it('under the kubelet’s rules has no rounds while a pod is killed', () => {
    const { config } = INCIDENT;
    const scenario = scenarioOf({ ...INCIDENT, config: { ...config, compatibility: 'kubelet' } });
    expect(scenario.ticks.map(({ at }) => at)).toEqual(['0s', '1s', '1.1s', '1.25s', '3s']);
    expect(replayed(scenario).victims).toEqual([{ atMs: 1100, pod: 'leak' }]);
  });

  /** Memory is short for a second while the leak is killed; a condition is held for 2 s. */
  const longKill = (compatibility: 'evictd' | 'kubelet') =>
    scenarioOf(
      recording({
        config: {
          compatibility,
          evictionHard: { 'memory.available': '64Mi' },
          evictionPressureTransitionPeriod: '2s',
        },
        turns: [
          turn(0, 400),
          turn(1000, 60, { decision: EVICT }),
          turn(2000, 40, { pods: null }),
          turn(2100, 380, { pods: [WEB], outcome: { podId: 'leak@1', kind: 'evicted' } }),
          turn(3500, 380, { pods: [WEB] }),
          turn(4000, 380, { pods: [WEB] }),
        ],
      }),
    );
  const pressureEnds = (scenario: Scenario) =>
    simulate(scenario).ticks.findLast(({ nodeConditions }) => nodeConditions.length > 0)?.at;

  it('under the kubelet’s rules has a condition end sooner by what was seen during a kill', () => {
    expect(pressureEnds(longKill('evictd'))).toBe('3.5s');
    expect(pressureEnds(longKill('kubelet'))).toBe('2.1s');
  });

  it('leaves the default grace to the rule set, also after a reload', () => {
    const { config } = INCIDENT;
    const turns = [
      turn(0, 400),
      turn(1000, 60, { decision: EVICT }),
      { ...turn(1100, 380, { pods: [WEB] }), config },
    ];
    const graces = (scenario: Scenario, flags = {}) =>
      simulate(scenario, { flags }).ticks.flatMap(({ evicted }) =>
        evicted.map(({ gracePeriodSeconds }) => gracePeriodSeconds),
      );
    const byDefault = scenarioOf(recording({ turns }));
    expect(graces(byDefault)).toEqual([0]);
    expect(graces(byDefault, { '--compatibility': ['kubelet'] })).toEqual([1]);
    expect(byDefault.ticks[2]?.evictd?.config).toEqual(config);
    // One that was given does not stay where the other configuration has none.
    const given = { ...config, hardEvictionGracePeriodSeconds: 3 };
    const reload = scenarioOf(recording({ config: given, turns })).ticks[2]?.evictd?.config;
    expect(reload).toEqual({ ...config, hardEvictionGracePeriodSeconds: 0 });
  });

  it('has times in whole microseconds, in their order', () => {
    const at = [1000.1234567, 1000.1234569, 2003.295231, 4003.2952306];
    const { ticks } = scenarioOf(recording({ turns: at.map((atMs) => turn(atMs, 400)) }));
    expect(ticks.map((tick) => tick.at)).toEqual(['0s', '0s', '1.003172s', '3.003172s']);
  });

  it('can be tried with another threshold: who is gone sooner gives back what it took', () => {
    const at = (threshold: string) =>
      simulate(scenarioOf(INCIDENT), { flags: { '--eviction-hard': [threshold] } }).ticks.flatMap(
        ({ at: moment, evicted }) => evicted.map(({ pod: name }) => `${moment} ${name}`),
      );
    expect(at('memory.available<64Mi')).toEqual(['1.1s cgroup/leak']);
    expect(at('memory.available<128Mi')).toEqual(['1s cgroup/leak']);
    expect(at('memory.available<32Mi')).toEqual([]);
  });
});

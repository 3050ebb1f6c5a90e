/**
 * Generated nodes: scenarios whose signals move up and down around their thresholds, with pods that use
 * about what they request. A scenario is made of seeds, one for each threshold, pod and tick, so that
 * fast-check makes a failing one smaller by leaving some out.
 */
import fc from 'fast-check';
import type { ScenarioConfig } from '../../src/config/scenario-config.ts';
import type {
  ContainerStats,
  FilesystemStats,
  KubernetesContainer,
  KubernetesPod,
  KubernetesVolume,
  MemoryStats,
  PodStats,
  ResourceList,
  Summary,
} from '../../src/core/kubernetes.ts';
import type { Signal } from '../../src/core/signal.ts';
import type {
  ExtraSample,
  ImageEntry,
  Kill,
  Scenario,
  Tick,
} from '../../src/simulation/scenario.ts';
import { Dice } from './dice.ts';
import { levelOf, levelWithReclaim, type PlainThreshold, thresholdsIn } from './plain.ts';

/** What a node is made of. */
export interface NodeSeeds {
  readonly base: number;
  readonly thresholds: readonly number[];
  readonly pods: readonly number[];
  readonly ticks: readonly number[];
}

const seed = fc.noShrink(fc.nat(0x7fffffff));

const seeds = (minLength: number, maxLength: number) =>
  fc.array(seed, { minLength, maxLength, size: 'max' });

/** Any node: 1 to 8 thresholds, 0 to 20 pods, 1 to 30 ticks. */
export const NODES: fc.Arbitrary<NodeSeeds> = fc.record({
  base: seed,
  thresholds: seeds(1, 8),
  pods: seeds(0, 20),
  ticks: seeds(1, 30),
});

const KI = 1024;
const MI = KI * 1024;
const GI = MI * 1024;

/** Pods use and request whole multiples of it, so that some are equal, and some just what they request. */
const UNIT = 64 * MI;

/** 2026-01-01T00:00:00Z, at which scenarios start. */
const START_MS = 1_767_225_600_000;

/** The scenario that the seeds make. */
export function scenarioOf(node: NodeSeeds): Scenario {
  const base = new Dice(node.base);
  const shape = shapeOf(base);
  const config = configOf(base, node.thresholds, shape);
  const pods = node.pods.map((podSeed, index) => podOf(new Dice(podSeed), index));
  const thresholds = thresholdsIn({ config, node: shape.node }, 'evictd', false);
  const walk = new Walk(shape, thresholds);
  let atMs = 0;
  const ticks = node.ticks.map((tickSeed, index) => {
    const dice = new Dice(tickSeed);
    if (index > 0) atMs += gapMs(dice);
    return tickOf({ dice, tickSeed, atMs, pods, podSeeds: node.pods, walk, shape });
  });
  const kills = killsOf(base, pods);
  return {
    name: `node-${node.base}-${node.thresholds.length}-${node.pods.length}-${node.ticks.length}`,
    description: 'generated',
    config,
    node: shape.node,
    pods,
    ticks,
    ...(kills === undefined ? {} : { evictd: { kills } }),
  };
}

/** The same with everything in another order that is to make no difference. */
export function permuted(scenario: Scenario, seedOf: number, movesPods: boolean): Scenario {
  const dice = new Dice(seedOf);
  const keys = <T>(map: Readonly<Record<string, T>>): Readonly<Record<string, T>> =>
    Object.fromEntries(dice.shuffled(Object.entries(map)));
  const summary = (one: Summary | null | undefined): Summary | null | undefined =>
    one?.pods ? { ...one, pods: dice.shuffled(one.pods) } : one;
  const config = Object.fromEntries(
    dice.shuffled(
      Object.entries(scenario.config).map(([key, value]) => [
        key,
        typeof value === 'object' && !Array.isArray(value) ? keys(value) : value,
      ]),
    ),
  ) as ScenarioConfig;
  const { evictd } = scenario;
  const ticks = scenario.ticks.map((tick): Tick => {
    const { summaryAfterReclaim: after, evictd: extension, activePods } = tick;
    const samples = extension?.samples?.map(
      (sample): ExtraSample => ({ ...sample, summary: summary(sample.summary) ?? null }),
    );
    return {
      ...tick,
      summary: summary(tick.summary) ?? null,
      ...(after === undefined ? {} : { summaryAfterReclaim: summary(after) ?? null }),
      ...(activePods && movesPods ? { activePods: dice.shuffled(activePods) } : {}),
      ...(samples === undefined ? {} : { evictd: { ...extension, samples } }),
    };
  });
  return {
    ...scenario,
    config,
    pods: movesPods ? dice.shuffled(scenario.pods) : scenario.pods,
    ticks,
    ...(evictd?.kills ? { evictd: { ...evictd, kills: keys(evictd.kills) } } : {}),
  };
}

/** How large a node is, and how its statistics are. */
interface Shape {
  readonly node: Scenario['node'];
  readonly capacities: Readonly<Record<Signal, number>>;
  readonly times: 'none' | 'fresh' | 'any';
  /** How often, in percent, a part is missing or a reading fails. */
  readonly missingPercent: number;
  readonly hasOwnContainerfs: boolean;
}

function shapeOf(dice: Dice): Shape {
  const memory = dice.whole(2, 64) * GI + dice.whole(0, 3) * 12_345;
  const disk = () => dice.whole(10, 500) * GI + dice.whole(0, 3) * 54_321;
  const inodes = () => dice.whole(100_000, 10_000_000);
  return {
    node: dice.pick([
      { dedicatedImageFs: false, splitImageFs: false },
      { dedicatedImageFs: false, splitImageFs: false },
      { dedicatedImageFs: true, splitImageFs: false },
      { dedicatedImageFs: true, splitImageFs: false },
      { dedicatedImageFs: true, splitImageFs: true },
      { dedicatedImageFs: true, splitImageFs: true },
      { dedicatedImageFs: false, splitImageFs: true },
    ]),
    capacities: {
      'memory.available': memory,
      'allocatableMemory.available': memory - dice.whole(0, 1024) * MI,
      'nodefs.available': disk(),
      'nodefs.inodesFree': inodes(),
      'imagefs.available': disk(),
      'imagefs.inodesFree': inodes(),
      'containerfs.available': disk(),
      'containerfs.inodesFree': inodes(),
      'pid.available': dice.whole(4096, 65_536),
    },
    times: dice.pick(['none', 'none', 'fresh', 'fresh', 'any']),
    missingPercent: dice.pick([0, 0, 2, 8]),
    hasOwnContainerfs: dice.chance(40),
  };
}

/** Those that people watch most come up most. */
const WATCHED: readonly Signal[] = [
  'memory.available',
  'memory.available',
  'memory.available',
  'allocatableMemory.available',
  'nodefs.available',
  'nodefs.available',
  'nodefs.inodesFree',
  'imagefs.available',
  'imagefs.inodesFree',
  'containerfs.available',
  'containerfs.inodesFree',
  'pid.available',
  'pid.available',
];

function configOf(base: Dice, thresholds: readonly number[], shape: Shape): ScenarioConfig {
  const hard: Record<string, string> = {};
  const soft: Record<string, string> = {};
  const graces: Record<string, string> = {};
  const reclaims: Record<string, string> = {};
  for (const thresholdSeed of thresholds) {
    const dice = new Dice(thresholdSeed);
    const signal = dice.pick(WATCHED);
    const isHard = dice.chance(50);
    const capacity = shape.capacities[signal];
    const percent = isHard ? dice.whole(3, 15) : dice.whole(12, 30);
    // Two halves are one: only a threshold and a minimum reclaim of such show how they are rounded.
    const isHalved = dice.chance(15);
    const text = dice.chance(3)
      ? dice.pick(['0%', '100%', '0%', '100%', '100.0%'])
      : isHalved
        ? `${Math.ceil((capacity * percent) / 100)}500m`
        : amountText(dice, percent, capacity);
    if (isHard) {
      hard[signal] = text;
    } else {
      soft[signal] = text;
      graces[signal] = dice.pick(['0s', '5s', '10s', '10s', '20s', '30s', '1m30s', '2m0s']);
    }
    if (isHalved) reclaims[signal] = `${Math.ceil(capacity / 50)}500m`;
    else if (dice.chance(40)) reclaims[signal] = amountText(dice, dice.whole(1, 12), capacity);
  }
  const transition = base.pick([undefined, '0s', '10s', '30s', '1m0s', '2m0s']);
  const maxGrace = base.pick([undefined, 0, 10, 60, 60, -1]);
  const hardGrace = base.pick([undefined, undefined, undefined, 0, 1, 5]);
  const isolation = base.pick([undefined, undefined, undefined, true, false]);
  const enforced = base.pick([undefined, undefined, ['pods'], []]);
  return {
    evictionHard: hard,
    evictionSoft: soft,
    evictionSoftGracePeriod: graces,
    evictionMinimumReclaim: reclaims,
    ...(transition === undefined ? {} : { evictionPressureTransitionPeriod: transition }),
    ...(maxGrace === undefined ? {} : { evictionMaxPodGracePeriod: maxGrace }),
    ...(hardGrace === undefined ? {} : { hardEvictionGracePeriodSeconds: hardGrace }),
    ...(isolation === undefined ? {} : { localStorageCapacityIsolation: isolation }),
    ...(enforced === undefined ? {} : { enforceNodeAllocatable: enforced }),
  };
}

/** About so much of the capacity, in one of the ways to write it. */
function amountText(dice: Dice, percent: number, capacity: number): string {
  const amount = Math.ceil((capacity * percent) / 100);
  const isLarge = capacity > GI;
  switch (dice.whole(0, 6)) {
    case 0:
      return `${percent}%`;
    case 1:
      return `${percent}.${dice.whole(1, 9)}%`;
    case 2:
      return `${amount}`;
    case 3:
      return isLarge ? `${Math.ceil(amount / MI)}Mi` : `${Math.ceil(amount / 1000)}k`;
    case 4:
      return isLarge ? `${(amount / GI).toFixed(2)}1Gi` : `${amount}`;
    case 5:
      return isLarge ? `${Math.ceil(amount / 1e6)}M` : `${amount}500m`;
    default:
      return isLarge ? `${Math.ceil(amount / KI)}Ki` : `${Math.ceil(amount / KI)}Ki`;
  }
}

function podOf(dice: Dice, index: number): KubernetesPod {
  const priority = dice.pick([undefined, 0, 0, 0, 100, 100, 1000, -10, 1_999_999_999]);
  const critical = dice.chance(8) ? dice.pick([2_000_000_000, 2_000_001_000]) : priority;
  const grace = dice.pick([undefined, 0, 5, 30, 30, 120]);
  const overhead = dice.chance(20) ? resources(dice, 2) : undefined;
  const containers = Array.from({ length: dice.pick([1, 1, 2, 3]) }, (_, at) =>
    containerOf(dice, `c${at}`),
  );
  const initContainers = Array.from({ length: dice.pick([0, 0, 0, 1, 2, 3]) }, (_, at) => ({
    ...containerOf(dice, `i${at}`),
    ...(dice.chance(50) ? { restartPolicy: 'Always' } : {}),
  }));
  const volumes = Array.from({ length: dice.pick([0, 0, 1, 2, 3]) }, (_, at) =>
    volumeOf(dice, `v${at}`),
  );
  const annotations = dice.chance(10)
    ? dice.pick<Record<string, string>>([
        { 'kubernetes.io/config.source': 'file' },
        { 'kubernetes.io/config.source': 'api' },
        { 'kubernetes.io/config.mirror': 'abc' },
        { 'kubernetes.io/config.mirror': '' },
      ])
    : undefined;
  const qosClass = dice.pick([undefined, undefined, 'BestEffort', 'Burstable', 'Guaranteed']);
  const tolerations = dice.chance(30)
    ? [dice.pick([{ operator: 'Exists' }, { key: 'other' }, MEMORY_PRESSURE])]
    : undefined;
  return {
    metadata: {
      name: `${dice.pick(['web', 'db', 'Api', 'a', 'z'])}-${index}`,
      namespace: dice.pick(['default', 'kube-system', 'app']),
      uid: `uid-${dice.whole(0, 999)}-${index}`,
      ...(annotations === undefined ? {} : { annotations }),
    },
    spec: {
      containers,
      ...(initContainers.length === 0 ? {} : { initContainers }),
      ...(volumes.length === 0 ? {} : { volumes }),
      ...(critical === undefined ? {} : { priority: critical }),
      ...(grace === undefined ? {} : { terminationGracePeriodSeconds: grace }),
      ...(overhead === undefined ? {} : { overhead }),
      ...(tolerations === undefined ? {} : { tolerations }),
    },
    ...(qosClass === undefined ? {} : { status: { qosClass } }),
  };
}

const MEMORY_PRESSURE = { key: 'node.kubernetes.io/memory-pressure', effect: 'NoSchedule' };

function containerOf(dice: Dice, name: string): KubernetesContainer {
  const requests = dice.chance(65) ? resources(dice, 16) : undefined;
  const limits = dice.chance(10)
    ? { 'ephemeral-storage': quantityText(dice, dice.whole(10, 40)) }
    : undefined;
  if (requests === undefined && limits === undefined) return { name };
  return {
    name,
    resources: {
      ...(requests === undefined ? {} : { requests }),
      ...(limits === undefined ? {} : { limits }),
    },
  };
}

function resources(dice: Dice, mostUnits: number): ResourceList {
  return {
    ...(dice.chance(70) ? { memory: quantityText(dice, dice.whole(0, mostUnits)) } : {}),
    ...(dice.chance(50)
      ? { 'ephemeral-storage': quantityText(dice, dice.whole(0, mostUnits)) }
      : {}),
    ...(dice.chance(30) ? { cpu: '100m' } : {}),
  };
}

function quantityText(dice: Dice, units: number): string | number {
  const bytes = units * UNIT;
  return dice.pick([
    bytes,
    `${bytes}`,
    `${bytes / MI}Mi`,
    `${bytes / MI}Mi`,
    `${bytes / KI}Ki`,
    // Half a byte more: numbers alone cannot tell.
    `${bytes}500m`,
  ]);
}

function volumeOf(dice: Dice, name: string): KubernetesVolume {
  const limit = dice.chance(25) ? { sizeLimit: quantityText(dice, dice.whole(10, 24)) } : {};
  return dice.pick<KubernetesVolume>([
    { name, emptyDir: limit },
    { name, emptyDir: limit },
    { name, emptyDir: { ...limit, medium: 'Memory' } },
    { name, hostPath: { path: '/data' } },
    { name, configMap: { name: 'settings' } },
    { name },
  ]);
}

function killsOf(
  dice: Dice,
  pods: readonly KubernetesPod[],
): Readonly<Record<string, Kill>> | undefined {
  if (dice.chance(40)) return undefined;
  return Object.fromEntries(
    dice.some(pods, 50).map(({ metadata }): [string, Kill] => [
      `${metadata.namespace}/${metadata.name}`,
      {
        takes: dice.pick(['0s', '500ms', '5s', '15s', '1m0s']),
        outcome: dice.pick([
          'evicted',
          'evicted',
          'evicted',
          'evicted',
          'failed',
          'timedOut',
          'nothingToKill',
        ]),
      },
    ]),
  );
}

function gapMs(dice: Dice): number {
  return dice.pick([
    10_000, 10_000, 10_000, 10_000, 10_000, 10_000, 1000, 1000, 5000, 30_000, 90_000, 360_000,
  ]);
}

/** Where a signal stands relative to its thresholds. */
type Zone = 'calm' | 'reclaim' | 'soft' | 'hard' | 'edge';

/** The signals' way up and down: each stays where it is for a while. */
class Walk {
  readonly #zones = new Map<Signal, Zone>();
  readonly #thresholds: readonly PlainThreshold[];
  readonly #shape: Shape;
  #times = new Map<string, string>();

  constructor(shape: Shape, thresholds: readonly PlainThreshold[]) {
    this.#shape = shape;
    this.#thresholds = thresholds;
  }

  /** Goes on. */
  move(dice: Dice): void {
    for (const signal of Object.keys(this.#shape.capacities) as Signal[]) {
      if (this.#zones.has(signal) && dice.chance(70)) continue;
      this.#zones.set(signal, dice.pick(ZONES));
    }
  }

  /** Space comes back, all or some of it. */
  regain(dice: Dice): void {
    for (const [signal, zone] of this.#zones) {
      if (/^(memory|allocatable|pid)/.test(signal) || zone === 'calm') continue;
      this.#zones.set(signal, dice.pick(['calm', 'calm', 'reclaim', 'edge', zone]));
    }
  }

  /** A figure in the zone where the signal is. */
  available(signal: Signal, dice: Dice): number {
    const capacity = this.#shape.capacities[signal];
    const own = this.#thresholds.filter((threshold) => threshold.signal === signal);
    const levels = own.map(({ text }) => levelOf(text, capacity, 'evictd'));
    const regained = own.map((threshold) => levelWithReclaim(threshold, capacity, 'evictd'));
    const low = Math.min(capacity, ...levels);
    const high = Math.max(0, ...levels);
    const top = Math.max(0, ...regained);
    const within = (from: number, to: number): number =>
      Math.max(0, Math.min(capacity, dice.whole(from, Math.max(from, to - 1))));
    switch (this.#zones.get(signal) ?? 'calm') {
      case 'calm':
        return within(top, capacity);
      case 'reclaim':
        return dice.chance(30) ? Math.min(capacity, top) : within(high, top);
      case 'soft':
        return within(low, high);
      case 'hard':
        return within(0, low);
      case 'edge':
        return Math.max(
          0,
          Math.min(capacity, dice.pick([...levels, ...regained, 0]) - dice.whole(0, 1)),
        );
    }
  }

  /** The time of a part: of now, of before, or none. */
  time(part: string, atMs: number, dice: Dice): { readonly time?: string } {
    if (this.#shape.times === 'none') return {};
    const before = this.#times.get(part);
    if (this.#shape.times === 'any') {
      if (dice.chance(5)) return {};
      if (before !== undefined && dice.chance(30)) return { time: before };
    }
    const backMs = this.#shape.times === 'any' && dice.chance(8) ? 3_600_000 : 0;
    const time = timeText(START_MS + atMs - dice.whole(0, 900) - backMs, dice);
    this.#times.set(part, time);
    return { time };
  }
}

const ZONES: readonly Zone[] = [
  ...(['calm', 'calm', 'calm', 'calm', 'calm', 'calm'] as const),
  ...(['reclaim', 'soft', 'soft', 'soft', 'hard', 'hard', 'edge'] as const),
];

function timeText(ms: number, dice: Dice): string {
  const hours = dice.pick([0, 0, 2]);
  const local = new Date(ms + hours * 3_600_000).toISOString().slice(0, -1);
  return `${local}${dice.pick(['', '000', '125003'])}${hours === 0 ? 'Z' : '+02:00'}`;
}

interface TickParts {
  readonly dice: Dice;
  readonly tickSeed: number;
  readonly atMs: number;
  readonly pods: readonly KubernetesPod[];
  readonly podSeeds: readonly number[];
  readonly walk: Walk;
  readonly shape: Shape;
}

function tickOf(parts: TickParts): Tick {
  const { dice, atMs, pods, walk, shape } = parts;
  walk.move(dice);
  const summary = summaryOf(parts, 0);
  const names = pods.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
  const reclaim: { summaryAfterReclaim?: Summary | null } = {};
  if (dice.chance(60)) {
    walk.regain(dice);
    reclaim.summaryAfterReclaim = summaryOf(parts, 1);
  }
  const samples = dice.chance(12)
    ? dice.some([200, 700], 70).map((afterMs): ExtraSample => {
        walk.move(dice);
        const extra = summaryOf({ ...parts, atMs: atMs + afterMs }, 1 + afterMs);
        return { after: `${afterMs}ms`, summary: extra };
      })
    : [];
  const memAvailable = dice.chance(5) ? { memAvailableBytes: dice.whole(0, 64) * GI } : {};
  const images = imagesOf(parts, names);
  const isExtended =
    samples.length > 0 || Object.keys(memAvailable).length > 0 || images !== undefined;
  const failing = dice.chance(15) ? dice.some(names, 40) : [];
  const admit = dice.chance(15) ? [podOf(new Dice(parts.tickSeed, 7), 99)] : undefined;
  return {
    at: `${Math.floor(atMs / 60_000)}m${(atMs / 1000) % 60}s`,
    summary,
    ...reclaim,
    ...(dice.chance(20) ? { activePods: dice.shuffled(dice.some(names, 75)) } : {}),
    ...(failing.length === 0 ? {} : { killFails: failing }),
    ...(dice.chance(4) ? { imageGCFails: true } : {}),
    ...(dice.chance(4) ? { containerGCFails: true } : {}),
    ...(admit === undefined ? {} : { admit }),
    ...(isExtended
      ? { evictd: { ...memAvailable, samples, ...(images === undefined ? {} : { images }) } }
      : {}),
    ...(shape.missingPercent > 2 && dice.chance(5) ? { activePods: null } : {}),
  };
}

/** Where images have a filesystem of their own: an image of most pods, and one that some of them share. */
function imagesOf(
  { tickSeed, shape }: TickParts,
  names: readonly string[],
): readonly ImageEntry[] | undefined {
  // By dice of its own, so that all else is as it would be without.
  const dice = new Dice(tickSeed, 26);
  const { dedicatedImageFs, splitImageFs } = shape.node;
  if (!dedicatedImageFs || !splitImageFs || dice.chance(20)) return undefined;
  const image = (id: string, usedBy: readonly string[]): ImageEntry => ({
    id,
    sizeBytes: dice.whole(0, 6) * UNIT,
    age: dice.pick(['1m59s', '2m', '1h']),
    ...(dice.chance(8) ? { pinned: true } : {}),
    ...(dice.chance(8) ? { inUse: true } : {}),
    usedBy,
  });
  return [
    ...dice.some(names, 85).map((name) => image(`of ${name}`, [name])),
    image('shared', dice.some(names, 40)),
    ...dice.some(names, 30).map((name) => image(`second of ${name}`, [name])),
  ];
}

function summaryOf(parts: TickParts, salt: number): Summary | null {
  const { dice, atMs, walk, shape, pods, podSeeds, tickSeed } = parts;
  const isMissing = (): boolean => dice.chance(shape.missingPercent);
  if (isMissing()) return null;
  const memory = (signal: Signal): MemoryStats | null => {
    if (isMissing() || isMissing()) return null;
    const capacity = shape.capacities[signal];
    const isImpossible = dice.chance(1);
    const availableBytes = isImpossible
      ? dice.pick([-5 * GI, capacity + GI])
      : walk.available(signal, dice);
    return {
      ...walk.time(signal, atMs, dice),
      availableBytes,
      ...(isMissing() ? {} : { workingSetBytes: capacity - availableBytes }),
    };
  };
  const filesystem = (name: 'nodefs' | 'imagefs' | 'containerfs'): FilesystemStats | null => {
    if (isMissing() || isMissing()) return null;
    const [bytes, inodes] = [`${name}.available`, `${name}.inodesFree`] as const;
    return {
      ...walk.time(name, atMs, dice),
      ...(isMissing() ? {} : { availableBytes: walk.available(bytes, dice) }),
      capacityBytes: shape.capacities[bytes],
      inodesFree: walk.available(inodes, dice),
      ...(isMissing() ? {} : { inodes: shape.capacities[inodes] }),
    };
  };
  const [fs, imageFs, containerFs] = [
    filesystem('nodefs'),
    filesystem('imagefs'),
    filesystem('containerfs'),
  ];
  const isWithImages = shape.node.dedicatedImageFs && !shape.node.splitImageFs;
  const maxpid = shape.capacities['pid.available'];
  const curproc = dice.chance(1) ? maxpid + 10 : maxpid - walk.available('pid.available', dice);
  return {
    node: {
      memory: memory('memory.available'),
      fs,
      runtime: {
        imageFs,
        containerFs: shape.hasOwnContainerfs ? containerFs : isWithImages ? imageFs : fs,
      },
      ...(isMissing() ? {} : { rlimit: { ...walk.time('pid', atMs, dice), maxpid, curproc } }),
      systemContainers: [
        { name: 'kubelet', memory: { availableBytes: 0, workingSetBytes: 5 } },
        { name: 'pods', memory: memory('allocatableMemory.available') },
      ],
    },
    pods: pods.flatMap((pod, index) => {
      const own = new Dice(podSeeds[index] as number, tickSeed, salt);
      return own.chance(4) ? [] : [statsOf(pod, own, shape.missingPercent)];
    }),
  };
}

/** What a pod uses at a tick: about what it requests. */
function statsOf(pod: KubernetesPod, dice: Dice, missingPercent: number): PodStats {
  const { metadata, spec } = pod;
  const isThere = (): boolean => !dice.chance(missingPercent);
  const units = (most: number): number => dice.whole(0, most) * UNIT + dice.pick([0, 0, 0, 1]);
  const filesystem = (most: number): FilesystemStats => ({
    ...(isThere() ? { usedBytes: units(most) } : {}),
    ...(isThere() ? { inodesUsed: dice.whole(0, 20) * 100 } : {}),
  });
  const all = [...(spec.containers ?? []), ...(spec.initContainers ?? [])];
  const containers = (isThere() ? all : []).map(
    ({ name }): ContainerStats => ({
      name,
      ...(isThere() ? { memory: { workingSetBytes: units(12) } } : {}),
      ...(isThere() ? { rootfs: filesystem(12) } : {}),
      ...(isThere() ? { logs: filesystem(6) } : {}),
    }),
  );
  return {
    podRef: metadata,
    ...(isThere() ? { memory: { workingSetBytes: units(24) } } : {}),
    containers,
    volume: (spec.volumes ?? []).map(({ name }) => ({ name, ...filesystem(12) })),
    ...(isThere() ? { 'ephemeral-storage': { usedBytes: units(40) } } : {}),
    ...(isThere() ? { process_stats: { process_count: dice.whole(0, 12) * 50 } } : {}),
  };
}

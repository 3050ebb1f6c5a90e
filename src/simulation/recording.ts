/**
 * Recorded turns as a scenario: run under the configuration it was recorded by, it decides what was
 * decided, in the same rounds.
 */
import type { ScenarioConfig } from '../config/scenario-config.ts';
import { HARD_GRACE_SECONDS } from '../config/settings.ts';
import { formatDuration } from '../core/duration.ts';
import type { KubernetesPod, MemoryStats, PodStats, Summary } from '../core/kubernetes.ts';
import type { Compatibility } from '../core/policy.ts';
import {
  CGROUP_NAMESPACE,
  type RecordedDisk,
  type RecordedOutcome,
  type RecordedPod,
  type RecordedSignal,
  type RecordedTurn,
} from '../core/recorded.ts';
import { SIGNALS, type Signal } from '../core/signal.ts';
import type { Kill, Scenario, Tick, TickExtension } from './scenario.ts';

/** What was recorded, in the order of time. */
export interface Recording {
  readonly name: string;
  readonly description: string;
  readonly config: ScenarioConfig;
  readonly node: Scenario['node'];
  /** As they were seen before the first turn. */
  readonly pods: readonly RecordedPod[];
  /** Whether an eviction was in flight before the first turn. */
  readonly evicting: boolean;
  readonly turns: readonly ScenarioTurn[];
}

/** A turn, and the configuration that holds from it on, where that is another one. */
export interface ScenarioTurn extends RecordedTurn {
  readonly config?: ScenarioConfig;
}

/**
 * So much sooner than it was heard of has an eviction ended, ms: the sum of rounded times must not
 * exceed the instant of the round.
 */
const HEARD_LATER_MS = 0.001;

const US_PER_MS = 1000;

/** A recorded run as a scenario. */
export function scenarioOf(recording: Recording): Scenario {
  const { name, description, config, node } = recording;
  const isOwn = config.compatibility !== 'kubelet';
  const turns = peopled(recording.pods, fromFirst(replayable(recording, isOwn)));
  const cast = new Cast(turns.flatMap(({ there }) => there));
  const kills = killsOf(turns);
  const collections = collectionsOf(turns);
  const ticks = turns.map((turn): Tick => {
    const kill = kills.get(turn);
    const evictd = tickExtension({
      config: turn.config && withDefaults(turn.config, config),
      kills: kill && { [cast.nameOf(kill.pod)]: kill.kill },
      spaceHeld: turn.spaceHeld,
      images: imagesOf(turn.there, cast),
      collection: isOwn ? collections.marks.get(turn) : undefined,
    });
    const after = collections.after.get(turn);
    return {
      at: formatDuration(turn.atMs),
      summary: summaryOf(turn.signals, turn.there, cast),
      ...(after === undefined ? {} : { summaryAfterReclaim: summaryOf(after, turn.there, cast) }),
      activePods: turn.there.filter((pod) => cast.isActive(pod)).map((pod) => cast.nameOf(pod)),
      ...(!isOwn && kill !== undefined && kill.kill.outcome !== 'evicted'
        ? { killFails: [cast.nameOf(kill.pod)] }
        : {}),
      ...(evictd === undefined ? {} : { evictd }),
    };
  });
  return {
    name,
    description,
    config,
    node,
    pods: cast.pods(),
    ticks,
    evictd: {
      recorded: true,
      ranksDisk: turns.some(({ there }) => there.some(({ disk }) => disk !== undefined)),
      // None goes for images where none may be removed.
      reclaims: turns.some(
        ({ there, decision }) =>
          decision.kind === 'reclaim' ||
          there.some(({ exclusiveImageBytes }) => exclusiveImageBytes !== undefined),
      ),
      protected: cast.guarded(),
      kills: Object.fromEntries(
        [...kills.values()].map(({ pod, kill }) => [cast.nameOf(pod), kill]),
      ),
    },
  };
}

/**
 * The turns that can be decided again: none before the end of an eviction whose decision is missing.
 * By the kubelet's rules, where nothing else happens while a pod is killed, none while one runs.
 */
function replayable({ turns, evicting }: Recording, isOwn: boolean): readonly ScenarioTurn[] {
  let isSkipped = evicting;
  return turns.filter((turn) => {
    if (turn.outcome !== null) isSkipped = false;
    const isKept = !isSkipped;
    if (turn.decision.kind === 'evict') isSkipped = !isOwn;
    return isKept;
  });
}

/**
 * Turns whose time counts from the first one, in whole microseconds: more digits would tell nothing more.
 * A period of whole microseconds that was over between two of them still is.
 */
function fromFirst(turns: readonly ScenarioTurn[]): readonly ScenarioTurn[] {
  const startMs = turns[0]?.atMs ?? 0;
  return turns.map((turn) => ({
    ...turn,
    atMs: Math.round((turn.atMs - startMs) * US_PER_MS) / US_PER_MS,
  }));
}

/** A pod in one of its lives: what joins the cgroup of an evicted pod is another one. */
interface LivingPod extends RecordedPod {
  readonly life: number;
}

/** A turn, and the pods that were there by what was last read. */
interface PeopledTurn extends ScenarioTurn {
  readonly there: readonly LivingPod[];
}

/** What is left of an evicted pod is an empty cgroup, and nobody until a process joins it. */
function peopled(
  before: readonly RecordedPod[],
  turns: readonly ScenarioTurn[],
): readonly PeopledTurn[] {
  const lives = new Map<string, number>();
  const empty = new Set<string>();
  const living = (pods: readonly RecordedPod[]): readonly LivingPod[] =>
    pods.flatMap((pod) => {
      if (pod.protected === null) empty.delete(pod.id);
      return empty.has(pod.id) ? [] : [{ ...pod, life: lives.get(pod.id) ?? 1 }];
    });
  let there = living(before);
  return turns.map((turn) => {
    if (turn.outcome?.kind === 'evicted') {
      const { podId } = turn.outcome;
      lives.set(podId, (lives.get(podId) ?? 1) + 1);
      empty.add(podId);
      there = there.filter(({ id }) => id !== podId);
    }
    if (turn.pods !== null) there = living(turn.pods);
    return { ...turn, there };
  });
}

/** What collections came to. */
interface Collections {
  readonly marks: ReadonlyMap<ScenarioTurn, NonNullable<TickExtension['collection']>>;
  /** What is read after one that is over in the round, by its turns until then. */
  readonly after: ReadonlyMap<ScenarioTurn, readonly RecordedSignal[]>;
}

/** By the turns in which they were decided, and had ended. */
function collectionsOf(turns: readonly ScenarioTurn[]): Collections {
  const marks = new Map<ScenarioTurn, NonNullable<TickExtension['collection']>>();
  const after = new Map<ScenarioTurn, readonly RecordedSignal[]>();
  let running: ScenarioTurn[] = [];
  for (const turn of turns) {
    if (turn.reclaimed === true) {
      marks.set(turn, 'ended');
      for (const one of running) after.set(one, withDisksOf(one.signals, turn.signals));
      running = [];
    }
    if (running.length > 0 || turn.decision.kind === 'reclaim') running.push(turn);
  }
  const last = turns.at(-1);
  if (running.length > 0 && last !== undefined) marks.set(last, 'runs');
  return { marks, after };
}

/** Signals with what others have of filesystems in their place. */
function withDisksOf(
  signals: readonly RecordedSignal[],
  others: readonly RecordedSignal[],
): readonly RecordedSignal[] {
  const disks = others.filter(({ signal }) => SIGNALS[signal].filesystem !== undefined);
  return [...signals.filter(({ signal }) => !disks.some((one) => one.signal === signal)), ...disks];
}

interface RecordedKill {
  readonly pod: LivingPod;
  readonly kill: Kill;
}

/** How the evictions went, by the turn in which each was decided. */
function killsOf(turns: readonly PeopledTurn[]): ReadonlyMap<ScenarioTurn, RecordedKill> {
  const kills = new Map<ScenarioTurn, RecordedKill>();
  for (const [index, turn] of turns.entries()) {
    const { decision } = turn;
    if (decision.kind !== 'evict') continue;
    const pod = turn.there.find(({ id }) => id === decision.podId);
    if (pod === undefined) continue;
    const rest = turns.slice(index + 1);
    const end = rest.find(({ outcome }) => outcome?.podId === decision.podId);
    const during = rest.slice(0, end === undefined ? rest.length : rest.indexOf(end));
    kills.set(turn, { pod, kill: killOf(turn, during, end) });
  }
  return kills;
}

/** One that had not ended goes on beyond the last turn. */
function killOf(
  decided: ScenarioTurn,
  during: readonly ScenarioTurn[],
  end: ScenarioTurn | undefined,
): Kill {
  const lastMs = (end ?? during.at(-1) ?? decided).atMs;
  const endsAtMs = end === undefined ? lastMs + 1000 : lastMs - HEARD_LATER_MS;
  // A grace that was cut ends when the first of the two does.
  const graceEndsAtMs = [decided, ...during].flatMap(({ atMs, decision }) =>
    decision.kind === 'evict' || decision.kind === 'escalate'
      ? [atMs + decision.gracePeriodMs]
      : [],
  );
  const takesMs = endsAtMs - Math.min(...graceEndsAtMs);
  const outcome: RecordedOutcome = end?.outcome?.kind ?? 'evicted';
  // Exactly 0 would be at once.
  return { takes: formatDuration(takesMs === 0 ? -HEARD_LATER_MS : takesMs), outcome };
}

/**
 * A configuration that takes the place of another one: what it leaves to its rule set is said where the
 * other one's would stay.
 */
function withDefaults(config: ScenarioConfig, before: ScenarioConfig): ScenarioConfig {
  const isSaid = config.hardEvictionGracePeriodSeconds !== undefined;
  if (isSaid || before.hardEvictionGracePeriodSeconds === undefined) return config;
  const rules: Compatibility = config.compatibility === 'kubelet' ? 'kubelet' : 'evictd';
  return { ...config, hardEvictionGracePeriodSeconds: HARD_GRACE_SECONDS[rules] };
}

/** Only what there is. */
function tickExtension({
  config,
  kills,
  spaceHeld,
  images,
  collection,
}: {
  readonly [Key in 'config' | 'kills' | 'spaceHeld' | 'images' | 'collection']:
    | TickExtension[Key]
    | undefined;
}): TickExtension | undefined {
  const extension = {
    ...(spaceHeld === true ? { spaceHeld } : {}),
    ...(images === undefined ? {} : { images }),
    ...(collection === undefined ? {} : { collection }),
    ...(config === undefined ? {} : { config }),
    ...(kills === undefined ? {} : { kills }),
  };
  return Object.keys(extension).length === 0 ? undefined : extension;
}

/** One image for all that a pod alone uses, as old as any that may be removed. */
function imagesOf(pods: readonly LivingPod[], cast: Cast): TickExtension['images'] {
  const images = pods.flatMap((pod) => {
    const { exclusiveImageBytes: sizeBytes } = pod;
    const name = cast.nameOf(pod);
    return sizeBytes === undefined
      ? []
      : [{ id: `images of ${name}`, sizeBytes, age: '1h', usedBy: [name] }];
  });
  return images.length === 0 ? undefined : images;
}

/** What is said of a pod once, in a scenario. */
interface Part {
  readonly pod: RecordedPod;
  readonly namespace: string;
  /** Without its namespace. */
  readonly name: string;
  readonly uid: string;
  /** Whether it was protected each time that it was seen. */
  isAlwaysProtected: boolean;
}

/**
 * The pods of a scenario, which do not change: one that was seen with another priority, class, request
 * or grace, or made again under its name, or in the cgroup of one that was evicted, is another pod, `NAME@2`.
 *
 * Protection may come and go. What is protected for a while is no active pod for that long.
 */
class Cast {
  readonly #parts = new Map<string, Part>();

  constructor(seen: readonly LivingPod[]) {
    const names = new Map<string, number>();
    const uids = new Map<string, number>();
    for (const pod of seen) {
      const part = this.#parts.get(keyOf(pod));
      if (part === undefined) {
        const isAlwaysProtected = pod.protected !== null;
        const { namespace = CGROUP_NAMESPACE } = pod;
        const own = pod.name.startsWith(`${namespace}/`) ? pod.name : `${namespace}/${pod.name}`;
        const name = numbered(names, own).slice(namespace.length + 1);
        const uid = numbered(uids, pod.id);
        this.#parts.set(keyOf(pod), { pod, namespace, name, uid, isAlwaysProtected });
      } else if (pod.protected === null) {
        part.isAlwaysProtected = false;
      }
    }
  }

  nameOf(pod: LivingPod): string {
    const { namespace, name } = this.partOf(pod);
    return `${namespace}/${name}`;
  }

  partOf(pod: LivingPod): Part {
    return this.#parts.get(keyOf(pod)) as Part;
  }

  isActive(pod: LivingPod): boolean {
    return pod.protected === null || this.partOf(pod).isAlwaysProtected;
  }

  pods(): readonly KubernetesPod[] {
    return [...this.#parts.values()].map(kubernetesPod);
  }

  /** Why those are protected that always are. */
  guarded(): Readonly<Record<string, string>> {
    return Object.fromEntries(
      [...this.#parts.values()].flatMap(({ pod, namespace, name, isAlwaysProtected }) =>
        isAlwaysProtected ? [[`${namespace}/${name}`, pod.protected ?? '']] : [],
      ),
    );
  }
}

function keyOf(pod: LivingPod): string {
  const { id, life, priority, qosClass, memoryRequest, gracePeriodSeconds } = pod;
  return JSON.stringify([id, life, priority, qosClass, memoryRequest, gracePeriodSeconds]);
}

/** The text, numbered from its second time on. */
function numbered(times: Map<string, number>, text: string): string {
  const time = (times.get(text) ?? 0) + 1;
  times.set(text, time);
  return time === 1 ? text : numbered(times, `${text}@${time}`);
}

function kubernetesPod({ pod, namespace, name, uid, isAlwaysProtected }: Part): KubernetesPod {
  const { memoryRequest, priority, gracePeriodSeconds, qosClass } = pod;
  const requests = memoryRequest === '0' ? {} : { requests: { memory: memoryRequest } };
  return {
    metadata: {
      name,
      namespace,
      uid,
      // What the kubelet's rules know of protection.
      ...(isAlwaysProtected ? { annotations: { 'kubernetes.io/config.source': 'file' } } : {}),
    },
    spec: {
      containers: [{ name: 'main', resources: requests }],
      ...(pod.disk === undefined ? {} : { volumes: [{ name: VOLUMES, emptyDir: {} }] }),
      priority,
      ...(gracePeriodSeconds === null ? {} : { terminationGracePeriodSeconds: gracePeriodSeconds }),
    },
    status: { qosClass },
  };
}

function summaryOf(
  signals: readonly RecordedSignal[],
  pods: readonly LivingPod[],
  cast: Cast,
): Summary {
  const of = (name: Signal) => signals.find(({ signal }) => signal === name);
  const fs = (name: 'nodefs' | 'imagefs' | 'containerfs') => {
    const [bytes, inodes] = [of(`${name}.available`), of(`${name}.inodesFree`)];
    return {
      ...(bytes && { availableBytes: bytes.available, capacityBytes: bytes.capacity }),
      ...(inodes && { inodesFree: inodes.available, inodes: inodes.capacity }),
    };
  };
  const [memory, ofPods, pids] = [
    of('memory.available'),
    of('allocatableMemory.available'),
    of('pid.available'),
  ];
  const runtime = { imageFs: fs('imagefs'), containerFs: fs('containerfs') };
  return {
    node: {
      ...(memory && { memory: memoryStats(memory) }),
      ...(ofPods && { systemContainers: [{ name: 'pods', memory: memoryStats(ofPods) }] }),
      ...given('fs', fs('nodefs')),
      ...given('runtime', {
        ...given('imageFs', runtime.imageFs),
        ...given('containerFs', runtime.containerFs),
      }),
      ...(pids && { rlimit: { maxpid: pids.capacity, curproc: pids.capacity - pids.available } }),
    },
    pods: pods.map((pod) => podStats(pod, cast.partOf(pod))),
  };
}

/** Left out where it is empty. */
function given<K extends string, V extends object>(key: K, value: V): { [Key in K]?: V } {
  return Object.keys(value).length === 0 ? {} : ({ [key]: value } as { [Key in K]?: V });
}

/** The kubelet's capacity is the sum of both. */
function memoryStats({ capacity, available }: RecordedSignal): MemoryStats {
  return { availableBytes: available, workingSetBytes: capacity - available };
}

function podStats(
  { workingSetBytes, pids, disk }: RecordedPod,
  { namespace, name, uid }: Part,
): PodStats {
  return {
    podRef: { name, namespace, uid },
    ...(disk === undefined ? {} : diskStats(disk)),
    ...(workingSetBytes === null ? {} : { memory: { workingSetBytes } }),
    ...(pids === null ? {} : { process_stats: { process_count: pids } }),
  };
}

/** What stands for all volumes of a pod. */
const VOLUMES = 'volumes';

function diskStats({
  root,
  logs,
  localVolumes,
}: RecordedDisk): Pick<PodStats, 'containers' | 'volume'> {
  const of = ({ bytes, inodes }: RecordedDisk['root']) => ({
    usedBytes: bytes,
    ...(inodes === null ? {} : { inodesUsed: inodes }),
  });
  return {
    containers: [{ name: 'main', rootfs: of(root), logs: of(logs) }],
    volume: [{ name: VOLUMES, ...of(localVolumes) }],
  };
}

import type { FilesystemLayout } from './layout.ts';
import type { DiskPart, PodObservation } from './pod.ts';
import type { Policy } from './policy.ts';
import { RULE_SETS, type Rules } from './rules.ts';
import { type FilesystemName, SIGNALS, type Signal } from './signal.ts';
import { compareText } from './text.ts';

/** Whether a pod is known to use more than it requests, what it uses is unknown, or it is within. */
export type Standing = 'exceeds' | 'unknown' | 'within';

/** A pod with all that its place depends on. */
export interface Ranked {
  readonly pod: PodObservation;
  /** `within` for all where requests do not count. */
  readonly standing: Standing;
  /**
   * What counts of its use, of the signal's unit in nano-units: for memory and disk what it uses above
   * its request; undefined where its use is unknown.
   */
  readonly usageNano: bigint | undefined;
  /** Whether it is so much that it could not be added up to the end: then it is at least that. */
  readonly isCut?: boolean;
}

/** Negative when `left` is to be evicted before `right`. */
export type PodComparator = (left: Ranked, right: Ranked) => number;

const NANO = 1_000_000_000n;

/** What a ranking is by. */
export interface Ranking {
  readonly layout: FilesystemLayout;
  readonly rules: Rules;
}

/** By evictd's own rules, where nothing is known of the filesystems. */
export const OWN_RANKING: Ranking = { layout: 'single', rules: RULE_SETS.evictd };

/**
 * Known offenders first, then pods of unknown usage, then those known to be within their request; to
 * the kubelet a pod without stats comes before all. Source: kubelet `helpers.go`,
 * `exceedMemoryRequests`, `exceedDiskRequests`.
 */
export function byStanding(rules: Rules): PodComparator {
  const order = STANDINGS[rules.unknownUsage];
  return (left, right) => order[left.standing] - order[right.standing];
}

const STANDINGS = {
  kubelet: { unknown: 0, exceeds: 1, within: 2 },
  evictd: { exceeds: 0, unknown: 1, within: 2 },
} as const;

/** Lowest priority first. Source: kubelet `helpers.go`, `priority`. */
export const byPriority: PodComparator = ({ pod: left }, { pod: right }) =>
  left.priority - right.priority;

/**
 * Most use first; one that is unknown last, to the kubelet first. Source: kubelet `helpers.go`,
 * `memory`, `disk`, `process`.
 */
export function byUsage(rules: Rules): PodComparator {
  const unknownFirst = rules.unknownUsage === 'kubelet' ? -1 : 1;
  return ({ usageNano: left }, { usageNano: right }) => {
    if (left === right) return 0;
    if (left === undefined) return unknownFirst;
    if (right === undefined) return -unknownFirst;
    return left > right ? -1 : 1;
  };
}

/**
 * What could not be added up to the end before all that was: the other way round whoever hides a large file behind
 * many small ones would go after all the innocent.
 */
export const byCut: PodComparator = ({ isCut: left = false }, { isCut: right = false }) =>
  Number(right) - Number(left);

/** By name, then id, in code-unit order: what makes the order total. */
export const byName: PodComparator = ({ pod: left }, { pod: right }) =>
  compareText(left.name, right.name) || compareText(left.id, right.id);

/** The first comparator that tells two pods apart decides. */
export function orderedBy(...comparators: readonly PodComparator[]): PodComparator {
  return (left, right) => {
    for (const compare of comparators) {
      const order = compare(left, right);
      if (order !== 0) return order;
    }
    return 0;
  };
}

/** Whether pods are evicted for a signal: not for images where none may be removed afterwards. */
export function isEvictedFor(
  signal: Signal,
  policy: Pick<Policy, 'ranksDisk' | 'reclaims'> & Ranking,
): boolean {
  if (SIGNALS[signal].filesystem === undefined) return true;
  return policy.ranksDisk && (!countsImages(signal, policy) || policy.reclaims.includes('images'));
}

/**
 * Whether pods are ranked by the images that they alone use: nothing else of them lies there. Nobody tells
 * how many inodes an image has, for which its size stands.
 */
export function countsImages(signal: Signal, { layout, rules }: Ranking): boolean {
  const { filesystem } = SIGNALS[signal];
  if (filesystem === undefined || rules.exclusiveImages === 'kubelet') return false;
  return DISK_PARTS[layout][filesystem].length === 0;
}

/** Whether the end of a pod frees anything of what is short, as far as that is known. */
export function freesSomething(
  pod: Pick<PodObservation, 'pids' | 'exclusiveImageBytes' | 'disk'>,
  signal: Signal,
  ranking: Ranking,
): boolean {
  const { rules } = ranking;
  if (signal === 'pid.available') return pod.pids !== 0 || rules.countedPids === 'kubelet';
  if (countsImages(signal, ranking)) return pod.exclusiveImageBytes !== 0;
  if (rules.nothingThere === 'kubelet') return true;
  const used = usedOnDisk(pod, signal, ranking);
  return used?.amount !== 0 || used.isLeast;
}

/** What something is known to use of a filesystem, in the unit of a signal. */
export interface DiskAmount {
  readonly amount: number;
  /** Whether it may be more. */
  readonly isLeast: boolean;
}

/** What a pod uses of the filesystem that a signal is about, images aside; undefined where that is not known. */
export function usedOnDisk(
  { disk }: Pick<PodObservation, 'disk'>,
  signal: Signal,
  { layout }: Pick<Ranking, 'layout'>,
): DiskAmount | undefined {
  const { filesystem, unit } = SIGNALS[signal];
  if (filesystem === undefined || disk === undefined) return undefined;
  const parts = DISK_PARTS[layout][filesystem];
  const amount = diskUsage({ disk }, parts, unit === 'bytes' ? 'bytes' : 'inodes');
  if (amount === undefined) return undefined;
  return { amount, isLeast: parts.some((part) => disk[part].isLeast === true) };
}

/**
 * What of a pod lies on each filesystem beside images, which are no pod's to the kubelet. Source: kubelet
 * `helpers.go`, `buildSignalToRankFunc`.
 */
const DISK_PARTS: Readonly<
  Record<FilesystemLayout, Readonly<Record<FilesystemName, readonly DiskPart[]>>>
> = {
  single: {
    nodefs: ['root', 'logs', 'localVolumes'],
    imagefs: ['root', 'logs', 'localVolumes'],
    containerfs: ['root', 'logs', 'localVolumes'],
  },
  dedicatedImagefs: {
    nodefs: ['logs', 'localVolumes'],
    imagefs: ['root'],
    containerfs: ['root'],
  },
  splitImagefs: {
    nodefs: ['root', 'logs', 'localVolumes'],
    imagefs: [],
    containerfs: ['root', 'logs', 'localVolumes'],
  },
  separateContainerfs: {
    nodefs: ['logs', 'localVolumes'],
    imagefs: [],
    containerfs: ['root'],
  },
};

/** All pods with their places, the first candidate for `signal` first, protected ones included. */
export function rankWithReasons(
  signal: Signal,
  pods: readonly PodObservation[],
  ranking: Ranking = OWN_RANKING,
): readonly Ranked[] {
  return pods.map(measurer(signal, ranking)).sort(placeComparator(signal, ranking));
}

/** The same order for two pods at a time. */
export function podComparator(
  signal: Signal,
  ranking: Ranking = OWN_RANKING,
): (left: PodObservation, right: PodObservation) => number {
  const [measure, order] = [measurer(signal, ranking), placeComparator(signal, ranking)];
  return (left, right) => order(measure(left), measure(right));
}

/** PIDs are not requested, so that nobody exceeds a request of them. */
function orderFor(signal: Signal, { rules }: Ranking): PodComparator {
  return signal === 'pid.available'
    ? orderedBy(byPriority, byUsage(rules), byName)
    : orderedBy(byStanding(rules), byPriority, byCut, byUsage(rules), byName);
}

/** All pods, the first candidate for `signal` first, those that may not be evicted included. */
export function rankPods(
  signal: Signal,
  pods: readonly PodObservation[],
  ranking: Ranking = OWN_RANKING,
): readonly PodObservation[] {
  return rankWithReasons(signal, pods, ranking).map(({ pod }) => pod);
}

/**
 * How far apart two uses, each less its request, must be for numbers to tell them apart, units: whole
 * units below 2^53, one division and two subtractions are off by less than this.
 */
const NEAR = 16;

/** A pod's place with the numbers that it is compared by. */
class Place implements Ranked {
  readonly pod: PodObservation;
  readonly standing: Standing;
  /** Among standings. */
  readonly order: number;
  readonly priority: number;
  /** What counts of its use, nearly; NaN where that is unknown, or too much to tell. */
  readonly nearly: number;
  readonly isCut: boolean;
  readonly #used: number | undefined;
  readonly #requestNano: bigint;
  #usageNano: bigint | undefined;

  constructor(
    pod: PodObservation,
    standing: Standing,
    used: number | undefined,
    requestNano: bigint,
    nearly: number,
    { unknownUsage }: Rules,
    isCut = false,
  ) {
    this.pod = pod;
    this.standing = standing;
    this.order = STANDINGS[unknownUsage][standing];
    this.priority = pod.priority;
    this.nearly = nearly;
    this.isCut = isCut;
    this.#used = used;
    this.#requestNano = requestNano;
  }

  get usageNano(): bigint | undefined {
    if (this.#used === undefined) return undefined;
    this.#usageNano ??= BigInt(this.#used) * NANO - this.#requestNano;
    return this.#usageNano;
  }
}

/**
 * The same order as {@link orderFor}'s. A node is ranked while it starves: numbers decide where they can,
 * and exact figures only where two pods are near to each other.
 */
function placeComparator(signal: Signal, ranking: Ranking): (left: Place, right: Place) => number {
  const exactly = orderFor(signal, ranking);
  return (left, right) => {
    if (left.order !== right.order) return left.order - right.order;
    if (left.priority !== right.priority) return left.priority - right.priority;
    if (left.isCut !== right.isCut) return left.isCut ? -1 : 1;
    const more = right.nearly - left.nearly;
    return more > NEAR || more < -NEAR ? more : exactly(left, right);
  };
}

/** Puts down what a pod's place for a signal depends on. */
function measurer(signal: Signal, ranking: Ranking): (pod: PodObservation) => Place {
  const { layout, rules } = ranking;
  const { filesystem, unit } = SIGNALS[signal];
  if (signal === 'pid.available') {
    return (pod) => new Place(pod, 'within', pod.pids, 0n, nearlyAbove(pod.pids, 0n), rules);
  }
  if (filesystem === undefined) {
    return (pod) => aboveRequest(pod, pod.workingSetBytes, pod.memoryRequestNano, rules);
  }
  if (countsImages(signal, ranking)) {
    return (pod) => aboveRequest(pod, pod.exclusiveImageBytes, 0n, rules);
  }
  const parts = DISK_PARTS[layout][filesystem];
  if (unit === 'bytes') {
    return (pod) => {
      const requestNano = pod.ephemeralStorageRequestNano ?? 0n;
      const isCut = isCutIn(pod, parts, rules);
      return aboveRequest(pod, diskUsage(pod, parts, 'bytes'), requestNano, rules, isCut);
    };
  }
  const subtractsBytes = rules.inodeRequest === 'kubelet';
  return (pod) => {
    const used = diskUsage(pod, parts, 'inodes');
    const requestNano = subtractsBytes ? (pod.ephemeralStorageRequestNano ?? 0n) : 0n;
    const nearly = nearlyAbove(used, requestNano);
    const isCut = isCutIn(pod, parts, rules);
    const standing = standingOf(used, 0n, nearlyAbove(used, 0n), isCut);
    return new Place(pod, standing, used, requestNano, nearly, rules, isCut);
  };
}

function aboveRequest(
  pod: PodObservation,
  used: number | undefined,
  requestNano: bigint,
  rules: Rules,
  isCut = false,
): Place {
  const nearly = nearlyAbove(used, requestNano);
  const standing = standingOf(used, requestNano, nearly, isCut);
  return new Place(pod, standing, used, requestNano, nearly, rules, isCut);
}

/** Who is cut below his request may exceed it. */
function standingOf(
  used: number | undefined,
  requestNano: bigint,
  nearly: number,
  isCut: boolean,
): Standing {
  if (used === undefined) return 'unknown';
  if (nearly > NEAR) return 'exceeds';
  const least = isCut ? 'unknown' : 'within';
  if (nearly < -NEAR) return least;
  return BigInt(used) * NANO > requestNano ? 'exceeds' : least;
}

/** To the kubelet a figure is what it is. */
function isCutIn(
  { disk }: PodObservation,
  parts: readonly DiskPart[],
  { cutFigures }: Rules,
): boolean {
  return cutFigures === 'evictd' && parts.some((part) => disk?.[part].isCut === true);
}

/** What is used above a request, nearly; NaN where that is unknown, or too much to tell. */
function nearlyAbove(used: number | undefined, requestNano: bigint): number {
  if (used === undefined) return Number.NaN;
  const request = requestNano === 0n ? 0 : Number(requestNano) / 1e9;
  return used <= Number.MAX_SAFE_INTEGER && Math.abs(request) <= Number.MAX_SAFE_INTEGER
    ? used - request
    : Number.NaN;
}

function diskUsage(
  { disk }: Pick<PodObservation, 'disk'>,
  parts: readonly DiskPart[],
  what: 'bytes' | 'inodes',
): number | undefined {
  if (disk === undefined) return undefined;
  let sum = 0;
  for (const part of parts) {
    const used = disk[part][what];
    if (used === undefined) return undefined;
    sum += used;
  }
  return sum;
}

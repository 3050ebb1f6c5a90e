/**
 * What a scenario says, read plainly: by no code of evictd's own, so that a fault in that shows. It reads
 * the spellings that `nodes.ts` writes, and no more.
 */

import type { ScenarioConfig } from '../../src/config/scenario-config.ts';
import type {
  FilesystemStats,
  MemoryStats,
  QuantityText,
  Summary,
} from '../../src/core/kubernetes.ts';
import type { Compatibility } from '../../src/core/policy.ts';
import type { Signal } from '../../src/core/signal.ts';
import type { Scenario } from '../../src/simulation/scenario.ts';

const NANO = 1_000_000_000n;

const FACTORS: Readonly<Record<string, bigint>> = {
  '': NANO,
  m: NANO / 1000n,
  k: NANO * 1000n,
  M: NANO * 1000n ** 2n,
  G: NANO * 1000n ** 3n,
  Ki: NANO * 1024n,
  Mi: NANO * 1024n ** 2n,
  Gi: NANO * 1024n ** 3n,
};

/** A quantity in nano-units; 0 for none. */
export function nanoOf(text: QuantityText | null | undefined): bigint {
  if (text === undefined || text === null) return 0n;
  const match = /^(\d+)(?:\.(\d+))?(|m|k|M|G|Ki|Mi|Gi)$/.exec(String(text));
  if (match === null) throw new Error(`not a quantity of this suite: ${text}`);
  const [, whole = '', fraction = '', suffix = ''] = match;
  return (BigInt(whole + fraction) * (FACTORS[suffix] as bigint)) / 10n ** BigInt(fraction.length);
}

/** A Go duration in ms. */
export function msOf(text: string): number {
  const units = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 };
  return [...text.matchAll(/(\d+)(ms|h|m|s)/g)].reduce(
    (sum, [, count, unit]) => sum + Number(count) * units[unit as keyof typeof units],
    0,
  );
}

/** A time in ns since 1970. */
export function nsOf(text: string | null | undefined): bigint | undefined {
  if (text === undefined || text === null) return undefined;
  const fraction = /\.(\d+)/.exec(text)?.[1] ?? '';
  const seconds = Date.parse(text.replace(/\.\d+/, ''));
  return BigInt(seconds) * 1_000_000n + BigInt(fraction.padEnd(9, '0'));
}

/** A threshold as the configuration gives it. */
export interface PlainThreshold {
  readonly id: string;
  readonly signal: Signal;
  readonly kind: 'hard' | 'soft';
  readonly text: string;
  readonly graceMs: number;
  readonly reclaim: string | undefined;
}

/** How many whole units a text is of this capacity. */
export function levelOf(text: string, capacity: number, compatibility: Compatibility): number {
  if (!text.endsWith('%')) return wholeUnits(nanoOf(text));
  const percent = text.slice(0, -1);
  if (compatibility === 'kubelet') {
    return Math.trunc(capacity * Math.fround(Math.fround(Number(percent)) / 100));
  }
  return Number((BigInt(capacity) * nanoOf(percent)) / (100n * NANO));
}

/** The level, with the minimum reclaim: two quantities are added before they are rounded up. */
export function levelWithReclaim(
  { text, reclaim }: PlainThreshold,
  capacity: number,
  compatibility: Compatibility,
): number {
  if (reclaim === undefined) return levelOf(text, capacity, compatibility);
  if (!text.endsWith('%') && !reclaim.endsWith('%'))
    return wholeUnits(nanoOf(text) + nanoOf(reclaim));
  return levelOf(text, capacity, compatibility) + levelOf(reclaim, capacity, compatibility);
}

function wholeUnits(nano: bigint): number {
  return Number((nano + NANO - 1n) / NANO);
}

/** By evictd's rules what equals 0 or 100 % is off; by the kubelet's these two spellings are. */
function isOff(text: string, compatibility: Compatibility): boolean {
  if (!text.endsWith('%')) return false;
  if (compatibility === 'kubelet') return text === '0%' || text === '100%';
  return [0, 100].includes(Number(text.slice(0, -1)));
}

type Texts = Readonly<Record<string, string>>;

/** The thresholds of a configuration, save those that follow from others of a filesystem. */
export function configured(
  config: ScenarioConfig,
  compatibility: Compatibility,
): readonly PlainThreshold[] {
  const graces = config.evictionSoftGracePeriod ?? {};
  const reclaims = config.evictionMinimumReclaim ?? {};
  const of = (kind: 'hard' | 'soft', texts: Texts = {}): readonly PlainThreshold[] =>
    Object.entries(texts)
      .filter(([, text]) => !isOff(text, compatibility))
      .map(([signal, text]) => ({
        id: `${kind}:${signal}`,
        signal: signal as Signal,
        kind,
        text,
        graceMs: kind === 'hard' ? 0 : msOf(graces[signal] ?? '0s'),
        reclaim: reclaims[signal],
      }));
  const named = [...of('hard', config.evictionHard), ...of('soft', config.evictionSoft)];
  if (!(config.enforceNodeAllocatable ?? ['pods']).includes('pods')) return named;
  // What acts at once on memory does so on what the pods have together, as it stands; evictd goes by
  // what was given for that, where something was.
  const copied: Signal = 'allocatableMemory.available';
  const given = { hard: config.evictionHard ?? {}, soft: config.evictionSoft ?? {} };
  const copies = named
    .filter(({ signal, graceMs }) => signal === 'memory.available' && graceMs === 0)
    .filter(({ kind }) => compatibility === 'kubelet' || !(copied in given[kind]))
    .map((one) => ({ ...one, id: `${one.kind}:${copied}`, signal: copied }));
  return [...named, ...copies];
}

/** All thresholds in a round: writable layers have those of the filesystem that they lie on. */
export function thresholdsIn(
  { config, node }: Pick<Scenario, 'config' | 'node'>,
  compatibility: Compatibility,
  isFirstRound: boolean,
): readonly PlainThreshold[] {
  const given = configured(config, compatibility);
  const { dedicatedImageFs, splitImageFs } = node;
  if (splitImageFs && !dedicatedImageFs) return given;
  const followed = dedicatedImageFs && !splitImageFs ? 'imagefs' : 'nodefs';
  const own = given.filter(({ signal }) => signal.startsWith('containerfs.'));
  const others = given.filter(({ signal }) => !signal.startsWith('containerfs.'));
  const derived = others.flatMap((threshold) => {
    if (!threshold.signal.startsWith(`${followed}.`)) return [];
    const signal = threshold.signal.replace(followed, 'containerfs') as Signal;
    return [{ ...threshold, id: `${threshold.kind}:${signal}`, signal }];
  });
  const isLate = isFirstRound && compatibility === 'kubelet';
  // A soft one that acts at once is a hard one to the kubelet.
  const takesPlace = ({ signal, graceMs }: PlainThreshold): boolean =>
    own.some((one) => one.signal === signal && (one.graceMs === 0) === (graceMs === 0));
  return [...others, ...derived.filter((one) => !isLate || takesPlace(one))];
}

/** What a summary says of a signal. */
export interface Reading {
  readonly available: number;
  readonly capacity: number;
  readonly timeNs: bigint | undefined;
}

/** The signals that a summary has figures of; evictd takes none that cannot be true. */
export function readingsOf(
  summary: Summary,
  compatibility: Compatibility,
  memAvailableBytes: number | undefined,
): ReadonlyMap<Signal, Reading> {
  const readings = new Map<Signal, Reading>();
  const add = (
    signal: Signal,
    available: number | null | undefined,
    capacity: number | null | undefined,
    time: string | null | undefined,
  ): void => {
    if (typeof available !== 'number' || typeof capacity !== 'number') return;
    const isTrue = (figure: number): boolean => capacity > 0 && figure >= 0 && figure <= capacity;
    const timeNs = nsOf(time);
    if (compatibility === 'kubelet' || isTrue(available)) {
      readings.set(signal, { available, capacity, timeNs });
    } else if (signal === 'memory.available' && memAvailableBytes !== undefined) {
      if (isTrue(memAvailableBytes)) {
        readings.set(signal, { available: memAvailableBytes, capacity, timeNs });
      }
    }
  };
  const memory = (signal: Signal, stats: MemoryStats | null | undefined): void => {
    const { availableBytes, workingSetBytes, time } = stats ?? {};
    if (typeof availableBytes !== 'number' || typeof workingSetBytes !== 'number') return;
    add(signal, availableBytes, availableBytes + workingSetBytes, time);
  };
  const disk = (
    name: 'nodefs' | 'imagefs' | 'containerfs',
    stats?: FilesystemStats | null,
  ): void => {
    add(`${name}.available`, stats?.availableBytes, stats?.capacityBytes, stats?.time);
    add(`${name}.inodesFree`, stats?.inodesFree, stats?.inodes, stats?.time);
  };
  const { node } = summary;
  memory('memory.available', node?.memory);
  const pods = node?.systemContainers?.find(({ name }) => name === 'pods');
  memory('allocatableMemory.available', pods?.memory);
  disk('nodefs', node?.fs);
  disk('imagefs', node?.runtime?.imageFs);
  disk('containerfs', node?.runtime?.containerFs);
  const { maxpid, curproc, time } = node?.rlimit ?? {};
  if (typeof maxpid === 'number' && typeof curproc === 'number') {
    add('pid.available', maxpid - curproc, maxpid, time);
  }
  return readings;
}

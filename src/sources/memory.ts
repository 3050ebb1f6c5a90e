import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import type { SignalObservation } from '../core/observation.ts';
import type { Compatibility, MemorySource } from '../core/policy.ts';
import { type ControlFile, openControlFile } from '../kernel/control-file.ts';
import { numberField, wholeNumber } from '../kernel/fields.ts';
import type { MemoryReading, MemorySignal, ReadingFailure } from '../ports/readings.ts';

/** Reads the memory counters of one cgroup. */
export interface MemoryReader {
  readonly signal: MemorySignal;
  /** Where the cgroup is. */
  readonly directory: string;
  /** Fresh counters, or why there are none. Never throws; a cgroup made again is opened again. */
  read(): MemoryReading | ReadingFailure;
  close(): void;
}

export interface MemoryReaderInputs {
  readonly signal: MemorySignal;
  readonly directory: string;
  /** Whether it is the root of the hierarchy: then the host is read. */
  readonly isRoot: boolean;
  readonly compatibility: Compatibility;
  readonly memorySource: MemorySource;
  /** The monotonic clock. */
  readonly nowMs: () => number;
  /** Where the host's figures stand, `/proc/meminfo`. */
  readonly meminfo?: string;
}

interface OpenNode {
  readonly usage: ControlFile;
  readonly stat: ControlFile;
  readonly cgroupId: string;
}

/** How old the host's MemTotal may be, ms: it changes only when memory is plugged in or out. */
const HOST_MEMORY_AGE_MS = 10_000;

/** How far usage may exceed the capacity, by forced charges, before it cannot be true. */
const PLAUSIBLE_FRACTION = 1.05;

/**
 * A reader of a cgroup v1 directory. The counters stay open. Source: Linux,
 * admin-guide/cgroup-v1/memory.rst, sections 5.2 and 5.5; the working set is the kubelet's.
 *
 * The root's counters leave out kernel memory, slab and huge pages. There evictd's own rule is
 * MemTotal − MemFree − SReclaimable; the kubelet's figure stands with `compatibility: kubelet`.
 *
 * Counters that cannot be true (usage more than 5 % above the capacity) are refused, and a second
 * source takes their place: `memory.stat` of the same cgroup, on the root `/proc/meminfo`.
 */
export function memoryReader(inputs: MemoryReaderInputs): MemoryReader {
  const { directory, nowMs } = inputs;
  const meminfo = inputs.meminfo ?? '/proc/meminfo';
  let host: ControlFile | undefined;
  let node: OpenNode | undefined;
  const readHost = (): string => {
    host ??= openControlFile(meminfo);
    return host.read();
  };
  const hostMemoryBytes = hostMemory(readHost);
  const close = (): void => {
    node?.usage.close();
    node?.stat.close();
    host?.close();
    node = undefined;
    host = undefined;
  };
  const readOpen = (): MemoryReading => {
    node ??= openNode(directory);
    const atMs = nowMs();
    const figures = inputs.isRoot
      ? rootFigures(node, hostFigures(readHost()), inputs.compatibility)
      : cgroupFigures(node, hostMemoryBytes(atMs));
    return toReading(inputs, node, figures, atMs);
  };
  return {
    signal: inputs.signal,
    directory,
    read: () => {
      try {
        return readOpen();
      } catch {
        // Counters of a removed cgroup answer ENODEV for ever: look for one made again.
        close();
      }
      try {
        return readOpen();
      } catch (error) {
        close();
        return { error: error instanceof Error ? error.message : String(error) };
      }
    },
    close,
  };
}

/** What a source says, in bytes. */
interface Figures {
  readonly figures: MemoryReading['figures'];
  readonly refused: string | undefined;
  readonly capacityBytes: number;
  readonly usageBytes: number;
  readonly inactiveFileBytes: number;
  /** Available as the kernel reckons it, or as near as the cgroup's own figures come to that. */
  readonly memAvailableBytes: number;
  /** `memory.usage_in_bytes`. */
  readonly countedBytes: number;
}

/** A cgroup below the root. */
function cgroupFigures(node: OpenNode, hostBytes: number): Figures {
  const countedBytes = wholeNumber(node.usage.readRecord());
  const stat = node.stat.readRecord();
  const field = (name: string): number => numberField(stat, name) ?? 0;
  const limitBytes = numberField(stat, 'hierarchical_memory_limit ') ?? Number.MAX_SAFE_INTEGER;
  const capacityBytes = Math.min(limitBytes, hostBytes);
  const inactiveFileBytes = field('total_inactive_file ');
  const activeFileBytes = field('total_active_file ');
  const refused = implausible(countedBytes, capacityBytes);
  const usageBytes =
    refused === undefined
      ? countedBytes
      : field('total_rss ') + activeFileBytes + field('total_unevictable ') + inactiveFileBytes;
  refuseImplausible(usageBytes, capacityBytes, 'memory.stat');
  const freeable = Math.max(0, activeFileBytes + inactiveFileBytes - field('total_shmem '));
  return {
    figures: refused === undefined ? 'counters' : 'memory.stat',
    refused,
    capacityBytes,
    usageBytes,
    inactiveFileBytes,
    memAvailableBytes: capacityBytes - usageBytes + freeable,
    countedBytes,
  };
}

/** The host, as `/proc/meminfo` has it. */
interface HostFigures {
  readonly totalBytes: number;
  readonly usageBytes: number;
  readonly inactiveFileBytes: number;
  readonly availableBytes: number;
}

/** Source: proc(5), `/proc/meminfo`. Throws when a line that is needed is missing. */
function hostFigures(text: string): HostFigures {
  const field = (name: string): number => {
    const kibibytes = numberField(text, name);
    if (kibibytes === undefined) throw new Error(`meminfo has no ${name.slice(0, -1)}`);
    return kibibytes * 1024;
  };
  const totalBytes = field('MemTotal:');
  return {
    totalBytes,
    // Huge pages that were set aside are not free, and so count as used.
    usageBytes: totalBytes - field('MemFree:') - field('SReclaimable:'),
    inactiveFileBytes: field('Inactive(file):'),
    availableBytes: field('MemAvailable:'),
  };
}

function rootFigures(node: OpenNode, host: HostFigures, compatibility: Compatibility): Figures {
  const countedBytes = wholeNumber(node.usage.readRecord());
  const { totalBytes: capacityBytes } = host;
  if (compatibility === 'kubelet' && implausible(countedBytes, capacityBytes) === undefined) {
    return {
      figures: 'counters',
      refused: undefined,
      capacityBytes,
      usageBytes: countedBytes,
      inactiveFileBytes: numberField(node.stat.readRecord(), 'total_inactive_file ') ?? 0,
      memAvailableBytes: host.availableBytes,
      countedBytes,
    };
  }
  if (host.usageBytes < 0) {
    throw new Error('meminfo says that more memory is free than there is');
  }
  return {
    figures: 'meminfo',
    refused: compatibility === 'kubelet' ? implausible(countedBytes, capacityBytes) : undefined,
    capacityBytes,
    usageBytes: host.usageBytes,
    inactiveFileBytes: host.inactiveFileBytes,
    memAvailableBytes: host.availableBytes,
    countedBytes,
  };
}

/** Why a usage cannot be true; undefined when it can. */
function implausible(usageBytes: number, capacityBytes: number): string | undefined {
  return usageBytes > capacityBytes * PLAUSIBLE_FRACTION
    ? `memory.usage_in_bytes is ${usageBytes} of a capacity of ${capacityBytes}`
    : undefined;
}

function refuseImplausible(usageBytes: number, capacityBytes: number, source: string): void {
  if (usageBytes <= capacityBytes * PLAUSIBLE_FRACTION) return;
  throw new Error(`${source} adds up to ${usageBytes} of a capacity of ${capacityBytes}`);
}

function toReading(
  { signal, memorySource }: MemoryReaderInputs,
  node: OpenNode,
  figures: Figures,
  atMs: number,
): MemoryReading {
  const { capacityBytes, usageBytes, inactiveFileBytes, memAvailableBytes, countedBytes } = figures;
  const within = (bytes: number): number => Math.min(Math.max(0, bytes), capacityBytes);
  const workingSetBytes = Math.max(0, usageBytes - inactiveFileBytes);
  const unlimited = {
    workingset: capacityBytes - workingSetBytes,
    memavailable: memAvailableBytes,
  };
  return {
    signal,
    atMs,
    figures: figures.figures,
    refused: figures.refused,
    usageBytes,
    inactiveFileBytes,
    workingSetBytes,
    capacityBytes,
    availableBytes: {
      workingset: within(unlimited.workingset),
      memavailable: within(unlimited.memavailable),
    },
    deductedBytes: Math.max(0, unlimited[memorySource] - capacityBytes + usageBytes),
    uncountedBytes: usageBytes - countedBytes,
    cgroupId: node.cgroupId,
  };
}

function openNode(directory: string): OpenNode {
  const fd = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  const opened: ControlFile[] = [];
  const open = (path: string): ControlFile => {
    const file = openControlFile(path);
    opened.push(file);
    return file;
  };
  try {
    // All through one directory: never the counters of two cgroups of one name.
    const held = `/proc/self/fd/${fd}`;
    return {
      usage: open(`${held}/memory.usage_in_bytes`),
      stat: open(`${held}/memory.stat`),
      cgroupId: String(fstatSync(fd, { bigint: true }).ino),
    };
  } catch (error) {
    for (const file of opened) file.close();
    throw error;
  } finally {
    closeSync(fd);
  }
}

/** MemTotal in bytes, read again when it is older than {@link HOST_MEMORY_AGE_MS}. */
function hostMemory(readHost: () => string): (nowMs: number) => number {
  let bytes = Number.MAX_SAFE_INTEGER;
  let readAtMs = Number.NEGATIVE_INFINITY;
  return (nowMs) => {
    if (nowMs - readAtMs > HOST_MEMORY_AGE_MS) {
      const totalKibibytes = numberField(readHost(), 'MemTotal:');
      if (totalKibibytes !== undefined) bytes = totalKibibytes * 1024;
      readAtMs = nowMs;
    }
    return bytes;
  };
}

/** The reading as its signal, by the memory source that was chosen. */
export function memoryAvailable(
  reading: MemoryReading,
  memorySource: MemorySource,
): SignalObservation {
  return {
    signal: reading.signal,
    capacity: reading.capacityBytes,
    available: reading.availableBytes[memorySource],
    atMs: reading.atMs,
  };
}

/** Whether a reading failed. */
export function isFailure(reading: object): reading is ReadingFailure {
  return 'error' in reading;
}

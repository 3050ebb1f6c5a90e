import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import type { SignalObservation } from '../core/observation.ts';
import { type ControlFile, openControlFile, readControlFile } from '../kernel/control-file.ts';
import { numberField, wholeNumber } from '../kernel/fields.ts';
import type { MemoryReading, ReadingFailure } from '../ports/readings.ts';

/** Reads the node's memory counters. */
export interface MemoryReader {
  /** Fresh counters, or why there are none. Never throws; a cgroup made again is opened again. */
  read(): MemoryReading | ReadingFailure;
  close(): void;
}

interface OpenNode {
  readonly usage: ControlFile;
  readonly stat: ControlFile;
  readonly cgroupId: string;
}

/** How old the host's MemTotal may be, ms: it changes only when memory is plugged in or out. */
const HOST_MEMORY_AGE_MS = 10_000;

/**
 * A reader of the cgroup v1 directory `directory`. The counters stay open. Source: Linux,
 * admin-guide/cgroup-v1/memory.rst, sections 5.2 and 5.5; the working set is the kubelet's.
 *
 * @param nowMs the monotonic clock
 */
export function memoryReader(directory: string, nowMs: () => number): MemoryReader {
  const hostMemoryBytes = hostMemory();
  let node: OpenNode | undefined;
  const close = (): void => {
    node?.usage.close();
    node?.stat.close();
    node = undefined;
  };
  const readOpen = (): MemoryReading => {
    node ??= openNode(directory);
    const atMs = nowMs();
    return readNode(node, hostMemoryBytes(atMs), atMs);
  };
  return {
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

function readNode(node: OpenNode, hostBytes: number, atMs: number): MemoryReading {
  const usageBytes = wholeNumber(node.usage.readRecord());
  const stat = node.stat.readRecord();
  const inactiveFileBytes = numberField(stat, 'total_inactive_file ') ?? 0;
  const limitBytes = numberField(stat, 'hierarchical_memory_limit ') ?? Number.MAX_SAFE_INTEGER;
  return {
    atMs,
    usageBytes,
    inactiveFileBytes,
    workingSetBytes: Math.max(0, usageBytes - inactiveFileBytes),
    capacityBytes: Math.min(limitBytes, hostBytes),
    cgroupId: node.cgroupId,
  };
}

/** MemTotal in bytes, read again when it is older than {@link HOST_MEMORY_AGE_MS}. */
function hostMemory(): (nowMs: number) => number {
  let bytes = Number.MAX_SAFE_INTEGER;
  let readAtMs = Number.NEGATIVE_INFINITY;
  return (nowMs) => {
    if (nowMs - readAtMs > HOST_MEMORY_AGE_MS) {
      const totalKibibytes = numberField(readControlFile('/proc/meminfo'), 'MemTotal:');
      if (totalKibibytes !== undefined) bytes = totalKibibytes * 1024;
      readAtMs = nowMs;
    }
    return bytes;
  };
}

/** The reading as the signal `memory.available`: capacity less working set, not below 0. */
export function memoryAvailable(reading: MemoryReading): SignalObservation {
  return {
    signal: 'memory.available',
    capacity: reading.capacityBytes,
    available: Math.max(0, reading.capacityBytes - reading.workingSetBytes),
    atMs: reading.atMs,
  };
}

/** Whether a reading failed. */
export function isFailure(reading: MemoryReading | ReadingFailure): reading is ReadingFailure {
  return 'error' in reading;
}

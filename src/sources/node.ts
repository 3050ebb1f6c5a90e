import type { SignalObservation } from '../core/observation.ts';
import type { Compatibility, MemorySource } from '../core/policy.ts';
import type { Signal } from '../core/signal.ts';
import type { FilesystemNotice, FilesystemState } from '../ports/filesystem.ts';
import type { MemoryReading, ReadingFailure } from '../ports/readings.ts';
import {
  diskObservations,
  type FilesystemPaths,
  unreadFilesystems,
  updateFilesystems,
} from './disk.ts';
import { isFailure, type MemoryReader, memoryAvailable, memoryReader } from './memory.ts';
import { type PidReader, pidReader } from './pids.ts';

/** What of a node is read, and where. */
export interface NodeInputs {
  /** Its cgroup directory in the memory hierarchy. */
  readonly directory: string;
  /** Whether that is the hierarchy's root: then the host is the node. */
  readonly isRoot: boolean;
  /** The directory of the cgroup that holds all pods, where there is one that is not the node's. */
  readonly podsParent: string | undefined;
  readonly compatibility: Compatibility;
  readonly memorySource: MemorySource;
  /** Its cgroup directory in the pids hierarchy, unless that has none or the host is the node. */
  readonly pidsDirectory: string | undefined;
  /** Where that hierarchy is mounted. */
  readonly pidsMountPoint?: string | undefined;
  /** Whether PIDs are read at all. */
  readonly readsPids: boolean;
  readonly filesystems: FilesystemPaths;
  /** What was known of them before a reload. */
  readonly before?: readonly FilesystemState[];
}

/** The counters of a node that are watched, and the last reading of each. */
export interface NodeView {
  readonly memory: readonly MemoryReader[];
  /**
   * Memory and PIDs read afresh, and of the filesystems what was measured since the last call: the
   * same figures never count as a second sample.
   */
  read(): readonly SignalObservation[];
  /** Memory and PIDs alone, read afresh. */
  readCounters(): readonly SignalObservation[];
  /** What is available of one signal: read afresh, but of a filesystem as it was last measured. */
  readAvailable(signal: Signal): number | undefined;
  /** The last readings of memory, without those that failed. */
  readings(): readonly MemoryReading[];
  reading(signal: Signal): MemoryReading | undefined;
  filesystems(): readonly FilesystemState[];
  /** Takes in what was measured of a filesystem. */
  note(notice: FilesystemNotice): void;
  /** By part, a signal or a filesystem: why it was not read as it should be; undefined when it was. */
  troubles(): ReadonlyMap<string, string | undefined>;
  close(): void;
}

/** A view of a node. Nothing is opened before the first reading. */
export function nodeView(inputs: NodeInputs, nowMs: () => number): NodeView {
  const { memorySource } = inputs;
  const memory = memoryReaders(inputs, nowMs);
  const pids: readonly PidReader[] = inputs.readsPids
    ? [
        pidReader({
          directory: inputs.pidsDirectory,
          mountPoint: inputs.pidsMountPoint,
          nowMs,
        }),
      ]
    : [];
  let last: ReadonlyMap<Signal, MemoryReading | ReadingFailure> = new Map();
  let lastPids: readonly (SignalObservation | ReadingFailure)[] = [];
  let filesystems: readonly FilesystemState[] = unreadFilesystems(inputs.filesystems).map(
    (state) => {
      // Names that share a path share what was measured there.
      const same = inputs.before?.find(({ path }) => path === state.path);
      return same === undefined ? state : { ...same, name: state.name };
    },
  );
  let measured = new Set<string>();
  let readings: readonly MemoryReading[] = [];
  // Asked for several times at each turn, and made once.
  let troubles: ReadonlyMap<string, string | undefined> | undefined;
  const readCounters = (): readonly SignalObservation[] => {
    last = new Map(memory.map((reader) => [reader.signal, reader.read()]));
    lastPids = pids.map((reader) => reader.read());
    readings = [...last.values()].flatMap((one) => (isFailure(one) ? [] : [one]));
    troubles = undefined;
    return [
      ...readings.map((reading) => memoryAvailable(reading, memorySource)),
      ...lastPids.flatMap((one) => (isFailure(one) ? [] : [one])),
    ];
  };
  const ofFilesystems = (paths: ReadonlySet<string> | undefined): readonly SignalObservation[] =>
    filesystems.flatMap(({ name, path, reading }) =>
      reading === undefined || paths?.has(path) === false ? [] : diskObservations(name, reading),
    );
  return {
    memory,
    read: () => {
      const counters = readCounters();
      if (measured.size === 0) return counters;
      const disks = ofFilesystems(measured);
      measured = new Set();
      return [...counters, ...disks];
    },
    readCounters,
    readAvailable: (signal) => {
      const reader = memory.find((one) => one.signal === signal);
      if (reader !== undefined) {
        const reading = reader.read();
        return isFailure(reading) ? undefined : memoryAvailable(reading, memorySource).available;
      }
      const others =
        signal === 'pid.available' ? pids.map((one) => one.read()) : ofFilesystems(undefined);
      const found = others.find((one) => !isFailure(one) && one.signal === signal);
      return found === undefined || isFailure(found) ? undefined : found.available;
    },
    readings: () => readings,
    reading: (signal) => readings.find((reading) => reading.signal === signal),
    filesystems: () => filesystems,
    note: (notice) => {
      filesystems = updateFilesystems(filesystems, notice);
      troubles = undefined;
      if (notice.kind === 'read') measured.add(notice.reading.path);
    },
    troubles: () => {
      troubles ??= new Map([
        ...memory.map(({ signal }) => [signal, troubleOf(last.get(signal))] as const),
        ...lastPids.map(
          (one) => ['pid.available', isFailure(one) ? one.error : undefined] as const,
        ),
        ...filesystems.map(
          ({ name, path, error }) => [name, error && `${path}: ${error}`] as const,
        ),
      ]);
      return troubles;
    },
    close: () => {
      for (const reader of [...memory, ...pids]) reader.close();
    },
  };
}

function memoryReaders(inputs: NodeInputs, nowMs: () => number): readonly MemoryReader[] {
  const { directory, isRoot, podsParent, compatibility, memorySource } = inputs;
  const common = { compatibility, memorySource, nowMs };
  return [
    memoryReader({ ...common, signal: 'memory.available', directory, isRoot }),
    ...(podsParent === undefined
      ? []
      : [
          memoryReader({
            ...common,
            signal: 'allocatableMemory.available',
            directory: podsParent,
            isRoot: false,
          }),
        ]),
  ];
}

function troubleOf(last: MemoryReading | ReadingFailure | undefined): string | undefined {
  if (last === undefined) return undefined;
  if (isFailure(last)) return last.error;
  return last.refused === undefined
    ? undefined
    : `${last.refused}, which cannot be; ${last.figures} takes its place`;
}

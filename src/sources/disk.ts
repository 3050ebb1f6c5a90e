import type { SignalObservation } from '../core/observation.ts';
import { nextPollMs, type PollPace } from '../core/polling.ts';
import {
  FILESYSTEMS,
  type FilesystemName,
  type PollKind,
  SIGNALS,
  type Signal,
} from '../core/signal.ts';
import type { Threshold } from '../core/threshold.ts';
import type { FilesystemNotice, FilesystemReading, FilesystemState } from '../ports/filesystem.ts';

/** Where each filesystem is; undefined where there is none of that name. */
export type FilesystemPaths = Readonly<Record<FilesystemName, string | undefined>>;

/** The filesystems that have a path, nothing known of them yet. */
export function unreadFilesystems(paths: FilesystemPaths): readonly FilesystemState[] {
  return FILESYSTEMS.flatMap((name) => {
    const path = paths[name];
    return path === undefined
      ? []
      : [{ name, path, reading: undefined, error: undefined, stale: false }];
  });
}

/** Takes in what was measured; names that share a path share its reading. */
export function updateFilesystems(
  states: readonly FilesystemState[],
  notice: FilesystemNotice,
): readonly FilesystemState[] {
  if (notice.kind === 'read') {
    const { reading } = notice;
    return states.map((state) =>
      state.path === reading.path ? { ...state, reading, error: undefined, stale: false } : state,
    );
  }
  const { path, error, stale } = notice;
  return states.map((state) => (state.path === path ? { ...state, error, stale } : state));
}

/**
 * The signals of a filesystem, of one reading: bytes, and inodes where the filesystem counts them.
 * What is free never exceeds what there is.
 */
export function diskObservations(
  name: FilesystemName,
  { capacityBytes, availableBytes, inodes, inodesFree, atMs }: FilesystemReading,
): readonly SignalObservation[] {
  const bytes = observe(`${name}.available`, capacityBytes, availableBytes, atMs);
  return inodes === 0 ? [bytes] : [bytes, observe(`${name}.inodesFree`, inodes, inodesFree, atMs)];
}

function observe(signal: Signal, capacity: number, free: number, atMs: number): SignalObservation {
  return { signal, capacity, available: Math.min(Math.max(0, free), capacity), atMs };
}

export interface DiskPollInputs {
  readonly paths: FilesystemPaths;
  readonly thresholds: readonly Threshold[];
  readonly polling: Readonly<Record<PollKind, PollPace>>;
  readonly pollIntervalMs: number;
}

/**
 * How long until the filesystem at `path` is measured again, ms, after `now` followed `before`: the
 * soonest that any of its signals asks for.
 */
export function diskPollMs(
  { paths, thresholds, polling, pollIntervalMs }: DiskPollInputs,
  path: string,
  before: FilesystemReading | undefined,
  now: FilesystemReading | undefined,
): number {
  const names = FILESYSTEMS.filter((name) => paths[name] === path);
  const signals = names.flatMap((name): Signal[] => [`${name}.available`, `${name}.inodesFree`]);
  const of = (reading: FilesystemReading | undefined, signal: Signal) =>
    reading === undefined
      ? undefined
      : names
          .flatMap((name) => diskObservations(name, reading))
          .find((observation) => observation.signal === signal);
  return Math.min(
    pollIntervalMs,
    ...signals.flatMap((signal) => {
      const ofSignal = thresholds.filter((threshold) => threshold.signal === signal);
      const seen = of(now, signal);
      // A filesystem that was read and does not count inodes never will.
      if (now !== undefined && seen === undefined) return [];
      return [
        nextPollMs(
          ofSignal,
          of(before, signal),
          seen,
          pollIntervalMs,
          polling[SIGNALS[signal].poll],
        ),
      ];
    }),
  );
}

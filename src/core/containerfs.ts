import type { Rules } from './rules.ts';
import { SIGNALS, type Signal } from './signal.ts';
import type { Threshold } from './threshold.ts';

/** How the kubelet is told of a node's filesystems. */
export interface FilesystemFlags {
  /** Images are on another filesystem than the kubelet's files. */
  readonly dedicatedImageFs: boolean;
  /** Writable layers are on another filesystem than images. */
  readonly splitImageFs: boolean;
}

/** Thresholds with those of containerfs, which the kubelet derives. */
export interface DerivedThresholds {
  /** In the first round. */
  readonly first: readonly Threshold[];
  readonly later: readonly Threshold[];
  /** Of the user's, those that the derived ones replace. */
  readonly overridden: readonly Threshold[];
}

/** What each signal of containerfs follows. */
const FOLLOWED: readonly (readonly [Signal, Signal, Signal])[] = [
  ['containerfs.available', 'nodefs.available', 'imagefs.available'],
  ['containerfs.inodesFree', 'nodefs.inodesFree', 'imagefs.inodesFree'],
];

/**
 * The thresholds with those of containerfs: the same as of nodefs, or of imagefs where the writable
 * layers lie there. The user's own are replaced, or dropped where there is nothing to follow. Of
 * a split without a dedicated imagefs, which contradicts itself, the kubelet derives nothing.
 *
 * Source: kubelet `helpers.go`, `UpdateContainerFsThresholds`; there what replaces a threshold counts at
 * once, while what is added counts from the second round on.
 */
export function withContainerfs(
  thresholds: readonly Threshold[],
  { dedicatedImageFs, splitImageFs }: FilesystemFlags,
  rules: Rules,
): DerivedThresholds {
  if (splitImageFs && !dedicatedImageFs) {
    return { first: thresholds, later: thresholds, overridden: [] };
  }
  const followsImages = dedicatedImageFs && !splitImageFs;
  const derived = FOLLOWED.flatMap(([signal, nodefs, imagefs]) =>
    thresholds
      .filter((threshold) => threshold.signal === (followsImages ? imagefs : nodefs))
      .map((threshold): Threshold => ({ ...threshold, signal })),
  );
  const isOwn = ({ signal }: Threshold): boolean => SIGNALS[signal].filesystem === 'containerfs';
  const overridden = thresholds.filter(isOwn);
  const others = thresholds.filter((threshold) => !isOwn(threshold));
  const replaces = (one: Threshold): boolean =>
    overridden.some(({ signal, gracePeriodMs }) => {
      const isSameKind = (gracePeriodMs === 0) === (one.gracePeriodMs === 0);
      return signal === one.signal && isSameKind;
    });
  const later = [...others, ...derived];
  const isLate = rules.containerfsLate === 'kubelet';
  return { first: isLate ? [...others, ...derived.filter(replaces)] : later, later, overridden };
}

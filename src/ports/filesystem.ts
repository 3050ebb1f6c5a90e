import type { FilesystemIdentity } from '../core/layout.ts';
import type { FilesystemName } from '../core/signal.ts';

/** What a filesystem says of itself at one instant. Bytes, inodes. */
export interface FilesystemReading extends FilesystemIdentity {
  /** As it was asked for. */
  readonly path: string;
  /** When it was read, monotonic ms. */
  readonly atMs: number;
  readonly capacityBytes: number;
  /** Available to whoever is not root, from 0 to the capacity. */
  readonly availableBytes: number;
  /** In use, from 0 to the capacity: the reserve for root is neither in use nor available. */
  readonly usedBytes: number;
  /** 0: the filesystem does not count inodes (btrfs, some FUSE), and has no inode signal. */
  readonly inodes: number;
  /** From 0 to `inodes`. */
  readonly inodesFree: number;
  /** Where it is mounted; empty where that is not known. */
  readonly mountPoint: string;
}

/** What was learnt of a path. */
export type FilesystemNotice =
  | { readonly kind: 'read'; readonly reading: FilesystemReading }
  | {
      readonly kind: 'failed';
      readonly path: string;
      /** Monotonic ms. */
      readonly atMs: number;
      readonly error: string;
      /** The deadline passed: the filesystem may be as it was, but the last reading is old. */
      readonly stale: boolean;
    };

/** What is known of a filesystem that has signals. */
export interface FilesystemState {
  readonly name: FilesystemName;
  readonly path: string;
  /** The last good one. */
  readonly reading: FilesystemReading | undefined;
  /** Why there is none that is newer; undefined when the last measuring went well. */
  readonly error: string | undefined;
  /** Whether the last measuring was not answered in time. */
  readonly stale: boolean;
}

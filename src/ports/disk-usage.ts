import type { FilesystemName } from '../core/signal.ts';

/**
 * A place below a root. The root is known to whoever gives it; what is below it may be text from outside:
 * relative, no part of it empty, `.` or `..`; empty for the root itself. No link is followed in it.
 */
export interface Place {
  /** Absolute. */
  readonly root: string;
  readonly below: string;
}

/** Where the runtime keeps what it runs. */
export interface RuntimeFilesystems {
  /** Paths in the filesystem of the images: the first that can be measured counts. Empty where it says none. */
  readonly imagefs: readonly string[];
  /** The same of the writable layers. */
  readonly containerfs: readonly string[];
  /** What images use in the filesystem of the images, bytes, as the runtime has it; with CRI layers too. */
  readonly imageBytes: number | undefined;
  readonly imageInodes: number | undefined;
  /** The same of the filesystem of the writable layers: it may be the same one. */
  readonly containerBytes: number | undefined;
  readonly containerInodes: number | undefined;
}

/** What a writable layer uses: as the runtime says, or to be added up. */
export type Layer =
  | {
      readonly kind: 'told';
      readonly bytes: number;
      readonly inodes: number | undefined;
      /** How old that is, ms. */
      readonly ageMs: number;
      /** Where it can be added up too, should that be too old. */
      readonly place: Place | undefined;
    }
  | { readonly kind: 'at'; readonly place: Place };

/** What of a container lies on disks, and where. */
export interface ContainerDisk {
  /** The runtime's own id. */
  readonly id: string;
  /** Undefined where the runtime does not say. */
  readonly layer: Layer | undefined;
  readonly logs: Place | undefined;
  /** Volumes that no other pod uses and that go with it. */
  readonly volumes: readonly { readonly name: string; readonly place: Place }[];
  /** That the runtime did not say where logs and volumes are: there may be more of it. */
  readonly isUntold?: true;
}

/** A runtime as far as it is asked for disks. Nothing here stands between an event and a kill. */
export interface DiskTeller {
  /** Rejects where the runtime does not answer within its deadline, or does not know. */
  filesystems(): Promise<RuntimeFilesystems>;
  /** The same way. */
  containers(): Promise<readonly ContainerDisk[]>;
}

/** What was found of a part of a container: its layer, its logs or a volume. */
export interface PartUse {
  readonly bytes: number;
  /** Undefined where nobody counts them. */
  readonly inodes: number | undefined;
  /** When that was so, monotonic ms. */
  readonly atMs: number;
  /** `major:minor` of the filesystem; undefined where the runtime told the figures. */
  readonly device: string | undefined;
  /** `f_type` of it. */
  readonly type: number | undefined;
  /** Why it may be more; undefined where it was added up to the end. */
  readonly cut: 'entries' | 'moved' | 'time' | undefined;
}

/** What was found of a container. */
export interface ContainerUse {
  readonly layer: PartUse | undefined;
  readonly logs: PartUse | undefined;
  /** By name. */
  readonly volumes: ReadonlyMap<string, PartUse>;
  /** What could not be looked at, and why. */
  readonly trouble: string | undefined;
  /** That logs and volumes are not known, beside those that were found before. */
  readonly isUntold?: true;
}

/** Files that are deleted and that a process keeps open. */
export interface DeletedFiles {
  readonly pid: number;
  /** `major:minor` of `st_dev`: of a container's own files that of its overlay. */
  readonly device: string;
  readonly bytes: number;
}

export type DiskUseNotice =
  | {
      readonly kind: 'used';
      /** When it was begun, monotonic ms, and how long it took. */
      readonly atMs: number;
      readonly tookMs: number;
      /** By container id; one that is gone is left out. */
      readonly containers: ReadonlyMap<string, ContainerUse>;
    }
  | {
      readonly kind: 'deleted';
      readonly atMs: number;
      /** The most bytes first. */
      readonly files: readonly DeletedFiles[];
      /** Whether it may be more. */
      readonly isCut: boolean;
    }
  | { readonly kind: 'failed'; readonly atMs: number; readonly reason: string };

/** What is known of the disks beside their figures. */
export interface DiskFacts {
  readonly filesystems: RuntimeFilesystems | undefined;
  /** By the id of a container. */
  readonly containers: ReadonlyMap<string, ContainerUse>;
  /** By filesystem, files that are deleted and that somebody keeps open, bytes; empty while nobody has looked. */
  readonly unaccounted: ReadonlyMap<FilesystemName, number>;
}

import type { ImageMemory } from '../core/image-gc.ts';
import type { FilesystemReading } from './filesystem.ts';

/** What is removed. */
export type CollectedKind = 'container' | 'sandbox' | 'image';

/** Why a collection ended. */
export type CollectionEnd =
  /** Enough is available. */
  | 'regained'
  /** Nothing is left that may go. */
  | 'exhausted'
  /** Several images in a row have freed nothing. */
  | 'fruitless'
  /** The runtime did not answer. */
  | 'away'
  /** The filesystem could not be measured. */
  | 'unmeasured'
  /** It took too long. */
  | 'limit';

/** What a collection came to. */
export interface Collected {
  readonly because: CollectionEnd;
  readonly removed: Readonly<Record<CollectedKind, number>>;
  /** How many were in use after all. */
  readonly inUse: number;
  readonly failed: number;
  /** What a dry run would have removed. */
  readonly wouldRemove: number;
  /** The filesystem before it, and as it was last measured; undefined where it could not be. */
  readonly first: FilesystemReading | undefined;
  readonly last: FilesystemReading | undefined;
  readonly tookMs: number;
}

/** Something that may be removed. Texts are from outside. */
export interface NamedThing {
  readonly what: CollectedKind;
  readonly id: string;
  readonly name: string;
}

export type CollectionNotice =
  | (NamedThing & { readonly kind: 'removed' | 'wouldRemove' | 'gone' })
  | (NamedThing & { readonly kind: 'inUse' | 'failed'; readonly detail: string })
  | (NamedThing & { readonly kind: 'kept'; readonly why: string })
  /** The runtime could not be asked what there is. */
  | { readonly kind: 'fault'; readonly detail: string }
  /** The last one. */
  | { readonly kind: 'ended'; readonly collected: Collected };

/** What a collection is for: pressure on a disk, the passing of time, or somebody who asked for it. */
export type CollectionPurpose = 'pressure' | 'periodic' | 'asked';

/** What the daemon is told of its collections. */
export type CollectionEvent =
  | {
      readonly kind: 'notice';
      readonly purpose: CollectionPurpose;
      readonly notice: CollectionNotice;
    }
  /** What is known of images has changed. */
  | { readonly kind: 'images'; readonly images: ImageMemory };

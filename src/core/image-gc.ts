/**
 * Which images a collection takes, and what is known of each from one look to the next. Pure. Source: kubelet
 * `image_gc_manager.go`.
 */
import type { Rules } from './rules.ts';
import { compareText } from './text.ts';

/** An image as a runtime lists it. All texts are from outside. */
export interface ListedImage {
  readonly id: string;
  /** What it is called, with tags or digests; empty where nothing names it any more. */
  readonly names: readonly string[];
  /** As the runtime reports it: layers that several share count in each. */
  readonly sizeBytes: number;
  /** Why it is never to be removed, as its runtime says; undefined where nothing does. */
  readonly pinned: string | undefined;
  /** What uses it: the containers that were made of it, dead or alive, or have it as a volume. */
  readonly usedBy: readonly string[];
}

/** What is remembered of an image; times are monotonic ms. */
export interface ImageTimes {
  readonly firstSeenAtMs: number;
  /** When it was last seen in use; undefined where it never was. */
  readonly lastUsedAtMs: number | undefined;
  /** That it was there at the first look of all: it is older than `firstSeenAtMs` says. */
  readonly wasThere: boolean;
}

/** By image id. */
export type ImageMemory = ReadonlyMap<string, ImageTimes>;

/** How many images are remembered; of those beyond it each look is the first. */
export const REMEMBERED_IMAGES = 10_000;

/**
 * What is known after a look at all images: those that are gone are forgotten. What is there at the first look
 * of all counts as old, as for the kubelet: nobody knows since when.
 *
 * @param before undefined where nobody has looked yet
 */
export function imagesSeen(
  before: ImageMemory | undefined,
  images: readonly ListedImage[],
  nowMs: number,
): ImageMemory {
  return new Map(
    images.slice(0, REMEMBERED_IMAGES).map(({ id, usedBy }) => {
      const known = before?.get(id);
      return [
        id,
        {
          firstSeenAtMs: known?.firstSeenAtMs ?? nowMs,
          lastUsedAtMs: usedBy.length > 0 ? nowMs : known?.lastUsedAtMs,
          wasThere: known?.wasThere ?? before === undefined,
        },
      ] as const;
    }),
  );
}

/** An image as far as it is told whose it is. */
export interface UsedImage extends Pick<ListedImage, 'sizeBytes' | 'usedBy'> {
  /** Whether it would stay though nobody used it. */
  readonly isKept: boolean;
}

/** A listed image, by whether it would stay though nobody used it: pinned or fresh. */
export function usedImage(
  image: ListedImage,
  memory: ImageMemory,
  minimumAgeMs: number,
  nowMs: number,
): UsedImage {
  const unused = { ...imageObservation(image, memory, nowMs), inUse: false };
  const isKept = imageKept(unused, minimumAgeMs, nowMs) !== undefined;
  return { sizeBytes: image.sizeBytes, usedBy: image.usedBy, isKept };
}

/**
 * What could be removed with each user, bytes: images that nobody else uses, by the sizes that the runtime
 * reports, which count layers in each that has them. A user of which no image tells is left out.
 *
 * @param userOf by what an image is used, who that is; undefined for somebody else
 */
export function exclusiveImages(
  images: readonly UsedImage[],
  userOf: (usedBy: string) => string | undefined,
): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const { sizeBytes, isKept, usedBy } of images) {
    const users = new Set(usedBy.map(userOf));
    const isExclusive = users.size === 1 && !isKept;
    for (const user of users) {
      if (user === undefined) continue;
      const sum = (sums.get(user) ?? 0) + (isExclusive ? countedBytes(sizeBytes) : 0);
      sums.set(user, Math.min(sum, Number.MAX_SAFE_INTEGER));
    }
  }
  return sums;
}

/** Sizes are from outside: what is none counts as nothing. */
function countedBytes(sizeBytes: number): number {
  return sizeBytes > 0 ? Math.min(Math.trunc(sizeBytes), Number.MAX_SAFE_INTEGER) : 0;
}

/** An image of the node, as far as a collection looks at it. */
export interface ImageObservation {
  readonly id: string;
  readonly sizeBytes: number;
  readonly firstSeenAtMs: number;
  /** When a container last used it; undefined where none has. */
  readonly lastUsedAtMs: number | undefined;
  readonly inUse: boolean;
  readonly pinned: boolean;
  /** That it is older than `firstSeenAtMs` says; not where it is left out. */
  readonly wasThere?: boolean;
}

/** A listed image with what is remembered of it. */
export function imageObservation(
  { id, sizeBytes, pinned, usedBy }: ListedImage,
  memory: ImageMemory,
  nowMs: number,
): ImageObservation {
  const times = memory.get(id);
  return {
    id,
    sizeBytes,
    firstSeenAtMs: times?.firstSeenAtMs ?? nowMs,
    lastUsedAtMs: times?.lastUsedAtMs,
    inUse: usedBy.length > 0,
    pinned: pinned !== undefined,
    wasThere: times?.wasThere ?? false,
  };
}

/** An image younger than this is kept, ms: what is being started now needs it. Source: kubelet `imageMinimumGCAge`. */
export const FRESH_IMAGE_MS = 120_000;

/** Why an image stays. */
export type ImageKept = 'in use' | 'pinned' | 'fresh';

/** Undefined for one that may go. */
export function imageKept(
  { inUse, pinned, firstSeenAtMs, wasThere }: ImageObservation,
  minimumAgeMs: number,
  nowMs: number,
): ImageKept | undefined {
  if (inUse) return 'in use';
  if (pinned) return 'pinned';
  const isFresh = wasThere !== true && nowMs - firstSeenAtMs < minimumAgeMs;
  return isFresh ? 'fresh' : undefined;
}

/** Those that may go, the least recently used first; what was never used counts from when it was first seen. */
export function unusedImages(
  images: readonly ImageObservation[],
  minimumAgeMs: number,
  nowMs: number,
): readonly ImageObservation[] {
  return images
    .filter((image) => imageKept(image, minimumAgeMs, nowMs) === undefined)
    .sort((left, right) => lastUsedMs(left) - lastUsedMs(right) || compareText(left.id, right.id));
}

function lastUsedMs({ lastUsedAtMs, firstSeenAtMs }: ImageObservation): number {
  return lastUsedAtMs ?? firstSeenAtMs;
}

/** Of those that may go the ones that nobody has used for so long; none where that is 0. */
export function outdatedImages(
  unused: readonly ImageObservation[],
  maximumAgeMs: number,
  nowMs: number,
): readonly ImageObservation[] {
  if (maximumAgeMs === 0) return [];
  return unused.filter((image) => nowMs - lastUsedMs(image) > maximumAgeMs);
}

/** How full the filesystem of the images may be, percent of its capacity. */
export interface ImageMarks {
  /** From here on images go; 100 for never. */
  readonly highPercent: number;
  /** Until it is this full. */
  readonly lowPercent: number;
}

/**
 * What must be available for the low mark to hold, bytes, where the high one is reached; undefined below that.
 * Source: kubelet `GarbageCollect`, whose percentage of use is rounded up.
 */
export function levelForMarks(
  { capacity, available }: { readonly capacity: number; readonly available: number },
  { highPercent, lowPercent }: ImageMarks,
): number | undefined {
  if (capacity <= 0 || highPercent >= 100) return undefined;
  const usedPercent = 100 - Math.floor((available * 100) / capacity);
  return usedPercent < highPercent ? undefined : Math.floor((capacity * (100 - lowPercent)) / 100);
}

/**
 * The images that a simulated collection takes: the least recently used first, until `neededBytes` are regained
 * by their sizes; those in use, pinned or fresh are kept. By the kubelet's rules all that are not in use or pinned.
 */
export function imagesToCollect(
  images: readonly ImageObservation[],
  neededBytes: number,
  nowMs: number,
  rules: Rules,
): readonly ImageObservation[] {
  const all = rules.imageOrder === 'kubelet';
  const unused = unusedImages(images, all ? 0 : FRESH_IMAGE_MS, nowMs);
  if (all) return unused;
  const taken: ImageObservation[] = [];
  let regained = 0;
  for (const image of unused) {
    if (regained >= neededBytes) break;
    taken.push(image);
    regained += image.sizeBytes;
  }
  return taken;
}

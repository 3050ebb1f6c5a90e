import type { FilesystemLayout } from './layout.ts';
import type { SignalObservation } from './observation.ts';
import type { Rules } from './rules.ts';
import { type FilesystemName, SIGNALS, type Signal } from './signal.ts';
import { compareText } from './text.ts';

/** What may be collected before a pod is evicted: all dead containers, all unused images. */
export type ReclaimFunction = 'containers' | 'images';

const BOTH: readonly ReclaimFunction[] = ['containers', 'images'];

/** By layout and filesystem. Source: kubelet `helpers.go`, `buildSignalToNodeReclaimFuncs`. */
const FUNCTIONS: Readonly<
  Record<FilesystemLayout, Readonly<Record<FilesystemName, readonly ReclaimFunction[]>>>
> = {
  single: { nodefs: BOTH, imagefs: BOTH, containerfs: BOTH },
  dedicatedImagefs: { nodefs: [], imagefs: BOTH, containerfs: BOTH },
  splitImagefs: { nodefs: ['containers'], imagefs: ['images'], containerfs: ['containers'] },
  separateContainerfs: { nodefs: [], imagefs: ['images'], containerfs: ['containers'] },
};

/** What is collected for a signal, in this order, before a pod is evicted for it. */
export function reclaimFunctions(
  signal: Signal,
  layout: FilesystemLayout,
  rules: Rules,
): readonly ReclaimFunction[] {
  const { filesystem } = SIGNALS[signal];
  if (filesystem === undefined) return [];
  const functions = FUNCTIONS[layout][filesystem];
  const isLogs = filesystem === 'nodefs' && functions.length === 0;
  return isLogs && rules.nodefsReclaim === 'evictd' ? ['containers'] : functions;
}

/** How many readings after a collection are awaited while space still comes back. */
export const SETTLING_READINGS = 10;

/** Whether more has come back since the reading before: freeing goes on after a collection has ended. */
export function isStillRising(
  before: SignalObservation | undefined,
  now: SignalObservation | undefined,
): boolean {
  return before !== undefined && now !== undefined && now.available > before.available;
}

/** An image of the node, as far as a collection looks at it. */
export interface ImageObservation {
  readonly id: string;
  readonly sizeBytes: number;
  readonly pulledAtMs: number;
  /** When a container last used it; undefined where none has. */
  readonly usedAtMs: number | undefined;
  readonly inUse: boolean;
  readonly pinned: boolean;
}

/** An image younger than this is kept, ms: what is being started now needs it. Source: kubelet `imageMinimumGCAge`. */
export const FRESH_IMAGE_MS = 120_000;

/**
 * The images that a collection takes: the least recently used first, until `neededBytes` are regained;
 * those in use, pinned or fresh are kept. By the kubelet's rules all that are not in use or pinned.
 */
export function imagesToCollect(
  images: readonly ImageObservation[],
  neededBytes: number,
  nowMs: number,
  rules: Rules,
): readonly ImageObservation[] {
  const all = rules.imageOrder === 'kubelet';
  const free = images
    .filter(({ inUse, pinned }) => !inUse && !pinned)
    .filter(({ pulledAtMs }) => all || nowMs - pulledAtMs >= FRESH_IMAGE_MS)
    .sort((left, right) => lastUsedMs(left) - lastUsedMs(right) || compareText(left.id, right.id));
  if (all) return free;
  const taken: ImageObservation[] = [];
  let regained = 0;
  for (const image of free) {
    if (regained >= neededBytes) break;
    taken.push(image);
    regained += image.sizeBytes;
  }
  return taken;
}

function lastUsedMs({ usedAtMs, pulledAtMs }: ImageObservation): number {
  return usedAtMs ?? pulledAtMs;
}

import type { FilesystemLayout } from './layout.ts';
import type { SignalObservation } from './observation.ts';
import type { Rules } from './rules.ts';
import { type FilesystemName, SIGNALS, type Signal } from './signal.ts';

/** What may be collected before a pod is evicted: all dead containers, all unused images. */
export type ReclaimFunction = 'containers' | 'images';

/** All of them, in the order in which they are done. */
export const RECLAIM_FUNCTIONS: readonly ReclaimFunction[] = ['containers', 'images'];

const BOTH = RECLAIM_FUNCTIONS;

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

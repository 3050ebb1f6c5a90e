/** What in a pod spares it, and whose contents are looked at when. */
import { existsSync } from 'node:fs';
import type { PodObservation } from '../../core/pod.ts';
import { podComparator } from '../../core/rank.ts';
import { asPath, type BytePath } from '../../kernel/byte-path.ts';
import { OOM_SCORE_ADJ_NEVER } from '../../kernel/oom-score-adj.ts';
import { processesOf, subtree } from './subtree.ts';

/**
 * How many cgroups of a pod are looked at, and how many processes, parents first: each costs some
 * 20 µs. What lies beyond is left to the check of all processes right before the first signal.
 */
export const CGROUPS_LOOKED_AT = 16;
export const PROCESSES_LOOKED_AT = 32;

/**
 * How old the knowledge of what is in a pod may be, ms: three times the usual interval of passes over
 * the pods, so that it is a pass that looks again, and hardly ever a decision, which has a
 * millisecond.
 */
export const LOOK_AGE_MS = 30_000;

/**
 * Into how many pods a listing looks: those that rank puts first, since one of them is taken, and
 * those that were looked at longest ago, so that status tells of all in time. All of 1,000 pods at
 * once would cost 75 ms, between an event and its kill.
 */
export const FIRST_LOOKED_AT = 4;
export const OTHERS_LOOKED_AT = 2;

/** How a process is adjusted; undefined where it is gone. */
export type OomScoreAdjOf = (pid: number) => number | undefined;

/**
 * Why what is in a pod spares it: the pods of a kubelet, which would all go with it, or a process
 * that the kernel's OOM killer would never take. Undefined where nothing of the kind was seen in the
 * first {@link CGROUPS_LOOKED_AT} cgroups and {@link PROCESSES_LOOKED_AT} processes. Throws what the
 * kernel says, but that something is gone.
 *
 * @param held a path to the pod's directory
 */
export function sparedBecause(
  held: BytePath,
  name: BytePath,
  oomScoreAdjOf: OomScoreAdjOf,
): string | undefined {
  const pods = kubepodsIn(held, name);
  if (pods !== undefined) return pods;
  let left = PROCESSES_LOOKED_AT;
  for (const directory of subtree(held, CGROUPS_LOOKED_AT)) {
    const pids = processesOf(directory).slice(0, left);
    if (pids.some((pid) => oomScoreAdjOf(pid) === OOM_SCORE_ADJ_NEVER)) return UNKILLABLE;
    left -= pids.length;
  }
  return undefined;
}

const UNKILLABLE = `holds a process with oom_score_adj ${OOM_SCORE_ADJ_NEVER}`;

/**
 * Why a pod that is a kubelet's `--cgroup-root` is spared: `kubepods` lies directly in it, and is to
 * be given as a parent instead. Undefined for any other.
 */
export function kubepodsIn(held: BytePath, name: BytePath): string | undefined {
  const own = name.slice(name.lastIndexOf('/') + 1);
  const nested = own.endsWith('.slice') ? [own.replace(/\.slice$/, '-kubepods.slice')] : [];
  return ['kubepods', 'kubepods.slice', ...nested].some((child) =>
    existsSync(asPath(`${held}/${child}`)),
  )
    ? 'holds the pods of a kubelet'
    : undefined;
}

/** A pod as it was listed just now. */
export interface Listed {
  readonly pod: PodObservation;
  /** Whether nothing but what is in it may protect it. */
  readonly isCandidate: boolean;
  /** When somebody last looked what is in it, ms; negative infinity for never. */
  readonly lookedAtMs: number;
}

const compareByMemory = podComparator('memory.available');

/** Into which pods a listing at `nowMs` looks. Pure. */
export function dueForLook<T extends Listed>(listed: readonly T[], nowMs: number): ReadonlySet<T> {
  const due = listed.filter(
    ({ isCandidate, lookedAtMs }) => isCandidate && nowMs - lookedAtMs >= LOOK_AGE_MS,
  );
  const first = new Set(least(due, FIRST_LOOKED_AT, (a, b) => compareByMemory(a.pod, b.pod)));
  const others = due.filter((one) => !first.has(one));
  return new Set([
    ...first,
    ...least(others, OTHERS_LOOKED_AT, (a, b) => compareNumbers(a.lookedAtMs, b.lookedAtMs)),
  ]);
}

/** Infinities have no difference. */
function compareNumbers(left: number, right: number): number {
  return left < right ? -1 : left > right ? 1 : 0;
}

/** The `count` least items, in order, without sorting all. */
function least<T>(
  items: readonly T[],
  count: number,
  compare: (left: T, right: T) => number,
): readonly T[] {
  const chosen: T[] = [];
  for (const item of items) {
    const at = chosen.findLastIndex((other) => compare(other, item) <= 0) + 1;
    if (at >= count) continue;
    chosen.splice(at, 0, item);
    chosen.splice(count);
  }
  return chosen;
}

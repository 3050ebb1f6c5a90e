/**
 * Where to arm a memory threshold of a cgroup v1 kernel, which knows usage only, not the working
 * set that a threshold is about.
 */

const MI = 2 ** 20;

/** The lowest distance from the capacity at which a crossing can still be told from the limit. */
export const TOP_MARGIN_BYTES = 2 * MI;

/** Rungs above the first level: a near miss (inactive file grew meanwhile) gets no second event. */
const RUNGS_BYTES = [MI, 2 * MI, 4 * MI, 8 * MI] as const;

/** Levels of usage in bytes, the first and lowest the one that counts. */
type Levels = readonly [number, ...number[]];

/** How a threshold is followed where the kernel can be asked. */
export type Arming =
  /** Registered at `levels`; `late` when the crossing itself has no event. */
  | { readonly kind: 'armed'; readonly levels: Levels; readonly late: boolean }
  /** The threshold lies above the capacity: always met, decided at each reading. */
  | { readonly kind: 'alwaysMet' }
  /**
   * What is deducted reaches the threshold, or lies within 2 MiB of it, so that no level of usage
   * tells the working set: the kernel's reclaim tells when to look, and polls follow closely while
   * usage is above `closeAboveBytes`.
   */
  | { readonly kind: 'followed'; readonly levels: Levels; readonly closeAboveBytes: number };

/**
 * The usage at which what is available is `thresholdBytes`, or the nearest that gives an event.
 * All in bytes; `capacityBytes` is the limit that the usage cannot exceed, `deductedBytes` what of the
 * usage is not held against it: inactive file, where the working set counts.
 *
 * @param before how the threshold was followed until now: what is `followed` stays so until
 *   inactive file has fallen clearly, so that a wavering cache does not arm anew at each reading
 */
export function armingFor(
  capacityBytes: number,
  thresholdBytes: number,
  deductedBytes: number,
  before?: Arming['kind'],
): Arming {
  if (thresholdBytes >= capacityBytes) return { kind: 'alwaysMet' };
  const first = firstLevel(capacityBytes, thresholdBytes, deductedBytes);
  if (first <= 0) return { kind: 'alwaysMet' };
  const rungs = RUNGS_BYTES.map((rung) => first + rung).filter((level) => level < capacityBytes);
  const levels: Levels = [first, ...rungs];
  const slack = before === 'followed' ? driftBytes(thresholdBytes) : 0;
  if (deductedBytes > hidingBytes(thresholdBytes) - slack) {
    const closeAboveBytes = capacityBytes - Math.max(2 * thresholdBytes, 32 * MI);
    return { kind: 'followed', levels, closeAboveBytes };
  }
  return { kind: 'armed', levels, late: thresholdBytes < TOP_MARGIN_BYTES };
}

/** Above this much inactive file the crossing lies where no level can be armed. */
function hidingBytes(thresholdBytes: number): number {
  return thresholdBytes < TOP_MARGIN_BYTES ? thresholdBytes : thresholdBytes - TOP_MARGIN_BYTES;
}

/** How far levels may drift before they are armed anew. */
function driftBytes(thresholdBytes: number): number {
  return Math.max(thresholdBytes / 8, MI);
}

function firstLevel(capacityBytes: number, thresholdBytes: number, deductedBytes: number): number {
  const exact = capacityBytes - thresholdBytes + deductedBytes;
  return Math.min(exact, capacityBytes - TOP_MARGIN_BYTES);
}

/**
 * The same in the units of the counter that the kernel notifies by, which leaves `uncountedBytes`
 * out. Where no level is left above 0 the threshold is met already: the counter is never below 0.
 */
export function inCounter(arming: Arming, uncountedBytes: number): Arming {
  if (arming.kind === 'alwaysMet') return arming;
  const [first, ...rungs] = arming.levels.map((level) => level - uncountedBytes);
  if (first === undefined || first <= 0) return { kind: 'alwaysMet' };
  return { ...arming, levels: [first, ...rungs] };
}

/**
 * Whether what is armed is too far from what should be: the kind changed, or the first level
 * drifted by more than an eighth of the threshold and more than 1 MiB.
 */
export function needsRearming(armed: Arming, wanted: Arming, thresholdBytes: number): boolean {
  if (armed.kind !== wanted.kind) return true;
  if (armed.kind === 'alwaysMet' || wanted.kind === 'alwaysMet') return false;
  return Math.abs(wanted.levels[0] - armed.levels[0]) > driftBytes(thresholdBytes);
}

/** How far below the first level the approach lies: one threshold, but no less and no more. */
const APPROACH_BYTES = { least: 32 * MI, most: 256 * MI } as const;

/**
 * The usage, in bytes, at which a crossing may be near: whoever wakes up there and goes the way to
 * a kill once has it in the processor's caches when it counts. Undefined where nothing is armed,
 * where close polls do the same, and where it would lie at 0 or below.
 */
export function approachLevel(arming: Arming, thresholdBytes: number): number | undefined {
  if (arming.kind !== 'armed') return undefined;
  const { least, most } = APPROACH_BYTES;
  const level = arming.levels[0] - Math.min(Math.max(thresholdBytes, least), most);
  return level > 0 ? level : undefined;
}

/** What is said of pods, said once. */

/** How many things that were said are remembered. */
export const REMEMBERED = 1000;

/** Something about a pod. */
export interface About {
  readonly podId: string;
  readonly reason: string;
}

/**
 * Hands on what was not there the last time, the same thing of the same pod once. What is not there any more is
 * forgotten. At most {@link REMEMBERED} are remembered, and nothing is handed on beyond.
 */
export function oncePerPod<T extends About>(tell: (about: T) => void): (now: readonly T[]) => void {
  let said: ReadonlySet<string> = new Set();
  return (now) => {
    const kept = new Set<string>();
    const fresh: T[] = [];
    for (const about of now) {
      const key = `${about.podId}\0${about.reason}`;
      if (kept.has(key) || kept.size >= REMEMBERED) continue;
      kept.add(key);
      if (!said.has(key)) fresh.push(about);
    }
    said = kept;
    for (const about of fresh) tell(about);
  };
}

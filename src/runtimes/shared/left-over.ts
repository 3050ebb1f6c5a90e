/** Pods that were evicted for a disk: dead, and still holding its space. */
import { type SchedulerLike, type Subscription, timer } from 'rxjs';
import { SPACE_HELD_MOST_MS } from '../../core/space.ts';
import type { NamedThing } from '../../ports/collection.ts';
import type { Remains, RuntimePod } from '../../ports/pod-directory.ts';

/** How often it is looked whether they are still there, ms. */
export const LOOK_EACH_MS = 1000;

/** How long nobody is told of one that stays, ms. */
export const UNTOLD_MS = 15_000;

/** How long a runtime may take to see that a pod has ended, ms: what runs after that was started again. */
export const ALIVE_AFTER_MS = 5000;

/** How many are remembered; the oldest is forgotten beyond it. */
export const MOST_LEFT_OVER = 100;

export interface LeftOverInputs {
  readonly remains: Remains;
  /** Whether they may be removed; else somebody else has to. */
  readonly mayRemove: () => boolean;
  readonly scheduler: SchedulerLike;
  /** Is told of what was removed, of one that has stayed for a while, and once it is gone or forgotten. */
  readonly note: (notice: LeftOverNotice) => void;
}

export type LeftOverNotice =
  | { readonly kind: 'left' | 'gone'; readonly podName: string }
  | { readonly kind: 'removed'; readonly podName: string; readonly thing: NamedThing };

export interface LeftOvers {
  /** From here on the pod holds space, until nothing of it is there, or for half a minute. */
  hold(pod: RuntimePod): void;
  /** Whether any holds space that may still come back soon. */
  any(): boolean;
  close(): void;
}

interface LeftOver {
  readonly pod: RuntimePod;
  readonly sinceMs: number;
  isTold: boolean;
}

/** Looks by itself while there are any; a runtime that does not answer is asked again. */
export function leftOvers({ remains, mayRemove, scheduler, note }: LeftOverInputs): LeftOvers {
  const held = new Map<string, LeftOver>();
  let looking: Subscription | undefined;
  const forget = ({ pod, isTold }: LeftOver): void => {
    held.delete(pod.id);
    if (isTold) note({ kind: 'gone', podName: pod.name });
  };
  const lookAt = async (one: LeftOver): Promise<void> => {
    const { pod, sinceMs } = one;
    const ageMs = scheduler.now() - sinceMs;
    try {
      const state = await remains.stateOf(pod);
      if (state === 'gone' || (state === 'running' && ageMs >= ALIVE_AFTER_MS)) forget(one);
      else if (state === 'dead' && mayRemove()) {
        await remains.remove(pod, (thing) => note({ kind: 'removed', podName: pod.name, thing }));
      }
    } catch {
      // Nothing is known: it is there as before.
    }
    if (!held.has(pod.id) || one.isTold || ageMs < UNTOLD_MS) return;
    one.isTold = true;
    note({ kind: 'left', podName: pod.name });
  };
  const look = async (): Promise<void> => {
    for (const one of [...held.values()]) await lookAt(one);
    lookAgain();
  };
  const lookAgain = (): void => {
    looking =
      held.size === 0 ? undefined : timer(LOOK_EACH_MS, scheduler).subscribe(() => void look());
  };
  return {
    hold: (pod) => {
      if (held.has(pod.id)) return;
      const [oldest] = held.values();
      if (oldest !== undefined && held.size >= MOST_LEFT_OVER) forget(oldest);
      held.set(pod.id, { pod, sinceMs: scheduler.now(), isTold: false });
      if (looking === undefined) lookAgain();
    },
    any: () =>
      [...held.values()].some(({ sinceMs }) => scheduler.now() - sinceMs < SPACE_HELD_MOST_MS),
    close: () => {
      held.clear();
      looking?.unsubscribe();
    },
  };
}

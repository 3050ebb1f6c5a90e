/** How long a removal is waited for, and what follows where it hangs. */
import type { Removal } from '../../ports/reclaimer.ts';

/** How long a removal may take, ms: a container's layer and an image may be large. */
export const REMOVE_DEADLINE_MS = 20_000;

/** How long one may take that hung before, ms: what goes after it is not to wait for it again and again. */
export const AGAIN_DEADLINE_MS = 2000;

/** How many that hung are remembered. */
const MOST_HUNG = 1000;

/**
 * One removal. Where it gets no answer while the runtime answers, it alone is what hangs: it has failed, and others
 * may well go.
 *
 * @param key the same for the same thing
 * @param remove is handed how long it may take, ms
 */
export type Patience = (
  key: string,
  remove: (deadlineMs: number) => Promise<Removal>,
) => Promise<Removal>;

/** @param ask rejects where the runtime does not answer */
export function patienceOf(ask: () => Promise<unknown>): Patience {
  const hung = new Set<string>();
  return async (key, remove) => {
    const removal = await remove(hung.has(key) ? AGAIN_DEADLINE_MS : REMOVE_DEADLINE_MS);
    if (removal.kind !== 'failed' || !removal.isAway) {
      hung.delete(key);
      return removal;
    }
    const answers = await ask().then(
      () => true,
      () => false,
    );
    if (!answers) return removal;
    if (hung.size < MOST_HUNG) hung.add(key);
    return { ...removal, isAway: false };
  };
}

/** How many of a runtime's things are asked about at a time: it has others to answer. */
export const ASKED_AT_ONCE = 8;

/** Asks about each, {@link ASKED_AT_ONCE} at a time; rejects with the first failure. */
export async function askAbout<T>(
  things: readonly T[],
  ask: (thing: T) => Promise<void>,
): Promise<void> {
  for (let from = 0; from < things.length; from += ASKED_AT_ONCE) {
    await Promise.all(things.slice(from, from + ASKED_AT_ONCE).map(ask));
  }
}

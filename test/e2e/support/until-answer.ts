/** Waits for what is asked for: see `until` for what is only looked at. */

/** How often is asked, ms. */
const ASK_MS = 20;

/**
 * What `ask` gives once it gives anything but `undefined` or `false`; where it throws it is asked again.
 * Rejects after `limitMs`, with the last error.
 */
export async function untilAnswer<T>(
  what: string,
  ask: () => Promise<T | undefined | false>,
  limitMs: number,
): Promise<T> {
  const deadlineMs = performance.now() + limitMs;
  for (;;) {
    let cause: unknown;
    try {
      const answer = await ask();
      if (answer !== undefined && answer !== false) return answer;
    } catch (error) {
      cause = error;
    }
    if (performance.now() > deadlineMs)
      throw new Error(`not within ${limitMs} ms: ${what}`, { cause });
    await new Promise((resolve) => setTimeout(resolve, ASK_MS));
  }
}

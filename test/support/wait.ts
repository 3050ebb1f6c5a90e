/** What `promise` gives; rejects when it gives nothing within `limitMs`. */
export async function within<T>(promise: Promise<T>, limitMs: number, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${limitMs} ms: ${what}`)), limitMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Resolves as soon as `probe` holds, with the time; rejects after `limitMs`. For what the kernel
 * tells nobody about, such as a cgroup file: where there is an event, wait for that with
 * {@link within}.
 */
export async function until(
  what: string,
  probe: () => boolean,
  options: {
    readonly limitMs: number;
    readonly intervalMs?: number;
    /** What was seen instead, for the error. */
    readonly describe?: () => string;
  },
): Promise<number> {
  const { limitMs, intervalMs = 2, describe } = options;
  const deadline = performance.now() + limitMs;
  while (!probe()) {
    if (performance.now() > deadline) {
      const seen = describe === undefined ? '' : `; ${describe()}`;
      throw new Error(`not within ${limitMs} ms: ${what}${seen}`);
    }
    await new Promise((resolve) => setTimeout(resolve, intervalMs));
  }
  return performance.now();
}

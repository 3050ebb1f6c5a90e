import { TestRunner } from 'vitest';

/** Whether this run uses the full counts of the acceptance lines: `npm run accept`. */
export const FULL = process.env['EVICTD_COUNTS'] === 'full';

/** How often to do something: `reduced` in `npm test` and CI, `full` in `npm run accept`. */
export function count(reduced: number, full: number): number {
  return FULL ? full : reduced;
}

declare module 'vitest' {
  interface TaskMeta {
    /** What the test measured, for the acceptance report. */
    figures?: string[];
  }
}

/** Adds measured figures to the running test; the reporter prints them beside its name. */
export function report(figures: string): void {
  const test = TestRunner.getCurrentTest();
  if (test === undefined) throw new Error('report() outside of a test');
  test.meta.figures = [...(test.meta.figures ?? []), figures];
}

import { writeFileSync } from 'node:fs';
import type { Reporter, TestCase, TestModule, Vitest } from 'vitest/node';
import { FULL } from './counts.ts';

/** Projects of which each test has a line in an acceptance run. */
const TOLD: readonly string[] = ['kernel', 'e2e'];

/** The outcome of a run. What failed outside of a test (a file, a hook) counts as failed. */
export interface Totals {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** Projects whose figures are printed in every run. */
const MEASURED = 'e2e';

/**
 * Names what was skipped, prints what tests of real runtimes measured and in an acceptance run what others did, and
 * ends the output with `N passed, N failed, N skipped`. With `EVICTD_TOTALS` set to a file the totals
 * go there instead, for scripts/test.mjs to add up.
 */
export class Counts implements Reporter {
  #vitest: Vitest | undefined;

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  onTestCaseResult(test: TestCase): void {
    const figures = test.meta().figures ?? [];
    const { name } = test.project;
    if (figures.length === 0 && !(FULL && TOLD.includes(name))) return;
    if (!FULL && name !== MEASURED) return;
    const { state } = test.result();
    this.#print(
      `${FULL ? 'accept' : 'measured'}: ${state}: ${[test.fullName, ...figures].join(': ')}`,
    );
  }

  onTestRunEnd(
    modules: readonly TestModule[],
    unhandledErrors: readonly unknown[],
    reason: 'passed' | 'interrupted' | 'failed',
  ): void {
    const totals = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
    for (const module of modules) {
      const failedBefore = totals.failed;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        // One that is still pending never ran: the run was broken off, or its hook failed.
        if (state === 'pending') totals.failed += 1;
        else totals[state] += 1;
        if (state === 'skipped') this.#print(`skipped: ${test.fullName}`);
      }
      if (!module.ok() && totals.failed === failedBefore) totals.failed += 1;
    }
    if (reason !== 'passed' && totals.failed === 0) totals.failed = 1;

    const file = process.env['EVICTD_TOTALS'];
    if (file !== undefined) {
      writeFileSync(file, JSON.stringify(totals satisfies Totals));
      return;
    }
    const line = `${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped\n`;
    // Coverage is printed later than this; nothing is after the exit.
    process.once('exit', () => process.stdout.write(line));
  }

  #print(line: string): void {
    this.#vitest?.logger.log(line);
  }
}

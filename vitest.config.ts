import { defineConfig } from 'vitest/config';
import { FULL } from './test/support/counts.ts';
import { Counts } from './test/support/reporter.ts';

/** Full counts run many rounds on a real kernel; the bound is only there to end a hang. */
const KERNEL_TIMEOUT_MS = FULL ? 60 * 60_000 : 120_000;

/** Measures time as the kernel tests do. */
const DEMO = 'test/e2e/demo.test.ts';

const apart = ['test/native/**', 'test/kernel/**', 'test/e2e/**', 'test/package.test.ts'];

/**
 * Groups run one after the other, from the lowest: what measures time on the real kernel, and what
 * compiles, has the machine for itself.
 */
export default defineConfig({
  test: {
    teardownTimeout: 30_000,
    reporters: ['default', new Counts()],
    coverage: {
      provider: 'v8',
      include: ['src/core/**'],
      reporter: ['text'],
      thresholds: { 100: true },
    },
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: [...apart, 'test/fixtures/**'],
          // Ends what hangs: on a busy machine a large input takes many times what it does alone.
          testTimeout: 30_000,
          sequence: { groupOrder: 0 },
        },
      },
      ...(['forks', 'threads'] as const).map((pool, index) => ({
        test: {
          name: `native-${pool}`,
          include: ['test/native/**/*.test.ts'],
          pool,
          testTimeout: 60_000,
          sequence: { groupOrder: 1 + index },
        },
      })),
      {
        test: {
          name: 'kernel',
          include: ['test/kernel/**/*.test.ts', DEMO],
          pool: 'forks',
          maxWorkers: 1,
          fileParallelism: false,
          testTimeout: KERNEL_TIMEOUT_MS,
          hookTimeout: 120_000,
          sequence: { groupOrder: 3 },
        },
      },
      {
        // Each has a runtime of its own, and waits for it most of the time.
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          exclude: [DEMO],
          pool: 'forks',
          maxWorkers: 2,
          testTimeout: KERNEL_TIMEOUT_MS,
          hookTimeout: 120_000,
          sequence: { groupOrder: 4 },
        },
      },
      {
        test: {
          name: 'package',
          include: ['test/package.test.ts'],
          pool: 'forks',
          maxWorkers: 1,
          testTimeout: 300_000,
          hookTimeout: 300_000,
          sequence: { groupOrder: 5 },
        },
      },
    ],
  },
});

/** That a daemon has come to rest after what it did. */
import { readdirSync } from 'node:fs';
import { expect } from 'vitest';
import { count, report } from '../../support/counts.ts';
import { until } from '../../support/wait.ts';
import { cpuMs } from './cpu.ts';
import type { Daemon } from './daemon.ts';

const SPAN_MS = count(1000, 10_000);
const CPU_SHARE_LIMIT = 0.02;

export function descriptorsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

/**
 * Fails unless the daemon has no more descriptors open than `descriptors`, and takes less than 2 %
 * of a CPU. It is left alone meanwhile: answering would be work.
 */
export async function expectCalm(daemon: Daemon, descriptors: number): Promise<void> {
  await until('its descriptors are closed', () => descriptorsOf(daemon.pid) <= descriptors, {
    limitMs: 5000,
    describe: () => `${descriptorsOf(daemon.pid)} of ${descriptors}`,
  });
  const cpuBefore = cpuMs(daemon.pid);
  const startedMs = performance.now();
  const endedMs = await until('a span has passed', () => performance.now() > startedMs + SPAN_MS, {
    limitMs: 2 * SPAN_MS,
    intervalMs: 100,
  });
  const share = (cpuMs(daemon.pid) - cpuBefore) / (endedMs - startedMs);
  report(`after the kill ${(100 * share).toFixed(2)} % of a CPU`);
  expect(share).toBeLessThan(CPU_SHARE_LIMIT);
  expect(descriptorsOf(daemon.pid)).toBeLessThanOrEqual(descriptors);
}

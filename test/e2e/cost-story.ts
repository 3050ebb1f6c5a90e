/** What evictd costs beside many pods of a runtime. */
import { expect, it } from 'vitest';
import { cpuMs, residentBytes } from '../kernel/support/cpu.ts';
import { MI } from '../kernel/support/node.ts';
import { count, report } from '../support/counts.ts';
import { until } from '../support/wait.ts';
import { stage } from './leak-stories.ts';
import { contractHost } from './support/contract-host.ts';
import type { MadePod, RuntimeHost } from './support/runtime-host.ts';

const PODS = count(12, 100);
const SPAN_MS = count(5000, 60_000);
const OBSERVATIONS = 50;

/** How many are started at a time: a runtime is slower with more. */
const AT_ONCE = 4;

const LIMIT_MS = 120_000;

/** What a pass over all pods may take for each, beside a fixed part, ms; the machine may be busy. */
const POD_MS = 0.5;
const FIXED_MS = 10;

/** How much of a core it may take while nothing happens. */
const CPU_SHARE_LIMIT = 0.05;

/** RSS, MiB. */
const RESIDENT_MIB_LIMIT = 160;

/** @param host what `beforeAll` has started by the time that a test runs */
export function costStory(name: string, host: () => RuntimeHost): void {
  it(`costs little beside ${PODS} pods`, async () => {
    const { node, run, watch, knows } = stage(host(), 16_384 * MI);
    const pods: MadePod[] = [];
    while (pods.length < PODS) {
      const some = Array.from({ length: Math.min(AT_ONCE, PODS - pods.length) }, (_, at) =>
        run(`pod-${pods.length + at}`, ['sleep', '1000000']),
      );
      pods.push(...(await Promise.all(some)));
    }

    const runtime = await contractHost(host()).open(node);
    await until('all are listed', () => runtime.observePods().length === PODS, {
      limitMs: LIMIT_MS,
    });
    const tookMs = Array.from({ length: OBSERVATIONS }, () => {
      const startMs = performance.now();
      expect(runtime.observePods()).toHaveLength(PODS);
      return performance.now() - startMs;
    }).sort((one, other) => one - other);
    runtime.close();
    const medianMs = tookMs[OBSERVATIONS / 2] ?? Number.NaN;

    const daemon = await watch(['--poll-interval=10s']);
    await knows(daemon, pods);
    const before = { evictd: cpuMs(daemon.pid), runtime: cpuMs(host().pid()) };
    await new Promise((resolve) => setTimeout(resolve, SPAN_MS));
    const share = (cpuMs(daemon.pid) - before.evictd) / SPAN_MS;
    const runtimeShare = (cpuMs(host().pid()) - before.runtime) / SPAN_MS;
    const residentMib = residentBytes(daemon.pid) / MI;
    report(
      `${PODS} pods: one observation ${medianMs.toFixed(1)} ms (${tookMs[0]?.toFixed(1)} to ` +
        `${tookMs.at(-1)?.toFixed(1)}), RSS ${residentMib.toFixed(0)} MiB, over ${SPAN_MS / 1000} s ` +
        `${(100 * share).toFixed(2)} % of a core, ${name} meanwhile ${(100 * runtimeShare).toFixed(2)} %`,
    );
    expect(medianMs).toBeLessThan(FIXED_MS + POD_MS * PODS);
    expect(share).toBeLessThan(CPU_SHARE_LIMIT);
    expect(residentMib).toBeLessThan(RESIDENT_MIB_LIMIT);
    await daemon.stop();
  });
}

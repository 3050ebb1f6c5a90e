// For `node --import`: measures how late the event loop is, and writes it to the file that
// EVICTD_LAG_FILE names when the process ends. SIGUSR2 begins anew.
import { writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';

/** How often the loop is to turn for it, ms: what is beyond it is lag. */
const RESOLUTION_MS = 5;

const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
delay.enable();
process.on('SIGUSR2', () => delay.reset());
process.on('exit', () => {
  const ms = (nanoseconds) => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS);
  const figures = {
    count: delay.count,
    p50Ms: ms(delay.percentile(50)),
    p99Ms: ms(delay.percentile(99)),
    maxMs: ms(delay.max),
  };
  writeFileSync(process.env.EVICTD_LAG_FILE, JSON.stringify(figures));
});

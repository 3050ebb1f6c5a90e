/**
 * The process of one demo pod, an entry of its own: `node pod-process.js CGROUP BYTES`. It joins
 * its cgroup, takes so many bytes and says `holding`. On the line `leak` it takes ever more. It
 * ends when its standard input does, so that it never outlives the demo.
 */
import { writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { interval } from 'rxjs';
import { liveScheduler } from '../../sources/live-scheduler.ts';
import { LEAK_MAX_BYTES, LEAK_RATES } from './plan.ts';

const STEP_MS = 5;
/** More than this at a time would keep the end of standard input from being seen, bytes. */
const STEP_MAX_BYTES = 16 * 2 ** 20;

const [directory = '', bytes = '0'] = process.argv.slice(2);
const held: Buffer[] = [];
let takenBytes = 0;

/** The fill touches every page; zeroed memory would only be promised. */
function take(count: number): void {
  held.push(Buffer.alloc(count, 1));
  takenBytes += count;
}

function leak(): void {
  let lastMs = liveScheduler.now();
  interval(STEP_MS, liveScheduler).subscribe(() => {
    const nowMs = liveScheduler.now();
    const rate = takenBytes < LEAK_RATES.untilBytes ? LEAK_RATES.slow : LEAK_RATES.fast;
    const wanted = Math.round((rate * (nowMs - lastMs)) / 1000);
    lastMs = nowMs;
    if (takenBytes < LEAK_MAX_BYTES) take(Math.min(wanted, STEP_MAX_BYTES));
  });
}

writeFileSync(`${directory}/cgroup.procs`, String(process.pid));
take(Number(bytes));
createInterface({ input: process.stdin })
  .on('line', (line) => {
    if (line === 'leak') leak();
  })
  .once('close', () => process.exit(0));
process.stdout.write('holding\n');

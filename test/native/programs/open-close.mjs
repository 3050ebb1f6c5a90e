// Opens and closes many watches and pidfds and prints the descriptor counts. Half of the watches
// are closed before they are armed: those keep their descriptors until the kernel has been asked.
import { rmdirSync } from 'node:fs';
import { addon, countDescriptors, createMemoryCgroup, turn } from './common.mjs';

const ROUNDS = Number(process.argv[2]);
/** How many registrations are under way at once. */
const BATCH = 100;
/** Registering a usage level waits for an RCU grace period, some 10 ms: only now and then. */
const USAGE_EVERY = 100;
const cgroup = createMemoryCgroup('open-close');
const ignore = () => undefined;

function eventOf(round) {
  if (round % USAGE_EVERY === 0) return { kind: 'usage', bytes: 1n << 30n };
  return round % 2 === 0 ? { kind: 'oom' } : { kind: 'pressure', level: 'low' };
}

async function openAndCloseBoth(round) {
  const watch = addon.watchMemcg(cgroup, eventOf(round), ignore);
  const pidfd = addon.openPidfd(process.pid);
  pidfd.onExit(ignore);
  pidfd.close();
  if (round % 4 < 2) await watch.armed;
  watch.close();
  await watch.armed;
}

await turn();
const before = countDescriptors();
for (let first = 0; first < ROUNDS; first += BATCH) {
  await Promise.all(Array.from({ length: BATCH }, (_, index) => openAndCloseBoth(first + index)));
}
const sameTurn = countDescriptors();
await turn();
const later = countDescriptors();
rmdirSync(cgroup);
console.log(JSON.stringify({ opened: sameTurn - before, left: later - before }));

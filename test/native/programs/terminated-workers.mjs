// Starts workers that are busy with the addon, terminates each, and prints how many descriptors
// are left. The first argument names what they do (worker.mjs), the second their number.
import { once } from 'node:events';
import { rmdirSync, rmSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { countDescriptors, createMemoryCgroup, createRefusingDirectory, turn } from './common.mjs';

const CGROUPS = 16;
const [activity, count] = process.argv.slice(2);
const refusingCgroup = createMemoryCgroup('refusing');
const refusing = createRefusingDirectory(refusingCgroup);

async function runWorker() {
  const cgroups = Array.from({ length: CGROUPS }, (_, index) => createMemoryCgroup(index));
  const worker = new Worker(new URL('./worker.mjs', import.meta.url), {
    workerData: { activity, cgroups, refusing },
  });
  const exited = once(worker, 'exit');
  await once(worker, 'message');
  // Each removal is an event for every watch of the cgroup; the worker ends in their midst.
  for (const cgroup of cgroups) rmdirSync(cgroup);
  if (activity !== 'leave') await worker.terminate();
  await exited;
}

// What the first worker opens for good is no leak.
await runWorker();
await turn();
const before = countDescriptors();
for (let index = 0; index < Number(count); index += 1) await runWorker();
await turn();
const left = countDescriptors() - before;
rmSync(refusing, { recursive: true });
rmdirSync(refusingCgroup);
console.log(JSON.stringify({ left }));

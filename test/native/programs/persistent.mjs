// Leaves one watch open and prints what becomes of the process: with "persistent: false" it ends,
// otherwise it stays until the event comes.
import { rmdirSync } from 'node:fs';
import { addon, createMemoryCgroup } from './common.mjs';

const persistent = process.argv[2] === 'true';
const cgroup = createMemoryCgroup('persistent');
const watch = addon.watchMemcg(
  cgroup,
  { kind: 'oom' },
  () => {
    watch.close();
    console.log('event');
  },
  { persistent },
);
process.on('exit', () => console.log('exit'));
await watch.armed;
// Persistent: only the watch can keep the process until the kernel's worker signals the removal.
if (persistent) rmdirSync(cgroup);
else process.on('exit', () => rmdirSync(cgroup));

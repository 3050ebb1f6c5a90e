// Prints the scheduling policy and real-time priority of the main thread before and after
// setRoundRobin, those of a child started then, and what is refused without the capability.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { addon } from './common.mjs';

/** Fields 40 and 41 of proc(5)'s stat: rt_priority and policy (0 other, 2 round robin). */
function scheduling(text) {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return { priority: Number(fields[37]), policy: Number(fields[38]) };
}

const own = () => scheduling(readFileSync(`/proc/self/task/${process.pid}/stat`, 'utf8'));
const before = own();
let refused = null;
try {
  addon.setRoundRobin(1);
} catch (error) {
  const { code, errno, syscall } = error;
  refused = { code, errno, syscall };
}
const child = spawnSync('cat', ['/proc/self/stat'], { encoding: 'utf8' });
console.log(JSON.stringify({ before, after: own(), child: scheduling(child.stdout), refused }));

// The source of filesystems in a process of its own, where its children, descriptors and exit can be
// seen: node filesystems.mjs DIST INPUTS. DIST: the built modules; INPUTS: JSON with `paths`, `pollMs`,
// and what else the source takes as plain values. Prints each notice as a line of JSON. The line
// "unsubscribe" on standard input has it unsubscribe, and end when nothing keeps it; "exit" calls
// process.exit; "rest" has it poll no more.
import path from 'node:path';
import { createInterface } from 'node:readline';

const [dist, inputs] = process.argv.slice(2);
const load = (file) => import(path.join(dist, 'sources', file));
const { filesystems } = await load('filesystem.js');
const { liveScheduler } = await load('live-scheduler.js');

const { pollMs, ...given } = JSON.parse(inputs);
let afterMs = pollMs;
const subscription = filesystems({
  ...given,
  scheduler: liveScheduler,
  pollAfterMs: () => afterMs,
}).subscribe((notice) => process.stdout.write(`${JSON.stringify(notice)}\n`));

const commands = {
  unsubscribe: () => {
    subscription.unsubscribe();
    process.stdin.destroy();
  },
  exit: () => process.exit(0),
  rest: () => {
    afterMs = 3_600_000;
  },
};
createInterface({ input: process.stdin }).on('line', (line) => commands[line]());

// A process that holds as much memory as it is told to: see child.ts.
//   node --expose-gc memory-child.mjs CGROUPS_AS_JSON exit|ignore [UID]
import { openSync, readSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [cgroups, onTerm, uid] = process.argv.slice(2);
let held = [];

if (onTerm === 'ignore') process.on('SIGTERM', () => console.log('term'));
for (const directory of JSON.parse(cgroups)) {
  writeFileSync(`${directory}/cgroup.procs`, String(process.pid));
}
// Only root may have joined them.
if (uid !== undefined) {
  process.setgid(Number(uid));
  process.setuid(Number(uid));
}

const commands = {
  // The fill touches every page; zeroed memory would only be promised.
  grow: (bytes) => held.push(Buffer.alloc(bytes, 1)),
  shrink: () => {
    held = [];
    // The first collection only queues large buffers for a sweep, which the next one finishes.
    for (let round = 0; round < 5; round += 1) globalThis.gc();
  },
  // On the main thread, which waits in the kernel as long as the file's server pleases.
  read: (file) => readSync(openSync(file), Buffer.alloc(1)),
  exit: () => process.exit(0),
};

const lines = createInterface({ input: process.stdin });
lines.on('line', (line) => {
  const [name, what] = line.split(' ');
  commands[name](name === 'read' ? what : Number(what));
  console.log('ok');
});
// The test process is gone, and nobody else would end this one.
lines.on('close', () => process.exit(0));
console.log('ok');

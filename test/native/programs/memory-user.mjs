// Holds as many bytes as each line of its input says, charged to the cgroup that it joins first.
// The bytes are those of an unlinked file: unlike a heap it grows and shrinks exactly on command.
import { ftruncateSync, openSync, unlinkSync, writeFileSync, writeSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [cgroup, directory] = process.argv.slice(2);
const chunk = Buffer.alloc(1024 * 1024, 1);
const name = `${directory}/evictd-test-${process.pid}`;
const file = openSync(name, 'wx');
unlinkSync(name);
writeFileSync(`${cgroup}/cgroup.procs`, String(process.pid));

let held = 0;
function hold(bytes) {
  if (bytes < held) ftruncateSync(file, bytes);
  held = Math.min(held, bytes);
  while (held < bytes)
    held += writeSync(file, chunk, 0, Math.min(chunk.length, bytes - held), held);
}

console.log('ready');
for await (const line of createInterface({ input: process.stdin })) {
  hold(Number(line));
  console.log('done');
}

// A process that notes when it is sent SIGTERM: see victim.ts.
//   node victim.mjs CGROUP
import { writeFileSync, writeSync } from 'node:fs';
import { createInterface } from 'node:readline';

const nowMs = () => Number(process.hrtime.bigint()) / 1e6;
const held = [];

process.on('SIGTERM', () => {
  const atMs = nowMs();
  writeSync(1, `term ${atMs}\n`);
  process.exit(0);
});
writeFileSync(`${process.argv[2]}/cgroup.procs`, String(process.pid));
const lines = createInterface({ input: process.stdin });
lines.on('line', (bytes) => {
  const startMs = nowMs();
  held.push(Buffer.alloc(Number(bytes), 1));
  writeSync(1, `grown ${startMs} ${nowMs()}\n`);
});
lines.on('close', () => process.exit(0));
writeSync(1, 'ready\n');

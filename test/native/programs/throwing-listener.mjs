// Listeners that throw: each failure must surface as an uncaughtException, with what was thrown,
// and the other listeners must be served.
import { rmdirSync } from 'node:fs';
import { addon, createMemoryCgroup } from './common.mjs';

const THROWN = [new Error('from a watch'), 42, undefined];
const caught = [];
process.on('uncaughtException', (error) => caught.push(error));
// Every watch is closed by then, so nothing keeps this process.
process.on('exit', () => {
  console.log(JSON.stringify(caught.map((error) => String(error?.message ?? error)).sort()));
});

const cgroup = createMemoryCgroup('throwing');
const armed = THROWN.map((thrown) => {
  const watch = addon.watchMemcg(cgroup, { kind: 'oom' }, () => {
    watch.close();
    throw thrown;
  });
  return watch.armed;
});
await Promise.all(armed);
rmdirSync(cgroup);

// What the garbage collector may close, and what it must not. Run with --expose-gc.
import { spawn } from 'node:child_process';
import { rmdirSync } from 'node:fs';
import { addon, countDescriptors, createMemoryCgroup, turn } from './common.mjs';

const OBJECTS = 200;
const TURNS_MAX = 100;
const cgroup = createMemoryCgroup('collect');
const child = spawn('sleep', ['1000'], { stdio: 'ignore' });

/** Collects until `done`, as finalizers run in later turns. */
async function collectUntil(done) {
  for (let round = 0; round < TURNS_MAX && !done(); round += 1) {
    globalThis.gc();
    await turn();
  }
}

function times(action) {
  for (let index = 0; index < OBJECTS; index += 1) action();
}

await turn();
const before = countDescriptors();

// Forgotten without close(): their descriptors must not leak.
times(() => addon.openPidfd(child.pid));
const forgotten = countDescriptors() - before;
await collectUntil(() => countDescriptors() === before);
const forgottenLeft = countDescriptors() - before;

// Open and waiting, but referred to by nothing: they must stay and must be served.
let events = 0;
let exits = 0;
const armed = [];
times(() => {
  const watch = addon.watchMemcg(cgroup, { kind: 'oom' }, () => {
    events += 1;
  });
  armed.push(watch.armed);
});
await Promise.all(armed);
times(() =>
  addon.openPidfd(child.pid).onExit(() => {
    exits += 1;
  }),
);
await collectUntil(() => false);
const waiting = countDescriptors() - before;
rmdirSync(cgroup);
child.kill('SIGKILL');
await collectUntil(() => events === OBJECTS && exits === OBJECTS);

// Closed, but part of a cycle through their own listener: they must be collected.
const closedCgroup = createMemoryCgroup('collect-closed');
let collected = 0;
const registry = new FinalizationRegistry(() => {
  collected += 1;
});
times(() => {
  const watch = addon.watchMemcg(closedCgroup, { kind: 'oom' }, () => watch.close());
  registry.register(watch, undefined);
  watch.close();
});
await collectUntil(() => collected === OBJECTS);
rmdirSync(closedCgroup);

console.log(JSON.stringify({ forgotten, forgottenLeft, waiting, events, exits, collected }));
// The two hundred watches of the removed cgroup are still open, and keep this process alive.
process.exit();

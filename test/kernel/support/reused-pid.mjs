// What becomes of a kill whose target's number is another process's by then. To be run by
//   unshare --pid --fork --mount-proc node reused-pid.mjs DIST NODE pidfd|pid
// DIST: the built modules; NODE: a memory cgroup with the pods "pod" and "web". Prints as JSON how the
// eviction of "pod" went, and whether the innocent process in "web" that has its number still lives.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { NEVER } from 'rxjs';

const [dist, node, by] = process.argv.slice(2);
const load = (file) => import(path.join(dist, file));
const { cgroupRuntime } = await load('runtimes/cgroup/runtime.js');
const { findHierarchy } = await load('kernel/hierarchy.js');
const { loadNative } = await load('native/index.js');
const { liveScheduler } = await load('sources/live-scheduler.js');

/** How many numbers may be taken by others in between. */
const TRIES = 100;

/** A shell that says its pid; ready for a signal. */
const JOIN = 'echo $$ > "$0/cgroup.procs"; trap "" TERM; echo ready; read -r _';

async function start(pod) {
  const child = spawn('sh', ['-c', JOIN, `${node}/${pod}`], { stdio: ['pipe', 'pipe', 'inherit'] });
  child.ended = once(child, 'exit');
  await once(child.stdout, 'data');
  return child;
}

async function end(child) {
  child.kill('SIGKILL');
  await child.ended;
}

/** Starts a process in "web" that has the number `pid`, which is free. */
async function startAs(pid) {
  for (let n = 0; n < TRIES; n += 1) {
    writeFileSync('/proc/sys/kernel/ns_last_pid', String(pid - 1));
    const child = spawn('sh', ['-c', JOIN, `${node}/web`], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    child.ended = once(child, 'exit');
    if (child.pid === pid) {
      await once(child.stdout, 'data');
      return child;
    }
    await end(child);
  }
  throw new Error(`no process got the number ${pid}`);
}

function runtimeOf(native) {
  return cgroupRuntime({
    directory: node,
    isRoot: false,
    parents: [],
    hierarchy: findHierarchy('memory'),
    fields: new Map(),
    native,
    allowPidKill: native === undefined,
    scheduler: liveScheduler,
    pid: process.pid,
  });
}

function evict(runtime, gracePeriodMs, onProgress) {
  const pod = runtime.observePods().find(({ name }) => name === 'pod');
  const request = { podId: pod.id, podName: 'pod', gracePeriodMs, escalations$: NEVER };
  const seen = [];
  return new Promise((resolve) => {
    runtime.evict(request).subscribe({
      next: (progress) => {
        seen.push(progress.kind);
        onProgress(progress.kind);
      },
      error: (error) => resolve([...seen, error.message]),
      complete: () => resolve(seen),
    });
  });
}

const victim = await start('pod');
// Keeps the pod from being empty, so that the KILL still comes.
const other = await start('pod');
const native = by === 'pidfd' ? loadNative().addon : undefined;
const runtime = runtimeOf(native);
let innocent;
const progress = await evict(runtime, 1000, (kind) => {
  if (kind !== 'terminating') return;
  innocent = end(victim).then(() => startAs(victim.pid));
});
const bystander = await innocent;
const [, otherEnd] = await other.ended;
// A signal that was sent has taken it by now, though Node may not know yet.
const isAlive = !/\) Z /.test(readFileSync(`/proc/${bystander.pid}/stat`, 'utf8'));
const reused = bystander.pid === victim.pid;
console.log(JSON.stringify({ progress, reused, isAlive, other: otherEnd }));
await end(bystander);
runtime.close();
process.exit(0);

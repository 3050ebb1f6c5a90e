// The body of a worker of terminated-workers.mjs.
import { parentPort, workerData } from 'node:worker_threads';
import { addon, FREE_PID, MEMORY_HIERARCHY } from './common.mjs';

const { activity, cgroups, refusing } = workerData;

async function watchAll(listener) {
  const watches = cgroups.map((cgroup) => addon.watchMemcg(cgroup, { kind: 'oom' }, listener));
  await Promise.all(watches.map((watch) => watch.armed));
}

function spin(action) {
  action();
  setImmediate(spin, action);
}

function ignoreFailure(action) {
  try {
    action();
  } catch {
    // Wanted: a system error is made while the worker is being terminated.
  }
}

const activities = {
  /** Waits, with everything open. */
  async wait() {
    await watchAll(() => undefined);
    const pidfd = addon.openPidfd(process.pid);
    pidfd.onExit(() => undefined);
  },
  /** Is in a listener for most of the time. */
  async listen() {
    await watchAll(() => {
      for (let round = 0; round < 100_000; round += 1) Math.sqrt(round);
      throw new Error('unheard');
    });
  },
  /** Opens, fails to open and closes. */
  open() {
    spin(() => {
      for (let round = 0; round < 1_000; round += 1) {
        ignoreFailure(() => addon.openPidfd(FREE_PID));
        ignoreFailure(() => addon.openPidfd('1'));
        ignoreFailure(() => addon.watchMemcg('/nowhere', { kind: 'oom' }, () => undefined));
        const pidfd = addon.openPidfd(process.pid);
        pidfd.onExit(() => undefined);
        pidfd.close();
      }
    });
  },
  /** Has releases queued, running and settling. */
  release() {
    const pidfd = addon.openPidfd(process.pid);
    spin(() => {
      for (let round = 0; round < 16; round += 1) pidfd.release().catch(() => undefined);
    });
  },
  /** Ends by itself inside a listener. */
  async leave() {
    await watchAll(() => process.exit());
  },
  /** Has registrations queued and one in the kernel; a third of the watches is closed already. */
  arm() {
    for (const [index, cgroup] of cgroups.entries()) {
      const watch = addon.watchMemcg(cgroup, { kind: 'usage', bytes: 1n << 30n }, () => undefined);
      if (index % 3 === 0) watch.close();
    }
  },
  /** Has registrations settling all the time, half of them refused. */
  settle() {
    const registerBoth = async () => {
      const watches = [MEMORY_HIERARCHY, refusing].map((directory) =>
        addon.watchMemcg(directory, { kind: 'oom' }, () => undefined),
      );
      await Promise.allSettled(watches.map((watch) => watch.armed));
      for (const watch of watches) watch.close();
      void registerBoth();
    };
    for (let count = 0; count < 16; count += 1) void registerBoth();
  },
};

process.on('uncaughtException', () => undefined);
await activities[activity]();
parentPort.postMessage('busy');

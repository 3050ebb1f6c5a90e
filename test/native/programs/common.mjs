// Shared by the programs that the native tests run in processes of their own.
import { mkdirSync, mkdtempSync, readdirSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';

export const ADDON_PATH =
  process.env.EVICTD_NATIVE_PATH ??
  fileURLToPath(new URL('../../../build/Release/evictd.node', import.meta.url));

export const addon = createRequire(import.meta.url)(ADDON_PATH);

/** A pid that no process has: above the kernel's default pid_max, within its limit. */
export const FREE_PID = 4_194_303;

export const MEMORY_HIERARCHY = '/sys/fs/cgroup/memory';

export function createMemoryCgroup(label) {
  const directory = `${MEMORY_HIERARCHY}/evictd-test-${process.pid}-${label}`;
  mkdirSync(directory);
  return directory;
}

/** As in support.ts, for `oom`. */
export function createRefusingDirectory(cgroup) {
  const directory = mkdtempSync(`${tmpdir()}/evictd-test-`);
  const watched = 'memory.oom_control';
  symlinkSync(`${MEMORY_HIERARCHY}/${watched}`, `${directory}/${watched}`);
  symlinkSync(`${cgroup}/cgroup.event_control`, `${directory}/cgroup.event_control`);
  return directory;
}

export function countDescriptors() {
  return readdirSync('/proc/self/fd').length;
}

export function turn() {
  return new Promise((resolve) => setImmediate(resolve));
}

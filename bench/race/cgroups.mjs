// @ts-check
// The node and its pods: memory cgroups (v1), read and made through the file system.
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { waitUntil } from './waiting.mjs';

export const MEMORY_ROOT = '/sys/fs/cgroup/memory';
export const UNIFIED_ROOT = '/sys/fs/cgroup/unified';

/** Freeing the memory of what was killed comes before its cgroup can go. */
const REMOVE_LIMIT_MS = 10_000;

/**
 * Makes the cgroup that stands for the node.
 * @param {string} name
 * @param {number} limitBytes
 * @returns {string} its directory
 */
export function makeNode(name, limitBytes) {
  const node = path.join(MEMORY_ROOT, name);
  mkdirSync(node);
  // Older kernels charge the pods' memory to the node only if asked to.
  writeFileSync(path.join(node, 'memory.use_hierarchy'), '1');
  writeFileSync(path.join(node, 'memory.limit_in_bytes'), String(limitBytes));
  return node;
}

/**
 * Makes a pod's cgroup and, for a twin, the group of the same path in the cgroup2 hierarchy.
 * @param {string} pod
 * @param {boolean} twin
 */
export function makePod(pod, twin) {
  mkdirSync(pod);
  if (twin) mkdirSync(twinOf(pod), { recursive: true });
}

/**
 * The group of the same path in the cgroup2 hierarchy.
 * @param {string} directory
 * @returns {string}
 */
export function twinOf(directory) {
  return path.join(UNIFIED_ROOT, path.relative(MEMORY_ROOT, directory));
}

/**
 * The groups that a pod's process joins. The memory group comes last: what the process takes
 * before it has joined that one is not charged to the pod.
 * @param {string} pod
 * @param {boolean} twin
 * @returns {string[]}
 */
export function groupsOf(pod, twin) {
  return twin ? [twinOf(pod), pod] : [pod];
}

/**
 * A control file that holds one number.
 * @param {string} directory
 * @param {string} file
 * @returns {number}
 */
export function readNumber(directory, file) {
  return Number(readFileSync(path.join(directory, file), 'utf8'));
}

/**
 * One row of a control file that holds names and numbers, such as memory.stat.
 * @param {string} directory
 * @param {string} file
 * @param {string} name
 * @returns {number}
 */
export function readRow(directory, file, name) {
  const text = readFileSync(path.join(directory, file), 'utf8');
  const row = text.split('\n').find((line) => line.startsWith(`${name} `));
  if (row === undefined) throw new Error(`race: no ${name} in ${directory}/${file}`);
  return Number(row.slice(name.length));
}

/**
 * Processes killed by the kernel's OOM killer in a cgroup and all below it. cgroup v1 counts each
 * in the victim's own group only, whichever group's limit was reached.
 * @param {string} directory
 * @returns {number}
 */
export function oomKills(directory) {
  const below = children(directory).reduce((sum, child) => sum + oomKills(child), 0);
  return readRow(directory, 'memory.oom_control', 'oom_kill') + below;
}

/**
 * Ends every process in a cgroup and below, by pid, and removes the groups. An absent one is fine.
 * @param {string} directory
 * @returns {Promise<void>}
 */
export async function removeTree(directory) {
  if (!existsSync(directory)) return;
  for (const child of children(directory)) await removeTree(child);
  await waitUntil(() => tryToRemove(directory), `removing ${directory}`, REMOVE_LIMIT_MS);
}

/**
 * @param {string} directory
 * @returns {boolean}
 */
function tryToRemove(directory) {
  try {
    killProcesses(directory);
    rmdirSync(directory);
    return true;
  } catch (error) {
    const code = errorCode(error);
    if (code === 'ENOENT') return true; // removed by somebody else
    if (code === 'EBUSY') return false; // processes on their way out
    throw error;
  }
}

/** @param {string} directory */
function killProcesses(directory) {
  const pids = readFileSync(path.join(directory, 'cgroup.procs'), 'utf8').split('\n').map(Number);
  for (const pid of pids.filter((pid) => pid > 0)) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch (error) {
      if (errorCode(error) !== 'ESRCH') throw error;
    }
  }
}

/**
 * @param {string} directory
 * @returns {string[]}
 */
function children(directory) {
  const entries = readdirSync(directory, { withFileTypes: true });
  return entries.filter((e) => e.isDirectory()).map((e) => path.join(directory, e.name));
}

/**
 * @param {unknown} error
 * @returns {string | undefined}
 */
function errorCode(error) {
  return error instanceof Error ? /** @type {NodeJS.ErrnoException} */ (error).code : undefined;
}

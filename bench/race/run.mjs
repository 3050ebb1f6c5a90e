// @ts-check
// One run of the race: a node with pods, an agent, a leak.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startAgent } from './agent.mjs';
import {
  groupsOf,
  MEMORY_ROOT,
  makeNode,
  makePod,
  oomKills,
  readNumber,
  readRow,
  removeTree,
  twinOf,
} from './cgroups.mjs';
import { parseRecord, parseWakeUp, runFigures } from './figures.mjs';
import { describeEnding, lineSplitter, start, stop } from './processes.mjs';
import { scratchDirectory, tools, uncachedFile } from './tools.mjs';
import { settlesWithin, waitUntil, withCleanup } from './waiting.mjs';

const BYSTANDER_BYTES = 4 * 2 ** 20;
/** A leak is given more than the limit, so that it never ends by itself. */
const LEAK_PER_LIMIT = 2;
/**
 * Being ready is the agent's promise; what the start leaves behind (compiling, collecting garbage,
 * counters that the kernel sums up late) is not what is measured here. The floor waits as well.
 */
const SETTLE_MS = 700;
/** The kernel counts page cache per CPU, in batches, and puts a few pages on the active list. */
const INACTIVE_SHARE = 0.95;
/** A leak starts at no fixed phase against an agent that polls. */
const PHASE_MS = 100;
/** How long the agent may go on and kill a bystander after the last leak has ended. */
const AFTERMATH_MS = 400;
const STEP_LIMIT_MS = 30_000;

/** @typedef {import('./options.mjs').Settings} Settings */
/** @typedef {import('./processes.mjs').Running} Running */
/** @typedef {import('./figures.mjs').LeakRecord} LeakRecord */

/**
 * What every step of a run needs.
 * @typedef {object} Bench
 * @property {Settings} settings
 * @property {string} node the node's cgroup
 * @property {readonly string[]} leakPods
 * @property {(undo: import('./waiting.mjs').Undo) => void} defer
 * @property {AbortSignal} signal
 */

/**
 * @typedef {import('./figures.mjs').RunFigures & { agentEnding: string | null }} RunResult
 *   with how the agent ended, if it did not last until the end of the run
 */

/**
 * Runs the race once. All it started and made is gone when the promise settles.
 * @param {Settings} settings
 * @param {string} name of the node, unique on this machine
 * @param {AbortSignal} signal
 * @returns {Promise<RunResult>}
 */
export function runOnce(settings, name, signal) {
  return withCleanup(async (defer) => {
    const node = makeNode(name, settings.limitBytes);
    defer(() => removeTree(twinOf(node)));
    defer(() => removeTree(node));
    const leakPods = Array.from({ length: settings.leakers }, (_, i) =>
      path.join(node, i === 0 ? 'pod-leak' : `pod-leak-${i}`),
    );
    /** @type {Bench} */
    const bench = { settings, node, leakPods, defer, signal };

    if (!settings.late) makeLeakPods(bench);
    const others = await startOthers(bench);
    const agent = await startTheAgent(bench);
    await delay(SETTLE_MS, undefined, { signal });
    const floor = await startFloor(bench, agent === undefined);
    if (settings.late) makeLeakPods(bench);

    const before = counters(node);
    const leaks = await leakAll(bench);
    const after = counters(node);
    const agentEnding = agent?.ending();
    const figures = runFigures({
      leaks: leaks.records,
      allEnded: leaks.allEnded,
      wakeUps: (await floor.linesAtEnd()).map(parseWakeUp),
      levelBytes: floor.levelBytes,
      limitBytes: settings.limitBytes,
      peakBytes: readNumber(node, 'memory.max_usage_in_bytes'),
      oomKills: after.oomKills - before.oomKills,
      limitHits: after.limitHits - before.limitHits,
      bystandersKilled: others.filter((other) => other.ending()).length,
    });
    return { ...figures, agentEnding: agentEnding ? describeEnding(agentEnding) : null };
  });
}

/** @param {Bench} bench */
function makeLeakPods({ settings, leakPods }) {
  for (const pod of leakPods) makePod(pod, settings.twin);
}

/** @param {string} node */
function counters(node) {
  return { oomKills: oomKills(node), limitHits: readNumber(node, 'memory.failcnt') };
}

/**
 * Starts a process that is ended with the run.
 * @param {Bench} bench
 * @param {readonly string[]} argv
 * @param {import('node:child_process').StdioOptions} [stdio]
 * @returns {Running}
 */
function startHere(bench, argv, stdio = ['ignore', 'ignore', 'inherit']) {
  const running = start(argv, stdio);
  bench.defer(() => stop(running));
  return running;
}

/**
 * The pods that must survive, and the busy loops.
 * @param {Bench} bench
 * @returns {Promise<Running[]>} the pods' processes
 */
async function startOthers(bench) {
  const { settings } = bench;
  const pods = [];
  for (let i = 0; i < settings.bystanders; i++) pods.push(await startBystander(bench, i));
  if (settings.pagecacheBytes > 0) pods.push(await startCachePod(bench));
  for (let i = 0; i < settings.busy; i++) {
    // Ends by itself should the race be killed: it asks for its parent in each round.
    startHere(bench, ['sh', '-c', 'while kill -0 "$PPID" 2> /dev/null; do :; done']);
  }
  return pods;
}

/**
 * @param {Bench} bench
 * @param {number} index
 * @returns {Promise<Running>}
 */
async function startBystander(bench, index) {
  const pod = path.join(bench.node, `pod-bystander-${index}`);
  makePod(pod, bench.settings.twin);
  const resident = () => readNumber(pod, 'memory.usage_in_bytes') >= BYSTANDER_BYTES;
  const { running } = startLeak(bench, pod, { bytes: BYSTANDER_BYTES, rateMBs: 0, huge: false });
  await untilTrue(bench, running, resident, `${pod} is resident`);
  return running;
}

/**
 * A pod that has read a file once: its pages stay on the inactive list, charged to it.
 * @param {Bench} bench
 * @returns {Promise<Running>}
 */
async function startCachePod(bench) {
  const { settings, node } = bench;
  const pod = path.join(node, 'pod-cache');
  makePod(pod, settings.twin);
  const file = uncachedFile(settings.pagecacheBytes);
  const groups = groupsOf(pod, settings.twin).map((group) => path.join(group, 'cgroup.procs'));
  // After the file cat reads a pipe that stays open, and so holds the pod until the run ends.
  const script = 'for g; do echo $$ > "$g" || exit 1; done; exec cat "$0" - > /dev/null';
  const stdio = /** @type {const} */ (['pipe', 'ignore', 'inherit']);
  const cat = startHere(bench, ['sh', '-c', script, file, ...groups], [...stdio]);
  const enoughBytes = settings.pagecacheBytes * INACTIVE_SHARE;
  const charged = () => readRow(pod, 'memory.stat', 'inactive_file') >= enoughBytes;
  await untilTrue(bench, cat, charged, `${pod} has its page cache`);
  return cat;
}

/**
 * Waits for a pod's state, and fails at once if its process is gone.
 * @param {Bench} bench
 * @param {Running} running
 * @param {() => boolean} condition
 * @param {string} what
 */
async function untilTrue(bench, running, condition, what) {
  const holds = () => {
    const ending = running.ending();
    if (ending) throw new Error(`race: not ${what}: ${describeEnding(ending)}`);
    return condition();
  };
  await waitUntil(holds, what, STEP_LIMIT_MS, bench.signal);
}

/**
 * @param {Bench} bench
 * @returns {Promise<Running | undefined>} undefined for the floor, which is not an agent
 */
async function startTheAgent({ settings, node, leakPods, defer, signal }) {
  if (settings.agent === 'floor') return undefined;
  const places = {
    node,
    nodeRelative: node.slice(MEMORY_ROOT.length),
    headroom: String(settings.headroomBytes),
    limit: String(settings.limitBytes),
    leak: leakPods[0] ?? '',
  };
  return startAgent(settings.agent, settings, places, defer, signal);
}

/**
 * Starts the watcher, which kills the leaking pods itself if there is no agent to do it. Page cache
 * that can be reclaimed counts as available, so the level of usage is that much higher.
 * @param {Bench} bench
 * @param {boolean} kills
 */
async function startFloor(bench, kills) {
  const { settings, node, leakPods, signal } = bench;
  const inactiveBytes = readRow(node, 'memory.stat', 'total_inactive_file');
  const levelBytes = settings.limitBytes - settings.headroomBytes + inactiveBytes;
  writeFileSync(path.join(node, 'memory.max_usage_in_bytes'), '0'); // resets the peak
  const argv = [tools().floor, node, String(levelBytes), ...(kills ? leakPods : [])];
  const floor = startHere(bench, argv, ['pipe', 'pipe', 'inherit']);
  /** @type {string[]} */
  const lines = [];
  const onChunk = lineSplitter((line) => lines.push(line));
  floor.child.stdout?.on('data', onChunk);
  const closed = new Promise((resolve) => floor.child.once('close', resolve));
  await untilTrue(bench, floor, () => lines[0] === 'ready', 'the floor is ready');

  const linesAtEnd = async () => {
    floor.child.stdin?.end();
    if (!(await settlesWithin(closed, STEP_LIMIT_MS, signal))) {
      throw new Error('race: the floor does not end');
    }
    return lines.slice(1);
  };
  return { levelBytes, linesAtEnd };
}

/**
 * Lets the pods leak until all are killed or the time is up.
 * @param {Bench} bench
 * @returns {Promise<{ records: LeakRecord[], allEnded: boolean }>}
 */
async function leakAll(bench) {
  const { settings, leakPods, signal } = bench;
  await delay(Math.random() * PHASE_MS, undefined, { signal });
  const bytes = settings.limitBytes * LEAK_PER_LIMIT;
  const how = { bytes, rateMBs: settings.rateMBs, huge: settings.huge };
  const leaks = leakPods.map((pod) => startLeak(bench, pod, how));
  const endings = Promise.all(leaks.map(({ running }) => running.ended));
  const allEnded = await settlesWithin(endings, settings.timeoutMs, signal);
  await delay(AFTERMATH_MS, undefined, { signal });
  for (const { running } of leaks) checkKilled(running);
  return { records: leaks.map(({ record }) => readRecord(record)), allEnded };
}

/**
 * @param {Bench} bench
 * @param {string} pod
 * @param {{ bytes: number, rateMBs: number, huge: boolean }} how
 * @returns {{ running: Running, record: string }}
 */
function startLeak(bench, pod, { bytes, rateMBs, huge }) {
  const { twin } = bench.settings;
  const name = `${path.basename(bench.node)}-${path.basename(pod)}`;
  const record = path.join(scratchDirectory(), name);
  bench.defer(() => rmSync(record, { force: true }));
  const size = huge ? 'huge' : 'small';
  const argv = [tools().leak, record, String(bytes), String(rateMBs), size, ...groupsOf(pod, twin)];
  return { running: startHere(bench, argv), record };
}

/**
 * A leak that ended otherwise than by a signal has failed, and the run tells nothing.
 * @param {Running} leak
 */
function checkKilled(leak) {
  const ending = leak.ending();
  if (!ending || ending.signal !== null) return;
  throw new Error(`race: the leaking pod ended by itself: ${describeEnding(ending)}`);
}

/**
 * @param {string} file
 * @returns {LeakRecord}
 */
function readRecord(file) {
  // An agent may kill a pod before it has written anything.
  return parseRecord(existsSync(file) ? readFileSync(file) : Buffer.alloc(0));
}

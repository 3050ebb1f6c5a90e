#!/usr/bin/env node
// @ts-check
// Does an eviction agent beat a leaking pod? See ../README.md.
import { existsSync, realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { MEMORY_ROOT, UNIFIED_ROOT } from './cgroups.mjs';
import { spread } from './figures.mjs';
import { checkOptions } from './options.mjs';
import { formatComparison, formatSummary } from './report.mjs';
import { runOnce } from './run.mjs';
import { withInterrupts } from './waiting.mjs';

/** @typedef {import('./options.mjs').RaceOptions} RaceOptions */
/** @typedef {import('./options.mjs').Settings} Settings */
/** @typedef {import('./figures.mjs').Outcome} Outcome */
/** @typedef {import('./figures.mjs').Spread} Spread */
/** @typedef {import('./run.mjs').RunResult} RunResult */

/**
 * @typedef {object} Summary
 * @property {string} agent 'floor' or the command
 * @property {number} runs
 * @property {Record<Outcome, number>} outcomes runs by outcome, adding up to `runs`
 * @property {number} atLimit runs in which the node's limit was reached
 * @property {number} withoutEvent runs without a threshold event, and so without a latency
 * @property {number} agentEnded runs in which the agent did not last
 * @property {Spread | null} latencyMs threshold event to the leak's last page
 * @property {Spread | null} overshootMiB leaked after the event
 * @property {Spread | null} rateMBs
 * @property {RunResult[]} results
 */

/**
 * @typedef {object} Comparison
 * @property {Summary} agent
 * @property {Summary} floor
 * @property {{ medianMs: number, p90Ms: number } | null} difference agent's latency − floor's
 */

/** Numbers the nodes of this process: no two races at once share one. */
let nodes = 0;

/**
 * Runs the race `options.runs` times and sums up. Needs root, the memory controller on cgroup v1,
 * and cc. Rejects if a run cannot be carried out, or on SIGINT, SIGTERM or SIGHUP; processes and
 * cgroups are removed first. An agent that loses is no rejection.
 * @param {RaceOptions} options
 * @returns {Promise<Summary>}
 */
export async function race(options) {
  const settings = checkOptions(options);
  checkHost(settings);
  return withInterrupts(async (signal) => summarise(settings, await runs(settings, signal)));
}

/**
 * Runs the race with the agent and with the floor in turns, `block` runs each, so that both meet
 * the same weather on the machine.
 * @param {RaceOptions} options
 * @param {number} block
 * @returns {Promise<Comparison>}
 */
export async function raceWithFloor(options, block) {
  if (!(Number.isInteger(block) && block > 0)) throw new RangeError('race: blocks of 1 or more');
  const settings = checkOptions(options);
  checkHost(settings);
  const floorSettings = { ...settings, agent: /** @type {const} */ ('floor') };
  return withInterrupts(async (signal) => {
    /** @type {RunResult[]} */
    const agentResults = [];
    /** @type {RunResult[]} */
    const floorResults = [];
    for (let left = settings.runs; left > 0; left -= block) {
      const count = Math.min(block, left);
      agentResults.push(...(await runs({ ...settings, runs: count }, signal)));
      floorResults.push(...(await runs({ ...floorSettings, runs: count }, signal)));
    }
    const agent = summarise(settings, agentResults);
    const floor = summarise(floorSettings, floorResults);
    return { agent, floor, difference: difference(agent.latencyMs, floor.latencyMs) };
  });
}

/**
 * @param {Settings} settings
 * @param {AbortSignal} signal
 * @returns {Promise<RunResult[]>}
 */
async function runs(settings, signal) {
  const results = [];
  for (let i = 0; i < settings.runs; i++) {
    signal.throwIfAborted();
    results.push(await runOnce(settings, `evictd-race-${process.pid}-${nodes++}`, signal));
  }
  return results;
}

/**
 * @param {Settings} settings
 * @param {RunResult[]} results
 * @returns {Summary}
 */
function summarise({ agent }, results) {
  const outcomes = { evicted: 0, oom: 0, bystander: 0, early: 0, none: 0 };
  for (const { outcome } of results) outcomes[outcome] += 1;
  return {
    agent: agent === 'floor' ? agent : agent.join(' '),
    runs: results.length,
    outcomes,
    atLimit: results.filter((result) => result.atLimit).length,
    withoutEvent: results.filter((result) => result.withoutEvent).length,
    agentEnded: results.filter((result) => result.agentEnding !== null).length,
    latencyMs: spread(results.map((result) => result.latencyMs)),
    overshootMiB: spread(results.map((result) => result.overshootMiB)),
    rateMBs: spread(results.map((result) => result.rateMBs)),
    results,
  };
}

/**
 * @param {Spread | null} agent
 * @param {Spread | null} floor
 * @returns {Comparison['difference']}
 */
function difference(agent, floor) {
  if (!agent || !floor) return null;
  return { medianMs: agent.median - floor.median, p90Ms: agent.p90 - floor.p90 };
}

/**
 * @param {Settings} settings
 */
function checkHost({ twin }) {
  if (process.getuid?.() !== 0) throw new Error('race: needs root, to make cgroups');
  if (!existsSync(`${MEMORY_ROOT}/memory.usage_in_bytes`)) {
    throw new Error(`race: needs the memory controller on cgroup v1, at ${MEMORY_ROOT}`);
  }
  if (twin && !existsSync(`${UNIFIED_ROOT}/cgroup.procs`)) {
    throw new Error(`race: twins need the cgroup2 hierarchy at ${UNIFIED_ROOT}`);
  }
}

const USAGE = `usage: race.mjs --agent floor|COMMAND [--runs 10] [--limit 512Mi] [--headroom 64Mi]
  [--rate MB_PER_S] [--huge] [--late] [--twin] [--bystanders 5] [--pagecache 0] [--busy 0]
  [--leakers 1] [--ready REGEX] [--timeout SECONDS] [--stdout read|unread|file:PATH]
  [--with-floor BLOCK] [--json] [--verbose]`;

const TEXT = /** @type {const} */ ({ type: 'string' });
const FLAG = /** @type {const} */ ({ type: 'boolean' });
const NUMBERS = /** @type {const} */ (['runs', 'rate', 'bystanders', 'busy', 'leakers']);

/**
 * @param {string[]} args
 * @returns {{ options: RaceOptions, block: number | undefined, json: boolean }}
 */
function parseCommandLine(args) {
  const { values } = parseArgs({
    args,
    options: {
      agent: TEXT,
      runs: TEXT,
      limit: TEXT,
      headroom: TEXT,
      rate: TEXT,
      huge: FLAG,
      late: FLAG,
      twin: FLAG,
      bystanders: TEXT,
      pagecache: TEXT,
      busy: TEXT,
      leakers: TEXT,
      ready: TEXT,
      timeout: TEXT,
      stdout: TEXT,
      'with-floor': TEXT,
      json: FLAG,
      verbose: FLAG,
    },
  });
  const { agent, ready, timeout, verbose, json = false, 'with-floor': block, ...rest } = values;
  if (agent === undefined) throw new RangeError('race: --agent is needed');
  const numbers = NUMBERS.flatMap((name) => {
    const value = rest[name];
    return value === undefined ? [] : [[name, Number(value)]];
  });
  const options = {
    ...rest,
    ...Object.fromEntries(numbers),
    agent,
    ...(ready === undefined ? {} : { readyPattern: ready }),
    ...(timeout === undefined ? {} : { timeoutSeconds: Number(timeout) }),
    ...(verbose ? { onLine: (/** @type {string} */ line) => console.error(`  | ${line}`) } : {}),
  };
  return { options, block: block === undefined ? undefined : Number(block), json };
}

/**
 * @param {string[]} args
 * @returns {Promise<string>} what is to be printed
 */
async function main(args) {
  const { options, block, json } = parseCommandLine(args);
  if (block === undefined) {
    const summary = await race(options);
    return json ? JSON.stringify(summary) : formatSummary(summary);
  }
  const comparison = await raceWithFloor(options, block);
  return json ? JSON.stringify(comparison) : formatComparison(comparison);
}

/** @param {unknown} error */
function explain(error) {
  console.error(error instanceof Error ? error.message : error);
  // RangeError and TypeError come from the command line (parseArgs throws the latter).
  if (error instanceof RangeError || error instanceof TypeError) console.error(USAGE);
  process.exitCode = 1;
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  await main(process.argv.slice(2)).then(console.log, explain);
}

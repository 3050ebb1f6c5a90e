#!/usr/bin/env node
// @ts-check
// How long does one decision take, beside the kubelet's own loop? See ../README.md.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

/** @typedef {import('./measure.mjs').Report} Report */

/**
 * What the kubelet's loop took (Go, v1.32, logging off), ms, by pods and situation, where one SHA-256
 * over 64 MiB took {@link YARDSTICK_MS}.
 */
const KUBELET_MS = /** @type {const} */ ({
  '110 calm': 0.19,
  '110 memory': 0.68,
  '110 disk': 3.9,
  '1000 calm': 2.2,
  '1000 memory': 9.3,
  '1000 disk': 68,
});
const YARDSTICK_MS = 39;

const ENGINES = /** @type {const} */ (['default', 'daemon']);
const MEASURE = fileURLToPath(new URL('measure.mjs', import.meta.url));
const DIST = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

const USAGE = `Usage: node bench/decision/decision.mjs [options]

  --rounds N             rounds of each process (default 15)
  --processes N          processes of each kind, in turns (default 2)
  --at-least RATIO       how much faster than the kubelet each decision must be (default 5)
  --compatibility RULES  kubelet (default) or evictd
  --print                only print: exit 0 whatever the ratios
  --json                 the table as JSON`;

/**
 * @typedef {object} Row
 * @property {string} name `110 calm`
 * @property {number} decisionMs the median of all rounds
 * @property {number} freshMs where the summary was parsed just before
 * @property {number} specsMs reading all pods for the first time
 * @property {number} kubeletMs scaled to this machine
 * @property {number} ratio the kubelet's over evictd's
 * @property {number} firstRatio the same where the pods are read in the decision
 */

/**
 * @param {readonly number[]} values
 * @returns {number}
 */
function median(values) {
  const sorted = [...values].sort((left, right) => left - right);
  const middle = sorted.length >> 1;
  const [low, high] = [sorted[Math.ceil(sorted.length / 2) - 1], sorted[middle]];
  if (low === undefined || high === undefined) throw new Error('bench: nothing was measured');
  return (low + high) / 2;
}

/**
 * @param {string} engine
 * @param {number} rounds
 * @param {string} compatibility
 * @returns {Report}
 */
function measure(engine, rounds, compatibility) {
  const args = [MEASURE, engine, String(rounds), compatibility];
  const out = execFileSync(process.execPath, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return JSON.parse(out);
}

/**
 * @param {readonly Report[]} reports
 * @returns {{ yardstickMs: number, rows: Row[] }}
 */
function tableOf(reports) {
  const yardstickMs = median(reports.flatMap(({ yardsticksMs }) => yardsticksMs));
  const cases = reports.flatMap((report) => report.cases);
  const rows = Object.entries(KUBELET_MS).map(([name, measuredMs]) => {
    const own = cases.filter(({ pods, situation }) => `${pods} ${situation}` === name);
    const decisionMs = median(own.flatMap(({ decisionsMs }) => decisionsMs));
    const freshMs = median(own.flatMap((each) => each.freshMs));
    const specsMs = median(own.flatMap((each) => each.specsMs));
    const kubeletMs = (measuredMs * yardstickMs) / YARDSTICK_MS;
    return {
      name,
      decisionMs,
      freshMs,
      specsMs,
      kubeletMs,
      ratio: kubeletMs / decisionMs,
      firstRatio: kubeletMs / (decisionMs + specsMs),
    };
  });
  return { yardstickMs, rows };
}

/**
 * @param {string} title
 * @param {ReturnType<typeof tableOf>} table
 * @returns {string}
 */
function formatTable(title, { yardstickMs, rows }) {
  const cell = (/** @type {string} */ text) => text.padStart(12);
  const head = ['kubelet ms', 'evictd ms', 'ratio', 'fresh ms', 'pods ms', 'with pods'];
  return [
    `${title}: SHA-256 over 64 MiB ${yardstickMs.toFixed(1)} ms`,
    `  ${'pods'.padEnd(12)}${head.map(cell).join('')}`,
    ...rows.map(({ name, decisionMs, freshMs, specsMs, kubeletMs, ratio, firstRatio }) => {
      const ratios = [ratio, firstRatio].map((each) => `${each.toFixed(1)}×`);
      const [kubelet, own, fresh, specs] = [kubeletMs, decisionMs, freshMs, specsMs].map((ms) =>
        ms.toFixed(3),
      );
      const cells = [kubelet, own, ratios[0], fresh, specs, ratios[1]];
      return `  ${name.padEnd(12)}${cells.map((text) => cell(String(text))).join('')}`;
    }),
  ].join('\n');
}

function main() {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '15' },
      processes: { type: 'string', default: '2' },
      'at-least': { type: 'string', default: '5' },
      compatibility: { type: 'string', default: 'kubelet' },
      print: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return;
  }
  const rounds = wholeNumber('--rounds', values.rounds);
  const processes = wholeNumber('--processes', values.processes);
  const least = Number(values['at-least']);
  if (!(least > 0)) throw new RangeError(`bench: --at-least: not a ratio: ${values['at-least']}`);
  if (!['kubelet', 'evictd'].includes(values.compatibility)) {
    throw new RangeError(`bench: --compatibility: not kubelet or evictd: ${values.compatibility}`);
  }
  if (!existsSync(DIST)) throw new Error('bench: evictd is not built: npm run build');
  /** @type {Record<typeof ENGINES[number], Report[]>} */
  const reports = { default: [], daemon: [] };
  for (let turn = 0; turn < processes; turn += 1) {
    for (const engine of ENGINES) {
      reports[engine].push(measure(engine, rounds, values.compatibility));
    }
  }
  const tables = { default: tableOf(reports.default), daemon: tableOf(reports.daemon) };
  if (values.json) {
    console.log(JSON.stringify({ node: process.version, load: loadavg(), ...tables }));
  } else {
    const load = loadavg()[0] ?? 0;
    console.log(
      `Node.js ${process.version}, load ${load.toFixed(1)}, rules ${values.compatibility}`,
    );
    console.log(formatTable('V8 as it is by default', tables.default));
    console.log(formatTable('V8 as the daemon sets it up', tables.daemon));
  }
  const slow = tables.default.rows.filter(({ ratio }) => !(ratio >= least));
  for (const { name, ratio } of slow) {
    console.error(
      `bench: ${name}: ${ratio.toFixed(1)}× as fast as the kubelet, less than ${least}×`,
    );
  }
  if (slow.length > 0 && !values.print) process.exitCode = 1;
}

/**
 * @param {string} name
 * @param {string} text
 * @returns {number}
 */
function wholeNumber(name, text) {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number >= 1) return number;
  throw new RangeError(`bench: ${name}: not a whole number from 1: ${text}`);
}

main();

// @ts-check
// What a run's raw facts mean. Pure: numbers in, numbers out.

const MIB = 2 ** 20;
const NS_PER_MS = 1e6;
const NS_PER_S = 1e9;

/**
 * Killed further below the threshold than this, a pod was killed early. The kernel looks at the
 * threshold only every 128 page events of a CPU, so a rightful kill may come that much below it.
 */
const EARLY_BYTES = MIB;

/**
 * A leak may take its last stamp just before the event that it dies of: at 10 MB/s the next stamp
 * would have come 1.6 ms later.
 */
const LAST_STAMP_LEAD_NS = 2e6;

/**
 * The record that a leak leaves; see leak.c. Nanoseconds are exact up to 104 days of uptime, and
 * to 2 ns after that.
 * @typedef {object} LeakRecord
 * @property {readonly number[]} ns when each stamp was taken, CLOCK_MONOTONIC
 * @property {readonly number[]} bytes how much was resident then
 */

/**
 * A wake-up of the watcher; see floor.c. Thresholds fire on the way down as well.
 * @typedef {object} WakeUp
 * @property {number} ns
 * @property {number} events how many came as one
 */

/** @typedef {'evicted' | 'oom' | 'bystander' | 'early' | 'none'} Outcome */

/**
 * @typedef {object} RunFacts
 * @property {readonly LeakRecord[]} leaks
 * @property {readonly WakeUp[]} wakeUps
 * @property {number} levelBytes usage at which the threshold event is due
 * @property {number} limitBytes
 * @property {number} peakBytes the node's highest usage
 * @property {boolean} allEnded whether every leaking pod was killed in time
 * @property {number} oomKills
 * @property {number} bystandersKilled
 * @property {number} limitHits how often an allocation failed at the limit
 */

/**
 * @typedef {object} RunFigures
 * @property {Outcome} outcome
 * @property {boolean} atLimit the limit was reached, if only to reclaim page cache
 * @property {boolean} withoutEvent the kernel sent no threshold event
 * @property {number | null} latencyMs from the threshold event to the leak's last page; slightly
 *   negative if the event came after the last stamp; the longest of several leaks
 * @property {number | null} overshootMiB leaked past the event, by all leaks
 * @property {number} rateMBs of all leaks, in 10^6 bytes a second
 * @property {number} bystandersKilled
 */

/**
 * @typedef {object} Spread
 * @property {number} min
 * @property {number} median
 * @property {number} p90
 * @property {number} p99
 * @property {number} max
 */

/**
 * @param {Buffer} buffer
 * @returns {LeakRecord}
 */
export function parseRecord(buffer) {
  const count = buffer.length < 16 ? 0 : Number(buffer.readBigUInt64LE(0));
  /** @param {number} offset */
  const column = (offset) =>
    Array.from({ length: count }, (_, i) => Number(buffer.readBigUInt64LE(16 + 16 * i + offset)));
  return { ns: column(0), bytes: column(8) };
}

/**
 * @param {string} line
 * @returns {WakeUp}
 */
export function parseWakeUp(line) {
  const [ns = Number.NaN, events = Number.NaN] = line.split(' ').map(Number);
  if (Number.isNaN(ns + events)) throw new Error(`race: not a wake-up: ${line}`);
  return { ns, events };
}

/**
 * @param {RunFacts} facts
 * @returns {RunFigures}
 */
export function runFigures(facts) {
  const leaks = facts.leaks.filter(({ ns }) => ns.length > 0);
  const eventNs = eventsOf(leaks, crossings(facts));
  const withoutEvent = eventNs.length === 0 || leaks.length === 0;
  const latencies = leaks.map((leak, i) => (last(leak.ns) - (eventNs[i] ?? 0)) / NS_PER_MS);
  const overshoots = leaks.map((leak, i) => bytesPast(leak, eventNs[i] ?? 0) / MIB);
  return {
    outcome: outcomeOf(facts),
    atLimit: facts.limitHits > 0,
    withoutEvent,
    latencyMs: withoutEvent ? null : Math.max(...latencies),
    overshootMiB: withoutEvent ? null : sum(overshoots),
    rateMBs: sum(leaks.map(rateMBs)),
    bystandersKilled: facts.bystandersKilled,
  };
}

/**
 * Bystanders count before a late or a missing kill, and the OOM killer before all: then the agent
 * has lost, whatever it did afterwards.
 * @param {RunFacts} facts
 * @returns {Outcome}
 */
export function outcomeOf(facts) {
  if (facts.oomKills > 0) return 'oom';
  if (facts.bystandersKilled > 0) return 'bystander';
  if (!facts.allEnded) return 'none';
  // With much page cache the level lies above the limit: no peak can reach it.
  const reachable = facts.levelBytes < facts.limitBytes;
  return reachable && facts.peakBytes < facts.levelBytes - EARLY_BYTES ? 'early' : 'evicted';
}

/**
 * When usage went up past the level. The leaks start below it, and the kernel's events are in turns
 * one for the way up and one for the way down. The usage does not tell: an agent may have killed
 * before the floor has read it.
 * @param {RunFacts} facts
 * @returns {number[]}
 */
function crossings({ wakeUps }) {
  let isAbove = false;
  return wakeUps.flatMap(({ ns, events }) => {
    const goesUp = !isAbove || events > 1;
    if (events % 2 === 1) isAbove = !isAbove;
    return goesUp ? [ns] : [];
  });
}

/**
 * The event that each leak is to be measured from: the first, for the first that was stopped. If
 * usage fell and rose again, the next one is measured from the first crossing after that stop;
 * if it stayed above, from the same event.
 * @param {readonly LeakRecord[]} leaks
 * @param {readonly number[]} crossingsNs
 * @returns {number[]} in the order of `leaks`; empty without events
 */
function eventsOf(leaks, crossingsNs) {
  const [first] = crossingsNs;
  if (first === undefined) return [];
  let eventNs = first;
  let stoppedNs = Number.NEGATIVE_INFINITY;
  /** @type {Map<LeakRecord, number>} */
  const events = new Map();
  for (const leak of [...leaks].sort((a, b) => last(a.ns) - last(b.ns))) {
    const endNs = last(leak.ns);
    const latestNs = endNs + LAST_STAMP_LEAD_NS;
    eventNs = crossingsNs.find((ns) => ns > stoppedNs && ns <= latestNs) ?? eventNs;
    stoppedNs = endNs;
    events.set(leak, eventNs);
  }
  return leaks.map((leak) => events.get(leak) ?? first);
}

/**
 * @param {LeakRecord} leak
 * @param {number} eventNs
 * @returns {number}
 */
function bytesPast({ ns, bytes }, eventNs) {
  const at = ns.findIndex((stampNs) => stampNs >= eventNs);
  return at < 0 ? 0 : last(bytes) - (bytes[at] ?? 0);
}

/**
 * @param {LeakRecord} leak
 * @returns {number}
 */
function rateMBs({ ns, bytes }) {
  const seconds = (last(ns) - (ns[0] ?? 0)) / NS_PER_S;
  return seconds > 0 ? (last(bytes) - (bytes[0] ?? 0)) / 1e6 / seconds : 0;
}

/**
 * Quantiles by nearest rank: each is a value that was measured.
 * @param {readonly (number | null)[]} values nulls are left out
 * @returns {Spread | null} null without values
 */
export function spread(values) {
  const sorted = values.filter((value) => value !== null).sort((a, b) => a - b);
  if (sorted.length === 0) return null;
  /** @param {number} p */
  const quantile = (p) => sorted[Math.max(0, Math.ceil(p * sorted.length) - 1)] ?? Number.NaN;
  return {
    min: quantile(0),
    median: quantile(0.5),
    p90: quantile(0.9),
    p99: quantile(0.99),
    max: quantile(1),
  };
}

/**
 * @param {readonly number[]} values
 * @returns {number}
 */
function last(values) {
  return values.at(-1) ?? Number.NaN;
}

/**
 * @param {readonly number[]} values
 * @returns {number}
 */
function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}

// @ts-check
// Summaries as text for people.

/** @typedef {import('./race.mjs').Summary} Summary */
/** @typedef {import('./race.mjs').Comparison} Comparison */

const ROWS = /** @type {const} */ ([
  ['latency ms', 'latencyMs'],
  ['overshoot MiB', 'overshootMiB'],
  ['rate MB/s', 'rateMBs'],
]);
const QUANTILES = /** @type {const} */ (['min', 'median', 'p90', 'p99', 'max']);

/**
 * @param {Summary} summary
 * @returns {string}
 */
export function formatSummary(summary) {
  const rows = ROWS.map(([title, key]) => {
    const spread = summary[key];
    const cells = spread
      ? QUANTILES.map((q) => `${q} ${spread[q].toFixed(2).padStart(8)}`).join('  ')
      : 'no values';
    return `  ${title.padEnd(14)} ${cells}`;
  });
  return [formatCounts(summary), ...rows].join('\n');
}

/**
 * @param {Comparison} comparison
 * @returns {string}
 */
export function formatComparison({ agent, floor, difference }) {
  const more = difference
    ? `median ${difference.medianMs.toFixed(2)} ms, p90 ${difference.p90Ms.toFixed(2)} ms`
    : 'unknown, for one of them has no latency';
  return [formatSummary(agent), formatSummary(floor), `agent above floor: ${more}`].join('\n');
}

/**
 * @param {Summary} summary
 * @returns {string}
 */
function formatCounts({ agent, runs, outcomes, atLimit, withoutEvent, agentEnded }) {
  const counts = Object.entries(outcomes).filter(([, count]) => count > 0);
  const parts = [counts.map(([outcome, count]) => `${outcome} ${count}`).join(', ')];
  if (atLimit > 0) parts.push(`${atLimit} reached the limit`);
  if (withoutEvent > 0) parts.push(`${withoutEvent} without a kernel event`);
  if (agentEnded > 0) parts.push(`in ${agentEnded} the agent ended by itself`);
  return `${agent}: ${runs} runs: ${parts.join('; ')}`;
}

#!/usr/bin/env node
// @ts-check
// Measures decisions in a process of its own, as fresh as a daemon's, and prints what it found as JSON.
//
//   node bench/decision/measure.mjs default|daemon ROUNDS kubelet|evictd
//
// `daemon` sets V8 up as `evictd run` does, before any module that is measured is loaded.
import { createHash } from 'node:crypto';
import { CONFIG, podsOf, summaryText } from './node.mjs';

/** @typedef {import('./node.mjs').Situation} Situation */
/** @typedef {import('../../dist/core/kubernetes.js').KubernetesPod} KubernetesPod */
/** @typedef {import('../../dist/core/kubernetes.js').Summary} Summary */
/** @typedef {import('../../dist/core/pod-spec.js').PodSpec} PodSpec */
/** @typedef {import('../../dist/core/policy.js').Policy} Policy */
/** @typedef {import('../../dist/core/state.js').State} State */

/**
 * @typedef {object} Measured
 * @property {number} pods
 * @property {Situation} situation
 * @property {number[]} decisionsMs of each round: the mean of its decisions, pods being known
 * @property {number[]} freshMs of each round: one decision on a summary that was parsed just before
 * @property {number[]} specsMs of each round: reading all pods for the first time, once
 */

/**
 * @typedef {object} Report
 * @property {number[]} yardsticksMs one SHA-256 over 64 MiB, before each round
 * @property {Measured[]} cases
 */

const [engine, roundsText, compatibility = 'kubelet'] = process.argv.slice(2);

if (engine === 'daemon') (await import('../../dist/commands/engine.js')).tuneEngine();

const { scenarioSettings } = await import('../../dist/config/scenario-config.js');
const { withContainerfs } = await import('../../dist/core/containerfs.js');
const { podSpec } = await import('../../dist/core/pod-spec.js');
const { RECLAIM_FUNCTIONS } = await import('../../dist/core/reclaim.js');
const { RULE_SETS } = await import('../../dist/core/rules.js');
const { INITIAL_STATE } = await import('../../dist/core/state.js');
const { step } = await import('../../dist/core/step.js');
const { SummarySample } = await import('../../dist/core/summary-sample.js');

const SIZES = [110, 1000];
/** @type {readonly Situation[]} */
const SITUATIONS = ['calm', 'memory', 'disk'];
const YARDSTICK_BYTES = 64 * 2 ** 20;
const START_MS = Date.parse('2026-01-01T00:00:00Z');
const INTERVAL_MS = 10_000;
const WARM_UP_ROUNDS = 8;
/** Decisions take turns between so many summaries, equal but apart. */
const SUMMARIES = 3;
/** For how long one round makes decisions of each case. */
const ROUND_MS = 25;

const { settings } = scenarioSettings({ ...CONFIG, compatibility }, {});
const rules = RULE_SETS[settings.compatibility];
const node = { dedicatedImageFs: false, splitImageFs: false };
/** @type {Policy} */
const policy = {
  ...settings.policy,
  thresholds: withContainerfs(settings.policy.thresholds, node, rules).later,
  layout: 'single',
  ranksDisk: true,
  reclaims: RECLAIM_FUNCTIONS,
};

/**
 * @param {Summary} summary
 * @param {readonly PodSpec[]} specs
 * @param {number} nowMs
 */
function sampleOf(summary, specs, nowMs) {
  return new SummarySample({
    summary,
    nowMs,
    rules,
    memorySource: settings.memorySource,
    memAvailableBytes: undefined,
    specs,
    layout: policy.layout,
    checksLimits: true,
  });
}

/**
 * One decision: from the summary to whom to evict, with message and annotations. For a disk a collection
 * comes first, and what is read after it is another summary.
 * @param {State} before
 * @param {readonly PodSpec[]} specs
 * @param {Summary} summary
 * @param {Summary} after
 */
function decide(before, specs, summary, after) {
  const sample = sampleOf(summary, specs, INTERVAL_MS);
  const first = step(policy, before, sample);
  if (first.decision.kind !== 'reclaim') return first.decision;
  const fresh = sampleOf(after, specs, INTERVAL_MS);
  const { observations, overLimits } = fresh;
  const pods = rules.measuredAfterReclaim === 'kubelet' ? sample.pods : fresh.pods;
  return step(policy, first.state, {
    nowMs: INTERVAL_MS,
    observations,
    overLimits,
    pods,
    reclaimed: true,
  }).decision;
}

/** What the decisions said, so that none of them is for nothing. */
let told = 0;

/** @param {number} count */
function prepare(count) {
  const pods = podsOf(count);
  const specs = pods.map((pod) => podSpec(pod, rules));
  const calm = JSON.parse(summaryText(pods, 'calm', START_MS));
  const { state: before, decision } = step(policy, INITIAL_STATE, sampleOf(calm, specs, 0));
  told += checked('calm', decision);
  return { count, pods, text: JSON.stringify(pods), specs, before };
}

/**
 * Processor time of the whole process, V8's helper threads included: other processes do not count.
 * @param {NodeJS.CpuUsage} start
 * @returns {number} ms
 */
function cpuMsSince(start) {
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}

/**
 * @param {string} text
 * @returns {Summary}
 */
function parse(text) {
  return JSON.parse(text);
}

/**
 * @param {ReturnType<typeof prepare>} prepared
 * @param {Situation} situation
 * @param {readonly Summary[]} summaries
 * @returns {number} ms for each decision, what it leaves for the collector included
 */
function timeDecisions({ specs, before }, situation, summaries) {
  const start = process.cpuUsage();
  let count = 0;
  let tookMs = 0;
  while (tookMs < ROUND_MS) {
    for (let index = 0; index < SUMMARIES; index += 1) {
      const summary = /** @type {Summary} */ (summaries[index]);
      const after = /** @type {Summary} */ (summaries[(index + 1) % SUMMARIES]);
      told += checked(situation, decide(before, specs, summary, after));
    }
    count += SUMMARIES;
    tookMs = cpuMsSince(start);
  }
  return tookMs / count;
}

/**
 * @param {ReturnType<typeof prepare>} prepared
 * @param {Situation} situation
 * @param {string} text
 * @returns {number} ms for one decision
 */
function timeFresh({ specs, before }, situation, text) {
  const summary = parse(text);
  const after = situation === 'disk' ? parse(text) : summary;
  const start = process.cpuUsage();
  const decision = decide(before, specs, summary, after);
  const tookMs = cpuMsSince(start);
  told += checked(situation, decision);
  return tookMs;
}

/**
 * @param {Situation} situation
 * @param {ReturnType<typeof decide>} decision
 * @returns {number}
 */
function checked(situation, decision) {
  if (situation === 'calm') {
    if (decision.kind === 'none' && decision.why === 'calm') return 1;
  } else if (decision.kind === 'evict' && decision.message.includes('Container main was using')) {
    if (decision.annotations['offending_containers'] !== '') return decision.message.length;
  }
  const { kind } = decision;
  throw new Error(`bench: ${situation}: not what was to be decided: ${kind}`);
}

/**
 * @param {ReturnType<typeof prepare>} prepared
 * @returns {number} ms for all pods
 */
function timeSpecs({ text }) {
  const pods = /** @type {KubernetesPod[]} */ (JSON.parse(text));
  const start = process.cpuUsage();
  const specs = pods.map((pod) => podSpec(pod, rules));
  const tookMs = cpuMsSince(start);
  told += specs.length;
  return tookMs;
}

const bytes = Buffer.alloc(YARDSTICK_BYTES, 7);

/** @returns {number} ms */
function timeYardstick() {
  const start = process.cpuUsage();
  told += createHash('sha256').update(bytes).digest()[0] ?? 0;
  return cpuMsSince(start);
}

const rounds = Number(roundsText);
const prepared = SIZES.map(prepare);
/** @type {Report} */
const report = { yardsticksMs: [], cases: [] };
const plans = prepared.flatMap((each) =>
  SITUATIONS.map((situation) => {
    /** @type {Measured} */
    const measured = { pods: each.count, situation, decisionsMs: [], freshMs: [], specsMs: [] };
    report.cases.push(measured);
    const text = summaryText(each.pods, situation, START_MS + INTERVAL_MS);
    const summaries = Array.from({ length: SUMMARIES }, () => parse(text));
    return { each, measured, text, summaries };
  }),
);
for (let round = -WARM_UP_ROUNDS; round < rounds; round += 1) {
  const yardstickMs = timeYardstick();
  if (round >= 0) report.yardsticksMs.push(yardstickMs);
  for (const { each, measured, text, summaries } of plans) {
    const decisionMs = timeDecisions(each, measured.situation, summaries);
    const freshMs = timeFresh(each, measured.situation, text);
    const specsMs = timeSpecs(each);
    if (round < 0) continue;
    measured.decisionsMs.push(decisionMs);
    measured.freshMs.push(freshMs);
    measured.specsMs.push(specsMs);
  }
}
if (told === 0) throw new Error('bench: nothing was decided');
process.stdout.write(JSON.stringify(report));

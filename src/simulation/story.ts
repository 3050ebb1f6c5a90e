/** What a simulation did, told for a person. */
import type { FlagValues } from '../config/flags.ts';
import type { Decision } from '../core/decision.ts';
import { formatDuration } from '../core/duration.ts';
import { escapeControl } from '../core/errors.ts';
import type { Policy } from '../core/policy.ts';
import { approximateCount } from '../core/quantity.ts';
import { RULE_SETS } from '../core/rules.ts';
import { SIGNALS, type Signal } from '../core/signal.ts';
import { type Threshold, thresholdId } from '../core/threshold.ts';
import { type ObservedStep, simulate } from './engine.ts';
import { gauge } from './gauge.ts';
import { flow, foldRounds, type Round, shortMoment, wrap } from './layout.ts';
import { rankingTable } from './ranking.ts';
import type { AdmittedPod, Scenario, SimulationResult, TickFacts, TickResult } from './scenario.ts';

/** How wide a line may be, but for what cannot be broken. */
const WIDTH = 100;

/** What stands in a line after its time. */
const INDENT = 10;

/** A scenario as it was run, with the steps that were taken in each of its rounds. */
export interface Run {
  readonly result: SimulationResult;
  /** One list for each round. */
  readonly steps: readonly (readonly ObservedStep[])[];
}

/**
 * Runs a scenario and keeps what its steps were.
 *
 * @throws EvictdError what `simulate` throws
 */
export function observedRun(scenario: Scenario, flags: FlagValues): Run {
  const steps = scenario.ticks.map((): ObservedStep[] => []);
  const result = simulate(scenario, { flags, onStep: (step) => steps[step.tick]?.push(step) });
  return { result, steps };
}

/**
 * The story of a scenario: what it is about, then each round with its signals against their thresholds,
 * the conditions, and what was decided and why.
 *
 * @throws EvictdError what `simulate` throws
 */
export function tellStory(
  scenario: Scenario,
  { flags, explain }: { readonly flags: FlagValues; readonly explain: boolean },
): string {
  const { result, steps } = observedRun(scenario, flags);
  const { name, description } = scenario;
  const lines = [
    ...wrap(`${name}: ${description}`, WIDTH),
    ...(result.error === undefined
      ? policyLines(steps.flat().at(-1)?.policy)
      : [`configuration error: ${result.error}`]),
    ...(result.evictd?.warnings ?? []).flatMap((text) => indented(wrap(`warning: ${text}`, WIDTH))),
    '',
    ...foldRounds(
      result.ticks.map((tick, index) => roundOf(tick, steps[index] ?? [], explain)),
      INDENT,
    ),
    ...unreadLines(steps.flat()),
    ...wrap(endLine(result), WIDTH),
  ];
  return `${lines.map((line) => escapeControl(line).trimEnd()).join('\n')}\n`;
}

/** The rules and thresholds that were in force. */
function policyLines(policy: Policy | undefined): readonly string[] {
  if (policy === undefined) return [];
  const rules = policy.rules === RULE_SETS.kubelet ? "the kubelet's rules" : "evictd's own rules";
  const transition = formatDuration(policy.pressureTransitionPeriodMs);
  const thresholds = policy.thresholds.map(thresholdText);
  return flow(
    [
      `${rules}, transition period ${transition}`,
      ...(thresholds.length === 0 ? ['no threshold'] : thresholds),
    ],
    WIDTH,
  );
}

function thresholdText({ kind, signal, value, gracePeriodMs, minimumReclaim }: Threshold): string {
  return [
    `${kind} ${signal}<${value.text}`,
    ...(kind === 'soft' ? [`for ${formatDuration(gracePeriodMs)}`] : []),
    ...(minimumReclaim === undefined ? [] : [`then +${minimumReclaim.text}`]),
  ].join(' ');
}

function roundOf(tick: TickResult, steps: readonly ObservedStep[], explain: boolean): Round {
  const gauges = gaugesOf(steps);
  const conditions = tick.nodeConditions.join(', ');
  const acts = actLines(tick, steps);
  const isCalm = conditions === '' && acts.every(({ isQuiet }) => isQuiet);
  const head = flow(
    [...gauges, ...(conditions === '' ? [] : [conditions]), ...(isCalm ? ['calm'] : [])],
    WIDTH - INDENT,
  );
  const body = [
    ...head,
    ...acts.flatMap(({ text, step }) => [
      ...wrap(text, WIDTH - INDENT),
      ...(explain && step !== undefined ? indented(rankingTable(step)) : []),
    ]),
  ];
  return {
    lines: body.map(
      (line, index) => `${(index === 0 ? shortMoment(tick.at) : '').padEnd(INDENT)}${line}`,
    ),
    alike: acts.length === 0 ? `${metText(steps)} ${conditions}` : undefined,
  };
}

/** Which thresholds are met after a round, and whether anything was read in it. */
function metText(steps: readonly ObservedStep[]): string {
  const last = steps.at(-1);
  if (last?.sample.observations === undefined) return 'nothing was read';
  return last.result.state.met.map(thresholdId).join();
}

/** A signal that no summary had: its name may be misspelt there. Thresholds that follow others are left out. */
function unreadLines(steps: readonly ObservedStep[]): readonly string[] {
  const wanted = new Set(
    steps.flatMap(({ policy }) => policy.thresholds.map(({ signal }) => signal)),
  );
  const read = new Set(
    steps.flatMap(({ sample }) => sample.observations ?? []).map(({ signal }) => signal),
  );
  const unread = [...wanted].filter((signal) => !read.has(signal) && !isDerived(signal));
  if (unread.length === 0 || steps.length === 0) return [];
  return wrap(`never read, though thresholds are about it: ${unread.join(', ')}`, WIDTH);
}

function isDerived(signal: Signal): boolean {
  return signal === 'allocatableMemory.available' || SIGNALS[signal].filesystem === 'containerfs';
}

function indented(lines: readonly string[]): readonly string[] {
  return lines.map((line) => `  ${line}`);
}

/** The signals as the round's first reading has them. */
export function gaugesOf(steps: readonly ObservedStep[]): readonly string[] {
  const step = steps.find(({ sample }) => sample.observations !== undefined);
  if (step === undefined) return ['no summary'];
  const { policy, sample, result } = step;
  const gauged = { thresholds: policy.thresholds, state: result.state, nowMs: sample.nowMs };
  return (sample.observations ?? []).flatMap((observation) => gauge(observation, gauged) ?? []);
}

/** Something that was done or found, and the step at which. */
interface Act {
  readonly text: string;
  readonly step?: ObservedStep;
  /** Whether a round with nothing else in it is a calm one. */
  readonly isQuiet?: true;
}

function actLines(tick: TickResult, steps: readonly ObservedStep[]): readonly Act[] {
  let evictions = 0;
  const decided = steps.flatMap((step, index): readonly Act[] => {
    const { decision } = step.result;
    if (decision.kind !== 'evict') {
      const text = decisionText(decision, step, steps[index + 1]) ?? staleText(step, index === 0);
      return text === undefined ? [] : [{ text, step }];
    }
    const evicted = tick.evicted[evictions];
    evictions += 1;
    const failed = evicted?.killFailed === true ? ', which fails' : '';
    const { pod, gracePeriodSeconds, message } = decision;
    return [
      { text: `evicts ${pod.name}, grace ${gracePeriodSeconds}s${failed}: ${message}`, step },
    ];
  });
  return [...factLines(tick.evictd), ...decided, ...admissionLines(tick.admit)];
}

/** Undefined where there is nothing to say. */
function decisionText(
  decision: Exclude<Decision, { kind: 'evict' }>,
  step: ObservedStep,
  next: ObservedStep | undefined,
): string | undefined {
  switch (decision.kind) {
    case 'none':
      return INACTIONS[decision.why]?.(step);
    case 'observePods':
      return undefined;
    case 'reclaim': {
      const { signal } = decision.cause.threshold;
      const [before, after] = [step, next].map((at) => availableText(at, signal));
      return `collects ${decision.functions.join(' and ')}: ${signal} ${before} → ${after}`;
    }
    case 'escalate':
      return `cuts the grace of ${decision.podName} to ${formatDuration(decision.gracePeriodMs)}: ${decision.message}`;
  }
}

const INACTIONS: Readonly<
  Record<
    Extract<Decision, { kind: 'none' }>['why'],
    ((step: ObservedStep) => string | undefined) | undefined
  >
> = {
  calm: undefined,
  evicting: ({ result }) => `waits for the end of ${result.state.inFlight?.podName ?? 'a pod'}`,
  noCandidate: () => 'no pod may be evicted',
  noReclaim: () => 'nothing is left to collect',
  said: undefined,
  reclaiming: () => 'waits for the end of a collection',
  reclaimed: () => 'that was enough',
  unmeasured: () => 'what that gave has not been measured yet',
  oldFigures: () => 'waits for newer figures of what pods use',
  spaceHeld: () => 'waits for the space of what it evicted',
};

/** What is due by figures that are no newer than those it was last decided on. */
function staleText({ sample, result }: ObservedStep, isFirst: boolean): string | undefined {
  const { decision, state } = result;
  if (!isFirst || decision.kind !== 'none' || decision.why !== 'calm') return undefined;
  const isRead = ({ signal }: Threshold): boolean =>
    sample.observations?.some((observation) => observation.signal === signal) ?? false;
  const due = state.due.filter(isRead).map(({ signal }) => signal);
  if (due.length === 0) return undefined;
  const signals = [...new Set(due)].join(', ');
  return `decides nothing: the figures are no newer than those before (${signals})`;
}

function availableText(step: ObservedStep | undefined, signal: Signal): string {
  const observation = step?.sample.observations?.find((one) => one.signal === signal);
  if (observation === undefined) return 'unknown';
  return approximateCount(observation.available, SIGNALS[signal].unit);
}

function factLines(facts: TickFacts | undefined): readonly Act[] {
  if (facts === undefined) return [];
  const { refused = [], ended = [], flapping = [] } = facts;
  return [
    ...(refused.length === 0
      ? []
      : [{ text: `refused, since it cannot be true: ${refused.join(', ')}` }]),
    ...ended.map(({ pod, at, outcome }) => ({
      text: `${pod} ended at ${shortMoment(at)}: ${outcome}`,
    })),
    ...flapping.map(({ condition, kind, count, since }) => {
      const verb = kind === 'began' ? 'flaps' : 'flaps no more';
      return { text: `${condition} ${verb}: set ${count} times since ${shortMoment(since)}` };
    }),
  ];
}

function admissionLines(admit: readonly AdmittedPod[]): readonly Act[] {
  return admit.map(
    ({ pod, admit: isAdmitted, message }): Act =>
      isAdmitted
        ? { text: `admits ${pod}`, isQuiet: true }
        : { text: `refuses ${pod}: ${message}` },
  );
}

function endLine({ error, ticks }: SimulationResult): string {
  if (error !== undefined) return 'nothing was run';
  const gone = ticks.flatMap(({ at, evicted }) =>
    evicted
      .filter(({ killFailed }) => !killFailed)
      .map(({ pod }) => `${pod} at ${shortMoment(at)}`),
  );
  const conditions = ticks.at(-1)?.nodeConditions ?? [];
  const evicted = gone.length === 0 ? 'no pod was evicted' : `evicted: ${gone.join(', ')}`;
  const holds = conditions.length === 0 ? 'no condition holds' : `${conditions.join(', ')} holds`;
  return `in the end: ${evicted}; ${holds}`;
}

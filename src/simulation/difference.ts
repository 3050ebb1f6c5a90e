/** Two outcomes of one scenario side by side: with its own configuration, and with another. */
import type { FlagValues } from '../config/flags.ts';
import { escapeControl } from '../core/errors.ts';
import { approximateCount } from '../core/quantity.ts';
import { SIGNALS } from '../core/signal.ts';
import { foldRounds, type Round, shortMoment, wrap } from './layout.ts';
import type { Scenario, SimulationResult, TickResult } from './scenario.ts';
import { observedRun, type Run } from './story.ts';

const WIDTH = 110;
const TIME = 10;
/** What stands between the columns: a mark where they differ. */
const SAME = ' | ';
const DIFFERS = ' ≠ ';
const COLUMN = (WIDTH - TIME - SAME.length) / 2;

/**
 * Both outcomes, round by round, what differs marked, and in one last line what would have happened. What
 * was observed is the recorded figures in both: what another victim would have given back nobody
 * knows.
 *
 * @param flags what takes the place of the file's configuration in the second
 * @throws EvictdError what `simulate` throws
 */
export function tellDifference(scenario: Scenario, flags: FlagValues): string {
  const own = observedRun(scenario, {});
  const other = observedRun(scenario, flags);
  const change = flagsText(flags);
  const lines = [
    ...wrap(`${scenario.name}: ${scenario.description}`, WIDTH),
    '',
    ...beside('', ['as configured'], [`with ${change}`], SAME),
    ...faultLines(own.result, other.result),
    ...foldRounds(
      scenario.ticks.map(({ at }, index) => roundOf(at, index, own, other)),
      TIME,
    ),
    '',
    ...wrap(
      `what would have happened with ${change}: ${difference(own.result, other.result)}`,
      WIDTH,
    ),
  ];
  return `${lines.map((line) => escapeControl(line).trimEnd()).join('\n')}\n`;
}

function flagsText(flags: FlagValues): string {
  return Object.entries(flags)
    .flatMap(([name, values = []]) => values.map((value) => `${name}=${value}`))
    .join(' ');
}

function faultLines(own: SimulationResult, other: SimulationResult): readonly string[] {
  if (own.error === undefined && other.error === undefined) return [];
  const [left, right] = [own, other].map(({ error }) =>
    error === undefined ? [] : [`configuration error: ${error}`],
  );
  return beside('', left ?? [], right ?? [], own.error === other.error ? SAME : DIFFERS);
}

function roundOf(at: string, index: number, own: Run, other: Run): Round {
  const [left, right] = [own, other].map(({ result }) => outcome(result.ticks[index]));
  const figures = figuresText(own, index) ?? figuresText(other, index) ?? 'no summary';
  const facts = pairs(left ?? [], right ?? []);
  const held = [own, other].map(({ result }) => result.ticks[index]?.nodeConditions ?? []);
  const isQuiet = [left, right].every(
    (side, at) => side?.join() === 'calm' || side?.join() === held[at]?.join(),
  );
  return {
    lines: [
      ...wrap(figures, WIDTH - TIME).map(
        (line, row) => margin(row === 0 ? shortMoment(at) : '') + line,
      ),
      ...facts.flatMap(([one, another]) =>
        beside('', [one], [another], one === another ? SAME : DIFFERS),
      ),
    ],
    alike: isQuiet ? JSON.stringify(facts) : undefined,
  };
}

/** What both saw, of the signals that have a threshold. */
function figuresText({ steps }: Run, index: number): string | undefined {
  const step = steps[index]?.find(({ sample }) => sample.observations !== undefined);
  if (step === undefined) return undefined;
  const signals = new Set(step.policy.thresholds.map(({ signal }) => signal));
  const texts = (step.sample.observations ?? [])
    .filter(({ signal }) => signals.has(signal))
    .map(
      ({ signal, available }) => `${signal} ${approximateCount(available, SIGNALS[signal].unit)}`,
    );
  return texts.length === 0 ? undefined : texts.join(', ');
}

/** What came of a round, one fact a line. */
function outcome(tick: TickResult | undefined): readonly string[] {
  if (tick === undefined) return [];
  const { nodeConditions, reclaim, evicted, admit, evictd } = tick;
  const facts = [
    ...nodeConditions,
    ...(reclaim.length === 0 ? [] : [`collects ${reclaim.join(' and ')}`]),
    ...(evictd?.ended ?? []).map(
      ({ pod, at, outcome: how }) => `${pod} ended at ${shortMoment(at)}: ${how}`,
    ),
    ...evicted.map(
      ({ pod, gracePeriodSeconds, killFailed }) =>
        `evicts ${pod}, grace ${gracePeriodSeconds}s${killFailed ? ', which fails' : ''}`,
    ),
    ...(evictd?.escalated ?? []).map((pod) => `cuts the grace of ${pod}`),
    ...(evictd?.flapping ?? []).map(
      ({ condition, kind }) => `${condition} ${kind === 'began' ? 'flaps' : 'flaps no more'}`,
    ),
    ...admit.map(({ pod, admit: isAdmitted }) => `${isAdmitted ? 'admits' : 'refuses'} ${pod}`),
  ];
  return facts.length === 0 ? ['calm'] : facts;
}

/** Equal facts stand beside each other; the order of each side is kept. */
function pairs(
  left: readonly string[],
  right: readonly string[],
): readonly (readonly [string, string])[] {
  const found: (readonly [string, string])[] = [];
  let next = 0;
  for (const [index, one] of left.entries()) {
    const at = right.indexOf(one, next);
    if (at >= 0) {
      for (; next < at; next += 1) found.push(['', right[next] ?? '']);
      found.push([one, one]);
      next = at + 1;
      continue;
    }
    const isLater = left.indexOf(right[next] ?? '', index + 1) >= 0;
    if (next < right.length && !isLater) {
      found.push([one, right[next] ?? '']);
      next += 1;
    } else {
      found.push([one, '']);
    }
  }
  for (; next < right.length; next += 1) found.push(['', right[next] ?? '']);
  return found;
}

function margin(text: string): string {
  return text.padEnd(TIME);
}

function beside(
  time: string,
  left: readonly string[],
  right: readonly string[],
  between: string,
): readonly string[] {
  const [lefts, rights] = [left, right].map((lines) => lines.flatMap((line) => wrap(line, COLUMN)));
  const height = Math.max(lefts?.length ?? 0, rights?.length ?? 0);
  return Array.from({ length: height }, (_, row) => {
    const mark = row === 0 ? between : SAME;
    const start = margin(row === 0 ? time : '') + (lefts?.[row] ?? '').padEnd(COLUMN);
    return start + mark + (rights?.[row] ?? '');
  });
}

/** In one sentence how the second outcome differs from the first. */
export function difference(own: SimulationResult, other: SimulationResult): string {
  if (other.error !== undefined) return 'nothing, it is no configuration';
  if (own.error !== undefined) return 'it would have run at all';
  const parts = [
    ...evictionParts(own, other),
    ...roundParts(own, other),
    ...admitParts(own, other),
  ];
  return parts.length === 0 ? 'the same' : parts.join('; ');
}

interface FirstEviction {
  readonly at: string;
  readonly gracePeriodSeconds: number;
}

function evictionParts(own: SimulationResult, other: SimulationResult): readonly string[] {
  const [before, after] = [firstEvictions(own), firstEvictions(other)];
  const pods = new Set([...before.keys(), ...after.keys()]);
  return [...pods].flatMap((pod): readonly string[] => {
    const [was, is] = [before.get(pod), after.get(pod)];
    if (is === undefined) return [`${pod} stays`];
    if (was === undefined) return [`${pod} is evicted at ${shortMoment(is.at)}`];
    if (was.at !== is.at)
      return [`${pod} is evicted at ${shortMoment(is.at)}, not at ${shortMoment(was.at)}`];
    const [grace, ownGrace] = [is.gracePeriodSeconds, was.gracePeriodSeconds];
    return grace === ownGrace ? [] : [`${pod} has a grace of ${grace}s, not ${ownGrace}s`];
  });
}

function firstEvictions({ ticks }: SimulationResult): ReadonlyMap<string, FirstEviction> {
  const found = new Map<string, FirstEviction>();
  for (const { at, evicted } of ticks) {
    for (const { pod, gracePeriodSeconds, killFailed } of evicted) {
      if (killFailed === undefined && !found.has(pod)) found.set(pod, { at, gracePeriodSeconds });
    }
  }
  return found;
}

/** In how many rounds a condition holds, or something is collected. */
function roundParts(own: SimulationResult, other: SimulationResult): readonly string[] {
  const count = ({ ticks }: SimulationResult): ReadonlyMap<string, number> => {
    const counts = new Map<string, number>();
    const facts = ticks.flatMap(({ nodeConditions, reclaim }) => [
      ...nodeConditions.map((condition) => `${condition} holds`),
      ...reclaim.map((what) => `${what} are collected`),
    ]);
    for (const fact of facts) counts.set(fact, (counts.get(fact) ?? 0) + 1);
    return counts;
  };
  const [before, after] = [count(own), count(other)];
  return [...new Set([...before.keys(), ...after.keys()])].flatMap((fact) => {
    const [was, is] = [before.get(fact) ?? 0, after.get(fact) ?? 0];
    return was === is ? [] : [`${fact} in ${is} of ${other.ticks.length} rounds, not ${was}`];
  });
}

function admitParts(own: SimulationResult, other: SimulationResult): readonly string[] {
  return other.ticks.flatMap(({ at, admit }, index) =>
    admit.flatMap(({ pod, admit: isAdmitted }, place) => {
      const was = own.ticks[index]?.admit[place];
      if (was === undefined || was.admit === isAdmitted) return [];
      return [`${pod} is ${isAdmitted ? 'admitted' : 'refused'} at ${at}`];
    }),
  );
}

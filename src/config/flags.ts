import { EvictdError } from '../core/errors.ts';
import { NODE_CONDITIONS, type NodeCondition } from '../core/signal.ts';
import { parseChoice } from './choice.ts';
import type { Given, GivenSignals } from './given.ts';
import {
  type DefaultedOption,
  OPTIONS,
  type OptionName,
  type SignalOption,
  type SwitchName,
  type TextOption,
} from './options.ts';
import { placed } from './place.ts';
import { parsePods } from './pod-flag.ts';
import { parsePollingFlags } from './polling-flag.ts';
import { type Operator, parseSignalTexts } from './signal-texts.ts';
import { NO_SOCKET, parseSocketPath, parseSwitch } from './values.ts';

/**
 * The values of each option in the order in which they were given, as text; a switch has `true`
 * or `false`. An option that was not given is not there.
 */
export type FlagValues = Readonly<Partial<Record<OptionName, readonly string[]>>>;

/** The operator of each flag whose value is a list of signals. */
export const OPERATORS: Readonly<Record<SignalOption, Operator>> = {
  '--eviction-hard': '<',
  '--eviction-soft': '<',
  '--eviction-soft-grace-period': '=',
  '--eviction-minimum-reclaim': '=',
};

/** Flags whose values are lists with commas, of which empty parts do not count. */
const LISTS: readonly OptionName[] = ['--enforce-node-allocatable'];

/**
 * What the flags of `evictd run` say, not yet checked but for what must be known to take them apart.
 *
 * @throws EvictdError with the flag as its place's source: EVICTD_THRESHOLD and EVICTD_SIGNAL for lists
 * of signals, EVICTD_POLLING, and what `parsePods` throws
 */
export function givenFromFlags(values: FlagValues): Given {
  const texts: { [Name in TextOption]?: Given['texts'][Name] } = {};
  const signals: { [Name in SignalOption]?: GivenSignals } = {};
  for (const [name, given] of Object.entries(values) as [OptionName, readonly string[]][]) {
    if (isSignalOption(name)) {
      const place = { source: name };
      signals[name] = { place, texts: parseSignalTexts(name, given, OPERATORS[name]) };
    } else if (isTextOption(name)) {
      const parts = LISTS.includes(name) ? given.flatMap(splitList) : given;
      texts[name] = parts.map((text) => ({ text, place: { source: name } }));
    }
  }
  const pods = values['--pod'];
  return {
    texts,
    signals,
    pods: pods === undefined ? undefined : { by: 'path', pods: parsePods(pods) },
    polling: parsePollingFlags(values['--polling'] ?? []),
  };
}

/** The default hard thresholds. */
export function defaultHard(): GivenSignals {
  const source = '--eviction-hard';
  return {
    place: { source },
    texts: parseSignalTexts(source, [OPTIONS[source].default], OPERATORS[source]),
  };
}

/** Whether an option's value is a list of signals. */
export function isSignalOption(name: OptionName): name is SignalOption {
  return OPTIONS[name].key?.type === 'signals';
}

/** Whether an option's values are texts, and it has a key. */
export function isTextOption(name: OptionName): name is TextOption {
  const type = OPTIONS[name].key?.type;
  return type === 'text' || type === 'integer' || type === 'switch' || type === 'texts';
}

function splitList(value: string): readonly string[] {
  return value
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

/**
 * The path of `--socket` for a command that cannot do without.
 *
 * @throws EvictdError EVICTD_SOCKET_PATH
 */
export function socketPathFromFlags(values: FlagValues): string {
  const path = lastValue(values, '--socket', parseSocketPath);
  if (path !== NO_SOCKET) return path;
  const place = { source: '--socket', value: NO_SOCKET };
  throw new EvictdError('EVICTD_SOCKET_PATH', 'this command needs a socket', place);
}

/**
 * The node conditions of `--conditions`, each once and sorted; undefined where it was not given.
 *
 * @throws EvictdError EVICTD_CHOICE for what is no node condition, EVICTD_USAGE with `--socket` beside it
 */
export function conditionsFromFlags(values: FlagValues): readonly NodeCondition[] | undefined {
  const source = '--conditions';
  const given = values[source];
  if (given === undefined) return undefined;
  if (values['--socket'] !== undefined) {
    throw new EvictdError('EVICTD_USAGE', 'either --conditions or --socket, not both');
  }
  const words = given.flatMap(splitList);
  const conditions = words.map((text) =>
    placed({ source }, () => parseChoice(text, NODE_CONDITIONS)),
  );
  return [...new Set(conditions)].sort();
}

/**
 * Whether a switch is on.
 *
 * @throws EvictdError EVICTD_CHOICE for a value that is neither `true` nor `false`
 */
export function isSwitchedOn(values: FlagValues, flag: SwitchName): boolean {
  return lastValue(values, flag, parseSwitch);
}

/** All values given are parsed, so that none is wrong unseen; the last one counts, else the default. */
export function lastValue<T>(
  values: FlagValues,
  flag: DefaultedOption,
  parse: (text: string) => T,
): T {
  const given = (values[flag] ?? []).map((text) => placed({ source: flag }, () => parse(text)));
  return given.at(-1) ?? parse(OPTIONS[flag].default);
}

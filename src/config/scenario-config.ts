import { type ErrorPlace, EvictdError } from '../core/errors.ts';
import type { Signal } from '../core/signal.ts';
import { type Checked, checkGiven } from './check.ts';
import { type FlagValues, givenFromFlags } from './flags.ts';
import { type Given, type GivenSignals, mergeGiven } from './given.ts';
import type { SignalOption, TextOption } from './options.ts';
import type { PlacedText } from './place.ts';
import { checkSignal } from './signal-texts.ts';

/** Texts by the names of signals. */
export type SignalMap = Readonly<Record<string, string>>;

/** The configuration of a scenario: the KubeletConfiguration's fields, and two of evictd's own. */
export interface ScenarioConfig {
  readonly enforceNodeAllocatable?: readonly string[];
  readonly evictionHard?: SignalMap;
  readonly evictionSoft?: SignalMap;
  readonly evictionSoftGracePeriod?: SignalMap;
  readonly evictionMinimumReclaim?: SignalMap;
  readonly evictionPressureTransitionPeriod?: string;
  readonly evictionMaxPodGracePeriod?: number;
  readonly localStorageCapacityIsolation?: boolean;
  readonly hardEvictionGracePeriodSeconds?: number;
  readonly mergeDefaultEvictionSettings?: boolean;
  readonly compatibility?: string;
  readonly memorySource?: string;
}

const SIGNAL_FIELDS = {
  evictionHard: '--eviction-hard',
  evictionSoft: '--eviction-soft',
  evictionSoftGracePeriod: '--eviction-soft-grace-period',
  evictionMinimumReclaim: '--eviction-minimum-reclaim',
} as const satisfies Partial<Record<keyof ScenarioConfig, SignalOption>>;

const TEXT_FIELDS = {
  evictionPressureTransitionPeriod: '--eviction-pressure-transition-period',
  evictionMaxPodGracePeriod: '--eviction-max-pod-grace-period',
  hardEvictionGracePeriodSeconds: '--hard-eviction-grace-period-seconds',
  mergeDefaultEvictionSettings: '--merge-default-eviction-settings',
  compatibility: '--compatibility',
  memorySource: '--memory-source',
} as const satisfies Partial<Record<keyof ScenarioConfig, TextOption>>;

/** The pods of a scenario have a parent of their own, as below the kubelet they have. */
export const PODS_PARENT = 'kubepods';

/**
 * Checks a scenario's configuration as the daemon checks its own, by the same parsers.
 *
 * @param flags what is to hold in place of it
 * @throws EvictdError what `checkGiven` throws, with the field as key
 */
export function scenarioSettings(config: ScenarioConfig, flags: FlagValues): Checked {
  return checkGiven({
    given: mergeGiven(givenFromFlags(flags), givenFromConfig(config)),
    file: undefined,
  });
}

function givenFromConfig(config: ScenarioConfig): Given {
  const texts: { [Name in TextOption]?: readonly PlacedText[] } = {
    '--pod-parent': [{ text: PODS_PARENT, place: {} }],
    '--enforce-node-allocatable': placedList(
      'enforceNodeAllocatable',
      config.enforceNodeAllocatable ?? ['pods'],
    ),
  };
  for (const [field, option] of Object.entries(TEXT_FIELDS)) {
    const value = config[field as keyof typeof TEXT_FIELDS];
    if (value === undefined || value === null) continue;
    const text = String(value);
    texts[option] = [{ text, place: { key: field, value: text } }];
  }
  const signals: { [Name in SignalOption]?: GivenSignals } = {};
  for (const [field, option] of Object.entries(SIGNAL_FIELDS)) {
    signals[option] = givenSignals(field, config[field as keyof typeof SIGNAL_FIELDS] ?? {});
  }
  return { texts, signals, pods: undefined, polling: [] };
}

/** A list of words; of an empty one the word that says so. */
export function placedList(key: string, values: readonly string[]): readonly PlacedText[] {
  const words = values.length === 0 ? ['none'] : values;
  return words.map((text) => ({ text, place: { key, value: text } }));
}

/**
 * The texts of a map of signals.
 *
 * @param field its name, for the places of errors
 * @throws EvictdError EVICTD_CONFIG for what is no text, EVICTD_SIGNAL
 */
export function givenSignals(field: string, map: SignalMap): GivenSignals {
  const texts = new Map<Signal, PlacedText>();
  for (const [name, text] of Object.entries(map)) {
    const place: ErrorPlace = { key: `${field}: ${name}`, value: String(text) };
    if (typeof text !== 'string') {
      throw new EvictdError('EVICTD_CONFIG', 'must be a text: put it in quotes', place);
    }
    texts.set(checkSignal(name, place), { text, place });
  }
  return { place: { key: field }, texts };
}

import { EvictdError } from '../core/errors.ts';
import type { Compatibility, Policy } from '../core/policy.ts';
import { checkGiven } from './check.ts';
import { isSignalOption, isTextOption, OPERATORS } from './flags.ts';
import type { Given, GivenSignals } from './given.ts';
import { suggestion } from './nearest.ts';
import { KEYS, type SignalOption, type TextOption } from './options.ts';
import type { PlacedText } from './place.ts';
import { givenSignals, PODS_PARENT, placedList, type SignalMap } from './scenario-config.ts';
import { parseSignalTexts } from './signal-texts.ts';

/**
 * What a policy is made of: the fields of a KubeletConfiguration that are about it, and two of evictd's
 * own. Signals stand in a map, as there (`{ 'memory.available': '100Mi' }`), or in one text, as in a flag:
 * `memory.available<100Mi,nodefs.available<10%`, of grace periods and minimum reclaim
 * `memory.available=1m30s`. What is left out has the default of `evictd run`.
 */
export interface PolicyTexts {
  readonly evictionHard?: string | SignalMap;
  readonly evictionSoft?: string | SignalMap;
  readonly evictionSoftGracePeriod?: string | SignalMap;
  readonly evictionMinimumReclaim?: string | SignalMap;
  readonly mergeDefaultEvictionSettings?: boolean;
  /** In whole seconds; negative leaves it to the pod. */
  readonly evictionMaxPodGracePeriod?: number;
  /** A Go duration. */
  readonly evictionPressureTransitionPeriod?: string;
  /** In whole seconds. */
  readonly hardEvictionGracePeriodSeconds?: number;
  /** With `pods` in it, `allocatableMemory.available` has the hard threshold of `memory.available` too. */
  readonly enforceNodeAllocatable?: readonly string[];
  readonly compatibility?: Compatibility;
}

/** A policy, and what a person should know of it. */
export interface ParsedPolicy {
  readonly policy: Policy;
  readonly warnings: readonly string[];
}

/** The fields; the table of options has each of them with its parser. */
const FIELDS: Readonly<Record<keyof PolicyTexts, true>> = {
  evictionHard: true,
  evictionSoft: true,
  evictionSoftGracePeriod: true,
  evictionMinimumReclaim: true,
  mergeDefaultEvictionSettings: true,
  evictionMaxPodGracePeriod: true,
  evictionPressureTransitionPeriod: true,
  hardEvictionGracePeriodSeconds: true,
  enforceNodeAllocatable: true,
  compatibility: true,
};

/**
 * Makes a policy of texts, by the parsers of `evictd run`. Its filesystems are one, no pod goes for a disk
 * and nothing is collected: whoever knows more says so in `layout`, `ranksDisk` and `reclaims` of a copy.
 *
 * @throws EvictdError with the field in its place: EVICTD_CONFIG for a field that is none or has
 * a value of another type, and what the checks of `run` throw
 */
export function parsePolicy(fields: PolicyTexts): ParsedPolicy {
  const texts: { [Name in TextOption]?: readonly PlacedText[] } = {
    // With a parent of the pods that threshold is known; by default nobody else's is copied.
    '--pod-parent': [{ text: PODS_PARENT, place: {} }],
    '--enforce-node-allocatable': placedList('enforceNodeAllocatable', []),
  };
  const signals: { [Name in SignalOption]?: GivenSignals } = {};
  for (const [field, value] of Object.entries(fields) as [string, unknown][]) {
    if (value === undefined || value === null) continue;
    const key = Object.hasOwn(FIELDS, field) ? KEYS.find(({ name }) => name === field) : undefined;
    if (key === undefined) {
      const message = `no field of a policy${suggestion(field, Object.keys(FIELDS))}`;
      throw new EvictdError('EVICTD_CONFIG', message, { key: field });
    }
    const { option } = key;
    if (isSignalOption(option)) signals[option] = signalsOf(field, value, option);
    else if (isTextOption(option)) texts[option] = textsOf(field, value);
  }
  const given: Given = { texts, signals, pods: undefined, polling: [] };
  const { settings, warnings } = checkGiven({ given, file: undefined });
  return { policy: settings.policy, warnings };
}

function signalsOf(field: string, value: unknown, option: SignalOption): GivenSignals {
  if (typeof value === 'string') {
    return {
      place: { source: field },
      texts: parseSignalTexts(field, [value], OPERATORS[option]),
    };
  }
  if (typeof value === 'object' && !Array.isArray(value)) {
    return givenSignals(field, value as SignalMap);
  }
  throw wrongType(field, 'a text or a map of signals');
}

function textsOf(field: string, value: unknown): readonly PlacedText[] {
  const isList = field === 'enforceNodeAllocatable';
  if (Array.isArray(value) !== isList) throw wrongType(field, isList ? 'a list' : 'a single value');
  return isList
    ? placedList(field, (value as readonly unknown[]).map(String))
    : [{ text: String(value), place: { key: field, value: String(value) } }];
}

function wrongType(key: string, wanted: string): EvictdError {
  return new EvictdError('EVICTD_CONFIG', `must be ${wanted}`, { key });
}

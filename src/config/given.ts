import type { ErrorPlace } from '../core/errors.ts';
import type { PollKind } from '../core/signal.ts';
import type { SignalOption, TextOption } from './options.ts';
import type { PlacedText } from './place.ts';
import type { PodRule, PodSettings } from './settings.ts';
import type { SignalTexts } from './signal-texts.ts';

/**
 * What flags, or a file, say: texts with their places, by the option's name. An option that was not
 * given is not there. The same checks then read the same texts, wherever they come from.
 */
export interface Given {
  /** All values of each option; of one that is not repeatable, the last one counts. */
  readonly texts: Readonly<Partial<Record<TextOption, readonly PlacedText[]>>>;
  readonly signals: Readonly<Partial<Record<SignalOption, GivenSignals>>>;
  readonly pods: GivenPods | undefined;
  /** Of several texts for one field the last one counts. */
  readonly polling: readonly PollingText[];
}

/** A map of signals, which may be empty. */
export interface GivenSignals {
  readonly place: ErrorPlace;
  readonly texts: SignalTexts;
}

/** Pods as flags name them, each by its path, or as the rules of a file do. */
export type GivenPods =
  | { readonly by: 'path'; readonly pods: ReadonlyMap<string, PodSettings> }
  | { readonly by: 'rule'; readonly rules: readonly PodRule[] };

/** The fields of a kind of polling; a flag calls the first one `assumedFall`. */
export const POLLING_FIELDS = ['assumedFallPerSecond', 'floor'] as const;
export type PollingField = (typeof POLLING_FIELDS)[number];

export interface PollingText extends PlacedText {
  readonly kind: PollKind;
  readonly field: PollingField;
}

export const NOTHING_GIVEN: Given = { texts: {}, signals: {}, pods: undefined, polling: [] };

/** Both, option by option: what `winner` has stands. */
export function mergeGiven(winner: Given, other: Given): Given {
  return {
    texts: { ...other.texts, ...winner.texts },
    signals: { ...other.signals, ...winner.signals },
    pods: winner.pods ?? other.pods,
    polling: [...other.polling, ...winner.polling],
  };
}

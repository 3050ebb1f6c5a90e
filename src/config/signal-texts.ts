import { type ErrorPlace, EvictdError } from '../core/errors.ts';
import { isSignal, SIGNAL_NAMES, type Signal } from '../core/signal.ts';
import { suggestion } from './nearest.ts';
import type { PlacedText } from './place.ts';

/** What stands between signal and value: `<` in thresholds, `=` in the other eviction flags. */
export type Operator = '<' | '=';

/** One text for each signal that a flag, or a field of a file, names. */
export type SignalTexts = ReadonlyMap<Signal, PlacedText>;

const PAIR = /^([^<>=]*)(<=|>=|==|[<>=])?(.*)$/s;

/**
 * Splits the values of one eviction flag (`memory.available<100Mi,…`) by signal. As in the
 * kubelet, spaces around signal and value do not count, nor do empty parts between commas; unlike
 * there, a signal named twice is refused and not overwritten.
 *
 * @throws EvictdError EVICTD_THRESHOLD for a malformed or doubled part, EVICTD_SIGNAL
 * @see component-base `cli/flag`, `LangleSeparatedMapStringString` and `MapStringString`
 */
export function parseSignalTexts(
  source: string,
  values: readonly string[],
  operator: Operator,
): SignalTexts {
  const texts = new Map<Signal, PlacedText>();
  for (const part of values.flatMap((value) => value.split(',')).filter((text) => text !== '')) {
    const [signal, entry] = parsePair(source, part, operator);
    if (texts.has(signal)) {
      throw new EvictdError('EVICTD_THRESHOLD', 'the signal is named twice', entry.place);
    }
    texts.set(signal, entry);
  }
  return texts;
}

function parsePair(source: string, part: string, operator: Operator): [Signal, PlacedText] {
  const [, before = '', found, after = ''] = PAIR.exec(part) ?? [];
  if (found !== operator) {
    const instead = found === undefined ? '' : `, not SIGNAL${found}VALUE`;
    throw new EvictdError('EVICTD_THRESHOLD', `expected SIGNAL${operator}VALUE${instead}`, {
      source,
      value: part,
    });
  }
  const [key, value] = [before.trim(), after.trim()];
  if (key === '') {
    throw new EvictdError('EVICTD_THRESHOLD', 'names no signal', { source, value: part });
  }
  const place = { source, key, value };
  return [checkSignal(key, place), { text: value, place }];
}

/**
 * The signal that a text names.
 *
 * @throws EvictdError EVICTD_SIGNAL at `place`, with the nearest name
 */
export function checkSignal(text: string, place: ErrorPlace): Signal {
  if (isSignal(text)) return text;
  const known = `known signals: ${SIGNAL_NAMES.join(', ')}`;
  const message = `unknown signal${suggestion(text, SIGNAL_NAMES)}; ${known}`;
  throw new EvictdError('EVICTD_SIGNAL', message, place);
}

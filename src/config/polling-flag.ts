import { EvictdError } from '../core/errors.ts';
import { POLL_PACES, type PollPace } from '../core/polling.ts';
import { parseQuantity } from '../core/quantity.ts';
import type { PollKind } from '../core/signal.ts';
import { POLLING_FIELDS, type PollingField, type PollingText } from './given.ts';
import { suggestion } from './nearest.ts';
import { placed } from './place.ts';
import { durationWithin } from './ranges.ts';

const SOURCE = '--polling';

export const POLL_KINDS = Object.keys(POLL_PACES) as readonly PollKind[];

const FLOOR_MS = { min: 10, max: 3_600_000 } as const;
const parseFloorMs = durationWithin(FLOOR_MS);

const NANO = 1_000_000_000n;

/** What the flag calls each field. */
const FLAG_NAMES = { assumedFallPerSecond: 'assumedFall', floor: 'floor' } as const;

/**
 * Splits the values of `--polling`, `KIND=floor:D,assumedFall:Q`, each part optional.
 *
 * @throws EvictdError EVICTD_POLLING for an unknown kind or part, or one that is given twice
 */
export function parsePollingFlags(values: readonly string[]): readonly PollingText[] {
  const texts = values.flatMap(parsePollingFlag);
  const seen = new Set<string>();
  for (const { kind, field, place } of texts) {
    const name = `${kind}: ${FLAG_NAMES[field]}`;
    if (seen.has(name)) throw new EvictdError('EVICTD_POLLING', 'is given twice', place);
    seen.add(name);
  }
  return texts;
}

function parsePollingFlag(value: string): readonly PollingText[] {
  const [name, parts] = splitAt(value, '=');
  if (parts === undefined || parts === '') {
    const message = 'expected KIND=floor:DURATION,assumedFall:QUANTITY, one of the two at least';
    throw refused(message, value);
  }
  const kind = POLL_KINDS.find((candidate) => candidate === name);
  if (kind === undefined) {
    const known = `known: ${POLL_KINDS.join(', ')}`;
    throw refused(`unknown kind${suggestion(name, POLL_KINDS)}; ${known}`, value);
  }
  return parts.split(',').map((part) => {
    const [flagName, text] = splitAt(part, ':');
    const field = POLLING_FIELDS.find((candidate) => FLAG_NAMES[candidate] === flagName);
    if (field === undefined || text === undefined) {
      throw refused('expected floor:DURATION or assumedFall:QUANTITY', part, kind);
    }
    return {
      kind,
      field,
      text,
      place: { source: SOURCE, key: `${kind}: ${flagName}`, value: text },
    };
  });
}

/**
 * How each kind is polled: the defaults, and what the texts say instead.
 *
 * @throws EvictdError at the text's place: EVICTD_DURATION for a floor below 10 ms or above an hour,
 * EVICTD_QUANTITY for a fall that is not above zero
 */
export function pollingOf(texts: readonly PollingText[]): Readonly<Record<PollKind, PollPace>> {
  const paces: Record<PollKind, PollPace> = { ...POLL_PACES };
  for (const { kind, field, text, place } of texts) {
    paces[kind] = { ...paces[kind], ...placed(place, () => PARSERS[field](text)) };
  }
  return paces;
}

const PARSERS: Readonly<Record<PollingField, (text: string) => Partial<PollPace>>> = {
  floor: (text) => ({ floorMs: parseFloorMs(text) }),
  assumedFallPerSecond: (text) => ({ assumedFallPerSecond: parseFall(text) }),
};

function parseFall(text: string): number {
  const nano = parseQuantity(text);
  if (nano > 0n) return Number(nano / NANO) + Number(nano % NANO) / Number(NANO);
  throw new EvictdError('EVICTD_QUANTITY', 'a fall must be above zero', { value: text });
}

function splitAt(text: string, separator: string): [string, string | undefined] {
  const index = text.indexOf(separator);
  return index < 0 ? [text, undefined] : [text.slice(0, index), text.slice(index + 1)];
}

function refused(message: string, value: string, key?: string): EvictdError {
  return new EvictdError('EVICTD_POLLING', message, {
    source: SOURCE,
    ...(key === undefined ? {} : { key }),
    value,
  });
}

/** The kinds of configuration file: from a text to what it gives, with each value's line. */
import type { EvictdError } from '../core/errors.ts';
import { isSignal, type PollKind, type Signal } from '../core/signal.ts';
import {
  type ConfigDocument,
  type Entry,
  parseDocument,
  refusedAt,
  shown,
  type Value,
} from './document.ts';
import {
  type Given,
  type GivenPods,
  type GivenSignals,
  POLLING_FIELDS,
  type PollingField,
  type PollingText,
} from './given.ts';
import { KUBELET_FIELDS, USED_KUBELET_FIELDS } from './kubelet-fields.ts';
import { suggestion } from './nearest.ts';
import { KEYS, type Key, type SignalOption, type TextOption } from './options.ts';
import type { PlacedText } from './place.ts';
import { parsePodRules } from './pod-rules.ts';
import { POLL_KINDS } from './polling-flag.ts';
import { checkSignal } from './signal-texts.ts';

/** The kinds that are read, with their versions. */
export const KINDS = {
  KubeletConfiguration: 'kubelet.config.k8s.io/v1beta1',
  EvictdConfiguration: 'evictd.dev/v1alpha1',
} as const;

export type Kind = keyof typeof KINDS;

/** What a file says. */
export interface FileConfiguration {
  readonly kind: Kind;
  readonly given: Given;
  readonly notes: readonly string[];
}

/**
 * Reads the text of a configuration file. Of a KubeletConfiguration the fields that evictd has are used,
 * the other known ones are left out, with one note that lists them, whatever they hold.
 *
 * @throws EvictdError with `FILE:LINE` as its place's source: EVICTD_CONFIG for what is malformed, of
 * another kind, unknown, doubled or of a wrong type; EVICTD_SIGNAL; for pods what `parsePodRules` throws
 */
export function readConfiguration(text: string, file: string): FileConfiguration {
  const document = parseDocument(text, file);
  if (document.root.type !== 'map') {
    throw refusedAt(
      file,
      document.root.line,
      'the document must be a map with apiVersion and kind',
    );
  }
  const entries = document.entries(document.root, '');
  const kind = kindOf(document, entries);
  const isKubelet = kind === 'KubeletConfiguration';
  const reading: Reading = { document, isKubelet };
  const fields = entries.filter(({ key }) => key !== 'apiVersion' && key !== 'kind');
  for (const field of fields) checkName(file, field, isKubelet);
  const isUsed = ({ key }: Entry): boolean => !isKubelet || USED_KUBELET_FIELDS.includes(key);
  const unused = fields.filter((field) => !isUsed(field)).map(({ key }) => key);
  return {
    kind,
    given: givenOf(reading, fields.filter(isUsed)),
    notes:
      unused.length === 0
        ? []
        : [`${file}: what evictd does not use of a KubeletConfiguration: ${unused.join(', ')}`],
  };
}

interface Reading {
  readonly document: ConfigDocument;
  /** Whether Go's rules hold: what is null is not given, `yes` and `on` are switches. */
  readonly isKubelet: boolean;
}

function kindOf({ file }: ConfigDocument, entries: readonly Entry[]): Kind {
  const [kind, version] = ['kind', 'apiVersion'].map((name) => {
    const entry = entries.find(({ key }) => key === name);
    if (entry === undefined) throw refusedAt(file, 1, `lacks ${name}`, name);
    if (entry.value.type === 'text') return { text: entry.value.text, line: entry.line };
    throw refusedAt(file, entry.line, 'must be a text', name, shown(entry.value));
  }) as [{ text: string; line: number }, { text: string; line: number }];
  if (!isKind(kind.text)) {
    const near = suggestion(kind.text, Object.keys(KINDS));
    const message = `none of ${Object.keys(KINDS).join(', ')}${near}`;
    throw refusedAt(file, kind.line, message, 'kind', kind.text);
  }
  const expected = KINDS[kind.text];
  if (version.text === expected) return kind.text;
  const message = `the apiVersion of ${kind.text} is ${expected}`;
  throw refusedAt(file, version.line, message, 'apiVersion', version.text);
}

function isKind(text: string): text is Kind {
  return Object.hasOwn(KINDS, text);
}

const KEY_NAMES = KEYS.map(({ name }) => name);

/** Refuses what is no field of the kind, with the nearest one: a misspelt threshold would be none. */
function checkName(file: string, { key, line, value }: Entry, isKubelet: boolean): void {
  const known = isKubelet ? KUBELET_FIELDS : KEY_NAMES;
  if (known.includes(key)) return;
  const [kind, other] = isKubelet
    ? ['KubeletConfiguration', 'EvictdConfiguration']
    : ['EvictdConfiguration', 'KubeletConfiguration'];
  const others = isKubelet ? KEY_NAMES : KUBELET_FIELDS;
  let hint = suggestion(key, known);
  if (others.includes(key)) hint = ` (${other} has it)`;
  // A map whose lines are not indented.
  else if (isSignal(key)) hint = ' (it is a signal: indent it below its map)';
  throw refusedAt(file, line, `no field of ${kind}${hint}`, key, shown(value));
}

function givenOf(reading: Reading, fields: readonly Entry[]): Given {
  const texts: Partial<Record<TextOption, readonly PlacedText[]>> = {};
  const signals: Partial<Record<SignalOption, GivenSignals>> = {};
  let polling: readonly PollingText[] = [];
  let pods: GivenPods | undefined;
  for (const field of fields) {
    // Unknown names were refused.
    const key = KEYS.find(({ name }) => name === field.key) as Key;
    if (field.value.type === 'nothing') {
      if (reading.isKubelet) continue;
      throw wrongType(reading, field, 'has no value: leave the key out for its default');
    }
    if (key.type === 'signals') {
      signals[key.option as SignalOption] = signalsOf(reading, field);
    } else if (key.type === 'polling') {
      polling = pollingOf(reading, field);
    } else if (key.type === 'pods') {
      pods = { by: 'rule', rules: parsePodRules(reading.document, field) };
    } else {
      texts[key.option as TextOption] = textsOf(reading, field, key.type);
    }
  }
  return { texts, signals, pods, polling };
}

function textsOf(
  reading: Reading,
  field: Entry,
  type: 'text' | 'integer' | 'switch' | 'texts',
): readonly PlacedText[] {
  if (type === 'texts') return listOf(reading, field);
  const { value } = field;
  const text = type === 'text' ? textOf(value) : undefined;
  const integer = type === 'integer' ? integerOf(value) : undefined;
  const state = type === 'switch' ? stateOf(value, reading.isKubelet) : undefined;
  const found = text ?? integer ?? state;
  if (found === undefined) throw wrongType(reading, field, EXPECTED[type]);
  return [{ text: found, place: placeOf(reading, field, shown(value)) }];
}

const EXPECTED = {
  text: 'must be a text: put it in quotes',
  integer: 'must be a whole number, without quotes',
  switch: 'must be true or false, without quotes',
} as const;

function textOf(value: Value): string | undefined {
  return value.type === 'text' ? value.text : undefined;
}

/** A number as the parsers of flags read one. */
function integerOf(value: Value): string | undefined {
  if (value.type !== 'number') return undefined;
  return Number.isSafeInteger(value.number) ? String(value.number) : value.text;
}

/** What Go's YAML takes for a switch beside `true` and `false`. */
const GO_SWITCHES = /^(?:(yes|Yes|YES|on|On|ON)|no|No|NO|off|Off|OFF)$/;

function stateOf(value: Value, isKubelet: boolean): string | undefined {
  if (value.type === 'switch') return String(value.on);
  if (!isKubelet || value.type !== 'text' || !value.plain) return undefined;
  const match = GO_SWITCHES.exec(value.text);
  return match === null ? undefined : String(match[1] !== undefined);
}

function listOf(reading: Reading, field: Entry): readonly PlacedText[] {
  if (field.value.type !== 'list') throw wrongType(reading, field, 'must be a list of texts');
  return reading.document.items(field.value).map((value, index) => {
    const item: Entry = { key: `${field.key}[${index}]`, line: value.line, value };
    const text = textOf(value);
    if (text === undefined) throw wrongType(reading, item, EXPECTED.text);
    return { text, place: placeOf(reading, item, text) };
  });
}

function signalsOf(reading: Reading, field: Entry): GivenSignals {
  if (field.value.type !== 'map') {
    throw wrongType(reading, field, 'must be a map from signals to texts');
  }
  const texts = new Map<Signal, PlacedText>();
  for (const entry of reading.document.entries(field.value, field.key)) {
    const named: Entry = { ...entry, key: `${field.key}: ${entry.key}` };
    const place = placeOf(reading, named, shown(entry.value));
    const signal = checkSignal(entry.key, place);
    // To Go a null is the empty text, which is refused like one.
    const text = entry.value.type === 'nothing' ? '' : textOf(entry.value);
    if (text === undefined) throw wrongType(reading, named, EXPECTED.text);
    texts.set(signal, { text, place });
  }
  return { place: placeOf(reading, field), texts };
}

function pollingOf(reading: Reading, field: Entry): readonly PollingText[] {
  const { document } = reading;
  if (field.value.type !== 'map')
    throw wrongType(reading, field, 'must be a map from kinds to maps');
  return document.entries(field.value, field.key).flatMap((entry) => {
    const key = `${field.key}: ${entry.key}`;
    const named: Entry = { ...entry, key };
    const kind = knownName(document.file, named, entry.key, POLL_KINDS, 'kind') as PollKind;
    if (entry.value.type !== 'map') {
      throw wrongType(reading, named, `must be a map with ${POLLING_FIELDS.join(', ')}`);
    }
    return document.entries(entry.value, key).map((part) => {
      const inner: Entry = { ...part, key: `${key}: ${part.key}` };
      const name = knownName(document.file, inner, part.key, POLLING_FIELDS, 'field');
      const text = textOf(part.value) ?? integerOf(part.value);
      if (text === undefined) throw wrongType(reading, inner, EXPECTED.text);
      return { kind, field: name as PollingField, text, place: placeOf(reading, inner, text) };
    });
  });
}

function knownName(
  file: string,
  { key, line, value }: Entry,
  name: string,
  names: readonly string[],
  what: string,
): string {
  if (names.includes(name)) return name;
  const message = `unknown ${what}${suggestion(name, names)}; known: ${names.join(', ')}`;
  throw refusedAt(file, line, message, key, shown(value));
}

function placeOf({ document }: Reading, { key, line }: Entry, value?: string) {
  return {
    source: `${document.file}:${line}`,
    key,
    ...(value === undefined ? {} : { value }),
  };
}

function wrongType(
  { document }: Reading,
  { key, line, value }: Entry,
  message: string,
): EvictdError {
  return refusedAt(document.file, line, message, key, shown(value));
}

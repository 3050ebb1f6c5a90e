import { EvictdError, quote } from '../core/errors.ts';
import { parseQuantity } from '../core/quantity.ts';
import { relativePathFault } from './cgroup-path.ts';
import { type ConfigDocument, type Entry, refusedAt, shown, type Value } from './document.ts';
import { suggestion } from './nearest.ts';
import { placed } from './place.ts';
import { isGlob, isHost, isParent } from './pod-globs.ts';
import { INT32, integerWithin, parseGraceSeconds } from './ranges.ts';
import type { PodRule } from './settings.ts';

/** More rules than that are a mistake. */
export const MAX_RULES = 1000;

const parsePriority = integerWithin(INT32);

type Field = 'cgroup' | 'name' | 'priority' | 'memoryRequest' | 'gracePeriod' | 'protected';

/** Reads one field's value; undefined when it is of a wrong type. */
type FieldReader = (value: Value) => Partial<PodRule> | undefined;

const READERS: Readonly<Record<Field, FieldReader>> = {
  cgroup: (value) => (value.type === 'text' ? { cgroup: parseCgroup(value.text) } : undefined),
  name: (value) => (value.type === 'text' ? { name: parseName(value.text) } : undefined),
  priority: (value) =>
    value.type === 'number' ? { priority: parsePriority(numeral(value)) } : undefined,
  memoryRequest: (value) => {
    const text = textOrNumeral(value);
    return text === undefined ? undefined : { memoryRequestNano: parseRequest(text) };
  },
  gracePeriod: (value) => {
    const text = textOrNumeral(value);
    return text === undefined ? undefined : { gracePeriodSeconds: parseGraceSeconds(text) };
  },
  protected: (value) => (value.type === 'switch' ? { protected: value.on } : undefined),
};

export const RULE_FIELDS = Object.keys(READERS) as readonly Field[];

const EXPECTED: Readonly<Record<Field, string>> = {
  cgroup: 'must be a text: a path or glob relative to the node’s cgroup',
  name: 'must be a text',
  priority: 'must be a whole number, without quotes',
  memoryRequest: 'must be a quantity such as 512Mi',
  gracePeriod: 'must be a duration such as 30s, or whole seconds',
  protected: 'must be true or false, without quotes',
};

const NO_SETTINGS: Omit<PodRule, 'cgroup'> = {
  name: undefined,
  priority: undefined,
  memoryRequestNano: undefined,
  gracePeriodSeconds: undefined,
  protected: false,
};

/**
 * Reads the rules of `pods`: which cgroups are pods (see `pod-globs.ts`), each with a name, a priority, a
 * memory request, a grace period and whether it is protected, all optional but `cgroup`.
 *
 * @throws EvictdError with file, line and `pods[N]: FIELD`: EVICTD_CONFIG for a wrong type or an unknown
 * field, EVICTD_POD for a path, a glob or a name that cannot be, EVICTD_INTEGER, EVICTD_QUANTITY,
 * EVICTD_DURATION
 */
export function parsePodRules(document: ConfigDocument, field: Entry): readonly PodRule[] {
  const { file } = document;
  if (field.value.type !== 'list') {
    const message = 'must be a list of rules';
    throw refusedAt(file, field.line, message, field.key, shown(field.value));
  }
  const items = document.items(field.value);
  if (items.length > MAX_RULES) {
    throw refusedAt(file, field.line, `more than ${MAX_RULES} rules`, field.key, `${items.length}`);
  }
  return items.map((value, index) => parseRule(document, `${field.key}[${index}]`, value));
}

function parseRule(document: ConfigDocument, key: string, value: Value): PodRule {
  const { file } = document;
  if (value.type !== 'map') {
    throw refusedAt(file, value.line, 'must be a map with cgroup', key, shown(value));
  }
  let rule: Partial<PodRule> = {};
  for (const entry of document.entries(value, key)) {
    rule = { ...rule, ...parseField(file, key, entry) };
  }
  const { cgroup } = rule;
  if (cgroup === undefined) throw refusedAt(file, value.line, 'lacks cgroup', key);
  if (rule.name !== undefined && (isGlob(cgroup) || isParent(cgroup))) {
    const message = 'a name is for one pod: this cgroup stands for several';
    const place = { source: `${file}:${value.line}`, key: `${key}: name`, value: rule.name };
    throw new EvictdError('EVICTD_POD', message, place);
  }
  return { ...NO_SETTINGS, ...rule, cgroup };
}

function parseField(file: string, rule: string, { key, line, value }: Entry): Partial<PodRule> {
  const path = `${rule}: ${key}`;
  if (!isField(key)) {
    const known = `known: ${RULE_FIELDS.join(', ')}`;
    const message = `unknown field${suggestion(key, RULE_FIELDS)}; ${known}`;
    throw refusedAt(file, line, message, path, shown(value));
  }
  const place = { source: `${file}:${line}`, key: path, value: shown(value) };
  const found = placed(place, () => READERS[key](value));
  if (found === undefined) throw new EvictdError('EVICTD_CONFIG', EXPECTED[key], place);
  return found;
}

function isField(text: string): text is Field {
  return Object.hasOwn(READERS, text);
}

function numeral({ number, text }: Value & { type: 'number' }): string {
  return Number.isSafeInteger(number) ? String(number) : text;
}

function textOrNumeral(value: Value): string | undefined {
  if (value.type === 'text') return value.text;
  return value.type === 'number' ? numeral(value) : undefined;
}

function parseCgroup(text: string): string {
  const path = text.length > 1 && text.endsWith('/') ? text.slice(0, -1) : text;
  const fault = cgroupFault(path);
  if (fault === undefined) return path;
  throw new EvictdError('EVICTD_POD', fault, { value: text });
}

function cgroupFault(path: string): string | undefined {
  if (isHost(path)) return `the host itself runs in ${quote(path)}: name what is evictable in it`;
  const fault = relativePathFault(path);
  if (fault !== undefined || !isGlob(path)) return fault;
  if (/[[\]{}]/.test(path)) return 'a glob has *, ? and ** alone, neither braces nor brackets';
  const isWrong = path.split('/').some((part) => part.includes('**') && part !== '**');
  return isWrong ? '** stands for whole components, between slashes' : undefined;
}

/** A name is shown and logged, and nothing else. */
const MAX_NAME_LENGTH = 253;

function parseName(text: string): string {
  if (text !== '' && text.length <= MAX_NAME_LENGTH && !text.includes('\0')) return text;
  const message = `a name has 1 to ${MAX_NAME_LENGTH} characters, none of them NUL`;
  throw new EvictdError('EVICTD_POD', message, { value: text });
}

function parseRequest(text: string): bigint {
  const nano = parseQuantity(text);
  if (nano >= 0n) return nano;
  throw new EvictdError('EVICTD_QUANTITY', 'a request cannot be negative', { value: text });
}

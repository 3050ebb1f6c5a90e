import { EvictdError, quote } from '../core/errors.ts';
import { parseQuantity } from '../core/quantity.ts';
import { relativePathFault } from './cgroup-path.ts';
import { type ConfigDocument, type Entry, refusedAt, shown, type Value } from './document.ts';
import { suggestion } from './nearest.ts';
import { placed } from './place.ts';
import { isGlob, isHost, isParent } from './pod-globs.ts';
import { INT32, integerWithin, parseGraceSeconds } from './ranges.ts';
import type { CgroupRule, PodRule, RuntimeRule } from './settings.ts';

/** More rules than that are a mistake. */
export const MAX_RULES = 1000;

const parsePriority = integerWithin(INT32);

const FIELDS = [
  'cgroup',
  'namespace',
  'name',
  'labels',
  'image',
  'priority',
  'memoryRequest',
  'gracePeriod',
  'protected',
] as const;

type Field = (typeof FIELDS)[number];

export const RULE_FIELDS: readonly Field[] = FIELDS;

/** By which a rule matches pods that a runtime names; `name` is of a cgroup what its pod is called. */
const RUNTIME_MATCHERS = [
  'namespace',
  'name',
  'labels',
  'image',
] as const satisfies readonly Field[];

/** What a rule was read to say, whatever kind it is of. */
type Fields = Partial<Omit<CgroupRule, 'name'> & Omit<RuntimeRule, 'cgroup'>>;

/** Reads one field's value; undefined when it is of a wrong type. */
type FieldReader = (value: Value, place: FieldPlace) => Fields | undefined;

/** Where a field stands, for what is in it. */
interface FieldPlace {
  readonly document: ConfigDocument;
  /** As errors name it. */
  readonly path: string;
}

const READERS: Readonly<Record<Field, FieldReader>> = {
  cgroup: (value) => (value.type === 'text' ? { cgroup: parseCgroup(value.text) } : undefined),
  namespace: (value) =>
    value.type === 'text' ? { namespace: parseNameGlob(value.text) } : undefined,
  name: (value) => (value.type === 'text' ? { name: parseName(value.text) } : undefined),
  labels: (value, place) =>
    value.type === 'map' ? { labels: parseLabels(value, place) } : undefined,
  image: (value) =>
    value.type === 'text' ? { image: parseGlob(value.text, MAX_IMAGE_LENGTH) } : undefined,
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

const EXPECTED: Readonly<Record<Field, string>> = {
  cgroup: 'must be a text: a path or glob relative to the node’s cgroup',
  namespace: 'must be a text: put it in quotes',
  name: 'must be a text: put it in quotes',
  labels: 'must be a map from labels to texts',
  image: 'must be a text: put it in quotes',
  priority: 'must be a whole number, without quotes',
  memoryRequest: 'must be a quantity such as 512Mi',
  gracePeriod: 'must be a duration such as 30s, or whole seconds',
  protected: 'must be true or false, without quotes',
};

const NO_SETTINGS = {
  priority: undefined,
  memoryRequestNano: undefined,
  gracePeriodSeconds: undefined,
  protected: false,
} as const;

/**
 * Reads the rules of `pods`, each with a priority, a memory request, a grace period and whether it is protected,
 * all optional. A rule says with `cgroup` which cgroups are pods (see `pod-globs.ts`), and with `name` what one is
 * called; or with `namespace`, `name`, `labels` and `image`, one of them at least, which of those that a
 * runtime names it is about (see `runtime-rules.ts`).
 *
 * @throws EvictdError with file, line and `pods[N]: FIELD`: EVICTD_CONFIG for a wrong type, an unknown
 * field or fields of both kinds, EVICTD_POD for a path, a glob or a name that cannot be, EVICTD_INTEGER,
 * EVICTD_QUANTITY, EVICTD_DURATION
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
    throw refusedAt(file, value.line, `must be a map with ${MATCHERS}`, key, shown(value));
  }
  const entries = document.entries(value, key);
  const isOfCgroup = entries.some((entry) => entry.key === 'cgroup');
  let rule: Fields = {};
  for (const entry of entries) {
    rule = { ...rule, ...parseField(document, key, entry) };
    if (isOfCgroup && ONLY_RUNTIMES.includes(entry.key)) {
      const message = 'a rule is about a cgroup, or about what a runtime names, not about both';
      throw refusedAt(file, entry.line, message, `${key}: ${entry.key}`, shown(entry.value));
    }
  }
  const place = { source: `${file}:${value.line}`, key: `${key}: name`, value: rule.name ?? '' };
  const { cgroup } = rule;
  if (cgroup !== undefined) {
    if (rule.name !== undefined && (isGlob(cgroup) || isParent(cgroup))) {
      const message = 'a name is for one pod: this cgroup stands for several';
      throw new EvictdError('EVICTD_POD', message, place);
    }
    return { ...NO_SETTINGS, name: undefined, ...rule, cgroup };
  }
  if (!RUNTIME_MATCHERS.some((matcher) => rule[matcher] !== undefined)) {
    throw refusedAt(file, value.line, `lacks ${MATCHERS}`, key);
  }
  if (rule.name !== undefined) placed(place, () => parseNameGlob(rule.name ?? ''));
  const { namespace, name, image, labels = {}, ...settings } = rule;
  return { ...NO_SETTINGS, namespace, name, image, labels, ...settings };
}

const MATCHERS = `cgroup, or one of ${RUNTIME_MATCHERS.join(', ')}`;
const ONLY_RUNTIMES: readonly string[] = RUNTIME_MATCHERS.filter((name) => name !== 'name');

function parseField(document: ConfigDocument, rule: string, { key, line, value }: Entry): Fields {
  const { file } = document;
  const path = `${rule}: ${key}`;
  if (!isField(key)) {
    const known = `known: ${RULE_FIELDS.join(', ')}`;
    const message = `unknown field${suggestion(key, RULE_FIELDS)}; ${known}`;
    throw refusedAt(file, line, message, path, shown(value));
  }
  const place = { source: `${file}:${line}`, key: path, value: shown(value) };
  const found = placed(place, () => READERS[key](value, { document, path }));
  if (found === undefined) throw new EvictdError('EVICTD_CONFIG', EXPECTED[key], place);
  return found;
}

function isField(text: string): text is Field {
  return (FIELDS as readonly string[]).includes(text);
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

/** More labels than that, or longer texts, are a mistake; runtimes have longer names of images. */
export const MAX_LABELS = 50;
const MAX_LABEL_LENGTH = 1024;
const MAX_IMAGE_LENGTH = 512;

/** What a name or a namespace of Kubernetes, or a container's name, is matched by. */
function parseNameGlob(text: string): string {
  if (!text.includes('/')) return parseGlob(text, MAX_NAME_LENGTH);
  const message = 'a name has no slash: a namespace has a key of its own';
  throw new EvictdError('EVICTD_POD', message, { value: text });
}

/** Braces and brackets stand in no name and no image: whoever writes them means a wildcard. */
function parseGlob(text: string, mostLength: number): string {
  const fault = /[[\]{}]/.test(text)
    ? 'a glob has * and ? alone, neither braces nor brackets'
    : textFault(text, mostLength);
  if (fault === undefined) return text;
  throw new EvictdError('EVICTD_POD', fault, { value: text });
}

function textFault(text: string, mostLength: number): string | undefined {
  if (text !== '' && text.length <= mostLength && !text.includes('\0')) return undefined;
  return `not 1 to ${mostLength} characters, none of them NUL`;
}

function parseLabels(
  map: Value & { type: 'map' },
  { document, path }: FieldPlace,
): Readonly<Record<string, string>> {
  const { file } = document;
  const entries = document.entries(map, path);
  if (entries.length === 0) throw refusedAt(file, map.line, 'names no label', path);
  if (entries.length > MAX_LABELS) {
    throw refusedAt(file, map.line, `more than ${MAX_LABELS} labels`, path, `${entries.length}`);
  }
  return Object.fromEntries(
    entries.map(({ key, line, value }) => {
      const name = `${path}: ${key}`;
      if (value.type !== 'text') {
        throw refusedAt(file, line, 'must be a text: put it in quotes', name, shown(value));
      }
      // A value may be empty, and hold what a name may not.
      const fault =
        textFault(key, MAX_LABEL_LENGTH) ??
        (value.text === '' ? undefined : textFault(value.text, MAX_LABEL_LENGTH));
      if (fault === undefined) return [key, value.text];
      const place = { source: `${file}:${line}`, key: name, value: value.text };
      throw new EvictdError('EVICTD_POD', fault, place);
    }),
  );
}

function parseRequest(text: string): bigint {
  const nano = parseQuantity(text);
  if (nano >= 0n) return nano;
  throw new EvictdError('EVICTD_QUANTITY', 'a request cannot be negative', { value: text });
}

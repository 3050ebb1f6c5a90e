import { EvictdError, quote } from '../core/errors.ts';
import { parseQuantity } from '../core/quantity.ts';
import { relativePathFault } from './cgroup-path.ts';
import { suggestion } from './nearest.ts';
import { placed } from './place.ts';
import { INT32, integerWithin, parseGraceSeconds } from './ranges.ts';
import type { PodSettings } from './settings.ts';

const SOURCE = '--pod';

/** A field with a value: which settings it gives. */
const FIELDS = {
  priority: (text: string) => ({ priority: parsePriority(text) }),
  request: (text: string) => ({ memoryRequestNano: parseRequest(text) }),
  grace: (text: string) => ({ gracePeriodSeconds: parseGraceSeconds(text) }),
} as const satisfies Record<string, (text: string) => Partial<PodSettings>>;

const parsePriority = integerWithin(INT32);

const FIELD_NAMES = [...Object.keys(FIELDS), 'protected'];

/**
 * Reads the `--pod` flags, `NAME=priority:N,request:Q,grace:D,protected`, by pod name, which is a
 * path relative to the node's cgroup. Each field may be left out. The name ends at the last `=`,
 * since no field has one: so a name may hold `=`, and `,` as well. The grace is a Go duration of
 * whole seconds, or a bare number of seconds as in a pod's terminationGracePeriodSeconds.
 *
 * @throws EvictdError EVICTD_POD for the name, an unknown or doubled field, or a pod given twice;
 * EVICTD_INTEGER, EVICTD_QUANTITY, EVICTD_DURATION for a field's value
 */
export function parsePods(values: readonly string[]): ReadonlyMap<string, PodSettings> {
  const pods = new Map<string, PodSettings>();
  for (const value of values) {
    const pod = parsePod(value);
    if (pods.has(pod.name)) {
      throw new EvictdError('EVICTD_POD', 'the pod is given twice', {
        source: SOURCE,
        key: pod.name,
        value,
      });
    }
    pods.set(pod.name, pod);
  }
  return pods;
}

function parsePod(value: string): PodSettings {
  const end = value.lastIndexOf('=');
  if (end < 0) {
    const message = 'expected NAME=priority:N,request:Q,grace:D,protected';
    throw new EvictdError('EVICTD_POD', message, { source: SOURCE, value });
  }
  const name = value.slice(0, end);
  checkName(name, value);
  return { name, ...parseFields(name, value.slice(end + 1)) };
}

function checkName(name: string, value: string): void {
  const fault = relativePathFault(name);
  if (fault !== undefined) throw new EvictdError('EVICTD_POD', fault, { source: SOURCE, value });
}

function parseFields(name: string, text: string): Omit<PodSettings, 'name'> {
  let fields: Omit<PodSettings, 'name'> = {
    priority: undefined,
    memoryRequestNano: undefined,
    gracePeriodSeconds: undefined,
    protected: false,
  };
  const seen = new Set<string>();
  for (const part of text === '' ? [] : text.split(',')) {
    const [field, settings] = parseField(name, part);
    if (seen.has(field)) throw refusedField(name, part, `${field} is given twice`);
    seen.add(field);
    fields = { ...fields, ...settings };
  }
  return fields;
}

function parseField(name: string, part: string): [string, Partial<PodSettings>] {
  if (part === 'protected') return [part, { protected: true }];
  const [field, value] = splitAt(part, ':');
  if (!isFieldWithValue(field)) throw refusedField(name, part, fieldFault(field));
  if (value === undefined) throw refusedField(name, part, `expected ${field}:VALUE`);
  return [field, placed({ source: SOURCE, key: `${name}: ${field}` }, () => FIELDS[field](value))];
}

function fieldFault(field: string): string {
  if (field === 'protected') return 'protected takes no value';
  return `unknown field ${quote(field)}${suggestion(field, FIELD_NAMES)}; known fields: ${FIELD_NAMES.join(', ')}`;
}

function isFieldWithValue(text: string): text is keyof typeof FIELDS {
  return Object.hasOwn(FIELDS, text);
}

function splitAt(text: string, separator: string): [string, string | undefined] {
  const index = text.indexOf(separator);
  return index < 0
    ? [text, undefined]
    : [text.slice(0, index), text.slice(index + separator.length)];
}

function parseRequest(text: string): bigint {
  const nano = parseQuantity(text);
  if (nano >= 0n) return nano;
  throw new EvictdError('EVICTD_QUANTITY', 'a request cannot be negative', { value: text });
}

function refusedField(name: string, part: string, message: string): EvictdError {
  return new EvictdError('EVICTD_POD', message, { source: SOURCE, key: name, value: part });
}

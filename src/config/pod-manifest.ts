/**
 * Pods of Kubernetes as files have them, YAML or JSON: from a text to what the policy looks at, each
 * field checked for its shape. What the policy does not look at is left out.
 */
import { createReadStream } from 'node:fs';
import { EvictdError } from '../core/errors.ts';
import type {
  KubernetesContainer,
  KubernetesPod,
  KubernetesVolume,
  QuantityText,
  ResourceList,
  Toleration,
} from '../core/kubernetes.ts';
import { parseQuantity } from '../core/quantity.ts';
import { type ConfigDocument, type Entry, parseDocuments, shown, type Value } from './document.ts';
import { suggestion } from './nearest.ts';
import { readFailure } from './read-failure.ts';

/** The largest file of pods, bytes: some hundreds of pods as a cluster prints them. */
export const MAX_MANIFEST_BYTES = 4 * 2 ** 20;

/** What Kubernetes puts a pod into that names no namespace. */
const DEFAULT_NAMESPACE = 'default';

/** Priorities of the classes that every cluster has. Source: Kubernetes `scheduling/types.go`. */
const SYSTEM_PRIORITIES: Readonly<Record<string, number>> = {
  'system-cluster-critical': 2_000_000_000,
  'system-node-critical': 2_000_001_000,
};

const INT32 = { min: -(2 ** 31), max: 2 ** 31 - 1 } as const;

/** A list of Lists of pods is the deepest that is read: an alias may hold itself. */
const MAX_DEPTH = 2;

/** How many fields and items are looked at: a few aliases can stand for any number. */
const MAX_FIELDS = 300_000;

/** What stands for standard input. */
const STANDARD_INPUT = '-';

/**
 * The text of a file of pods, `-` for standard input. May be a pipe, which is read to its end.
 *
 * @throws EvictdError EVICTD_MANIFEST with the file as its place's source
 */
export async function readPodManifest(file: string): Promise<string> {
  if (file === '' || file.includes('\0')) throw unreadable(file, 'no path of a file');
  const isInput = file === STANDARD_INPUT;
  const stream = isInput
    ? createReadStream('', { fd: 0, autoClose: false })
    : createReadStream(file);
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > MAX_MANIFEST_BYTES) {
        throw unreadable(file, `larger than ${MAX_MANIFEST_BYTES} bytes`);
      }
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof EvictdError) throw error;
    throw unreadable(file, readFailure(error), error);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks));
  } catch {
    throw unreadable(file, 'no UTF-8 text');
  }
}

function unreadable(file: string, message: string, cause?: unknown): EvictdError {
  return new EvictdError('EVICTD_MANIFEST', message, { source: nameOfFile(file) }, cause);
}

/** What errors call the file. */
function nameOfFile(file: string): string {
  return file === STANDARD_INPUT ? 'standard input' : file;
}

/**
 * The pods of a text: a Pod, a List or PodList of them, or several documents of these. A cluster's
 * system priority classes are known; what priority another class has is not in the file.
 *
 * @param path of the file; errors name it
 * @throws EvictdError EVICTD_MANIFEST with `FILE:LINE`, the field's path and its value: neither YAML nor
 * JSON, no pod at all, what is no Pod, a doubled key, a field of another type
 */
export function parsePodManifest(text: string, path: string): readonly KubernetesPod[] {
  const file = nameOfFile(path);
  let left = MAX_FIELDS;
  const spend = (count: number): void => {
    left -= count;
    if (left >= 0) return;
    throw new EvictdError('EVICTD_MANIFEST', `more than ${MAX_FIELDS} fields`, { source: file });
  };
  return asManifest(() => {
    const pods = parseDocuments(text, file).flatMap((document) => {
      const { root: value } = document;
      return podsOf({ reading: { document, spend }, path: '', line: value.line, value }, 0);
    });
    if (pods.length === 0) {
      throw new EvictdError('EVICTD_MANIFEST', 'holds no pod', { source: file });
    }
    return pods;
  });
}

/** The reader of documents speaks of configuration. */
function asManifest<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof EvictdError) || error.code === 'EVICTD_MANIFEST') throw error;
    throw new EvictdError('EVICTD_MANIFEST', error.message, error.place, error.cause);
  }
}

interface Reading {
  readonly document: ConfigDocument;
  /** @throws EvictdError where more is looked at than may be */
  readonly spend: (count: number) => void;
}

/** A value, and where it stands. */
interface Field {
  readonly reading: Reading;
  readonly path: string;
  readonly line: number;
  readonly value: Value;
}

function refused({ reading, path, line, value }: Field, message: string): EvictdError {
  return new EvictdError('EVICTD_MANIFEST', message, {
    source: `${reading.document.file}:${line}`,
    ...(path === '' ? {} : { key: path }),
    value: shown(value),
  });
}

type Fields = ReadonlyMap<string, Field>;

/** The fields of a map by their names; what is null is as if it were not there, as in Kubernetes. */
function fieldsOf(field: Field): Fields {
  const { reading, path, value } = field;
  if (value.type !== 'map') throw refused(field, 'must be a map');
  const entries = reading.document.entries(value, path);
  reading.spend(entries.length);
  return new Map(
    entries
      .filter(isGiven)
      .map(({ key, line, value: inner }) => [
        key,
        { reading, path: path === '' ? key : `${path}.${key}`, line, value: inner },
      ]),
  );
}

function isGiven({ value }: Entry): boolean {
  return value.type !== 'nothing';
}

function itemsOf(field: Field): readonly Field[] {
  const { reading, path, value } = field;
  if (value.type !== 'list') throw refused(field, 'must be a list');
  const items = reading.document.items(value);
  reading.spend(items.length);
  return items.map((item, index) => ({
    reading,
    path: `${path}[${index}]`,
    line: item.line,
    value: item,
  }));
}

function podsOf(field: Field, depth: number): readonly KubernetesPod[] {
  if (depth > MAX_DEPTH) throw refused(field, 'lists nested too deeply');
  if (field.value.type === 'list') return itemsOf(field).flatMap((item) => podsOf(item, depth + 1));
  const fields = fieldsOf(field);
  const kind = optional(fields, 'kind', textOf);
  switch (kind) {
    case 'List':
    case 'PodList': {
      const items = fields.get('items');
      return items === undefined ? [] : itemsOf(items).flatMap((item) => podsOf(item, depth + 1));
    }
    // What is in a PodList does not say it.
    case undefined:
    case 'Pod':
      return [podOf(field, fields)];
    default:
      throw refused(fields.get('kind') as Field, 'neither Pod nor List');
  }
}

function podOf(field: Field, fields: Fields): KubernetesPod {
  const version = optional(fields, 'apiVersion', textOf);
  if (version !== undefined && version !== 'v1') {
    throw refused(fields.get('apiVersion') as Field, 'the apiVersion of a Pod is v1');
  }
  const metadata = fieldsOf(required(field, fields, 'metadata'));
  const spec = fieldsOf(required(field, fields, 'spec'));
  refuseMisspelt(spec, 'containers');
  const status = optional(fields, 'status', fieldsOf);
  const className = optional(spec, 'priorityClassName', textOf);
  return {
    metadata: {
      name: nameOf(required(fields.get('metadata') as Field, metadata, 'name')),
      namespace: optional(metadata, 'namespace', nameOf) ?? DEFAULT_NAMESPACE,
      uid: optional(metadata, 'uid', textOf) ?? '',
      annotations: optional(metadata, 'annotations', textsOf),
    },
    spec: {
      containers: optional(spec, 'containers', listOf(containerOf)),
      initContainers: optional(spec, 'initContainers', listOf(containerOf)),
      volumes: optional(spec, 'volumes', listOf(volumeOf)),
      priority: optional(spec, 'priority', int32Of) ?? systemPriority(className),
      tolerations: optional(spec, 'tolerations', listOf(tolerationOf)),
      terminationGracePeriodSeconds: optional(spec, 'terminationGracePeriodSeconds', integerOf),
      overhead: optional(spec, 'overhead', resourcesOf),
    },
    status: { qosClass: status && optional(status, 'qosClass', textOf) },
  };
}

/** What is read otherwise without it: a pod without containers is BestEffort. */
function refuseMisspelt(fields: Fields, name: string): void {
  if (fields.has(name)) return;
  for (const [other, field] of fields) {
    const hint = suggestion(other, [name]);
    if (hint !== '') throw refused(field, `no field${hint}`);
  }
}

function systemPriority(className: string | undefined): number | undefined {
  return className !== undefined && Object.hasOwn(SYSTEM_PRIORITIES, className)
    ? SYSTEM_PRIORITIES[className]
    : undefined;
}

type Reader<T> = (field: Field) => T;

function required(parent: Field, fields: Fields, name: string): Field {
  const field = fields.get(name);
  if (field !== undefined) return field;
  throw refused(parent, `lacks ${name}`);
}

function optional<T>(fields: Fields, name: string, read: Reader<T>): T | undefined {
  const field = fields.get(name);
  return field && read(field);
}

function listOf<T>(read: Reader<T>): Reader<readonly T[]> {
  return (field) => itemsOf(field).map(read);
}

function textOf(field: Field): string {
  if (field.value.type === 'text') return field.value.text;
  throw refused(field, 'must be a text');
}

/** As a path has it, a name has no part: what is printed is to be told apart. */
function nameOf(field: Field): string {
  const text = textOf(field);
  if (text === '' || text.includes('/')) throw refused(field, 'no name');
  return text;
}

function integerOf(field: Field): number {
  const { value } = field;
  if (value.type === 'number' && Number.isSafeInteger(value.number)) return value.number;
  throw refused(field, 'must be a whole number');
}

function int32Of(field: Field): number {
  const number = integerOf(field);
  if (number >= INT32.min && number <= INT32.max) return number;
  throw refused(field, `must be from ${INT32.min} to ${INT32.max}`);
}

function textsOf(field: Field): Readonly<Record<string, string>> {
  return Object.fromEntries([...fieldsOf(field)].map(([name, inner]) => [name, textOf(inner)]));
}

/** Exactly as it was written: a number of JavaScript may not hold it. */
function quantityOf(field: Field): QuantityText {
  const { value } = field;
  if (value.type !== 'text' && value.type !== 'number') {
    throw refused(field, 'must be a quantity such as 100Mi');
  }
  const isExact = value.type === 'number' && Number.isSafeInteger(value.number);
  const text = isExact ? String(value.number) : value.text;
  try {
    parseQuantity(text);
  } catch (error) {
    throw error instanceof EvictdError ? refused(field, error.message) : error;
  }
  return text;
}

function resourcesOf(field: Field): ResourceList {
  return Object.fromEntries([...fieldsOf(field)].map(([name, inner]) => [name, quantityOf(inner)]));
}

function containerOf(field: Field): KubernetesContainer {
  const fields = fieldsOf(field);
  const resources = optional(fields, 'resources', fieldsOf);
  return {
    name: nameOf(required(field, fields, 'name')),
    resources: resources && {
      requests: optional(resources, 'requests', resourcesOf),
      limits: optional(resources, 'limits', resourcesOf),
    },
    restartPolicy: optional(fields, 'restartPolicy', textOf),
  };
}

function volumeOf(field: Field): KubernetesVolume {
  const fields = fieldsOf(field);
  const emptyDir = optional(fields, 'emptyDir', fieldsOf);
  return {
    name: nameOf(required(field, fields, 'name')),
    emptyDir: emptyDir && {
      medium: optional(emptyDir, 'medium', textOf),
      sizeLimit: optional(emptyDir, 'sizeLimit', quantityOf),
    },
    // Of these only whether they are there is looked at.
    hostPath: optional(fields, 'hostPath', fieldsOf) && {},
    configMap: optional(fields, 'configMap', fieldsOf) && {},
    gitRepo: optional(fields, 'gitRepo', fieldsOf) && {},
  };
}

function tolerationOf(field: Field): Toleration {
  const fields = fieldsOf(field);
  return {
    key: optional(fields, 'key', textOf),
    operator: optional(fields, 'operator', textOf),
    value: optional(fields, 'value', textOf),
    effect: optional(fields, 'effect', textOf),
  };
}

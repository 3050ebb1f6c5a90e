import { SIGNAL_NAMES, SIGNALS } from '../core/signal.ts';
import { POLLING_FIELDS } from './given.ts';
import { KINDS } from './kinds.ts';
import { KEYS, type Key, type KeyType } from './options.ts';
import { MAX_LABELS, MAX_RULES } from './pod-rules.ts';
import { POLL_KINDS } from './polling-flag.ts';
import {
  COLLECTINGS,
  COMPATIBILITIES,
  LOG_LEVELS,
  MEMORY_SOURCES,
  RUNTIMES,
  SCHEDULINGS,
} from './settings.ts';
import { ENFORCEMENTS } from './values.ts';

type Schema = Readonly<Record<string, unknown>>;

const TEXT: Schema = { type: 'string' };
const QUANTITY: Schema = { type: ['string', 'integer'] };

/** The keys with a list of words. */
const CHOICES: Readonly<Record<string, readonly string[]>> = {
  compatibility: COMPATIBILITIES,
  memorySource: MEMORY_SOURCES,
  containerGC: COLLECTINGS,
  imageGC: COLLECTINGS,
  logLevel: LOG_LEVELS,
  scheduling: SCHEDULINGS,
  runtime: RUNTIMES,
};

const TYPES: Readonly<Record<KeyType, (key: Key) => Schema>> = {
  signals: () =>
    closed(Object.fromEntries(SIGNAL_NAMES.map((signal) => [signal, signalText(signal)]))),
  text: ({ name }) => (CHOICES[name] === undefined ? TEXT : { enum: CHOICES[name] }),
  integer: () => ({ type: 'integer' }),
  switch: () => ({ type: 'boolean' }),
  texts: ({ name }) => ({
    type: 'array',
    items: name === 'enforceNodeAllocatable' ? { enum: ENFORCEMENTS } : TEXT,
  }),
  polling: () => closed(Object.fromEntries(POLL_KINDS.map((kind) => [kind, closed(POLLING)]))),
  pods: () => ({ type: 'array', maxItems: MAX_RULES, items: RULE }),
};

const POLLING = Object.fromEntries(POLLING_FIELDS.map((field) => [field, QUANTITY]));

const RULE: Schema = {
  ...closed({
    cgroup: {
      ...TEXT,
      description:
        'a path relative to the node’s cgroup, or a glob with *, ? and **; kubepods, docker and ' +
        'machine.slice stand for the pods in them',
    },
    namespace: { ...TEXT, description: 'without cgroup: a glob for the namespace of a pod' },
    name: {
      ...TEXT,
      description:
        'with cgroup: what a single pod is called, its path by default; without: a glob for the name that ' +
        'its runtime has for a pod',
    },
    labels: {
      type: 'object',
      additionalProperties: TEXT,
      minProperties: 1,
      maxProperties: MAX_LABELS,
      description: 'without cgroup: a glob for the value of each label that there must be',
    },
    image: {
      ...TEXT,
      description: 'without cgroup: a glob for the image of one of its containers',
    },
    priority: { type: 'integer', description: 'the lowest is evicted first; 0 by default' },
    memoryRequest: { ...QUANTITY, description: 'replaces memory.soft_limit_in_bytes' },
    gracePeriod: { ...QUANTITY, description: 'a duration of whole seconds, or seconds' },
    protected: { type: 'boolean', description: 'never to be evicted' },
  }),
  oneOf: [
    { required: ['cgroup'], not: { anyOf: ['namespace', 'labels', 'image'].map(withKey) } },
    {
      not: { required: ['cgroup'] },
      anyOf: ['namespace', 'name', 'labels', 'image'].map(withKey),
    },
  ],
};

/**
 * The JSON Schema of an EvictdConfiguration, for editors: the keys of the table of options. What a text
 * may say (a quantity, a duration) is left to `evictd check-config`.
 */
export function configurationSchema(): Schema {
  const properties = Object.fromEntries(
    KEYS.map((key) => [key.name, { ...TYPES[key.type](key), description: key.description }]),
  );
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'EvictdConfiguration',
    description: 'The configuration of evictd; its checks are those of `evictd check-config FILE`.',
    ...closed({
      apiVersion: { const: KINDS.EvictdConfiguration },
      kind: { const: 'EvictdConfiguration' },
      ...properties,
    }),
    required: ['apiVersion', 'kind'],
  };
}

function signalText(signal: keyof typeof SIGNALS): Schema {
  return { ...TEXT, description: SIGNALS[signal].description };
}

function withKey(key: string): Schema {
  return { required: [key] };
}

function closed(properties: Schema): Schema {
  return { type: 'object', additionalProperties: false, properties };
}

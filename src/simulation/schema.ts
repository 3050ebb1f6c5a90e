/** What a scenario may look like, as JSON Schema: for `read.ts`, and for editors. */
import { KUBELET_FIELDS } from '../config/kubelet-fields.ts';
import type { KubernetesPod } from '../core/kubernetes.ts';
import { parseTimestampNs } from '../core/timestamp.ts';
import type { Kill, Scenario, Tick, TickExtension } from './scenario.ts';

type Schema = Readonly<Record<string, unknown>>;

/** A schema for each field of `T`, so that none is forgotten. */
type Fields<T> = Readonly<Record<keyof Required<T>, Schema>>;

const TEXT: Schema = { type: 'string' };
const SWITCH: Schema = { type: 'boolean' };
const INTEGER: Schema = { type: 'integer' };
const DURATION: Schema = { type: 'string', description: 'a Go duration, such as 1m30s' };

/** Numbers of a summary: whole and below 2^53; a kubelet reports what it has overspent as negative. */
const COUNT: Schema = {
  type: ['integer', 'null'],
  minimum: Number.MIN_SAFE_INTEGER,
  maximum: Number.MAX_SAFE_INTEGER,
};

const WHOLE: Schema = { ...COUNT, type: 'integer' };

/** A quantity of Kubernetes, such as `100Mi`, or a number. */
const QUANTITY: Schema = { type: ['string', 'number', 'null'] };
const OPTIONAL_TEXT: Schema = { type: ['string', 'null'] };

const TIME: Schema = {
  type: ['string', 'null'],
  format: 'date-time',
  description: 'when these numbers were taken, RFC 3339; not known where it is missing',
};

/** How the formats that it names are checked. */
export const SCENARIO_FORMATS = {
  'date-time': (text: string): boolean => parseTimestampNs(text) !== undefined,
} as const;

const NAMES: Schema = {
  type: ['array', 'null'],
  items: { type: 'string', description: 'a pod, namespace/name' },
};

/** Beside these fields there are others that nothing is made of. */
function open(properties: Schema, required: readonly string[] = []): Schema {
  return { type: 'object', properties, ...(required.length === 0 ? {} : { required }) };
}

/** There are no others: one that is not known is misspelt. */
function closed(properties: Schema, required: readonly string[] = []): Schema {
  return { ...open(properties, required), additionalProperties: false };
}

function maybe(schema: Schema): Schema {
  return { ...schema, type: [schema['type'], 'null'].flat() };
}

function listOf(items: Schema): Schema {
  return { type: ['array', 'null'], items };
}

/** As {@link listOf} and {@link mapOf}, in what is evictd's own: there is no null for what is missing. */
function all(items: Schema): Schema {
  return { type: 'array', items };
}

function named(values: Schema): Schema {
  return { type: 'object', additionalProperties: values };
}

function mapOf(values: Schema): Schema {
  return { type: ['object', 'null'], additionalProperties: values };
}

type Definition = 'config' | 'memory' | 'filesystem' | 'container' | 'pod' | 'podStats' | 'summary';

function definition(name: Definition): Schema {
  return { $ref: `#/definitions/${name}` };
}

const SIGNAL_TEXTS = mapOf(TEXT);

const CONFIG: Schema = closed({
  // What the kubelet has beside these is no fault, and is not looked at.
  ...Object.fromEntries(KUBELET_FIELDS.map((name) => [name, {}])),
  apiVersion: {},
  kind: {},
  enforceNodeAllocatable: {
    ...listOf(TEXT),
    description: 'with pods in it, which is the default, pods have thresholds of memory together',
  },
  evictionHard: { ...SIGNAL_TEXTS, description: 'hard thresholds, by signal; none by default' },
  evictionSoft: { ...SIGNAL_TEXTS, description: 'soft thresholds, by signal' },
  evictionSoftGracePeriod: { ...SIGNAL_TEXTS, description: 'a Go duration for each of them' },
  evictionMinimumReclaim: { ...SIGNAL_TEXTS, description: 'what to regain beyond a threshold' },
  evictionPressureTransitionPeriod: maybe(DURATION),
  evictionMaxPodGracePeriod: {
    ...maybe(INTEGER),
    description: 'the longest grace of a soft victim, seconds; may be negative',
  },
  localStorageCapacityIsolation: {
    ...maybe(SWITCH),
    description: 'whether limits of emptyDir and ephemeral-storage are enforced; true by default',
  },
  hardEvictionGracePeriodSeconds: {
    ...maybe(INTEGER),
    description: "evictd's own: the grace of a hard victim; 1 by the kubelet's rules, else 0",
  },
  mergeDefaultEvictionSettings: maybe(SWITCH),
  compatibility: {
    ...OPTIONAL_TEXT,
    description: "evictd's own: whose rules hold, kubelet or evictd",
  },
  memorySource: {
    ...OPTIONAL_TEXT,
    description: "evictd's own: what memory.available is, workingset or memavailable",
  },
});

const POD_METADATA: Fields<KubernetesPod['metadata']> = {
  name: TEXT,
  namespace: TEXT,
  uid: TEXT,
  annotations: mapOf(TEXT),
};

const POD_SPEC: Fields<KubernetesPod['spec']> = {
  containers: listOf(definition('container')),
  initContainers: listOf(definition('container')),
  volumes: listOf(
    open(
      {
        name: TEXT,
        emptyDir: maybe(open({ medium: OPTIONAL_TEXT, sizeLimit: QUANTITY })),
        ...{ hostPath: {}, configMap: {}, gitRepo: {} },
      },
      ['name'],
    ),
  ),
  priority: maybe(INTEGER),
  tolerations: listOf(
    open({
      key: OPTIONAL_TEXT,
      operator: OPTIONAL_TEXT,
      value: OPTIONAL_TEXT,
      effect: OPTIONAL_TEXT,
    }),
  ),
  terminationGracePeriodSeconds: maybe(INTEGER),
  overhead: mapOf(QUANTITY),
};

const KILL: Fields<Kill> = {
  takes: {
    ...DURATION,
    description:
      'a Go duration to the outcome, beside a grace; negative where the victim ended before its grace',
  },
  outcome: { enum: ['evicted', 'timedOut', 'failed', 'nothingToKill', 'pressureGone', 'dryRun'] },
};

const TICK_EXTENSION: Fields<TickExtension> = {
  kills: {
    ...named(closed(KILL)),
    description: 'how kills go that are decided in this round, by namespace/name',
  },
  collection: {
    enum: ['ended', 'runs'],
    description:
      'where a collection of a recorded run came to its end: what was decided within 35 s before is read in this ' +
      'round, or goes on beyond the last one',
  },
  spaceHeld: {
    ...SWITCH,
    description: 'that what was evicted for a disk still holds its space: no pod goes for a disk',
  },
  config: definition('config'),
  summariesSettling: {
    ...all({ ...definition('summary'), type: 'object' }),
    description: 'what is read in turn after a collection, while space comes back',
  },
  memAvailableBytes: {
    ...WHOLE,
    description: 'what the kernel could free at this moment: the second source of memory.available',
  },
  wallClockStep: {
    ...DURATION,
    description: 'how far the wall clock was set from here on; may be negative',
  },
  samples: {
    ...all(
      closed(
        {
          after: {
            ...DURATION,
            description: 'a Go duration after the round; 0s for the same moment',
          },
          summary: definition('summary'),
          memAvailableBytes: WHOLE,
        },
        ['after'],
      ),
    ),
    description: 'what is read after the round and before the next one',
  },
  images: {
    ...all(
      closed(
        {
          id: TEXT,
          sizeBytes: WHOLE,
          age: { ...DURATION, description: 'a Go duration since it was pulled' },
          lastUsed: {
            ...DURATION,
            description: 'a Go duration since a container last used it; never where it is missing',
          },
          inUse: SWITCH,
          usedBy: { ...NAMES, description: 'the pods that use it, by namespace/name' },
          pinned: SWITCH,
        },
        ['id', 'sizeBytes', 'age'],
      ),
    ),
    description: 'the images of the node, for a collection that chooses among them',
  },
};

const TICK: Fields<Tick> = {
  at: { ...DURATION, description: 'a Go duration since the start' },
  summary: definition('summary'),
  summaryAfterReclaim: definition('summary'),
  activePods: { ...NAMES, description: 'all pods that were not evicted where it is missing' },
  imageGCFails: maybe(SWITCH),
  containerGCFails: maybe(SWITCH),
  killFails: { ...NAMES, description: 'the pods that cannot be killed in this round' },
  admit: { ...listOf(definition('pod')), description: 'pods that want to start after it' },
  evictd: { ...maybe(closed(TICK_EXTENSION)), description: 'what only evictd has' },
};

const SCENARIO: Fields<Scenario> = {
  name: TEXT,
  description: TEXT,
  config: definition('config'),
  node: closed({
    dedicatedImageFs: { ...maybe(SWITCH), description: 'images are on another filesystem' },
    splitImageFs: {
      ...maybe(SWITCH),
      description: 'writable layers are on another one than images',
    },
  }),
  pods: { type: 'array', items: definition('pod') },
  ticks: { type: 'array', items: closed(TICK, ['at']) },
  evictd: {
    ...maybe(
      closed({
        protected: {
          ...named(TEXT),
          description: 'why a pod may not be evicted, by namespace/name',
        },
        kills: {
          ...named(closed(KILL)),
          description: 'how kills go that are not over at once, by namespace/name',
        },
        recorded: {
          ...SWITCH,
          description:
            'the summaries are those of a recorded run: what a pod uses in them after it has been evicted here ' +
            'is given back',
        },
        ranksDisk: {
          ...SWITCH,
          description: 'whether it is known what pods use of the disks; true by default',
        },
        reclaims: {
          ...SWITCH,
          description:
            'whether dead containers and unused images can be collected; true by default',
        },
      }),
    ),
    description: 'what only evictd has',
  },
};

const DEFINITIONS: Readonly<Record<Definition, Schema>> = {
  config: CONFIG,
  memory: maybe(open({ time: TIME, availableBytes: COUNT, workingSetBytes: COUNT })),
  filesystem: maybe(
    open({
      time: TIME,
      availableBytes: COUNT,
      capacityBytes: COUNT,
      usedBytes: COUNT,
      inodesFree: COUNT,
      inodes: COUNT,
      inodesUsed: COUNT,
    }),
  ),
  container: open(
    {
      name: TEXT,
      resources: maybe(open({ requests: mapOf(QUANTITY), limits: mapOf(QUANTITY) })),
      restartPolicy: OPTIONAL_TEXT,
    },
    ['name'],
  ),
  pod: open(
    {
      metadata: open(POD_METADATA, ['name', 'namespace', 'uid']),
      spec: open(POD_SPEC),
      status: maybe(open({ qosClass: OPTIONAL_TEXT })),
    },
    ['metadata', 'spec'],
  ),
  podStats: open(
    {
      podRef: open({ name: TEXT, namespace: TEXT, uid: TEXT }, ['name', 'namespace', 'uid']),
      memory: definition('memory'),
      containers: listOf(
        open(
          {
            name: TEXT,
            memory: definition('memory'),
            rootfs: definition('filesystem'),
            logs: definition('filesystem'),
          },
          ['name'],
        ),
      ),
      volume: listOf(
        open(
          {
            name: TEXT,
            usedBytes: COUNT,
            inodesUsed: COUNT,
            availableBytes: COUNT,
            capacityBytes: COUNT,
          },
          ['name'],
        ),
      ),
      'ephemeral-storage': definition('filesystem'),
      process_stats: maybe(open({ process_count: COUNT })),
    },
    ['podRef'],
  ),
  summary: maybe(
    open({
      node: maybe(
        open({
          memory: definition('memory'),
          fs: definition('filesystem'),
          runtime: maybe(
            open({
              imageFs: definition('filesystem'),
              containerFs: definition('filesystem'),
            }),
          ),
          rlimit: maybe(open({ time: TIME, maxpid: COUNT, curproc: COUNT })),
          systemContainers: listOf(open({ name: TEXT, memory: definition('memory') }, ['name'])),
        }),
      ),
      pods: listOf(definition('podStats')),
    }),
  ),
};

/**
 * The JSON Schema of a scenario. What a text may say (a quantity, a duration, a signal) is left to what
 * reads it. Of Kubernetes' objects it names what is looked at; what else is in them is let be.
 */
export const SCENARIO_SCHEMA: Schema = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'Scenario',
  description:
    'A configuration, a node, pods and what was observed of them: what `evictd simulate FILE` runs.',
  ...closed(SCENARIO, ['name', 'description', 'config', 'node', 'pods', 'ticks']),
  definitions: DEFINITIONS,
};

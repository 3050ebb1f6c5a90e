import type { ScenarioConfig } from '../../src/config/scenario-config.ts';
import type { KubernetesPod, PodStats, Summary } from '../../src/core/kubernetes.ts';
import type { Compatibility } from '../../src/core/policy.ts';
import { simulate } from '../../src/simulation/engine.ts';
import type {
  Scenario,
  ScenarioExtension,
  SimulationResult,
  Tick,
  TickExtension,
} from '../../src/simulation/scenario.ts';

/** What a case says of a pod: `name(priority, QoS, request, use)`. */
export interface PodCase {
  readonly priority?: number;
  readonly memoryRequest?: string;
  readonly memoryLimit?: string;
  readonly storageRequest?: string;
  readonly storageLimit?: string;
  readonly grace?: number;
  readonly static?: boolean;
  readonly volumes?: KubernetesPod['spec']['volumes'];
}

export function podCase(name: string, fields: PodCase = {}): KubernetesPod {
  const { memoryRequest, memoryLimit, storageRequest, storageLimit } = fields;
  const list = (memory?: string, storage?: string) => ({
    ...(memory === undefined ? {} : { memory }),
    ...(storage === undefined ? {} : { 'ephemeral-storage': storage }),
  });
  return {
    metadata: {
      name,
      namespace: 'default',
      uid: `uid-${name}`,
      ...(fields.static ? { annotations: { 'kubernetes.io/config.source': 'file' } } : {}),
    },
    spec: {
      containers: [
        {
          name: 'main',
          resources: {
            requests: list(memoryRequest, storageRequest),
            limits: list(memoryLimit, storageLimit),
          },
        },
      ],
      priority: fields.priority ?? 0,
      ...(fields.grace === undefined ? {} : { terminationGracePeriodSeconds: fields.grace }),
      ...(fields.volumes === undefined ? {} : { volumes: fields.volumes }),
    },
  };
}

/** What a pod uses. */
export interface UseCase {
  readonly memoryBytes?: number;
  readonly rootfsBytes?: number;
  readonly logsBytes?: number;
  readonly inodes?: number;
  readonly volumes?: PodStats['volume'];
}

export function podStats(name: string, use: UseCase): PodStats {
  const memory = use.memoryBytes === undefined ? {} : { workingSetBytes: use.memoryBytes };
  const of = (usedBytes: number | undefined, inodesUsed?: number) => ({
    ...(usedBytes === undefined ? {} : { usedBytes }),
    ...(inodesUsed === undefined ? {} : { inodesUsed }),
  });
  return {
    podRef: { name, namespace: 'default', uid: `uid-${name}` },
    memory,
    containers: [
      {
        name: 'main',
        memory,
        rootfs: of(use.rootfsBytes, use.inodes),
        logs: of(use.logsBytes),
      },
    ],
    ...(use.volumes === undefined ? {} : { volume: use.volumes }),
  };
}

/** A round: when, what the node has, what each pod uses, and the rest of a tick. */
export interface RoundCase extends Omit<Tick, 'at' | 'summary'> {
  readonly at: number;
  readonly memory?: {
    readonly available: number;
    readonly capacity: number;
    readonly time?: string;
  };
  readonly nodefs?: NonNullable<Summary['node']>['fs'];
  readonly imagefs?: NonNullable<Summary['node']>['fs'];
  readonly use?: Readonly<Record<string, UseCase>>;
  readonly evictd?: TickExtension;
}

export function summaryCase({
  memory,
  nodefs,
  imagefs,
  use = {},
}: Pick<RoundCase, 'memory' | 'nodefs' | 'imagefs' | 'use'>): Summary {
  return {
    node: {
      ...(memory === undefined
        ? {}
        : {
            memory: {
              availableBytes: memory.available,
              workingSetBytes: memory.capacity - memory.available,
              ...(memory.time === undefined ? {} : { time: memory.time }),
            },
          }),
      fs: nodefs,
      runtime: { imageFs: imagefs },
    },
    pods: Object.entries(use).map(([name, one]) => podStats(name, one)),
  };
}

/** A case as a scenario. */
export function scenarioOf(
  name: string,
  config: ScenarioConfig,
  pods: readonly KubernetesPod[],
  rounds: readonly RoundCase[],
  more: Partial<Scenario['node']> & { readonly evictd?: ScenarioExtension } = {},
): Scenario {
  return {
    name,
    description: name,
    config,
    node: {
      dedicatedImageFs: more.dedicatedImageFs ?? false,
      splitImageFs: more.splitImageFs ?? false,
    },
    pods,
    ticks: rounds.map(({ at, memory, nodefs, imagefs, use, ...tick }) => ({
      ...tick,
      at: `${at}s`,
      summary: summaryCase({ memory, nodefs, imagefs, use } as RoundCase),
    })),
    ...(more.evictd === undefined ? {} : { evictd: more.evictd }),
  };
}

/** Runs it by one rule set. */
export function run(scenario: Scenario, compatibility: Compatibility): SimulationResult {
  return simulate(scenario, { flags: { '--compatibility': [compatibility] } });
}

/** Who went in each round, without their namespace; `!` after one whose kill failed. */
export function victims({ ticks }: SimulationResult): readonly (readonly string[])[] {
  return ticks.map(({ evicted }) =>
    evicted.map(({ pod, killFailed }) => `${pod.slice('default/'.length)}${killFailed ? '!' : ''}`),
  );
}

export function conditions({ ticks }: SimulationResult): readonly string[] {
  return ticks.map(({ nodeConditions }) => nodeConditions.join(','));
}

import type { ScenarioConfig } from '../config/scenario-config.ts';
import type { KubernetesPod, Summary } from '../core/kubernetes.ts';
import type { RecordedOutcome } from '../core/recorded.ts';

/** A configuration, a node, pods, and what was observed of them round by round. */
export interface Scenario {
  readonly name: string;
  readonly description: string;
  readonly config: ScenarioConfig;
  readonly node: { readonly dedicatedImageFs: boolean; readonly splitImageFs: boolean };
  readonly pods: readonly KubernetesPod[];
  readonly ticks: readonly Tick[];
  /** What only evictd has. */
  readonly evictd?: ScenarioExtension | null;
}

export interface ScenarioExtension {
  /** Why a pod may not be evicted, beside what protects it in Kubernetes; by `namespace/name`. */
  readonly protected?: Readonly<Record<string, string>>;
  /** How kills go that are not over at once; by `namespace/name`. */
  readonly kills?: Readonly<Record<string, Kill>>;
  /**
   * That the summaries are those of a recorded run: what a pod uses in them after it has been evicted
   * here is given back, and it is no active pod.
   */
  readonly recorded?: boolean;
  /** Whether it is known what pods use of the disks, true by default: else none is evicted for one. */
  readonly ranksDisk?: boolean;
  /** Whether dead containers and unused images can be collected; true by default. */
  readonly reclaims?: boolean;
}

export type CollectionMark = 'ended' | 'runs';

/** How an eviction ended, or why nothing was done. */
export type KillOutcome = RecordedOutcome;

export interface Kill {
  /**
   * A Go duration from the decision to the outcome; a kill that waits for a grace takes that as well.
   * Negative where the victim ended before its grace did.
   */
  readonly takes?: string;
  readonly outcome?: KillOutcome;
}

/** One round of the control loop. */
export interface Tick {
  /** A Go duration since the start. */
  readonly at: string;
  /** Missing or null where reading it failed. */
  readonly summary?: Summary | null;
  /** What reading it returns after a collection; as before where it is missing. */
  readonly summaryAfterReclaim?: Summary | null;
  /** `namespace/name`; all pods that were not evicted where it is missing. */
  readonly activePods?: readonly string[] | null;
  readonly imageGCFails?: boolean | null;
  readonly containerGCFails?: boolean | null;
  readonly killFails?: readonly string[] | null;
  readonly admit?: readonly KubernetesPod[] | null;
  readonly evictd?: TickExtension | null;
}

export interface TickExtension {
  /** What the kernel could free at this moment. */
  readonly memAvailableBytes?: number;
  /** How far the wall clock was set from here on: a Go duration, which may be negative. */
  readonly wallClockStep?: string;
  /** What is read after the round and before the next: by a wake-up, or at once. */
  readonly samples?: readonly ExtraSample[];
  /** The images of the node, for a collection that chooses among them. */
  readonly images?: readonly ImageEntry[];
  /** What is read in turn after a collection, while space comes back; `summaryAfterReclaim` comes first. */
  readonly summariesSettling?: readonly Summary[];
  /** That what was evicted for a disk still holds its space. */
  readonly spaceHeld?: boolean;
  /**
   * Where the collections of a recorded run came to their end: what was decided to be collected before is read in
   * this round, or goes on beyond the last one. What is decided within 35 s before it is awaited.
   */
  readonly collection?: CollectionMark;
  /** A configuration that holds from this round on, as after a reload. */
  readonly config?: ScenarioConfig;
  /** How kills go that are decided in this round, in place of the scenario's own; by `namespace/name`. */
  readonly kills?: Readonly<Record<string, Kill>>;
}

export interface ExtraSample {
  /** A Go duration after the round; 0 for the same moment. */
  readonly after: string;
  readonly summary?: Summary | null;
  readonly memAvailableBytes?: number;
}

export interface ImageEntry {
  readonly id: string;
  readonly sizeBytes: number;
  /** A Go duration since it was pulled. */
  readonly age: string;
  /** A Go duration since a container last used it; never where it is missing. */
  readonly lastUsed?: string;
  readonly inUse?: boolean;
  /** The pods that use it, by `namespace/name`; an evicted one no longer does. */
  readonly usedBy?: readonly string[];
  readonly pinned?: boolean;
}

/** What the manager did. Its shape is that of the conformance cases; `evictd` holds what is more. */
export interface SimulationResult {
  readonly name: string;
  readonly error?: string;
  readonly ticks: readonly TickResult[];
  readonly evictd?: { readonly warnings: readonly string[] };
}

export interface TickResult {
  readonly at: string;
  readonly nodeConditions: readonly string[];
  readonly reclaim: readonly string[];
  readonly events: readonly ResultEvent[];
  readonly evicted: readonly EvictedPod[];
  readonly ranked?: readonly string[];
  readonly admit: readonly AdmittedPod[];
  readonly evictd?: TickFacts;
}

export interface ResultEvent {
  readonly object: string;
  readonly type: string;
  readonly reason: string;
  readonly message: string;
}

export interface EvictedPod {
  readonly pod: string;
  readonly gracePeriodSeconds: number;
  readonly reason: string;
  readonly message: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly killFailed?: true;
}

export interface AdmittedPod {
  readonly pod: string;
  readonly admit: boolean;
  readonly reason: string;
  readonly message: string;
}

/** What of a round only evictd tells. */
export interface TickFacts {
  /** Signals whose figures could not be true. */
  readonly refused?: readonly string[];
  /** Evictions that ended after the round they were decided in. */
  readonly ended?: readonly {
    readonly pod: string;
    readonly at: string;
    readonly outcome: string;
  }[];
  /** A running eviction whose grace was cut. */
  readonly escalated?: readonly string[];
  /** Evicted pods whose status has the condition DisruptionTarget: they went for the node's sake. */
  readonly disruptionTarget?: readonly string[];
  /** Node conditions that come and go: told when that is found, and when it is over. */
  readonly flapping?: readonly FlapFact[];
  /** Why nothing was done under pressure. */
  readonly why?: string;
  /** The images that the collection took, in this order. */
  readonly images?: readonly string[];
  /** How many readings were awaited after a collection while space still came back. */
  readonly settlingReadings?: number;
}

/** That a condition was set again and again. */
export interface FlapFact {
  readonly condition: string;
  readonly kind: 'began' | 'ended';
  /** How often it was set. */
  readonly count: number;
  /** When it was set the first time. */
  readonly since: string;
}

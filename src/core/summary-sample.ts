import type { PodStats } from './kubernetes.ts';
import type { FilesystemLayout } from './layout.ts';
import type { SignalObservation } from './observation.ts';
import type { PodObservation } from './pod.ts';
import type { PodSpec } from './pod-spec.ts';
import type { Signal } from './signal.ts';
import type { OverLimit, Sample } from './state.ts';
import { exceededStorageLimit } from './storage-limits.ts';
import { type SummaryReading, statsByPod, summaryObservations, summaryPods } from './summary.ts';

/** A summary, and the pods that it is read for. */
export interface SampleReading extends SummaryReading {
  /** Those that run. */
  readonly specs: readonly PodSpec[];
  readonly layout: FilesystemLayout;
  /** Whether limits of local storage are enforced. */
  readonly checksLimits: boolean;
  /** What images take that a pod alone uses, bytes, by its name; unknown for all where it is left out. */
  readonly exclusiveImageBytes?: ((name: string) => number | undefined) | undefined;
}

const NONE: readonly OverLimit[] = [];

/** What a summary says, for `step`. What only some decisions need is worked out when it is asked for. */
export class SummarySample implements Sample {
  readonly nowMs: number;
  readonly observations: readonly SignalObservation[];
  /** A summary has all signals that there are. */
  readonly isComplete = true;
  /** Told by who makes the sample. */
  spaceHeld?: true;
  reclaimed?: true;
  /** The signals whose figures could not be true. */
  readonly refused: readonly Signal[];
  readonly #reading: SampleReading;
  #stats: ReadonlyMap<string, PodStats> | undefined;
  #pods: readonly PodObservation[] | undefined;
  #overLimits: readonly OverLimit[] | undefined;

  constructor(reading: SampleReading) {
    const { observations, refused } = summaryObservations(reading);
    this.nowMs = reading.nowMs;
    this.observations = observations;
    this.refused = refused;
    this.#reading = reading;
  }

  get pods(): readonly PodObservation[] {
    this.#pods ??= summaryPods(this.#reading.specs, this.#statsByPod(), this.#reading);
    return this.#pods;
  }

  /** In the order in which the pods run. */
  get overLimits(): readonly OverLimit[] {
    this.#overLimits ??= this.#isAnyOver() ? this.#findOverLimits() : NONE;
    return this.#overLimits;
  }

  #statsByPod(): ReadonlyMap<string, PodStats> {
    this.#stats ??= statsByPod(this.#reading.summary);
    return this.#stats;
  }

  /** Most often nobody is: then the stats are gone through once, and not even sorted by pod. */
  #isAnyOver(): boolean {
    const { summary, specs, layout, rules, checksLimits } = this.#reading;
    const limited = checksLimits ? limitedPods(specs) : undefined;
    if (limited === undefined || limited.size === 0) return false;
    return (
      summary.pods?.some((stats) => {
        const spec = limited.get(stats.podRef.uid);
        return spec !== undefined && exceededStorageLimit(spec, stats, layout, rules) !== undefined;
      }) ?? false
    );
  }

  #findOverLimits(): readonly OverLimit[] {
    const { specs, layout, rules } = this.#reading;
    return this.pods.flatMap((pod, index) => {
      const spec = specs[index] as PodSpec;
      const message = exceededStorageLimit(spec, this.#statsByPod().get(pod.id), layout, rules);
      return message === undefined ? [] : [{ pod, message }];
    });
  }
}

/** Those with limits, by uid. The list stays the same until a pod comes or goes: it is read once. */
function limitedPods(specs: readonly PodSpec[]): ReadonlyMap<string, PodSpec> {
  const known = LIMITED.get(specs);
  if (known !== undefined) return known;
  const limited = new Map<string, PodSpec>();
  for (const spec of specs) if (spec.storageLimits !== undefined) limited.set(spec.id, spec);
  LIMITED.set(specs, limited);
  return limited;
}

const LIMITED = new WeakMap<readonly PodSpec[], ReadonlyMap<string, PodSpec>>();

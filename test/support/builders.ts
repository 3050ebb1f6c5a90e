import type { Cause, Decision, EvictionOutcome, EvictionTiming } from '../../src/core/decision.ts';
import { disruptionTarget } from '../../src/core/message.ts';
import type { SignalObservation } from '../../src/core/observation.ts';
import type { ReadSample } from '../../src/core/pipeline.ts';
import type { PodObservation } from '../../src/core/pod.ts';
import type { Policy } from '../../src/core/policy.ts';
import { parsePercentage, parseQuantity } from '../../src/core/quantity.ts';
import { RULE_SETS } from '../../src/core/rules.ts';
import type { Threshold, ThresholdValue } from '../../src/core/threshold.ts';
import type { MemoryReading } from '../../src/ports/readings.ts';

export const MI = 2 ** 20;
export const GI = 2 ** 30;

/** A threshold's value as flags have it: `100Mi`, `10%`. */
export function value(text: string): ThresholdValue {
  return text.endsWith('%')
    ? { kind: 'percentage', nanoPercent: parsePercentage(text), text }
    : { kind: 'quantity', nano: parseQuantity(text), text };
}

/** Hard, at 100Mi of `memory.available`. */
export function threshold(overrides: Partial<Threshold> = {}): Threshold {
  return {
    signal: 'memory.available',
    kind: 'hard',
    value: value('100Mi'),
    gracePeriodMs: 0,
    minimumReclaim: undefined,
    ...overrides,
  };
}

/** Soft, at 200Mi, with 30 s of grace. */
export function softThreshold(overrides: Partial<Threshold> = {}): Threshold {
  return threshold({ kind: 'soft', value: value('200Mi'), gracePeriodMs: 30_000, ...overrides });
}

/** One hard threshold at 100Mi, no grace for victims, a transition period of 5 minutes. */
export function policy(overrides: Partial<Policy> = {}): Policy {
  return {
    thresholds: [threshold()],
    pressureTransitionPeriodMs: 300_000,
    maxPodGracePeriodSeconds: 0,
    hardEvictionGracePeriodSeconds: 0,
    rules: RULE_SETS.evictd,
    layout: 'single',
    ranksDisk: false,
    reclaims: [],
    ...overrides,
  };
}

/** A reading of `memory.available` at 0 ms on a node of 1Gi. */
export function observation(
  available: number,
  overrides: Partial<SignalObservation> = {},
): SignalObservation {
  return { signal: 'memory.available', capacity: GI, available, atMs: 0, ...overrides };
}

/** What was read at `nowMs`; `available` is undefined where the signal could not be read. */
export function sample(
  nowMs: number,
  available: number | undefined,
  overrides: Partial<ReadSample> = {},
): ReadSample {
  const observations = available === undefined ? [] : [observation(available, { atMs: nowMs })];
  return { nowMs, observations, ...overrides };
}

/** A BestEffort pod of priority 0 that uses 100Mi and asks for nothing. */
export function pod(name: string, overrides: Partial<PodObservation> = {}): PodObservation {
  return {
    id: `id-of-${name}`,
    name,
    priority: 0,
    qosClass: 'BestEffort',
    memoryRequestNano: 0n,
    workingSetBytes: 100 * MI,
    pids: undefined,
    gracePeriodSeconds: undefined,
    protectedBecause: undefined,
    atMs: 0,
    ...overrides,
  };
}

/** The hard threshold of 100Mi, at 50Mi. */
export function cause(overrides: Partial<Cause> = {}): Cause {
  return {
    threshold: threshold(),
    observation: observation(50 * MI),
    level: 100 * MI,
    reclaiming: false,
    ...overrides,
  };
}

type EvictDecision = Extract<Decision, { kind: 'evict' }>;

/** Evicts the pod `leak` for the hard threshold, without grace. */
export function evictDecision(overrides: Partial<EvictDecision> = {}): EvictDecision {
  const message = 'The node was low on resource: memory.';
  return {
    kind: 'evict',
    pod: pod('leak'),
    hard: true,
    gracePeriodMs: 0,
    gracePeriodSeconds: 0,
    cause: cause(),
    message,
    annotations: {},
    condition: disruptionTarget(message),
    ...overrides,
  };
}

type EscalateDecision = Extract<Decision, { kind: 'escalate' }>;

/** Cuts the grace of the pod `leak` to nothing. */
export function escalateDecision(overrides: Partial<EscalateDecision> = {}): EscalateDecision {
  return {
    kind: 'escalate',
    podId: 'id-of-leak',
    podName: 'leak',
    gracePeriodMs: 0,
    cause: cause(),
    message: 'The node was low on resource: memory.',
    ...overrides,
  };
}

/** Stages of an eviction; those that are not given were not reached. All at 0 ms by default. */
export function timing(overrides: Partial<EvictionTiming> = {}): EvictionTiming {
  return {
    decidedAtMs: 0,
    firstSignalAtMs: undefined,
    killedAtMs: undefined,
    emptyAtMs: undefined,
    endedAtMs: 0,
    ...overrides,
  };
}

type Ending =
  | { readonly kind: 'evicted'; readonly chargedBytes?: number | undefined }
  | Pick<Extract<EvictionOutcome, { kind: 'refused' }>, 'kind' | 'reason' | 'detail'>
  | (Pick<Extract<EvictionOutcome, { kind: 'timedOut' }>, 'kind' | 'reason' | 'detail'> & {
      readonly remaining?: number;
    })
  | Pick<Extract<EvictionOutcome, { kind: 'failed' }>, 'kind' | 'error'>;

/** How the eviction of the pod `name` ended. */
export function outcome(
  name: string,
  ending: Ending = { kind: 'evicted' },
  rest: { readonly timing?: Partial<EvictionTiming>; readonly processes?: number } = {},
): EvictionOutcome {
  const base = {
    podId: `id-of-${name}`,
    podName: name,
    timing: timing(rest.timing),
    processes: rest.processes ?? 0,
  };
  switch (ending.kind) {
    case 'evicted':
      return { ...base, chargedBytes: undefined, ...ending };
    case 'timedOut':
      return { ...base, remaining: 0, ...ending };
    case 'refused':
    case 'failed':
      return { ...base, ...ending };
  }
}

/** A reading of a node of 512Mi that uses 100Mi. */
export function reading(overrides: Partial<MemoryReading> = {}): MemoryReading {
  const capacityBytes = 512 * MI;
  return {
    signal: 'memory.available',
    atMs: 0,
    figures: 'counters',
    refused: undefined,
    usageBytes: 100 * MI,
    inactiveFileBytes: 0,
    workingSetBytes: 100 * MI,
    capacityBytes,
    availableBytes: { workingset: 412 * MI, memavailable: 412 * MI },
    deductedBytes: 0,
    uncountedBytes: 0,
    cgroupId: '1',
    ...overrides,
  };
}

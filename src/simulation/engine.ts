/**
 * The policy over a scenario, in virtual time: the daemon's own `step`, fed with what the scenario says
 * was observed, its decisions carried out as the scenario says they went.
 */
import type { FlagValues } from '../config/flags.ts';
import { scenarioSettings } from '../config/scenario-config.ts';
import { admitPod } from '../core/admission.ts';
import type { Decision, EvictionOutcome, EvictionTiming } from '../core/decision.ts';
import { formatDuration, parseDuration } from '../core/duration.ts';
import { assert, describeError, EvictdError, quote } from '../core/errors.ts';
import { type Flapping, flapping, NOT_FLAPPING } from '../core/flapping.ts';
import {
  exclusiveImages,
  FRESH_IMAGE_MS,
  type ImageObservation,
  imageKept,
  imagesToCollect,
} from '../core/image-gc.ts';
import type { KubernetesPod, Summary } from '../core/kubernetes.ts';
import { EVICTED } from '../core/message.ts';
import type { SignalObservation } from '../core/observation.ts';
import type { PodObservation } from '../core/pod.ts';
import type { PodSpec } from '../core/pod-spec.ts';
import type { Policy } from '../core/policy.ts';
import type { Ranked } from '../core/rank.ts';
import { isStillRising, type ReclaimFunction, SETTLING_READINGS } from '../core/reclaim.ts';
import {
  forgetFailures,
  INITIAL_STATE,
  type OverLimit,
  type Sample,
  type State,
  underAnotherPolicy,
} from '../core/state.ts';
import { type StepResult, step } from '../core/step.ts';
import { SummarySample } from '../core/summary-sample.ts';
import { thresholdLevel } from '../core/threshold.ts';
import { withGivenBack } from './given-back.ts';
import {
  type PathText,
  type Prepared,
  prepare,
  readable,
  readablePod,
  type SettingsReader,
} from './prepare.ts';
import type {
  AdmittedPod,
  EvictedPod,
  FlapFact,
  ImageEntry,
  KillOutcome,
  ResultEvent,
  Scenario,
  SimulationResult,
  Tick,
  TickFacts,
  TickResult,
} from './scenario.ts';

/** What a simulation may be told beside its scenario. */
export interface SimulationOptions {
  /** What is to hold in place of the scenario's configuration. */
  readonly flags?: FlagValues;
  /** How a configuration is checked; by default with the flags, each time. */
  readonly settings?: SettingsReader;
  /** Is told of each step, for the story. */
  readonly onStep?: (step: ObservedStep) => void;
}

/** A step as it was taken, for those who tell of it. */
export interface ObservedStep {
  readonly tick: number;
  readonly policy: Policy;
  readonly sample: Sample;
  readonly result: StepResult;
}

/** How many steps one round may take: two for each pod, and a few. */
const STEPS_PER_POD = 2;
const FEW_STEPS = 10;

/** How long before its recorded end a collection may be decided, ms: it takes 30 s at most. */
const COLLECTION_AWAITED_MS = 35_000;

/**
 * Runs a scenario. A configuration error is a result.
 *
 * @throws EvictdError EVICTD_SCENARIO for a pod, a duration or a name in it that cannot be read
 */
export function simulate(scenario: Scenario, options: SimulationOptions = {}): SimulationResult {
  const { name } = scenario;
  let prepared: Prepared;
  try {
    prepared = prepare(scenario, scenario.config, readerOf(options));
  } catch (error) {
    if (!(error instanceof EvictdError) || error.code === 'EVICTD_SCENARIO') throw error;
    return { name, error: describeError(error), ticks: [] };
  }
  const run = new Run(prepared, options);
  const ticks = scenario.ticks.map((tick, index) => run.round(tick, index));
  return {
    name,
    ticks,
    ...(prepared.warnings.length === 0 ? {} : { evictd: { warnings: prepared.warnings } }),
  };
}

function readerOf({ flags = {}, settings }: SimulationOptions): SettingsReader {
  return settings ?? ((config) => scenarioSettings(config, flags));
}

/** An eviction whose outcome is still to come. */
interface Pending {
  readonly decision: EvictDecision;
  readonly kind: KillOutcome;
  /** After its grace. */
  readonly takesMs: number;
  readonly endsAtMs: number;
}

type EvictDecision = Extract<Decision, { kind: 'evict' }>;

/** When something is looked at, and for which round. */
interface Moment {
  readonly tick: Tick;
  readonly index: number;
  readonly nowMs: number;
  readonly told: Told;
}

interface MemoryFacts {
  readonly memAvailableBytes?: number | undefined;
}

interface Seen extends Moment, MemoryFacts {
  readonly active: readonly PodSpec[];
  /** Those that went in this round, by name. */
  readonly went: Set<string>;
}

const NONE: readonly OverLimit[] = [];

/** A sample whose pods are worked out only where a decision needs them. */
class SimulatedSample implements Sample {
  readonly nowMs: number;
  readonly observations: readonly SignalObservation[] | undefined;
  /** A summary has all signals that there are. */
  readonly isComplete = true;
  readonly overLimits: readonly OverLimit[];
  readonly outcome?: EvictionOutcome;
  readonly reclaimed?: true;
  readonly #pods: () => readonly PodObservation[];

  constructor(
    { nowMs, observations, overLimits = NONE, outcome, reclaimed }: Omit<Sample, 'pods'>,
    pods: () => readonly PodObservation[],
  ) {
    this.nowMs = nowMs;
    this.observations = observations;
    this.overLimits = overLimits;
    if (outcome !== undefined) this.outcome = outcome;
    if (reclaimed !== undefined) this.reclaimed = reclaimed;
    this.#pods = pods;
  }

  get pods(): readonly PodObservation[] {
    return this.#pods();
  }
}

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

/** What a round has to tell, as it comes up. */
interface Told {
  readonly reclaim: ReclaimFunction[];
  readonly events: ResultEvent[];
  readonly evicted: EvictedPod[];
  ranked: readonly Ranked[] | undefined;
  readonly refused: string[];
  readonly ended: { pod: string; at: string; outcome: string }[];
  readonly escalated: string[];
  readonly images: string[];
  readonly disruptionTarget: string[];
  readonly flapping: FlapFact[];
  settlingReadings: number;
  why: string | undefined;
}

class Run {
  readonly #options: SimulationOptions;
  readonly #gone = new Set<string>();
  #prepared: Prepared;
  #byName: ReadonlyMap<string, PodSpec> | undefined;
  #state: State = INITIAL_STATE;
  #flapping: Flapping = NOT_FLAPPING;
  #pending: Pending | undefined;

  constructor(prepared: Prepared, options: SimulationOptions) {
    this.#options = options;
    this.#prepared = prepared;
  }

  #podNamed(name: string): PodSpec | undefined {
    this.#byName ??= new Map(this.#prepared.pods.map((pod) => [pod.name, pod]));
    return this.#byName.get(name);
  }

  round(tick: Tick, index: number): TickResult {
    const { rules, isOwn } = this.#prepared;
    const nowMs = readable(
      () => `ticks[${index}].at`,
      () => parseDuration(tick.at),
    );
    const told = nothingTold();
    this.#endPending({ tick, index, nowMs, told });
    if (rules.failedKill === 'kubelet') this.#state = forgetFailures(this.#state);
    if (isOwn) this.#reload(tick, index);
    const { first, later } = this.#prepared;
    const { summary, evictd } = tick;
    this.#observe(
      index === 0 ? first : later,
      { tick, index, nowMs, told },
      summary,
      evictd ?? undefined,
    );
    for (const extra of isOwn ? (evictd?.samples ?? []) : []) {
      const atMs =
        nowMs +
        readable(
          () => `ticks[${index}].evictd.samples`,
          () => parseDuration(extra.after),
        );
      this.#endPending({ tick, index, nowMs: atMs, told });
      this.#observe(later, { tick, index, nowMs: atMs, told }, extra.summary, extra);
    }
    return this.#result(tick, index, told);
  }

  /** Another configuration holds from here on. */
  #reload({ evictd }: Tick, index: number): void {
    if (evictd?.config === undefined) return;
    const { scenario } = this.#prepared;
    const config = { ...scenario.config, ...evictd.config };
    this.#prepared = readable(
      () => `ticks[${index}].evictd.config`,
      () => prepare(scenario, config, readerOf(this.#options)),
    );
    this.#byName = undefined;
    this.#state = underAnotherPolicy(this.#state);
  }

  /** Takes in a summary. */
  #observe(
    policy: Policy,
    moment: Moment,
    summary: Summary | null | undefined,
    { memAvailableBytes }: MemoryFacts = {},
  ): void {
    const { tick, index, nowMs, told } = moment;
    const active = this.#activePods(moment);
    const seen: Seen = {
      tick,
      index,
      nowMs,
      told,
      active,
      memAvailableBytes,
      went: new Set(),
    };
    this.#carryOut(policy, this.#view(summary, seen), seen);
    if (this.#prepared.isOwn) this.#noteFlaps(moment);
  }

  #noteFlaps({ nowMs, told }: Moment): void {
    const { pressureTransitionPeriodMs } = this.#prepared.later;
    const { conditions } = this.#state;
    this.#flapping = flapping(this.#flapping, conditions, nowMs, pressureTransitionPeriodMs);
    for (const { condition, kind, count, sinceMs } of this.#flapping.notices) {
      told.flapping.push({ condition, kind, count, since: formatDuration(sinceMs) });
    }
  }

  /** Steps through a sample, and carries out what is decided until nothing more is. */
  #carryOut(policy: Policy, first: Sample, seen: Seen): void {
    const { rules } = this.#prepared;
    const { nowMs, told, index, active } = seen;
    let view = first;
    let sample = view;
    let by = policy;
    const limit = FEW_STEPS + STEPS_PER_POD * active.length;
    for (let count = 0; count < limit; count += 1) {
      const { decision } = this.#step(by, sample, index, told);
      switch (decision.kind) {
        case 'none':
          if ('cause' in decision) told.why = decision.why;
          return;
        case 'observePods':
          assert(false, 'a simulated sample has its pods');
          return;
        case 'escalate':
          told.escalated.push(decision.podName);
          this.#escalate(nowMs, decision.gracePeriodMs);
          return;
        case 'reclaim': {
          if (this.#awaitsCollection(seen)) {
            told.reclaim.push(...decision.functions);
            return;
          }
          const fresh = this.#reclaim(decision, seen, view);
          const pods = rules.measuredAfterReclaim === 'kubelet' ? view : fresh;
          const { observations } = fresh;
          const after = { nowMs, observations, reclaimed: true } as const;
          sample = new SimulatedSample(after, () => pods.pods ?? []);
          by = this.#prepared.later;
          view = fresh;
          break;
        }
        case 'evict': {
          const outcome = this.#evict(decision, seen);
          if (outcome === undefined) return;
          const isOver =
            outcome.kind === 'evicted' || isPressureGone(outcome) || rules.failedKill === 'kubelet';
          const again = view;
          sample = isOver
            ? { nowMs, observations: undefined, outcome }
            : new SimulatedSample({ nowMs, observations: again.observations, outcome }, () =>
                this.#left(again.pods ?? [], seen),
              );
        }
      }
    }
    assert(false, 'a round ends');
  }

  /** Whether this round has what is read after a recorded collection, and one is awaited. */
  #endsCollection({ tick }: Seen): boolean {
    return (
      this.#prepared.isOwn &&
      tick.evictd?.collection === 'ended' &&
      this.#state.reclaiming !== undefined
    );
  }

  /** Whether what is read after a collection that is decided now stands in a later round, or beyond the last. */
  #awaitsCollection({ tick, index, nowMs }: Seen): boolean {
    const { isOwn, scenario } = this.#prepared;
    if (!isOwn) return false;
    if (tick.evictd?.collection === 'runs') return true;
    for (const { at, evictd } of scenario.ticks.slice(index + 1)) {
      if (parseDuration(at) - nowMs > COLLECTION_AWAITED_MS) return false;
      if (evictd?.collection !== undefined) return true;
    }
    return false;
  }

  /** Without those that went in this round: by the kubelet's rules it ends with an eviction. */
  #left<P extends { readonly name: string }>(pods: readonly P[], { went }: Seen): readonly P[] {
    if (went.size === 0 || !this.#prepared.isOwn) return pods;
    return pods.filter(({ name }) => !went.has(name));
  }

  /** Collects, and returns what is read after it. */
  #reclaim(
    { functions, cause }: Extract<Decision, { kind: 'reclaim' }>,
    seen: Seen,
    before: Sample,
  ): Sample {
    const { rules, isOwn } = this.#prepared;
    const { told, tick, nowMs } = seen;
    told.reclaim.push(...functions);
    const { threshold, observation } = cause;
    if (functions.includes('images') && tick.evictd?.images !== undefined) {
      const level = thresholdLevel(threshold, observation.capacity, true);
      const needed = Math.max(0, level - observation.available);
      const images = this.#images(seen);
      told.images.push(...imagesToCollect(images, needed, nowMs, rules).map(({ id }) => id));
    }
    const { summary, summaryAfterReclaim: after } = tick;
    let fresh = this.#view(after === undefined ? summary : after, seen);
    if (!isOwn) return fresh;
    const of = (sample: Sample): SignalObservation | undefined =>
      sample.observations?.find(({ signal }) => signal === threshold.signal);
    let last = of(before);
    for (const next of (tick.evictd?.summariesSettling ?? []).slice(0, SETTLING_READINGS)) {
      if (!isStillRising(last, of(fresh))) break;
      last = of(fresh);
      fresh = this.#view(next, seen);
      told.settlingReadings += 1;
    }
    return fresh;
  }

  /** Those of the tick, without pods that were evicted, and are not back, among who uses them. */
  #images(seen: Seen): readonly SimulatedImage[] {
    const {
      tick: { evictd },
      nowMs,
      active,
    } = seen;
    const isActive = new Set(this.#left(active, seen).map(({ name }) => name));
    return (evictd?.images ?? []).map((image, index) =>
      readable(
        () => `evictd.images[${index}]`,
        () => imageOf(image, nowMs, (name) => isActive.has(name) || !this.#gone.has(name)),
      ),
    );
  }

  /** What images take that a pod alone uses, by its name: worked out when the first one is asked for. */
  #exclusiveImages(seen: Seen): (name: string) => number | undefined {
    let bytes: ReadonlyMap<string, number> | undefined;
    return (name) => {
      bytes ??= exclusiveTo(this.#images(seen), this.#left(seen.active, seen), seen.nowMs);
      return bytes.get(name);
    };
  }

  #step(policy: Policy, sample: Sample, tick: number, told: Told): StepResult {
    const result = step(policy, this.#state, sample);
    this.#state = result.state;
    for (const { type, reason, message } of result.events) {
      told.events.push({ object: 'node', type, reason, message });
    }
    if (result.ranked !== undefined && result.ranked.length > 0) told.ranked = result.ranked;
    this.#options.onStep?.({ tick, policy, sample, result });
    return result;
  }

  #view(read: Summary | null | undefined, seen: Seen): Sample {
    const { nowMs, active, memAvailableBytes, told } = seen;
    const ends = this.#endsCollection(seen);
    if (read === undefined || read === null) {
      return { nowMs, observations: undefined, ...(ends ? { reclaimed: true } : {}) };
    }
    const { rules, memorySource, checksLimits, later } = this.#prepared;
    const summary = this.#isRecorded ? withGivenBack(read, this.#goneIds()) : read;
    const sample = new SummarySample({
      summary,
      nowMs,
      rules,
      memorySource,
      memAvailableBytes,
      specs: this.#left(active, seen),
      layout: later.layout,
      checksLimits,
      exclusiveImageBytes:
        rules.exclusiveImages === 'kubelet' ? undefined : this.#exclusiveImages(seen),
    });
    for (const signal of sample.refused) {
      if (!told.refused.includes(signal)) told.refused.push(signal);
    }
    if (seen.tick.evictd?.spaceHeld === true) sample.spaceHeld = true;
    if (ends) sample.reclaimed = true;
    return sample;
  }

  /** Ends a pod as the scenario says; undefined where that is not over yet. */
  #evict(decision: EvictDecision, { tick, nowMs, told, went }: Seen): EvictionOutcome | undefined {
    const { isOwn, scenario } = this.#prepared;
    const { pod, message, annotations, condition, gracePeriodSeconds } = decision;
    const kill = isOwn
      ? (tick.evictd?.kills?.[pod.name] ?? scenario.evictd?.kills?.[pod.name])
      : undefined;
    const kind = tick.killFails?.includes(pod.name) ? 'failed' : (kill?.outcome ?? 'evicted');
    const takes = kill?.takes;
    const takesMs =
      takes === undefined
        ? 0
        : readable(
            () => `evictd.kills[${quote(pod.name)}].takes`,
            () => parseDuration(takes),
          );
    const evicted = { pod: pod.name, gracePeriodSeconds, reason: EVICTED, message, annotations };
    told.evicted.push(kind === 'evicted' ? evicted : { ...evicted, killFailed: true });
    told.events.push({ object: pod.name, type: 'Warning', reason: EVICTED, message });
    if (condition !== undefined) told.disruptionTarget.push(pod.name);
    const endsAtMs = nowMs + decision.gracePeriodMs + takesMs;
    if (takesMs !== 0 && endsAtMs > nowMs) {
      this.#pending = { decision, kind, takesMs, endsAtMs };
      return undefined;
    }
    if (kind === 'evicted') {
      this.#gone.add(pod.name);
      went.add(pod.name);
    }
    return outcomeOf(decision, nowMs, kind);
  }

  #escalate(nowMs: number, gracePeriodMs: number): void {
    assert(this.#pending !== undefined, 'what is escalated runs');
    const { endsAtMs, takesMs } = this.#pending;
    const soonestMs = nowMs + gracePeriodMs + takesMs;
    this.#pending = { ...this.#pending, endsAtMs: Math.min(endsAtMs, soonestMs) };
  }

  /**
   * Tells the core of the eviction that has ended by now, at the moment at which it did; another may
   * begin there, and end by now.
   */
  #endPending(moment: Moment): void {
    for (let pending = this.#pending; pending !== undefined; pending = this.#pending) {
      const { decision, kind, endsAtMs } = pending;
      if (endsAtMs > moment.nowMs) return;
      this.#pending = undefined;
      if (kind === 'evicted') this.#gone.add(decision.pod.name);
      const { told } = moment;
      told.ended.push({ pod: decision.pod.name, at: formatDuration(endsAtMs), outcome: kind });
      const outcome = outcomeOf(decision, endsAtMs, kind);
      const active = this.#activePods(moment);
      const seen: Seen = { ...moment, nowMs: endsAtMs, active, went: new Set() };
      const sample = { nowMs: endsAtMs, observations: undefined, outcome };
      this.#carryOut(this.#prepared.later, sample, seen);
    }
  }

  #activePods({ tick: { activePods }, index: tick }: Moment): readonly PodSpec[] {
    if (activePods === undefined || activePods === null) {
      if (this.#gone.size === 0) return this.#prepared.pods;
      return this.#prepared.pods.filter(({ name }) => !this.#gone.has(name));
    }
    const named = activePods.map((name, index) => {
      const pod = this.#podNamed(name);
      if (pod !== undefined) return pod;
      const message = `ticks[${tick}].activePods[${index}]: no pod of the scenario: ${quote(name)}`;
      throw new EvictdError('EVICTD_SCENARIO', message);
    });
    return this.#isRecorded ? named.filter(({ name }) => !this.#gone.has(name)) : named;
  }

  get #isRecorded(): boolean {
    return this.#prepared.scenario.evictd?.recorded === true && this.#gone.size > 0;
  }

  #goneIds(): ReadonlySet<string> {
    return new Set([...this.#gone].flatMap((name) => this.#podNamed(name)?.id ?? []));
  }

  #result({ at, admit }: Tick, index: number, told: Told): TickResult {
    const { conditions } = this.#state;
    const { reclaim, events, evicted, ranked } = told;
    const facts = factsOf(told);
    const admission =
      admit?.map((pod, place) =>
        admitted(pod, conditions, () => `ticks[${index}].admit[${place}]`),
      ) ?? [];
    // In the order in which they are printed.
    const result: Writable<TickResult> =
      ranked === undefined
        ? { at, nodeConditions: conditions, reclaim, events, evicted, admit: admission }
        : {
            at,
            nodeConditions: conditions,
            reclaim,
            events,
            evicted,
            ranked: ranked.map(({ pod }) => pod.name),
            admit: admission,
          };
    if (facts !== undefined) result.evictd = facts;
    return result;
  }
}

function admitted(
  pod: KubernetesPod,
  conditions: State['conditions'],
  path: PathText,
): AdmittedPod {
  const { name, namespace } = pod.metadata;
  const admission = readablePod(path, pod, () => admitPod(pod, conditions));
  return { pod: `${namespace}/${name}`, ...admission };
}

function nothingTold(): Told {
  return {
    reclaim: [],
    events: [],
    evicted: [],
    ranked: undefined,
    refused: [],
    ended: [],
    escalated: [],
    images: [],
    disruptionTarget: [],
    flapping: [],
    settlingReadings: 0,
    why: undefined,
  };
}

/**
 * What only evictd tells; undefined where that is nothing. One field after the other: a spread for each takes
 * many times as long.
 */
function factsOf(told: Told): TickFacts | undefined {
  const { refused, ended, escalated, images, disruptionTarget, settlingReadings, why } = told;
  const facts: Writable<TickFacts> = {};
  if (refused.length > 0) facts.refused = refused;
  if (ended.length > 0) facts.ended = ended;
  if (escalated.length > 0) facts.escalated = escalated;
  if (images.length > 0) facts.images = images;
  if (disruptionTarget.length > 0) facts.disruptionTarget = disruptionTarget;
  if (told.flapping.length > 0) facts.flapping = told.flapping;
  if (settlingReadings > 0) facts.settlingReadings = settlingReadings;
  if (why !== undefined) facts.why = why;
  return Object.keys(facts).length === 0 ? undefined : facts;
}

/** By what was read since: the same figures would only decide the same again. */
function isPressureGone(outcome: EvictionOutcome): boolean {
  return outcome.kind === 'refused' && outcome.reason === 'pressureGone';
}

/** How a simulated eviction ended. */
function outcomeOf({ pod }: EvictDecision, nowMs: number, kind: KillOutcome): EvictionOutcome {
  const { id: podId, name: podName } = pod;
  const processes = 0;
  const timing: EvictionTiming = {
    decidedAtMs: nowMs,
    firstSignalAtMs: undefined,
    killedAtMs: undefined,
    emptyAtMs: undefined,
    endedAtMs: nowMs,
  };
  switch (kind) {
    case 'evicted':
      return { podId, podName, processes, timing, kind, chargedBytes: undefined };
    case 'timedOut':
      return { podId, podName, processes, timing, kind, reason: 'deadline', remaining: 0 };
    case 'failed': {
      const error = 'the scenario has this kill fail';
      return { podId, podName, processes, timing, kind, error };
    }
    case 'nothingToKill':
    case 'pressureGone':
    case 'dryRun':
      return { podId, podName, processes, timing, kind: 'refused', reason: kind };
  }
}

/** An image with who uses it, as far as that is said. */
interface SimulatedImage extends ImageObservation {
  readonly usedBy: readonly string[];
}

function imageOf(
  { id, sizeBytes, age, lastUsed, inUse, usedBy = [], pinned }: ImageEntry,
  nowMs: number,
  isThere: (pod: string) => boolean,
): SimulatedImage {
  const users = usedBy.filter(isThere);
  return {
    id,
    sizeBytes,
    firstSeenAtMs: nowMs - parseDuration(age),
    lastUsedAtMs: lastUsed === undefined ? undefined : nowMs - parseDuration(lastUsed),
    inUse: inUse === true || users.length > 0,
    pinned: pinned === true,
    // Used by something that is no pod, too.
    usedBy: inUse === true ? [...users, ''] : users,
  };
}

function exclusiveTo(
  images: readonly SimulatedImage[],
  active: readonly PodSpec[],
  nowMs: number,
): ReadonlyMap<string, number> {
  const names = new Set(active.map(({ name }) => name));
  const used = images.map((image) => {
    const isKept = imageKept({ ...image, inUse: false }, FRESH_IMAGE_MS, nowMs) !== undefined;
    return { sizeBytes: image.sizeBytes, usedBy: image.usedBy, isKept };
  });
  return exclusiveImages(used, (name) => (names.has(name) ? name : undefined));
}

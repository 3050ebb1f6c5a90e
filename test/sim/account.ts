/**
 * A second account of a scenario, from its own numbers: when each threshold was met first, what is due,
 * who goes. The engine's steps tell what happened (a summary was read, a kill ended); what is to follow
 * is worked out here, by no code of the core.
 */
import type { KubernetesPod, PodStats, Summary } from '../../src/core/kubernetes.ts';
import type { Compatibility } from '../../src/core/policy.ts';
import type { Signal } from '../../src/core/signal.ts';
import type { ObservedStep } from '../../src/simulation/engine.ts';
import type { Scenario, SimulationResult, Tick } from '../../src/simulation/scenario.ts';
import { demand } from './invariants.ts';
import {
  exceedsItsLimits,
  firstToGo,
  hasNothingThere,
  imagesOfPods,
  isOfImages,
  isSpared,
  nameOf,
} from './order.ts';
import {
  levelOf,
  levelWithReclaim,
  msOf,
  type PlainThreshold,
  type Reading,
  readingsOf,
  thresholdsIn,
} from './plain.ts';

/** How often what is worth testing came up. */
export const COUNTED = [
  'steps',
  'evictions',
  'for memory',
  'for a disk',
  'for inodes',
  'for PIDs',
  'for images',
  'soft evictions',
  'for minimum reclaim',
  'for storage limits',
  'nothing on the disk',
  'kills that failed',
  'kills that took time',
  'next candidate after a failure',
  'graces cut short',
  'collections',
  'collections that were enough',
  'short after a collection for a disk',
  'nobody may go',
  'graces that were broken off',
  'old figures',
  'figures refused',
  'signals missing',
  'conditions raised',
  'conditions ended',
  'refused pods',
  'admitted under pressure',
] as const;

export type Counted = (typeof COUNTED)[number];
export type Counts = Record<Counted, number>;

export function noCounts(): Counts {
  return Object.fromEntries(COUNTED.map((name) => [name, 0])) as Counts;
}

/** Figures, and the threshold that they are short of. */
interface Cause {
  readonly threshold: PlainThreshold;
  readonly reading: Reading;
  readonly level: number;
}

/** An eviction from its decision to its outcome. */
interface Flight {
  readonly pod: string;
  readonly signal: Signal | undefined;
  readonly hard: boolean;
  readonly outcome: string;
  readonly takesMs: number;
  readonly endsAtMs: number;
}

/** What was looked at. */
interface Look {
  readonly summary: Summary | null;
  readonly readings: ReadonlyMap<Signal, Reading> | undefined;
  readonly active: readonly KubernetesPod[];
}

/** How long who could not be evicted is passed over: as ARCHITECTURE.md has it, under "Limits". */
const PASSED_OVER_MS = 60_000;
const PASSED_OVER_EMPTY_MS = 1000;
/** For how long PIDs of what was evicted for them may still come back. */
const PIDS_AWAITED_MS = 2000;
/** How often evictd collects for one signal. */
const COLLECT_AGAIN_MS = 10_000;
/** How old the figures may be by which somebody goes for a limit of his own. */
const OVER_LIMIT_AGE_MS = 1000;

/** Memory and PIDs: nothing is collected for them. */
function isNotOfDisk({ threshold: { signal } }: Cause): boolean {
  return conditionOf(signal) !== 'DiskPressure';
}

export class Account {
  readonly #scenario: Scenario;
  readonly #rules: Compatibility;
  readonly #counts: Counts;
  readonly #transitionMs: number;
  readonly #hardGraceSeconds: number;
  readonly #ticksAtMs: readonly number[];
  #looks = 0;
  #look: Look = { summary: null, readings: undefined, active: [] };
  #before: Look = this.#look;
  #met = new Set<string>();
  #graceEndsMs: readonly number[] = [];
  #due: readonly PlainThreshold[] = [];
  #since = new Map<string, number>();
  readonly #seenAtMs = new Map<string, number>();
  #conditions: readonly string[] = [];
  #times = new Map<Signal, bigint | undefined>();
  #flight: Flight | undefined;
  readonly #passedOver = new Map<string, number>();
  #pidsAwaitedMs = Number.NEGATIVE_INFINITY;
  readonly #collectedAtMs = new Map<Signal, number>();
  #collectingFor: Cause | undefined;
  /** What was collected for, where no new figures have told since whether it was enough. */
  #unmeasured: Signal | undefined;
  #over: readonly string[] = [];
  #overAtMs = Number.NEGATIVE_INFINITY;
  readonly #gone = new Set<string>();
  /** Those of them that went since the last look at the node: what a collection leaves is read without them. */
  readonly #went = new Set<string>();
  readonly #announced = new Set<string>();
  /** By tick. */
  readonly #evicted: string[][];
  readonly #collected: string[][];
  readonly #conditionsAt: (readonly string[])[];

  constructor(scenario: Scenario, rules: Compatibility, counts: Counts) {
    const { config, ticks } = scenario;
    const transition = config.evictionPressureTransitionPeriod ?? '5m0s';
    this.#scenario = scenario;
    this.#rules = rules;
    this.#counts = counts;
    this.#transitionMs = msOf(transition) || (rules === 'kubelet' ? 300_000 : 0);
    this.#hardGraceSeconds = config.hardEvictionGracePeriodSeconds ?? (rules === 'kubelet' ? 1 : 0);
    this.#ticksAtMs = ticks.map(({ at }) => msOf(at));
    this.#evicted = ticks.map(() => []);
    this.#collected = ticks.map(() => []);
    this.#conditionsAt = ticks.map(() => []);
  }

  /**
   * Takes in a step, and compares what was decided.
   *
   * @throws Breach
   */
  take({ tick: index, sample, result }: ObservedStep): void {
    const { nowMs } = sample;
    const tick = this.#scenario.ticks[index] as Tick;
    this.#counts.steps += 1;
    for (const [name, untilMs] of this.#passedOver) {
      if (untilMs <= nowMs) this.#passedOver.delete(name);
    }
    if (sample.outcome !== undefined) this.#settle(sample.outcome, nowMs);
    const isAfterCollection = sample.reclaimed === true;
    const isNew = sample.outcome === undefined && !isAfterCollection;
    const isLook = sample.outcome === undefined || sample.observations !== undefined;
    if (isNew) {
      const flight = this.#flight;
      demand(
        'allRead',
        flight === undefined || flight.endsAtMs > nowMs,
        () => `${flight?.pod} ended at ${flight?.endsAtMs} ms, it is ${nowMs} ms and nobody knows`,
      );
      this.#look = this.#newLook(tick, index, nowMs);
      this.#looks += 1;
    }
    if (isAfterCollection) {
      this.#before = this.#look;
      this.#look = this.#lookAfterCollection(tick);
    }
    const { readings } = this.#look;
    demand(
      'allRead',
      !isLook || (sample.observations === undefined) === (readings === undefined),
      () => `at ${nowMs} ms a summary was ${readings === undefined ? 'missing' : 'not read'}`,
    );
    const isTakenIn =
      isLook && readings !== undefined && !(isAfterCollection && this.#rules === 'kubelet');
    if (isTakenIn) this.#observe(readings, index, nowMs);
    if (isTakenIn && this.#rules === 'evictd') this.#over = [];
    if (isNew && readings !== undefined) {
      this.#over = this.#aboveTheirLimits();
      this.#overAtMs = nowMs;
    }
    if (!this.#due.some(({ signal }) => signal === this.#unmeasured)) this.#unmeasured = undefined;
    this.#checkConditions(result.conditions, nowMs, isLook && readings !== undefined);
    this.#conditionsAt[index] = result.conditions;
    this.#checkEvents(result, nowMs);
    this.#judge(result.decision, { index, nowMs, isLook, isAfterCollection });
    if (isTakenIn) this.#rememberTimes(readings);
    this.#checkWakeAt(result.wakeAtMs, nowMs);
  }

  /**
   * Compares what was told in the end.
   *
   * @throws Breach
   */
  finish(result: SimulationResult): void {
    const { ticks } = this.#scenario;
    const extras = ticks.map(({ evictd }) => evictd?.samples?.length ?? 0);
    const looks =
      this.#rules === 'evictd'
        ? extras.reduce((sum, one) => sum + one, ticks.length)
        : ticks.length;
    demand('allRead', this.#looks === looks, () => `${this.#looks} looks at ${looks} summaries`);
    for (const [index, told] of result.ticks.entries()) {
      const tick = ticks[index] as Tick;
      const evicted = told.evicted.map(({ pod }) => pod);
      const same = (one: readonly string[], other: readonly string[] = []): boolean =>
        one.join('|') === other.join('|');
      demand(
        'toldAsDone',
        same(evicted, this.#evicted[index]),
        () => `tick ${index} tells of ${evicted}, evicted were ${this.#evicted[index]}`,
      );
      demand(
        'toldAsDone',
        same(told.reclaim, this.#collected[index]),
        () => `tick ${index} tells of ${told.reclaim}, collected were ${this.#collected[index]}`,
      );
      demand(
        'toldAsDone',
        same(told.nodeConditions, this.#conditionsAt[index]),
        () =>
          `tick ${index} tells of ${told.nodeConditions}, held have ${this.#conditionsAt[index]}`,
      );
      for (const pod of told.evicted) {
        const fails = this.#killOf(pod.pod, tick).outcome !== 'evicted';
        demand(
          'toldAsDone',
          (pod.killFailed === true) === fails,
          () => `tick ${index}: ${pod.pod} is told to ${fails ? 'have gone' : 'have failed'}`,
        );
      }
      this.#checkAdmission(tick, told.nodeConditions, told.admit);
      this.#counts['figures refused'] += told.evictd?.refused?.length ?? 0;
    }
  }

  #newLook(tick: Tick, index: number, nowMs: number): Look {
    this.#went.clear();
    const afterMs = nowMs - (this.#ticksAtMs[index] as number);
    const extra = tick.evictd?.samples?.find(({ after }) => msOf(after) === afterMs);
    demand(
      'allRead',
      afterMs === 0 || extra !== undefined,
      () => `at ${nowMs} ms, in tick ${index}, there is nothing to read`,
    );
    const summary = (afterMs === 0 ? tick.summary : extra?.summary) ?? null;
    const second = afterMs === 0 ? tick.evictd?.memAvailableBytes : extra?.memAvailableBytes;
    return this.#lookAt(summary, tick, second);
  }

  #lookAt(summary: Summary | null, tick: Tick, second: number | undefined): Look {
    const { pods } = this.#scenario;
    const said =
      tick.activePods?.map((name) => pods.find((pod) => nameOf(pod) === name) as KubernetesPod) ??
      pods.filter((pod) => !this.#gone.has(nameOf(pod)));
    const active = said.filter((pod) => !this.#went.has(nameOf(pod)));
    const readings = summary === null ? undefined : readingsOf(summary, this.#rules, second);
    return { summary, readings, active };
  }

  #lookAfterCollection(tick: Tick): Look {
    const { summary, summaryAfterReclaim: after, evictd } = tick;
    const second = evictd?.memAvailableBytes;
    let look = this.#lookAt((after === undefined ? summary : after) ?? null, tick, second);
    const signal = this.#collectingFor?.threshold.signal as Signal;
    let last = this.#before.readings?.get(signal)?.available;
    for (const next of this.#rules === 'evictd' ? (evictd?.summariesSettling ?? []) : []) {
      const now = look.readings?.get(signal)?.available;
      // Space still comes back: it is waited for.
      if (last === undefined || now === undefined || now <= last) break;
      last = now;
      look = this.#lookAt(next, tick, second);
    }
    return look;
  }

  /** The eviction in flight ended, when and how the scenario has it. */
  #settle(outcome: { readonly podName: string; readonly kind: string }, nowMs: number): void {
    const flight = this.#flight;
    demand(
      'allRead',
      flight !== undefined && flight.pod === outcome.podName,
      () => `${outcome.podName} ended, in flight was ${flight?.pod}`,
    );
    demand(
      'allRead',
      flight.endsAtMs === nowMs,
      () => `${flight.pod} ended at ${nowMs} ms, not at ${flight.endsAtMs} ms`,
    );
    const kind = outcome.kind === 'refused' ? 'nothingToKill' : outcome.kind;
    demand(
      'allRead',
      kind === flight.outcome,
      () => `${flight.pod} ended as ${kind}, not as ${flight.outcome}`,
    );
    this.#flight = undefined;
    this.#over = this.#over.filter((name) => name !== flight.pod);
    if (kind === 'evicted') {
      this.#gone.add(flight.pod);
      if (this.#rules === 'evictd' && flight.takesMs === 0) {
        this.#went.add(flight.pod);
        const active = this.#look.active.filter((pod) => nameOf(pod) !== flight.pod);
        this.#look = { ...this.#look, active };
      }
      if (flight.signal === 'pid.available') this.#pidsAwaitedMs = nowMs + PIDS_AWAITED_MS;
      // What it leaves is collected before anybody else goes.
      if (flight.signal !== undefined && this.#isOfImages(flight.signal)) {
        for (const signal of this.#collectedAtMs.keys()) {
          if (this.#isOfImages(signal)) this.#collectedAtMs.delete(signal);
        }
      }
      return;
    }
    this.#counts['kills that failed'] += 1;
    if (this.#rules === 'kubelet') return;
    const forMs = kind === 'nothingToKill' ? PASSED_OVER_EMPTY_MS : PASSED_OVER_MS;
    this.#passedOver.set(flight.pod, nowMs + forMs);
    if (flight.signal !== undefined) this.#times.delete(flight.signal);
  }

  #isOfImages(signal: Signal): boolean {
    const { node } = this.#scenario;
    return isOfImages({ signal, node, compatibility: this.#rules });
  }

  #observe(readings: ReadonlyMap<Signal, Reading>, index: number, nowMs: number): void {
    const acted = new Set(this.#due.map(({ id }) => id));
    const thresholds = thresholdsIn(this.#scenario, this.#rules, index === 0);
    const met = thresholds.filter((threshold) => {
      const reading = readings.get(threshold.signal);
      if (reading === undefined) {
        this.#counts['signals missing'] += 1;
        return this.#rules === 'evictd' && this.#met.has(threshold.id);
      }
      return reading.available < this.#level(threshold, reading, acted.has(threshold.id));
    });
    const since = new Map(met.map(({ id }) => [id, this.#since.get(id) ?? nowMs]));
    for (const id of this.#since.keys()) {
      if (!since.has(id) && id.startsWith('soft') && !acted.has(id)) {
        this.#counts['graces that were broken off'] += 1;
      }
    }
    this.#since = since;
    this.#met = new Set(met.map(({ id }) => id));
    this.#graceEndsMs = met.map(({ id, graceMs }) => (since.get(id) as number) + graceMs);
    if (met.length === 0) this.#announced.clear();
    this.#due = met.filter(({ id, graceMs, signal }) => {
      const isHeld = nowMs - (since.get(id) as number) >= graceMs;
      return isHeld && (readings.has(signal) || acted.has(id));
    });
    // A collection that was enough has left something.
    for (const signal of this.#collectedAtMs.keys()) {
      if (!this.#due.some((one) => one.signal === signal)) this.#collectedAtMs.delete(signal);
    }
    for (const { signal } of met) {
      if (readings.has(signal)) this.#seenAtMs.set(conditionOf(signal), nowMs);
    }
  }

  #level(threshold: PlainThreshold, { capacity }: Reading, withReclaim: boolean): number {
    return withReclaim
      ? levelWithReclaim(threshold, capacity, this.#rules)
      : levelOf(threshold.text, capacity, this.#rules);
  }

  #isNew(signal: Signal, { timeNs }: Reading): boolean {
    const before = this.#times.get(signal);
    if (timeNs === undefined || before === undefined) return true;
    return this.#rules === 'kubelet' ? timeNs > before : timeNs !== before;
  }

  #rememberTimes(readings: ReadonlyMap<Signal, Reading>): void {
    if (this.#rules === 'kubelet') this.#times = new Map();
    for (const [signal, { timeNs }] of readings) this.#times.set(signal, timeNs);
  }

  /** What is due by new figures, the first to act first. */
  #causes(): readonly Cause[] {
    const { readings } = this.#look;
    const all = this.#due.flatMap((threshold) => {
      const reading = readings?.get(threshold.signal);
      return reading === undefined ? [] : [this.#causeOf(threshold, reading)];
    });
    const fresh = all.filter(({ threshold, reading }) => this.#isNew(threshold.signal, reading));
    if (fresh.length < all.length) this.#counts['old figures'] += 1;
    let left = fresh;
    const ordered: Cause[] = [];
    while (left.length > 0) {
      let best = left.filter(({ threshold }) => conditionOf(threshold.signal) === 'MemoryPressure');
      if (best.length === 0) best = left;
      const hard = best.filter(({ threshold }) => threshold.kind === 'hard');
      if (hard.length > 0) best = hard;
      const share = ({ threshold, reading }: Cause): number =>
        reading.available / this.#level(threshold, reading, false);
      const least = Math.min(...best.map(share));
      best = best.filter((one) => share(one) === least);
      const name = best.map(({ threshold }) => threshold.id).sort()[0];
      const next = best.find(({ threshold }) => threshold.id === name) as Cause;
      ordered.push(next);
      left = left.filter((one) => one !== next);
    }
    return ordered;
  }

  #causeOf(threshold: PlainThreshold, reading: Reading): Cause {
    const plain = this.#level(threshold, reading, false);
    const level = reading.available < plain ? plain : this.#level(threshold, reading, true);
    return { threshold, reading, level };
  }

  #aboveTheirLimits(): readonly string[] {
    const { config, node } = this.#scenario;
    if (config.localStorageCapacityIsolation === false) return [];
    const statsOf = statsIn(this.#look.summary);
    return this.#look.active
      .filter((pod) => !isSpared(pod) && exceedsItsLimits(pod, statsOf(pod), node, this.#rules))
      .map(nameOf)
      .filter((name) => !this.#passedOver.has(name));
  }

  #judge(
    decision: ObservedStep['result']['decision'],
    at: {
      readonly index: number;
      readonly nowMs: number;
      readonly isLook: boolean;
      readonly isAfterCollection: boolean;
    },
  ): void {
    const { nowMs, isLook } = at;
    if (this.#flight !== undefined) {
      this.#judgeInFlight(decision, this.#flight, nowMs, isLook);
      return;
    }
    const [first] = this.#over;
    const isOld = nowMs - this.#overAtMs > OVER_LIMIT_AGE_MS && this.#rules === 'evictd';
    const over = isOld ? undefined : first;
    if (over !== undefined) {
      demand(
        'ownLimits',
        decision.kind === 'evict' && decision.pod.name === over,
        () => `${this.#over} exceed their limits, decided was ${describe(decision)}`,
      );
      this.#over = this.#over.slice(1);
      this.#counts['for storage limits'] += 1;
      demand(
        'graceOfVictim',
        decision.gracePeriodSeconds === this.#hardGraceSeconds,
        () => `${over} was given ${decision.gracePeriodSeconds} s`,
      );
      this.#begin(over, undefined, true, decision.gracePeriodSeconds, at);
      return;
    }
    demand(
      'ownLimits',
      decision.kind !== 'evict' || decision.cause !== undefined,
      () => `nobody exceeds a limit, decided was ${describe(decision)}`,
    );
    const collecting = this.#collectingFor;
    if (at.isAfterCollection) {
      this.#collectingFor = undefined;
      const before = this.#rules === 'evictd' ? this.#causes().find(isNotOfDisk) : undefined;
      if (before === undefined) this.#judgeAfterCollection(decision, collecting as Cause, at);
      else {
        this.#counts['short after a collection for a disk'] += 1;
        this.#judgeVictim(decision, before, this.#look, at);
      }
      return;
    }
    const causes = isLook ? this.#causes() : [];
    const cause = causes[0];
    if (cause === undefined) {
      demand(
        'newFigures',
        decision.kind === 'none' || this.#due.length === 0,
        () => `nothing new is due, decided was ${describe(decision)}`,
      );
      this.#demandPressure(decision, nowMs);
      demand(
        'onlyUnderPressure',
        decision.kind === 'none',
        () => `nothing is due, decided was ${describe(decision)}`,
      );
      return;
    }
    this.#demandPressure(decision, nowMs);
    const functions = this.#collectionFor(cause.threshold.signal, nowMs);
    if (functions.length > 0) {
      demand(
        'collectedFirst',
        decision.kind === 'reclaim',
        () =>
          `${functions} are to be collected for ${cause.threshold.id}, decided was ${describe(decision)}`,
      );
      demand(
        'collectedFirst',
        decision.functions.join() === functions.join(),
        () => `${functions} are to be collected, decided was ${decision.functions}`,
      );
      this.#demandCause(decision, cause);
      this.#counts.collections += 1;
      this.#collectingFor = cause;
      this.#collectedAtMs.set(cause.threshold.signal, nowMs);
      this.#collected[at.index]?.push(...functions);
      return;
    }
    this.#judgeVictim(decision, cause, this.#look, at);
  }

  /** That what acts was met for as long as it had to be. */
  #demandPressure(decision: ObservedStep['result']['decision'], nowMs: number): void {
    if (!('cause' in decision) || decision.cause === undefined) return;
    const { threshold, observation } = decision.cause;
    const id = `${threshold.kind}:${threshold.signal}`;
    const since = this.#since.get(id);
    demand(
      'onlyUnderPressure',
      since !== undefined && this.#met.has(id),
      () => `${id} is not met at ${observation.available} of ${observation.capacity}`,
    );
    demand(
      'notBeforeItsGrace',
      this.#due.some((one) => one.id === id),
      () => `${id} was met first at ${since} ms, it is ${nowMs} ms`,
    );
  }

  #demandCause(decision: ObservedStep['result']['decision'], { threshold, reading }: Cause): void {
    if (!('cause' in decision) || decision.cause === undefined) return;
    const { threshold: of, observation } = decision.cause;
    demand(
      'firstThreshold',
      `${of.kind}:${of.signal}` === threshold.id,
      () => `${threshold.id} is to act, ${of.kind}:${of.signal} did`,
    );
    demand(
      'firstThreshold',
      observation.available === reading.available,
      () => `${threshold.id} is at ${reading.available}, decided was by ${observation.available}`,
    );
  }

  #judgeInFlight(
    decision: ObservedStep['result']['decision'],
    flight: Flight,
    nowMs: number,
    isLook: boolean,
  ): void {
    demand(
      'oneAtATime',
      decision.kind !== 'evict' && decision.kind !== 'reclaim',
      () => `${flight.pod} is in flight, decided was ${describe(decision)}`,
    );
    const causes = isLook ? this.#causes() : [];
    const cause = causes.find(({ threshold }) => threshold.graceMs === 0);
    const isCut = cause !== undefined && !flight.hard;
    demand(
      'cutShort',
      (decision.kind === 'escalate') === isCut,
      () =>
        `${flight.pod} is in flight, ${cause?.threshold.id} is due, decided was ${describe(decision)}`,
    );
    if (!isCut) return;
    this.#demandCause(decision, cause);
    this.#counts['graces cut short'] += 1;
    const soonestMs = nowMs + 1000 * this.#hardGraceSeconds + flight.takesMs;
    this.#flight = {
      ...flight,
      hard: true,
      signal: cause.threshold.signal,
      endsAtMs: Math.min(flight.endsAtMs, soonestMs),
    };
  }

  #judgeAfterCollection(
    decision: ObservedStep['result']['decision'],
    collectedFor: Cause,
    at: { readonly index: number; readonly nowMs: number },
  ): void {
    const { readings } = this.#look;
    const isKubelet = this.#rules === 'kubelet';
    const isShort = (threshold: PlainThreshold): boolean => {
      const reading = readings?.get(threshold.signal);
      return reading !== undefined && reading.available < this.#level(threshold, reading, true);
    };
    const { threshold } = collectedFor;
    const reading = readings?.get(threshold.signal);
    if (!isKubelet && (reading === undefined || !this.#isNew(threshold.signal, reading))) {
      demand(
        'collectedEnough',
        decision.kind === 'none' && decision.why === 'unmeasured',
        () => `nothing tells what was collected for ${threshold.id}, it was ${describe(decision)}`,
      );
      const isDue = this.#due.some(({ signal }) => signal === threshold.signal);
      this.#unmeasured = isDue ? threshold.signal : undefined;
      return;
    }
    const isEnough = isKubelet
      ? readings !== undefined && !thresholdsIn(this.#scenario, 'kubelet', false).some(isShort)
      : !isShort(threshold);
    if (isEnough) {
      demand(
        'collectedEnough',
        decision.kind === 'none',
        () => `the collection for ${threshold.id} was enough, decided was ${describe(decision)}`,
      );
      this.#counts['collections that were enough'] += 1;
      return;
    }
    const cause = isKubelet ? collectedFor : this.#causeOf(threshold, reading as Reading);
    this.#judgeVictim(decision, cause, isKubelet ? this.#before : this.#look, at);
  }

  #judgeVictim(
    decision: ObservedStep['result']['decision'],
    cause: Cause,
    look: Look,
    at: { readonly index: number; readonly nowMs: number },
  ): void {
    const { signal, graceMs } = cause.threshold;
    this.#unmeasured = undefined;
    const statsOf = statsIn(look.summary);
    const isOwn = this.#rules === 'evictd';
    const pidsOf = (pod: KubernetesPod): number | undefined =>
      statsOf(pod)?.process_stats?.process_count ?? undefined;
    const isForPids = signal === 'pid.available' && isOwn;
    const isAwaited = isForPids && at.nowMs < this.#pidsAwaitedMs;
    const { node } = this.#scenario;
    const by = { signal, node, compatibility: this.#rules };
    const active = new Set(look.active.map(nameOf));
    const imagesOf = imagesOfPods(
      this.#scenario.ticks[at.index]?.evictd?.images ?? [],
      (name) => active.has(name) || !this.#gone.has(name),
      (name) => active.has(name),
    );
    const choice = { ...by, statsOf, imagesOf };
    const candidates = look.active
      .filter((pod) => !isOfImages(by) || imagesOf(pod) !== 0)
      .filter((pod) => !isSpared(pod) && !this.#passedOver.has(nameOf(pod)))
      .filter((pod) => !isForPids || pidsOf(pod) !== 0)
      .filter((pod) => {
        const isIdle = hasNothingThere(pod, choice);
        if (isIdle) this.#counts['nothing on the disk'] += 1;
        return !isIdle;
      })
      .filter((pod) => !isAwaited || (pidsOf(pod) ?? 0) >= cause.level - cause.reading.available);
    const victim = firstToGo(candidates, choice);
    if (decision.kind === 'evict') {
      const { name } = decision.pod;
      const pod = look.active.find((one) => nameOf(one) === name);
      demand('neverProtected', pod === undefined || !isSpared(pod), () => `${name} was to go`);
    }
    this.#demandCause(decision, cause);
    if (victim === undefined) {
      this.#counts['nobody may go'] += 1;
      demand(
        'rightVictim',
        decision.kind === 'none',
        () => `nobody may go, decided was ${describe(decision)}`,
      );
      return;
    }
    demand(
      'pressureActs',
      decision.kind === 'evict',
      () =>
        `${nameOf(victim)} is to go for ${cause.threshold.id}, decided was ${describe(decision)}`,
    );
    demand(
      'rightVictim',
      decision.pod.name === nameOf(victim),
      () => `${nameOf(victim)} is to go for ${signal}, decided was ${describe(decision)}`,
    );
    const isHard = graceMs === 0;
    const graceSeconds = isHard ? this.#hardGraceSeconds : this.#softGraceSeconds(victim);
    demand(
      'graceOfVictim',
      decision.gracePeriodSeconds === graceSeconds,
      () => `${nameOf(victim)} was given ${decision.gracePeriodSeconds} s for ${graceSeconds} s`,
    );
    this.#countEviction(cause, isHard);
    this.#begin(nameOf(victim), signal, isHard, graceSeconds, at);
  }

  #softGraceSeconds({ spec }: KubernetesPod): number {
    const own = spec.terminationGracePeriodSeconds ?? undefined;
    const longest = this.#scenario.config.evictionMaxPodGracePeriod ?? 0;
    if (longest < 0 && this.#rules === 'evictd') return own ?? 30;
    return own === undefined ? longest : Math.min(longest, own);
  }

  #countEviction({ threshold, reading }: Cause, isHard: boolean): void {
    const { signal } = threshold;
    if (this.#isOfImages(signal)) this.#counts['for images'] += 1;
    const kind =
      signal === 'pid.available'
        ? 'for PIDs'
        : signal.endsWith('inodesFree')
          ? 'for inodes'
          : conditionOf(signal) === 'MemoryPressure'
            ? 'for memory'
            : 'for a disk';
    this.#counts[kind] += 1;
    if (!isHard) this.#counts['soft evictions'] += 1;
    if (reading.available >= this.#level(threshold, reading, false)) {
      this.#counts['for minimum reclaim'] += 1;
    }
    if (this.#passedOver.size > 0) this.#counts['next candidate after a failure'] += 1;
  }

  #begin(
    pod: string,
    signal: Signal | undefined,
    hard: boolean,
    graceSeconds: number,
    { index, nowMs }: { readonly index: number; readonly nowMs: number },
  ): void {
    const { outcome, takesMs } = this.#killOf(pod, this.#scenario.ticks[index] as Tick);
    const lastsMs = takesMs === 0 ? 0 : Math.max(0, graceSeconds) * 1000 + takesMs;
    this.#counts.evictions += 1;
    if (takesMs > 0) this.#counts['kills that took time'] += 1;
    this.#evicted[index]?.push(pod);
    this.#flight = { pod, signal, hard, outcome, takesMs, endsAtMs: nowMs + lastsMs };
  }

  /** How the scenario has this pod's kill go; by the kubelet's rules it is over at once. */
  #killOf(pod: string, tick: Tick): { readonly outcome: string; readonly takesMs: number } {
    const kill = this.#rules === 'evictd' ? this.#scenario.evictd?.kills?.[pod] : undefined;
    return {
      outcome: tick.killFails?.includes(pod) ? 'failed' : (kill?.outcome ?? 'evicted'),
      takesMs: msOf(kill?.takes ?? '0s'),
    };
  }

  /** What the layout says is to be collected for a signal. */
  #collectionFor(signal: Signal, nowMs: number): readonly string[] {
    const { dedicatedImageFs, splitImageFs } = this.#scenario.node;
    const isOwn = this.#rules === 'evictd';
    const filesystem = signal.split('.')[0];
    if (conditionOf(signal) !== 'DiskPressure') return [];
    if (signal === this.#unmeasured) return [];
    const collectedAtMs = this.#collectedAtMs.get(signal);
    if (isOwn && collectedAtMs !== undefined && nowMs - collectedAtMs < COLLECT_AGAIN_MS) return [];
    if (!dedicatedImageFs) return ['containers', 'images'];
    if (splitImageFs) return filesystem === 'imagefs' ? ['images'] : ['containers'];
    if (filesystem !== 'nodefs') return ['containers', 'images'];
    return isOwn ? ['containers'] : [];
  }

  #checkConditions(conditions: readonly string[], nowMs: number, isRead: boolean): void {
    const isFrozen = this.#rules === 'kubelet' && !isRead;
    const held = isFrozen
      ? this.#conditions
      : [...this.#seenAtMs]
          .filter(([, atMs]) => atMs === nowMs || nowMs - atMs < this.#transitionMs)
          .map(([condition]) => condition)
          .sort();
    for (const condition of held) {
      demand(
        'conditionsHeld',
        conditions.includes(condition),
        () => `${condition} was seen at ${this.#seenAtMs.get(condition)} ms, it is ${nowMs} ms`,
      );
    }
    demand(
      'conditionsEnd',
      conditions.join() === held.join(),
      () => `${conditions} hold at ${nowMs} ms, ${held} should`,
    );
    this.#counts['conditions raised'] += held.filter(
      (condition) => !this.#conditions.includes(condition),
    ).length;
    this.#counts['conditions ended'] += this.#conditions.filter(
      (condition) => !held.includes(condition),
    ).length;
    this.#conditions = held;
  }

  #checkWakeAt(wakeAtMs: number | undefined, nowMs: number): void {
    const transitionsMs = [...this.#seenAtMs.values()].map((atMs) => atMs + this.#transitionMs);
    const ends = [...this.#graceEndsMs, ...transitionsMs].filter((endMs) => endMs > nowMs);
    const first = Math.min(...ends);
    demand(
      'wakesInTime',
      wakeAtMs === undefined || wakeAtMs > nowMs,
      () => `it is ${nowMs} ms, and ${wakeAtMs} ms is to be awaited`,
    );
    demand(
      'wakesInTime',
      ends.length === 0 || (wakeAtMs ?? Number.POSITIVE_INFINITY) <= first,
      () => `a period ends at ${first} ms, the next look is at ${wakeAtMs}`,
    );
  }

  #checkEvents({ events, decision }: ObservedStep['result'], nowMs: number): void {
    const resources = events
      .filter(({ reason }) => reason === 'EvictionThresholdMet')
      .map(({ message }) => message);
    const cause = 'cause' in decision ? decision.cause : undefined;
    const isDone = decision.kind !== 'escalate' && decision.kind !== 'observePods';
    const signal = cause?.threshold.signal;
    const isExpected =
      isDone && signal !== undefined && signal !== this.#collectingFor?.threshold.signal;
    if (this.#rules === 'kubelet') {
      demand(
        'saidOnce',
        resources.length === (isExpected ? 1 : 0),
        () => `${resources.length} events at ${nowMs} ms for ${describe(decision)}`,
      );
      return;
    }
    for (const resource of resources) {
      demand(
        'saidOnce',
        isExpected && !this.#announced.has(resource),
        () => `"${resource}" was said again at ${nowMs} ms`,
      );
      this.#announced.add(resource);
    }
  }

  #checkAdmission(
    { admit }: Tick,
    conditions: readonly string[],
    told: SimulationResult['ticks'][number]['admit'],
  ): void {
    for (const [index, pod] of (admit ?? []).entries()) {
      const isAlways = conditions.length === 0 || isSpared(pod);
      const isMemory = conditions.join() === 'MemoryPressure';
      const admits = isAlways || (isMemory && (qosOf(pod) !== 'BestEffort' || tolerates(pod)));
      demand(
        'admission',
        told[index]?.admit === admits,
        () => `${nameOf(pod)} is ${admits ? 'refused' : 'admitted'} under ${conditions}`,
      );
      if (!admits) this.#counts['refused pods'] += 1;
      else if (conditions.length > 0) this.#counts['admitted under pressure'] += 1;
    }
  }
}

function statsIn(summary: Summary | null): (pod: KubernetesPod) => PodStats | undefined {
  return ({ metadata }) => summary?.pods?.find(({ podRef }) => podRef.uid === metadata.uid);
}

function conditionOf(signal: Signal): string {
  if (signal === 'pid.available') return 'PIDPressure';
  return signal.endsWith('emory.available') ? 'MemoryPressure' : 'DiskPressure';
}

/** Of pods as `nodes.ts` makes them: none has a limit of memory or CPU, so that none is Guaranteed. */
function qosOf({ spec, status }: KubernetesPod): string {
  if (status?.qosClass) return status.qosClass;
  const all = [...(spec.containers ?? []), ...(spec.initContainers ?? [])];
  const isRequested = all.some(({ resources }) => {
    const { memory = 0, cpu = 0 } = resources?.requests ?? {};
    return [memory, cpu].some((text) => !/^0[A-Za-z]*$/.test(String(text)));
  });
  return isRequested ? 'Burstable' : 'BestEffort';
}

function tolerates({ spec }: KubernetesPod): boolean {
  return (spec.tolerations ?? []).some(
    ({ key, operator }) => operator === 'Exists' || key === 'node.kubernetes.io/memory-pressure',
  );
}

function describe(decision: ObservedStep['result']['decision']): string {
  switch (decision.kind) {
    case 'none':
      return `none, ${decision.why}`;
    case 'evict':
      return `evict ${decision.pod.name} for ${idOf(decision.cause) ?? 'its limit'}`;
    case 'reclaim':
      return `collect ${decision.functions.join()} for ${idOf(decision.cause)}`;
    case 'escalate':
      return `cut ${decision.podName} for ${idOf(decision.cause)}`;
    case 'observePods':
      return 'observe the pods';
  }
}

type CoreCause = Extract<ObservedStep['result']['decision'], { kind: 'evict' }>['cause'];

function idOf(cause: CoreCause): string | undefined {
  return cause && `${cause.threshold.kind}:${cause.threshold.signal}`;
}

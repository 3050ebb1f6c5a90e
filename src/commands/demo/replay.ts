import { readFileSync } from 'node:fs';
import {
  filter,
  firstValueFrom,
  interval,
  map,
  merge,
  mergeMap,
  type Observable,
  take,
  throwError,
} from 'rxjs';
import { parseDuration } from '../../core/duration.ts';
import { EvictdError } from '../../core/errors.ts';
import type { Summary } from '../../core/kubernetes.ts';
import { CGROUP_NAMESPACE } from '../../core/recorded.ts';
import { type ObservedStep, simulate } from '../../simulation/engine.ts';
import type { Scenario, SimulationResult } from '../../simulation/scenario.ts';
import { liveScheduler, monotonicMs } from '../../sources/live-scheduler.ts';
import { demoFile } from './child.ts';
import { list, mebibytes } from './format.ts';
import { Interrupted, type Interruption } from './interruption.ts';
import { FRAME_MS, LEAK, NODE_BYTES, PODS, THRESHOLD_BYTES } from './plan.ts';
import { emptyStory, type Happening, tell } from './story.ts';
import { openSurface } from './surface.ts';

/** A run of the demo as `evictd record` wrote it; `scripts/record-demo.mjs` makes it. */
const RECORDING = demoFile('../../../data/demo-recording.json');

/** How long the last screen stays before the closing line, ms. */
const LINGER_MS = 500;

/**
 * Shows a recorded run of the demo as it went: the policy decides it anew, nothing is killed.
 *
 * @throws EvictdError EVICTD_DEMO where it is decided otherwise; Interrupted
 */
export async function replay(
  plain: boolean,
  interruptions$: Observable<Interruption>,
): Promise<void> {
  const scenario = JSON.parse(readFileSync(RECORDING, 'utf8')) as Scenario;
  const startMs = monotonicMs();
  const { happenings, closing } = replayOf(scenario, startMs);
  const surface = openSurface(process.stdout, plain);
  let story = emptyStory(startMs, true);
  const left = [...happenings];
  const endMs = (happenings.at(-1)?.atMs ?? startMs) + LINGER_MS;
  const shown$ = interval(FRAME_MS, liveScheduler).pipe(
    map(() => {
      const nowMs = monotonicMs();
      for (let next = left[0]; next !== undefined && next.atMs <= nowMs; next = left[0]) {
        story = tell(story, next);
        left.shift();
      }
      surface.show(story, nowMs);
      return nowMs;
    }),
    filter((nowMs) => nowMs >= endMs),
    take(1),
  );
  const interrupted$ = interruptions$.pipe(
    mergeMap((interruption) => throwError(() => new Interrupted(interruption))),
  );
  try {
    await firstValueFrom(merge(interrupted$, shown$));
  } finally {
    surface.end(story);
  }
  process.stdout.write(`${closing}\n`);
}

/** What a recorded run has to tell when it is decided anew. */
export interface Replay {
  /** In the order of time. */
  readonly happenings: readonly Happening[];
  readonly closing: string;
}

/**
 * Runs the recorded run through the policy. Pure.
 *
 * @throws EvictdError EVICTD_DEMO where another pod is evicted, or the pressure does not end
 */
export function replayOf(scenario: Scenario, startMs: number): Replay {
  const teller = new Teller(startMs);
  const result = simulate(scenario, { onStep: (step) => teller.take(step) });
  const atOf = (text: string): number => startMs + parseDuration(text);
  const ended = result.ticks.flatMap((tick) => tick.evictd?.ended ?? []);
  const happenings: readonly Happening[] = [
    { kind: 'replaying', atMs: startMs, levelBytes: NODE_BYTES - THRESHOLD_BYTES },
    ...scenario.ticks.map((tick) => usageOf(tick.summary ?? {}, atOf(tick.at))),
    ...teller.happenings,
    ...ended.map(
      ({ pod, at }): Happening => ({
        kind: 'podEnded',
        atMs: atOf(at),
        pod: plainName(pod),
        how: 'as it did when it was recorded',
      }),
    ),
  ];
  return {
    happenings: happenings.toSorted((one, other) => one.atMs - other.atMs),
    closing: closingOf(result, teller.availableBytes),
  };
}

/** What the steps tell, beside what was read. */
class Teller {
  readonly happenings: Happening[] = [];
  readonly #startMs: number;
  #isMet = false;
  #conditions: readonly string[] = [];

  /** What was available at the last decision to evict. */
  availableBytes = Number.NaN;

  constructor(startMs: number) {
    this.#startMs = startMs;
  }

  take({ sample, result }: ObservedStep): void {
    const { state, decision, conditions } = result;
    const atMs = this.#startMs + sample.nowMs;
    const memory = state.observations.find(({ signal }) => signal === 'memory.available');
    const available = { availableBytes: memory?.available ?? 0 };
    const isMet = state.met.length > 0;
    if (isMet !== this.#isMet) {
      this.happenings.push({ kind: isMet ? 'thresholdMet' : 'thresholdOver', atMs, ...available });
    }
    this.#isMet = isMet;
    const [before, now] = [this.#conditions, conditions];
    for (const condition of now.filter((one) => !before.includes(one))) {
      this.happenings.push({ kind: 'conditionSet', atMs, condition });
    }
    for (const condition of before.filter((one) => !(now as readonly string[]).includes(one))) {
      this.happenings.push({ kind: 'conditionCleared', atMs, condition });
    }
    this.#conditions = now;
    if (decision.kind !== 'evict') return;
    this.availableBytes = available.availableBytes;
    const pod = plainName(decision.pod.name);
    const reason = decision.message.trimEnd();
    this.happenings.push({ kind: 'evicting', atMs, pod, reason, wokenBy: 'recording' });
  }
}

function usageOf({ node, pods }: Summary, atMs: number): Happening {
  const used = new Map(
    (pods ?? []).map(({ podRef, memory }) => [podRef.name, memory?.workingSetBytes ?? 0]),
  );
  return {
    kind: 'usage',
    atMs,
    nodeBytes: node?.memory?.workingSetBytes ?? 0,
    podBytes: new Map(PODS.map(({ name }) => [name, used.get(name) ?? 0])),
  };
}

function plainName(name: string): string {
  return name.slice(CGROUP_NAMESPACE.length + 1);
}

function closingOf({ error, ticks }: SimulationResult, availableBytes: number): string {
  const victims = ticks.flatMap(({ evicted }) => evicted.map(({ pod }) => plainName(pod)));
  const isOver = ticks.at(-1)?.nodeConditions.length === 0;
  if (error !== undefined || victims.join() !== LEAK || !isOver) {
    const evicted = victims.length === 0 ? 'nobody' : list(victims);
    const message = `the recorded run went otherwise: ${error ?? `${evicted} was evicted`}`;
    throw new EvictdError('EVICTD_DEMO', message);
  }
  const others = list(PODS.map(({ name }) => name).filter((name) => name !== LEAK));
  const at = mebibytes(availableBytes, 1);
  return `replay: ${LEAK} was evicted with ${at} available; ${others} were not`;
}

/** A node in virtual time, watched by the daemon's own pipeline: what is recorded of it, and what it did. */
import fc from 'fast-check';
import {
  connectable,
  EMPTY,
  interval,
  merge,
  mergeMap,
  type Observable,
  of,
  Subject,
  tap,
  timer,
  VirtualTimeScheduler,
} from 'rxjs';
import { settingsFromFlags } from '../../src/config/check.ts';
import type { FlagValues } from '../../src/config/flags.ts';
import { recordedConfig } from '../../src/config/recorded-config.ts';
import type { EvictionOutcome } from '../../src/core/decision.ts';
import type { SignalObservation } from '../../src/core/observation.ts';
import { evictionPipeline, type Turn } from '../../src/core/pipeline.ts';
import type { PodObservation } from '../../src/core/pod.ts';
import type { Policy } from '../../src/core/policy.ts';
import { RECLAIM_FUNCTIONS } from '../../src/core/reclaim.ts';
import {
  type RecordedOutcome,
  type RecordedTurn,
  recordedTurn,
  worthRecording,
} from '../../src/core/recorded.ts';
import type { Recording } from '../../src/simulation/recording.ts';
import { MI, outcome } from '../support/builders.ts';

const CAPACITY_BYTES = 1024 * MI;
const CAPACITY_PIDS = 1000;
const CAPACITY_DISK_BYTES = 1000 * MI;
const SYSTEM_BYTES = 100 * MI;
const RUN_MS = 15_000;
/** An outcome comes at a moment of its own, as on every real clock. */
const HEARD_LATER_MS = 1 / 64;

/** A pod that takes memory and tasks at a steady pace, for a while. */
export interface PodWorld {
  readonly priority: number;
  readonly requestMi: number;
  readonly graceSeconds: number | undefined;
  readonly isProtected: boolean;
  readonly startMi: number;
  readonly growsFromMs: number;
  readonly growsForMs: number;
  readonly perSecondMi: number;
  readonly perSecondPids: number;
  /** What it writes to the disk. */
  readonly perSecondDiskMi: number;
  /** How long it takes to die once it is killed, ms. */
  readonly diesMs: number;
  /** Whether it ends on TERM. */
  readonly heedsTerm: boolean;
  /** How its evictions end, the first first; then by its death. */
  readonly failures: readonly Exclude<RecordedOutcome, 'evicted'>[];
  /** When a process joins its empty cgroup again, ms after its death; never where it is left out. */
  readonly returnsMs: number | undefined;
}

export interface World {
  readonly flags: FlagValues;
  readonly pods: readonly PodWorld[];
  readonly intervalMs: number;
  readonly pollMs: number;
  readonly wakeupMs: number;
  readonly disk: DiskWorld | undefined;
}

/** A filesystem that is measured at a pace of its own, with what nobody uses on it. */
export interface DiskWorld {
  readonly pollMs: number;
  readonly garbageMi: number;
  /** How long it takes to remove that; it is not collected where that is left out. */
  readonly collectMs: number | undefined;
  /** How much of it is made again after that, and how soon, ms. */
  readonly againMi: number;
  readonly againMs: number;
  /** Whether it is measured right at the end. */
  readonly isMeasured: boolean;
}

/** What was done: who was evicted when, and what held at each turn that was recorded. */
export interface Told {
  readonly victims: readonly { readonly atMs: number; readonly pod: string }[];
  readonly conditions: readonly (readonly string[])[];
}

interface Living {
  readonly name: string;
  readonly world: PodWorld;
  bornMs: number;
  diedMs: number | undefined;
  failed: number;
}

/** Runs the daemon's pipeline on a world. */
export function runWorld({ flags, pods, intervalMs, pollMs, wakeupMs, disk }: World): {
  readonly recording: Recording;
  readonly told: Told;
  /** Whether the disk was seen short in a turn that no recording has. */
  readonly hidesDisk: boolean;
} {
  const settings = settingsFromFlags(flags).settings;
  const policy: Policy = {
    ...settings.policy,
    ranksDisk: disk !== undefined,
    reclaims: disk?.collectMs === undefined ? [] : RECLAIM_FUNCTIONS,
  };
  const scheduler = new VirtualTimeScheduler(undefined, RUN_MS);
  const all: readonly Living[] = pods.map((world, index) => ({
    name: `pod-${index}`,
    world,
    bornMs: 0,
    diedMs: undefined,
    failed: 0,
  }));
  const now = () => scheduler.now();
  const garbage = disk && new Garbage(disk, all, scheduler);
  const outcomes$ = new Subject<EvictionOutcome>();
  const turns$ = connectable(
    evictionPipeline(
      {
        wakeups$: merge(of('start'), interval(wakeupMs, scheduler), garbage?.measured$ ?? EMPTY),
        outcomes$,
        ...(garbage === undefined ? {} : { reclaimed$: garbage.reclaimed$ }),
        read: () => [...observations(all, now()), ...(garbage?.read() ?? [])],
        readPods: () => all.map((pod) => observed(pod, now(), disk !== undefined)),
        pollAfterMs: () => pollMs,
        podsIntervalMs: intervalMs,
      },
      () => policy,
      scheduler,
    ),
  );
  const seen: Turn[] = [];
  const recorded: Turn[] = [];
  execute(turns$, all, scheduler).subscribe((ended) => outcomes$.next(ended));
  turns$.subscribe(({ decision }) => {
    if (decision.kind === 'reclaim') garbage?.collect();
  });
  turns$.pipe(worthRecording(intervalMs)).subscribe((turn) => recorded.push(turn));
  turns$.subscribe((turn) => seen.push(turn));
  turns$.connect();
  scheduler.flush();
  return {
    recording: {
      name: 'run',
      description: 'a run in virtual time',
      config: recordedConfig(settings),
      node: { dedicatedImageFs: false, splitImageFs: false },
      pods: [],
      evicting: false,
      turns: recorded.map((turn) => asRead(recordedTurn(turn))),
    },
    told: {
      victims: seen.flatMap(({ decision, sample }) =>
        decision.kind === 'evict' ? [{ atMs: sample.nowMs, pod: decision.pod.name }] : [],
      ),
      conditions: recorded.map(({ conditions }) => conditions),
    },
    hidesDisk: seen.some(
      ({ decision, sample }) =>
        decision.kind === 'none' &&
        decision.why === 'noCandidate' &&
        sample.pods === undefined &&
        sample.observations.some(({ signal }) => signal === 'nodefs.available'),
    ),
  };
}

/** A filesystem, measured at its own pace; a reading counts once. */
class Garbage {
  readonly measured$: Observable<unknown>;
  readonly reclaimed$ = new Subject<void>();
  readonly #disk: DiskWorld;
  readonly #all: readonly Living[];
  readonly #scheduler: VirtualTimeScheduler;
  #bytes: number;
  #isRead = false;

  constructor(disk: DiskWorld, all: readonly Living[], scheduler: VirtualTimeScheduler) {
    this.#disk = disk;
    this.#all = all;
    this.#scheduler = scheduler;
    this.#bytes = disk.garbageMi * MI;
    this.measured$ = interval(disk.pollMs, scheduler).pipe(
      tap(() => {
        this.#isRead = true;
      }),
    );
  }

  collect(): void {
    const { collectMs = 0, isMeasured, againMi, againMs } = this.#disk;
    timer(collectMs + HEARD_LATER_MS, this.#scheduler).subscribe(() => {
      this.#bytes = 0;
      this.#isRead = isMeasured;
      this.reclaimed$.next();
    });
    timer(collectMs + againMs, this.#scheduler).subscribe(() => {
      this.#bytes += againMi * MI;
    });
  }

  read(): readonly SignalObservation[] {
    if (!this.#isRead) return [];
    this.#isRead = false;
    const nowMs = this.#scheduler.now();
    const used = this.#all.map((pod) => use(pod, nowMs).diskBytes);
    const taken = used.reduce((sum, one) => sum + one, this.#bytes);
    const available = Math.max(0, CAPACITY_DISK_BYTES - taken);
    return [{ signal: 'nodefs.available', capacity: CAPACITY_DISK_BYTES, available, atMs: nowMs }];
  }
}

/** What arrives at the other end of a socket. */
function asRead(turn: RecordedTurn): RecordedTurn {
  return JSON.parse(JSON.stringify(turn)) as RecordedTurn;
}

/** One eviction at a time, as the daemon has it; `escalate` brings its end forward. */
function execute(
  turns$: Observable<Turn>,
  all: readonly Living[],
  scheduler: VirtualTimeScheduler,
) {
  let token = 0;
  let running:
    | { readonly pod: Living; readonly kind: RecordedOutcome; endsAtMs: number }
    | undefined;
  return turns$.pipe(
    mergeMap(({ decision }) => {
      const nowMs = scheduler.now();
      if (decision.kind === 'evict') {
        const pod = all.find(({ name }) => name === decision.pod.name) as Living;
        const kind = pod.world.failures[pod.failed] ?? 'evicted';
        if (kind !== 'evicted') pod.failed += 1;
        const waitsMs = pod.world.heedsTerm ? 0 : decision.gracePeriodMs;
        running = { pod, kind, endsAtMs: nowMs + waitsMs + pod.world.diesMs };
      } else if (decision.kind === 'escalate' && running !== undefined) {
        const { world } = running.pod;
        const soonestMs = nowMs + decision.gracePeriodMs + world.diesMs;
        running.endsAtMs = Math.min(running.endsAtMs, soonestMs);
      } else {
        return EMPTY;
      }
      token += 1;
      const own = token;
      const waitMs = Math.max(1, running.endsAtMs - nowMs) + HEARD_LATER_MS;
      return timer(waitMs, scheduler).pipe(
        mergeMap(() => {
          const ended = running;
          if (ended === undefined || own !== token) return EMPTY;
          running = undefined;
          if (ended.kind === 'evicted') ended.pod.diedMs = scheduler.now();
          return of(ending(ended.pod.name, ended.kind));
        }),
      );
    }),
  );
}

function ending(name: string, kind: RecordedOutcome): EvictionOutcome {
  switch (kind) {
    case 'evicted':
      return outcome(name);
    case 'timedOut':
      return outcome(name, { kind, reason: 'deadline' });
    case 'failed':
      return outcome(name, { kind, error: 'EPERM' });
    case 'nothingToKill':
    case 'pressureGone':
    case 'dryRun':
      return outcome(name, { kind: 'refused', reason: kind });
  }
}

function isEmpty({ diedMs, world }: Living, nowMs: number): boolean {
  if (diedMs === undefined) return false;
  return world.returnsMs === undefined || nowMs < diedMs + world.returnsMs;
}

function use(pod: Living, nowMs: number) {
  if (isEmpty(pod, nowMs)) return { bytes: 0, pids: 0, diskBytes: 0 };
  const { world, diedMs } = pod;
  // Who has come back does not grow again.
  if (diedMs !== undefined) return { bytes: world.startMi * MI, pids: 1, diskBytes: 0 };
  const forMs = Math.min(Math.max(0, nowMs - world.growsFromMs), world.growsForMs);
  return {
    bytes: Math.round((world.startMi + (world.perSecondMi * forMs) / 1000) * MI),
    pids: 1 + Math.round((world.perSecondPids * forMs) / 1000),
    diskBytes: Math.round(((world.perSecondDiskMi * forMs) / 1000) * MI),
  };
}

const NO_FILES = { bytes: 0, inodes: 0 };

function observations(all: readonly Living[], nowMs: number): readonly SignalObservation[] {
  const used = all.map((pod) => use(pod, nowMs));
  const bytes = used.reduce((sum, one) => sum + one.bytes, SYSTEM_BYTES);
  const pids = used.reduce((sum, one) => sum + one.pids, 0);
  const of = (signal: SignalObservation['signal'], capacity: number, taken: number) => ({
    signal,
    capacity,
    available: Math.max(0, capacity - taken),
    atMs: nowMs,
  });
  return [of('memory.available', CAPACITY_BYTES, bytes), of('pid.available', CAPACITY_PIDS, pids)];
}

function observed(pod: Living, nowMs: number, hasDisk: boolean): PodObservation {
  const { world, name } = pod;
  const { bytes, pids, diskBytes } = use(pod, nowMs);
  return {
    id: `id-of-${name}`,
    name,
    priority: world.priority,
    qosClass: world.requestMi === 0 ? 'BestEffort' : 'Burstable',
    memoryRequestNano: BigInt(world.requestMi * MI) * 1_000_000_000n,
    workingSetBytes: bytes,
    pids,
    ...(hasDisk
      ? { disk: { root: { bytes: diskBytes, inodes: 1 }, logs: NO_FILES, localVolumes: NO_FILES } }
      : {}),
    gracePeriodSeconds: world.graceSeconds,
    protectedBecause: isEmpty(pod, nowMs)
      ? 'holds no process'
      : world.isProtected
        ? 'configured'
        : undefined,
    atMs: nowMs,
  };
}

const FAILURES = ['timedOut', 'failed', 'nothingToKill', 'pressureGone', 'dryRun'] as const;

const podWorlds: fc.Arbitrary<PodWorld> = fc.record({
  priority: fc.constantFrom(0, 0, 1000),
  requestMi: fc.constantFrom(0, 64),
  graceSeconds: fc.constantFrom(undefined, 1, 3),
  isProtected: fc.constantFrom(false, false, false, true),
  startMi: fc.integer({ min: 1, max: 80 }),
  growsFromMs: fc.integer({ min: 0, max: 10_000 }),
  growsForMs: fc.integer({ min: 0, max: 8000 }),
  perSecondMi: fc.integer({ min: 0, max: 120 }),
  perSecondPids: fc.constantFrom(0, 0, 60),
  perSecondDiskMi: fc.constantFrom(0, 0, 40, 150),
  diesMs: fc.integer({ min: 1, max: 3000 }),
  heedsTerm: fc.boolean(),
  failures: fc.array(fc.constantFrom(...FAILURES), { maxLength: 2 }),
  returnsMs: fc.constantFrom(undefined, undefined, 2000),
});

/** Nodes that come under pressure, most of them. */
export const worlds: fc.Arbitrary<World> = fc.record({
  flags: fc
    .record({
      hard: fc.constantFrom('100Mi', '10%'),
      soft: fc.constantFrom(undefined, '250Mi', '25%'),
      softGrace: fc.constantFrom('0s', '1s', '2.5s'),
      reclaim: fc.constantFrom(undefined, '50Mi', '5%'),
      pids: fc.constantFrom(undefined, '700'),
      maxGrace: fc.constantFrom('0', '2', '10', '-1'),
      transition: fc.constantFrom('0s', '1.5s', '30s'),
      hardGrace: fc.constantFrom('0', '1'),
      nodefs: fc.constantFrom('10%', '300Mi'),
    })
    .map(({ hard, soft, softGrace, reclaim, pids, maxGrace, transition, hardGrace, nodefs }) => ({
      '--eviction-hard': [
        `memory.available<${hard}`,
        `nodefs.available<${nodefs}`,
        ...(pids === undefined ? [] : [`pid.available<${pids}`]),
      ],
      ...(soft === undefined
        ? {}
        : {
            '--eviction-soft': [`memory.available<${soft}`],
            '--eviction-soft-grace-period': [`memory.available=${softGrace}`],
          }),
      ...(reclaim === undefined
        ? {}
        : { '--eviction-minimum-reclaim': [`memory.available=${reclaim}`] }),
      '--eviction-max-pod-grace-period': [maxGrace],
      '--eviction-pressure-transition-period': [transition],
      '--hard-eviction-grace-period-seconds': [hardGrace],
    })),
  pods: fc.array(podWorlds, { minLength: 1, maxLength: 6 }),
  intervalMs: fc.constantFrom(100, 1000, 3000),
  pollMs: fc.constantFrom(90, 333, 2000),
  wakeupMs: fc.constantFrom(77, 500, 9000),
  disk: fc.option(
    fc.record({
      pollMs: fc.constantFrom(111, 700, 4001),
      garbageMi: fc.integer({ min: 0, max: 900 }),
      collectMs: fc.constantFrom(undefined, 1, 777, 3000),
      againMi: fc.constantFrom(0, 300, 800),
      againMs: fc.constantFrom(1003, 4003),
      isMeasured: fc.boolean(),
    }),
    { nil: undefined },
  ),
});

import { Observable, of, type SchedulerLike, type Subscriber, type Subscription } from 'rxjs';
import { parseMount } from '../kernel/mountinfo.ts';
import type { FilesystemNotice, FilesystemReading } from '../ports/filesystem.ts';
import {
  FILESYSTEM_HELPER_PATH,
  type FilesystemFigures,
  type FilesystemHelper,
  type HelperEvent,
  helperProcess,
  PATH_BYTES_MAX,
  type StartHelper,
} from './filesystem-helper.ts';

/** How long a filesystem may take to answer before its signal is stale, ms. */
export const FILESYSTEM_DEADLINE_MS = 1000;

/** How long a killed helper may take to end before it is said that it cannot, ms. */
export const HELPER_END_LIMIT_MS = 1000;

/** A path whose helper hung or died is asked about again after this, twice as long each time, ms. */
const FIRST_BACKOFF_MS = 1000;
const LONGEST_BACKOFF_MS = 10_000;

/** How many helpers there may be, those included whose paths are watched no more. */
const HELPERS_MAX = 16;

/** The shortest time between two probes of one path, ms, whatever `pollAfterMs` says. */
const SHORTEST_POLL_MS = 10;

export interface FilesystemInputs {
  /**
   * Absolute; directories, or anything on the filesystem. Duplicates count once. Where they change,
   * what stays is measured on, and a helper that hangs keeps its path.
   */
  readonly paths: readonly string[] | Observable<readonly string[]>;
  readonly scheduler: SchedulerLike;
  /** {@link FILESYSTEM_DEADLINE_MS} unless a test says otherwise. */
  readonly deadlineMs?: number;
  /**
   * How long after an answer or a failure a path is probed again, ms. `before` is the last reading
   * that came before `now`; `now` is undefined after a failure.
   */
  readonly pollAfterMs: (
    path: string,
    before: FilesystemReading | undefined,
    now: FilesystemReading | undefined,
  ) => number;
  /** The executable; {@link FILESYSTEM_HELPER_PATH} by default. */
  readonly helperPath?: string;
  /** Takes the place of the executable in tests. */
  readonly startHelper?: StartHelper;
}

/**
 * Measures filesystems and never waits for one: each probe is done by a helper process. One helper
 * serves all paths, one after the other. One that does not answer within the deadline, counted from
 * when it was given the path, is killed, and the next helper serves the rest; until it is gone (one
 * that waits for a FUSE server that has read the request cannot be killed) its path is left out. A path
 * that has waited for its turn as long as the deadline gets a helper at once, and paths that hung the
 * last time come last: what hangs delays the others by the deadline at most. There are never more
 * helpers than paths, and one.
 *
 * Cold: every path is probed at the subscription. Never errors, never completes: no helper, a helper
 * that dies, a path that cannot be read are `failed` notices, and are tried again. Unsubscribing kills
 * the helpers and waits for nothing; a helper keeps no event loop alive.
 */
export function filesystems(inputs: FilesystemInputs): Observable<FilesystemNotice> {
  return new Observable((subscriber) => {
    const prober = new Prober(inputs, subscriber);
    subscriber.add(() => prober.close());
    const { paths } = inputs;
    const paths$ = paths instanceof Observable ? paths : of(paths);
    subscriber.add(paths$.subscribe((now) => prober.watch(now)));
  });
}

/** What is to happen to a path next. */
type Stage =
  | { readonly kind: 'waits'; readonly dueAtMs: number }
  | { readonly kind: 'queues'; readonly sinceMs: number }
  /** A helper has it, and if that was killed: keeps it until it has ended. */
  | { readonly kind: 'held' };

interface Watched {
  readonly path: string;
  stage: Stage;
  last: FilesystemReading | undefined;
  /** How often in a row its helper hung or died. */
  losses: number;
}

interface Helper {
  readonly process: FilesystemHelper;
  probe: { readonly watched: Watched; readonly askedAtMs: number } | undefined;
  /** Killed at the deadline: when, and when its path may be asked about again. */
  hung: { readonly atMs: number; readonly retryAtMs: number; isSaid: boolean } | undefined;
}

/** One subscription: what is due is done in `turn`, which sets one timer for the next. */
class Prober {
  readonly #inputs: FilesystemInputs;
  readonly #notices: Subscriber<FilesystemNotice>;
  readonly #deadlineMs: number;
  readonly #start: StartHelper;
  #watched: readonly Watched[] = [];
  readonly #helpers = new Set<Helper>();
  #timer: Subscription | undefined;

  constructor(inputs: FilesystemInputs, notices: Subscriber<FilesystemNotice>) {
    this.#inputs = inputs;
    this.#notices = notices;
    this.#deadlineMs = inputs.deadlineMs ?? FILESYSTEM_DEADLINE_MS;
    this.#start = inputs.startHelper ?? helperProcess(inputs.helperPath ?? FILESYSTEM_HELPER_PATH);
  }

  /** Measures these from now on. */
  watch(paths: readonly string[]): void {
    const dueAtMs = this.#inputs.scheduler.now();
    const held = [...this.#helpers].flatMap(({ probe }) => probe?.watched ?? []);
    const known = [...this.#watched, ...held];
    this.#watched = [...new Set(paths)].map(
      (path) =>
        known.find((one) => one.path === path) ?? {
          path,
          stage: { kind: 'waits', dueAtMs },
          last: undefined,
          losses: 0,
        },
    );
    this.turn();
  }

  close(): void {
    this.#timer?.unsubscribe();
    for (const { process } of this.#helpers) process.end();
    this.#helpers.clear();
  }

  turn(): void {
    const nowMs = this.#inputs.scheduler.now();
    for (const helper of this.#helpers) this.#judge(helper, nowMs);
    for (const watched of this.#watched) {
      if (watched.stage.kind === 'waits' && watched.stage.dueAtMs <= nowMs) {
        this.#queue(watched, nowMs);
      }
    }
    this.#serve(nowMs);
    this.#setTimer();
  }

  /** Kills a helper at the deadline, and says later that it does not end. */
  #judge(helper: Helper, nowMs: number): void {
    const { probe, hung, process } = helper;
    if (probe === undefined) return;
    const { path } = probe.watched;
    if (hung === undefined && nowMs >= probe.askedAtMs + this.#deadlineMs) {
      helper.hung = {
        atMs: nowMs,
        retryAtMs: this.#retryAtMs(probe.watched, nowMs),
        isSaid: false,
      };
      process.end();
      this.#fail(path, nowMs, `no answer within ${this.#deadlineMs} ms`, true);
    } else if (hung?.isSaid === false && nowMs >= hung.atMs + HELPER_END_LIMIT_MS) {
      hung.isSaid = true;
      const error = `no answer, and the helper ${process.pid} cannot be killed: left out until it ends`;
      this.#fail(path, nowMs, error, true);
    }
  }

  #queue(watched: Watched, nowMs: number): void {
    const refusal = refusalOf(watched.path);
    if (refusal === undefined) {
      watched.stage = { kind: 'queues', sinceMs: nowMs };
      return;
    }
    watched.stage = { kind: 'waits', dueAtMs: nowMs + this.#againAfterMs(watched) };
    this.#fail(watched.path, nowMs, refusal, false);
  }

  /** Hands the paths that queue to helpers. */
  #serve(nowMs: number): void {
    for (const { watched, sinceMs } of this.#queued()) {
      if (this.#notices.closed) return;
      const isLate = nowMs >= sinceMs + this.#deadlineMs;
      const helper =
        this.#idle() ?? (isLate || !this.#isWorking() ? this.#startHelper() : undefined);
      if (helper === undefined && this.#helpers.size >= HELPERS_MAX) {
        watched.stage = { kind: 'waits', dueAtMs: nowMs + LONGEST_BACKOFF_MS };
        this.#fail(watched.path, nowMs, `${HELPERS_MAX} helpers hang already`, false);
        continue;
      }
      if (helper === undefined) return;
      helper.probe = { watched, askedAtMs: nowMs };
      watched.stage = { kind: 'held' };
      helper.process.ask(watched.path);
    }
  }

  /** Those that did not hang or die the last time first, then as they came. */
  #queued(): readonly { readonly watched: Watched; readonly sinceMs: number }[] {
    return this.#watched
      .flatMap((watched) =>
        watched.stage.kind === 'queues' ? [{ watched, sinceMs: watched.stage.sinceMs }] : [],
      )
      .sort(
        (one, other) =>
          Math.sign(one.watched.losses) - Math.sign(other.watched.losses) ||
          one.sinceMs - other.sinceMs,
      );
  }

  #idle(): Helper | undefined {
    return [...this.#helpers].find(({ probe }) => probe === undefined);
  }

  /** Whether a helper is at a path and may be expected to answer. */
  #isWorking(): boolean {
    return [...this.#helpers].some(({ probe, hung }) => probe !== undefined && hung === undefined);
  }

  /** Undefined where there are so many that hang for paths that are watched no more. */
  #startHelper(): Helper | undefined {
    if (this.#helpers.size >= HELPERS_MAX) return undefined;
    const helper: Helper = {
      process: this.#start((event) => this.#hear(helper, event)),
      probe: undefined,
      hung: undefined,
    };
    this.#helpers.add(helper);
    return helper;
  }

  #hear(helper: Helper, event: HelperEvent): void {
    // Its end after the unsubscription, or after it was let go.
    if (!this.#helpers.has(helper)) return;
    if (event.kind === 'ended') this.#lose(helper, event.reason);
    else this.#take(helper, event);
    if (!this.#notices.closed) this.turn();
  }

  #take(helper: Helper, event: Exclude<HelperEvent, { kind: 'ended' }>): void {
    const nowMs = this.#inputs.scheduler.now();
    const { probe } = helper;
    if (probe === undefined) {
      this.#release(helper);
      return;
    }
    const { watched } = probe;
    helper.probe = undefined;
    // Others that were started meanwhile have done their part.
    for (const other of this.#helpers) {
      if (other !== helper && other.probe === undefined) this.#release(other);
    }
    watched.losses = 0;
    const before = watched.last;
    if (event.kind === 'refused') {
      watched.stage = { kind: 'waits', dueAtMs: nowMs + this.#againAfterMs(watched) };
      this.#fail(watched.path, nowMs, `${event.error} '${watched.path}'`, false);
      return;
    }
    if (event.figures.blocks === 0n) {
      watched.stage = { kind: 'waits', dueAtMs: nowMs + this.#againAfterMs(watched) };
      this.#fail(watched.path, nowMs, `a capacity of 0 '${watched.path}'`, false);
      return;
    }
    const reading = toReading(watched.path, event.figures, nowMs);
    watched.last = reading;
    watched.stage = {
      kind: 'waits',
      dueAtMs: nowMs + this.#pollAfterMs(watched.path, before, reading),
    };
    this.#notices.next({ kind: 'read', reading });
  }

  #lose(helper: Helper, reason: string): void {
    const nowMs = this.#inputs.scheduler.now();
    const { probe, hung } = helper;
    this.#helpers.delete(helper);
    if (probe === undefined) return;
    const { watched } = probe;
    const dueAtMs = hung?.retryAtMs ?? this.#retryAtMs(watched, nowMs);
    watched.stage = { kind: 'waits', dueAtMs };
    if (hung === undefined) this.#fail(watched.path, nowMs, reason, false);
  }

  #release(helper: Helper): void {
    this.#helpers.delete(helper);
    helper.process.end();
  }

  /** When a path is asked about again whose helper hung or died. */
  #retryAtMs(watched: Watched, nowMs: number): number {
    const backoffMs = Math.min(FIRST_BACKOFF_MS * 2 ** watched.losses, LONGEST_BACKOFF_MS);
    watched.losses += 1;
    return nowMs + Math.max(backoffMs, this.#againAfterMs(watched));
  }

  #pollAfterMs(
    path: string,
    before: FilesystemReading | undefined,
    now: FilesystemReading | undefined,
  ): number {
    return Math.max(this.#inputs.pollAfterMs(path, before, now), SHORTEST_POLL_MS);
  }

  /** After a failure. */
  #againAfterMs({ path, last }: Watched): number {
    return this.#pollAfterMs(path, last, undefined);
  }

  #fail(path: string, atMs: number, error: string, stale: boolean): void {
    this.#notices.next({ kind: 'failed', path, atMs, error, stale });
  }

  #setTimer(): void {
    this.#timer?.unsubscribe();
    const { scheduler } = this.#inputs;
    const atMs = Math.min(...this.#instants());
    if (this.#notices.closed || atMs === Number.POSITIVE_INFINITY) return;
    this.#timer = scheduler.schedule(
      () => {
        // Where evictd itself was held up, an answer may lie in the pipe: it is read before anybody is
        // judged, in the rest of this turn of the event loop.
        this.#timer = scheduler.schedule(() => this.turn());
      },
      Math.max(0, atMs - scheduler.now()),
    );
  }

  /** When something is due, at the soonest: a probe, a deadline, a turn that is late. */
  #instants(): readonly number[] {
    const ofPaths = this.#watched.flatMap(({ stage }) => {
      if (stage.kind === 'waits') return stage.dueAtMs;
      return stage.kind === 'queues' ? stage.sinceMs + this.#deadlineMs : [];
    });
    const ofHelpers = [...this.#helpers].flatMap(({ probe, hung }) => {
      if (probe === undefined) return [];
      if (hung === undefined) return probe.askedAtMs + this.#deadlineMs;
      return hung.isSaid ? [] : hung.atMs + HELPER_END_LIMIT_MS;
    });
    return [...ofPaths, ...ofHelpers];
  }
}

/** Why a path cannot be asked about, before anybody is asked; undefined when it can. */
function refusalOf(path: string): string | undefined {
  if (!path.startsWith('/') || path.includes('\0')) {
    return `EINVAL: not an absolute path, ${JSON.stringify(path)}`;
  }
  return Buffer.byteLength(path) > PATH_BYTES_MAX
    ? `ENAMETOOLONG: a path of more than ${PATH_BYTES_MAX} bytes`
    : undefined;
}

/** Sizes are blocks × `f_frsize`, which is not the `bsize` of Node's own `statfs`. */
function toReading(path: string, figures: FilesystemFigures, atMs: number): FilesystemReading {
  const { device, blockBytes, blocks, inodes, mountLine } = figures;
  const mount = parseMount(mountLine);
  return {
    path,
    atMs,
    capacityBytes: toNumber(blocks * blockBytes),
    availableBytes: toNumber(within(figures.blocksAvailable, blocks) * blockBytes),
    usedBytes: toNumber((blocks - within(figures.blocksFree, blocks)) * blockBytes),
    inodes: toNumber(inodes),
    inodesFree: toNumber(within(figures.inodesFree, inodes)),
    device,
    mountDevice: mount?.device ?? '',
    source: mount?.source ?? '',
    type: mount?.type ?? '',
    mountPoint: mount?.mountPoint ?? '',
  };
}

/** What is free, from none to all: where the reserve is used too, some filesystems say less than none. */
function within(free: bigint, all: bigint): bigint {
  if (BigInt.asIntN(64, free) < 0n) return 0n;
  return free < all ? free : all;
}

/** What is more than 2^53 − 1 comes out as that. */
function toNumber(value: bigint): number {
  return Number(value < Number.MAX_SAFE_INTEGER ? value : Number.MAX_SAFE_INTEGER);
}

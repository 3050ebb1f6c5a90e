import type { BytePath } from '../../kernel/byte-path.ts';
import { OOM_SCORE_ADJ_NEVER } from '../../kernel/oom-score-adj.ts';
import type { Pidfd } from '../../native/types.ts';
import { stopForks } from './pids-max.ts';
import { type Held, type RoundResult, signalRound } from './signal-round.ts';
import { processesBelow } from './subtree.ts';
import { killThroughTwin } from './twin.ts';

/** The signals that are sent; a rehearsal sends 0, which only checks. */
const REAL_SIGNALS = { terminate: 15, kill: 9 } as const;
const NULL_SIGNALS = { terminate: 0, kill: 0 } as const;

/** How many processes a rehearsal goes to: the rest of the way is the same, and takes its time. */
const REHEARSED_PROCESSES = 16;

/** By what the processes of a pod are reached. */
export interface Means {
  /** Gets hold of a process; undefined where there is neither a pidfd nor a permission without. */
  readonly open: ((pid: number) => Pidfd) | undefined;
  /** Whether `open` gives true pidfds: without, a safe `cgroup.kill` is better than a number. */
  readonly hasPidfd: boolean;
  /** The pod's twin in the cgroup2 hierarchy, whether or not it is there; undefined without mount. */
  readonly twin: BytePath | undefined;
  /** The same in the hierarchy of the pids controller. */
  readonly pidsTwin: BytePath | undefined;
  /** Whether a pid is evictd's or an ancestor's. */
  readonly isOwn: (pid: number) => boolean;
  /** Whether a process is the pod's, and has not only a thread in it. */
  readonly isMember: (pid: number) => boolean;
  /** `oom_score_adj` of a process; undefined when it is gone. What it throws fails the eviction. */
  readonly oomScoreAdj: (pid: number) => number | undefined;
}

/** Whether nobody is signalled, and to how many processes it is gone then. */
export type Rehearsal = 'no' | 'some' | 'all';

export interface VictimRound extends RoundResult {
  /** Why nothing could be done for lack of means. */
  readonly unsupported: string | undefined;
}

const NO_REFUSALS: ReadonlyMap<number, string> = new Map();

/** The processes of one pod, and what is done to them. */
export class Victim {
  readonly #pod: BytePath;
  readonly #means: Means;
  readonly #rehearsal: Rehearsal;
  readonly #held: Held = { pidfds: new Map(), signalled: 0 };
  /** Killed through the twin, as far as they are still there. */
  readonly #killedThroughTwin = new Set<number>();
  /** All that were ever listed. */
  readonly #seen = new Set<number>();
  #killedAgainstForks = 0;
  #forksTried = false;
  #letFork: (() => void) | undefined;

  /** @param pod a path to the held directory of its memory cgroup */
  constructor(pod: BytePath, means: Means, rehearsal: Rehearsal) {
    this.#pod = pod;
    this.#means = means;
    this.#rehearsal = rehearsal;
  }

  /** How many different processes were sent a signal. */
  get signalled(): number {
    // What dies of the second line before a pidfd was had of it is not counted there.
    return Math.max(this.#held.signalled, this.#killedAgainstForks);
  }

  get pidfds(): ReadonlyMap<number, Pidfd> {
    return this.#held.pidfds;
  }

  get canTerminate(): boolean {
    return this.#means.open !== undefined;
  }

  /** Gets hold of all that may be signalled, and sends nothing. */
  hold(): VictimRound {
    return this.#round(NULL_SIGNALS.terminate, () => undefined);
  }

  /** Sends TERM to all. */
  terminate(): VictimRound {
    return this.#round(this.#signals.terminate, () => undefined);
  }

  /**
   * Sends KILL to all: through pidfds, and through the twin against forks where that is safe. Without
   * pidfds through the twin, and by number where that is not safe.
   */
  kill(): VictimRound {
    if (this.#means.hasPidfd) return this.#round(this.#signals.kill, this.#onForks);
    const round = this.#killThroughTwin();
    return round.unsupported === undefined || this.#means.open === undefined
      ? round
      : this.#round(this.#signals.kill, this.#onForks);
  }

  /** Those of the listed that are the pod's: a process with only a thread in it is none of them. */
  members(listed: readonly number[]): readonly number[] {
    const { isMember } = this.#means;
    return listed.filter((pid) => pid === 0 || this.#isKilled(pid) || isMember(pid));
  }

  /** The same once more, for those of `left` that no signal has reached; undefined when it has all. */
  killRest(left: readonly number[]): VictimRound | undefined {
    this.#forgetAllBut(left);
    if (left.every((pid) => this.#isKilled(pid))) return undefined;
    if (left.some((pid) => !this.#seen.has(pid))) this.#onForks('more');
    return this.kill();
  }

  /** Whether none of those that are left can be killed, as the last round tells. */
  isOutOfReach(left: readonly number[], round: VictimRound): boolean {
    if (left.some((pid) => this.#isKilled(pid))) return false;
    return round.unsupported !== undefined || left.every((pid) => round.refusals.has(pid));
  }

  forget(pid: number): void {
    this.#held.pidfds.get(pid)?.close();
    this.#held.pidfds.delete(pid);
  }

  /** Lets go of all, and lets fork what is left. */
  close(): void {
    this.#letFork?.();
    this.#letFork = undefined;
    for (const pidfd of this.#held.pidfds.values()) pidfd.close();
    this.#held.pidfds.clear();
  }

  get #isRehearsal(): boolean {
    return this.#rehearsal !== 'no';
  }

  get #signals(): typeof REAL_SIGNALS | typeof NULL_SIGNALS {
    return this.#isRehearsal ? NULL_SIGNALS : REAL_SIGNALS;
  }

  #round(signal: number, onForks: (why: 'many' | 'more') => void): VictimRound {
    const { open, isMember } = this.#means;
    if (open === undefined) throw new Error('a signal, and no means to send it');
    const round = signalRound({
      top: this.#pod,
      signal,
      held: this.#held,
      open,
      isMember,
      veto: this.#veto,
      onForks,
      ...(this.#rehearsal === 'some' ? { atMost: REHEARSED_PROCESSES } : {}),
    });
    return { ...round, unsupported: undefined };
  }

  /**
   * evictd and its ancestors are looked for each time, a protected process before the first signal:
   * what has begun is not left half done.
   */
  readonly #veto = (pids: readonly number[]): string | undefined => {
    const { isOwn, oomScoreAdj } = this.#means;
    for (const pid of pids) {
      if (isOwn(pid)) return `pid ${pid} is evictd, an ancestor or a helper of it`;
      if (this.signalled === 0 && oomScoreAdj(pid) === OOM_SCORE_ADJ_NEVER)
        return `pid ${pid} has the oom_score_adj ${OOM_SCORE_ADJ_NEVER}`;
    }
    for (const pid of pids) this.#seen.add(pid);
    return undefined;
  };

  /** Only for a KILL: what is to end by itself may have to fork for it. */
  readonly #onForks = (why: 'many' | 'more'): void => {
    if (this.#isRehearsal) return;
    const { twin, pidsTwin, hasPidfd, isOwn } = this.#means;
    if (!this.#forksTried && pidsTwin !== undefined) {
      this.#forksTried = true;
      this.#letFork = stopForks(pidsTwin, this.#pod);
    }
    // Without pidfds it was the first line.
    if (why === 'many' || twin === undefined || !hasPidfd) return;
    const killed = killThroughTwin({
      twin,
      pod: this.#pod,
      cover: 'onlyThePods',
      isOwn,
      rehearsal: false,
    });
    for (const pid of killed.pids ?? []) {
      this.#killedThroughTwin.add(pid);
      this.#killedAgainstForks += 1;
    }
  };

  #killThroughTwin(): VictimRound {
    const round = (rest: Partial<VictimRound>): VictimRound => ({
      veto: undefined,
      refusals: NO_REFUSALS,
      unsupported: undefined,
      ...rest,
    });
    const pids = processesBelow(this.#pod);
    if (pids.length === 0) return round({});
    const veto = this.#veto(pids);
    if (veto !== undefined) return round({ veto });
    const { twin, isOwn } = this.#means;
    const unsupported = (why: string) =>
      round({ unsupported: `no pidfd, and no cgroup.kill: ${why}` });
    if (twin === undefined) return unsupported('no cgroup2 is mounted');
    const killed = killThroughTwin({
      twin,
      pod: this.#pod,
      cover: 'exactly',
      isOwn,
      rehearsal: this.#isRehearsal,
    });
    if (killed.pids === undefined) return unsupported(killed.unsafe);
    for (const pid of killed.pids) {
      if (!this.#isKilled(pid)) this.#held.signalled += 1;
      this.#killedThroughTwin.add(pid);
      this.#seen.add(pid);
    }
    return round({});
  }

  #isKilled(pid: number): boolean {
    return this.#held.pidfds.has(pid) || this.#killedThroughTwin.has(pid);
  }

  /** Nobody tells of an end without a pidfd: a number that is free again must not count as killed. */
  #forgetAllBut(left: readonly number[]): void {
    if (this.#means.hasPidfd && this.#killedThroughTwin.size === 0) return;
    const there = new Set(left);
    for (const pid of this.#killedThroughTwin)
      if (!there.has(pid)) this.#killedThroughTwin.delete(pid);
    if (this.#means.hasPidfd) return;
    for (const [pid, held] of this.#held.pidfds)
      if (!there.has(pid) || !isSame(held)) this.forget(pid);
  }
}

function isSame(held: Pidfd): boolean {
  try {
    held.signal(0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

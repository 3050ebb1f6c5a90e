import type { BytePath } from '../../kernel/byte-path.ts';
import { isOutOfDescriptors } from '../../kernel/descriptors.ts';
import type { Pidfd } from '../../native/types.ts';
import { processesBelow } from './subtree.ts';

/** How many pidfds one eviction holds; processes beyond it are signalled, not held. */
export const HELD_LIMIT = 4096;

/** How many are opened before the first of them is signalled. */
const CHUNK = 64;

/** How often a round is repeated at once while new processes keep appearing (a fork storm). */
const REPEAT_LIMIT = 10;

/** So many processes at once are no one-process victim: what they could fork is stopped first. */
const MANY = 64;

/** The processes of a victim that were signalled, held by pidfd until they end. */
export interface Held {
  readonly pidfds: Map<number, Pidfd>;
  /** How many different processes were sent a signal. */
  signalled: number;
}

export interface Round {
  readonly top: BytePath;
  readonly signal: number;
  readonly held: Held;
  /** Gets hold of a process: by pidfd, or what stands in for it. Throws as `openPidfd` does. */
  readonly open: (pid: number) => Pidfd;
  /**
   * Whether the process is the pod's: its number may be another's by now, and only a thread of it may
   * be in the cgroup.
   */
  readonly isMember: (pid: number) => boolean;
  /** Why none of the pod's processes may be signalled, found in these; undefined when they may be. */
  readonly veto: (pids: readonly number[]) => string | undefined;
  /** How many processes are looked at, and in one round only; by default all, until no new one appears. */
  readonly atMost?: number;
  /** Called when there are many processes, before they are signalled, and when new ones appear. */
  readonly onForks: (why: 'many' | 'more') => void;
}

export interface RoundResult {
  /** Why the pod was left alone. */
  readonly veto: string | undefined;
  /** Why a process could not be signalled, by pid. */
  readonly refusals: ReadonlyMap<number, string>;
}

/**
 * Sends `signal` to every process below `top`, through pidfds. A number that was reused between
 * listing and opening is not mistaken: what was opened counts only if procfs says afterwards that it
 * is in the pod. Rounds follow at once while new processes appear.
 */
export function signalRound({
  top,
  signal,
  held,
  open,
  isMember,
  veto: vetoOf,
  onForks,
  atMost,
}: Round): RoundResult {
  const refusals = new Map<number, string>();
  const done = new Set<number>();
  for (let round = 0; round < (atMost === undefined ? REPEAT_LIMIT : 1); round += 1) {
    const all = processesBelow(top, atMost).filter((pid) => !done.has(pid));
    if (all.length === 0) break;
    const veto = vetoOf(all);
    if (veto !== undefined) return { veto, refusals };
    if (round > 0) onForks('more');
    else if (all.length > MANY) onForks('many');
    for (const pid of all) done.add(pid);
    for (let start = 0; start < all.length; start += CHUNK) {
      signalChunk(open, isMember, all.slice(start, start + CHUNK), signal, held, refusals);
    }
  }
  return { veto: undefined, refusals };
}

function signalChunk(
  open: Round['open'],
  isMember: Round['isMember'],
  pids: readonly number[],
  signal: number,
  held: Held,
  refusals: Map<number, string>,
): void {
  const opened = new Map<number, Pidfd>();
  for (const pid of pids) {
    if (held.pidfds.has(pid)) continue;
    const pidfd = openProcess(open, pid, held, refusals);
    if (pidfd !== undefined) opened.set(pid, pidfd);
  }
  for (const [pid, pidfd] of opened) {
    if (!isMember(pid)) pidfd.close();
    else if (send(pidfd, signal, refusals)) hold(held, pid, pidfd);
    else pidfd.close();
  }
  for (const pid of pids) {
    const known = opened.has(pid) ? undefined : held.pidfds.get(pid);
    if (known !== undefined) send(known, signal, refusals);
  }
}

function openProcess(
  open: Round['open'],
  pid: number,
  held: Held,
  refusals: Map<number, string>,
): Pidfd | undefined {
  if (pid === 0) {
    refusals.set(pid, 'a process outside of this PID namespace');
    return undefined;
  }
  try {
    return openWithRoom(open, pid, held);
  } catch (error) {
    noteRefusal(pid, error, refusals);
    return undefined;
  }
}

/** What is held only tells sooner of an end: it makes way when there are no descriptors left. */
function openWithRoom(open: Round['open'], pid: number, held: Held): Pidfd {
  try {
    return open(pid);
  } catch (error) {
    if (!isOutOfDescriptors(error) || held.pidfds.size === 0) throw error;
    for (const pidfd of held.pidfds.values()) pidfd.close();
    held.pidfds.clear();
    return open(pid);
  }
}

function send(pidfd: Pidfd, signal: number, refusals: Map<number, string>): boolean {
  try {
    pidfd.signal(signal);
    return true;
  } catch (error) {
    noteRefusal(pidfd.pid, error, refusals);
    return false;
  }
}

function hold(held: Held, pid: number, pidfd: Pidfd): void {
  held.signalled += 1;
  if (held.pidfds.size < HELD_LIMIT) held.pidfds.set(pid, pidfd);
  else pidfd.close();
}

/** A process that is gone (ESRCH) refuses nothing. */
function noteRefusal(pid: number, error: unknown, refusals: Map<number, string>): void {
  const code = (error as NodeJS.ErrnoException).code ?? 'unknown error';
  if (code !== 'ESRCH') refusals.set(pid, `pid ${pid}: ${code}`);
}

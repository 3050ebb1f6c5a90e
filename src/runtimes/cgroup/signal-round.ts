import type { NativeAddon, Pidfd } from '../../native/types.ts';
import { processesOf, subtree } from './subtree.ts';

/** How many pidfds one eviction holds; processes beyond it are signalled, not held. */
export const HELD_LIMIT = 4096;

/** How many are opened before the first of them is signalled. */
const CHUNK = 64;

/** How often a round is repeated at once while new processes keep appearing (a fork storm). */
const REPEAT_LIMIT = 10;

/** The processes of a victim that were signalled, held by pidfd until they end. */
export interface Held {
  readonly pidfds: Map<number, Pidfd>;
  /** How many different processes were sent a signal. */
  signalled: number;
}

export interface RoundResult {
  /** How many processes were found, signalled or not. */
  readonly found: number;
  /** Set when one of them is evictd or an ancestor of it: then none was signalled. */
  readonly ownPid: number | undefined;
  /** Why a process could not be signalled, by pid. */
  readonly refusals: ReadonlyMap<number, string>;
}

/**
 * Sends `signal` to every process below `top`, through pidfds. A number that was reused between
 * listing and opening is not mistaken: what was opened counts only if the cgroup lists it again
 * afterwards. Rounds follow at once while new processes appear.
 */
export function signalRound(
  native: NativeAddon,
  top: string,
  signal: number,
  held: Held,
  isOwn: (pid: number) => boolean,
): RoundResult {
  const refusals = new Map<number, string>();
  const done = new Set<number>();
  let found = 0;
  for (let round = 0; round < REPEAT_LIMIT; round += 1) {
    const listed = subtree(top).map((directory) => ({ directory, pids: processesOf(directory) }));
    const ownPid = listed.flatMap(({ pids }) => pids).find(isOwn);
    if (ownPid !== undefined) return { found, ownPid, refusals };
    const fresh = listed
      .map(({ directory, pids }) => ({ directory, pids: pids.filter((pid) => !done.has(pid)) }))
      .filter(({ pids }) => pids.length > 0);
    if (fresh.length === 0) break;
    for (const { directory, pids } of fresh) {
      found += pids.length;
      for (const pid of pids) done.add(pid);
      for (let start = 0; start < pids.length; start += CHUNK) {
        const chunk = pids.slice(start, start + CHUNK);
        signalCgroup(native, directory, chunk, signal, held, refusals);
      }
    }
  }
  return { found, ownPid: undefined, refusals };
}

function signalCgroup(
  native: NativeAddon,
  directory: string,
  pids: readonly number[],
  signal: number,
  held: Held,
  refusals: Map<number, string>,
): void {
  const opened = new Map<number, Pidfd>();
  for (const pid of pids) {
    if (held.pidfds.has(pid)) continue;
    const pidfd = openProcess(native, pid, held, refusals);
    if (pidfd !== undefined) opened.set(pid, pidfd);
  }
  const stillHere = opened.size === 0 ? new Set<number>() : new Set(processesOf(directory));
  for (const [pid, pidfd] of opened) {
    if (!stillHere.has(pid)) pidfd.close();
    else if (send(pidfd, signal, refusals)) hold(held, pid, pidfd);
    else pidfd.close();
  }
  for (const pid of pids) {
    const known = opened.has(pid) ? undefined : held.pidfds.get(pid);
    if (known !== undefined) send(known, signal, refusals);
  }
}

function openProcess(
  native: NativeAddon,
  pid: number,
  held: Held,
  refusals: Map<number, string>,
): Pidfd | undefined {
  if (pid === 0) {
    refusals.set(pid, 'a process outside of this PID namespace');
    return undefined;
  }
  try {
    return openPidfd(native, pid, held);
  } catch (error) {
    noteRefusal(pid, error, refusals);
    return undefined;
  }
}

/** What is held only tells sooner of an end: it makes way when there are no descriptors left. */
function openPidfd(native: NativeAddon, pid: number, held: Held): Pidfd {
  try {
    return native.openPidfd(pid);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if ((code !== 'EMFILE' && code !== 'ENFILE') || held.pidfds.size === 0) throw error;
    for (const pidfd of held.pidfds.values()) pidfd.close();
    held.pidfds.clear();
    return native.openPidfd(pid);
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

/**
 * The group of a pod's path in another hierarchy, its twin. It is a group of its own: it may hold
 * the pod's processes, some of them, others, or none. So it is compared with the memory cgroup
 * whenever something is to be done through it.
 */
import { closeSync, writeFileSync } from 'node:fs';
import { asPath, type BytePath, toText } from '../../kernel/byte-path.ts';
import { heldPath, openDirectory } from '../../kernel/directory.ts';
import { processesBelow } from './subtree.ts';

/** What a twin holds beside a pod's memory cgroup. */
export interface Comparison {
  /** Those of the twin and of all below it. */
  readonly pids: readonly number[];
  /** One that is in the twin and not in the pod; undefined where there is none. */
  readonly stranger: number | undefined;
  /** One that is in the pod and not in the twin. */
  readonly missing: number | undefined;
}

/**
 * Runs `act` with a path to the twin's directory that stays with it, whatever becomes of its name.
 * Throws what open(2) gives, and what `act` throws.
 */
export function withDirectory<T>(directory: BytePath, act: (held: BytePath) => T): T {
  const fd = openDirectory(directory);
  try {
    return act(heldPath(fd));
  } finally {
    closeSync(fd);
  }
}

/**
 * Compares a twin with a pod's memory cgroup, both with all below. What differs is looked at once
 * more, so that neither a process that ends meanwhile nor one that is forked counts as a difference:
 * a fork puts the child into both groups at once.
 */
export function compare(twin: BytePath, pod: BytePath): Comparison {
  const memory = new Set(processesBelow(pod));
  const pids = processesBelow(twin);
  const inTwin = new Set(pids);
  // A process outside of this PID namespace is listed as 0, and might be anybody.
  const outside = pids.filter((pid) => pid === 0 || !memory.has(pid));
  const absent = [...memory].filter((pid) => !inTwin.has(pid));
  if (outside.length === 0 && absent.length === 0)
    return { pids, stranger: undefined, missing: undefined };
  const later = new Set(processesBelow(pod));
  const still = new Set(processesBelow(twin));
  return {
    pids,
    stranger: outside.find((pid) => pid === 0 || (!later.has(pid) && still.has(pid))),
    missing: absent.find((pid) => later.has(pid)),
  };
}

/** Whom a twin must hold for its `cgroup.kill` to be used. */
export type Cover =
  /** All of the pod, and nobody else. */
  | 'exactly'
  /** Nobody but the pod's; who is missing is ended by other means. */
  | 'onlyThePods';

export type TwinKill =
  | { readonly pids: readonly number[]; readonly unsafe: undefined }
  /** Nobody was killed, and why. */
  | { readonly pids: undefined; readonly unsafe: string };

export interface TwinKillInputs {
  /** The directory of the pod's group in the cgroup2 hierarchy. */
  readonly twin: BytePath;
  /** The directory of its memory cgroup, held open. */
  readonly pod: BytePath;
  readonly cover: Cover;
  /** Whether a pid is evictd's or an ancestor's. */
  readonly isOwn: (pid: number) => boolean;
  /** Compares, and kills nobody. */
  readonly rehearsal: boolean;
}

/**
 * Kills all that a twin in the cgroup2 hierarchy holds, if that is the pod's. `cgroup.kill` (Linux
 * 5.14) reaches what is forked meanwhile as well; it knows no other signal than KILL. Never throws.
 */
export function killThroughTwin({
  twin: directory,
  pod,
  cover,
  isOwn,
  rehearsal,
}: TwinKillInputs): TwinKill {
  const unsafe = (why: string): TwinKill => ({ pids: undefined, unsafe: why });
  const name = toText(directory);
  try {
    return withDirectory(directory, (twin) => {
      const { pids, stranger, missing } = compare(twin, pod);
      if (stranger !== undefined)
        return unsafe(`${name} holds pid ${stranger}, which is not the pod's`);
      if (pids.length === 0) return unsafe(`${name} holds no process`);
      if (cover === 'exactly' && missing !== undefined)
        return unsafe(`pid ${missing} of the pod is not in ${name}`);
      if (pids.some(isOwn)) return unsafe(`${name} holds evictd, an ancestor or a helper of it`);
      // Without O_CREAT and O_TRUNC: a file that is not there is none of cgroupfs.
      if (!rehearsal) writeFileSync(asPath(`${twin}/cgroup.kill`), '1', { flag: 'r+' });
      return { pids, unsafe: undefined };
    });
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return unsafe(`there is no ${name}, or no cgroup.kill in it`);
    return unsafe(`${name}: ${syscall ?? 'read'}: ${code ?? String(error)}`);
  }
}

import { readdirSync } from 'node:fs';
import { readControlFile } from './control-file.ts';
import { statField } from './process-stat.ts';

/** The longest chain of parents that is followed. */
const LONGEST_CHAIN = 1000;

/** A process and its ancestors up to init, the process first. Ends early where /proc does. */
export function ancestry(pid: number): readonly number[] {
  const chain: number[] = [];
  for (let next = pid; next > 0 && chain.length < LONGEST_CHAIN; next = parentOf(next))
    chain.push(next);
  return chain;
}

/** The parent's pid, 0 for none. */
function parentOf(pid: number): number {
  return Number(statField(pid, 'parent') ?? 0);
}

/** How many processes below another are followed. */
export const DESCENDANT_LIMIT = 100;

/**
 * The processes that a process has started and those that they have, without itself; at most
 * {@link DESCENDANT_LIMIT}. None where the kernel lists no children (CONFIG_PROC_CHILDREN), and none
 * of PID 1: it is given every orphan of its PID namespace, which it has not started. Source:
 * proc(5), `/proc/[pid]/task/[tid]/children`.
 */
export function descendants(pid: number): readonly number[] {
  if (pid === 1) return [];
  const found = [pid];
  for (let next = 0; next < found.length && found.length <= DESCENDANT_LIMIT; next += 1) {
    found.push(...childrenOf(found[next] ?? 0));
  }
  return found.slice(1, DESCENDANT_LIMIT + 1);
}

/** Of all threads: a child is listed under the one that started it. */
function childrenOf(pid: number): readonly number[] {
  const tasks = `/proc/${pid}/task`;
  return orNone(() => readdirSync(tasks)).flatMap((thread) =>
    orNone(() => readControlFile(`${tasks}/${thread}/children`).split(' '))
      .filter((child) => child !== '')
      .map(Number),
  );
}

/** Of a process or a thread that is gone nothing is listed. */
function orNone(list: () => readonly string[]): readonly string[] {
  try {
    return list();
  } catch {
    return [];
  }
}

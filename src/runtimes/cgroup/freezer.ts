import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { fromText } from '../../kernel/byte-path.ts';
import { readControlFile } from '../../kernel/control-file.ts';
import { cgroupOf, findHierarchy, type Hierarchy } from '../../kernel/hierarchy.ts';
import { liveTasks } from '../../kernel/live-tasks.ts';
import { processesBelow } from './subtree.ts';

/**
 * Thaws what keeps `pids` from dying: the cgroup v1 freezer holds back even a KILL. Only freezer
 * groups in which nobody else sits are touched; the rest is named.
 *
 * @returns one line for each group that stays frozen
 */
export function thaw(
  pids: readonly number[],
  freezer: Hierarchy | undefined = findHierarchy('freezer'),
): readonly string[] {
  if (freezer === undefined) return [];
  const groups = new Set(
    pids
      .flatMap((pid) => liveTasks(pid))
      .map((task) => cgroupOf(task, 'freezer', freezer))
      .filter((group) => group !== undefined),
  );
  return [...groups].flatMap((group) => thawGroup(group, freezer, new Set(pids)));
}

function thawGroup(
  group: string,
  freezer: Hierarchy,
  victims: ReadonlySet<number>,
): readonly string[] {
  try {
    if (group === freezer.mountPoint || isThawed(group)) return [];
    return upTo(freezer.mountPoint, group)
      .filter(isFrozenItself)
      .flatMap((frozen) => thawIfAlone(frozen, victims));
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}

/** A group and those above it, without the root, which cannot be frozen. */
function upTo(mountPoint: string, group: string): readonly string[] {
  const groups: string[] = [];
  for (let next = group; next.length > mountPoint.length; next = path.dirname(next)) {
    groups.push(next);
  }
  return groups;
}

function thawIfAlone(group: string, victims: ReadonlySet<number>): readonly string[] {
  if (!processesBelow(fromText(group)).every((pid) => victims.has(pid))) {
    return [`${group} is frozen and holds other processes`];
  }
  writeFileSync(`${group}/freezer.state`, 'THAWED');
  return [];
}

function isFrozenItself(group: string): boolean {
  return readControlFile(`${group}/freezer.self_freezing`).trim() === '1';
}

function isThawed(group: string): boolean {
  return readControlFile(`${group}/freezer.state`).trim() === 'THAWED';
}

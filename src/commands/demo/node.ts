import { mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { filter, firstValueFrom, map, take, throwError, timeout, timer } from 'rxjs';
import { EvictdError } from '../../core/errors.ts';
import { readControlFile } from '../../kernel/control-file.ts';
import { numberField, wholeNumber } from '../../kernel/fields.ts';
import type { Hierarchy } from '../../kernel/hierarchy.ts';
import { liveScheduler } from '../../sources/live-scheduler.ts';
import { mebibytes } from './format.ts';
import { LIMITS_MS, NODE_BYTES, PODS, THRESHOLD_BYTES } from './plan.ts';

/** How often to try to remove a cgroup whose last process is on its way out, ms. */
const REMOVE_RETRY_MS = 10;

/** The demo's node: a memory cgroup (v1) with one cgroup for each pod. */
export interface DemoNode {
  readonly directory: string;
  podDirectory(pod: string): string;
  /** `memory.usage_in_bytes` of the node and of each pod. */
  usage(): { readonly nodeBytes: number; readonly podBytes: ReadonlyMap<string, number> };
  /** The usage at which the threshold is crossed now: its inactive file does not count. */
  levelBytes(): number;
  /** Forgets the highest usage so far. */
  resetPeak(): void;
  peakBytes(): number;
  /** Processes that the OOM killer ended, in the node and in each pod. */
  oomKills(): number;
  /** Removes the cgroups; rejects with EVICTD_DEMO when they hold processes to the end. */
  remove(): Promise<void>;
}

/**
 * Makes the node directly below the mount's root.
 *
 * @throws EvictdError EVICTD_UNSUPPORTED, with nothing left behind
 */
export function makeNode({ mountPoint }: Hierarchy): DemoNode {
  const directory = `${mountPoint}/evictd-demo-${process.pid}`;
  const groups = [directory, ...PODS.map(({ name }) => `${directory}/${name}`)];
  const made: string[] = [];
  try {
    for (const group of groups) {
      mkdirSync(group);
      made.unshift(group);
    }
    setLimits(directory);
  } catch (error) {
    for (const group of made) rmdirSync(group);
    throw unsupported(error);
  }
  return {
    directory,
    podDirectory: (pod) => `${directory}/${pod}`,
    usage: () => ({
      nodeBytes: usageOf(directory),
      podBytes: new Map(PODS.map(({ name }) => [name, usageOf(`${directory}/${name}`)])),
    }),
    levelBytes: () => NODE_BYTES - THRESHOLD_BYTES + statOf(directory, 'total_inactive_file'),
    resetPeak: () => writeFileSync(`${directory}/memory.max_usage_in_bytes`, '0'),
    peakBytes: () => wholeNumber(readControlFile(`${directory}/memory.max_usage_in_bytes`)),
    oomKills: () => groups.reduce((sum, group) => sum + oomKillsOf(group), 0),
    remove: () => removeGroups(directory, groups.toReversed()),
  };
}

function setLimits(directory: string): void {
  const write = (file: string, value: number): void => {
    writeFileSync(`${directory}/${file}`, String(value));
  };
  // Inherited where the parent has it, and refused (EBUSY) once there are children.
  if (wholeNumber(readControlFile(`${directory}/memory.use_hierarchy`)) !== 1) {
    throw new Error(`${directory}/memory.use_hierarchy is off, and its children would not count`);
  }
  write('memory.limit_in_bytes', NODE_BYTES);
  for (const { name, requestBytes, limitBytes } of PODS) {
    if (limitBytes !== undefined) write(`${name}/memory.limit_in_bytes`, limitBytes);
    if (requestBytes > 0) write(`${name}/memory.soft_limit_in_bytes`, requestBytes);
  }
  const limitBytes = statOf(directory, 'hierarchical_memory_limit');
  if (limitBytes < NODE_BYTES) {
    const [has, needs] = [mebibytes(limitBytes), mebibytes(NODE_BYTES)];
    throw new Error(`the cgroup above is limited to ${has}, and the node needs ${needs}`);
  }
}

function unsupported(cause: unknown): EvictdError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new EvictdError(
    'EVICTD_UNSUPPORTED',
    `the demo's cgroups cannot be made: ${why}`,
    {},
    cause,
  );
}

function usageOf(directory: string): number {
  return wholeNumber(readControlFile(`${directory}/memory.usage_in_bytes`));
}

function statOf(directory: string, field: string): number {
  return numberField(readControlFile(`${directory}/memory.stat`), `${field} `) ?? 0;
}

/** Counted in the victim's own cgroup alone. Linux before 4.13 counts nothing. */
function oomKillsOf(directory: string): number {
  return numberField(readControlFile(`${directory}/memory.oom_control`), 'oom_kill ') ?? 0;
}

/** A cgroup is busy until the kernel has taken the last, killed process out of it. */
function removeGroups(directory: string, groups: readonly string[]): Promise<void> {
  const late = () => new EvictdError('EVICTD_DEMO', `the cgroup ${directory} is still busy`);
  const removed$ = timer(0, REMOVE_RETRY_MS, liveScheduler).pipe(
    map(() => groups.every(isRemoved)),
    filter((isGone) => isGone),
    take(1),
    timeout({ first: LIMITS_MS.tidy, scheduler: liveScheduler, with: () => throwError(late) }),
    map(() => undefined),
  );
  return firstValueFrom(removed$);
}

function isRemoved(group: string): boolean {
  try {
    rmdirSync(group);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return true;
    if (code === 'EBUSY') return false;
    throw error;
  }
}

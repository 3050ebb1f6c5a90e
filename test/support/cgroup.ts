import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { until } from './wait.ts';

/** Where the memory controller of cgroup v1 is mounted. */
export const MEMORY_HIERARCHY = '/sys/fs/cgroup/memory';

export interface CgroupLimits {
  /** `memory.limit_in_bytes`; unlimited by default. */
  readonly limitBytes?: number;
  /** `memory.soft_limit_in_bytes`: evictd's memory request. */
  readonly softLimitBytes?: number;
}

/** A memory cgroup (v1) that a test made, and all below it. */
export interface TestCgroup {
  /** The absolute path of its directory. */
  readonly path: string;
  readonly name: string;
  /** Makes a cgroup below this one. */
  child(name: string, limits?: CgroupLimits): TestCgroup;
  /** Moves a process here. A child of {@link spawnMemory} does it itself. */
  join(pid: number): void;
  /** The text of one of its files. */
  read(file: string): string;
  write(file: string, value: string | number | bigint): void;
  /** `memory.usage_in_bytes`. */
  usageBytes(): number;
  /** A field of `memory.stat`, such as `total_inactive_file`; undefined when it has none such. */
  statBytes(field: string): number | undefined;
  /** The processes in it, not counting cgroups below. */
  pids(): number[];
  /**
   * Kills what is in it and below, and removes it. Does nothing when it is gone already. Rejects
   * after 10 s, naming who still lives.
   */
  remove(): Promise<void>;
}

/** The group of the same path in another hierarchy. */
export interface TestTwin {
  readonly path: string;
  join(pid: number): void;
  read(file: string): string;
  write(file: string, value: string | number): void;
  /** Kills what is in it and beside it in the node's group of that hierarchy, and removes that. */
  remove(): Promise<void>;
}

/** Makes the twin of a memory cgroup, in the cgroup2 mount or in the hierarchy of a controller. */
export function makeTwin(cgroup: TestCgroup, hierarchy: 'unified' | 'pids'): TestTwin {
  const mount = path.join(path.dirname(MEMORY_HIERARCHY), hierarchy);
  const relative = path.relative(MEMORY_HIERARCHY, cgroup.path);
  const directory = path.join(mount, relative);
  mkdirSync(directory, { recursive: true });
  const { join, read, write } = open(directory);
  const top = path.join(mount, relative.split(path.sep)[0] as string);
  return { path: directory, join, read, write, remove: () => remove(top) };
}

let made = 0;

/**
 * Makes `evictd-test-<pid>-<n>` in the memory hierarchy, with `memory.use_hierarchy`. Whoever
 * makes one removes it, in `afterEach` or `afterAll`.
 */
export function makeCgroup(limits: CgroupLimits = {}): TestCgroup {
  made += 1;
  const directory = path.join(MEMORY_HIERARCHY, `evictd-test-${process.pid}-${made}`);
  return create(directory, limits);
}

function create(directory: string, limits: CgroupLimits): TestCgroup {
  mkdirSync(directory);
  const cgroup = open(directory);
  // Refused (EBUSY, EINVAL) where it is set already and the parent has it too.
  if (cgroup.read('memory.use_hierarchy').trim() !== '1') cgroup.write('memory.use_hierarchy', 1);
  if (limits.limitBytes !== undefined) cgroup.write('memory.limit_in_bytes', limits.limitBytes);
  if (limits.softLimitBytes !== undefined) {
    cgroup.write('memory.soft_limit_in_bytes', limits.softLimitBytes);
  }
  return cgroup;
}

function open(directory: string): TestCgroup {
  const read = (file: string) => readFileSync(path.join(directory, file), 'utf8');
  const write = (file: string, value: string | number | bigint) =>
    writeFileSync(path.join(directory, file), String(value));
  return {
    path: directory,
    name: path.basename(directory),
    child: (name, limits = {}) => create(path.join(directory, name), limits),
    join: (pid) => write('cgroup.procs', pid),
    read,
    write,
    usageBytes: () => Number(read('memory.usage_in_bytes')),
    statBytes: (field) => {
      const value = new RegExp(`^${field} (\\d+)$`, 'm').exec(read('memory.stat'))?.[1];
      return value === undefined ? undefined : Number(value);
    },
    pids: () => pidsIn(directory),
    remove: () => remove(directory),
  };
}

async function remove(directory: string): Promise<void> {
  for (const below of directoriesIn(directory)) await remove(path.join(directory, below));
  await until(
    `${directory} is removed`,
    () => {
      for (const pid of pidsIn(directory)) kill(pid);
      try {
        rmdirSync(directory);
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        // Until the kernel has taken the last task out, a killed process is still in it.
        if (code === 'EBUSY') return false;
        if (code !== 'ENOENT') throw error;
      }
      return true;
    },
    { limitMs: 10_000, describe: () => `still in it: ${pidsIn(directory).join(' ')}` },
  );
}

function kill(pid: number): void {
  if (pid === process.pid) throw new Error('a test process has joined a cgroup under test');
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function pidsIn(directory: string): number[] {
  return orNothing(() =>
    readFileSync(path.join(directory, 'cgroup.procs'), 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map(Number),
  );
}

function directoriesIn(directory: string): string[] {
  return orNothing(() =>
    readdirSync(directory, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name),
  );
}

/** What `list` gives, or nothing when the cgroup is gone (ENODEV: it went while it was read). */
function orNothing<T>(list: () => T[]): T[] {
  try {
    return list();
  } catch (error) {
    if (['ENOENT', 'ENODEV'].includes((error as NodeJS.ErrnoException).code ?? '')) return [];
    throw error;
  }
}

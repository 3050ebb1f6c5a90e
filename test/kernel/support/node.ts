/** A node of real cgroups and its pods; all go with the test. */
import { spawn } from 'node:child_process';
import { onTestFinished } from 'vitest';
import {
  type CgroupLimits,
  makeCgroup,
  makeTwin,
  type TestCgroup,
  type TestTwin,
} from '../../support/cgroup.ts';
import { type MemoryChild, type MemoryChildOptions, spawnMemory } from '../../support/child.ts';
import { within } from '../../support/wait.ts';

export const MI = 2 ** 20;

/** How much a bystander holds, beside what Node takes. */
const BYSTANDER_BYTES = 8 * MI;

export interface TestPod {
  readonly cgroup: TestCgroup;
  /** Starts a process in it, or in the cgroup `below` it. */
  spawn(options?: {
    readonly onTerm?: MemoryChildOptions['onTerm'];
    readonly below?: TestCgroup;
    readonly uid?: number;
    /** Groups of other hierarchies to join as well. */
    readonly beside?: readonly TestTwin[];
  }): Promise<MemoryChild>;
  /** Runs a shell script in it; ended with the test. */
  shell(script: string, args?: readonly string[]): ShellProcess;
}

export interface ShellProcess {
  readonly pid: number;
  /** Resolves with the first line that it prints. */
  readonly said: Promise<string>;
  readonly exited: Promise<NodeJS.Signals | number | null>;
}

export interface TestNode {
  readonly cgroup: TestCgroup;
  readonly path: string;
  pod(name: string, limits?: CgroupLimits): TestPod;
  /** A pod with one process of some 8 MiB that must survive. */
  bystander(name?: string): Promise<Bystander>;
}

export interface Bystander {
  readonly child: MemoryChild;
  /** Fails unless it still lives. */
  expectAlive(): void;
}

/** Makes a node with a memory limit. */
export function makeNode(limitBytes: number): TestNode {
  const cgroup = makeCgroup({ limitBytes });
  onTestFinished(() => cgroup.remove());
  return nodeOf(cgroup);
}

/** The group of the same path in another hierarchy; it goes with the test. */
export function twinOf(cgroup: TestCgroup, hierarchy: 'unified' | 'pids'): TestTwin {
  const twin = makeTwin(cgroup, hierarchy);
  onTestFinished(() => twin.remove());
  return twin;
}

/** The node that a cgroup is to be. */
export function nodeOf(cgroup: TestCgroup): TestNode {
  const pod = (name: string, limits: CgroupLimits = {}) => podOf(cgroup.child(name, limits));
  return {
    cgroup,
    path: cgroup.path,
    pod,
    bystander: async (name = 'web') => {
      const child = await pod(name).spawn();
      await child.grow(BYSTANDER_BYTES);
      return { child, expectAlive: () => void process.kill(child.pid, 0) };
    },
  };
}

/** The pod that a cgroup is to be. */
export function podOf(cgroup: TestCgroup): TestPod {
  return {
    cgroup,
    spawn: async ({ below = cgroup, onTerm = 'exit', beside = [], uid } = {}) => {
      const child = await spawnMemory({
        cgroups: [...beside.map((twin) => twin.path), below.path],
        onTerm,
        ...(uid === undefined ? {} : { uid }),
      });
      onTestFinished(() => void child.kill());
      return child;
    },
    shell: (script, args = []) => startShell(cgroup, script, args),
  };
}

function startShell(cgroup: TestCgroup, script: string, args: readonly string[]): ShellProcess {
  const joined = `echo $$ > "$0/cgroup.procs" || exit 9\n${script}`;
  const child = spawn('bash', ['-c', joined, cgroup.path, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const exited = new Promise<NodeJS.Signals | number | null>((resolve) =>
    child.once('exit', (code, signal) => resolve(signal ?? code)),
  );
  const said = new Promise<string>((resolve, reject) => {
    child.stdout.once('data', (text: Buffer) => resolve(text.toString().trim()));
    child.once('exit', (code) => reject(new Error(`the shell ended (${code}) without a word`)));
  });
  said.catch(() => undefined);
  return { pid: child.pid ?? Number.NaN, said: within(said, 30_000, 'the shell speaks'), exited };
}

/**
 * Grows `child` until the node's working set is `bytes`, and not by more than that; the growth that
 * kills it is no failure.
 */
export async function fill(node: TestCgroup, child: MemoryChild, bytes: number): Promise<void> {
  const inactive = node.statBytes('total_inactive_file') ?? 0;
  const missing = bytes - (node.usageBytes() - inactive);
  if (missing <= 0) throw new Error(`the working set is above ${bytes} already, by ${-missing}`);
  await child.grow(missing).catch(() => undefined);
}

/** Whether the process still lives. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Processes that the kernel's OOM killer ended in a cgroup, not counting those below. */
export function oomKills(cgroup: TestCgroup): number {
  return Number(/^oom_kill (\d+)$/m.exec(cgroup.read('memory.oom_control'))?.[1]);
}

/** How `child` died, awaited with a limit. */
export function death(child: MemoryChild, limitMs = 15_000) {
  return within(child.exited, limitMs, `process ${child.pid} dies`);
}

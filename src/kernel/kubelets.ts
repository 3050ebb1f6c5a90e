import { readdirSync, readlinkSync } from 'node:fs';
import { readControlFile, readPathsFile } from './control-file.ts';

/** A process that is a kubelet, or has one in it. */
export interface KubeletProcess {
  readonly pid: number;
  /** What the kernel calls the process. */
  readonly name: string;
  /** Its command line; undefined where it cannot be read. */
  readonly args: readonly string[] | undefined;
  /** A path to its root directory, and to the one that it works in. */
  readonly root: string;
  readonly cwd: string;
}

/** Kubelets, and what has one in it: k3s, MicroK8s. k0s and RKE2 start one beside themselves. */
const NAMES: readonly string[] = ['kubelet', 'k3s', 'k3s-server', 'k3s-agent', 'kubelite'];

/** Longer command lines are not read. */
const MAX_COMMAND_LINE = 128 * 1024;

/**
 * The kubelets of this machine: root's processes, since anybody may call one of his so. One in a PID namespace of its
 * own is that of another node, which runs in a container here; where either cannot be told it counts.
 *
 * @param proc procfs
 */
export function kubeletProcesses(proc = '/proc'): readonly KubeletProcess[] {
  let pids: readonly number[];
  try {
    pids = readdirSync(proc)
      .filter((entry) => /^[0-9]+$/.test(entry))
      .map(Number);
  } catch {
    return [];
  }
  const own = namespaceOf(`${proc}/1`);
  return pids.flatMap((pid) => {
    const directory = `${proc}/${pid}`;
    const name = orUndefined(() => readControlFile(`${directory}/comm`).trimEnd());
    if (name === undefined || !NAMES.includes(name)) return [];
    if (isAnothers(directory)) return [];
    const namespace = namespaceOf(directory);
    if (own !== undefined && namespace !== undefined && namespace !== own) return [];
    return [
      {
        pid,
        name,
        args: argsOf(directory),
        root: `${directory}/root`,
        cwd: `${directory}/cwd`,
      },
    ];
  });
}

/** Whether somebody else than root runs it: not by the directory, which is root's where a process hides its memory. */
function isAnothers(directory: string): boolean {
  const status = orUndefined(() => readControlFile(`${directory}/status`)) ?? '';
  const [, effective] = EFFECTIVE_UID.exec(status) ?? [];
  return effective !== undefined && effective !== '0';
}

const EFFECTIVE_UID = /^Uid:\t\d+\t(\d+)/m;

function namespaceOf(directory: string): string | undefined {
  return orUndefined(() => readlinkSync(`${directory}/ns/pid`));
}

/** None of a process that has ended, whose command line is empty. */
function argsOf(directory: string): readonly string[] | undefined {
  const text = orUndefined(() => readPathsFile(`${directory}/cmdline`));
  if (text === undefined || text === '' || text.length > MAX_COMMAND_LINE) return undefined;
  return text.replace(/\0$/, '').split('\0');
}

function orUndefined<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { describe, it } from 'vitest';
import { MEMORY_HIERARCHY } from './cgroup.ts';

/** What a suite needs of the machine. */
export interface Requirements {
  readonly root?: true;
  /** A writable memory hierarchy of cgroup v1. */
  readonly cgroupV1?: true;
  /** A writable freezer hierarchy of cgroup v1. */
  readonly freezerV1?: true;
  /** A cgroup2 mount beside it, as on a hybrid host. */
  readonly hybrid?: true;
  /** A writable pids hierarchy of cgroup v1. */
  readonly pidsV1?: true;
  /** Programs that must be found on the PATH. */
  readonly programs?: readonly string[];
  /** Files that must exist, such as those of one kernel feature. */
  readonly files?: readonly string[];
}

/** Why a suite with these requirements cannot run here; undefined when it can. */
export function requires(requirements: Requirements): string | undefined {
  const { root, cgroupV1, freezerV1, hybrid, pidsV1, programs = [], files = [] } = requirements;
  if (root && process.getuid?.() !== 0) return 'needs root';
  if (cgroupV1 && !writableHierarchy(MEMORY_HIERARCHY)) {
    return `needs a writable memory hierarchy of cgroup v1 at ${MEMORY_HIERARCHY}`;
  }
  if (freezerV1 && !writableHierarchy('/sys/fs/cgroup/freezer')) {
    return 'needs a writable freezer hierarchy of cgroup v1 at /sys/fs/cgroup/freezer';
  }
  if (hybrid && !writableHierarchy('/sys/fs/cgroup/unified')) {
    return 'needs a writable cgroup2 mount at /sys/fs/cgroup/unified';
  }
  if (pidsV1 && !writableHierarchy('/sys/fs/cgroup/pids')) {
    return 'needs a writable pids hierarchy of cgroup v1 at /sys/fs/cgroup/pids';
  }
  for (const program of programs) {
    const found = spawnSync('sh', ['-c', 'command -v "$1"', 'sh', program], { stdio: 'ignore' });
    if (found.status !== 0) return `needs the program ${program}`;
  }
  for (const file of files) {
    if (!existsSync(file)) return `needs ${file}`;
  }
  return undefined;
}

/**
 * `describe`, where the machine has what the suite needs. Elsewhere the suite is skipped with the
 * reason in its name, which the reporter prints; with `EVICTD_NO_SKIP=1`, as in CI, it fails.
 */
export function describeWith(requirements: Requirements, name: string, body: () => void): void {
  const reason = requires(requirements);
  if (reason === undefined) {
    describe(name, body);
    return;
  }
  if (process.env['EVICTD_NO_SKIP'] === '1') {
    describe(name, () => {
      it('runs on this machine', () => {
        throw new Error(`${reason}, and EVICTD_NO_SKIP=1 allows no skip`);
      });
    });
    return;
  }
  describe.skipIf(true)(`${name} (${reason})`, body);
}

function writableHierarchy(directory: string): boolean {
  if (!existsSync(`${directory}/cgroup.procs`)) return false;
  try {
    accessSync(directory, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

import { onTestFinished } from 'vitest';
import { findHierarchy } from '../../../src/kernel/hierarchy.ts';
import type { Runtime } from '../../../src/ports/runtime.ts';
import { type CgroupRuntimeInputs, cgroupRuntime } from '../../../src/runtimes/cgroup/runtime.ts';
import { liveScheduler } from '../../../src/sources/live-scheduler.ts';

/** The runtime of a node on this machine, its children the pods, without the addon; closed with the test. */
export function openRuntime(
  directory: string,
  overrides: Partial<CgroupRuntimeInputs> = {},
): Runtime {
  const hierarchy = findHierarchy('memory');
  if (hierarchy === undefined) throw new Error('no memory hierarchy');
  const runtime = cgroupRuntime({
    directory,
    isRoot: false,
    parents: [],
    hierarchy,
    fields: new Map(),
    native: undefined,
    allowPidKill: false,
    scheduler: liveScheduler,
    pid: process.pid,
    ...overrides,
  });
  onTestFinished(() => runtime.close());
  return runtime;
}

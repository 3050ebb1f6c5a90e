import { readdirSync } from 'node:fs';
import type { PodObservation, QosClass } from '../../core/pod.ts';
import { asPath, type BytePath, toText } from '../../kernel/byte-path.ts';
import type { HandleCache } from './handle-cache.ts';
import type { PodHandle } from './pod-handle.ts';

/** How many child cgroups are looked at; beyond it pods would be missed, which is said. */
export const POD_LIMIT = 20_000;

/** What a pod's cgroup has no field for. */
export interface PodFields {
  readonly priority: number | undefined;
  readonly memoryRequestNano: bigint | undefined;
  readonly gracePeriodSeconds: number | undefined;
  readonly protected: boolean;
}

export interface ObserveInputs {
  readonly directory: BytePath;
  readonly handles: HandleCache;
  /** By pod name. */
  readonly fields: ReadonlyMap<string, PodFields>;
  /** Cgroup directories of evictd and its ancestors. */
  readonly ownDirectories: () => readonly string[];
  readonly nowMs: () => number;
  /** Looks at every pod whether it has a process, not only at those that look as if they had none. */
  readonly checkEmpty?: boolean;
}

/** A pod of less, bytes, is looked at whether it has a process at all: without one there is nothing to kill. */
const SMALL_BYTES = 2 ** 20;

const NANO = 1_000_000_000n;

/** No limit, as cgroup v1 writes it: the largest multiple of a page; cut to what a number holds. */
const UNLIMITED = Number.MAX_SAFE_INTEGER;

/** The names of the pods: the direct children of the node's cgroup. Empty when it is gone. */
export function podNames(directory: BytePath): readonly BytePath[] {
  try {
    return readdirSync(asPath(directory), { withFileTypes: true, encoding: 'latin1' })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name)
      .slice(0, POD_LIMIT);
  } catch {
    return [];
  }
}

/** Lists the pods afresh and reads each. A pod that vanishes meanwhile is left out. */
export function observePods(inputs: ObserveInputs): readonly PodObservation[] {
  const own = inputs.ownDirectories();
  const names = podNames(inputs.directory);
  inputs.handles.retain(new Set(names));
  return names.flatMap((name) => observePod(inputs, own, name) ?? []);
}

function observePod(
  inputs: ObserveInputs,
  own: readonly string[],
  bytes: BytePath,
): PodObservation | undefined {
  const nowMs = inputs.nowMs();
  const seen = readPod(inputs.handles, bytes, nowMs);
  if (seen === undefined) return undefined;
  const { handle, counters } = seen;
  const isSuspect = inputs.checkEmpty === true || (counters?.workingSetBytes ?? 0) < SMALL_BYTES;
  const isEmpty = isSuspect ? handle.checkEmpty() : handle.isKnownEmpty();
  const name = toText(bytes);
  const fields = inputs.fields.get(name);
  const memoryRequestNano = fields?.memoryRequestNano ?? requestOf(counters?.softLimitBytes);
  return {
    id: handle.id,
    name,
    priority: fields?.priority ?? 0,
    qosClass: qosClass(memoryRequestNano, handle, nowMs),
    memoryRequestNano,
    workingSetBytes: counters?.workingSetBytes,
    gracePeriodSeconds: fields?.gracePeriodSeconds,
    protectedBecause: protection(fields, own, handle.path, isEmpty),
    atMs: nowMs,
  };
}

interface PodCounters {
  readonly workingSetBytes: number;
  readonly softLimitBytes: number;
}

/** Reads a pod; once more with a new handle, should the held one be of a cgroup that is gone. */
function readPod(
  handles: HandleCache,
  name: BytePath,
  nowMs: number,
): { readonly handle: PodHandle; readonly counters: PodCounters | undefined } | undefined {
  try {
    return readWith(handles.get(name), nowMs);
  } catch {
    handles.drop(name);
  }
  let handle: PodHandle;
  try {
    handle = handles.get(name);
  } catch {
    return undefined;
  }
  try {
    return readWith(handle, nowMs);
  } catch {
    return handle.identity() === 'same' ? { handle, counters: undefined } : undefined;
  }
}

function readWith(
  handle: PodHandle,
  nowMs: number,
): { readonly handle: PodHandle; readonly counters: PodCounters } {
  const counters = {
    workingSetBytes: handle.workingSetBytes(),
    softLimitBytes: handle.softLimitBytes(nowMs),
  };
  return { handle, counters };
}

/** The soft limit is the request; without one there is none. */
function requestOf(softLimitBytes: number | undefined): bigint {
  return softLimitBytes === undefined || softLimitBytes >= UNLIMITED
    ? 0n
    : BigInt(softLimitBytes) * NANO;
}

function qosClass(requestNano: bigint, handle: PodHandle, nowMs: number): QosClass {
  if (requestNano === 0n) return 'BestEffort';
  try {
    return requestNano === BigInt(handle.limitBytes(nowMs)) * NANO ? 'Guaranteed' : 'Burstable';
  } catch {
    return 'Burstable';
  }
}

function protection(
  fields: PodFields | undefined,
  own: readonly string[],
  path: string,
  isEmpty: boolean,
): string | undefined {
  if (fields?.protected === true) return 'configured';
  const holdsOwn = own.some((directory) => directory === path || directory.startsWith(`${path}/`));
  if (holdsOwn) return 'holds evictd or one of its ancestors';
  return isEmpty ? 'holds no process' : undefined;
}

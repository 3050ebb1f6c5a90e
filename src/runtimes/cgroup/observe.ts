import type { PodObservation, QosClass } from '../../core/pod.ts';
import { type BytePath, toText } from '../../kernel/byte-path.ts';
import { oomScoreAdj } from '../../kernel/oom-score-adj.ts';
import { NO_PROCESS } from '../shared/protection.ts';
import { type FoundPod, listPods, type PodPlaces } from './discovery.ts';
import type { HandleCache } from './handle-cache.ts';
import type { PodHandle } from './pod-handle.ts';
import { dueForLook, type Listed, type OomScoreAdjOf } from './spared.ts';

/** What a pod's cgroup has no field for. */
export interface PodFields {
  readonly priority: number | undefined;
  readonly memoryRequestNano: bigint | undefined;
  readonly gracePeriodSeconds: number | undefined;
  readonly protected: boolean;
}

/** The same of a rule. */
export interface RuleFields extends PodFields {
  /** What the pod is called; its path where that is undefined. */
  readonly name: string | undefined;
}

export interface ObserveInputs {
  readonly places: PodPlaces;
  readonly handles: HandleCache;
  /** By pod name. */
  readonly fields: ReadonlyMap<string, PodFields>;
  /** What the rules of a configuration say of a cgroup, by its path relative to the node's. */
  readonly ruleOf?: (name: string) => RuleFields | undefined;
  /** Cgroup directories of evictd, its ancestors and its helpers. */
  readonly ownDirectories: () => readonly string[];
  readonly nowMs: () => number;
  /** Looks at every pod whether it has a process, not only at those that look as if they had none. */
  readonly checkEmpty?: boolean;
  /** Is told why pods may be missing from this listing, or undefined. */
  readonly noteTrouble?: (trouble: string | undefined) => void;
  /** As procfs says, by default. */
  readonly oomScoreAdjOf?: OomScoreAdjOf;
  /** Counts of each pod what a limit of PIDs is about; by default nothing is counted. */
  readonly countPids?: (handle: PodHandle) => number | undefined;
  /** Whether that is processes, not tasks. */
  readonly countsProcesses?: boolean;
}

/** A pod of less, bytes, is looked at whether it has a process at all: without one there is nothing to kill. */
const SMALL_BYTES = 2 ** 20;

const NANO = 1_000_000_000n;

/** No limit, as cgroup v1 writes it: the largest multiple of a page; cut to what a number holds. */
const UNLIMITED = Number.MAX_SAFE_INTEGER;

/**
 * Lists the pods afresh and reads each. A pod that vanishes meanwhile is left out. Into the first in
 * rank it is looked what spares them, as {@link dueForLook} says; of the others is told what was
 * seen before.
 */
export function observePods(inputs: ObserveInputs): readonly PodObservation[] {
  const protections: Protections = {
    own: inputs.ownDirectories(),
    configured: [...inputs.fields].flatMap(([name, fields]) => (fields.protected ? [name] : [])),
  };
  const { pods, trouble } = listPods(inputs.places);
  inputs.handles.retain(new Set(pods.map(({ name }) => name)));
  const unread: string[] = [];
  const observed = pods.flatMap((pod) => observePod(inputs, protections, pod, unread) ?? []);
  inputs.noteTrouble?.(trouble ?? unread[0]);
  const due = dueForLook(observed, inputs.nowMs());
  return observed.map((one) => (due.has(one) ? lookInto(inputs, one) : one.pod));
}

/** A pod that was read, and where. */
interface Observed extends Listed {
  readonly name: BytePath;
}

/** Its handle may have made way for others meanwhile, and its cgroup been made again. */
function lookInto(inputs: ObserveInputs, { name, pod }: Observed): PodObservation {
  const { handles, nowMs, oomScoreAdjOf = oomScoreAdj } = inputs;
  try {
    const handle = handles.get(name);
    if (handle.id !== pod.id) return pod;
    handle.look(nowMs(), oomScoreAdjOf);
    return { ...pod, protectedBecause: handle.sparedBecause() };
  } catch {
    return pod;
  }
}

function observePod(
  inputs: ObserveInputs,
  protections: Protections,
  found: FoundPod,
  unread: string[],
): Observed | undefined {
  const nowMs = inputs.nowMs();
  const seen = readPod(inputs.handles, found.name, nowMs, unread);
  if (seen === undefined) return undefined;
  const { handle, counters } = seen;
  const isSuspect = inputs.checkEmpty === true || (counters?.workingSetBytes ?? 0) < SMALL_BYTES;
  const isEmpty = isSuspect ? handle.checkEmpty() : handle.isKnownEmpty();
  const name = toText(found.name);
  const rule = inputs.ruleOf?.(name);
  const fields = inputs.fields.get(name) ?? rule;
  const memoryRequestNano =
    fields?.memoryRequestNano ?? requestOf(found.qosClass, handle, counters?.softLimitBytes, nowMs);
  const isProtected = rule?.protected === true;
  const because = isProtected ? CONFIGURED : protection(protections, name, handle.path, isEmpty);
  const pod = {
    id: handle.id,
    name: rule?.name ?? name,
    priority: fields?.priority ?? 0,
    qosClass: found.qosClass ?? qosClass(memoryRequestNano, handle, nowMs),
    memoryRequestNano,
    workingSetBytes: counters?.workingSetBytes,
    pids: inputs.countPids?.(handle),
    ...(inputs.countsProcesses === true ? { pidsAre: 'processes' as const } : {}),
    gracePeriodSeconds: fields?.gracePeriodSeconds,
    protectedBecause: because ?? handle.sparedBecause(),
    atMs: nowMs,
  };
  const isCandidate = because === undefined;
  return { name: found.name, pod, isCandidate, lookedAtMs: handle.lookedAtMs() };
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
  unread: string[],
): { readonly handle: PodHandle; readonly counters: PodCounters | undefined } | undefined {
  try {
    return readWith(handles.get(name), nowMs);
  } catch {
    handles.drop(name);
  }
  let handle: PodHandle;
  try {
    handle = handles.get(name);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT' && code !== 'ENODEV')
      unread.push(`${toText(name)} cannot be read: ${code}`);
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

/**
 * The soft limit is the request; without one there is none, but for a Guaranteed pod of the kubelet,
 * which sets no soft limit: there it is the limit. A BestEffort pod of the kubelet asks for nothing.
 */
function requestOf(
  qosClass: QosClass | undefined,
  handle: PodHandle,
  softLimitBytes: number | undefined,
  nowMs: number,
): bigint {
  if (qosClass === 'BestEffort') return 0n;
  const bytes =
    qosClass === 'Guaranteed' && (softLimitBytes ?? UNLIMITED) >= UNLIMITED
      ? limitOf(handle, nowMs)
      : softLimitBytes;
  return bytes === undefined || bytes >= UNLIMITED ? 0n : BigInt(bytes) * NANO;
}

/** Undefined when it cannot be read. */
function limitOf(handle: PodHandle, nowMs: number): number | undefined {
  try {
    return handle.limitBytes(nowMs);
  } catch {
    return undefined;
  }
}

function qosClass(requestNano: bigint, handle: PodHandle, nowMs: number): QosClass {
  if (requestNano === 0n) return 'BestEffort';
  const limitBytes = limitOf(handle, nowMs);
  return limitBytes !== undefined && requestNano === BigInt(limitBytes) * NANO
    ? 'Guaranteed'
    : 'Burstable';
}

const CONFIGURED = 'configured';

/** What protects pods wherever they are. */
interface Protections {
  /** Cgroup directories of evictd's own processes. */
  readonly own: readonly string[];
  /** Names that are configured so; what is below one is protected with it. */
  readonly configured: readonly string[];
}

function protection(
  { own, configured }: Protections,
  name: string,
  path: string,
  isEmpty: boolean,
): string | undefined {
  if (configured.some((one) => isWithin(name, one))) return CONFIGURED;
  if (own.some((directory) => isWithin(directory, path)))
    return 'holds evictd, one of its ancestors or helpers';
  return isEmpty ? NO_PROCESS : undefined;
}

function isWithin(path: string, top: string): boolean {
  return path === top || path.startsWith(`${top}/`);
}

/** The runtime that the settings ask for: cgroups alone, or named by what runs them. */
import { type Observable, tap } from 'rxjs';
import { holdsHost, isHostsOwn } from '../config/pod-globs.ts';
import { compileRuntimeRules } from '../config/runtime-rules.ts';
import type { Settings } from '../config/settings.ts';
import { SIGNALS, type Signal } from '../core/signal.ts';
import { descendants } from '../kernel/ancestry.ts';
import { pathIn } from '../kernel/hierarchy.ts';
import type { NodeCgroup } from '../kernel/node-cgroup.ts';
import type { RuntimePod } from '../ports/pod-directory.ts';
import type { EvictProgress, EvictRequest } from '../ports/runtime.ts';
import { memoryBelow } from '../runtimes/cgroup/container-memory.ts';
import { cgroupRuntime, type PodSelection } from '../runtimes/cgroup/runtime.ts';
import type { ClaimedPod, Doubt } from '../runtimes/shared/claims.ts';
import {
  type DirectedInputs,
  type DirectoryNotice,
  directedRuntime,
} from '../runtimes/shared/directed.ts';
import { type LeftOverNotice, type LeftOvers, leftOvers } from '../runtimes/shared/left-over.ts';
import { oncePerPod } from '../runtimes/shared/once-per-pod.ts';
import { type LabelFault, type PodFieldsFound, podFieldsOf } from './pod-fields.ts';
import { selectionOf } from './settings.ts';
import type { DaemonInputs, SelectableRuntime } from './wiring.ts';

/** What a runtime is made of. */
export type RuntimeInputs = Omit<DaemonInputs, 'hostName' | 'logger' | 'keeping'>;

/** What is known of disks, where anything is. */
export interface DiskNeeds {
  /** What a pod uses of the disks: looked up, and nothing else done, since a kill may wait for it. */
  readonly diskOf: NonNullable<DirectedInputs['diskOf']>;
  /** Is told that other pods were listed. */
  readonly notePods: () => void;
  /** Whether a pod is known to use nothing of the disk that a signal is about, so that none comes back. */
  readonly isNothing: (podId: string, signal: Signal) => boolean;
  /** Whether what dead pods leave may be removed. */
  readonly mayRemove: () => boolean;
}

const NO_DISKS: DiskNeeds = {
  diskOf: () => undefined,
  notePods: () => undefined,
  isNothing: () => false,
  mayRemove: () => false,
};

export function runtimeOf(
  inputs: RuntimeInputs,
  note: (notice: RuntimeNotice) => void,
  { diskOf, notePods, isNothing, mayRemove }: DiskNeeds = NO_DISKS,
): SelectableRuntime {
  const { settings, node, native, scheduler, directory } = inputs;
  const cgroups = cgroupRuntime({
    directory: node.directory,
    isRoot: node.isRoot,
    hierarchy: node.hierarchy,
    ...selectionOf(settings),
    native,
    allowPidKill: settings.allowPidKill,
    scheduler,
    pid: process.pid,
    helpers: descendants,
  });
  const bySettings = (one: Settings): void => cgroups.select(selectionOf(one));
  if (directory === undefined) {
    return {
      ...cgroups,
      select: bySettings,
      pods: () => [],
      podOf: () => undefined,
      holdsSpace: () => false,
    };
  }
  const { remains } = directory;
  const leftOver = remains && leftOvers({ remains, mayRemove, scheduler, note });
  let current = settings;
  let claimed: readonly ClaimedPod[] = [];
  let doubts: readonly Doubt[] = [];
  let hasListed = false;
  const pathOf = (cgroup: string): string | undefined => pathInNode(node, cgroup);
  const tellFaults = oncePerPod<LabelFault>((fault) => note({ kind: 'fault', fault }));
  // Most pods of a listing are those of the one before.
  let known = {
    rules: settings.podRules,
    ruleOf: compileRuntimeRules(settings.podRules),
    found: new WeakMap<RuntimePod, PodFieldsFound>(),
  };
  const fieldsOf = (one: ClaimedPod): PodFieldsFound => {
    const found = known.found.get(one.pod) ?? podFieldsOf(one, pathOf, known.ruleOf);
    known.found.set(one.pod, found);
    return found;
  };
  const select = (): void => {
    const { podRules } = current;
    if (known.rules !== podRules) {
      known = { rules: podRules, ruleOf: compileRuntimeRules(podRules), found: new WeakMap() };
    }
    const found = claimed.map(fieldsOf);
    cgroups.select(
      hasListed ? directedSelection(found, doubts, current) : nothingOf(selectionOf(current)),
    );
    tellFaults(found.flatMap(({ faults }) => faults));
  };
  // Before it has answered nothing is known of any pod, also of one that the settings name: it may be protected.
  select();
  const directed = directedRuntime({
    cgroups,
    directory,
    select: (pods, ofNone) => {
      hasListed = true;
      claimed = pods;
      doubts = ofNone;
      select();
      notePods();
    },
    pathOf,
    isHosts: isHostsOwn,
    memoryBelow: (path, how) => memoryBelow(node.directory, path, how),
    diskOf,
    watch: (pod, request, progress$) => {
      const { signal } = request;
      const isOfNone = signal === undefined || isNothing(pod.id, signal);
      return isOfNone ? progress$ : holding(progress$, request, pod, leftOver);
    },
    scheduler,
    note,
  });
  return {
    ...directed,
    pods: () => claimed.map(({ pod }) => pod),
    holdsSpace: () => leftOver?.any() ?? false,
    close: () => {
      leftOver?.close();
      directed.close();
    },
    select: (one) => {
      current = one;
      select();
    },
  };
}

/** The same, of no pod: without rules the children of the node would be pods. */
function nothingOf(selection: PodSelection): PodSelection {
  const rules = { parents: [], kubepods: false, globs: [], named: [], match: () => undefined };
  return { ...selection, parents: [], rules: { ...rules, holdsHost } };
}

/** What is told of the runtime, and of what is said of its pods. */
export type RuntimeNotice =
  | DirectoryNotice
  | LeftOverNotice
  /** Said once of each pod. */
  | { readonly kind: 'fault'; readonly fault: LabelFault };

/** A pod that goes for a disk holds its space from its KILL on. */
function holding(
  progress$: Observable<EvictProgress>,
  { signal, rehearsal }: EvictRequest,
  pod: RuntimePod,
  leftOver: LeftOvers | undefined,
): Observable<EvictProgress> {
  const isForDisk = signal !== undefined && SIGNALS[signal].filesystem !== undefined;
  if (!isForDisk || rehearsal === true || leftOver === undefined) return progress$;
  return progress$.pipe(
    tap(({ kind }) => {
      if (kind === 'killed' || kind === 'empty') leftOver.hold(pod);
    }),
  );
}

/** The cgroups that a runtime names, and those that the settings do. */
function directedSelection(
  found: readonly PodFieldsFound[],
  doubts: readonly Doubt[],
  settings: Settings,
): PodSelection {
  const own = selectionOf(settings);
  const named = new Map(found.flatMap(({ fields }) => [...fields]));
  const isNone = new Set(doubts.flatMap(({ paths }) => paths));
  return {
    ...own,
    rules: {
      parents: own.rules?.parents ?? [],
      kubepods: own.rules?.kubepods ?? false,
      globs: own.rules?.globs ?? [],
      holdsHost,
      named: [...named.keys(), ...(own.rules?.named ?? [])],
      match: (path) => named.get(path) ?? (isNone.has(path) ? undefined : own.rules?.match(path)),
    },
  };
}

/** The path of a cgroup relative to the node's; undefined for one that is not in it. */
function pathInNode({ directory, hierarchy }: NodeCgroup, cgroup: string): string | undefined {
  const node = pathIn(hierarchy, directory);
  const below = node === '/' ? '' : node.slice(1);
  if (below === '') return cgroup;
  return cgroup.startsWith(`${below}/`) ? cgroup.slice(below.length + 1) : undefined;
}

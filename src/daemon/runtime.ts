/** The runtime that the settings ask for: cgroups alone, or named by what runs them. */
import { holdsHost, isHostsOwn } from '../config/pod-globs.ts';
import { compileRuntimeRules } from '../config/runtime-rules.ts';
import type { Settings } from '../config/settings.ts';
import { descendants } from '../kernel/ancestry.ts';
import { pathIn } from '../kernel/hierarchy.ts';
import type { NodeCgroup } from '../kernel/node-cgroup.ts';
import { cgroupRuntime, type PodSelection } from '../runtimes/cgroup/runtime.ts';
import type { ClaimedPod, Doubt } from '../runtimes/shared/claims.ts';
import { type DirectoryNotice, directedRuntime } from '../runtimes/shared/directed.ts';
import { oncePerPod } from '../runtimes/shared/once-per-pod.ts';
import { type LabelFault, type PodFieldsFound, podFieldsOf } from './pod-fields.ts';
import { selectionOf } from './settings.ts';
import type { DaemonInputs, SelectableRuntime } from './wiring.ts';

/** What a runtime is made of. */
export type RuntimeInputs = Omit<DaemonInputs, 'hostName' | 'logger' | 'keeping'>;

export function runtimeOf(
  inputs: RuntimeInputs,
  note: (notice: RuntimeNotice) => void,
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
  if (directory === undefined) return { ...cgroups, select: bySettings };
  let current = settings;
  let claimed: readonly ClaimedPod[] = [];
  let doubts: readonly Doubt[] = [];
  const pathOf = (cgroup: string): string | undefined => pathInNode(node, cgroup);
  const tellFaults = oncePerPod<LabelFault>((fault) => note({ kind: 'fault', fault }));
  const select = (): void => {
    const ruleOf = compileRuntimeRules(current.podRules);
    const found = claimed.map((pod) => podFieldsOf(pod, pathOf, ruleOf));
    cgroups.select(directedSelection(found, doubts, current));
    tellFaults(found.flatMap(({ faults }) => faults));
  };
  // Before it has answered nothing is known of any pod, and none may be evicted by what it looks like.
  select();
  const directed = directedRuntime({
    cgroups,
    directory,
    select: (pods, ofNone) => {
      claimed = pods;
      doubts = ofNone;
      select();
    },
    pathOf,
    isHosts: isHostsOwn,
    scheduler,
    note,
  });
  return {
    ...directed,
    select: (one) => {
      current = one;
      select();
    },
  };
}

/** What is told of the runtime, and of what is said of its pods. */
export type RuntimeNotice =
  | DirectoryNotice
  /** Said once of each pod. */
  | { readonly kind: 'fault'; readonly fault: LabelFault };

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

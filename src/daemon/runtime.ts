/** The runtime that the settings ask for: cgroups alone, or named by what runs them. */
import { holdsHost } from '../config/pod-globs.ts';
import { labelledPod } from '../config/pod-labels.ts';
import type { Settings } from '../config/settings.ts';
import { descendants } from '../kernel/ancestry.ts';
import { pathIn } from '../kernel/hierarchy.ts';
import type { NodeCgroup } from '../kernel/node-cgroup.ts';
import type { RuntimePod } from '../ports/pod-directory.ts';
import type { RuleFields } from '../runtimes/cgroup/observe.ts';
import { cgroupRuntime, type PodSelection } from '../runtimes/cgroup/runtime.ts';
import { type DirectoryNotice, directedRuntime } from '../runtimes/shared/directed.ts';
import { selectionOf } from './settings.ts';
import type { DaemonInputs, SelectableRuntime } from './wiring.ts';

export function runtimeOf(
  inputs: DaemonInputs,
  note: (notice: DirectoryNotice) => void,
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
  let pods: readonly RuntimePod[] = [];
  const pathOf = ({ cgroup }: RuntimePod): string | undefined => pathInNode(node, cgroup);
  const select = (): void => {
    cgroups.select(directedSelection(pods, pathOf, current));
  };
  const directed = directedRuntime({
    cgroups,
    directory,
    select: (listed) => {
      pods = listed;
      select();
    },
    pathOf,
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

/** The cgroups that a runtime names, and those that the settings do. */
function directedSelection(
  pods: readonly RuntimePod[],
  pathOf: (pod: RuntimePod) => string | undefined,
  settings: Settings,
): PodSelection {
  const own = selectionOf(settings);
  const named = new Map(
    pods.flatMap((pod) => {
      const path = pathOf(pod);
      return path === undefined ? [] : [[path, fieldsOf(pod)] as const];
    }),
  );
  return {
    ...own,
    rules: {
      parents: own.rules?.parents ?? [],
      kubepods: own.rules?.kubepods ?? false,
      globs: own.rules?.globs ?? [],
      holdsHost,
      named: [...named.keys(), ...(own.rules?.named ?? [])],
      match: (path) => named.get(path) ?? own.rules?.match(path),
    },
  };
}

/** What labels say of a pod; of what they do not say its cgroup and its containers tell. */
function fieldsOf({ name, labels, annotations, containers }: RuntimePod): RuleFields {
  const { faults: _, ...fields } = labelledPod(labels, annotations);
  const requests = containers.flatMap(({ memoryRequest }) => memoryRequest?.nano ?? []);
  const memoryRequestNano =
    requests.length === 0 ? undefined : requests.reduce((sum, nano) => sum + nano, 0n);
  return { name, ...fields, memoryRequestNano: fields.memoryRequestNano ?? memoryRequestNano };
}

/** The path of a cgroup relative to the node's; undefined for one that is not in it. */
function pathInNode({ directory, hierarchy }: NodeCgroup, cgroup: string): string | undefined {
  const node = pathIn(hierarchy, directory);
  const below = node === '/' ? '' : node.slice(1);
  if (below === '') return cgroup;
  return cgroup.startsWith(`${below}/`) ? cgroup.slice(below.length + 1) : undefined;
}

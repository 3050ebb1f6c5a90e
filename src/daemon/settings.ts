/** What follows from the settings: what is read, and which cgroups are pods. */

import type { SchedulerLike } from 'rxjs';
import { compilePodRules, holdsHost, podPlacesOf } from '../config/pod-globs.ts';
import { isCgroupRule, type Settings, sharedParent } from '../config/settings.ts';
import { SIGNALS } from '../core/signal.ts';
import { findHierarchy, sameGroupIn } from '../kernel/hierarchy.ts';
import { type NodeCgroup, podParentDirectory } from '../kernel/node-cgroup.ts';
import type { FilesystemState } from '../ports/filesystem.ts';
import type { PodSelection } from '../runtimes/cgroup/runtime.ts';
import { type NodeView, nodeView } from '../sources/node.ts';
import type { Current, DaemonInputs } from './wiring.ts';

/** The settings as they stand, and what is read by them. */
export function currentOf(
  { node, scheduler }: DaemonInputs,
  settings: Settings,
  before: readonly FilesystemState[],
): Current {
  return { settings, view: nodeViewOf(settings, node, scheduler, before) };
}

/**
 * What is read of a node by the settings; nothing is opened yet.
 *
 * @throws EvictdError EVICTD_POD_PARENT for what is no place of pods on this host
 */
export function nodeViewOf(
  settings: Settings,
  node: NodeCgroup,
  scheduler: SchedulerLike,
  before: readonly FilesystemState[] = [],
): NodeView {
  const { compatibility, memorySource, policy, podParents } = settings;
  const parents = podParents.map((parent) => podParentDirectory(node, parent));
  const pids = findHierarchy('pids');
  const inputs = {
    directory: node.directory,
    isRoot: node.isRoot,
    podsParent: sharedParent(podParents) === undefined ? undefined : parents[0],
    compatibility,
    memorySource,
    pidsDirectory:
      pids === undefined || node.isRoot
        ? undefined
        : sameGroupIn(pids, node.hierarchy, node.directory),
    pidsMountPoint: pids?.mountPoint,
    readsPids: policy.thresholds.some(({ signal }) => signal === 'pid.available'),
    filesystems: settings.filesystems,
    before,
  };
  return nodeView(inputs, () => scheduler.now());
}

/** What a reload leaves as it is: all that was opened or raised once. */
export const ONLY_AT_START = [
  'nodeCgroup',
  'socket',
  'stateDir',
  'scheduling',
  'allowPidKill',
  'runtime',
  'dockerPods',
  'besideKubelet',
  'kubeletRootDir',
  'podLogsDir',
] as const satisfies readonly (keyof Settings)[];

type OnlyAtStart = Pick<Settings, (typeof ONLY_AT_START)[number]>;

export function onlyAtStart(settings: Settings): OnlyAtStart {
  return Object.fromEntries(ONLY_AT_START.map((key) => [key, settings[key]])) as OnlyAtStart;
}

export function selectionOf({
  podParents,
  podsBy,
  pods,
  podRules,
  compatibility,
}: Settings): PodSelection {
  return {
    parents: podParents,
    fields: pods,
    countProcesses: compatibility === 'kubelet',
    ...(podsBy === 'path'
      ? {}
      : {
          rules: {
            ...podPlacesOf(podRules.filter(isCgroupRule)),
            match: compilePodRules(podRules.filter(isCgroupRule)),
            holdsHost,
          },
        }),
  };
}

/**
 * The paths of the filesystems that a threshold is about, each once; where a runtime tells of disks, of all
 * filesystems, if any: which of them are one is to be known.
 */
export function watchedPaths({ filesystems: paths, policy, runtime }: Settings): readonly string[] {
  const isAny = policy.thresholds.some(({ signal }) => SIGNALS[signal].filesystem !== undefined);
  if (isAny && runtime.kind !== 'cgroup') {
    return [...new Set(Object.values(paths).filter((path) => path !== undefined))];
  }
  const named = policy.thresholds.flatMap(({ signal }) => {
    const { filesystem } = SIGNALS[signal];
    return filesystem === undefined ? [] : (paths[filesystem] ?? []);
  });
  return [...new Set(named)];
}

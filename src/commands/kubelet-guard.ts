/** Whether a kubelet of this machine evicts the pods that evictd would. */
import { existsSync } from 'node:fs';
import type { KubeletEviction } from '../config/kubelet-eviction.ts';
import { compilePodRules, isInKubepods } from '../config/pod-globs.ts';
import { isCgroupRule, type Settings } from '../config/settings.ts';
import { pathIn } from '../kernel/hierarchy.ts';
import { type KubeletProcess, kubeletProcesses } from '../kernel/kubelets.ts';
import type { NodeCgroup } from '../kernel/node-cgroup.ts';

/** What can be done about a kubelet that evicts the same pods. */
export const ON_KUBELETS =
  'turn its eviction off (evictionHard: {memory.available: 0%}), or have both with --beside-kubelet';

/**
 * Why evictd and a kubelet would evict the same pods, for a person; undefined where none does. What cannot be told
 * of a kubelet counts against it.
 *
 * @param look for the kubelets of this machine
 */
export async function kubeletConflict(
  settings: Settings,
  node: NodeCgroup,
  look: () => readonly KubeletProcess[] = kubeletProcesses,
): Promise<string | undefined> {
  if (!concernsKubelets(settings, node)) return undefined;
  for (const kubelet of look()) {
    const { pid, name } = kubelet;
    const eviction = await evictionOf(kubelet);
    if (eviction.kind === 'active') {
      return `${name} (pid ${pid}) evicts by ${eviction.thresholds.join(', ')}`;
    }
    if (eviction.kind === 'unknown') {
      return `it cannot be told by what ${name} (pid ${pid}) evicts: ${eviction.reason}`;
    }
  }
  return undefined;
}

/** A parser of YAML is loaded only where there is a kubelet. */
async function evictionOf({ name, args, root, cwd }: KubeletProcess): Promise<KubeletEviction> {
  if (name !== 'kubelet') {
    return { kind: 'unknown', reason: 'it holds a kubelet that it configures itself' };
  }
  if (args === undefined) return { kind: 'unknown', reason: 'its command line cannot be read' };
  const [{ kubeletEviction }, { readConfigFile }] = await Promise.all([
    import('../config/kubelet-eviction.ts'),
    import('../config/file.ts'),
  ]);
  // As the kubelet itself sees the file, which may run in a container.
  const placeOf = (file: string): string => `${file.startsWith('/') ? root : cwd}/${file}`;
  return kubeletEviction(args, { readConfigFile: (file) => readConfigFile(placeOf(file)) });
}

/** Whether a kubelet's pods may be among those that the settings name. */
export function concernsKubelets(
  { runtime, podParents, pods, podRules, podsBy }: Settings,
  { directory, hierarchy, isRoot }: NodeCgroup,
): boolean {
  if (runtime.kind !== 'cgroup' || isInKubepods(pathIn(hierarchy, directory))) return true;
  const rules = podRules.filter(isCgroupRule);
  const named = [...podParents, ...pods.keys(), ...rules.map(({ cgroup }) => cgroup)];
  const match = compilePodRules(rules);
  if (named.some(isInKubepods) || KUBELETS_PODS.some((path) => match(path) !== undefined)) {
    return true;
  }
  const isWhole = podParents.length === 0 && podsBy === 'path' && !isRoot;
  const parents = isWhole ? ['.'] : podParents;
  return parents.some((parent) =>
    ['kubepods', 'kubepods.slice'].some((name) => existsSync(`${directory}/${parent}/${name}`)),
  );
}

/** What kubelets call a pod's cgroup with either driver. */
const KUBELETS_PODS: readonly string[] = [
  'kubepods/pod1',
  'kubepods/burstable/pod1',
  'kubepods.slice/kubepods-pod1.slice',
  'kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice',
];

/**
 * Which of the pods that a runtime names are pods. What is taken for one is killed whole, so that whatever is in
 * doubt is none. Pure.
 */
import type { RuntimePod } from '../../ports/pod-directory.ts';

/** A pod and where its cgroups lie, by paths relative to the node's: each once, none in another. */
export interface ClaimedPod {
  readonly pod: RuntimePod;
  readonly paths: readonly string[];
}

/** A pod that is none. */
export interface Doubt {
  readonly podId: string;
  readonly podName: string;
  readonly reason: string;
  /** Where its cgroups lie, as far as they are in the node. */
  readonly paths: readonly string[];
  /** It is a pod, of another node: nothing is wrong with it. */
  readonly isElsewhere: boolean;
}

export interface Claims {
  readonly pods: readonly ClaimedPod[];
  readonly doubts: readonly Doubt[];
}

export interface ClaimInputs {
  /** The path of a cgroup relative to the node's; undefined for one that is not in it. */
  readonly pathOf: (cgroup: string) => string | undefined;
  /** Whether the host itself, or what keeps others, is what a path names. */
  readonly isHosts: (path: string) => boolean;
}

/**
 * Sorts out what is no pod:
 *
 * - what the runtime's own listing leaves in doubt, and what leads nowhere, or out of the node;
 * - what is the host's own, or holds other pods;
 * - what two pods claim, both of them, and two pods of one id.
 */
export function claimsOf(pods: readonly RuntimePod[], inputs: ClaimInputs): Claims {
  const found: ClaimedPod[] = [];
  const doubts: Doubt[] = [];
  for (const pod of pods) {
    const paths = pod.cgroups.flatMap((cgroup) => inputs.pathOf(cgroup) ?? []);
    const isElsewhere = pod.doubt === undefined && paths.length < pod.cgroups.length;
    const reason = isElsewhere ? OUTSIDE : (pod.doubt ?? ownDoubt(paths, inputs));
    if (reason === undefined) found.push({ pod, paths: outermost(paths) });
    else doubts.push(doubtOf(pod, reason, paths, isElsewhere));
  }
  const ids = new Map<string, number>();
  const owners = new Map<string, number>();
  const above = new Set<string>();
  for (const { pod, paths } of found) {
    ids.set(pod.id, (ids.get(pod.id) ?? 0) + 1);
    for (const path of paths) {
      owners.set(path, (owners.get(path) ?? 0) + 1);
      for (const ancestor of ancestorsOf(path)) above.add(ancestor);
    }
  }
  const claimed: ClaimedPod[] = [];
  for (const one of found) {
    const { pod, paths } = one;
    let reason: string | undefined;
    if ((ids.get(pod.id) ?? 0) > 1) reason = 'another pod has its id';
    else if (paths.some((path) => (owners.get(path) ?? 0) > 1)) reason = SHARED;
    else if (paths.some((path) => above.has(path))) reason = 'its cgroup holds other pods';
    if (reason === undefined) claimed.push(one);
    else doubts.push(doubtOf(pod, reason, paths, false));
  }
  return { pods: claimed, doubts };
}

const OUTSIDE = 'its cgroup is not in the node';
const SHARED = 'its cgroup is another pod’s too';

function doubtOf(
  { id: podId, name: podName }: RuntimePod,
  reason: string,
  paths: readonly string[],
  isElsewhere: boolean,
): Doubt {
  return { podId, podName, reason, paths, isElsewhere };
}

/** What is wrong with its cgroups themselves. */
function ownDoubt(paths: readonly string[], { isHosts }: ClaimInputs): string | undefined {
  if (paths.length === 0) return 'it has no cgroup';
  if (!paths.every(isPlain)) return 'its cgroup leads nowhere';
  return paths.some(isHosts) ? 'its cgroup is the host’s own' : undefined;
}

function isPlain(path: string): boolean {
  return !path.includes('\0') && path.split('/').every((part) => !['', '.', '..'].includes(part));
}

/** Each once, and what lies in another of them not at all: it ends with that. */
function outermost(paths: readonly string[]): readonly string[] {
  const all = new Set(paths);
  return [...all].filter((path) => !ancestorsOf(path).some((ancestor) => all.has(ancestor)));
}

/** `a/b/c`: `a` and `a/b`. */
function ancestorsOf(path: string): readonly string[] {
  const parts = path.split('/');
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join('/'));
}

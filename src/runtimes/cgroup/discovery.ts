import { readdirSync, statSync } from 'node:fs';
import type { QosClass } from '../../core/pod.ts';
import { asPath, type BytePath } from '../../kernel/byte-path.ts';

/** How many pods are looked at; beyond it pods would be missed, which is said. */
export const POD_LIMIT = 20_000;

/** Where pods are. */
export interface PodPlaces {
  /** The node's cgroup directory. */
  readonly directory: BytePath;
  /** Whether it is the root of the hierarchy, whose children are never pods for that alone. */
  readonly isRoot: boolean;
  /** Cgroups whose children are pods, relative to the node's, `.` for that itself. */
  readonly parents: readonly BytePath[];
  /** Cgroups that are pods because somebody names them, relative to the node's. */
  readonly named: readonly BytePath[];
}

/** A cgroup that is a pod. */
export interface FoundPod {
  /** Its path relative to the node's. */
  readonly name: BytePath;
  /** Where its place tells; otherwise request and limit do. */
  readonly qosClass: QosClass | undefined;
}

/**
 * The pods, each once: the children of each parent, and what is named. Below `kubepods` (the
 * kubelet's cgroupfs driver) and `kubepods.slice` (its systemd driver, nested names too) the QoS
 * directories are parents, and only `pod*` and `…-pod*.slice` are pods. What holds a parent or a
 * named pod is no pod itself. What vanishes meanwhile is left out.
 */
export function listPods({ directory, isRoot, parents, named }: PodPlaces): readonly FoundPod[] {
  const places = parents.length > 0 || isRoot ? parents : ['.'];
  const base = componentsOf(directory);
  const found = new Map<BytePath, FoundPod>();
  for (const place of places) {
    for (const pod of podsBelow(directory, place === '.' ? '' : place, base)) {
      if (found.size < POD_LIMIT) found.set(pod.name, pod);
    }
  }
  for (const name of named) {
    if (!found.has(name) && isDirectory(`${directory}/${name}`))
      found.set(name, { name, qosClass: undefined });
  }
  const holders = new Set([
    ...places,
    ...named.flatMap(ancestorsOf),
    ...places.flatMap(ancestorsOf),
  ]);
  return [...found.values()].filter(({ name }) => !holders.has(name));
}

const KUBEPODS = /^(?:.*-)?kubepods(?:\.slice)?$/;
const QOS_DIRECTORY = /^(?:.*-)?(burstable|besteffort)(?:\.slice)?$/;
const KUBERNETES_POD = /^pod.+|-pod[^/]+\.slice$/;

/** What kind of directory a path leads to, as far as its names tell. */
type Kind =
  | { readonly kind: 'plain' }
  /** `kubepods` or a QoS directory below it; the QoS class of the pods in it. */
  | { readonly kind: 'kubepods'; readonly qosClass: QosClass };

const PLAIN: Kind = { kind: 'plain' };

function kindOf(components: readonly BytePath[]): Kind {
  const top = components.findLastIndex((component) => KUBEPODS.test(component));
  if (top === -1) return PLAIN;
  const [below, ...rest] = components.slice(top + 1);
  if (below === undefined) return { kind: 'kubepods', qosClass: 'Guaranteed' };
  const qosClass = rest.length === 0 ? qosOfDirectory(below) : undefined;
  return qosClass === undefined ? PLAIN : { kind: 'kubepods', qosClass };
}

function qosOfDirectory(name: BytePath): QosClass | undefined {
  if (KUBERNETES_POD.test(name)) return undefined;
  switch (QOS_DIRECTORY.exec(name)?.[1]) {
    case 'burstable':
      return 'Burstable';
    case 'besteffort':
      return 'BestEffort';
    default:
      return undefined;
  }
}

function podsBelow(
  directory: BytePath,
  place: BytePath,
  base: readonly BytePath[],
): readonly FoundPod[] {
  const here = kindOf([...base, ...componentsOf(place)]);
  return childNames(place === '' ? directory : `${directory}/${place}`).flatMap((child) => {
    const name = place === '' ? child : `${place}/${child}`;
    const isParent =
      here.kind === 'kubepods' ? qosOfDirectory(child) !== undefined : KUBEPODS.test(child);
    if (isParent) return podsBelow(directory, name, base);
    if (here.kind === 'plain') return [{ name, qosClass: undefined }];
    return KUBERNETES_POD.test(child) ? [{ name, qosClass: here.qosClass }] : [];
  });
}

/** The directories in a directory; none when it is gone. */
function childNames(directory: BytePath): readonly BytePath[] {
  try {
    return readdirSync(asPath(directory), { withFileTypes: true, encoding: 'latin1' })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name);
  } catch {
    return [];
  }
}

function isDirectory(path: BytePath): boolean {
  return statSync(asPath(path), { throwIfNoEntry: false })?.isDirectory() === true;
}

function componentsOf(path: BytePath): readonly BytePath[] {
  return path.split('/').filter((component) => component !== '');
}

/** `a/b/c`: `a` and `a/b`. */
function ancestorsOf(path: BytePath): readonly BytePath[] {
  const components = componentsOf(path);
  return components.slice(1).map((_, index) => components.slice(0, index + 1).join('/'));
}

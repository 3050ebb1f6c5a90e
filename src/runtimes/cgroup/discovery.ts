/**
 * Which cgroups are pods. A directory that is taken for a pod is killed whole, so that whatever is
 * in doubt is none: what holds other pods, what leads out of the node, what the kubelet would not
 * have named so.
 */
import { lstatSync } from 'node:fs';
import type { QosClass } from '../../core/pod.ts';
import { asPath, type BytePath, toText } from '../../kernel/byte-path.ts';
import { directoryNames } from '../../kernel/directory.ts';

/** How many pods are looked at; that there are more is said. */
export const POD_LIMIT = 20_000;

/** Where pods are. */
export interface PodPlaces {
  /** The node's cgroup directory. */
  readonly directory: BytePath;
  /** Whether it is the root of the hierarchy, which is no parent of pods, even if it is given as one. */
  readonly isRoot: boolean;
  /** Cgroups whose children are pods, relative to the node's, `.` for that itself. */
  readonly parents: readonly BytePath[];
  /** Cgroups that are pods because somebody names them, relative to the node's. */
  readonly named: readonly BytePath[];
  /** What else the rules of a configuration make pods; undefined where there are none. */
  readonly rules?: RulePlaces;
}

/** Where the rules of a configuration look for pods. */
export interface RulePlaces {
  /** Whether all that the kubelet keeps are pods, in the node's cgroup and one level below it. */
  readonly kubepods: boolean;
  /** Cgroups, `.` for the node's own, so many levels below which there may be pods. */
  readonly globs: readonly { readonly below: BytePath; readonly levels: number }[];
  /** Whether the rules make a pod of what lies there. */
  readonly isPod: (name: BytePath) => boolean;
  /** Whether what lies there must not die with what a wildcard names above it. */
  readonly isSpared: (name: BytePath) => boolean;
  /** The monotonic clock. */
  readonly nowMs: () => number;
}

/** How many cgroups below one that a wildcard names are looked at; where there are more it is no pod. */
const BELOW_LIMIT = 256;

/** For how long it is remembered what lies below, ms. */
const BELOW_AGE_MS = 5000;

/** What was found below cgroups that wildcards name: whether they may be pods. */
const known = new WeakMap<
  RulePlaces,
  Map<BytePath, { readonly isPod: boolean; readonly atMs: number }>
>();

/** How many cgroups one listing goes through for the rules. */
export const WALK_LIMIT = 20_000;

/** A cgroup that is a pod. */
export interface FoundPod {
  /** Its path relative to the node's. */
  readonly name: BytePath;
  /** Where its place tells; otherwise request and limit do. */
  readonly qosClass: QosClass | undefined;
}

export interface PodList {
  readonly pods: readonly FoundPod[];
  /** Why there may be pods that are not in it; undefined when all are. */
  readonly trouble: string | undefined;
}

/**
 * The pods, each once: the children of each parent, what is named, and what the rules say. Without
 * parents and rules the node's own cgroup is a parent, unless it is the root. What vanishes meanwhile, or
 * is not there yet, is left out.
 *
 * - `kubepods` (the kubelet's cgroupfs driver) and `kubepods.slice`, `…-kubepods.slice` (its systemd
 *   driver) and the QoS directories in them are parents wherever they are met, and no pods even if
 *   they are named. In them only what the kubelet would call so is a pod: `pod*`, or with the
 *   systemd driver `pod*.slice` after the parent's own name and a dash.
 * - What is above a parent or above a named pod is no pod, whether that is there or not: it would be
 *   killed with all that is in it, what is protected included.
 * - What is below a pod is none, unless it is named or its parent is given.
 * - Paths that are empty or hold `.` or `..` lead nowhere; the configuration refuses them.
 */
export function listPods({ directory, isRoot, parents, named, rules }: PodPlaces): PodList {
  const given = parents.length > 0 || isRoot || rules !== undefined ? parents : ['.'];
  const places = given.flatMap((parent) => placeOf(parent, isRoot) ?? []);
  const names = named.filter(isBelow);
  const holders = new Set([...places, ...[...places, ...names].flatMap(ancestorsOf)]);
  const listing: Listing = { directory, holders, found: new Map(), trouble: undefined };
  const base = componentsOf(directory);
  for (const name of names) addNamed(listing, name, [...base, ...componentsOf(name)]);
  for (const place of places) {
    addBelow(listing, place, kubepodsAt([...base, ...componentsOf(place)]));
  }
  if (rules !== undefined) addByRules(listing, rules);
  return { pods: [...listing.found.values()], trouble: listing.trouble };
}

/** A listing under way. */
interface Listing {
  readonly directory: BytePath;
  /** What is above a parent or a named pod. */
  readonly holders: ReadonlySet<BytePath>;
  readonly found: Map<BytePath, FoundPod>;
  trouble: string | undefined;
}

function addNamed(listing: Listing, name: BytePath, components: readonly BytePath[]): void {
  if (listing.holders.has(name) || kubepodsAt(components) !== undefined) return;
  if (!isDirectory(`${listing.directory}/${name}`)) return;
  const parent = kubepodsAt(components.slice(0, -1));
  const isKubernetes = parent !== undefined && isPodOf(parent, components.at(-1) ?? '');
  listing.found.set(name, { name, qosClass: isKubernetes ? parent.qosClass : undefined });
}

function addByRules(listing: Listing, rules: RulePlaces): void {
  const { kubepods, globs, isPod } = rules;
  if (kubepods) addKubepods(listing);
  let left = WALK_LIMIT;
  const walk = (place: BytePath, levels: number): void => {
    for (const child of childNames(listing, place)) {
      const name = place === '' ? child : `${place}/${child}`;
      left -= 1;
      if (left < 0) {
        listing.trouble = `there are more than ${WALK_LIMIT} cgroups: the others are not seen`;
        return;
      }
      // What is below a pod is none.
      if (isPod(name) && isAlone(listing, rules, name)) add(listing, name, undefined);
      else if (levels > 1) walk(name, levels - 1);
    }
  };
  for (const { below, levels } of globs) walk(below === '.' ? '' : below, levels);
}

/**
 * Whether nothing below what a wildcard names must be spared: it would be killed with it. Looked at
 * every {@link BELOW_AGE_MS}.
 */
function isAlone(listing: Listing, rules: RulePlaces, name: BytePath): boolean {
  const atMs = rules.nowMs();
  const memory = known.get(rules) ?? new Map();
  known.set(rules, memory);
  const before = memory.get(name);
  if (before !== undefined && atMs - before.atMs < BELOW_AGE_MS) return before.isPod;
  const isPod = !holdsSpared(listing, rules, name);
  if (memory.size >= WALK_LIMIT) memory.clear();
  memory.set(name, { isPod, atMs });
  return isPod;
}

function holdsSpared(listing: Listing, { isSpared }: RulePlaces, top: BytePath): boolean {
  const left = [top];
  for (let count = 0; left.length > 0; count += 1) {
    const place = left.pop() as BytePath;
    if (place !== top && (isSpared(place) || listing.holders.has(place))) return true;
    if (count >= BELOW_LIMIT) {
      listing.trouble = `${toText(top)} holds more than ${BELOW_LIMIT} cgroups: it is no pod`;
      return true;
    }
    for (const child of childNames(listing, place)) left.push(`${place}/${child}`);
  }
  return false;
}

/** The kubelet's pods, whose tree hangs in the node's cgroup or in a child of it (`kubelet.slice`). */
function addKubepods(listing: Listing): void {
  for (const child of childNames(listing, '')) {
    const here = kubepodsNamed(child);
    if (here !== undefined) {
      addBelow(listing, child, here);
      continue;
    }
    for (const grandchild of childNames(listing, child)) {
      const inner = kubepodsNamed(grandchild);
      if (inner !== undefined) addBelow(listing, `${child}/${grandchild}`, inner);
    }
  }
}

/** @param here what the place is to the kubelet; undefined where it is nothing, and all children are pods */
function addBelow(listing: Listing, place: BytePath, here: Kubepods | undefined): void {
  for (const child of childNames(listing, place)) {
    const name = place === '' ? child : `${place}/${child}`;
    const inner = here === undefined ? kubepodsNamed(child) : qosBelow(here, child);
    if (inner !== undefined) addBelow(listing, name, inner);
    else if (here === undefined || isPodOf(here, child)) add(listing, name, here?.qosClass);
  }
}

function add(listing: Listing, name: BytePath, qosClass: QosClass | undefined): void {
  const { found, holders } = listing;
  if (holders.has(name) || found.has(name)) return;
  if (found.size < POD_LIMIT) found.set(name, { name, qosClass });
  else listing.trouble = `there are more than ${POD_LIMIT} pods: the others are not seen`;
}

/** A directory of the kubelet that holds pods. */
interface Kubepods {
  /** With the systemd driver what the name of each cgroup in it begins with: its own, and a dash. */
  readonly prefix: string;
  /** The ending of those names. */
  readonly ending: '' | '.slice';
  /** Of the pods directly in it. */
  readonly qosClass: QosClass;
}

const KUBEPODS_SLICE = /^(?:.+-)?kubepods\.slice$/s;

/** Source: kubelet `cgroup_manager_linux.go`, `CgroupName.ToCgroupfs` and `ToSystemd`. */
function kubepodsNamed(name: BytePath): Kubepods | undefined {
  if (name === 'kubepods') return { prefix: '', ending: '', qosClass: 'Guaranteed' };
  if (!KUBEPODS_SLICE.test(name)) return undefined;
  return { prefix: prefixBelow(name), ending: '.slice', qosClass: 'Guaranteed' };
}

const QOS_DIRECTORIES = { burstable: 'Burstable', besteffort: 'BestEffort' } as const;

/** The QoS directory that a child of `kubepods` is; they are not nested. */
function qosBelow({ prefix, ending, qosClass }: Kubepods, child: BytePath): Kubepods | undefined {
  if (qosClass !== 'Guaranteed') return undefined;
  for (const [directory, itsClass] of Object.entries(QOS_DIRECTORIES)) {
    if (child !== `${prefix}${directory}${ending}`) continue;
    return { prefix: ending === '' ? '' : prefixBelow(child), ending, qosClass: itsClass };
  }
  return undefined;
}

/** systemd has a slice `a-b.slice` in `a.slice` alone. */
function prefixBelow(slice: BytePath): string {
  return `${slice.slice(0, -'.slice'.length)}-`;
}

/** Source: kubelet `pod_container_manager_linux.go`, `GetPodContainerName`. */
function isPodOf({ prefix, ending }: Kubepods, child: BytePath): boolean {
  const start = `${prefix}pod`;
  const hasId = child.length > start.length + ending.length;
  return hasId && child.startsWith(start) && child.endsWith(ending);
}

/** What the kubelet keeps at a path, if it is `kubepods` or a QoS directory in that. */
function kubepodsAt(components: readonly BytePath[]): Kubepods | undefined {
  const top = components.findLastIndex((component) => kubepodsNamed(component) !== undefined);
  const [kubepods, below, ...deeper] = top === -1 ? [] : components.slice(top);
  const here = kubepods === undefined ? undefined : kubepodsNamed(kubepods);
  if (here === undefined || below === undefined) return here;
  return deeper.length === 0 ? qosBelow(here, below) : undefined;
}

/** The directories in a place; none when it is not there. */
function childNames(listing: Listing, place: BytePath): readonly BytePath[] {
  const path = `${listing.directory}/${place}`;
  try {
    return directoryNames(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT') listing.trouble = `${toText(path)} cannot be listed: ${code}`;
    return [];
  }
}

function isDirectory(path: BytePath): boolean {
  try {
    return lstatSync(asPath(path)).isDirectory();
  } catch {
    return false;
  }
}

/** A parent's path, empty for the node itself; undefined for one that cannot be a parent. */
function placeOf(parent: BytePath, isRoot: boolean): BytePath | undefined {
  if (parent === '.') return isRoot ? undefined : '';
  return isBelow(parent) ? parent : undefined;
}

/** Whether a path leads below where it starts, and is written in the one way that names compare by. */
function isBelow(path: BytePath): boolean {
  return path.split('/').every((component) => !['', '.', '..'].includes(component));
}

function componentsOf(path: BytePath): readonly BytePath[] {
  return path.split('/').filter((component) => component !== '');
}

/** `a/b/c`: `a` and `a/b`. */
function ancestorsOf(path: BytePath): readonly BytePath[] {
  const components = componentsOf(path);
  return components.slice(1).map((_, index) => components.slice(0, index + 1).join('/'));
}

/**
 * Which cgroups the rules of `pods` name. Pure: paths are texts relative to the node's cgroup, without
 * `.` and `..`, as `relativePathFault` has them.
 *
 * - A path without wildcard is literal: it names that cgroup, exactly. Three are parents instead:
 *   `kubepods` and `kubepods.slice` name every pod that the kubelet keeps, with either cgroup driver and
 *   any QoS class, wherever its tree hangs (`…-kubepods.slice` too); `docker` and `machine.slice` name
 *   their children, as `docker/*` would.
 * - In a glob `*` stands for any characters but `/`, `?` for one of them, and `**` as a whole component
 *   for any number of components, none included but at the end: `a/**` is what lies in `a`. A dot in
 *   front is nothing special. There are no other wildcards: braces and brackets are refused, so that
 *   matching takes no longer than the product of the lengths of path and glob.
 * - A glob names the matched cgroups themselves. It never names what {@link SYSTEM_UNITS} and
 *   {@link HOLDERS} list, nor what lies in one of the former, unless the components before its first
 *   wildcard say so literally: that takes the literal name.
 * - Of several rules that match a path, the first one counts.
 */
import type { CgroupRule } from './settings.ts';

/**
 * Units that a wildcard never names, nor what lies in them: init, login, bus, journal, network, ssh,
 * devices and time, container runtimes, kubelets, evictd itself.
 */
const SYSTEM_UNITS: readonly RegExp[] = [
  /^init\.scope$/,
  /^systemd-[^/]*\.(service|socket|scope)$/,
  /^(serial-|console-|container-)?getty(@.*)?\.service$/,
  /^(getty|sshd?|init|udevd|dbus|containerd|dockerd|crio|evictd)$/,
  /^(emergency|rescue)\.service$/,
  /^dbus(-broker|-daemon|-org\..*|@.*|:.*)?\.(service|socket)$/,
  /^(elogind|rsyslog|syslog(-ng)?|auditd|polkit|accounts-daemon|udisks2)\.service$/,
  /^(NetworkManager(-.*)?|networking|network|networkd-.*|ifup@.*|dhcpcd(@.*)?|dhclient(@.*)?)\.service$/,
  /^(wpa_supplicant|iwd|connman|ModemManager|wicked.*|tailscaled|wg-quick@.*)\.service$/,
  /^(openvpn|strongswan|frr|bird|dnsmasq|unbound|bind9|named)(-.*|@.*)?\.service$/,
  /^(messagebus|display-manager|gdm3?|sddm|lightdm)\.service$/,
  /^(firewalld|nftables|iptables|ufw|chronyd?|ntpd?|ntpsec)\.service$/,
  /^(ssh|sshd|openssh|tinysshd|dropbear)(-.*|@.*)?\.(service|socket)$/,
  /^(containerd|docker|dockerd|crio|cri-o|podman|isulad|buildkit|buildkitd)(-.*|@.*)?\.(service|socket)$/,
  /^cri-docker[^/]*\.(service|socket)$/,
  /^(libvirtd|virt[a-z]+d|lxc|lxd|incus|snap\.(docker|lxd|microk8s|k8s|kubelet-eks)\..*)(-.*|@.*)?\.(service|socket)$/,
  /^(kubelet|k3s|k0s|rke2|microk8s|k0scontroller|k0sworker)(-.*|@.*)?\.service$/,
  /^evictd(-.*|@.*)?\.(service|socket|scope)$/,
];

/** What holds other units: a wildcard never names it, but what lies in it. */
const HOLDERS: readonly RegExp[] = [
  /^(-|system|user|machine|kubelet|runtime|podruntime|app|session|background)\.slice$/,
  /^(kube|kube-reserved|system-reserved|podruntime)(\.slice)?$/,
  // The instances of one unit: `system-sshd.slice` holds each ssh login.
  /^system-[^/]*\.slice$/,
  /^user-[^/]*\.slice$/,
  /^user@[^/]*\.service$/,
  // A login: its shells, and the ssh that carries it.
  /^session-[^/]*\.scope$/,
  /^(kubepods|docker|lxc|libpod_parent|libpod)$/,
  /(^|-)kubepods(-besteffort|-burstable)?\.slice$/,
  /^(besteffort|burstable)$/,
];

/** Literal paths that name their children. */
const PARENTS: readonly string[] = ['docker', 'machine.slice'];

/** Literal paths that name what the kubelet keeps. */
const KUBEPODS: readonly string[] = ['kubepods', 'kubepods.slice'];

/** Literal paths under which the host itself runs: as a pod they would take it along. */
const HOSTS: readonly string[] = ['.', 'system.slice', 'user.slice'];

const KUBEPODS_NAME = /^(?:kubepods|(?:.+-)?kubepods\.slice)$/;
const KUBERNETES_POD = /^(?:pod.+|.*-pod.+\.slice)$/;

/** Whether a rule's path has a wildcard. */
export function isGlob(cgroup: string): boolean {
  return /[*?]/.test(cgroup);
}

/** Whether a literal path names what is below it. */
export function isParent(cgroup: string): boolean {
  return PARENTS.includes(cgroup) || KUBEPODS.includes(cgroup);
}

/** Whether a literal path holds the host itself. */
export function isHost(cgroup: string): boolean {
  return HOSTS.includes(cgroup);
}

/** Whether a path leads to, or into, what keeps the host going. */
export function holdsHost(path: string): boolean {
  return path.split('/').some((component) => SYSTEM_UNITS.some((unit) => unit.test(component)));
}

/** Whether a path lies where a kubelet keeps its pods. */
export function isInKubepods(path: string): boolean {
  return path.split('/').some((component) => KUBEPODS_NAME.test(component));
}

/** Whether a path names what holds the host, or other units: a pod there would take them along. */
export function isHostsOwn(path: string): boolean {
  const last = path.slice(path.lastIndexOf('/') + 1);
  return isHost(path) || [...SYSTEM_UNITS, ...HOLDERS].some((unit) => unit.test(last));
}

/** The rule of a cgroup; undefined where none makes it a pod. */
export type PodMatcher = (path: string) => CgroupRule | undefined;

/** The rules as one question, in the order in which they count. */
export function compilePodRules(rules: readonly CgroupRule[]): PodMatcher {
  const tests = rules.map((rule) => ({ rule, names: compile(rule.cgroup) }));
  return (path) => {
    const components = path.split('/');
    return tests.find(({ names }) => names(path, components))?.rule;
  };
}

type Test = (path: string, components: readonly string[]) => boolean;

function compile(cgroup: string): Test {
  if (KUBEPODS.includes(cgroup)) return (_, components) => isKubernetesPod(components);
  if (PARENTS.includes(cgroup)) {
    return (path, components) => components.length === 2 && path.startsWith(`${cgroup}/`);
  }
  if (!isGlob(cgroup)) return (path) => path === cgroup;
  const pattern = cgroup.split('/');
  const literal = pattern.findIndex(isGlob);
  return (_, components) =>
    !isSystem(components, literal) && matchesComponents(pattern, components);
}

/** A pod directly in `kubepods`, or in a QoS directory of it. */
function isKubernetesPod(components: readonly string[]): boolean {
  const top = components.findLastIndex((component) => KUBEPODS_NAME.test(component));
  const depth = components.length - 1 - top;
  const isBelow = top !== -1 && (depth === 1 || depth === 2);
  return isBelow && KUBERNETES_POD.test(components.at(-1) ?? '');
}

/** Whether a wildcard would name what only a literal name may; the first `literal` components are one. */
function isSystem(components: readonly string[], literal: number): boolean {
  const wild = components.slice(literal);
  const isUnit = wild.some((component) => SYSTEM_UNITS.some((unit) => unit.test(component)));
  return isUnit || HOLDERS.some((holder) => holder.test(components.at(-1) ?? ''));
}

/** `**` takes any number of components, at the end one at least. */
function matchesComponents(pattern: readonly string[], components: readonly string[]): boolean {
  return matches(
    pattern.at(-1) === '**' ? [...pattern, '*'] : pattern,
    components,
    (part) => part === '**',
    (part, component) => matchesGlob(part, component),
  );
}

/** The same within a component, for `*`: any characters, and `?` for one. */
export function matchesGlob(pattern: string, text: string): boolean {
  return matches(
    [...pattern],
    [...text],
    (character) => character === '*',
    (expected, character) => expected === '?' || expected === character,
  );
}

/**
 * Two pointers and one place to come back to: the last part that takes any number. An earlier one never
 * has to take more, since the last one can take it as well.
 */
function matches(
  pattern: readonly string[],
  parts: readonly string[],
  isAny: (part: string) => boolean,
  isOne: (pattern: string, part: string) => boolean,
): boolean {
  let at = 0;
  let back: { readonly pattern: number; part: number } | undefined;
  for (let part = 0; part < parts.length; ) {
    const expected = pattern[at];
    if (expected !== undefined && isAny(expected)) {
      at += 1;
      back = { pattern: at, part };
    } else if (expected !== undefined && isOne(expected, parts[part] ?? '')) {
      at += 1;
      part += 1;
    } else if (back !== undefined) {
      back.part += 1;
      at = back.pattern;
      part = back.part;
    } else {
      return false;
    }
  }
  return pattern.slice(at).every(isAny);
}

/** Where a walk has to look for the cgroups that rules name; the matcher has the last word. */
export interface PodPlaces {
  /** Cgroups that are pods themselves, by their literal paths, each once. */
  readonly named: readonly string[];
  /** Cgroups whose direct children are pods. */
  readonly parents: readonly string[];
  /** Whether what the kubelet keeps are pods. */
  readonly kubepods: boolean;
  /** Where globs begin, each once. */
  readonly globs: readonly GlobPlace[];
}

/** A cgroup below which a glob may match. */
export interface GlobPlace {
  /** The components before the first wildcard, `.` for the node's own cgroup. */
  readonly below: string;
  /** How many levels below that a match may lie; infinite with `**`. */
  readonly levels: number;
}

/** What to look through for the rules' pods. */
export function podPlacesOf(rules: readonly CgroupRule[]): PodPlaces {
  const paths = [...new Set(rules.map(({ cgroup }) => cgroup))];
  const literals = paths.filter((path) => !isGlob(path));
  const levels = new Map<string, number>();
  for (const path of paths.filter(isGlob)) {
    const { below, levels: found } = globPlaceOf(path);
    levels.set(below, Math.max(found, levels.get(below) ?? 0));
  }
  return {
    named: literals.filter((path) => !isParent(path)),
    parents: literals.filter((path) => PARENTS.includes(path)),
    kubepods: literals.some((path) => KUBEPODS.includes(path)),
    globs: [...levels].map(([below, found]) => ({ below, levels: found })),
  };
}

function globPlaceOf(path: string): GlobPlace {
  const components = path.split('/');
  const literal = components.findIndex(isGlob);
  return {
    below: literal === 0 ? '.' : components.slice(0, literal).join('/'),
    levels: components.includes('**') ? Number.POSITIVE_INFINITY : components.length - literal,
  };
}

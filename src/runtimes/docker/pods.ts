/** Which containers of an engine are a pod together, and what their cgroups are. Pure. */
import type { Quantity } from '../../core/quantity.ts';
import type { RuntimeContainer, RuntimePod } from '../../ports/pod-directory.ts';
import { keptLabels, keptName } from '../shared/texts.ts';

/** What makes containers one pod. */
export type PodGrouping =
  /** Nothing: each is a pod. */
  | { readonly by: 'container' }
  /** One value of a label; without the label a container is a pod by itself. */
  | { readonly by: 'label'; readonly key: string }
  /** A pod of Podman's. */
  | { readonly by: 'podman' };

/** A container that runs. All texts are from outside. */
export interface RunningContainer {
  readonly id: string;
  readonly name: string;
  readonly image: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The cgroup of its first process, relative to the root of the memory hierarchy. */
  readonly processCgroup: string;
  readonly memoryRequest: Quantity | undefined;
  /** The pod of Podman's that it is in. */
  readonly podmanPod?: { readonly id: string; readonly name: string } | undefined;
}

/** A label with a longer value is taken for none that joins containers. */
const MOST_JOINING = 253;

/** The pods that containers are, in the order of their first containers. */
export function podsOf(
  containers: readonly RunningContainer[],
  grouping: PodGrouping,
): readonly RuntimePod[] {
  const groups = new Map<string, { readonly join: Join; readonly members: RunningContainer[] }>();
  for (const container of containers) {
    const join = joinOf(container, grouping);
    const group = groups.get(join.id);
    if (group === undefined) groups.set(join.id, { join, members: [container] });
    else group.members.push(container);
  }
  return [...groups.values()].map(({ join, members }) => podOf(join, members));
}

/** What a container is part of. */
interface Join {
  readonly id: string;
  readonly owner: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly doubt: string | undefined;
}

function joinOf(container: RunningContainer, grouping: PodGrouping): Join {
  const { id, labels, podmanPod } = container;
  const name = keptName(container.name);
  const alone = {
    id,
    owner: ownerOf(name, labels),
    name,
    labels: keptLabels(labels),
    doubt: undefined,
  };
  if (grouping.by === 'podman' && podmanPod !== undefined) {
    const joined = keptName(podmanPod.name);
    return {
      id: `pod ${podmanPod.id}`,
      owner: `pod ${joined}`,
      name: joined,
      labels: {},
      doubt: undefined,
    };
  }
  if (grouping.by !== 'label') return alone;
  const { key } = grouping;
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  if (value === undefined || value === '') return alone;
  if (value.length > MOST_JOINING) {
    return { ...alone, doubt: `its label ${key} is longer than ${MOST_JOINING} characters` };
  }
  const joined = `${key}=${value}`;
  return { id: joined, owner: joined, name: value, labels: { [key]: value }, doubt: undefined };
}

/** Labels by which what starts a container knows it again; the name may be another one each time. */
const OWNER_LABELS: readonly (readonly string[])[] = [
  ['com.docker.compose.project', 'com.docker.compose.service'],
  ['com.docker.swarm.service.name'],
  ['PODMAN_SYSTEMD_UNIT'],
];

/** Whoever starts a container again, or another in its place: a service, a unit, or somebody by its name. */
function ownerOf(name: string, labels: Readonly<Record<string, string>>): string {
  for (const keys of OWNER_LABELS) {
    const values = keys.map((key) => (Object.hasOwn(labels, key) ? (labels[key] ?? '') : ''));
    if (values.every((value) => value !== ''))
      return `${keys.at(-1)}=${keptName(values.join('/'))}`;
  }
  return `container ${name}`;
}

function podOf(
  { id, owner, name, labels, doubt }: Join,
  members: readonly RunningContainer[],
): RuntimePod {
  const containers = members.map(containerOf);
  const cgroups = containers.flatMap(({ cgroup }) => cgroup ?? []);
  const lost = containers.find(({ cgroup }) => cgroup === undefined);
  const isLost =
    lost === undefined ? undefined : `its container ${lost.id} has no cgroup of its own`;
  return {
    id,
    namespace: undefined,
    name,
    uid: id,
    owner,
    cgroups,
    doubt: doubt ?? isLost,
    isCritical: false,
    labels,
    annotations: {},
    containers,
  };
}

function containerOf({
  id,
  name,
  image,
  labels,
  processCgroup,
  memoryRequest,
}: RunningContainer): RuntimeContainer {
  return {
    id,
    name: keptName(name),
    image: keptName(image),
    isRunning: true,
    cgroup: groupOfContainer(processCgroup, id),
    labels: keptLabels(labels),
    memoryRequest,
  };
}

/**
 * The container's own cgroup, which engines name by its id: one of its processes may be in a group below. What
 * bears no such name may be anybody's, and so may the number that the engine gave of a process.
 */
export function groupOfContainer(processCgroup: string, id: string): string | undefined {
  if (id === '') return undefined;
  const parts = processCgroup.split('/');
  const own = parts.findIndex((part) => part.includes(id));
  return own === -1 ? undefined : parts.slice(0, own + 1).join('/');
}

/** Which containers of an engine are a pod together, and what their cgroups are. Pure. */
import type { RuntimeContainer, RuntimePod } from '../../ports/pod-directory.ts';
import type { Known } from '../shared/questions.ts';
import { keptLabels, keptName } from '../shared/texts.ts';
import type { ContainerEntry, Details } from './entries.ts';

/** What makes containers one pod. */
export type PodGrouping =
  /** Nothing: each is a pod. */
  | { readonly by: 'container' }
  /** One value of a label; without the label a container is a pod by itself. */
  | { readonly by: 'label'; readonly key: string }
  /** A pod of Podman's. */
  | { readonly by: 'podman' };

/** A container that an engine lists. All texts are from outside. */
export interface ListedContainer extends ContainerEntry {
  /** What it tells of it. */
  readonly known: Exclude<Known<Details>, { readonly kind: 'gone' }>;
  /** The pod of Podman's that it is in. */
  readonly podmanPod?: { readonly id: string; readonly name: string } | undefined;
}

/** A label with a longer value is taken for none that joins containers. */
const MOST_JOINING = 253;

/**
 * The pods that containers are, in the order of their first containers; without those that are still being asked
 * about for the first time.
 */
export function podsOf(
  containers: readonly ListedContainer[],
  grouping: PodGrouping,
): readonly RuntimePod[] {
  const groups = new Map<string, { readonly join: Join; readonly members: ListedContainer[] }>();
  for (const container of containers) {
    const join = joinOf(container, grouping);
    const group = groups.get(join.id);
    if (group === undefined) groups.set(join.id, { join, members: [container] });
    else group.members.push(container);
  }
  return [...groups.values()]
    .filter(({ members }) => members.every(({ known }) => known.kind !== 'waiting'))
    .map(({ join, members }) => podOf(join, members));
}

/** What a container is part of. */
interface Join {
  readonly id: string;
  readonly owner: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly doubt: string | undefined;
}

function joinOf(container: ListedContainer, grouping: PodGrouping): Join {
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
  members: readonly ListedContainer[],
): RuntimePod {
  const containers = members.map(containerOf);
  const cgroups = containers.flatMap(({ cgroup }) => cgroup ?? []);
  const [lost] = members.flatMap((member) => lossOf(member) ?? []);
  return {
    id,
    namespace: undefined,
    name,
    uid: id,
    owner,
    cgroups,
    doubt: doubt ?? lost,
    isCritical: false,
    labels,
    annotations: {},
    containers,
  };
}

/** Why it is not known what would end with it. */
function lossOf(member: ListedContainer): string | undefined {
  const { id, known, fault } = member;
  if (known.kind === 'failed')
    return `the engine does not tell of its container ${id}: ${known.reason}`;
  return (
    fault ??
    (cgroupIn(member) === undefined ? `its container ${id} has no cgroup of its own` : undefined)
  );
}

function cgroupIn({ id, known }: ListedContainer): string | undefined {
  return known.kind === 'told' ? groupOfContainer(known.answer.processCgroup, id) : undefined;
}

function containerOf(member: ListedContainer): RuntimeContainer {
  const { id, name, labels, known } = member;
  const image = known.kind === 'told' ? known.answer.image : undefined;
  return {
    id,
    name: keptName(name),
    images: image === undefined ? undefined : [keptName(image)],
    isRunning: true,
    cgroup: cgroupIn(member),
    labels: keptLabels(labels),
    memoryRequest: known.kind === 'told' ? known.answer.memoryRequest : undefined,
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

/** The pods of a runtime that speaks CRI v1: sandboxes with their containers. */
import { type SchedulerLike, switchMap, take, timer } from 'rxjs';
import type { GroupWatch } from '../../kernel/new-groups.ts';
import type { PodDirectory, RuntimeContainer, RuntimePod } from '../../ports/pod-directory.ts';
import { listingsOf } from '../shared/listings.ts';
import { type Known, type Questions, questions } from '../shared/questions.ts';
import { keptLabels, keptName } from '../shared/texts.ts';
import type { CriClient } from './client.ts';
import { imageNames } from './image-names.ts';
import { type Container, criLists, isReady, isRunning, NOT_FOUND, type Sandbox } from './lists.ts';
import { ownerOf } from './owner.ts';
import { bearsUid, type Said, saidIn, type VerboseStatus } from './pod-cgroup.ts';
import { isBestEffort, isKubelets, isNodeCritical, requestBytes } from './requests.ts';
import { criStopping } from './stopping.ts';

/** How often pods are listed, ms: where no cgroup told of a new pod it goes unseen for as long. */
export const LIST_EACH_MS = 1000;

/** How often, and how many times, they are listed after a cgroup was made, ms: until then it is known. */
export const NEWCOMER_EACH_MS = 100;
export const NEWCOMER_LISTINGS = 10;

/** How long a sandbox may take to say where it is, ms: containerd itself waits 2 s for a shim that hangs. */
const SANDBOX_DEADLINE_MS = 4000;

/** With what its image is called, as far as that is known. */
interface Named extends Container {
  readonly images: readonly string[] | undefined;
}

export interface CriDirectoryInputs {
  readonly client: CriClient;
  readonly scheduler: SchedulerLike;
  /** Tells of pods whose cgroups are made; cgroups as in {@link RuntimePod.cgroups}. */
  readonly groups: GroupWatch;
  /** What a kubelet works requests out against. */
  readonly machineMemoryBytes: () => number;
}

const NANO = 1_000_000_000n;

/** A sandbox with its containers. */
interface Pod {
  readonly sandbox: Sandbox;
  readonly own: readonly Named[];
}

/** What was learned of sandboxes and containers beyond what the lists say. */
interface Learned {
  readonly sandboxes: Questions<Said>;
  readonly containers: Questions<Said>;
}

/**
 * A pod is a sandbox that is ready, or of which a container runs. Containers are asked first where they are: a
 * runtime tells of them without the shim, which may hang, and of the sandbox with it.
 */
export function criDirectory(inputs: CriDirectoryInputs): PodDirectory {
  const { client, scheduler, groups } = inputs;
  const asking = (method: string, key: string, deadlineMs?: number): Questions<Said> =>
    questions({
      scheduler,
      ask: (id) =>
        client
          .call<VerboseStatus>(method, { [key]: id, verbose: true }, deadlineMs)
          .then((status) => saidIn(status, id), unlessGone),
    });
  const learned: Learned = {
    sandboxes: asking('PodSandboxStatus', 'podSandboxId', SANDBOX_DEADLINE_MS),
    containers: asking('ContainerStatus', 'containerId'),
  };
  const names = imageNames(client, scheduler);
  const look = criLists(client, scheduler);
  const list = async (): Promise<readonly RuntimePod[]> => {
    const { sandboxes, containers } = await look();
    await names.learn(containers.map((one) => [one.id, imageOf(one)]));
    const byPod = new Map<string, Named[]>();
    for (const one of containers) {
      const container = { ...one, images: names.namesOf(one.id) };
      const ofPod = byPod.get(container.podSandboxId);
      if (ofPod === undefined) byPod.set(container.podSandboxId, [container]);
      else ofPod.push(container);
    }
    const all = sandboxes.map((sandbox): Pod => ({ sandbox, own: byPod.get(sandbox.id) ?? [] }));
    await learn(all, learned);
    const pods = all.flatMap((pod) => podOf(inputs, pod, learned) ?? []);
    groups.follow(parentsOf(pods));
    return pods;
  };
  // The group of a sandbox is there before it is ready, and that before its containers begin.
  const changes$ = groups.changes$.pipe(
    switchMap(() => timer(0, NEWCOMER_EACH_MS, scheduler).pipe(take(NEWCOMER_LISTINGS))),
  );
  return {
    listings$: listingsOf({ list, changes$, eachMs: () => LIST_EACH_MS, scheduler }),
    ...criStopping(client),
    close: () => {
      groups.close();
      client.close();
    },
  };
}

/** Where pods lie, and where what holds them does: new ones are made there. */
function parentsOf(pods: readonly RuntimePod[]): readonly string[] {
  const parents = pods.flatMap(({ cgroups }) => cgroups.map(parentOf));
  return [...new Set([...parents, ...parents.map(parentOf)])].filter((one) => one !== '');
}

function parentOf(cgroup: string): string {
  return cgroup.slice(0, Math.max(0, cgroup.lastIndexOf('/')));
}

/** Asks about those that are new, and forgets those that are gone. */
async function learn(all: readonly Pod[], learned: Learned): Promise<void> {
  const { sandboxes, containers } = learned;
  await containers.learn(all.flatMap(({ own }) => own.filter(isRunning)).map(({ id }) => id));
  const unplaced = all.filter(
    ({ sandbox, own }) =>
      toldOf(sandboxes, sandbox.id) !== undefined || placeIn(sandbox, own, learned) === undefined,
  );
  await sandboxes.learn(unplaced.map(({ sandbox }) => sandbox.id));
}

function toldOf(asked: Questions<Said>, id: string): Said | undefined {
  const known = asked.of(id);
  return known.kind === 'told' ? known.answer : undefined;
}

/** The pod's cgroup as its containers tell of it, where it is the pod's own. */
function placeIn(
  { metadata }: Sandbox,
  own: readonly Container[],
  { containers }: Learned,
): string | undefined {
  return own
    .filter(isRunning)
    .map(({ id }) => toldOf(containers, id)?.parent)
    .find((parent) => parent !== undefined && bearsUid(parent, metadata?.uid ?? ''));
}

/** What it was asked for; a kubelet asks by an id, and newer ones say beside it what that was made of. */
function imageOf({ image }: Container): string {
  const { userSpecifiedImage = '', image: asked = '' } = image ?? {};
  return userSpecifiedImage === '' ? asked : userSpecifiedImage;
}

/** Undefined for what has gone meanwhile, and for what is still being asked about for the first time. */
function podOf(
  { machineMemoryBytes }: CriDirectoryInputs,
  { sandbox, own }: Pod,
  learned: Learned,
): RuntimePod | undefined {
  const { id, metadata, labels, annotations } = sandbox;
  const { name, uid, namespace: given } = metadata ?? { name: id, uid: id, namespace: '' };
  const namespace = keptName(given);
  const place = placeIn(sandbox, own, learned);
  const ofSandbox = place === undefined ? learned.sandboxes.of(id) : undefined;
  if (ofSandbox?.kind === 'gone' || ofSandbox?.kind === 'waiting') return undefined;
  const said = ofSandbox?.kind === 'told' ? ofSandbox.answer : undefined;
  const parent = place ?? said?.parent ?? '';
  const isOwn = bearsUid(parent, uid);
  const asksMore = isKubelets(parent) || !isOwn;
  const ofOwn = new Map(own.map((one) => [one.id, learned.containers.of(one.id)]));
  const isMissing = (kind: Known<Said>['kind']) => (one: Container) =>
    asksMore && isRunning(one) && ofOwn.get(one.id)?.kind === kind;
  if (said?.parent !== undefined || place !== undefined) {
    if (own.some(isMissing('waiting'))) return undefined;
  }
  const kept = own.filter((one) => !isMissing('gone')(one));
  const resources = new Map(
    kept.map((one) => [one.id, toldOf(learned.containers, one.id)?.resources] as const),
  );
  const containers = kept.map((container) => {
    const its = toldOf(learned.containers, container.id);
    return containerOf(container, its?.own, requestOf(parent, its, machineMemoryBytes));
  });
  const { cgroups, doubt } = isOwn
    ? { cgroups: [parent], doubt: undefined }
    : apart(sandbox, said, containers);
  const silent = kept.find(isMissing('failed'));
  return {
    id,
    namespace,
    name: `${namespace}/${keptName(name)}`,
    uid: keptName(uid),
    owner: ownerOf(namespace, keptName(name), labels),
    cgroups,
    doubt:
      (metadata === null ? 'the runtime does not say what it is called' : undefined) ??
      silenceOf('it', ofSandbox) ??
      (silent && silenceOf(`its container ${silent.id}`, ofOwn.get(silent.id))) ??
      doubt,
    isCritical: isNodeCritical(
      parent,
      [...resources.values()].flatMap((one) => one ?? []),
    ),
    labels: keptLabels(labels),
    annotations: keptLabels(annotations),
    containers,
  };
}

/** What a kubelet's container asks for, bytes: where its pod lies wins over what the OOM killer is told. */
function requestOf(
  parent: string,
  its: Said | undefined,
  machineMemoryBytes: () => number,
): number | undefined {
  if (isBestEffort(parent)) return 0;
  const isRequest = isKubelets(parent) && its?.resources !== undefined;
  return isRequest ? requestBytes(its.resources, machineMemoryBytes()) : undefined;
}

/** What the runtime was asked and does not tell. */
function silenceOf(what: string, known: Known<Said> | undefined): string | undefined {
  return known?.kind === 'failed'
    ? `the runtime does not tell of ${what}: ${known.reason}`
    : undefined;
}

/** Of a pod whose cgroup is not called after it, and may be others' too: the sandbox's own and its containers'. */
function apart(
  sandbox: Sandbox,
  said: Said | undefined,
  containers: readonly RuntimeContainer[],
): Pick<RuntimePod, 'cgroups' | 'doubt'> {
  const running = containers.filter((one) => one.isRunning);
  // Of one that is not ready nothing runs but those.
  const cgroups = [
    ...(isReady(sandbox) ? [said?.own] : []),
    ...running.map(({ cgroup }) => cgroup),
  ];
  const known = cgroups.filter((one) => one !== undefined);
  return {
    cgroups: known,
    doubt: known.length < cgroups.length ? 'it is not known which cgroups are its own' : undefined,
  };
}

function containerOf(
  container: Named,
  cgroup: string | undefined,
  memoryRequestBytes: number | undefined,
): RuntimeContainer {
  const { id, metadata, labels, images } = container;
  return {
    id,
    name: keptName(metadata?.name ?? ''),
    images: images?.map(keptName),
    isRunning: isRunning(container),
    cgroup,
    labels: keptLabels(labels),
    memoryRequest:
      memoryRequestBytes === undefined
        ? undefined
        : { nano: BigInt(memoryRequestBytes) * NANO, format: 'binary' },
  };
}

function unlessGone(error: { readonly code?: number }): undefined {
  if (error.code === NOT_FOUND) return undefined;
  throw error;
}

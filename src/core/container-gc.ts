import { compareText } from './text.ts';

/** A container that has ended, or a sandbox that runs nothing any more, as far as a collection looks at it. */
export interface DeadContainer {
  readonly id: string;
  /** Whose it is: those of one pod and one name are attempts of the same. */
  readonly owner: string;
  /** When it ended, or was made where that is all that is known, ms since 1970. */
  readonly endedAtMs: number;
}

/** What is kept of dead containers. Source: kubelet `kuberuntime_gc.go`, `GCPolicy`. */
export interface ContainerGcPolicy {
  /** One that ended less long ago stays, ms: somebody may still want its log. */
  readonly minimumAgeMs: number;
  /** How many of one owner stay; negative for all. */
  readonly mostPerOwner: number;
}

/** The kubelet's: the last attempt stays, so that its log can be read. */
export const CONTAINER_GC: ContainerGcPolicy = { minimumAgeMs: 0, mostPerOwner: 1 };

/** What is kept under pressure: nothing but what has just ended. */
export const CONTAINER_GC_UNDER_PRESSURE: ContainerGcPolicy = { minimumAgeMs: 0, mostPerOwner: 0 };

/**
 * The dead containers that a collection takes: of each owner all but the latest ones, the oldest first.
 *
 * @param wallMs now, ms since 1970
 */
export function containersToCollect(
  containers: readonly DeadContainer[],
  { minimumAgeMs, mostPerOwner }: ContainerGcPolicy,
  wallMs: number,
): readonly DeadContainer[] {
  if (mostPerOwner < 0) return [];
  const byOwner = new Map<string, DeadContainer[]>();
  for (const container of containers.filter(
    ({ endedAtMs }) => wallMs - endedAtMs >= minimumAgeMs,
  )) {
    const others = byOwner.get(container.owner);
    if (others === undefined) byOwner.set(container.owner, [container]);
    else others.push(container);
  }
  return [...byOwner.values()]
    .flatMap((own) => own.sort(latestFirst).slice(mostPerOwner))
    .sort((left, right) => latestFirst(right, left));
}

function latestFirst(left: DeadContainer, right: DeadContainer): number {
  return right.endedAtMs - left.endedAtMs || compareText(right.id, left.id);
}

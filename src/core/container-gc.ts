/** Which dead containers and sandboxes a collection takes. Pure. Source: kubelet `kuberuntime_gc.go`. */
import { compareText } from './text.ts';

/** A container that has ended, or a sandbox that runs nothing any more, as far as a collection looks at it. */
export interface DeadContainer {
  readonly id: string;
  /** Whose it is: those of one pod and one name are attempts of the same. */
  readonly owner: string;
  /** When it ended, or was made where that is all that is known, ms since 1970. */
  readonly endedAtMs: number;
  /**
   * That its pod lives, so that it is an attempt of what may have been started again since: whoever started it
   * looks at the latest one for its count and its end.
   */
  readonly ofLivingPod?: boolean;
}

/** A sandbox that runs nothing any more: it goes after all that was in it. */
export interface DeadSandbox extends DeadContainer {
  /** The ids of the containers in it, all of them dead. */
  readonly containers: readonly string[];
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

/** Why a dead container stays. */
export type DeadKept =
  /** It ended just now. */
  | 'fresh'
  /** It is among the latest of its owner. */
  | 'latest'
  /** A sandbox in which a container stays. */
  | 'holds containers';

/** What is to become of dead containers. */
export interface DeadVerdicts<Dead extends DeadContainer> {
  /** The oldest first. */
  readonly taken: readonly Dead[];
  readonly kept: readonly { readonly dead: Dead; readonly why: DeadKept }[];
}

/**
 * Of each owner all go but the latest ones; of one whose pod lives the latest stays in any case. One that ended
 * just now stays, and is not counted among those that do.
 *
 * @param wallMs now, ms since 1970
 */
export function judgeContainers<Dead extends DeadContainer>(
  containers: readonly Dead[],
  { minimumAgeMs, mostPerOwner }: ContainerGcPolicy,
  wallMs: number,
): DeadVerdicts<Dead> {
  const isFresh = ({ endedAtMs }: Dead): boolean => wallMs - endedAtMs < minimumAgeMs;
  const byOwner = new Map<string, Dead[]>();
  for (const container of containers.filter((one) => !isFresh(one))) {
    const others = byOwner.get(container.owner);
    if (others === undefined) byOwner.set(container.owner, [container]);
    else others.push(container);
  }
  const latest = new Set(
    [...byOwner.values()].flatMap((own) => {
      const lives = own.some(({ ofLivingPod }) => ofLivingPod === true);
      const most = mostPerOwner < 0 ? own.length : Math.max(mostPerOwner, lives ? 1 : 0);
      return own.sort(latestFirst).slice(0, most);
    }),
  );
  const taken = [...byOwner.values()].flat().filter((one) => !latest.has(one));
  return {
    taken: taken.sort((left, right) => latestFirst(right, left)),
    kept: containers.flatMap((dead): DeadVerdicts<Dead>['kept'] => {
      if (isFresh(dead)) return [{ dead, why: 'fresh' }];
      return latest.has(dead) ? [{ dead, why: 'latest' }] : [];
    }),
  };
}

/**
 * The same of sandboxes, of which only those may go that hold no container any more.
 *
 * @param isThere whether a container is there still
 */
export function judgeSandboxes<Dead extends DeadSandbox>(
  sandboxes: readonly Dead[],
  policy: ContainerGcPolicy,
  wallMs: number,
  isThere: (containerId: string) => boolean,
): DeadVerdicts<Dead> {
  const { taken, kept } = judgeContainers(sandboxes, policy, wallMs);
  const holds = ({ containers }: Dead): boolean => containers.some(isThere);
  return {
    taken: taken.filter((one) => !holds(one)),
    kept: [
      ...kept,
      ...taken.filter(holds).map((dead) => ({ dead, why: 'holds containers' as const })),
    ],
  };
}

function latestFirst(left: DeadContainer, right: DeadContainer): number {
  return right.endedAtMs - left.endedAtMs || compareText(right.id, left.id);
}

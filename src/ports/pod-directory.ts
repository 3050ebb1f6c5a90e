import type { Observable } from 'rxjs';
import type { Quantity } from '../core/quantity.ts';
import type { NamedThing } from './collection.ts';
import type { DiskTeller } from './disk-usage.ts';
import type { Reclaimer } from './reclaimer.ts';

/** A container as the runtime that runs it knows it. */
export interface RuntimeContainer {
  readonly id: string;
  readonly name: string;
  /**
   * What it was made of: a name with a tag or digest, as it was asked for, or where it was asked for by an id all
   * names that image had. Undefined where that is not known.
   */
  readonly images: readonly string[] | undefined;
  readonly isRunning: boolean;
  /** Its own cgroup, as {@link RuntimePod.cgroups} has them; undefined where it is not known. */
  readonly cgroup: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  /** Undefined where it asks for none, or the runtime does not know. */
  readonly memoryRequest: Quantity | undefined;
}

/** A pod as the runtime that runs it knows it. All texts are from outside. */
export interface RuntimePod {
  /** The runtime's own id, or of several containers what joins them. */
  readonly id: string;
  /** Undefined where the runtime has none. */
  readonly namespace: string | undefined;
  /** `namespace/name`, or the one name that it has. */
  readonly name: string;
  readonly uid: string;
  /** What brings it back once it has ended: the same text for each that comes of it. */
  readonly owner: string;
  /**
   * The cgroups that it is made of, relative to the root of the memory hierarchy, without a slash in front; none
   * where that is not known. Several where it is no more than its containers.
   */
  readonly cgroups: readonly string[];
  /** Why it is not known what would end with it, so that it is never evicted; undefined where it is. */
  readonly doubt: string | undefined;
  /** Whether what made it has it kept as the node itself is. */
  readonly isCritical: boolean;
  /** Of the pod as a whole; its containers have their own. */
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly containers: readonly RuntimeContainer[];
}

/** What there is of a pod that was ended: its containers may run again, lie there dead, or be removed. */
export type RemainsState = 'running' | 'dead' | 'gone';

/** What a dead pod leaves with what ran it: its containers, their layers and logs. */
export interface Remains {
  /** Rejects where the runtime does not answer within its deadline. */
  stateOf(pod: RuntimePod): Promise<RemainsState>;
  /**
   * Removes it, unless it runs again. Rejects where the runtime refuses or does not answer within its deadline.
   *
   * @param removed is told of each thing that went, which no other had removed before
   */
  remove(pod: RuntimePod, removed: (thing: NamedThing) => void): Promise<void>;
}

/** What a runtime was found to run, or why it could not be asked. */
export type PodListing =
  | { readonly kind: 'listed'; readonly pods: readonly RuntimePod[]; readonly atMs: number }
  | { readonly kind: 'away'; readonly reason: string; readonly atMs: number };

/** Which runtime it is. */
export interface RuntimePlace {
  /** For a person: `containerd`, or what it speaks where that is all that is known. */
  readonly name: string;
  /** The path of its socket. */
  readonly socket: string;
}

/**
 * A runtime as far as it is asked: which pods there are, and that it takes note of what was ended. None of
 * it stands between an event and a kill.
 */
export interface PodDirectory {
  /** What is asked; undefined while it is looked for. */
  readonly place?: () => RuntimePlace | undefined;
  /** Hot while subscribed: the listing at once, then each that differs, and each time that it is away. */
  readonly listings$: Observable<PodListing>;
  /**
   * Has the runtime take note that a pod's processes were ended, and keep it from starting them again: of the
   * containers that it was listed with. Called at its end, and subscribed to for each try: a later one leaves alone
   * what somebody started since. Cold; completes, or errors when the runtime refuses or does not answer within its
   * deadline, and with `StartedSince` where one was left alone.
   */
  settle(pod: RuntimePod): Observable<never>;
  /**
   * Has the runtime stop a pod with the signal that its image wants to be stopped by, and with no KILL after it,
   * whatever becomes of this. The same way; completes once all that it knows of has ended, and errors when the
   * grace, ms, is long over. Unsubscribing withdraws it: nothing is waited for any more.
   */
  stop(pod: RuntimePod, gracePeriodMs: number): Observable<never>;
  /**
   * Whether the runtime answers, and what would signal the pod with it. Cold; completes once it does, errors where it
   * does not within a second.
   */
  answers(pod: RuntimePod): Observable<never>;
  /** The same runtime, asked about disks; where it is undefined no pod goes for one. */
  readonly disks?: DiskTeller | undefined;
  /** What dead pods leave with it. */
  readonly remains?: Remains | undefined;
  close(): void;
  /** What removes dead containers and unused images of the same runtime; left out where nothing can. */
  readonly reclaimer?: Reclaimer;
}

import type { Observable } from 'rxjs';
import type { Quantity } from '../core/quantity.ts';

/** A container as the runtime that runs it knows it. */
export interface RuntimeContainer {
  readonly id: string;
  readonly name: string;
  /** What it was made of: a name with a tag or digest, as it was asked for. */
  readonly image: string;
  readonly isRunning: boolean;
  /** Undefined where it asks for none, or the runtime does not know. */
  readonly memoryRequest: Quantity | undefined;
}

/** A pod as the runtime that runs it knows it. All texts are from outside. */
export interface RuntimePod {
  /** The runtime's own id: unique, and never given again. */
  readonly id: string;
  /** `namespace/name`, or the one name that it has. */
  readonly name: string;
  readonly uid: string;
  /** Its cgroup relative to the root of the memory hierarchy, without a slash in front. */
  readonly cgroup: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly containers: readonly RuntimeContainer[];
}

/** What a runtime was found to run, or why it could not be asked. */
export type PodListing =
  | { readonly kind: 'listed'; readonly pods: readonly RuntimePod[]; readonly atMs: number }
  | { readonly kind: 'away'; readonly reason: string; readonly atMs: number };

/**
 * A runtime as far as it is asked: which pods there are, and that it takes note of what was ended. None of
 * it stands between an event and a kill.
 */
export interface PodDirectory {
  /** Hot while subscribed: the listing at once, then each that differs, and each time that it is away. */
  readonly listings$: Observable<PodListing>;
  /**
   * Has the runtime take note that a pod's processes were ended, and keep it from starting them again.
   * Cold; completes, or errors when the runtime refuses or does not answer within its deadline.
   */
  settle(podId: string): Observable<never>;
  /** Has the runtime stop a pod with a grace, ms. The same way. */
  stop(podId: string, gracePeriodMs: number): Observable<never>;
  close(): void;
}

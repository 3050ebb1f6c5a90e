import type { DeadContainer, DeadSandbox } from '../core/container-gc.ts';
import type { ListedImage } from '../core/image-gc.ts';

/** Texts from outside that say what is wanted of something. */
interface Texts {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** What the runtime says of something dead beside what a collection looks at. All texts are from outside. */
interface Told extends Texts {
  /** For people: `namespace/name/container`, or the one name that it has. */
  readonly name: string;
}

export interface RuntimeDeadContainer extends DeadContainer, Told {
  /** What is said of the pod that it was in: either of the two may have it kept. Undefined where it is in none. */
  readonly pod?: Texts | undefined;
}
export interface RuntimeDeadSandbox extends DeadSandbox, Told {}

/** What runs no more. */
export interface DeadListing {
  readonly containers: readonly RuntimeDeadContainer[];
  /** Those in which nothing runs; of a runtime without sandboxes none. */
  readonly sandboxes: readonly RuntimeDeadSandbox[];
  /** Containers that have not been started: they stay. */
  readonly created: readonly Pick<RuntimeDeadContainer, 'id' | 'name'>[];
}

/** How a removal ended. */
export type Removal =
  | { readonly kind: 'removed' }
  /** Somebody else was first. */
  | { readonly kind: 'gone' }
  /** Something uses it after all: a normal answer, and no fault. */
  | { readonly kind: 'inUse'; readonly detail: string }
  | {
      readonly kind: 'failed';
      readonly detail: string;
      /** That the runtime answers nothing, or is not there: the next call would fare no better. */
      readonly isAway: boolean;
    };

/**
 * A runtime as far as it is asked to remove what nobody uses. Each call has a deadline of its own. Lists reject
 * where the runtime does not answer; removals never reject.
 */
export interface Reclaimer {
  listDead(): Promise<DeadListing>;
  listImages(): Promise<readonly ListedImage[]>;
  /** Removes a dead container; one that runs is left alone. */
  removeContainer(id: string): Promise<Removal>;
  /** Removes a sandbox in which nothing runs, with what is left in it. */
  removeSandbox(id: string): Promise<Removal>;
  /** Removes an image with all its names; one that is used is left alone. */
  removeImage(image: ListedImage): Promise<Removal>;
}

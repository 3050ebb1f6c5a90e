import { EvictdError } from '../../core/errors.ts';

interface Step {
  readonly what: string;
  readonly undo: () => void | Promise<void>;
}

/** What is to be undone at the end, the last step first. */
export class Undo {
  readonly #steps: Step[] = [];

  add(what: string, undo: () => void | Promise<void>): void {
    this.#steps.push({ what, undo });
  }

  /**
   * Undoes every step, also when one before it fails.
   *
   * @throws EvictdError EVICTD_DEMO that names all that could not be undone
   */
  async run(): Promise<void> {
    const left: string[] = [];
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      try {
        await step.undo();
      } catch (error) {
        left.push(`${step.what} (${error instanceof Error ? error.message : String(error)})`);
      }
    }
    if (left.length > 0) {
      throw new EvictdError('EVICTD_DEMO', `left behind: ${left.join('; ')}`);
    }
  }
}

/** Samples that are kept up to a number, what matters least going first. */
export class Kept<T> {
  readonly #samples: T[] = [];
  readonly #limit: number;
  readonly #isCalm: (sample: T) => boolean;

  /** Before this one no two calm samples are side by side. */
  #from = 0;
  #dropped = 0;

  /**
   * @param limit at least 2
   * @param isCalm whether nothing was decided, and no threshold met
   */
  constructor(limit: number, isCalm: (sample: T) => boolean) {
    this.#limit = limit;
    this.#isCalm = isCalm;
  }

  /** How many are gone. */
  get dropped(): number {
    return this.#dropped;
  }

  get samples(): readonly T[] {
    return this.#samples;
  }

  /**
   * Adds one. Over the limit the oldest goes that is calm and followed by a calm one: between two times
   * of pressure one stays, since a grace begins anew after it. Where there is none, the oldest.
   */
  add(sample: T): void {
    this.#samples.push(sample);
    if (this.#samples.length <= this.#limit) return;
    this.#dropped += 1;
    while (this.#from < this.#samples.length - 1) {
      if (this.#isCalmAt(this.#from) && this.#isCalmAt(this.#from + 1)) {
        this.#samples.splice(this.#from, 1);
        return;
      }
      this.#from += 1;
    }
    this.#samples.shift();
    this.#from = Math.max(0, this.#from - 1);
  }

  #isCalmAt(index: number): boolean {
    const sample = this.#samples[index];
    return sample !== undefined && this.#isCalm(sample);
  }
}

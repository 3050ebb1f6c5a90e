/** Chance that a seed repeats: what is made from one is the same each time. */
export class Dice {
  #state: number;

  constructor(...seeds: readonly number[]) {
    this.#state = seeds.reduce((state, seed) => mixed(state ^ seed), 0x9e3779b9);
  }

  /** At least 0, below 1. */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    return (mixed(this.#state) >>> 0) / 2 ** 32;
  }

  /** A whole number from `low` to `high`, both included. */
  whole(low: number, high: number): number {
    return low + Math.floor(this.fraction() * (high - low + 1));
  }

  /** True in `percent` of 100 cases. */
  chance(percent: number): boolean {
    return this.fraction() * 100 < percent;
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.whole(0, choices.length - 1)] as T;
  }

  /** A part of the list, each with the same chance, in its order. */
  some<T>(list: readonly T[], percent: number): readonly T[] {
    return list.filter(() => this.chance(percent));
  }

  shuffled<T>(list: readonly T[]): readonly T[] {
    return list
      .map((item) => ({ item, at: this.fraction() }))
      .sort((left, right) => left.at - right.at)
      .map(({ item }) => item);
  }
}

function mixed(seed: number): number {
  let state = seed | 0;
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
  state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35);
  return state ^ (state >>> 16);
}

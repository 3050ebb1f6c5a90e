import type { Signal } from './signal.ts';

/** One reading of one signal. Counts are whole numbers of the signal's unit. */
export interface SignalObservation {
  readonly signal: Signal;
  readonly capacity: number;
  /** 0 to `capacity`. */
  readonly available: number;
  /** Monotonic time of the reading, in ms. */
  readonly atMs: number;
}

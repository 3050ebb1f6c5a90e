import type { Signal } from './signal.ts';

/** One reading of one signal. Counts are whole numbers of the signal's unit. */
export interface SignalObservation {
  readonly signal: Signal;
  readonly capacity: number;
  /** 0 to `capacity`; to the kubelet it may be anything. */
  readonly available: number;
  /** Monotonic time of the reading, in ms. */
  readonly atMs: number;
  /**
   * When its source says that it measured, ns since 1970; left out where it measured for this reading,
   * or does not say. Tells a repeated figure from a new one, and nothing else.
   */
  readonly statsTimeNs?: bigint | undefined;
}

/** The reading of a signal; undefined where there is none. */
export function observationOf(
  observations: readonly SignalObservation[],
  signal: Signal,
): SignalObservation | undefined {
  for (const observation of observations) if (observation.signal === signal) return observation;
  return undefined;
}

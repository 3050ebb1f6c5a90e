/** How soon the node is read again where nothing wakes evictd. */
import { closePollMs } from '../core/following.ts';
import type { ReadSample } from '../core/pipeline.ts';
import { nextPollMs } from '../core/polling.ts';
import { SIGNALS, type Signal } from '../core/signal.ts';
import { thresholdLevel } from '../core/threshold.ts';
import { notifier, thresholdsOf, type Wiring } from './wiring.ts';

/** The soonest of the adaptive polls and those that following a working set needs. */
export function pollAfterMs(
  wiring: Wiring,
  before: ReadSample | undefined,
  now: ReadSample,
): number {
  const { settings, view } = wiring.current();
  const { pollIntervalMs, polling } = settings;
  const isNotified = notifier(wiring) !== undefined;
  const of = (sample: ReadSample | undefined, signal: Signal) =>
    sample?.observations.find((observation) => observation.signal === signal);
  const adaptive = (signal: Signal): number =>
    nextPollMs(
      thresholdsOf(wiring, signal),
      of(before, signal),
      of(now, signal),
      pollIntervalMs,
      polling[SIGNALS[signal].poll],
    );
  const close = isNotified
    ? view
        .readings()
        .flatMap(({ signal, capacityBytes, deductedBytes, usageBytes }) =>
          thresholdsOf(wiring, signal).map((threshold) =>
            closePollMs(
              capacityBytes,
              thresholdLevel(threshold, capacityBytes, false),
              deductedBytes,
              usageBytes,
            ),
          ),
        )
    : [];
  return Math.min(
    adaptive('pid.available'),
    ...view.memory.map(({ signal }) => adaptive(signal)),
    ...close.filter((ms) => ms !== undefined),
  );
}

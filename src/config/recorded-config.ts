import { formatDuration } from '../core/duration.ts';
import type { Signal } from '../core/signal.ts';
import type { Threshold } from '../core/threshold.ts';
import type { ScenarioConfig } from './scenario-config.ts';
import { HARD_GRACE_SECONDS, type Settings } from './settings.ts';

/**
 * The settings' policy as the configuration of a scenario: read again, it gives the same policy. What is
 * the rule set's own default is left out, so that another rule set brings its own.
 */
export function recordedConfig({
  policy,
  givenThresholds,
  compatibility,
  memorySource,
}: Pick<
  Settings,
  'policy' | 'givenThresholds' | 'compatibility' | 'memorySource'
>): ScenarioConfig {
  const thresholds = givenThresholds ?? policy.thresholds;
  const of = (signal: Signal) =>
    thresholds.find((one) => one.signal === signal && one.kind === 'hard')?.value.text;
  // What is copied from the node's threshold follows that one where another takes its place.
  const isCopied =
    of('allocatableMemory.available') !== undefined &&
    of('allocatableMemory.available') === of('memory.available');
  const own = isCopied ? thresholds.filter((one) => !isHardAllocatable(one)) : thresholds;
  const soft = own.filter(({ kind }) => kind === 'soft');
  const { hardEvictionGracePeriodSeconds } = policy;
  const isDefaultGrace = hardEvictionGracePeriodSeconds === HARD_GRACE_SECONDS[compatibility];
  return {
    compatibility,
    memorySource,
    enforceNodeAllocatable: isCopied ? ['pods'] : [],
    evictionHard: mapOf(
      own.filter(({ kind }) => kind === 'hard'),
      ({ value }) => value.text,
    ),
    evictionSoft: mapOf(soft, ({ value }) => value.text),
    evictionSoftGracePeriod: mapOf(soft, ({ gracePeriodMs }) => formatDuration(gracePeriodMs)),
    evictionMinimumReclaim: mapOf(thresholds, ({ minimumReclaim }) => minimumReclaim?.text),
    evictionPressureTransitionPeriod: formatDuration(policy.pressureTransitionPeriodMs),
    evictionMaxPodGracePeriod: policy.maxPodGracePeriodSeconds,
    ...(isDefaultGrace ? {} : { hardEvictionGracePeriodSeconds }),
  };
}

function isHardAllocatable({ signal, kind }: Threshold): boolean {
  return signal === 'allocatableMemory.available' && kind === 'hard';
}

function mapOf(
  thresholds: readonly Threshold[],
  textOf: (threshold: Threshold) => string | undefined,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    thresholds.flatMap((threshold) => {
      const text = textOf(threshold);
      return text === undefined ? [] : [[threshold.signal, text]];
    }),
  );
}

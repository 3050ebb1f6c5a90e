/** Samples in a row, and what was decided on each. */
import type { Decision } from '../../src/core/decision.ts';
import type { Policy } from '../../src/core/policy.ts';
import { INITIAL_STATE, type Sample } from '../../src/core/state.ts';
import { type StepResult, step } from '../../src/core/step.ts';
import { MI, pod, policy, softThreshold, threshold } from '../support/builders.ts';

/** Goes through the samples in order. */
export function story(by: Policy, ...samples: readonly Sample[]): readonly StepResult[] {
  let state = INITIAL_STATE;
  return samples.map((one) => {
    const result = step(by, state, one);
    ({ state } = result);
    return result;
  });
}

/** The result of the last sample. */
export function lastOf(by: Policy, ...samples: readonly Sample[]): StepResult {
  const last = story(by, ...samples).at(-1);
  if (last === undefined) throw new Error('a story has a sample');
  return last;
}

/** A decision in a few words: `evict leak`, `none calm`. */
export function say(decision: Decision): string {
  switch (decision.kind) {
    case 'none':
      return `none ${decision.why}`;
    case 'observePods':
      return 'observePods';
    case 'reclaim':
      return `reclaim ${decision.functions.join(' ')}`;
    case 'evict':
      return `evict ${decision.pod.name}`;
    case 'escalate':
      return `escalate ${decision.podName}`;
  }
}

export const said = (results: readonly StepResult[]) =>
  results.map(({ decision }) => say(decision));

/** `leak` goes first, then `batch`; `web` is the innocent bystander, known to be within its request. */
export const LEAK = pod('leak', { workingSetBytes: 300 * MI });
export const BATCH = pod('batch', { workingSetBytes: 20 * MI });
export const WEB = pod('web', {
  priority: 1000,
  qosClass: 'Guaranteed',
  workingSetBytes: 100 * MI,
  memoryRequestNano: BigInt(128 * MI) * 1_000_000_000n,
});
export const PODS = [WEB, BATCH, LEAK];
export const withPods = { pods: PODS };
export const SOFT = policy({ thresholds: [threshold(), softThreshold()] });

import { describe, expect, it } from 'vitest';
import {
  forgetFailures,
  INITIAL_STATE,
  type Sample,
  underAnotherPolicy,
} from '../../src/core/state.ts';
import { step } from '../../src/core/step.ts';
import {
  MI,
  observation,
  outcome,
  pod,
  policy,
  sample,
  threshold,
  value,
} from '../support/builders.ts';
import { lastOf, say, withPods } from './stories.ts';

describe('forgetFailures', () => {
  it('makes everybody a candidate again', () => {
    const failed = outcome('leak', { kind: 'failed', error: 'EPERM' });
    const { state } = lastOf(
      policy(),
      sample(0, 50 * MI, withPods),
      sample(1, 500 * MI, { outcome: failed }),
    );
    expect(state.passedOver.size).toBe(1);
    const after = forgetFailures(state);
    expect(after).toStrictEqual({ ...state, passedOver: new Map() });
    expect(say(step(policy(), state, sample(2, 50 * MI, withPods)).decision)).toBe('evict batch');
    expect(say(step(policy(), after, sample(2, 50 * MI, withPods)).decision)).toBe('evict leak');
  });

  it('awaits no PIDs', () => {
    const signal = 'pid.available';
    const by = policy({ thresholds: [threshold({ signal, value: value('100') })] });
    const few = (nowMs: number, rest: Partial<Sample> = {}): Sample => ({
      nowMs,
      observations: [observation(0, { signal, capacity: 500, atMs: nowMs })],
      pods: [pod('small', { pids: 11 })],
      ...rest,
    });
    const { state } = lastOf(
      by,
      few(0, { pods: [pod('bomb', { pids: 450 })] }),
      few(1, { outcome: outcome('bomb') }),
    );
    expect(say(step(by, state, few(2)).decision)).toBe('none evicting');
    expect(say(step(by, forgetFailures(state), few(2)).decision)).toBe('evict small');
  });

  it('changes nothing where nobody failed', () => {
    expect(forgetFailures(INITIAL_STATE)).toStrictEqual(INITIAL_STATE);
  });
});

describe('underAnotherPolicy', () => {
  it('finds anew whom nobody may evict, and keeps the rest', () => {
    const { state } = lastOf(policy(), sample(0, 50 * MI, { pods: [] }));
    expect(state.noCandidateAtMs).toBe(0);
    const after = underAnotherPolicy(state);
    expect(after).toStrictEqual({
      ...state,
      said: false,
      noCandidateAtMs: undefined,
      noCandidateCause: undefined,
    });
    expect(say(step(policy(), after, sample(1, 50 * MI)).decision)).toBe('observePods');
    expect(say(step(policy(), state, sample(1, 50 * MI)).decision)).toBe('none noCandidate');
  });
});

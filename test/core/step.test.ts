import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { INITIAL_STATE, type Sample } from '../../src/core/state.ts';
import { step } from '../../src/core/step.ts';
import { thresholdId } from '../../src/core/threshold.ts';
import {
  GI,
  MI,
  outcome,
  pod,
  policy,
  sample,
  softThreshold,
  threshold,
  value,
} from '../support/builders.ts';
import { LEAK, lastOf, PODS, said, say, story, withPods } from './stories.ts';

function endingOf(name: string | undefined, ends: string) {
  if (name === undefined || ends === 'no') return undefined;
  if (ends === 'failed') return outcome(name, { kind: 'failed', error: 'EPERM' });
  if (ends === 'pressureGone') return outcome(name, { kind: 'refused', reason: 'pressureGone' });
  return outcome(name);
}

describe('a hard threshold', () => {
  it.each([
    ['a byte above', 100 * MI + 1, 'none calm'],
    ['equal', 100 * MI, 'none calm'],
    ['a byte below', 100 * MI - 1, 'evict leak'],
    ['nothing left', 0, 'evict leak'],
  ])('available %s', (_, available, expected) => {
    const { decision, state } = lastOf(policy(), sample(0, available, withPods));
    expect(say(decision)).toBe(expected);
    expect(state.met.map(thresholdId)).toStrictEqual(
      expected === 'none calm' ? [] : ['hard:memory.available'],
    );
  });

  it('says everything about the eviction that it decides', () => {
    const { decision, state, conditions, ranked } = lastOf(policy(), sample(7, 50 * MI, withPods));
    const message =
      'The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. ' +
      'The pod was using 300Mi, request is 0.';
    expect(decision).toStrictEqual({
      kind: 'evict',
      pod: LEAK,
      hard: true,
      gracePeriodMs: 0,
      gracePeriodSeconds: 0,
      cause: {
        threshold: threshold(),
        observation: { signal: 'memory.available', capacity: GI, available: 50 * MI, atMs: 7 },
        level: 100 * MI,
        reclaiming: false,
      },
      message,
      annotations: {},
      condition: {
        type: 'DisruptionTarget',
        status: 'True',
        reason: 'TerminationByKubelet',
        message,
      },
    });
    expect(state.inFlight).toStrictEqual({
      podId: LEAK.id,
      podName: 'leak',
      signal: 'memory.available',
      hard: true,
    });
    expect(conditions).toStrictEqual(['MemoryPressure']);
    expect(state.conditions).toStrictEqual(conditions);
    expect(ranked?.map(({ pod: { name } }) => name)).toStrictEqual(['leak', 'batch', 'web']);
  });

  it('asks for pods where the sample has none, and remembers no eviction then', () => {
    const { decision, state } = lastOf(policy(), sample(0, 50 * MI));
    expect(decision).toMatchObject({ kind: 'observePods', cause: { level: 100 * MI } });
    expect(state.inFlight).toBeUndefined();
  });

  it('as a percentage follows the capacity', () => {
    const tenth = policy({ thresholds: [threshold({ value: value('10%') })] });
    const at = (capacity: number): Sample => ({
      ...sample(0, undefined, withPods),
      observations: [{ signal: 'memory.available', capacity, available: 100 * MI, atMs: 0 }],
    });
    expect(said(story(tenth, at(1000 * MI), at(1001 * MI)))).toStrictEqual([
      'none calm',
      'evict leak',
    ]);
  });

  it('gives the policy’s hard grace', () => {
    const patient = policy({ hardEvictionGracePeriodSeconds: 3 });
    const { decision } = lastOf(patient, sample(0, 50 * MI, withPods));
    expect(decision).toMatchObject({ hard: true, gracePeriodMs: 3000, gracePeriodSeconds: 3 });
  });
});

describe('node conditions', () => {
  const by = policy({ pressureTransitionPeriodMs: 60_000 });

  it('hold until the transition period after the last reading that was met', () => {
    const results = story(
      by,
      sample(0, 200 * MI, withPods),
      sample(1000, 50 * MI, withPods),
      sample(2000, 50 * MI, withPods),
      sample(3000, 200 * MI, { outcome: outcome('leak') }),
      sample(61_999, 200 * MI),
      sample(62_000, 200 * MI),
    );
    expect(results.map(({ conditions }) => conditions.join())).toStrictEqual([
      '',
      'MemoryPressure',
      'MemoryPressure',
      'MemoryPressure',
      'MemoryPressure',
      '',
    ]);
    expect(results.map(({ wakeAtMs }) => wakeAtMs)).toStrictEqual([
      undefined,
      61_000,
      62_000,
      62_000,
      62_000,
      undefined,
    ]);
  });

  it('end with the pressure where there is no transition period', () => {
    const results = story(
      policy({ pressureTransitionPeriodMs: 0 }),
      sample(0, 50 * MI, withPods),
      sample(1, 200 * MI, { outcome: outcome('leak') }),
    );
    expect(results.map(({ conditions }) => conditions)).toStrictEqual([['MemoryPressure'], []]);
    expect(results.map(({ wakeAtMs }) => wakeAtMs)).toStrictEqual([undefined, undefined]);
  });
});

describe('any run of samples', () => {
  const steps = fc.array(
    fc.record({
      afterMs: fc.integer({ min: 0, max: 40_000 }),
      available: fc.constantFrom(undefined, 0, 99 * MI, 100 * MI, 199 * MI, 200 * MI, 300 * MI),
      ends: fc.constantFrom('no', 'evicted', 'failed', 'pressureGone'),
      hasPods: fc.boolean(),
    }),
    { maxLength: 60 },
  );

  it('has at most one eviction in flight, spares the protected, waits for soft graces', () => {
    const by = policy({
      thresholds: [threshold({ minimumReclaim: value('50Mi') }), softThreshold()],
      maxPodGracePeriodSeconds: 10,
    });
    const guarded = pod('guarded', { priority: -1, protectedBecause: 'reason' });
    fc.assert(
      fc.property(steps, (moves) => {
        let state = INITIAL_STATE;
        let nowMs = 0;
        let inFlight: string | undefined;
        let softSinceMs: number | undefined;
        for (const { afterMs, available, ends, hasPods } of moves) {
          nowMs += afterMs;
          const ended = endingOf(inFlight, ends);
          if (ended !== undefined) inFlight = undefined;
          const {
            decision,
            wakeAtMs,
            state: next,
          } = step(by, state, {
            ...sample(nowMs, available),
            ...(hasPods ? { pods: [...PODS, guarded] } : {}),
            ...(ended === undefined ? {} : { outcome: ended }),
          });
          state = next;
          if (available !== undefined && available >= 200 * MI) softSinceMs = undefined;
          else if (available !== undefined) softSinceMs ??= nowMs;
          if (wakeAtMs !== undefined) expect(wakeAtMs).toBeGreaterThan(nowMs);
          if (decision.kind === 'evict') {
            expect(inFlight).toBeUndefined();
            expect(available).toBeDefined();
            expect(decision.pod.name).not.toBe('guarded');
            if (!decision.hard)
              expect(nowMs - (softSinceMs ?? nowMs)).toBeGreaterThanOrEqual(30_000);
            inFlight = decision.pod.name;
          }
          if (decision.kind === 'escalate') expect(decision.podName).toBe(inFlight);
        }
      }),
      { numRuns: 300 },
    );
  });
});

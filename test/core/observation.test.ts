import { describe, expect, it } from 'vitest';
import { observationOf } from '../../src/core/observation.ts';
import { MI, observation } from '../support/builders.ts';

describe('observationOf', () => {
  const memory = observation(5 * MI);
  const pids = observation(7, { signal: 'pid.available' });

  it('is the reading of the signal, if there is one', () => {
    expect(observationOf([memory, pids], 'pid.available')).toBe(pids);
    expect(observationOf([memory, pids], 'nodefs.available')).toBeUndefined();
    expect(observationOf([], 'memory.available')).toBeUndefined();
  });
});

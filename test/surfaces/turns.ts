import type { Turn } from '../../src/core/pipeline.ts';
import { INITIAL_STATE } from '../../src/core/state.ts';
import {
  escalateDecision,
  evictDecision,
  MI,
  observation,
  policy,
  sample,
  threshold,
} from '../support/builders.ts';

const DECISIONS = {
  evict: evictDecision(),
  escalate: escalateDecision(),
  calm: { kind: 'none', why: 'calm' },
} as const;

/** A turn with that decision; the hard threshold of 100Mi is met unless it is calm. */
export function decisionTurn(kind: keyof typeof DECISIONS): Turn {
  const met = kind === 'calm' ? [] : [threshold()];
  const available = kind === 'calm' ? 500 * MI : 50 * MI;
  return {
    policy: policy(),
    reason: 'wakeup',
    sample: sample(0, available, { pods: [] }),
    state: { ...INITIAL_STATE, observations: [observation(available)], met, due: met },
    conditions: kind === 'calm' ? [] : ['MemoryPressure'],
    decision: DECISIONS[kind],
    ranked: undefined,
    events: [],
    wakeAtMs: undefined,
    podsDueAtMs: 0,
    podsRead: { atMs: 0, tookMs: 0 },
    lookAgainAtMs: 0,
  };
}

/** The last line with this message. */
export function lastLine(lines: readonly string[], msg: string): Record<string, unknown> {
  const parsed = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  return parsed.findLast((line) => line['msg'] === msg) ?? {};
}

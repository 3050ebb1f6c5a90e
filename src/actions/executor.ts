import { connect, filter, map, mergeMap, type Observable } from 'rxjs';
import type { Decision, EvictionOutcome } from '../core/decision.ts';
import { type EvictDependencies, evict } from './evict.ts';

/**
 * Carries out decisions, one eviction at a time; `escalate` reaches the one that runs.
 *
 * `step` decides no second eviction before it has seen the first one's outcome. Emits the outcome
 * of each. Completes when the decisions have and the last eviction has ended. Subscribing
 * subscribes the decisions once.
 */
export function execute(
  decisions$: Observable<Exclude<Decision, { kind: 'none' }>>,
  dependencies: Omit<EvictDependencies, 'escalations$'>,
): Observable<EvictionOutcome> {
  return decisions$.pipe(
    connect((shared$) => {
      const escalations$ = shared$.pipe(
        filter((decision) => decision.kind === 'escalate'),
        map((decision) => decision.gracePeriodMs),
      );
      return shared$.pipe(
        filter((decision) => decision.kind === 'evict'),
        mergeMap((decision) => evict(decision, { ...dependencies, escalations$ }), 1),
      );
    }),
  );
}

/** One generated node in both rule sets, against every invariant. */
import type { Compatibility } from '../../src/core/policy.ts';
import { simulate } from '../../src/simulation/engine.ts';
import type { Scenario, SimulationResult } from '../../src/simulation/scenario.ts';
import { Account, type Counts } from './account.ts';
import { demand } from './invariants.ts';
import { permuted } from './nodes.ts';

export const RULE_SET_NAMES: readonly Compatibility[] = ['kubelet', 'evictd'];

/**
 * Runs a scenario by both rule sets, adds to the counts, and returns the results.
 *
 * @throws Breach for the first invariant that does not hold
 */
export function checkNode(scenario: Scenario, counts: Counts): readonly SimulationResult[] {
  return RULE_SET_NAMES.map((compatibility) =>
    checkBy({ ...scenario, config: { ...scenario.config, compatibility } }, compatibility, counts),
  );
}

function checkBy(scenario: Scenario, rules: Compatibility, counts: Counts): SimulationResult {
  const account = new Account(scenario, rules, counts);
  const result = simulate(scenario, { onStep: (observed) => account.take(observed) });
  demand('allRead', result.error === undefined, () => `it is refused: ${result.error}`);
  account.finish(result);
  const text = comparable(result);
  const again = comparable(simulate(scenario));
  demand('sameAgain', again === text, () => difference(text, again));
  // Which pod above its own limit goes first is said by the order of the active pods, and by nothing else.
  const movesPods = !result.ticks.some(({ evicted }) =>
    evicted.some(({ message }) => !message.startsWith('The node was low')),
  );
  const other = comparable(simulate(permuted(scenario, scenario.pods.length, movesPods)));
  demand('sameInAnyOrder', other === text, () => difference(text, other));
  return result;
}

/** A result as text. What configuration is warned of, comes in the configuration's order. */
function comparable({ evictd, ...result }: SimulationResult): string {
  return JSON.stringify({ ...result, warnings: [...(evictd?.warnings ?? [])].sort() });
}

/** Where two texts part. */
function difference(left: string, right: string): string {
  let at = 0;
  while (at < left.length && left[at] === right[at]) at += 1;
  const around = (text: string): string => text.slice(Math.max(0, at - 120), at + 200);
  return `${around(left)}\n  and then\n${around(right)}`;
}

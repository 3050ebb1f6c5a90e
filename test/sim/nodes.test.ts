import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { count, report } from '../support/counts.ts';
import { COUNTED, type Counted, noCounts } from './account.ts';
import { checkNode } from './check.ts';
import { Breach } from './invariants.ts';
import { NODES, scenarioOf } from './nodes.ts';

/** How many nodes; what plants faults needs none after the first that fails. */
const NODE_COUNT = Number(process.env['EVICTD_SIM_NODES'] ?? count(1000, 10_000));
const SEED = process.env['EVICTD_SIM_SEED'];
const PATH = process.env['EVICTD_SIM_PATH'];
const SHRINKS = process.env['EVICTD_SIM_SHRINK'] !== 'no';

/** The command that runs this file. */
const RUN = 'npx vitest run test/sim/nodes.test.ts';

/** What must come up in 1,000 nodes at least, in both rule sets together: about a third of the usual. */
const AT_LEAST: Readonly<Record<Exclude<Counted, 'steps'>, number>> = {
  evictions: 3000,
  'for memory': 1000,
  'for a disk': 400,
  'for inodes': 200,
  'for PIDs': 400,
  'for images': 15,
  'soft evictions': 500,
  'for minimum reclaim': 300,
  'for storage limits': 700,
  'nothing on the disk': 10,
  'kills that failed': 300,
  'kills that took time': 200,
  'next candidate after a failure': 200,
  'graces cut short': 2,
  collections: 1000,
  'collections that were enough': 300,
  'short after a collection for a disk': 25,
  'nobody may go': 1000,
  'graces that were broken off': 900,
  'old figures': 200,
  'figures refused': 100,
  'signals missing': 1000,
  'conditions raised': 1000,
  'conditions ended': 1000,
  'refused pods': 600,
  'admitted under pressure': 300,
};

describe('generated nodes', () => {
  it(
    `keep every invariant, in both rule sets: ${NODE_COUNT} nodes`,
    () => {
      const counts = noCounts();
      const details = fc.check(
        fc.property(NODES, (seeds) => {
          checkNode(scenarioOf(seeds), counts);
        }),
        {
          numRuns: NODE_COUNT,
          endOnFailure: !SHRINKS,
          ...(SEED === undefined ? {} : { seed: Number(SEED) }),
          ...(PATH === undefined ? {} : { path: PATH }),
        },
      );
      if (details.failed) throw new Error(explain(details));
      const counted = COUNTED.map((name) => `${counts[name]} ${name}`).join(', ');
      report(`${details.numRuns} nodes of seed ${details.seed}: ${counted}`);
      if (PATH !== undefined) return;
      for (const [name, least] of Object.entries(AT_LEAST)) {
        const share = Math.floor((least * NODE_COUNT) / 1000);
        expect(counts[name as Counted], name).toBeGreaterThanOrEqual(share);
      }
    },
    60 * 60_000,
  );
});

/** All that is needed to see it again. */
function explain({
  seed,
  counterexamplePath,
  counterexample,
  errorInstance,
  numRuns,
}: fc.RunDetails<[Parameters<typeof scenarioOf>[0]]>): string {
  const scenario = counterexample && scenarioOf(counterexample[0]);
  const what = errorInstance instanceof Breach ? errorInstance.message : String(errorInstance);
  const stack = errorInstance instanceof Breach ? '' : `\n${(errorInstance as Error)?.stack}`;
  return [
    `scenario ${scenario?.name}, node ${numRuns} of seed ${seed}: ${what}${stack}`,
    'Again, with nothing else:',
    `  EVICTD_SIM_SEED=${seed} EVICTD_SIM_PATH=${counterexamplePath} ${RUN}`,
    'The scenario:',
    JSON.stringify(scenario),
  ].join('\n');
}

import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { simulate } from '../../src/simulation/engine.ts';
import {
  kubeletScenario,
  type Omissions,
  trimmedSample,
} from '../../src/simulation/kubelet-recording.ts';
import { checkScenario } from '../../src/simulation/read.ts';
import type { Scenario } from '../../src/simulation/scenario.ts';

const SAMPLES = new URL('../fixtures/samples/', import.meta.url);
const read = (file: string): unknown => JSON.parse(readFileSync(new URL(file, SAMPLES), 'utf8'));

const SUMMARY = read('kubelet-v1.32.13-stats-summary.json');
const PODS = read('kubelet-v1.32.13-pods.json');

type Path = readonly string[];

/** The paths to all that is in a value of JSON. */
function pathsIn(value: unknown, path: Path = []): readonly Path[] {
  if (typeof value !== 'object' || value === null) return [path];
  const inner = Object.entries(value).flatMap(([key, item]) => pathsIn(item, [...path, key]));
  return path.length === 0 ? inner : [path, ...inner];
}

function replaced(value: unknown, [key, ...rest]: Path, by: unknown): unknown {
  if (key === undefined) return by;
  const copy = structuredClone(value) as Record<string, unknown>;
  copy[key] = replaced(copy[key], rest, by);
  return copy;
}

/** The scenario of one answer, and what was said to be left out of it, in that order. */
function recorded(summary: unknown, list: unknown) {
  const said: string[] = [];
  const omissions: Omissions = {
    figure: (kind) => said.push(kind),
    pod: (name) => said.push(`pod ${name}`),
  };
  const { node, pods } = summary as { readonly node: object; readonly pods: unknown };
  const { items } = list as { readonly items: readonly unknown[] };
  const sample = trimmedSample({ atMs: 0, summary: { node, pods }, pods: items }, omissions);
  const scenario: Scenario = kubeletScenario({
    name: 'x',
    description: '',
    config: { compatibility: 'kubelet', evictionHard: { 'memory.available': '1Ti' } },
    samples: [sample],
  });
  return { scenario, said };
}

const junk = fc.constantFrom<readonly unknown[]>(
  ...[
    null,
    true,
    'x',
    '',
    -1,
    1.5,
    2 ** 64,
    Number.POSITIVE_INFINITY,
    [],
    [null],
    {},
    { x: 1 },
  ].map((one) => [one]),
);

describe('a recording of a kubelet', () => {
  it('is of all that a kubelet says, as a rule', () => {
    const { scenario, said } = recorded(SUMMARY, PODS);
    expect(said).toEqual([]);
    expect(scenario.pods).toHaveLength(4);
    expect(scenario.ticks[0]?.summary?.pods).toHaveLength(4);
  });

  it('is a scenario that can be run, whatever stands in one place of what the kubelet says', () => {
    const inSummary = pathsIn(SUMMARY).filter((path) => path.length > 1 || path[0] === 'pods');
    const inPods = pathsIn(PODS).filter((path) => path.length > 1 && path[0] === 'items');
    const place = fc.oneof(
      fc.constantFrom(...inSummary).map((path) => ({ path, isPod: false })),
      fc.constantFrom(...inPods).map((path) => ({ path, isPod: true })),
    );
    fc.assert(
      fc.property(place, junk, ({ path, isPod }, [by]) => {
        const { scenario, said } = recorded(
          isPod ? SUMMARY : replaced(SUMMARY, path, by),
          isPod ? replaced(PODS, path, by) : PODS,
        );
        const text = JSON.stringify(scenario);
        expect(simulate(checkScenario(JSON.parse(text))).error).toBeUndefined();
        // One that is left out is said, or has come to its end.
        const isGone = scenario.pods.length < 4 && !path.includes('phase');
        expect(!isGone || said.length > 0).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  it('leaves out a part that has nothing else but faults', () => {
    const node = { systemContainers: Array.from({ length: 2000 }, () => null) };
    const { scenario, said } = recorded({ node, pods: [] }, { items: [] });
    expect(scenario.ticks[0]?.summary?.node).toEqual({ systemContainers: [] });
    expect(said).toHaveLength(1001);
    expect(said.at(-1)).toBe('node');
  });
});

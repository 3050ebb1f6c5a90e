import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PodObservation } from '../../src/core/pod.ts';
import type { Compatibility } from '../../src/core/policy.ts';
import { podComparator, rankWithReasons } from '../../src/core/rank.ts';
import { RULE_SETS } from '../../src/core/rules.ts';
import { SIGNAL_NAMES, SIGNALS, type Signal } from '../../src/core/signal.ts';
import { pod } from '../support/builders.ts';

const NANO = 1_000_000_000n;

interface Facts {
  readonly name: string;
  readonly priority: number;
  readonly used: number | undefined;
  readonly requestNano: bigint;
}

/** Uses and requests next to one another: small, large, and where numbers are no longer exact. */
const pods: fc.Arbitrary<readonly Facts[]> = fc
  .tuple(
    fc.constantFrom(0, 2 ** 40, 2 ** 53 - 100, 2 ** 53 - 4, 2 ** 54),
    fc.constantFrom(1, 1, 20, 4000),
  )
  .chain(([base, step]) =>
    fc.uniqueArray(
      fc.record({
        name: fc.stringMatching(/^[a-z]{1,3}$/),
        priority: fc.constantFrom(0, 0, 0, 7),
        used: fc.oneof(
          { weight: 1, arbitrary: fc.constant(undefined) },
          { weight: 9, arbitrary: fc.nat(6).map((count) => base + count * step) },
        ),
        requestNano: fc.oneof(
          { weight: 1, arbitrary: fc.constant(0n) },
          { weight: 1, arbitrary: fc.nat(6).map((count) => -(2n ** 62n + BigInt(count)) * NANO) },
          {
            weight: 8,
            arbitrary: fc
              .tuple(fc.nat(6), fc.integer({ min: -1, max: 1 }))
              .map(([count, nano]) => BigInt(base + count * step) * NANO + BigInt(nano)),
          },
        ),
      }),
      { selector: ({ name }) => name, maxLength: 12 },
    ),
  );

function observed(signal: Signal, used: number | undefined): Partial<PodObservation> {
  if (signal === 'pid.available') return { pids: used };
  const { filesystem, unit } = SIGNALS[signal];
  if (filesystem === undefined) return { workingSetBytes: used };
  if (used === undefined) return {};
  const none = { bytes: 0, inodes: 0 };
  const root = unit === 'bytes' ? { bytes: used, inodes: 1 } : { bytes: 1, inodes: used };
  return { disk: { root, logs: none, localVolumes: none } };
}

/** The order as it is documented, in exact figures: smaller goes first, piece by piece. */
function keys(
  signal: Signal,
  rules: Compatibility,
  { name, priority, used, requestNano: request }: Facts,
): readonly (number | bigint | string)[] {
  const isKubelet = rules === 'kubelet';
  const inodes = SIGNALS[signal].unit === 'inodes';
  const isPid = signal === 'pid.available';
  const usedNano = used === undefined ? undefined : BigInt(used) * NANO;
  const compared = isPid || inodes ? 0n : request;
  const subtracted = isPid || (inodes && !isKubelet) ? 0n : request;
  const exceeds = usedNano !== undefined && usedNano > compared;
  const unknown = isKubelet ? 0 : 2;
  const standing = usedNano === undefined ? unknown : exceeds ? 1 : 3;
  return [
    isPid ? 0 : standing,
    priority,
    usedNano === undefined ? unknown : 1,
    usedNano === undefined ? 0n : subtracted - usedNano,
    name,
  ];
}

function inOrder(left: ReturnType<typeof keys>, right: ReturnType<typeof keys>): number {
  const at = left.findIndex((key, index) => key !== right[index]);
  if (at === -1) return 0;
  return (left[at] as number) < (right[at] as number) ? -1 : 1;
}

describe.each(['kubelet', 'evictd'] as const)('ranking by numbers, rules of %s', (rules) => {
  const ranking = { layout: 'single', rules: RULE_SETS[rules] } as const;

  it.each(SIGNAL_NAMES)('is that by exact figures, for %s', (signal) => {
    fc.assert(
      fc.property(pods, (facts) => {
        const seen = facts.map((one) =>
          pod(one.name, {
            priority: one.priority,
            memoryRequestNano: one.requestNano,
            ephemeralStorageRequestNano: one.requestNano,
            workingSetBytes: undefined,
            ...observed(signal, one.used),
          }),
        );
        const expected = [...facts]
          .sort((left, right) => inOrder(keys(signal, rules, left), keys(signal, rules, right)))
          .map(({ name }) => name);
        expect(rankWithReasons(signal, seen, ranking).map((each) => each.pod.name)).toStrictEqual(
          expected,
        );
        expect(
          [...seen].sort(podComparator(signal, ranking)).map(({ name }) => name),
        ).toStrictEqual(expected);
      }),
      { numRuns: 100 },
    );
  });

  it('tells what counts of the use exactly', () => {
    const one = pod('a', { workingSetBytes: 100, memoryRequestNano: 30n * NANO + 1n });
    const [ranked] = rankWithReasons('memory.available', [one], ranking);
    expect(ranked?.usageNano).toBe(70n * NANO - 1n);
    expect(ranked?.standing).toBe('exceeds');
  });

  it('tells none where the use is unknown', () => {
    const one = pod('a', { workingSetBytes: undefined });
    const [ranked] = rankWithReasons('memory.available', [one], ranking);
    expect(ranked?.usageNano).toBeUndefined();
    expect(ranked?.standing).toBe('unknown');
  });
});

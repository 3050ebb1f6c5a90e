import { approximateCount } from '../core/quantity.ts';
import type { Ranked } from '../core/rank.ts';
import { SIGNALS, type Signal } from '../core/signal.ts';
import type { ObservedStep } from './engine.ts';
import { table } from './layout.ts';

const NANO = 1_000_000_000n;

/**
 * The ranking of a step as a table, each pod with what its place depends on and why it comes after the
 * one above it; no lines where nothing was ranked.
 */
export function rankingTable({ result }: ObservedStep): readonly string[] {
  const { ranked, decision, state } = result;
  const cause = 'cause' in decision ? decision.cause : undefined;
  if (ranked === undefined || ranked.length === 0 || cause === undefined) return [];
  const { signal } = cause.threshold;
  const victim = decision.kind === 'evict' ? decision.pod.id : undefined;
  const rows = ranked.map((one, index) => {
    const { pod, standing } = one;
    return [
      String(index + 1),
      pod.name,
      signal === 'pid.available' ? '-' : standing,
      String(pod.priority),
      usageText(one, signal),
      remarkOf(one, victim, state.passedOver.has(pod.id)),
      reasonOf(ranked[index - 1], one, signal),
    ];
  });
  return table(['rank', 'pod', 'standing', 'priority', usageHead(signal), '', 'why here'], rows);
}

function usageHead(signal: Signal): string {
  switch (SIGNALS[signal].resource) {
    case 'memory':
    case 'ephemeral-storage':
      return 'above request';
    case 'inodes':
      return 'inodes';
    case 'pids':
      return 'PIDs';
  }
}

function usageText({ usageNano }: Ranked, signal: Signal): string {
  if (usageNano === undefined) return 'unknown';
  return approximateCount(Number(usageNano / NANO), SIGNALS[signal].unit);
}

function remarkOf({ pod }: Ranked, victim: string | undefined, isPassedOver: boolean): string {
  if (pod.id === victim) return 'evicted';
  if (pod.protectedBecause !== undefined) return `protected: ${pod.protectedBecause}`;
  return isPassedOver ? 'passed over' : '';
}

/** The first of the comparisons that tells a pod from the one above it, in the order of `rank.ts`. */
function reasonOf(above: Ranked | undefined, one: Ranked, signal: Signal): string {
  if (above === undefined) return 'comes first';
  if (above.standing !== one.standing) return STANDING_REASONS[above.standing][one.standing];
  if (above.pod.priority !== one.pod.priority) {
    return `priority ${one.pod.priority} is above ${above.pod.priority}`;
  }
  if (above.usageNano === one.usageNano) return 'equal, so by name';
  if (one.usageNano === undefined) return 'its use is unknown';
  if (above.usageNano === undefined) return 'its use is known';
  const [less, more] = [usageText(one, signal), usageText(above, signal)];
  return less === more ? 'uses less' : `uses less: ${less} to ${more}`;
}

const STANDING_REASONS: Readonly<
  Record<Ranked['standing'], Readonly<Record<Ranked['standing'], string>>>
> = {
  exceeds: {
    exceeds: '',
    unknown: 'not known to exceed its request',
    within: 'within its request',
  },
  unknown: {
    exceeds: 'exceeds its request, but has stats',
    unknown: '',
    within: 'known to be within its request',
  },
  within: { exceeds: '', unknown: '', within: '' },
};

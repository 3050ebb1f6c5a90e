import { approximateCount } from '../core/quantity.ts';
import { countsImages, freesSomething, type Ranked } from '../core/rank.ts';
import { SIGNALS, type Signal } from '../core/signal.ts';
import type { ObservedStep } from './engine.ts';
import { table } from './layout.ts';

const NANO = 1_000_000_000n;

type Unit = (typeof SIGNALS)[Signal]['unit'];

/**
 * The ranking of a step as a table, each pod with what its place depends on and why it comes after the
 * one above it; no lines where nothing was ranked.
 */
export function rankingTable({ result, policy }: ObservedStep): readonly string[] {
  const { ranked, decision, state } = result;
  const cause = 'cause' in decision ? decision.cause : undefined;
  if (ranked === undefined || ranked.length === 0 || cause === undefined) return [];
  const { signal } = cause.threshold;
  const isOfImages = countsImages(signal, policy);
  // What counts of images is their size, whatever of the filesystem is short.
  const unit = isOfImages ? 'bytes' : SIGNALS[signal].unit;
  const victim = decision.kind === 'evict' ? decision.pod.id : undefined;
  const rows = ranked.map((one, index) => {
    const { pod, standing } = one;
    return [
      String(index + 1),
      pod.name,
      signal === 'pid.available' ? '-' : standing,
      String(pod.priority),
      usageText(one, unit),
      remarkOf(one, {
        isVictim: pod.id === victim,
        isPassedOver: state.passedOver.has(pod.id),
        isHelpless: !freesSomething(pod, signal, policy),
      }),
      reasonOf(ranked[index - 1], one, unit),
    ];
  });
  return table(
    [
      'rank',
      'pod',
      'standing',
      'priority',
      isOfImages ? 'own images' : usageHead(signal),
      '',
      'why here',
    ],
    rows,
  );
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

function usageText({ usageNano }: Ranked, unit: Unit): string {
  if (usageNano === undefined) return 'unknown';
  return approximateCount(Number(usageNano / NANO), unit);
}

interface Remarks {
  readonly isVictim: boolean;
  readonly isPassedOver: boolean;
  readonly isHelpless: boolean;
}

function remarkOf({ pod }: Ranked, { isVictim, isPassedOver, isHelpless }: Remarks): string {
  if (isVictim) return 'evicted';
  if (pod.protectedBecause !== undefined) return `protected: ${pod.protectedBecause}`;
  if (isPassedOver) return 'passed over';
  return isHelpless ? 'its end frees nothing' : '';
}

/** The first of the comparisons that tells a pod from the one above it, in the order of `rank.ts`. */
function reasonOf(above: Ranked | undefined, one: Ranked, unit: Unit): string {
  if (above === undefined) return 'comes first';
  if (above.standing !== one.standing) return STANDING_REASONS[above.standing][one.standing];
  if (above.pod.priority !== one.pod.priority) {
    return `priority ${one.pod.priority} is above ${above.pod.priority}`;
  }
  if (above.usageNano === one.usageNano) return 'equal, so by name';
  if (one.usageNano === undefined) return 'its use is unknown';
  if (above.usageNano === undefined) return 'its use is known';
  const [less, more] = [usageText(one, unit), usageText(above, unit)];
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

/** What holds on every node, whatever happens on it; each by its name. */
export const INVARIANTS = {
  oneAtATime: 'there are never two evictions in flight; by the kubelet’s rules local storage aside',
  neverProtected: 'a critical, static or mirror pod is never evicted',
  notBeforeItsGrace:
    'no soft threshold acts before it was met for its grace period without a break',
  onlyUnderPressure:
    'no pod goes for the node’s sake unless a threshold is met, or its minimum reclaim is missing after it acted',
  newFigures: 'figures of a time that has been acted on decide nothing',
  firstThreshold: 'memory acts first, then hard before soft, then the most starved, then by name',
  rightVictim: 'the pod that goes is the one that the documentation names',
  pressureActs: 'somebody goes where a threshold is due and somebody may go',
  graceOfVictim: 'a victim is given the grace that the configuration and the pod say',
  collectedFirst: 'before a pod goes for a disk, what the layout says is collected',
  collectedEnough:
    'nobody goes where the collection regained the threshold and its minimum reclaim',
  ownLimits: 'pods above a limit of their own storage go first, and only they',
  cutShort: 'a hard threshold cuts the grace of a soft victim, and nothing else does',
  conditionsHeld: 'a condition holds while it is seen and for the transition period after, no less',
  conditionsEnd: 'and no longer',
  wakesInTime: 'the next look is no later than the end of a grace or of a transition period',
  admission: 'a pod is admitted as the conditions say',
  allRead: 'each summary is looked at once, and each outcome is taken in when it comes',
  toldAsDone: 'the result tells what was decided, in its order',
  saidOnce: 'an event is recorded for what is done, by evictd’s rules once in a burst',
  sameAgain: 'the same scenario has the same result',
  sameInAnyOrder: 'the order of pods, statistics and keys makes no difference',
} as const;

export type Invariant = keyof typeof INVARIANTS;

/** An invariant that does not hold. */
export class Breach extends Error {
  readonly invariant: Invariant;

  constructor(invariant: Invariant, what: string) {
    super(`${invariant} (${INVARIANTS[invariant]}): ${what}`);
    this.invariant = invariant;
  }
}

/** @throws Breach where `holds` is false */
export function demand(invariant: Invariant, holds: boolean, what: () => string): asserts holds {
  if (!holds) throw new Breach(invariant, what());
}

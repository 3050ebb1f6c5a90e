/** What people are told of a step. */
import type { Decision } from './decision.ts';
import type { Policy } from './policy.ts';
import { SIGNALS, type Signal } from './signal.ts';
import type { Impossibility, Sample, State } from './state.ts';

/** Something that people are told; the first reason is the kubelet's. */
export interface PolicyEvent {
  readonly type: 'Warning';
  readonly reason: 'EvictionThresholdMet' | 'EvictionImpossible' | 'ClockSetBack';
  readonly message: string;
}

/** A decision that ends a step; after `observePods` the same figures are stepped through again. */
export type Concluded = Exclude<Decision, { kind: 'observePods' }>;

/** What people are told of a step. */
export function eventsOf(
  policy: Policy,
  state: State,
  after: State,
  decision: Concluded,
  sample: Sample,
): readonly PolicyEvent[] {
  const resource = announcedBy(state, decision);
  const isRepeated = resource !== undefined && state.announced.has(resource);
  const isSaid =
    resource !== undefined && (!isRepeated || policy.rules.repeatedEvent === 'kubelet');
  const isOwn = policy.rules.repeatedEvent === 'evictd';
  const { impossible } = after;
  return [
    ...(policy.rules.statsTime === 'evictd' && isSetBack(state, sample) ? [CLOCK_SET_BACK] : []),
    ...(isSaid ? [warning('EvictionThresholdMet', `Attempting to reclaim ${resource}`)] : []),
    ...(isOwn && impossible !== undefined && impossible !== state.impossible
      ? [warning('EvictionImpossible', impossibleText(impossible))]
      : []),
  ];
}

function warning(reason: PolicyEvent['reason'], message: string): PolicyEvent {
  return { type: 'Warning', reason, message };
}

const CLOCK_SET_BACK = warning(
  'ClockSetBack',
  'Figures are older than the ones before: the clock of their source was set back',
);

/** Whether any figure is older than the one before it. */
function isSetBack({ statsTimesNs }: State, { observations = [] }: Sample): boolean {
  if (statsTimesNs.size === 0) return false;
  return observations.some(({ signal, statsTimeNs }) => {
    const before = statsTimesNs.get(signal);
    return before !== undefined && statsTimeNs !== undefined && statsTimeNs < before;
  });
}

function impossibleText({
  cause,
  pods,
  protectedPods,
  passedOverPods,
  helplessPods,
}: Impossibility): string {
  const { resource } = SIGNALS[cause.threshold.signal];
  const helpless = helplessPods === 0 ? '' : `, ${helplessPods} whose end would free nothing`;
  return (
    `The node was low on resource: ${resource}, and no pod may be evicted: ` +
    `${pods} pods, ${protectedPods} protected, ${passedOverPods} passed over${helpless}`
  );
}

/** The resource that something is done about; undefined for what goes on from a collection. */
export function announcedBy({ reclaiming }: State, decision: Concluded): string | undefined {
  const signal = signalActedOn(decision);
  if (signal === undefined || signal === reclaiming?.threshold.signal) return undefined;
  return SIGNALS[signal].resource;
}

function signalActedOn(decision: Concluded): Signal | undefined {
  switch (decision.kind) {
    case 'reclaim':
      return decision.cause.threshold.signal;
    case 'evict':
      return decision.cause?.threshold.signal;
    case 'none':
      return 'cause' in decision ? decision.cause.threshold.signal : undefined;
    case 'escalate':
      return undefined;
  }
}

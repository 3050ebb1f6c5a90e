import type { EvictionAnnotations } from '../core/decision.ts';
import { EVICTED } from '../core/message.ts';
import type { Turn } from '../core/pipeline.ts';

/** What Kubernetes would record as an event. */
export interface NodeEvent {
  readonly type: 'Warning' | 'Normal';
  readonly reason: string;
  /** The pod that it is about; undefined for the node. */
  readonly pod: string | undefined;
  readonly message: string;
  readonly annotations: EvictionAnnotations;
}

const NO_ANNOTATIONS: EvictionAnnotations = {};
const NO_EVENTS: readonly NodeEvent[] = [];

/**
 * What a turn lets people know: what the policy has to say of the node, then who is evicted. A dry run
 * evicts nobody.
 */
export function eventsOf({ events, decision }: Turn, dryRun: boolean): readonly NodeEvent[] {
  const isEvicting = decision.kind === 'evict' && !dryRun;
  // Most turns have none: nothing is made for them.
  if (events.length === 0 && !isEvicting) return NO_EVENTS;
  const ofNode = events.map((event): NodeEvent => {
    return { ...event, pod: undefined, annotations: NO_ANNOTATIONS };
  });
  if (!isEvicting) return ofNode;
  const { pod, message, annotations } = decision;
  return [...ofNode, { type: 'Warning', reason: EVICTED, pod: pod.name, message, annotations }];
}

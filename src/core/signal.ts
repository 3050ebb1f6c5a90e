/**
 * The eviction signals: what is measured, in which unit, and the node condition that a met
 * threshold raises. Source: kubelet `pkg/kubelet/eviction/api/types.go` and `helpers.go`.
 */

/** A node condition, named as the kubelet names it. */
export type NodeCondition = 'MemoryPressure';

interface SignalRow {
  /** What a reading of the signal counts. */
  readonly unit: 'bytes';
  /** The resource's name in eviction messages. */
  readonly resource: 'memory';
  readonly condition: NodeCondition;
  /** Which signal is acted on first when several thresholds are due: the lowest. */
  readonly order: number;
  readonly description: string;
}

/** One row for each signal; the union {@link Signal} is made of its keys. */
export const SIGNALS = {
  'memory.available': {
    unit: 'bytes',
    resource: 'memory',
    condition: 'MemoryPressure',
    order: 0,
    description: 'capacity less the working set (usage less inactive file) of the node',
  },
  'allocatableMemory.available': {
    unit: 'bytes',
    resource: 'memory',
    condition: 'MemoryPressure',
    order: 1,
    description:
      'the same of the cgroup that holds all pods; each hard threshold of memory.available is one of it too',
  },
} as const satisfies Record<string, SignalRow>;

export type Signal = keyof typeof SIGNALS;

/** All signals, in the table's order. */
export const SIGNAL_NAMES = Object.keys(SIGNALS) as readonly Signal[];

/** Whether `text` names a signal. */
export function isSignal(text: string): text is Signal {
  return Object.hasOwn(SIGNALS, text);
}

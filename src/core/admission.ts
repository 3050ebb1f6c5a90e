import type { KubernetesPod, Toleration } from './kubernetes.ts';
import { criticalBecause } from './pod-spec.ts';
import { qosClassOf } from './qos.ts';
import type { NodeCondition } from './signal.ts';

/** Whether a pod may start on the node as it is. `reason` and `message` are empty where it may. */
export interface Admission {
  readonly admit: boolean;
  readonly reason: '' | 'Evicted';
  readonly message: string;
}

const ADMITTED: Admission = { admit: true, reason: '', message: '' };

/** What Kubernetes taints a node with that is short of memory. */
const MEMORY_PRESSURE_TAINT = { key: 'node.kubernetes.io/memory-pressure', effect: 'NoSchedule' };

/**
 * Whether a pod is admitted under the node's conditions: a critical pod always is; memory pressure alone
 * keeps out BestEffort pods that do not tolerate it; any other condition keeps out all.
 *
 * @param held the conditions that hold, in any order
 * @throws EvictdError EVICTD_QUANTITY for a request of the pod that cannot be read
 * @see kubelet `eviction_manager.go`, `Admit`
 */
export function admitPod(pod: KubernetesPod, held: readonly NodeCondition[]): Admission {
  if (held.length === 0 || criticalBecause(pod) !== undefined) return ADMITTED;
  const conditions = [...new Set(held)].sort();
  const isMemoryAlone = conditions.length === 1 && conditions[0] === 'MemoryPressure';
  if (isMemoryAlone && (qosClassOf(pod) !== 'BestEffort' || toleratesMemoryPressure(pod))) {
    return ADMITTED;
  }
  return {
    admit: false,
    reason: 'Evicted',
    message: `The node had condition: [${conditions.join(' ')}]. `,
  };
}

function toleratesMemoryPressure({ spec }: KubernetesPod): boolean {
  return (spec.tolerations ?? []).some(tolerates);
}

/** Source: Kubernetes `Toleration.ToleratesTaint`; the taint has no value. */
function tolerates({ key, operator, value, effect }: Toleration): boolean {
  if ((effect ?? '') !== '' && effect !== MEMORY_PRESSURE_TAINT.effect) return false;
  if ((key ?? '') !== '' && key !== MEMORY_PRESSURE_TAINT.key) return false;
  switch (operator ?? '') {
    case '':
    case 'Equal':
      return (value ?? '') === '';
    case 'Exists':
      return true;
    default:
      return false;
  }
}

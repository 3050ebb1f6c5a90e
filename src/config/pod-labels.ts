/**
 * What a pod's labels and annotations say of it that its runtime has no field for. They are text from
 * outside: what cannot be read is left out and told, and where it is in doubt the pod is protected.
 */
import { describeError, EvictdError, quote } from '../core/errors.ts';
import { criticalBecause } from '../core/pod-spec.ts';
import { parseQuantity } from '../core/quantity.ts';
import { suggestion } from './nearest.ts';
import { INT32, integerWithin, parseGraceSeconds } from './ranges.ts';

/** The labels that are looked at, as a container or a pod carries them. */
export const POD_LABELS = {
  priority: 'evictd.priority',
  memoryRequest: 'evictd.memory-request',
  gracePeriod: 'evictd.grace-period',
  protected: 'evictd.protected',
} as const;

/** How evictd's own labels begin: another one of these is a misspelling. */
const OWN_PREFIX = 'evictd.';

/** How many of them are told, of a pod's labels or a container's. */
const MOST_UNKNOWN = 5;

/** Nothing longer is looked at. */
const MAX_LENGTH = 128;

const parsePriority = integerWithin(INT32);

/** What labels say; undefined for what they do not. */
export interface LabelledPod {
  readonly priority: number | undefined;
  readonly memoryRequestNano: bigint | undefined;
  readonly gracePeriodSeconds: number | undefined;
  readonly protected: boolean;
  /** Labels that could not be read, or that nothing is known of, with the reason: text from outside, escaped. */
  readonly faults: readonly string[];
}

type Texts = Readonly<Record<string, string>>;

/**
 * Reads the labels of a pod, and the annotations by which the kubelet tells static and mirror pods.
 * Never throws.
 */
export function labelledPod(labels: Texts, annotations: Texts): LabelledPod {
  const faults: string[] = [];
  const read = <T>(name: string, parse: (text: string) => T): T | undefined => {
    const text = Object.hasOwn(labels, name) ? labels[name] : undefined;
    if (text === undefined) return undefined;
    if (text.length > MAX_LENGTH) {
      faults.push(`label ${name}: longer than ${MAX_LENGTH} characters`);
      return undefined;
    }
    try {
      return parse(text);
    } catch (error) {
      if (!(error instanceof EvictdError)) throw error;
      faults.push(`label ${name}: ${describeError(error)}`);
      return undefined;
    }
  };
  const priority = read(POD_LABELS.priority, parsePriority);
  const isStatic = criticalBecause({
    metadata: { name: '', namespace: '', uid: '', annotations },
    spec: { priority: priority ?? null },
  });
  return {
    priority,
    memoryRequestNano: read(POD_LABELS.memoryRequest, parseRequest),
    gracePeriodSeconds: read(POD_LABELS.gracePeriod, parseGraceSeconds),
    protected: isStatic !== undefined || isProtected(labels),
    faults: [...faults, ...unknownLabels(labels)],
  };
}

function unknownLabels(labels: Texts): readonly string[] {
  const known: readonly string[] = Object.values(POD_LABELS);
  return Object.keys(labels)
    .filter((name) => name.startsWith(OWN_PREFIX) && !known.includes(name))
    .slice(0, MOST_UNKNOWN)
    .map((name) => {
      const shown = name.length > MAX_LENGTH ? `${name.slice(0, MAX_LENGTH)}…` : name;
      return `label ${quote(shown)}: evictd knows no such label${suggestion(name, known)}`;
    });
}

/** Whoever writes the label wants the pod to stay, however he spells it; only `false` is a no. */
function isProtected(labels: Texts): boolean {
  const name = POD_LABELS.protected;
  return Object.hasOwn(labels, name) && labels[name] !== 'false';
}

function parseRequest(text: string): bigint {
  const nano = parseQuantity(text);
  if (nano >= 0n) return nano;
  throw new EvictdError('EVICTD_QUANTITY', 'a request cannot be negative', { value: text });
}

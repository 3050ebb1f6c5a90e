/**
 * What an engine's answers say of containers. They are text from outside, and may be anything: what cannot be read
 * of one container is that one's fault alone. Pure.
 */
import type { Quantity } from '../../core/quantity.ts';
import type { RuntimePod } from '../../ports/pod-directory.ts';

/** What a list says of a container. */
export interface ContainerEntry {
  readonly id: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Why it is never evicted: what may protect it cannot be read. */
  readonly fault: string | undefined;
}

export interface Entries {
  readonly entries: readonly ContainerEntry[];
  /** What stands for those that have no id, so that it is told that there are such: one at most. */
  readonly faults: readonly RuntimePod[];
}

/** What of a container does not change untold. */
export interface Details {
  /** The cgroup of its first process, relative to the root of the memory hierarchy. */
  readonly processCgroup: string;
  readonly memoryRequest: Quantity | undefined;
  /** What it was made of, as it was asked for: a list has an id in its place once another image has that name. */
  readonly image: string | undefined;
}

const NANO = 1_000_000_000n;

/**
 * @param most how many are looked at
 * @throws Error where it is no list
 */
export function entriesIn(listed: unknown, most: number): Entries {
  if (!Array.isArray(listed)) throw new Error('what it lists are no containers');
  const all = listed.slice(0, most).map(entryIn);
  const entries = all.filter((one) => one !== undefined);
  return { entries, faults: entries.length < all.length ? [NAMELESS] : [] };
}

const NAMELESS: RuntimePod = {
  id: '',
  namespace: undefined,
  name: 'a container without an id',
  uid: '',
  owner: '',
  cgroups: [],
  doubt: 'the engine does not say which container it is',
  isCritical: false,
  labels: {},
  annotations: {},
  containers: [],
};

function entryIn(one: unknown): ContainerEntry | undefined {
  const { Id: id, Names, Labels } = fieldsOf(one);
  if (typeof id !== 'string' || id === '') return undefined;
  const [first] = Array.isArray(Names) ? (Names as readonly unknown[]) : [];
  const labels = Object.entries(fieldsOf(Labels)).filter(
    (label): label is [string, string] => typeof label[1] === 'string',
  );
  const isRead = labels.length === Object.keys(fieldsOf(Labels)).length && isNoneOrRecord(Labels);
  return {
    id,
    name: typeof first === 'string' ? first.replace(/^\//, '') : id,
    labels: Object.fromEntries(labels),
    fault: isRead ? undefined : 'its labels cannot be read',
  };
}

/** Engines leave labels out, or say null, where there are none. */
function isNoneOrRecord(value: unknown): boolean {
  return (
    value === undefined || value === null || (typeof value === 'object' && !Array.isArray(value))
  );
}

/**
 * What an engine tells of one container; undefined where nothing of it runs.
 *
 * @param cgroupOf the cgroup of a process; undefined where it is gone
 * @throws Error where it does not say whether it runs
 */
export function detailsIn(
  inspected: unknown,
  cgroupOf: (pid: number) => string | undefined,
): Details | undefined {
  const { State, HostConfig, Config } = fieldsOf(inspected);
  const image = fieldsOf(Config)['Image'];
  const { Running, Pid } = fieldsOf(State);
  if (typeof Running !== 'boolean' || !Number.isSafeInteger(Pid)) {
    throw new Error('it does not say whether it runs');
  }
  const pid = Pid as number;
  const processCgroup = Running && pid > 0 ? cgroupOf(pid) : undefined;
  if (processCgroup === undefined) return undefined;
  const reservation = fieldsOf(HostConfig)['MemoryReservation'];
  const isReserved = Number.isSafeInteger(reservation) && (reservation as number) > 0;
  return {
    processCgroup,
    memoryRequest: isReserved
      ? { nano: BigInt(reservation as number) * NANO, format: 'binary' }
      : undefined,
    image: typeof image === 'string' && image !== '' ? image : undefined,
  };
}

/** Those of a record; none of anything else. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

/**
 * Every coded error and exit status. `docs/errors.md` lists the same rows; a test
 * compares the two in both directions.
 */

interface ErrorRow {
  /** What the process exits with when this error ends it. */
  readonly exitStatus: number;
  readonly meaning: string;
}

export const ERRORS = {
  EVICTD_INTERNAL: { exitStatus: 1, meaning: 'an assertion failed or an error was not foreseen' },
  EVICTD_USAGE: { exitStatus: 2, meaning: 'an unknown command, flag or argument' },
  EVICTD_CONFIG_FILE: {
    exitStatus: 2,
    meaning: 'a configuration file that is missing, unreadable, too large or no regular file',
  },
  EVICTD_CONFIG: {
    exitStatus: 2,
    meaning: 'a configuration file that is malformed, of an unknown kind, or has a wrong field',
  },
  EVICTD_QUANTITY: { exitStatus: 2, meaning: 'a quantity that cannot be read or is out of range' },
  EVICTD_PERCENTAGE: { exitStatus: 2, meaning: 'a percentage that cannot be read' },
  EVICTD_DURATION: { exitStatus: 2, meaning: 'a duration that cannot be read or is out of range' },
  EVICTD_INTEGER: {
    exitStatus: 2,
    meaning: 'a whole number that cannot be read or is out of range',
  },
  EVICTD_CHOICE: { exitStatus: 2, meaning: 'a value that is none of the listed ones' },
  EVICTD_SIGNAL: { exitStatus: 2, meaning: 'an unknown eviction signal' },
  EVICTD_THRESHOLD: {
    exitStatus: 2,
    meaning: 'an eviction threshold that is malformed, doubled or lacks its grace period',
  },
  EVICTD_POD: { exitStatus: 2, meaning: 'a --pod value or a rule of pods that cannot be read' },
  EVICTD_POD_PARENT: {
    exitStatus: 2,
    meaning: 'a --pod-parent that is no path below the node, or the root, which holds no pods',
  },
  EVICTD_NODE_CGROUP: {
    exitStatus: 2,
    meaning: 'the node cgroup is missing or no memory cgroup (v1) that can be a node',
  },
  EVICTD_NODE_NAME: { exitStatus: 2, meaning: 'a name that no node can have' },
  EVICTD_PATH: { exitStatus: 2, meaning: 'a path of a filesystem that is not absolute' },
  EVICTD_POLLING: { exitStatus: 2, meaning: 'a --polling value that cannot be read' },
  EVICTD_SOCKET_PATH: { exitStatus: 2, meaning: 'a path at which no unix socket can be' },
  EVICTD_STATE_DIR: { exitStatus: 2, meaning: 'a --state-dir that is no absolute path' },
  EVICTD_SOCKET: { exitStatus: 4, meaning: 'the status socket cannot be made' },
  EVICTD_SOCKET_IN_USE: { exitStatus: 5, meaning: 'a live daemon answers on the status socket' },
  EVICTD_NOT_RUNNING: { exitStatus: 6, meaning: 'no daemon answers on the status socket' },
  EVICTD_UNREACHABLE: {
    exitStatus: 9,
    meaning:
      'the status socket is there, and cannot be asked, refuses, or does not answer as a daemon does',
  },
  EVICTD_KUBELET: {
    exitStatus: 9,
    meaning: 'a kubelet cannot be asked, refuses, or does not answer as one',
  },
  EVICTD_RUNTIME: {
    exitStatus: 9,
    meaning: 'a container runtime cannot be asked, or does not answer',
  },
  EVICTD_KUBELET_EVICTS: {
    exitStatus: 11,
    meaning:
      'a kubelet of this machine evicts the same pods, or it cannot be told that it does not',
  },
  EVICTD_MANIFEST: { exitStatus: 2, meaning: 'a file of pods that cannot be read' },
  EVICTD_SCENARIO: { exitStatus: 2, meaning: 'a scenario that cannot be read' },
  EVICTD_OUTPUT: {
    exitStatus: 1,
    meaning: 'standard output, or the file of --output, cannot be written',
  },
  EVICTD_UNSUPPORTED: { exitStatus: 7, meaning: 'this machine lacks what the command needs' },
  EVICTD_REPLAYED: {
    exitStatus: 10,
    meaning: 'the demo cannot run on this machine, and a recorded run was replayed instead',
  },
  EVICTD_DEMO: { exitStatus: 8, meaning: 'the demo did not end as it should have' },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERRORS;

/** Where a refused value stood. */
export interface ErrorPlace {
  /** The flag (`--eviction-hard`) or the file that the value came from. */
  readonly source?: string;
  /** The key within it, such as a signal or a pod's name. */
  readonly key?: string;
  /** The value as it was given. */
  readonly value?: string;
}

/** An error with a stable code; what evictd throws on purpose is one of these. */
export class EvictdError extends Error {
  override readonly name = 'EvictdError';
  readonly code: ErrorCode;
  readonly place: ErrorPlace;

  constructor(code: ErrorCode, message: string, place: ErrorPlace = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.place = place;
  }

  get exitStatus(): number {
    return ERRORS[this.code].exitStatus;
  }
}

/** The same error with more of its place known: what is there already stands. */
export function withPlace(error: EvictdError, place: ErrorPlace): EvictdError {
  return new EvictdError(error.code, error.message, { ...place, ...error.place }, error.cause);
}

/** One line for a person: place first, then what is wrong. Control characters are escaped. */
export function describeError(error: EvictdError): string {
  return describeAt(error.place, error.message);
}

/** {@link describeError} for what is no error, such as a warning. */
export function describeAt(place: ErrorPlace, message: string): string {
  const shown = place.value === undefined ? [] : [quote(place.value)];
  const named = [place.source, place.key].filter((part) => part !== undefined).join(': ');
  const where = [...(named === '' ? [] : [escapeControl(named)]), ...shown].join(' ');
  return where === '' ? message : `${where}: ${message}`;
}

/** A value in double quotes, control characters escaped, cut at 200 characters. */
export function quote(value: string): string {
  const cut = value.length > 200 ? `${value.slice(0, 200)}…` : value;
  return escapeControl(JSON.stringify(cut));
}

/**
 * Replaces what could forge a line or drive a terminal (C0, DEL, C1, bidirectional and line
 * separators) by its `\u` escape.
 */
export function escapeControl(text: string): string {
  return text.replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
    /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Fails with EVICTD_INTERNAL when `condition` does not hold; on in production. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new EvictdError('EVICTD_INTERNAL', message);
}

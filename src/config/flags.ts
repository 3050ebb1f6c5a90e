import { EvictdError } from '../core/errors.ts';
import type { Policy } from '../core/policy.ts';
import { relativePathFault } from './cgroup-path.ts';
import { parseChoice } from './choice.ts';
import { type DefaultedOption, OPTIONS, type OptionName, type SwitchName } from './options.ts';
import { placed } from './place.ts';
import { parsePods } from './pod-flag.ts';
import { durationWithin, INT32, integerWithin, SECONDS } from './ranges.ts';
import {
  type CheckedSettings,
  COMPATIBILITIES,
  LOG_LEVELS,
  MEMORY_SOURCES,
  SCHEDULINGS,
  type Settings,
  sharedParent,
} from './settings.ts';
import { type Operator, parseSignalTexts, type SignalTexts } from './signal-texts.ts';
import { checkThresholds } from './thresholds.ts';

/**
 * The values of each option in the order in which they were given, as text; a switch has `true`
 * or `false`. An option that was not given is not there.
 */
export type FlagValues = Readonly<Partial<Record<OptionName, readonly string[]>>>;

type Parser<T> = (text: string) => T;

const NOT_NEGATIVE = { min: 0, max: Number.POSITIVE_INFINITY } as const;

const POLL_INTERVAL_MS = { min: 50, max: 3_600_000 } as const;

/** What `sun_path` holds, less its ending NUL. Source: unix(7). */
const MAX_SOCKET_PATH_BYTES = 107;

/** The value of `--socket` that asks for none. */
const NO_SOCKET = 'none';

/**
 * Checks the flags of `evictd run`; looks at nothing on the host.
 *
 * @throws EvictdError with the flag as its place's source: EVICTD_THRESHOLD, EVICTD_SIGNAL,
 * EVICTD_QUANTITY, EVICTD_PERCENTAGE, EVICTD_DURATION, EVICTD_INTEGER, EVICTD_CHOICE, EVICTD_POD,
 * EVICTD_NODE_CGROUP, EVICTD_POD_PARENT, EVICTD_SOCKET_PATH
 */
export function settingsFromFlags(values: FlagValues): CheckedSettings {
  const podParents = [...new Set(parseGiven(values, '--pod-parent', parsePodParent))];
  const { thresholds, warnings, notes } = checkThresholds({
    hard: signalTexts(values, '--eviction-hard', '<'),
    soft: signalTexts(values, '--eviction-soft', '<'),
    softGracePeriod: signalTexts(values, '--eviction-soft-grace-period', '='),
    minimumReclaim: signalTexts(values, '--eviction-minimum-reclaim', '='),
    podsHaveParent: sharedParent(podParents) !== undefined,
  });
  const last = <T>(flag: DefaultedOption, parse: Parser<T>): T => lastValue(values, flag, parse);
  const policy = {
    thresholds,
    pressureTransitionPeriodMs: last(
      '--eviction-pressure-transition-period',
      durationWithin(NOT_NEGATIVE),
    ),
    maxPodGracePeriodSeconds: last('--eviction-max-pod-grace-period', integerWithin(INT32)),
    hardEvictionGracePeriodSeconds: last(
      '--hard-eviction-grace-period-seconds',
      integerWithin(SECONDS),
    ),
  };
  const settings = {
    policy,
    kernelMemcgNotification: last('--kernel-memcg-notification', parseSwitch),
    nodeCgroup: parseGiven(values, '--node-cgroup', parseNodeCgroup).at(-1),
    podParents,
    compatibility: last('--compatibility', (text) => parseChoice(text, COMPATIBILITIES)),
    memorySource: last('--memory-source', (text) => parseChoice(text, MEMORY_SOURCES)),
    allowPidKill: last('--allow-pid-kill', parseSwitch),
    pods: parsePods(values['--pod'] ?? []),
    pollIntervalMs: last('--poll-interval', durationWithin(POLL_INTERVAL_MS)),
    socket: socketFromFlags(values),
    dryRun: last('--dry-run', parseSwitch),
    logLevel: last('--log-level', (text) => parseChoice(text, LOG_LEVELS)),
    scheduling: last('--scheduling', (text) => parseChoice(text, SCHEDULINGS)),
  };
  return { settings, warnings, notes: [...notes, ...graceNotes(policy)] };
}

/** The kubelet's default leaves the victim of a soft threshold no time. */
function graceNotes({ thresholds, maxPodGracePeriodSeconds }: Policy): readonly string[] {
  const isSoft = thresholds.some(({ gracePeriodMs }) => gracePeriodMs > 0);
  return isSoft && maxPodGracePeriodSeconds === 0
    ? ['--eviction-max-pod-grace-period is 0: victims of soft thresholds get KILL at once, no TERM']
    : [];
}

/**
 * The path of `--socket` for a command that cannot do without.
 *
 * @throws EvictdError EVICTD_SOCKET_PATH
 */
export function socketPathFromFlags(values: FlagValues): string {
  const socket = socketFromFlags(values);
  if (socket !== undefined) return socket.path;
  const place = { source: '--socket', value: NO_SOCKET };
  throw new EvictdError('EVICTD_SOCKET_PATH', 'this command needs a socket', place);
}

/**
 * Whether a switch is on.
 *
 * @throws EvictdError EVICTD_CHOICE for a value that is neither `true` nor `false`
 */
export function isSwitchedOn(values: FlagValues, flag: SwitchName): boolean {
  return lastValue(values, flag, parseSwitch);
}

function signalTexts(values: FlagValues, flag: OptionName, operator: Operator): SignalTexts {
  return parseSignalTexts(flag, values[flag] ?? defaultsOf(flag), operator);
}

function defaultsOf(flag: OptionName): readonly string[] {
  const text = OPTIONS[flag].default;
  return text === undefined ? [] : [text];
}

/** All values given are parsed, so that none is wrong unseen; the last one counts. */
function lastValue<T>(values: FlagValues, flag: DefaultedOption, parse: Parser<T>): T {
  return parseGiven(values, flag, parse).at(-1) ?? parse(OPTIONS[flag].default);
}

function parseGiven<T>(values: FlagValues, flag: OptionName, parse: Parser<T>): readonly T[] {
  return (values[flag] ?? []).map((text) => placed({ source: flag }, () => parse(text)));
}

function socketFromFlags(values: FlagValues): Settings['socket'] {
  const path = lastValue(values, '--socket', parseSocketPath);
  return path === NO_SOCKET ? undefined : { path, explicit: values['--socket'] !== undefined };
}

function parseSwitch(text: string): boolean {
  return parseChoice(text, ['true', 'false']) === 'true';
}

function parseNodeCgroup(text: string): string {
  const fault = pathFault(text);
  if (fault === undefined) return text;
  throw new EvictdError('EVICTD_NODE_CGROUP', fault, { value: text });
}

/** `.` is the node's own cgroup. */
function parsePodParent(text: string): string {
  const path = text.length > 1 && text.endsWith('/') ? text.slice(0, -1) : text;
  const fault = path === '.' ? undefined : relativePathFault(path);
  if (fault === undefined) return path;
  throw new EvictdError('EVICTD_POD_PARENT', fault, { value: text });
}

function parseSocketPath(text: string): string {
  const fault = text === NO_SOCKET ? undefined : (pathFault(text) ?? socketPathFault(text));
  if (fault === undefined) return text;
  throw new EvictdError('EVICTD_SOCKET_PATH', fault, { value: text });
}

function pathFault(path: string): string | undefined {
  if (path === '') return 'an empty path';
  return path.includes('\0') ? 'a path has no NUL' : undefined;
}

function socketPathFault(path: string): string | undefined {
  if (!path.startsWith('/')) return `neither an absolute path nor ${NO_SOCKET}`;
  if (path.endsWith('/')) return 'a directory, not a socket';
  const tooLong = Buffer.byteLength(path) > MAX_SOCKET_PATH_BYTES;
  return tooLong ? `longer than the ${MAX_SOCKET_PATH_BYTES} bytes of a unix socket` : undefined;
}

import { formatDuration } from '../core/duration.ts';
import { POLL_PACES } from '../core/polling.ts';
import { formatCount } from '../core/quantity.ts';
import {
  COLLECTINGS,
  COMPATIBILITIES,
  LOG_LEVELS,
  MEMORY_SOURCES,
  RUNTIMES,
  SCHEDULINGS,
} from './settings.ts';

/** evictd's commands, in the order of its help. */
export const COMMANDS = {
  run: 'watch the node and evict pods under pressure',
  'check-config': 'check the configuration of run and print what it amounts to',
  simulate: 'run scenarios through the policy, in virtual time, and print what it does',
  demo: 'show an eviction of real processes on this machine',
  status: 'ask the running daemon what it knows',
  summary: 'ask the running daemon for its view, as the kubelet’s Summary API has it',
  record: 'write what the running daemon or a kubelet sees as a scenario for simulate',
  admit: 'tell whether pods may start on the node as it is; exit status 3 if not',
  gc: 'remove dead containers and unused images now, or list them with --dry-run',
  version: 'print the version, as --version does',
} as const;

export type CommandName = keyof typeof COMMANDS;

/** Whether `text` names a command. */
export function isCommand(text: string): text is CommandName {
  return Object.hasOwn(COMMANDS, text);
}

interface OptionRow {
  readonly aliases: readonly `--${string}`[];
  /** What stands for the value in help; undefined for a switch, which is `true` when bare. */
  readonly value: string | undefined;
  /** Whether all values count; of another option, the last one does. */
  readonly repeatable: boolean;
  /** As it would be given; undefined for none. */
  readonly default: string | undefined;
  readonly description: string;
  readonly commands: readonly CommandName[];
  /** What some of the commands take it for instead. */
  readonly instead?: Meaning;
  /** The same in a configuration file; undefined for what only a command line can say. */
  readonly key: FileKey | undefined;
}

/** What an option is to commands for which its own description does not hold. */
interface Meaning {
  readonly commands: readonly CommandName[];
  /** What stands for the value, and its default; the same where they are left out. */
  readonly value?: string;
  readonly default?: string;
  readonly description: string;
}

/** A key of a configuration file. */
interface FileKey {
  readonly name: string;
  readonly type: KeyType;
}

/**
 * What a key's value may be.
 *
 * - `signals`: a map from signals to texts
 * - `text`: a text
 * - `integer`: a whole number
 * - `switch`: true or false
 * - `texts`: a list of texts
 * - `polling`, `pods`: see `configuration.md`
 */
export type KeyType = 'signals' | 'text' | 'integer' | 'switch' | 'texts' | 'polling' | 'pods';

const DAEMON = ['run', 'check-config'] as const;
/** What says of a runtime what may be removed, to the daemon and at once. */
const RUNTIME = [...DAEMON, 'gc'] as const;
/** What says by which policy: of a simulated node too. */
const POLICY = [...DAEMON, 'simulate'] as const;

/** The paces of `POLL_PACES`, as `--polling` takes them. */
const POLLING_DEFAULTS = Object.entries(POLL_PACES)
  .map(([kind, { assumedFallPerSecond, floorMs }]) => {
    const fall = formatCount(assumedFallPerSecond, 'tasks');
    return `${kind}=floor:${formatDuration(floorMs)},assumedFall:${fall}`;
  })
  .join(' ');

/**
 * Every option of every command. The command line, its help and the defaults of
 * `settingsFromFlags` are made from this table, and `docs/reference/flags.md` is compared with it.
 */
export const OPTIONS = {
  '--config': {
    aliases: [],
    value: 'FILE',
    repeatable: false,
    default: undefined,
    description:
      'a configuration file, YAML or JSON: a KubeletConfiguration as it stands, or an EvictdConfiguration; ' +
      'flags win over it, key by key',
    commands: [...DAEMON, 'record'],
    instead: {
      commands: ['record'],
      description:
        'with --kubelet: the configuration file of that kubelet, YAML or JSON, whose policy the scenario gets; ' +
        "the kubelet's defaults without it",
    },
    key: undefined,
  },
  '--node-cgroup': {
    aliases: [],
    value: 'DIR',
    repeatable: false,
    default: undefined,
    description:
      'the cgroup that is the node, a path in the memory hierarchy; its direct children are the pods; ' +
      'without it the node is the host, where the pods of --runtime are evictable, and what --pod-parent, --pod ' +
      'and pods: name',
    commands: DAEMON,
    key: { name: 'nodeCgroup', type: 'text' },
  },
  '--node-name': {
    aliases: [],
    value: 'NAME',
    repeatable: false,
    default: undefined,
    description: "what events call the node; the host's name by default",
    commands: DAEMON,
    key: { name: 'nodeName', type: 'text' },
  },
  '--pod-parent': {
    aliases: [],
    value: 'PATH',
    repeatable: true,
    default: undefined,
    description:
      "a cgroup, relative to the node's, whose children are the pods; of kubepods and kubepods.slice " +
      'the pods of all QoS classes',
    commands: DAEMON,
    key: { name: 'podParents', type: 'texts' },
  },
  '--runtime': {
    aliases: [],
    value: RUNTIMES.join('|'),
    repeatable: false,
    default: 'cgroup',
    description:
      'what runs the pods: cgroup for those that --pod-parent, --pod and pods: name; cri for containerd or ' +
      'CRI-O; docker for Docker and Podman; auto for the first of these that has pods',
    commands: RUNTIME,
    instead: {
      commands: ['gc'],
      value: 'cri|docker|auto',
      default: 'auto',
      description: 'what is asked: cri, docker, or all whose usual sockets are there',
    },
    key: { name: 'runtime', type: 'text' },
  },
  '--runtime-endpoint': {
    aliases: [],
    value: 'unix:///PATH',
    repeatable: false,
    default: undefined,
    description: 'the socket at which the runtime is asked; the usual ones are tried without it',
    commands: RUNTIME,
    key: { name: 'runtimeEndpoint', type: 'text' },
  },
  '--docker-pods': {
    aliases: [],
    value: 'container|compose|podman|label=KEY',
    repeatable: false,
    default: 'container',
    description:
      "what is one pod of Docker's or Podman's containers: each, a compose project, a pod of Podman's, or those " +
      'with one value of a label; what is in none of these is a pod by itself',
    commands: DAEMON,
    key: { name: 'dockerPods', type: 'text' },
  },
  '--beside-kubelet': {
    aliases: [],
    value: undefined,
    repeatable: false,
    default: 'false',
    description:
      'evict although a kubelet of this machine evicts the same pods; without it evictd refuses to start, but for ' +
      'a dry run',
    commands: DAEMON,
    key: { name: 'besideKubelet', type: 'switch' },
  },
  '--pod': {
    aliases: [],
    value: 'NAME=priority:N,request:Q,grace:D,protected',
    repeatable: true,
    default: undefined,
    description:
      'what a cgroup has no field for, each part optional: priority, memory request, grace period ' +
      '(a duration of whole seconds, or seconds), never to be evicted',
    commands: DAEMON,
    key: { name: 'pods', type: 'pods' },
  },
  '--eviction-hard': {
    aliases: [],
    value: 'SIGNAL<VALUE,…',
    repeatable: true,
    default:
      'memory.available<100Mi, nodefs.available<10%, nodefs.inodesFree<5%, imagefs.available<15%, ' +
      'imagefs.inodesFree<5%',
    description:
      'thresholds that are acted on at once; empty for none; naming one signal drops the other defaults',
    commands: POLICY,
    key: { name: 'evictionHard', type: 'signals' },
  },
  '--merge-default-eviction-settings': {
    aliases: [],
    value: undefined,
    repeatable: false,
    default: 'false',
    description:
      'keep the default hard thresholds of the signals that --eviction-hard does not name',
    commands: POLICY,
    key: { name: 'mergeDefaultEvictionSettings', type: 'switch' },
  },
  '--eviction-soft': {
    aliases: [],
    value: 'SIGNAL<VALUE,…',
    repeatable: true,
    default: undefined,
    description: 'thresholds that are acted on when met for their grace period',
    commands: POLICY,
    key: { name: 'evictionSoft', type: 'signals' },
  },
  '--eviction-soft-grace-period': {
    aliases: [],
    value: 'SIGNAL=DURATION,…',
    repeatable: true,
    default: undefined,
    description: 'for how long each soft threshold must be met; every soft threshold needs one',
    commands: POLICY,
    key: { name: 'evictionSoftGracePeriod', type: 'signals' },
  },
  '--eviction-minimum-reclaim': {
    aliases: [],
    value: 'SIGNAL=VALUE,…',
    repeatable: true,
    default: undefined,
    description: 'how much to regain beyond a threshold before its pressure counts as ended',
    commands: POLICY,
    key: { name: 'evictionMinimumReclaim', type: 'signals' },
  },
  '--eviction-max-pod-grace-period': {
    aliases: [],
    value: 'SECONDS',
    repeatable: false,
    default: '0',
    description:
      'the longest grace given to the victim of a soft threshold; negative leaves it to the pod',
    commands: POLICY,
    key: { name: 'evictionMaxPodGracePeriod', type: 'integer' },
  },
  '--eviction-pressure-transition-period': {
    aliases: [],
    value: 'DURATION',
    repeatable: false,
    default: '5m0s',
    description: 'for how long a node condition is held after its threshold was last met',
    commands: POLICY,
    key: { name: 'evictionPressureTransitionPeriod', type: 'text' },
  },
  '--hard-eviction-grace-period-seconds': {
    aliases: [],
    value: 'SECONDS',
    repeatable: false,
    default: '0',
    description:
      'the grace given to the victim of a hard threshold; 0 kills at once; 1 by default with --compatibility kubelet',
    commands: POLICY,
    key: { name: 'hardEvictionGracePeriodSeconds', type: 'integer' },
  },
  '--enforce-node-allocatable': {
    aliases: [],
    value: 'LIST',
    repeatable: true,
    default: 'pods',
    description:
      'with pods in it, what the pods may use together (allocatableMemory.available) has the hard ' +
      "threshold of the node's memory too; empty or none for not; the kubelet's other words do nothing here",
    commands: POLICY,
    key: { name: 'enforceNodeAllocatable', type: 'texts' },
  },
  '--compatibility': {
    aliases: [],
    value: COMPATIBILITIES.join('|'),
    repeatable: false,
    default: 'evictd',
    description:
      'whose figures and rules count where the two differ: on the host, the kubelet leaves kernel memory, slab ' +
      'and huge pages out of what is used',
    commands: POLICY,
    key: { name: 'compatibility', type: 'text' },
  },
  '--memory-source': {
    aliases: [],
    value: MEMORY_SOURCES.join('|'),
    repeatable: false,
    default: 'workingset',
    description:
      'what memory.available is made of: capacity less working set, or what the kernel could free ' +
      'too (MemAvailable; below the host, page cache without shared memory)',
    commands: POLICY,
    key: { name: 'memorySource', type: 'text' },
  },
  '--kernel-memcg-notification': {
    aliases: ['--experimental-kernel-memcg-notification'],
    value: undefined,
    repeatable: false,
    default: 'false',
    description: 'hear of crossings from the kernel; without it, polling only',
    commands: DAEMON,
    key: { name: 'kernelMemcgNotification', type: 'switch' },
  },
  '--poll-interval': {
    aliases: [],
    value: 'DURATION',
    repeatable: false,
    default: '10s',
    description:
      'the longest time between two readings of the node, and between two of all pods; 50ms to 1h',
    commands: DAEMON,
    key: { name: 'pollInterval', type: 'text' },
  },
  '--polling': {
    aliases: [],
    value: 'KIND=floor:D,assumedFall:Q',
    repeatable: true,
    default: undefined,
    description:
      'how memory, disk, inodes or pids are polled: the shortest time between two readings (10ms to 1h), and ' +
      `the fastest fall a second that is assumed where none was seen; by default ${POLLING_DEFAULTS}`,
    commands: DAEMON,
    key: { name: 'polling', type: 'polling' },
  },
  '--nodefs-path': {
    aliases: [],
    value: 'PATH',
    repeatable: false,
    default: '/var/lib',
    description: 'a path in the filesystem that is nodefs',
    commands: RUNTIME,
    instead: {
      commands: ['gc'],
      description: 'where what comes back is measured if the runtime does not tell its filesystems',
    },
    key: { name: 'nodefsPath', type: 'text' },
  },
  '--imagefs-path': {
    aliases: [],
    value: 'PATH',
    repeatable: false,
    default: undefined,
    description:
      'a path in the filesystem that holds images; without it the one that the runtime tells, if there is one',
    commands: RUNTIME,
    instead: {
      commands: ['gc'],
      description:
        'where what comes back is measured; without it the filesystems that the runtime tells, else that of ' +
        '--nodefs-path',
    },
    key: { name: 'imagefsPath', type: 'text' },
  },
  '--containerfs-path': {
    aliases: [],
    value: 'PATH',
    repeatable: false,
    default: undefined,
    description:
      "a path in the filesystem that holds containers' writable layers; without it the one that the runtime " +
      'tells, if there is one',
    commands: DAEMON,
    key: { name: 'containerfsPath', type: 'text' },
  },
  '--container-gc': {
    aliases: [],
    value: COLLECTINGS.join('|'),
    repeatable: false,
    default: 'off',
    description:
      'whether dead containers and sandboxes are removed: never, before a pod is evicted for a disk, or each ' +
      'minute too; takes --runtime cri or docker, where what an exited container wrote is lost with it',
    commands: DAEMON,
    key: { name: 'containerGC', type: 'text' },
  },
  '--container-gc-minimum-age': {
    aliases: [],
    value: 'DURATION',
    repeatable: false,
    default: '0s',
    description: 'a container that ended less long ago is kept',
    commands: RUNTIME,
    key: { name: 'containerGCMinimumAge', type: 'text' },
  },
  '--container-gc-max-per-pod': {
    aliases: [],
    value: 'COUNT',
    repeatable: false,
    default: '1',
    description:
      'how many dead attempts of each container of a pod are kept, negative for all; under pressure none, but ' +
      'for the last one of a pod that lives',
    commands: RUNTIME,
    instead: {
      commands: ['gc'],
      default: '0',
      description:
        'how many dead attempts of each container of a pod are kept, negative for all; the last one of a pod that ' +
        'lives is in any case',
    },
    key: { name: 'containerGCMaxPerPod', type: 'integer' },
  },
  '--image-gc': {
    aliases: [],
    value: COLLECTINGS.join('|'),
    repeatable: false,
    default: 'off',
    description:
      'whether unused images are removed: never, before a pod is evicted for a disk, or each 5 minutes too, by ' +
      'the marks and the maximum age; takes --runtime cri or docker',
    commands: DAEMON,
    key: { name: 'imageGC', type: 'text' },
  },
  '--image-gc-high-threshold': {
    aliases: [],
    value: 'PERCENT',
    repeatable: false,
    default: '85',
    description:
      'how full the filesystem of the images may be before images go, 0 to 100; 100 for never',
    commands: DAEMON,
    key: { name: 'imageGCHighThresholdPercent', type: 'integer' },
  },
  '--image-gc-low-threshold': {
    aliases: [],
    value: 'PERCENT',
    repeatable: false,
    default: '80',
    description: 'how full it may stay then; below the high one',
    commands: DAEMON,
    key: { name: 'imageGCLowThresholdPercent', type: 'integer' },
  },
  '--image-minimum-gc-age': {
    aliases: ['--minimum-image-ttl-duration'],
    value: 'DURATION',
    repeatable: false,
    default: '2m0s',
    description: 'an image that was first seen less long ago is kept',
    commands: DAEMON,
    key: { name: 'imageMinimumGCAge', type: 'text' },
  },
  '--image-maximum-gc-age': {
    aliases: [],
    value: 'DURATION',
    repeatable: false,
    default: '0s',
    description:
      'with --image-gc on, an image that nobody has used for so long goes, however much is free; 0 for never',
    commands: DAEMON,
    key: { name: 'imageMaximumGCAge', type: 'text' },
  },
  '--kubelet-root-dir': {
    aliases: [],
    value: 'DIR',
    repeatable: false,
    default: '/var/lib/kubelet',
    description:
      "the kubelet's own root directory: with --runtime cri, emptyDir volumes below it are looked at",
    commands: DAEMON,
    key: { name: 'kubeletRootDir', type: 'text' },
  },
  '--pod-logs-dir': {
    aliases: [],
    value: 'DIR',
    repeatable: false,
    default: '/var/log/pods',
    description: "where the pods' logs are: with --runtime cri, those below it are looked at",
    commands: RUNTIME,
    key: { name: 'podLogsDir', type: 'text' },
  },
  '--socket': {
    aliases: [],
    value: 'PATH|none',
    repeatable: false,
    default: '/run/evictd/evictd.sock',
    description:
      'the unix socket on which the daemon answers status, an absolute path; none for no socket',
    commands: ['run', 'check-config', 'status', 'summary', 'admit', 'record'],
    instead: {
      commands: ['status', 'summary', 'admit', 'record'],
      value: 'PATH',
      description: 'the unix socket on which the running daemon is asked, an absolute path',
    },
    key: { name: 'socket', type: 'text' },
  },
  '--state-dir': {
    aliases: [],
    value: 'DIR|none',
    repeatable: false,
    default: '/var/lib/evictd',
    description:
      'where first-observed times, node conditions and the history of evictions are kept over a restart, an ' +
      'absolute path; none for nowhere',
    commands: DAEMON,
    key: { name: 'stateDir', type: 'text' },
  },
  '--dry-run': {
    aliases: [],
    value: undefined,
    repeatable: false,
    default: 'false',
    description: 'decide and say whom to evict and what to remove, but kill and remove nothing',
    commands: RUNTIME,
    instead: {
      commands: ['gc'],
      description: 'remove nothing, and list what would be and what is kept, and why',
    },
    key: { name: 'dryRun', type: 'switch' },
  },
  '--allow-pid-kill': {
    aliases: [],
    value: undefined,
    repeatable: false,
    default: 'false',
    description:
      'without the native addon, and where cgroup.kill is not safe, signal by pid: its start time and ' +
      'cgroup are checked right before each signal, but not held',
    commands: DAEMON,
    key: { name: 'allowPidKill', type: 'switch' },
  },
  '--log-level': {
    aliases: [],
    value: 'LEVEL',
    repeatable: false,
    default: 'info',
    description: `the least severe log lines that are written: ${LOG_LEVELS.join(', ')}`,
    commands: DAEMON,
    key: { name: 'logLevel', type: 'text' },
  },
  '--scheduling': {
    aliases: [],
    value: SCHEDULINGS.join('|'),
    repeatable: false,
    default: 'rr',
    description:
      'how evictd itself gets the CPU: real time (SCHED_RR), nice -20, or as it was started; ' +
      'what is refused falls back to the next',
    commands: DAEMON,
    key: { name: 'scheduling', type: 'text' },
  },
  '--print-config': {
    aliases: [],
    value: undefined,
    repeatable: false,
    default: 'false',
    description: 'print what file, flags and defaults amount to, as an EvictdConfiguration in YAML',
    commands: ['check-config'],
    key: undefined,
  },
  '--batch': {
    aliases: [],
    value: 'FILE',
    repeatable: false,
    default: undefined,
    description:
      'read one scenario a line (JSON) from a file, or from standard input for -, and print one result a line',
    commands: ['simulate'],
    key: undefined,
  },
  '--format': {
    aliases: [],
    value: 'json|text',
    repeatable: false,
    default: 'json',
    description: 'print results as JSON, or tell the story of each scenario',
    commands: ['simulate'],
    key: undefined,
  },
  '--explain': {
    aliases: [],
    value: undefined,
    repeatable: false,
    default: 'false',
    description:
      "print each point on which the kubelet's rules and evictd's own differ too, and which holds",
    commands: ['check-config', 'simulate'],
    instead: {
      commands: ['simulate'],
      description:
        'tell the story of each scenario with each ranking of the pods, and why each stands where it does',
    },
    key: undefined,
  },
  '--diff': {
    aliases: [],
    value: undefined,
    repeatable: false,
    default: 'false',
    description:
      'tell the outcome by the configuration of the file beside that with the flags given here',
    commands: ['simulate'],
    key: undefined,
  },
  '--scenario': {
    aliases: [],
    value: undefined,
    repeatable: false,
    default: 'false',
    description:
      'print a scenario for simulate: the view and the pods as one round, with the configuration of the daemon',
    commands: ['summary'],
    key: undefined,
  },
  '--conditions': {
    aliases: [],
    value: 'CONDITION,…',
    repeatable: true,
    default: undefined,
    description:
      'the node conditions to decide by, none where empty; without it the daemon is asked for those that hold',
    commands: ['admit'],
    key: undefined,
  },
  '--json': {
    aliases: [],
    value: undefined,
    repeatable: false,
    default: 'false',
    description: 'print JSON of a versioned shape',
    commands: ['status', 'admit'],
    key: undefined,
  },
  '--interval': {
    aliases: [],
    value: 'DURATION',
    repeatable: false,
    default: '1s',
    description:
      'how far apart samples are at most, 100ms to 1h; a daemon adds one for each decision, outcome and ' +
      'threshold that is met or no longer is',
    commands: ['record'],
    key: undefined,
  },
  '--duration': {
    aliases: [],
    value: 'DURATION',
    repeatable: false,
    default: '1m0s',
    description:
      'for how long to record, up to 168h; 0 until SIGINT or SIGTERM, which end it sooner too',
    commands: ['record'],
    key: undefined,
  },
  '--output': {
    aliases: [],
    value: 'FILE|-',
    repeatable: false,
    default: '-',
    description:
      'where the scenario is written: a file is replaced as a whole at the end, a device or a FIFO ' +
      'written to, any other link refused',
    commands: ['record'],
    key: undefined,
  },
  '--max-samples': {
    aliases: [],
    value: 'COUNT',
    repeatable: false,
    default: '10000',
    description:
      'how many samples are kept, 2 to 1000000; beyond it the oldest go in which nothing was decided and no ' +
      'threshold met, then the oldest',
    commands: ['record'],
    key: undefined,
  },
  '--kubelet': {
    aliases: [],
    value: 'URL',
    repeatable: false,
    default: undefined,
    description:
      'record a kubelet in place of the daemon: its /stats/summary and /pods are read each interval; unix:///PATH ' +
      'for what answers so on a socket, as evictd does',
    commands: ['record'],
    key: undefined,
  },
  '--token-file': {
    aliases: [],
    value: 'FILE',
    repeatable: false,
    default: undefined,
    description: 'a bearer token for the kubelet, read anew for each request',
    commands: ['record'],
    key: undefined,
  },
  '--ca-file': {
    aliases: [],
    value: 'FILE',
    repeatable: false,
    default: undefined,
    description:
      "the certificates, in PEM, that the kubelet's is checked against in place of Node's own",
    commands: ['record'],
    key: undefined,
  },
  '--insecure-skip-tls-verify': {
    aliases: [],
    value: undefined,
    repeatable: false,
    default: 'false',
    description: 'take any certificate of the kubelet: whoever is in between can read the token',
    commands: ['record'],
    key: undefined,
  },
  '--only': {
    aliases: [],
    value: 'containers|images',
    repeatable: false,
    default: undefined,
    description: 'leave the other alone',
    commands: ['gc'],
    key: undefined,
  },
  '--plain': {
    aliases: [],
    value: undefined,
    repeatable: false,
    default: 'false',
    description: 'print plain lines, also on a terminal',
    commands: ['demo'],
    key: undefined,
  },
} as const satisfies Record<`--${string}`, OptionRow>;

export type OptionName = keyof typeof OPTIONS;

/** The options that have a default. */
export type DefaultedOption = {
  [Name in OptionName]: (typeof OPTIONS)[Name]['default'] extends string ? Name : never;
}[OptionName];

/** The options that are on or off. */
export type SwitchName = {
  [Name in OptionName]: (typeof OPTIONS)[Name]['value'] extends string ? never : Name;
}[OptionName];

/** The options whose value is a map from signals, in a file too. */
export type SignalOption = OptionOf<'signals'>;

/** The options of the daemon whose values are texts, in a file too. */
export type TextOption = OptionOf<'text' | 'integer' | 'switch' | 'texts'>;

type OptionOf<Type extends KeyType> = {
  [Name in OptionName]: (typeof OPTIONS)[Name]['key'] extends { readonly type: Type }
    ? Name
    : never;
}[OptionName];

/** One option of the table, with its name, as most commands take it or as one does. */
export interface Option extends OptionRow {
  readonly name: OptionName;
}

/** All options, in the table's order. */
export const OPTION_LIST: readonly Option[] = (Object.keys(OPTIONS) as OptionName[]).map(
  (name) => ({
    name,
    ...OPTIONS[name],
  }),
);

/** A key of an EvictdConfiguration, with its option. */
export interface Key extends FileKey {
  readonly option: OptionName;
  readonly description: string;
}

/** All keys of an EvictdConfiguration, in the table's order. */
export const KEYS: readonly Key[] = OPTION_LIST.flatMap(({ name: option, key, description }) =>
  key === undefined ? [] : [{ ...key, option, description }],
);

/** The options that `command` takes and what they are to it, in the table's order. */
export function optionsOf(command: CommandName): readonly Option[] {
  return OPTION_LIST.filter(({ commands }) => commands.includes(command)).map((option) => {
    const { instead } = option;
    if (!instead?.commands.includes(command)) return option;
    const { value = option.value, default: own = option.default, description } = instead;
    return { ...option, value, default: own, description };
  });
}

/** How help and documentation write an option: its names and what stands for the value. */
export function optionTerm({ name, aliases, value }: Option): string {
  const names = [name, ...aliases].join(', ');
  return value === undefined ? names : `${names} ${value}`;
}

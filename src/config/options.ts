import { COMPATIBILITIES, LOG_LEVELS, MEMORY_SOURCES, SCHEDULINGS } from './settings.ts';

/** evictd's commands, in the order of its help. */
export const COMMANDS = {
  run: 'watch the node and evict pods under pressure',
  'check-config': 'check the flags of run and print what they amount to',
  demo: 'show an eviction of real processes on this machine',
  status: 'ask the running daemon what it knows',
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
}

const DAEMON = ['run', 'check-config'] as const;

/**
 * Every option of every command. The command line, its help and the defaults of
 * `settingsFromFlags` are made from this table, and `docs/reference/flags.md` is compared with it.
 */
export const OPTIONS = {
  '--node-cgroup': {
    aliases: [],
    value: 'DIR',
    repeatable: false,
    default: undefined,
    description:
      'the cgroup that is the node, a path in the memory hierarchy; its direct children are the pods; ' +
      'without it the node is the host, and only what --pod-parent and --pod name is evictable',
    commands: DAEMON,
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
  },
  '--eviction-hard': {
    aliases: [],
    value: 'SIGNAL<VALUE,…',
    repeatable: true,
    default: 'memory.available<100Mi',
    description: 'thresholds that are acted on at once; empty for none',
    commands: DAEMON,
  },
  '--eviction-soft': {
    aliases: [],
    value: 'SIGNAL<VALUE,…',
    repeatable: true,
    default: undefined,
    description: 'thresholds that are acted on when met for their grace period',
    commands: DAEMON,
  },
  '--eviction-soft-grace-period': {
    aliases: [],
    value: 'SIGNAL=DURATION,…',
    repeatable: true,
    default: undefined,
    description: 'for how long each soft threshold must be met; every soft threshold needs one',
    commands: DAEMON,
  },
  '--eviction-minimum-reclaim': {
    aliases: [],
    value: 'SIGNAL=VALUE,…',
    repeatable: true,
    default: undefined,
    description: 'how much to regain beyond a threshold before its pressure counts as ended',
    commands: DAEMON,
  },
  '--eviction-max-pod-grace-period': {
    aliases: [],
    value: 'SECONDS',
    repeatable: false,
    default: '0',
    description:
      'the longest grace given to the victim of a soft threshold; negative leaves it to the pod',
    commands: DAEMON,
  },
  '--eviction-pressure-transition-period': {
    aliases: [],
    value: 'DURATION',
    repeatable: false,
    default: '5m0s',
    description: 'for how long a node condition is held after its threshold was last met',
    commands: DAEMON,
  },
  '--hard-eviction-grace-period-seconds': {
    aliases: [],
    value: 'SECONDS',
    repeatable: false,
    default: '0',
    description: 'the grace given to the victim of a hard threshold; 0 kills at once',
    commands: DAEMON,
  },
  '--compatibility': {
    aliases: [],
    value: COMPATIBILITIES.join('|'),
    repeatable: false,
    default: 'evictd',
    description:
      'whose figures count where the two differ: on the host, the kubelet leaves kernel memory, slab ' +
      'and huge pages out of what is used',
    commands: DAEMON,
  },
  '--memory-source': {
    aliases: [],
    value: MEMORY_SOURCES.join('|'),
    repeatable: false,
    default: 'workingset',
    description:
      'what memory.available is made of: capacity less working set, or what the kernel could free ' +
      'too (MemAvailable; below the host, page cache without shared memory)',
    commands: DAEMON,
  },
  '--kernel-memcg-notification': {
    aliases: ['--experimental-kernel-memcg-notification'],
    value: undefined,
    repeatable: false,
    default: 'false',
    description: 'hear of crossings from the kernel; without it, polling only',
    commands: DAEMON,
  },
  '--poll-interval': {
    aliases: [],
    value: 'DURATION',
    repeatable: false,
    default: '10s',
    description:
      'the longest time between two readings of the node, and between two of all pods; 50ms to 1h',
    commands: DAEMON,
  },
  '--socket': {
    aliases: [],
    value: 'PATH|none',
    repeatable: false,
    default: '/run/evictd/evictd.sock',
    description:
      'the unix socket on which the daemon answers status, an absolute path; none for no socket',
    commands: ['run', 'check-config', 'status'],
  },
  '--dry-run': {
    aliases: [],
    value: undefined,
    repeatable: false,
    default: 'false',
    description: 'decide and say whom to evict, but kill nothing',
    commands: DAEMON,
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
  },
  '--log-level': {
    aliases: [],
    value: 'LEVEL',
    repeatable: false,
    default: 'info',
    description: `the least severe log lines that are written: ${LOG_LEVELS.join(', ')}`,
    commands: DAEMON,
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
  },
  '--json': {
    aliases: [],
    value: undefined,
    repeatable: false,
    default: 'false',
    description: 'print JSON of a versioned shape',
    commands: ['status'],
  },
  '--plain': {
    aliases: [],
    value: undefined,
    repeatable: false,
    default: 'false',
    description: 'print plain lines, also on a terminal',
    commands: ['demo'],
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

/** One option of the table, with its name. */
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

/** The options that `command` takes, in the table's order. */
export function optionsOf(command: CommandName): readonly Option[] {
  return OPTION_LIST.filter(({ commands }) => commands.includes(command));
}

/** How help and documentation write an option: its names and what stands for the value. */
export function optionTerm({ name, aliases, value }: Option): string {
  const names = [name, ...aliases].join(', ');
  return value === undefined ? names : `${names} ${value}`;
}

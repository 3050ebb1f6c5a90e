/** What the demo shows: the node, its pods, how the leak grows, and how long each step may take. */

export const MEBI = 2 ** 20;

/** The memory limit of the node's cgroup, bytes. */
export const NODE_BYTES = 512 * MEBI;
/** What `memory.available` must not fall below, bytes. */
export const THRESHOLD_BYTES = 64 * MEBI;
export const THRESHOLD_TEXT = 'memory.available<64Mi';

/** A pod of the demo: one process in a cgroup of its own. */
export interface DemoPod {
  readonly name: string;
  readonly qosClass: 'Guaranteed' | 'Burstable' | 'BestEffort';
  readonly priority: number;
  /** 0 for none. */
  readonly requestBytes: number;
  readonly limitBytes: number | undefined;
  /** What its process takes as it starts; Node itself adds about 6 MiB. */
  readonly holdsBytes: number;
}

/** The pod that is to be evicted. */
export const LEAK = 'leak';

export const PODS: readonly DemoPod[] = [
  {
    name: 'web',
    qosClass: 'Guaranteed',
    priority: 1000,
    requestBytes: 128 * MEBI,
    limitBytes: 128 * MEBI,
    holdsBytes: 72 * MEBI,
  },
  {
    name: 'cache',
    qosClass: 'Burstable',
    priority: 0,
    requestBytes: 128 * MEBI,
    limitBytes: undefined,
    holdsBytes: 88 * MEBI,
  },
  {
    name: 'batch',
    qosClass: 'BestEffort',
    priority: 0,
    requestBytes: 0,
    limitBytes: undefined,
    holdsBytes: 24 * MEBI,
  },
  {
    name: LEAK,
    qosClass: 'BestEffort',
    priority: 0,
    requestBytes: 0,
    limitBytes: undefined,
    holdsBytes: 8 * MEBI,
  },
];

/**
 * How fast the leak grows, bytes a second: slowly while there is something to watch, then so fast
 * that no poll finds it before the kernel's event. The kernel compares usage with its thresholds
 * only each 128 page events (512 KiB): at 60 MiB/s that takes up to 9 ms, and a poll may come in
 * between; at 500 MiB/s it takes 1 ms.
 */
export const LEAK_RATES = {
  slow: 60 * MEBI,
  /** What it has taken when it turns fast. */
  untilBytes: 180 * MEBI,
  fast: 500 * MEBI,
} as const;

/** What the leak takes at most, bytes: more than the node has. */
export const LEAK_MAX_BYTES = 2 * NODE_BYTES;

/** How long each step may take, ms. */
export const LIMITS_MS = {
  podStart: 30_000,
  daemonReady: 30_000,
  status: 15_000,
  leak: 30_000,
  event: 2000,
  outcome: 10_000,
  recovery: 10_000,
  /** For a process to end on SIGTERM, then once more on SIGKILL, and for a cgroup to go. */
  tidy: 5000,
} as const;

/** How often the cgroups are read and the story is shown, ms. */
export const FRAME_MS = 80;

/** How long the node is shown at rest before the leak starts, ms. */
export const CALM_MS = 600;

/** The host's disks are no part of the story: their default thresholds are off, and not just dropped. */
const DISKS_OFF = ['nodefs', 'imagefs']
  .map((name) => `${name}.available<0%,${name}.inodesFree<0%`)
  .join(',');

/** What the demo runs: evictd's own arguments. */
export function daemonArguments(directory: string, socketPath: string): readonly string[] {
  return [
    'run',
    `--node-cgroup=${directory}`,
    `--eviction-hard=${THRESHOLD_TEXT},${DISKS_OFF}`,
    '--kernel-memcg-notification',
    '--eviction-pressure-transition-period=1s',
    ...PODS.map(podFlag),
    `--socket=${socketPath}`,
    '--state-dir=none',
    '--log-level=info',
  ];
}

function podFlag({ name, priority, requestBytes }: DemoPod): string {
  return `--pod=${name}=priority:${priority},request:${requestBytes / MEBI}Mi`;
}

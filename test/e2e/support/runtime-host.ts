/** What runs pods in these suites: containerd, a Docker Engine or Podman, as the tests of all of them see it. */
import type { TestNode } from '../../kernel/support/node.ts';

/** A pod of one container that a test has made. */
export interface MadePod {
  /** As evictd calls it. */
  readonly name: string;
  /** As the runtime does: a sandbox or a container. */
  readonly id: string;
  /** Relative to the root of each hierarchy. */
  readonly cgroup: string;
}

export interface RunOptions {
  readonly labels?: Readonly<Record<string, string>>;
  /** By default busybox. */
  readonly image?: string;
  /** With CRI: the cgroup, below the node's, in which its containers are made, others' too. */
  readonly sharedCgroup?: string;
  /** With CRI: the pod's cgroup, below the node's; by default one that is called after its uid. */
  readonly podCgroup?: string;
  /** With CRI. */
  readonly namespace?: string;
  readonly uid?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Where the runtime brings up again what has ended. */
  readonly restart?: 'always';
}

export interface RuntimeHost {
  /** What `--runtime` says. */
  readonly kind: 'cri' | 'docker';
  readonly socketPath: string;
  /** What evictd is to be told beside that. */
  readonly flags: readonly string[];
  /** The daemon's own pid, that is stopped or killed. */
  pid(): number;
  /** Starts the daemon again after its end. */
  start(): Promise<void>;
  /** Runs a pod within a node. */
  run(
    node: TestNode,
    name: string,
    command: readonly string[],
    options?: RunOptions,
  ): Promise<MadePod>;
  /** Whether the runtime says that it runs. */
  isUp(pod: MadePod): Promise<boolean>;
  /** With what its container has ended, as the runtime says; undefined where it has not. */
  exitCode(pod: MadePod): Promise<number | undefined>;
  /** The runtime's own way to end it at once. */
  stop(pod: MadePod): Promise<void>;
  /** Ends and removes what was made within a node, and the groups that are left of it. */
  clear(node: TestNode): Promise<void>;
  /** Ends the daemon, and all that it left. */
  remove(): Promise<void>;
}

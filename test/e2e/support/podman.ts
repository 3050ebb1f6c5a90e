/** Podman's service of Docker's API with a storage of its own, below a directory that goes with the suite. */
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, closeSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import Docker from 'dockerode';
import { until } from '../../support/wait.ts';
import { makeImages } from './image.ts';
import { end, isRunning, unmountBelow } from './left-over.ts';
import { untilAnswer } from './until-answer.ts';

const UP_LIMIT_MS = 60_000;
const DOWN_LIMIT_MS = 60_000;

export interface Podman {
  readonly socketPath: string;
  readonly docker: Docker;
  /** The service's own pid; another one after {@link start}. */
  pid(): number;
  /** Starts the service again after its end. */
  start(): Promise<void>;
  /** Ends it with all containers, and removes what it mounted. */
  remove(): Promise<void>;
}

/** @param directory short: the paths of sockets are limited */
export async function startPodman(directory: string): Promise<Podman> {
  const socketPath = path.join(directory, 'p.sock');
  mkdirSync(directory, { recursive: true });
  const program = wrapper(directory);
  const policy = path.join(directory, 'policy.json');
  writeFileSync(policy, JSON.stringify({ default: [{ type: 'insecureAcceptAnything' }] }));
  const run = (...args: readonly string[]): void => {
    const { status, stderr } = spawnSync(program, args, {
      encoding: 'utf8',
      timeout: DOWN_LIMIT_MS,
    });
    if (status !== 0) throw new Error(`podman ${args.join(' ')}: ${stderr}`);
  };
  for (const archive of Object.values(makeImages(path.join(directory, 'images')))) {
    run('load', '-q', '--signature-policy', policy, '-i', archive);
  }
  const docker = new Docker({ socketPath });
  let pid = 0;
  const start = async (): Promise<void> => {
    const log = openSync(path.join(directory, 'log'), 'a');
    const child = spawn(program, ['system', 'service', '--time=0', `unix://${socketPath}`], {
      stdio: ['ignore', log, log],
      detached: true,
    });
    child.unref();
    closeSync(log);
    pid = child.pid as number;
    await untilAnswer('podman answers', () => docker.ping(), UP_LIMIT_MS);
  };
  await start();
  return {
    socketPath,
    docker,
    pid: () => pid,
    start,
    remove: async () => {
      end(pid, 'SIGCONT');
      run('rm', '-f', '-a', '-t', '0');
      end(pid, 'SIGTERM');
      await until('podman has ended', () => !isRunning(pid), { limitMs: DOWN_LIMIT_MS });
      unmountBelow(directory);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** A program that is podman, and knows of this directory alone. */
function wrapper(directory: string): string {
  const config = path.join(directory, 'containers.conf');
  // crun refuses a host whose cgroup2 mount has a controller beside those of v1.
  writeFileSync(
    config,
    `[containers]
netns = "none"
log_driver = "k8s-file"
default_ulimits = []
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
`,
  );
  const program = path.join(directory, 'podman');
  writeFileSync(
    program,
    `#!/bin/sh
CONTAINERS_CONF='${config}' exec podman --root '${directory}/root' --runroot '${directory}/run' \\
  --tmpdir '${directory}/tmp' --storage-driver overlay --cgroup-manager cgroupfs "$@"
`,
  );
  chmodSync(program, 0o755);
  return program;
}

/** A containerd of its own, with CRI, below a directory that goes with the suite. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { until } from '../../support/wait.ts';
import { makeImages, PAUSE_IMAGE } from './image.ts';
import { end, isRunning, shimsOf, unmountBelow } from './left-over.ts';

/** How long it may take to answer, and to end, ms. */
const UP_LIMIT_MS = 30_000;
const DOWN_LIMIT_MS = 30_000;

/** How long one that is asked whether it is up may take, ms. */
const ASK_LIMIT_MS = 5000;

/** What containerd's plugin for CRI calls the namespace of Kubernetes. */
const NAMESPACE = 'k8s.io';

export interface Containerd {
  readonly socketPath: string;
  /** containerd's own pid; another one after {@link start}. */
  pid(): number;
  /** Starts it again after its end. */
  start(): Promise<void>;
  /** Ends it with all containers, and removes what it mounted. */
  remove(): Promise<void>;
}

/** @param directory short: the paths of sockets are limited */
export async function startContainerd(directory: string): Promise<Containerd> {
  const socketPath = path.join(directory, 'c.sock');
  const config = path.join(directory, 'config.toml');
  mkdirSync(directory, { recursive: true });
  writeFileSync(config, configuration(directory, socketPath));
  let pid = 0;
  const ctr = (...args: readonly string[]): string =>
    execFileSync('ctr', ['-a', socketPath, '-n', NAMESPACE, ...args], { encoding: 'utf8' });
  const answers = (): boolean =>
    spawnSync('ctr', ['-a', socketPath, 'version'], { stdio: 'ignore', timeout: ASK_LIMIT_MS })
      .status === 0;
  const start = async (): Promise<void> => {
    const log = openSync(path.join(directory, 'log'), 'a');
    const child = spawn('containerd', ['--config', config], {
      stdio: ['ignore', log, log],
      detached: true,
    });
    child.unref();
    closeSync(log);
    pid = child.pid as number;
    await until('containerd answers', answers, { limitMs: UP_LIMIT_MS, intervalMs: 50 });
  };
  const remove = async (): Promise<void> => {
    end(pid, 'SIGCONT');
    if (!answers()) await start();
    for (const task of wordsOf(ctr('tasks', 'ls', '-q'))) ctr('tasks', 'rm', '-f', task);
    for (const one of wordsOf(ctr('containers', 'ls', '-q'))) ctr('containers', 'rm', one);
    end(pid, 'SIGTERM');
    await until('containerd has ended', () => !isRunning(pid), { limitMs: DOWN_LIMIT_MS });
    // What one that crashed has left.
    for (const shim of shimsOf(socketPath)) end(shim, 'SIGKILL');
    unmountBelow(directory);
    rmSync(directory, { recursive: true, force: true });
  };
  await start();
  const images = makeImages(path.join(directory, 'images'));
  for (const archive of Object.values(images)) ctr('images', 'import', archive);
  return { socketPath, pid: () => pid, start, remove };
}

function configuration(directory: string, socketPath: string): string {
  const cri = 'plugins."io.containerd.grpc.v1.cri"';
  const runc = `${cri}.containerd.runtimes.runc`;
  return `version = 2
root = "${directory}/root"
state = "${directory}/state"
disabled_plugins = [
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.aufs",
]
[grpc]
  address = "${socketPath}"
[${cri}]
  sandbox_image = "${PAUSE_IMAGE}"
  disable_tcp_service = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  # Where root may not lower it, no container could be started.
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_hugetlb_controller = true
  tolerate_missing_hugetlb_controller = true
  stats_collect_period = 1
  [${cri}.containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
  [${runc}]
    runtime_type = "io.containerd.runc.v2"
  [${runc}.options]
    Root = "${directory}/oci"
    SystemdCgroup = false
  [${cri}.cni]
    bin_dir = "${directory}/cni/bin"
    conf_dir = "${directory}/cni/conf"
`;
}

function wordsOf(text: string): readonly string[] {
  return text.split('\n').filter((line) => line !== '');
}

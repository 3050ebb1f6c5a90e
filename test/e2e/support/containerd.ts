/** A containerd of its own, with CRI, below a directory that goes with the suite. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { until } from '../../support/wait.ts';
import { BUSYBOX_IMAGE, makeImages, PAUSE_IMAGE } from './image.ts';

/** How long it may take to answer, and to end, ms. */
const UP_LIMIT_MS = 30_000;
const DOWN_LIMIT_MS = 30_000;

/** What containerd's plugin for CRI calls the namespace of Kubernetes. */
const NAMESPACE = 'k8s.io';

export interface Containerd {
  readonly socketPath: string;
  /** containerd's own pid; another one after {@link start}. */
  pid(): number;
  /** Runs `ctr` on it, and returns what it prints. */
  ctr(...args: readonly string[]): string;
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
    spawnSync('ctr', ['-a', socketPath, 'version'], { stdio: 'ignore' }).status === 0;
  const start = async (): Promise<void> => {
    const log = openSync(path.join(directory, 'log'), 'a');
    const child = spawn('containerd', ['--config', config], {
      stdio: ['ignore', log, log],
      detached: true,
    });
    child.unref();
    pid = child.pid as number;
    await until('containerd answers', answers, { limitMs: UP_LIMIT_MS, intervalMs: 50 });
  };
  await start();
  const images = makeImages(path.join(directory, 'images'));
  for (const name of [PAUSE_IMAGE, BUSYBOX_IMAGE]) {
    ctr('images', 'import', images[name] as string);
  }
  return {
    socketPath,
    pid: () => pid,
    ctr,
    start,
    remove: async () => {
      if (!answers()) await start();
      for (const task of wordsOf(ctr('tasks', 'ls', '-q'))) ctr('tasks', 'rm', '-f', task);
      for (const one of wordsOf(ctr('containers', 'ls', '-q'))) ctr('containers', 'rm', one);
      process.kill(pid, 'SIGTERM');
      await until('containerd has ended', () => !isAlive(pid), { limitMs: DOWN_LIMIT_MS });
      endShims(socketPath);
      unmountBelow(directory);
      rmSync(directory, { recursive: true, force: true });
    },
  };
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

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.startsWith('Z') !== true;
  } catch {
    return false;
  }
}

/** What a containerd that crashed has left: its shims' command lines name the socket. */
function endShims(socketPath: string): void {
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    let words: readonly string[];
    try {
      words = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0');
    } catch {
      continue;
    }
    const isShim = words[0]?.includes('containerd-shim') === true && words.includes(socketPath);
    if (isShim) process.kill(Number(name), 'SIGKILL');
  }
}

function unmountBelow(directory: string): void {
  const mounts = readFileSync('/proc/mounts', 'utf8').split('\n');
  const points = mounts.map((line) => line.split(' ')[1] ?? '');
  const below = points.filter((point) => point.startsWith(`${directory}/`));
  for (const point of below.sort().reverse()) spawnSync('umount', ['-l', point]);
}

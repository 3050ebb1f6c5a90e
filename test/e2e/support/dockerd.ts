/** A Docker Engine of its own, with its containerd, below a directory that goes with the suite. */
import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import Docker from 'dockerode';
import { until } from '../../support/wait.ts';
import { makeImages } from './image.ts';
import { commandLine, end, isRunning, shimsOf, unmountBelow } from './left-over.ts';
import { untilAnswer } from './until-answer.ts';

/** How long it may take to answer, and to end with its containers, ms. */
const UP_LIMIT_MS = 60_000;
const DOWN_LIMIT_MS = 60_000;

export interface Dockerd {
  readonly socketPath: string;
  /** For what the tests ask of it. */
  readonly docker: Docker;
  /** dockerd's own pid; another one after {@link start}. */
  pid(): number;
  /** Starts it again after its end. */
  start(): Promise<void>;
  /** Ends it with all containers, and removes what it mounted. */
  remove(): Promise<void>;
}

export interface DockerdOptions {
  /** Whether containers live on while it is not there. */
  readonly liveRestore: boolean;
}

/** @param directory short: the paths of sockets are limited */
export async function startDockerd(
  directory: string,
  { liveRestore }: DockerdOptions,
): Promise<Dockerd> {
  const socketPath = path.join(directory, 'd.sock');
  const config = path.join(directory, 'daemon.json');
  mkdirSync(directory, { recursive: true });
  writeFileSync(config, JSON.stringify({ 'live-restore': liveRestore }));
  const docker = new Docker({ socketPath });
  let pid = 0;
  const start = async (): Promise<void> => {
    forgetContainerd(directory);
    const log = openSync(path.join(directory, 'log'), 'a');
    const child = spawn('dockerd', commandLineOf(directory, config, socketPath), {
      stdio: ['ignore', log, log],
      detached: true,
    });
    child.unref();
    closeSync(log);
    pid = child.pid as number;
    await untilAnswer('dockerd answers', () => docker.ping(), UP_LIMIT_MS);
  };
  await start();
  for (const archive of Object.values(makeImages(path.join(directory, 'images')))) {
    await drained(await docker.loadImage(archive, { quiet: true }));
  }
  return {
    socketPath,
    docker,
    pid: () => pid,
    start,
    remove: async () => {
      end(pid, 'SIGCONT');
      if (!isRunning(pid)) await start();
      for (const { Id } of await docker.listContainers({ all: true })) {
        await docker.getContainer(Id).remove({ force: true });
      }
      end(pid, 'SIGTERM');
      await until('dockerd has ended', () => !isRunning(pid), { limitMs: DOWN_LIMIT_MS });
      endContainerd(directory);
      unmountBelow(directory);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function commandLineOf(directory: string, config: string, socketPath: string): readonly string[] {
  return [
    `--config-file=${config}`,
    `--host=unix://${socketPath}`,
    `--pidfile=${directory}/pid`,
    `--data-root=${directory}/data`,
    `--exec-root=${directory}/exec`,
    '--exec-opt=native.cgroupdriver=cgroupfs',
    '--storage-driver=overlay2',
    // Where root may not lower it, no container could be started.
    '--oom-score-adjust=0',
    // No network of its own: neither a bridge nor rules of a firewall.
    '--bridge=none',
    '--iptables=false',
    '--ip6tables=false',
    '--ip-masq=false',
    '--ip-forward=false',
  ];
}

/** Ends, of a dockerd that is gone, what it had started. */
function endContainerd(directory: string): void {
  for (const shim of shimsOf(`${directory}/exec/containerd/containerd.sock`)) end(shim, 'SIGKILL');
  const pid = containerdOf(directory);
  if (pid !== undefined) end(pid, 'SIGKILL');
}

/**
 * It dies with its dockerd. Where nobody takes note of its end, its number is still there, and the next
 * dockerd would wait for it to answer.
 */
function forgetContainerd(directory: string): void {
  if (containerdOf(directory) === undefined) {
    rmSync(`${directory}/exec/containerd/containerd.pid`, { force: true });
  }
}

function containerdOf(directory: string): number | undefined {
  const its = `${directory}/exec/containerd`;
  try {
    const pid = Number(readFileSync(`${its}/containerd.pid`, 'utf8'));
    const isIts = isRunning(pid) && commandLine(pid).some((word) => word.startsWith(its));
    return isIts ? pid : undefined;
  } catch {
    return undefined;
  }
}

function drained(stream: NodeJS.ReadableStream): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.on('end', resolve).on('error', reject).resume();
  });
}

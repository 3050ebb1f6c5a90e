/** The daemon under test: the built `dist/main.js`, watched through its log and its socket. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import type { StatusDocument } from '../../../src/surfaces/status.ts';
import { within } from '../../support/wait.ts';

/** The executable; `EVICTD_MAIN` names another build of it. */
export const MAIN =
  process.env['EVICTD_MAIN'] ?? fileURLToPath(new URL('../../../dist/main.js', import.meta.url));

const READY_LIMIT_MS = 30_000;
const STOP_LIMIT_MS = 10_000;
/** How long a change that is waited for may take; all of them are due within a second. */
const CHANGE_LIMIT_MS = 15_000;
/** How often the status is asked for while something is waited for. */
const ASK_MS = 10;

/** A line of the log, as pino writes it. */
export interface LogLine {
  readonly level: string;
  /** Wall clock, ISO, to the millisecond. */
  readonly time: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface DaemonOptions {
  /** The node's cgroup directory; undefined for the host. */
  readonly node: string | undefined;
  /** Flags beside `--node-cgroup`, `--socket` and notification. */
  readonly args?: readonly string[];
  /** `--kernel-memcg-notification`; on by default. */
  readonly notify?: boolean;
  /** `default` leaves the flag out; by default a socket in a directory of its own. */
  readonly socket?: string | 'default';
  /** `--state-dir`, by default `none`; `default` leaves the flag out. */
  readonly stateDir?: string;
  /** Starts the daemon; what follows is its command line. */
  readonly wrapper?: readonly string[];
  /** Runs it as another user and group. */
  readonly uid?: number;
  /** Standard output in place of a pipe whose lines are read. */
  readonly stdout?: 'pipe' | number;
  /** Whether the lines of a pipe are read; they are by default. */
  readonly reads?: boolean;
}

export interface Daemon {
  /** evictd's own pid, also behind a wrapper. */
  readonly pid: number;
  readonly socketPath: string;
  readonly child: ChildProcess;
  /** Every line so far. */
  readonly lines: readonly LogLine[];
  readonly exited: Promise<Ending>;
  /** What was said so far, debug lines aside, in order. */
  said(): readonly string[];
  /** The first line with this message that `matches`, past or to come. */
  line(msg: string, matches?: (line: LogLine) => boolean): Promise<LogLine>;
  status(): Promise<StatusDocument>;
  /** Asks until `probe` holds. */
  statusWhen(
    what: string,
    probe: (status: StatusDocument) => boolean,
    limitMs?: number,
  ): Promise<StatusDocument>;
  /**
   * The evictions so far, once `count` have ended. Those that were given up before the first signal
   * are left out: right at a threshold the kernel's counter wavers, and its pressure may be gone.
   */
  ended(count: number, limitMs?: number): Promise<StatusDocument['evictions']>;
  /** Ends it, and says how long that took, ms; fails unless it exits with 0. */
  stop(signal?: NodeJS.Signals): Promise<number>;
}

/** A directory that goes with the test. */
export function privateDirectory(parent: string = tmpdir()): string {
  const directory = mkdtempSync(path.join(parent, 'evictd-kernel-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** The daemon's command line. */
export function runArguments(options: DaemonOptions, socketPath: string | undefined): string[] {
  return [
    MAIN,
    'run',
    ...(options.node === undefined ? [] : ['--node-cgroup', options.node]),
    ...(socketPath === undefined ? [] : ['--socket', socketPath]),
    ...(options.stateDir === 'default' ? [] : ['--state-dir', options.stateDir ?? 'none']),
    ...(options.notify === false ? [] : ['--kernel-memcg-notification']),
    ...(options.args ?? []),
  ];
}

/** Starts the daemon and waits until it is ready; it is ended with the test at the latest. */
export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  const socketPath =
    options.socket === 'default'
      ? undefined
      : (options.socket ?? path.join(privateDirectory(), 'evictd.sock'));
  const [command = process.execPath, ...before] = options.wrapper ?? [process.execPath];
  const own = options.wrapper === undefined ? [] : [process.execPath];
  const child = spawn(command, [...before, ...own, ...runArguments(options, socketPath)], {
    stdio: ['ignore', options.stdout ?? 'pipe', 'pipe'],
    ...(options.uid === undefined ? {} : { uid: options.uid, gid: options.uid }),
  });
  const daemon = watch(child, socketPath ?? '', options.reads ?? true);
  onTestFinished(() => daemon.end());
  const ready = options.stdout === undefined && options.reads !== false;
  if (ready) await daemon.line('ready', undefined, READY_LIMIT_MS);
  else await daemon.statusWhen('it is ready', isReady, READY_LIMIT_MS);
  return daemon;
}

/** Whether every threshold is armed and read, as the status tells it. */
export function isReady({ signals, thresholds, evictd }: StatusDocument): boolean {
  const armed = thresholds.every(({ notification }) => !notification.detail.startsWith('nothing'));
  return signals.length > 0 && (armed || !evictd.kernelMemcgNotification);
}

interface Watched extends Daemon {
  line(msg: string, matches?: (line: LogLine) => boolean, limitMs?: number): Promise<LogLine>;
  end(): Promise<void>;
}

function watch(child: ChildProcess, socketPath: string, reads: boolean): Watched {
  const lines: LogLine[] = [];
  let complaint = '';
  let ending: Ending | undefined;
  const waiting = new Set<() => void>();
  const look = () => {
    for (const check of waiting) check();
  };
  child.stderr?.on('data', (text: Buffer) => {
    complaint = (complaint + text.toString()).slice(-4000);
  });
  if (child.stdout !== null && reads) {
    createInterface({ input: child.stdout }).on('line', (line) => {
      lines.push(JSON.parse(line) as LogLine);
      look();
    });
  }
  const exited = new Promise<Ending>((resolve) => {
    const end = (how: Ending) => {
      ending ??= how;
      resolve(how);
      look();
    };
    child.once('close', (code, signal) => end({ code, signal }));
    child.once('error', (error) => {
      complaint += error.message;
      end({ code: null, signal: null });
    });
  });

  const line: Watched['line'] = (msg, matches = () => true, limitMs = CHANGE_LIMIT_MS) => {
    const found = new Promise<LogLine>((resolve, reject) => {
      const check = () => {
        const hit = lines.find((each) => each.msg === msg && matches(each));
        if (hit === undefined && ending === undefined) return;
        waiting.delete(check);
        if (hit !== undefined) resolve(hit);
        else reject(new Error(`evictd ended (${JSON.stringify(ending)}): ${complaint}`));
      };
      waiting.add(check);
      check();
    });
    return within(found, limitMs, `the line ${JSON.stringify(msg)}`).catch((error: Error) => {
      const last = lines.slice(-8).map((each) => JSON.stringify(each));
      throw new Error([error.message, ...last, complaint].join('\n  | '), { cause: error });
    });
  };
  const status = () => askStatus(socketPath);
  const statusWhen: Daemon['statusWhen'] = async (what, probe, limitMs = CHANGE_LIMIT_MS) => {
    const deadline = performance.now() + limitMs;
    for (;;) {
      const seen = await status().catch((error: Error) => error);
      if (!(seen instanceof Error) && probe(seen)) return seen;
      if (ending !== undefined) {
        throw new Error(`evictd ended (${JSON.stringify(ending)}): ${complaint}`);
      }
      if (performance.now() > deadline) {
        const shown = seen instanceof Error ? seen.message : JSON.stringify(seen, undefined, 1);
        throw new Error(`not within ${limitMs} ms: ${what}; status: ${shown}`);
      }
      await new Promise((resolve) => setTimeout(resolve, ASK_MS));
    }
  };
  const pidOf = () => {
    const own = lines[0]?.['pid'];
    return typeof own === 'number' ? own : (child.pid ?? Number.NaN);
  };
  const isOver = () => child.exitCode !== null || child.signalCode !== null;
  return {
    child,
    socketPath,
    lines,
    exited,
    get pid() {
      return pidOf();
    },
    said: () => lines.filter(({ level }) => level !== 'debug').map(({ msg }) => msg),
    line,
    status,
    statusWhen,
    ended: async (count, limitMs) => {
      const counted = (seen: StatusDocument) =>
        seen.evictions.filter(({ reason }) => reason !== 'pressureGone');
      const hasEnded = (seen: StatusDocument) =>
        counted(seen).filter(({ outcome }) => outcome !== null).length >= count;
      return counted(await statusWhen(`${count} evictions have ended`, hasEnded, limitMs));
    },
    stop: async (signal = 'SIGTERM') => {
      const startedMs = performance.now();
      if (!isOver()) process.kill(pidOf(), signal);
      const how = await within(exited, STOP_LIMIT_MS, `evictd ends on ${signal}`);
      if (how.code !== 0) throw new Error(`evictd: ${JSON.stringify(how)}: ${complaint}`);
      return performance.now() - startedMs;
    },
    end: async () => {
      // The reader that a test left out must not hold up the end.
      child.stdout?.destroy();
      if (isOver()) return;
      for (const pid of new Set([pidOf(), child.pid ?? pidOf()])) kill(pid);
      await within(exited, STOP_LIMIT_MS, 'evictd dies');
    },
  };
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** What `evictd status --json` prints, without the cost of a process. */
export function askStatus(socketPath: string): Promise<StatusDocument> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath, path: '/v1/status', agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => resolve(JSON.parse(text) as StatusDocument));
      response.on('error', reject);
    });
    asked.on('error', reject);
    asked.end();
  });
}

export interface Run extends Ending {
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs evictd to its end. */
export async function runEvictd(args: readonly string[], limitMs = 20_000): Promise<Run> {
  const child = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (text: Buffer) => {
    stdout += text.toString();
  });
  child.stderr.on('data', (text: Buffer) => {
    stderr += text.toString();
  });
  const closed = new Promise<Ending>((resolve) =>
    child.once('close', (code, signal) => resolve({ code, signal })),
  );
  try {
    return { ...(await within(closed, limitMs, `evictd ${args.join(' ')} ends`)), stdout, stderr };
  } finally {
    child.kill('SIGKILL');
  }
}

/**
 * What the native tests share: the addon (missing is a failure, never a skip), memory cgroups of
 * their own, a process that takes and gives back memory inside one, and waits with a limit.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, rmdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { createInterface, type Interface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished } from 'vitest';
import type { MemcgWatch, NativeAddon } from '../../src/native/index.ts';
import { requireAddon } from '../support/native.ts';

export { requireAddon };

export const MEBIBYTE = 1024 * 1024;

/** Far above what any wait here takes (milliseconds), far below vitest's own limit. */
const WAIT_MS_MAX = 4_000;
/** A program under AddressSanitizer takes some five times as long as without. */
export const PROGRAM_MS_MAX = 60_000;

const MEMORY_HIERARCHY = '/sys/fs/cgroup/memory';

/** Rejects when `promise` takes longer than `WAIT_MS_MAX`. */
export async function withLimit<T>(promise: Promise<T>, what: string): Promise<T> {
  const stop = new AbortController();
  const limit = new Promise<never>((_, reject) => {
    const timer = setTimeout(() => reject(new Error(`${what}: not in time`)), WAIT_MS_MAX);
    stop.signal.addEventListener('abort', () => clearTimeout(timer));
  });
  try {
    return await Promise.race([promise, limit]);
  } finally {
    stop.abort();
  }
}

/**
 * Two whole turns of the loop: what the kernel has reported by now has reached its listener. The
 * kernel signals an eventfd within the very charge that crosses the level, so this follows any
 * answer of a `MemoryUser`.
 */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 2; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** Creates a memory cgroup that is removed when the test has finished, unless it is gone by then. */
export function createMemoryCgroup(parent: string = MEMORY_HIERARCHY): string {
  const directory = `${parent}/evictd-test-${process.pid}-${randomUUID()}`;
  mkdirSync(directory);
  onTestFinished(() => removeCgroup(directory));
  return directory;
}

export function removeCgroup(directory: string): void {
  try {
    rmdirSync(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

/** Opens a watch that is closed when the test has finished. */
export function watch(...args: Parameters<NativeAddon['watchMemcg']>): MemcgWatch {
  const opened = requireAddon().watchMemcg(...args);
  onTestFinished(() => opened.close());
  return opened;
}

/** As `watch`; resolves when the kernel has taken the registration. */
export async function armedWatch(...args: Parameters<typeof watch>): Promise<MemcgWatch> {
  const opened = watch(...args);
  await withLimit(opened.armed, 'the registration');
  return opened;
}

/**
 * A directory where every file opens and the kernel refuses every registration with EINVAL:
 * `cgroup.event_control` belongs to `cgroup`, what would be watched to the root.
 */
export function createRefusingDirectory(cgroup: string): string {
  const directory = mkdtempSync(`${tmpdir()}/evictd-test-`);
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const watched = 'memory.usage_in_bytes';
  symlinkSync(`${MEMORY_HIERARCHY}/${watched}`, `${directory}/${watched}`);
  symlinkSync(`${cgroup}/cgroup.event_control`, `${directory}/cgroup.event_control`);
  return directory;
}

/** A listener that adds up the counters it gets, and a wait for the sum. */
export class EventCounter {
  total = 0n;
  #arrived: () => void = () => undefined;

  readonly listener = (count: bigint): void => {
    this.total += count;
    this.#arrived();
  };

  /** Resolves when at least `total` events have been reported. */
  async reaches(total: bigint): Promise<void> {
    while (this.total < total) {
      const arrived = new Promise<void>((resolve) => {
        this.#arrived = resolve;
      });
      await withLimit(arrived, `event ${total}`);
    }
  }
}

/** A child process inside a cgroup that takes and gives back memory on command. */
export class MemoryUser {
  readonly process: ChildProcess;
  readonly #answers: Interface;

  private constructor(child: ChildProcess, answers: Interface) {
    this.process = child;
    this.#answers = answers;
  }

  /** `directory` holds the unlinked file that the memory belongs to; a tmpfs cannot be reclaimed. */
  static async start(cgroup: string, directory = '/dev/shm'): Promise<MemoryUser> {
    const child = spawn(process.execPath, [programPath('memory-user'), cgroup, directory], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    // The user is killed before the cgroup is removed: hooks run in reverse order.
    onTestFinished(async () => {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGKILL');
        await once(child, 'exit');
      }
    });
    const user = new MemoryUser(child, createInterface({ input: child.stdout }));
    await withLimit(once(user.#answers, 'line'), 'the memory user starts');
    return user;
  }

  get pid(): number {
    const { pid } = this.process;
    if (pid === undefined) throw new Error('the memory user did not start');
    return pid;
  }

  /** Makes the user hold `bytes`, no more and no less; resolves when it does. */
  async hold(bytes: number): Promise<void> {
    const answered = once(this.#answers, 'line');
    this.request(bytes);
    await withLimit(answered, `the memory user holds ${bytes}`);
  }

  /** As `hold`, without waiting for the answer. */
  request(bytes: number): void {
    this.process.stdin?.write(`${bytes}\n`);
  }
}

/** A sleeping process that is killed and reaped when the test has finished. */
export function startSleeper(options: { readonly uid?: number } = {}): ChildProcess & {
  readonly pid: number;
} {
  const child = spawn('sleep', ['1000'], { stdio: 'ignore', ...options });
  const { pid } = child;
  if (pid === undefined) throw new Error('sleep did not start');
  onTestFinished(() => killAndReap(child));
  return Object.assign(child, { pid });
}

export async function killAndReap(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

/**
 * Runs one of `programs/` in a process of its own, where no other test opens descriptors, and
 * returns what it printed. Fails unless it exits with 0.
 */
export async function runProgram(
  name: string,
  args: readonly string[] = [],
  { command = [process.execPath, '--expose-gc'] }: { readonly command?: readonly string[] } = {},
): Promise<string> {
  const [file = process.execPath, ...before] = command;
  const child = spawn(file, [...before, programPath(name), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: PROGRAM_MS_MAX,
    killSignal: 'SIGKILL',
  });
  // The program removes its cgroups itself, unless it fails.
  onTestFinished(() => {
    const own = readdirSync(MEMORY_HIERARCHY).filter((group) =>
      group.startsWith(`evictd-test-${child.pid}-`),
    );
    for (const group of own) removeCgroup(`${MEMORY_HIERARCHY}/${group}`);
  });
  const output: string[] = [];
  const errors: string[] = [];
  child.stdout.setEncoding('utf8').on('data', (text: string) => output.push(text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => errors.push(text));
  const [status, signal] = await once(child, 'close');
  expect({ status, signal, errors: errors.join('') }).toEqual({
    status: 0,
    signal: null,
    errors: '',
  });
  return output.join('').trim();
}

/** The error that `action` throws; fails when it throws none. */
export function thrownBy(action: () => unknown): NodeJS.ErrnoException {
  try {
    action();
  } catch (error) {
    if (error instanceof Error) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

function programPath(name: string): string {
  return fileURLToPath(new URL(`./programs/${name}.mjs`, import.meta.url));
}

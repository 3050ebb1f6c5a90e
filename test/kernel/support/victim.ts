import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import type { TestCgroup } from '../../support/cgroup.ts';
import { within } from '../../support/wait.ts';

/** A process that takes memory and keeps its own record of times, ms on CLOCK_MONOTONIC. */
export interface Victim {
  readonly pid: number;
  /** Resolves with its exit status, or null when a signal ended it. */
  readonly exited: Promise<number | null>;
  /** Takes `bytes` more; when it began and when it was done. */
  grow(bytes: number): Promise<{ readonly startMs: number; readonly endMs: number }>;
  /** When its handler for SIGTERM ran, upon which it exits. */
  terminated(): Promise<number>;
}

const PROGRAM = fileURLToPath(new URL('victim.mjs', import.meta.url));
const ANSWER_LIMIT_MS = 20_000;

/** Starts a victim in a cgroup; it ends with the test. */
export async function startVictim(cgroup: TestCgroup): Promise<Victim> {
  const child = spawn(process.execPath, [PROGRAM, cgroup.path], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const heard = new Map<string, readonly number[]>();
  const waiting = new Map<string, (times: readonly number[]) => void>();
  createInterface({ input: child.stdout }).on('line', (line) => {
    const [name = '', ...times] = line.split(' ');
    heard.set(name, times.map(Number));
    waiting.get(name)?.(times.map(Number));
  });
  const hear = (name: string): Promise<readonly number[]> => {
    const told = new Promise<readonly number[]>((resolve) => waiting.set(name, resolve));
    const known = heard.get(name);
    return within(known ? Promise.resolve(known) : told, ANSWER_LIMIT_MS, `it says ${name}`);
  };
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  await hear('ready');
  return {
    pid: child.pid ?? Number.NaN,
    exited,
    grow: async (bytes) => {
      child.stdin.write(`${bytes}\n`);
      const [startMs = Number.NaN, endMs = Number.NaN] = await hear('grown');
      return { startMs, endMs };
    },
    terminated: async () => (await hear('term'))[0] ?? Number.NaN,
  };
}

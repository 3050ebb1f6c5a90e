/** A process that crosses a level of usage as fast as the kernel lets it, and how late evictd is. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';
import type { TestCgroup } from '../../support/cgroup.ts';
import { within } from '../../support/wait.ts';
import { compile } from './compile.ts';
import { privateDirectory } from './daemon.ts';

const START_LIMIT_MS = 30_000;

export interface Swing {
  /** Swings for as long as it was told, and says how often. */
  run(): Promise<number>;
}

/** Fills the node up to `baseBytes` of usage, and waits there. */
export async function startSwing(
  cgroup: TestCgroup,
  node: TestCgroup,
  how: { readonly baseBytes: number; readonly swingBytes: number; readonly forMs: number },
): Promise<Swing> {
  const program = compile(new URL('swing.c', import.meta.url));
  const numbers = [how.baseBytes, how.swingBytes, how.forMs].map(String);
  const child = spawn(program, [cgroup.path, node.path, ...numbers], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const line = async (limitMs: number, what: string): Promise<string> => {
    const { value } = await within(lines.next(), limitMs, what);
    if (typeof value !== 'string') throw new Error(`the swing ended before ${what}`);
    return value;
  };
  await line(START_LIMIT_MS, 'it is ready');
  return {
    run: async () => {
      child.stdin.write('.');
      return Number(await line(how.forMs + START_LIMIT_MS, 'it says how often'));
    },
  };
}

export interface Lag {
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** What starts a daemon whose event loop is watched, and what it measured once it has ended. */
export function lagMeter(): { readonly wrapper: readonly string[]; read(): Lag } {
  const file = path.join(privateDirectory(), 'lag');
  const meter = new URL('lag.mjs', import.meta.url);
  return {
    wrapper: ['env', `NODE_OPTIONS=--import=${meter}`, `EVICTD_LAG_FILE=${file}`],
    read: () => JSON.parse(readFileSync(file, 'utf8')) as Lag,
  };
}

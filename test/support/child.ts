import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { within } from './wait.ts';

/** How a child ended, and when on `performance.now()`. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly atMs: number;
}

/** A process that holds as much memory as it is told to. */
export interface MemoryChild {
  readonly pid: number;
  /** Resolves when it has ended; never rejects. */
  readonly exited: Promise<Exit>;
  /** Resolves when it gets a SIGTERM that it ignores, with the time; pending otherwise. */
  readonly terminated: Promise<number>;
  /** Touches `bytes` more; rejects when it dies over that. */
  grow(bytes: number): Promise<void>;
  /** Gives back all that it was told to hold. */
  shrink(): Promise<void>;
  /** Reads a byte of a file. */
  read(file: string): Promise<void>;
  /** Has it leave by itself. */
  exit(): Promise<Exit>;
  /** Kills it, if it still lives, and waits for its end. */
  kill(): Promise<Exit>;
}

export interface MemoryChildOptions {
  /** Directories of cgroups to join before anything is allocated, one for each hierarchy. */
  readonly cgroups?: readonly string[];
  /** What it does with SIGTERM: ends at once (the default), or goes on. */
  readonly onTerm?: 'exit' | 'ignore';
  /** Whose it is, once it has joined; the test's own by default. */
  readonly uid?: number;
}

const PROGRAM = fileURLToPath(new URL('memory-child.mjs', import.meta.url));

/** Every command is answered within this, or the test fails. */
const ANSWER_LIMIT_MS = 30_000;

/** Starts a memory child; resolves when it is in its cgroups and takes commands. */
export async function spawnMemory(options: MemoryChildOptions = {}): Promise<MemoryChild> {
  const { cgroups = [], onTerm = 'exit', uid } = options;
  const own = [JSON.stringify(cgroups), onTerm, ...(uid === undefined ? [] : [String(uid)])];
  const child = spawn(process.execPath, ['--expose-gc', PROGRAM, ...own], {
    stdio: ['pipe', 'pipe', 'pipe'],
    // Every allocation of its own is a mapping, and goes back to the kernel when it is freed.
    env: { PATH: process.env['PATH'], MALLOC_MMAP_THRESHOLD_: '65536' },
  });
  let complaint = '';
  child.stderr.on('data', (text: Buffer) => {
    complaint = (complaint + text.toString()).slice(-2000);
  });
  // Writing to one that has just died is no failure of its own: the answer that is missing is.
  child.stdin.on('error', () => undefined);

  const exited = new Promise<Exit>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal, atMs: performance.now() }));
    child.once('error', (error) => {
      complaint = error.message;
      resolve({ code: null, signal: null, atMs: performance.now() });
    });
  });
  const { answers, terminated } = listen(child);

  const ask = async (command: string | undefined) => {
    if (command !== undefined) child.stdin.write(`${command}\n`);
    const answer = await within(
      Promise.race([answers(), exited]),
      ANSWER_LIMIT_MS,
      `the memory child answers ${command ?? 'that it is ready'}`,
    );
    if (answer !== 'ok') {
      const how = answer.signal ?? `status ${answer.code}`;
      throw new Error(
        `the memory child ended (${how}) over ${command ?? 'its start'}: ${complaint}`,
      );
    }
  };

  await ask(undefined);
  return {
    pid: child.pid ?? Number.NaN,
    exited,
    terminated,
    grow: (bytes) => ask(`grow ${bytes}`),
    shrink: () => ask('shrink'),
    read: (file) => ask(`read ${file}`),
    exit: () => {
      child.stdin.write('exit\n');
      return within(exited, ANSWER_LIMIT_MS, 'the memory child exits');
    },
    kill: () => {
      child.kill('SIGKILL');
      return within(exited, ANSWER_LIMIT_MS, 'the memory child dies');
    },
  };
}

/** Splits what the child prints into answers, one for each command, and its ignored SIGTERM. */
function listen(child: ChildProcessWithoutNullStreams): {
  answers: () => Promise<'ok'>;
  terminated: Promise<number>;
} {
  const lines = createInterface({ input: child.stdout });
  let given = 0;
  let taken = 0;
  const waiting = new Map<number, () => void>();
  const terminated = new Promise<number>((resolve) => {
    lines.on('line', (line) => {
      if (line === 'term') resolve(performance.now());
      if (line !== 'ok') return;
      given += 1;
      waiting.get(given)?.();
      waiting.delete(given);
    });
  });
  const answers = () => {
    taken += 1;
    const turn = taken;
    if (turn <= given) return Promise.resolve('ok' as const);
    return new Promise<'ok'>((resolve) => waiting.set(turn, () => resolve('ok')));
  };
  return { answers, terminated };
}

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import {
  firstValueFrom,
  fromEvent,
  map,
  merge,
  type Observable,
  shareReplay,
  take,
  timer,
} from 'rxjs';
import { liveScheduler, monotonicMs } from '../../sources/live-scheduler.ts';
import { LIMITS_MS } from './plan.ts';

/** The lines that are kept for who looks later. */
const LINES_KEPT = 1000;
/** What is kept of the end of standard error, characters. */
const COMPLAINT_KEPT = 1000;

/** How a child ended. */
export interface ChildEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Why it could not even be started. */
  readonly error: string | undefined;
}

export interface OutputLine {
  readonly text: string;
  /** When it was read, monotonic ms. */
  readonly atMs: number;
}

/** A child of the demo. */
export interface Child {
  readonly name: string;
  /** NaN when it could not be started. */
  readonly pid: number;
  /** The lines of its standard output so far, then those to come. Hot, replayed. */
  readonly lines$: Observable<OutputLine>;
  /** Its end, once; replayed. */
  readonly end$: Observable<ChildEnd>;
  readonly lives: () => boolean;
  /** The end of its standard error. */
  readonly complaint: () => string;
  /** Writes a line to its standard input. */
  send(line: string): void;
  /** Ends it: by SIGTERM if that is asked for, by SIGKILL at the latest. Resolves when it is gone. */
  stop(how: 'gently' | 'atOnce'): Promise<void>;
}

/** A file of the compiled demo, by its name in this folder. */
export function demoFile(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}

/**
 * Starts `node ARGUMENTS` in a session of its own, so that Ctrl-C reaches the demo alone. Its
 * standard input is a pipe that ends with the demo.
 */
export function startChild(name: string, args: readonly string[]): Child {
  const child = spawn(process.execPath, [...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
  });
  // Writing to one that has just died is no failure of its own: its end is.
  child.stdin.on('error', () => undefined);
  let complaint = '';
  child.stderr.on('data', (text: Buffer) => {
    complaint = (complaint + text.toString()).slice(-COMPLAINT_KEPT);
  });
  const end$ = endOf(child);
  end$.subscribe();
  return {
    name,
    pid: child.pid ?? Number.NaN,
    lines$: linesOf(child),
    end$,
    lives: () => child.pid !== undefined && child.exitCode === null && child.signalCode === null,
    complaint: () => complaint.trim(),
    send: (line) => {
      child.stdin.write(`${line}\n`);
    },
    stop: (how) => stop(child, end$, how),
  };
}

type Spawned = ChildProcessByStdio<Writable, Readable, Readable>;

function linesOf(child: Spawned): Observable<OutputLine> {
  const lines$ = fromEvent(createInterface({ input: child.stdout }), 'line').pipe(
    map((line): OutputLine => ({ text: String(line), atMs: monotonicMs() })),
    shareReplay(LINES_KEPT),
  );
  lines$.subscribe();
  return lines$;
}

function endOf(child: Spawned): Observable<ChildEnd> {
  const exit$ = fromEvent(child, 'exit', (code: number | null, signal: NodeJS.Signals | null) => ({
    code,
    signal,
    error: undefined,
  }));
  const error$ = fromEvent(child, 'error', (error: Error) => ({
    code: null,
    signal: null,
    error: error.message,
  }));
  return merge(exit$, error$).pipe(take(1), shareReplay(1));
}

async function stop(child: Spawned, end$: Observable<ChildEnd>, how: 'gently' | 'atOnce') {
  const isOver = (): Promise<boolean> =>
    firstValueFrom(
      merge(
        end$.pipe(map(() => true)),
        timer(LIMITS_MS.tidy, liveScheduler).pipe(map(() => false)),
      ).pipe(take(1)),
    );
  if (how === 'gently') {
    child.kill('SIGTERM');
    if (await isOver()) return;
  }
  child.kill('SIGKILL');
  if (!(await isOver())) throw new Error(`the process ${child.pid} does not end`);
}

/** "by SIGKILL", "with exit status 2", "could not be started: …". */
export function describeEnd({ code, signal, error }: ChildEnd): string {
  if (error !== undefined) return `could not be started: ${error}`;
  return signal === null ? `with exit status ${code}` : `by ${signal}`;
}

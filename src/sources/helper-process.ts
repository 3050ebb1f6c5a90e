/** A helper that is fed over a pipe. With `commands/demo` the only place that starts a process: decision 0007. */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { getSystemErrorMap } from 'node:util';

export type ProcessEvent<Answer> =
  | { readonly kind: 'answer'; readonly answer: Answer }
  /** It is gone, or could not be started. The last event. */
  | { readonly kind: 'ended'; readonly reason: string };

export interface HelperProcess {
  /** NaN when it could not be started. */
  readonly pid: number;
  send(request: Buffer): void;
  /**
   * Kills it and lets go of it: it holds up nothing from then on, and no answer comes any more. Its end
   * is told when the kernel has it.
   */
  end(): void;
}

/** Takes the next bytes and gives the answers that are whole by now; undefined when these are none. */
export type AnswerReader<Answer> = (bytes: Buffer) => readonly Answer[] | undefined;

/** Where `npm install` builds a helper: two levels up from src/sources and from dist/sources alike. */
export function helperPath(name: string): string {
  return fileURLToPath(new URL(`../../build/Release/${name}`, import.meta.url));
}

/**
 * Starts a helper. It keeps no event loop alive, has no environment, and the root as its directory, so
 * that it pins no mount. Never throws, and never tells anything before it has returned.
 */
export function startProcess<Answer>(
  file: string,
  reader: AnswerReader<Answer>,
  tell: (event: ProcessEvent<Answer>) => void,
): HelperProcess {
  try {
    const child = spawn(file, [], { cwd: '/', env: {}, stdio: ['pipe', 'pipe', 'ignore'] });
    return control(child, path.basename(file), reader, tell);
  } catch (error) {
    // Node throws what it does not expect of a start, ENOMEM for one, and emits the rest.
    const reason = error instanceof Error ? error.message : String(error);
    process.nextTick(() => tell({ kind: 'ended', reason }));
    return { pid: Number.NaN, send: () => undefined, end: () => undefined };
  }
}

function control<Answer>(
  child: ChildProcess,
  name: string,
  reader: AnswerReader<Answer>,
  tell: (event: ProcessEvent<Answer>) => void,
): HelperProcess {
  // Sockets in truth; none at all where there was no descriptor for them.
  const stdin = child.stdin as Socket | null | undefined;
  const stdout = child.stdout as Socket | null | undefined;
  let hasEnded = false;
  let wasEnded = false;
  const ended = (reason: string): void => {
    if (hasEnded) return;
    hasEnded = true;
    tell({ kind: 'ended', reason });
  };
  const end = (): void => {
    if (wasEnded) return;
    wasEnded = true;
    stdin?.destroy();
    stdout?.destroy();
    child.kill('SIGKILL');
  };
  child.unref();
  stdin?.unref();
  stdout?.unref();
  // Writing to one that has just died is no failure of its own: its end is told.
  stdin?.on('error', () => undefined);
  stdout?.on('error', () => undefined);
  stdout?.on('data', (bytes: Buffer) => {
    if (wasEnded) return;
    const answers = reader(bytes);
    if (answers === undefined) {
      end();
      ended(`${name} does not answer as it should`);
      return;
    }
    for (const answer of answers) tell({ kind: 'answer', answer });
  });
  child.on('error', (error) => ended(error.message));
  // Not at its exit: what it has said before that may still be in the pipe.
  child.once('close', (code, signal) =>
    ended(`${name} ended ${signal === null ? `with status ${code}` : `by ${signal}`}`),
  );
  return {
    pid: child.pid ?? Number.NaN,
    send: (request) => {
      stdin?.write(request);
    },
    end,
  };
}

/** A number of `errno` as Node has it; libuv does not know every number. */
export function errorText(errorNumber: number): string {
  const [name, text] = getSystemErrorMap().get(-errorNumber) ?? [];
  return name === undefined ? `error ${errorNumber}` : `${name}: ${text}`;
}

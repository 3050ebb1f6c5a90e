#!/usr/bin/env node
import { inspect } from 'node:util';
import { execute, parseCommandLine } from './commands/command-line.ts';
import { describeError, ERRORS, EvictdError, escapeControl } from './core/errors.ts';

/**
 * How long what a command leaves behind may hold up the end of the process, in ms: a call that
 * hangs in the kernel would do so for ever.
 */
const LINGER_MS = 200;

/** Runs the command line `argv`; resolves to the exit status, its errors said on stderr. */
async function main(argv: readonly string[]): Promise<number> {
  try {
    return await execute(parseCommandLine(argv));
  } catch (error) {
    process.stderr.write(`evictd: ${errorText(error)}\n`);
    return error instanceof EvictdError ? error.exitStatus : ERRORS.EVICTD_INTERNAL.exitStatus;
  }
}

/** One line with the code; what should not have happened comes with stack and cause. */
function errorText(error: unknown): string {
  if (error instanceof EvictdError && error.code !== 'EVICTD_INTERNAL') {
    return `${describeError(error)} [${error.code}]`;
  }
  return `${inspect(error).split('\n').map(escapeControl).join('\n')} [EVICTD_INTERNAL]`;
}

/** A reader that has gone away (`evictd --help | head -1`) is no error, and ends no daemon. */
function isClosedPipe(error: NodeJS.ErrnoException): boolean {
  return error.code === 'EPIPE';
}

/** Only the short commands write here: the daemon's lines go their own way. */
function failOutput(error: NodeJS.ErrnoException): void {
  if (isClosedPipe(error)) return;
  const failure = new EvictdError('EVICTD_OUTPUT', `standard output: ${error.message}`);
  process.stderr.write(`evictd: ${errorText(failure)}\n`);
  process.exit(failure.exitStatus);
}

process.stdout.on('error', failOutput);
// There is nowhere left to say that.
process.stderr.on('error', () => undefined);
process.exitCode = await main(process.argv.slice(2));
setTimeout(() => process.exit(), LINGER_MS).unref();

import { describeError, EvictdError } from '../core/errors.ts';

/**
 * Writes to standard output and waits until it was taken, however slow its reader is. False when the
 * reader has gone, which is no error: what would come after is not wanted.
 *
 * @throws EvictdError EVICTD_OUTPUT where it cannot be written for another reason
 */
export function writeOut(text: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const end = (error?: Error | null): void => {
      if (error === undefined || error === null) resolve(true);
      else if (isGone(error)) resolve(false);
      else reject(failure(error));
    };
    try {
      process.stdout.write(text, end);
    } catch (error) {
      // A file is written at once.
      end(error instanceof Error ? error : new Error(String(error)));
    }
  });
}

function isGone(error: NodeJS.ErrnoException): boolean {
  return error.code === 'EPIPE' || error.code === 'ERR_STREAM_DESTROYED';
}

function failure(error: Error): EvictdError {
  return new EvictdError('EVICTD_OUTPUT', `standard output: ${error.message}`, {}, error);
}

/** One line with the code, as `main.ts` says an error that ends a command. */
export function errorLine(error: EvictdError): string {
  return `evictd: ${describeError(error)} [${error.code}]\n`;
}

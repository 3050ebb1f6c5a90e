import { EvictdError, escapeControl } from '../core/errors.ts';

/** What is shown of the reason that a daemon gives, characters. */
const REASON_LENGTH = 200;

/** That no daemon answers on its socket: nobody listens, or somebody does who cannot be asked. */
export function unanswered(socketPath: string, cause: unknown): EvictdError {
  if (cause instanceof EvictdError) return cause;
  const why = cause instanceof Error ? cause.message : String(cause);
  return new EvictdError(
    isAbsent(cause) ? 'EVICTD_NOT_RUNNING' : 'EVICTD_UNREACHABLE',
    `no daemon answers: ${why}`,
    placeOf(socketPath),
    cause,
  );
}

/**
 * That the daemon answers, and not with what it was asked for.
 *
 * @param body what came with the status: `{"error": "…"}` from a daemon
 */
export function refusedWith(
  socketPath: string,
  statusCode: number | undefined,
  body: string,
): EvictdError {
  const reason = errorIn(body);
  const status = `HTTP status ${statusCode}`;
  const why = reason === undefined ? status : `${reason} (${status})`;
  return answered(socketPath, `the daemon answers, but refuses: ${why}`);
}

/** That what the daemon answers is more than is read. */
export function tooLong(socketPath: string): EvictdError {
  return answered(socketPath, 'the daemon answers, but its answer is too long');
}

/** That something answers which is no daemon, or one of another version. */
export function foreign(socketPath: string): EvictdError {
  return answered(socketPath, 'what answers is no evictd of this version');
}

/** That what the daemon answers makes nothing together. */
export function unusable(socketPath: string, why: string, cause: unknown): EvictdError {
  return answered(socketPath, why, cause);
}

function answered(socketPath: string, message: string, cause?: unknown): EvictdError {
  return new EvictdError('EVICTD_UNREACHABLE', message, placeOf(socketPath), cause);
}

function placeOf(socketPath: string) {
  return { source: '--socket', value: socketPath } as const;
}

/** Nobody listens: all else may be a daemon that is well and cannot be asked. */
function isAbsent(cause: unknown): boolean {
  const { code } = cause as NodeJS.ErrnoException;
  return code === 'ENOENT' || code === 'ECONNREFUSED';
}

/** It comes from outside, and may be anything. */
function errorIn(body: string): string | undefined {
  try {
    const { error } = (JSON.parse(body) ?? {}) as { readonly error?: unknown };
    return typeof error === 'string' ? escapeControl(error.slice(0, REASON_LENGTH)) : undefined;
  } catch {
    return undefined;
  }
}

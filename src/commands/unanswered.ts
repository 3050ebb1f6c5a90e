import { EvictdError } from '../core/errors.ts';

/** That no daemon answers on its socket: nobody listens, or somebody does who cannot be asked. */
export function unanswered(socketPath: string, cause: unknown): EvictdError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new EvictdError(
    isAbsent(cause) ? 'EVICTD_NOT_RUNNING' : 'EVICTD_UNREACHABLE',
    `no daemon answers: ${why}`,
    { source: '--socket', value: socketPath },
    cause,
  );
}

/** Nobody listens: all else may be a daemon that is well and cannot be asked. */
function isAbsent(cause: unknown): boolean {
  const { code } = cause as NodeJS.ErrnoException;
  return code === 'ENOENT' || code === 'ECONNREFUSED';
}

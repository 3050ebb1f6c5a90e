/** What people are told of the usual reasons for which a file cannot be read. */
const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  EISDIR: 'is a directory',
  EACCES: 'may not be read: permission denied',
  EPERM: 'may not be read: operation not permitted',
  ENOTDIR: 'a part of its path is no directory',
  ELOOP: 'its symbolic links lead in a circle, or are too many',
  ENAMETOOLONG: 'its path is too long',
};

/**
 * Why a file cannot be read, in words.
 *
 * @param error what reading it threw: a system error, whose code is said where it is an unusual one
 */
export function readFailure(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  const reason = code !== undefined && Object.hasOwn(REASONS, code) ? REASONS[code] : undefined;
  return reason ?? `cannot be read: ${code ?? String(error)}`;
}

import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { EvictdError } from '../core/errors.ts';
import { readFailure } from './read-failure.ts';

/**
 * The largest configuration file, in bytes: of the worst text a parser takes seconds for this much. A
 * thousand rules for pods fit in.
 */
export const MAX_FILE_BYTES = 256 * 1024;

/**
 * The text of a configuration file, which is a regular one and UTF-8. Never waits, also not at a fifo.
 *
 * @throws EvictdError EVICTD_CONFIG_FILE with the file as its place's source
 */
export function readConfigFile(file: string): string {
  if (file === '') throw refused(file, 'an empty path', '--config');
  if (file.includes('\0')) throw refused(file, 'a path has no NUL', '--config');
  let descriptor: number;
  try {
    descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch (error) {
    throw unreadable(file, error);
  }
  try {
    return decode(file, readBounded(file, descriptor));
  } catch (error) {
    throw error instanceof EvictdError ? error : unreadable(file, error);
  } finally {
    closeSync(descriptor);
  }
}

function readBounded(file: string, descriptor: number): Buffer {
  const stats = fstatSync(descriptor);
  if (stats.isDirectory()) throw refused(file, 'is a directory');
  if (!stats.isFile()) throw refused(file, 'no regular file');
  const buffer = Buffer.allocUnsafe(MAX_FILE_BYTES + 1);
  let length = 0;
  while (length <= MAX_FILE_BYTES) {
    const read = readSync(descriptor, buffer, length, buffer.length - length, null);
    if (read === 0) return buffer.subarray(0, length);
    length += read;
  }
  throw refused(file, `larger than ${MAX_FILE_BYTES} bytes`);
}

function decode(file: string, bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw refused(file, 'no UTF-8 text');
  }
}

function unreadable(file: string, error: unknown): EvictdError {
  return new EvictdError('EVICTD_CONFIG_FILE', readFailure(error), { source: file }, error);
}

function refused(file: string, message: string, source = file): EvictdError {
  return new EvictdError('EVICTD_CONFIG_FILE', message, {
    source,
    ...(source === file ? {} : { value: file }),
  });
}

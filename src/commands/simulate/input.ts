import { isUtf8 } from 'node:buffer';
import { createReadStream } from 'node:fs';
import { readFailure } from '../../config/read-failure.ts';
import { EvictdError } from '../../core/errors.ts';

/** What stands for standard input. */
export const STDIN = '-';

/** The largest scenario, in bytes, and so the longest line of many. */
export const MAX_SCENARIO_BYTES = 64 * 2 ** 20;

const CHUNK_BYTES = 256 * 1024;

const NEWLINE = 0x0a;

/**
 * The bytes of a file, or of standard input for `-`, as they come.
 *
 * @throws EvictdError EVICTD_SCENARIO, with the file as its place's source
 */
export async function* chunksOf(file: string): AsyncGenerator<Buffer> {
  if (file === '' || file.includes('\0')) throw unreadable(file, 'no path');
  const stream =
    file === STDIN ? process.stdin : createReadStream(file, { highWaterMark: CHUNK_BYTES });
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) yield chunk;
  } catch (error) {
    if (error instanceof EvictdError) throw error;
    if ((error as NodeJS.ErrnoException).code === undefined) throw error;
    throw unreadable(file, readFailure(error), error);
  }
}

function unreadable(file: string, message: string, cause?: unknown): EvictdError {
  return new EvictdError('EVICTD_SCENARIO', message, { source: sourceOf(file) }, cause);
}

/** How errors call a file. */
export function sourceOf(file: string): string {
  return file === STDIN ? 'standard input' : file;
}

/**
 * The text of a whole file.
 *
 * @throws EvictdError EVICTD_SCENARIO, with the file as its place's source
 */
export async function textOf(file: string): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of chunksOf(file)) {
    length += chunk.length;
    if (length > MAX_SCENARIO_BYTES) {
      throw unreadable(file, `larger than ${MAX_SCENARIO_BYTES} bytes`);
    }
    chunks.push(chunk);
  }
  const text = decode(Buffer.concat(chunks));
  if (text === undefined) throw unreadable(file, 'no UTF-8 text');
  return text;
}

/** Without the byte order mark that some editors put first; undefined for what is no UTF-8. */
export function decode(bytes: Buffer): string | undefined {
  if (!isUtf8(bytes)) return undefined;
  const text = bytes.toString('utf8');
  return text.startsWith('\ufeff') ? text.slice(1) : text;
}

/** A line of bytes without its end, or one that is longer than the limit, of which nothing is kept. */
export type Line = Buffer | 'tooLong';

/**
 * The lines of a stream, those that each chunk completes at a time, so that what can be answered is
 * answered before more is waited for. At most a line and a chunk are held.
 */
export async function* linesOf(
  chunks: AsyncIterable<Buffer>,
  limitBytes = MAX_SCENARIO_BYTES,
): AsyncGenerator<readonly Line[]> {
  let parts: Buffer[] = [];
  let length = 0;
  const take = (part: Buffer): void => {
    length += part.length;
    if (length > limitBytes) parts = [];
    else parts.push(part);
  };
  const end = (): Line => {
    const [only = Buffer.alloc(0)] = parts;
    const line = parts.length > 1 ? Buffer.concat(parts) : only;
    const isTooLong = length > limitBytes;
    parts = [];
    length = 0;
    return isTooLong ? 'tooLong' : line;
  };
  for await (const chunk of chunks) {
    const lines: Line[] = [];
    let start = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, start)) {
      take(chunk.subarray(start, at));
      lines.push(end());
      start = at + 1;
    }
    if (start < chunk.length) take(chunk.subarray(start));
    if (lines.length > 0) yield lines;
  }
  if (length > 0) yield [end()];
}

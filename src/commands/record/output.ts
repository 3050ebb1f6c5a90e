import { randomUUID } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import path from 'node:path';
import { EvictdError } from '../../core/errors.ts';

const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
const STREAM = constants.O_WRONLY | constants.O_NOCTTY;

/** Where a recording is written to. */
export interface RecordingOutput {
  /** @throws EvictdError EVICTD_OUTPUT; a file is as it was then */
  write(text: string): void;
  /** Gives up what was not written. */
  close(): void;
}

/**
 * A file is there as a whole or not at all: written under another name beside it, then renamed. That is
 * tried at once, so that who may not write there is told before anything is recorded; meanwhile nothing
 * is left there that a signal could leave behind.
 *
 * A character device or a FIFO is written to, as a shell would; of a FIFO a reader is awaited. Any other
 * link is refused, not followed: whoever may plant it would choose which file is replaced.
 *
 * @throws EvictdError EVICTD_OUTPUT
 */
export function fileOutput(file: string): RecordingOutput {
  const failing = <T>(act: () => T): T => {
    try {
      return act();
    } catch (error) {
      throw new EvictdError(
        'EVICTD_OUTPUT',
        reasonOf(error),
        { source: '--output', value: file },
        error,
      );
    }
  };
  return failing(() => {
    if (kindOf(file) === 'stream') {
      const descriptor = openStream(file);
      return {
        write: (text) => failing(() => writeAll(descriptor, text)),
        close: () => closeSync(descriptor),
      };
    }
    withTemporary(file, () => undefined);
    return {
      write: (text) =>
        failing(() =>
          withTemporary(file, (descriptor, temporary) => {
            writeAll(descriptor, text);
            fsyncSync(descriptor);
            // A recording may take days: it may be another thing by now.
            if (kindOf(file) === 'stream') throw new Error('no regular file any more');
            renameSync(temporary, file);
          }),
        ),
      close: () => undefined,
    };
  });
}

/** What is to be replaced, which may not be there, or what is written to. */
function kindOf(file: string): 'file' | 'stream' {
  if (file === '') throw new Error('no path');
  if (file.endsWith('/')) throw new Error('a directory');
  const own = lstatSync(file, { throwIfNoEntry: false });
  const isLink = own?.isSymbolicLink() ?? false;
  const found = isLink ? statSync(file, { throwIfNoEntry: false }) : own;
  if (found?.isCharacterDevice() || found?.isFIFO()) return 'stream';
  if (isLink) throw new Error(`a link to ${readlinkSync(file)}: name the file itself`);
  if (own === undefined || own.isFile()) return 'file';
  throw new Error(own.isDirectory() ? 'a directory' : 'neither a file nor what can be written to');
}

function openStream(file: string): number {
  const descriptor = openSync(file, STREAM);
  const found = fstatSync(descriptor);
  if (found.isCharacterDevice() || found.isFIFO()) return descriptor;
  closeSync(descriptor);
  throw new Error('was exchanged while it was opened');
}

/** A new file beside `file`, for as long as `act` takes. */
function withTemporary(file: string, act: (descriptor: number, temporary: string) => void): void {
  // A name that nobody can guess, and not made longer by the file's own.
  const temporary = path.join(path.dirname(file), `.evictd-record-${randomUUID()}`);
  const descriptor = openSync(temporary, NEW_FILE);
  try {
    act(descriptor, temporary);
  } finally {
    closeSync(descriptor);
    // Where it was renamed there is none.
    rmSync(temporary, { force: true });
  }
}

function writeAll(descriptor: number, text: string): void {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at);
}

/** Without the call and its path, which is the temporary one's. */
function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.replace(/, [a-z]+( '.*)?$/s, '');
}

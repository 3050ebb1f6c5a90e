import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import path from 'node:path';
import { EvictdError } from '../../core/errors.ts';

/** Where a recording is written to. */
export interface RecordingOutput {
  /** @throws EvictdError EVICTD_OUTPUT; the file is as it was then */
  write(text: string): void;
  /** Gives up what was not written. */
  close(): void;
}

/**
 * A file that is there as a whole or not at all: written under another name beside it, then renamed.
 * That name is taken at once, so that who may not write there is told before anything is recorded.
 *
 * @throws EvictdError EVICTD_OUTPUT
 */
export function fileOutput(file: string): RecordingOutput {
  const temporary = path.join(path.dirname(file), `.${path.basename(file)}.${process.pid}`);
  const failing = <T>(act: () => T): T => {
    try {
      return act();
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new EvictdError('EVICTD_OUTPUT', why, { source: '--output', value: file }, error);
    }
  };
  let descriptor: number | undefined = failing(() => openSync(temporary, 'w'));
  const close = (): void => {
    if (descriptor === undefined) return;
    closeSync(descriptor);
    descriptor = undefined;
    rmSync(temporary, { force: true });
  };
  return {
    write: (text) =>
      failing(() => {
        if (descriptor === undefined) return;
        const bytes = Buffer.from(text);
        for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at);
        fsyncSync(descriptor);
        renameSync(temporary, file);
      }),
    close,
  };
}

import { closeSync, constants, openSync, readSync } from 'node:fs';

/** The largest control file that is read whole; a `cgroup.procs` of 100,000 processes fits. */
export const LARGEST_FILE_BYTES = 1 << 20;

/** One buffer for all readings: they are synchronous, and each is decoded before the next. */
let buffer = Buffer.allocUnsafeSlow(16 * 1024);

/** A kernel control file (cgroupfs, procfs) that is kept open and read afresh each time. */
export interface ControlFile {
  /** The whole text. Throws what `read(2)` gives: ENODEV once the cgroup is gone. */
  read(): string;
  /**
   * The same in one call, for the files of the memory controller: the kernel gives a file that is
   * one record whole, unless the buffer is too small for it.
   */
  readRecord(): string;
  close(): void;
}

/** Opens a control file for reading, close-on-exec. Throws what `open(2)` gives. */
export function openControlFile(path: string | Buffer): ControlFile {
  const fd = openSync(path, constants.O_RDONLY);
  return {
    read: () => readWhole(fd),
    readRecord: () => readRecord(fd),
    close: () => closeSync(fd),
  };
}

/** Opens, reads and closes: for files whose content is cached for an open descriptor. */
export function readControlFile(path: string | Buffer): string {
  const fd = openSync(path, constants.O_RDONLY);
  try {
    return readWhole(fd);
  } finally {
    closeSync(fd);
  }
}

/** The same for a file that holds paths, as a person wrote them: UTF-8 rather than one character a byte. */
export function readPathsFile(path: string): string {
  return Buffer.from(readControlFile(path), 'latin1').toString('utf8');
}

/** Opens, reads once and closes: for a file that the kernel gives whole, such as a number. */
export function readControlRecord(path: string | Buffer): string {
  const fd = openSync(path, constants.O_RDONLY);
  try {
    return readRecord(fd);
  } finally {
    closeSync(fd);
  }
}

function readRecord(fd: number): string {
  const count = readSync(fd, buffer, 0, buffer.length, 0);
  return count < buffer.length ? buffer.toString('latin1', 0, count) : readWhole(fd);
}

/** Reads to the end: the kernel's seq files give a page at a time, so a short read means nothing. */
function readWhole(fd: number): string {
  let length = 0;
  for (;;) {
    if (length === buffer.length) growBuffer();
    const count = readSync(fd, buffer, length, buffer.length - length, length);
    if (count === 0) return buffer.toString('latin1', 0, length);
    length += count;
  }
}

function growBuffer(): void {
  if (buffer.length >= LARGEST_FILE_BYTES)
    throw new RangeError(`a control file exceeds ${LARGEST_FILE_BYTES} bytes`);
  const larger = Buffer.allocUnsafeSlow(buffer.length * 2);
  buffer.copy(larger);
  buffer = larger;
}

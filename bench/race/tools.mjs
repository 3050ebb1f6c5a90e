// @ts-check
// The two C programs, compiled once per process, and the race's temporary files.
import { execFileSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdtempSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const COMPILE_LIMIT_MS = 60_000;
const CHUNK_BYTES = 2 ** 20;

/**
 * @typedef {object} Tools
 * @property {string} leak
 * @property {string} floor
 */

/** @type {Tools | undefined} */
let compiled;

/**
 * The paths of the compiled programs. Needs cc (gcc or clang).
 * @returns {Tools}
 */
export function tools() {
  compiled ??= compileAll(temporaryDirectory(os.tmpdir()));
  return compiled;
}

/**
 * @param {string} directory
 * @returns {Tools}
 */
function compileAll(directory) {
  return { leak: compile(directory, 'leak'), floor: compile(directory, 'floor') };
}

/**
 * @param {string} directory
 * @param {string} name
 * @returns {string}
 */
function compile(directory, name) {
  const source = fileURLToPath(new URL(`${name}.c`, import.meta.url));
  const program = path.join(directory, name);
  execFileSync('cc', ['-O2', '-Wall', '-Wextra', '-o', program, source], {
    stdio: ['ignore', 'inherit', 'inherit'],
    timeout: COMPILE_LIMIT_MS,
  });
  return program;
}

/** @type {string | undefined} */
let scratch;

/**
 * Where the leaks keep their records: in memory, since the write-back of a disk's file would make
 * the leak fault on its own record in the middle of the race.
 * @returns {string}
 */
export function scratchDirectory() {
  scratch ??= temporaryDirectory(existsSync('/dev/shm') ? '/dev/shm' : os.tmpdir());
  return scratch;
}

/** @type {string | undefined} */
let caches;

/**
 * A file of `bytes` zeros that is out of the page cache, so that whoever reads it next is charged
 * for it and its pages stay on the inactive list. In /var/tmp, which is on a disk: the pages of a
 * file on tmpfs are no page cache.
 * @param {number} bytes
 * @returns {string}
 */
export function uncachedFile(bytes) {
  caches ??= temporaryDirectory('/var/tmp');
  const file = path.join(caches, String(bytes));
  if (!existsSync(file)) {
    writeZeros(`${file}.part`, bytes);
    renameSync(`${file}.part`, file);
  }
  writeFileSync('/proc/sys/vm/drop_caches', '1');
  return file;
}

/**
 * @param {string} file
 * @param {number} bytes
 */
function writeZeros(file, bytes) {
  const fd = openSync(file, 'w', 0o600);
  try {
    const zeros = Buffer.alloc(CHUNK_BYTES);
    for (let at = 0; at < bytes; at += CHUNK_BYTES) {
      writeSync(fd, zeros, 0, Math.min(CHUNK_BYTES, bytes - at));
    }
    fsyncSync(fd); // dirty pages are not dropped
  } finally {
    closeSync(fd);
  }
}

/**
 * A new directory that is removed when this process exits.
 * @param {string} parent
 * @returns {string}
 */
function temporaryDirectory(parent) {
  const directory = mkdtempSync(path.join(parent, 'evictd-race-'));
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

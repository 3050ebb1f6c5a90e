/** The state file: its format, and how it is read, written and set aside. */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import {
  type FileHandle,
  lstat,
  mkdir,
  open,
  readlink,
  rename,
  stat,
  unlink,
} from 'node:fs/promises';
import path from 'node:path';
import { parseSnapshot, type Snapshot } from '../core/snapshot.ts';
import type { StateStore } from '../ports/state-store.ts';

/** The version of the format: one that is not this one is set aside. */
export const STATE_VERSION = 1;

/** The largest file that is read or written, bytes. */
export const LARGEST_STATE_BYTES = 2 ** 20;

/** How many files that could not be used are kept; the oldest go. */
export const SET_ASIDE = 3;

/** How much of a node's path names its file, hexadecimal digits. */
const NAME_DIGITS = 16;

const FILE_MODE = 0o600;
const DIRECTORY_MODE = 0o700;
const PARENT_MODE = 0o755;
const OTHERS_WRITE = 0o022;
const STICKY = 0o1000;

/** Who writes a state file: a number of a process alone would soon be another's. */
export interface Writer {
  readonly pid: number;
  /** As `/proc/[pid]/stat` has it. */
  readonly startTime: string;
}

export interface StateFileInputs {
  readonly directory: string;
  /** What the state is of: the node's cgroup. */
  readonly node: string;
  /** What a dry run finds is kept apart: it may run beside the daemon that acts. */
  readonly dryRun: boolean;
  readonly writer: Writer;
  /** Whether that process is there, and is the one that is meant. */
  readonly lives: (writer: Writer) => boolean;
}

/** What was there at the start. */
export type FoundState =
  | { readonly kind: 'none' }
  | { readonly kind: 'state'; readonly snapshot: Snapshot }
  /** What could not be used, and where it is now: undefined where it could not even be moved. */
  | { readonly kind: 'setAside'; readonly reason: string; readonly file: string | undefined };

export interface StateFile extends StateStore {
  /**
   * Makes the directory and reads what is there; what cannot be used is set aside.
   *
   * Rejects where the directory cannot be made or written, the file cannot be read, or another evictd
   * that lives keeps its state there.
   */
  open(): Promise<FoundState>;
}

/** The name of a node's file: its path, whatever that holds, is no part of it. */
export function stateFileName(node: string, dryRun: boolean): string {
  const digits = createHash('sha256').update(node).digest('hex').slice(0, NAME_DIGITS);
  return `state-${digits}${dryRun ? '.dry-run' : ''}`;
}

/** The file as bytes: a line with version and checksum, then one of JSON that both are of. */
export function encodeState(node: string, writer: Writer, snapshot: Snapshot): Buffer {
  let { evictions } = snapshot;
  for (;;) {
    const body = `${JSON.stringify({ node, writer, snapshot: { ...snapshot, evictions } })}\n`;
    const bytes = Buffer.from(`${headOf(STATE_VERSION, Buffer.from(body))}${body}`);
    if (bytes.length <= LARGEST_STATE_BYTES || evictions.length === 0) return bytes;
    evictions = evictions.slice(Math.ceil(evictions.length / 2));
  }
}

function headOf(version: number, body: Buffer): string {
  const sum = createHash('sha256').update(`${version}\n`).update(body).digest('hex');
  return `evictd-state ${version} ${sum}\n`;
}

const HEAD = /^evictd-state (\d{1,9}) [0-9a-f]{64}\n/;
const LONGEST_HEAD = 100;

/** What a file holds, or why that is nothing which can be used. */
export function decodeState(
  bytes: Buffer,
  node: string,
): { readonly snapshot: Snapshot; readonly writer: Writer } | { readonly fault: string } {
  const head = HEAD.exec(bytes.toString('latin1', 0, LONGEST_HEAD));
  if (head === null) return { fault: 'damaged, or no state of evictd' };
  const version = Number(head[1]);
  if (version !== STATE_VERSION)
    return { fault: `of version ${version}: this evictd knows version ${STATE_VERSION}` };
  const body = bytes.subarray(head[0].length);
  if (headOf(version, body) !== head[0]) return { fault: 'damaged: its checksum does not hold' };
  return contentOf(body, node);
}

function contentOf(body: Buffer, node: string): ReturnType<typeof decodeState> {
  const content = parseJson(body.toString('utf8'));
  if (content === undefined) return { fault: 'no JSON' };
  const { node: of, writer, snapshot } = content;
  if (of !== node) return { fault: `of another node: ${JSON.stringify(of)}` };
  if (!isWriter(writer)) return { fault: 'without its writer' };
  const parsed = parseSnapshot(snapshot);
  return 'fault' in parsed ? parsed : { snapshot: parsed.snapshot, writer };
}

function parseJson(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

function isWriter(value: unknown): value is Writer {
  if (typeof value !== 'object' || value === null) return false;
  const { pid, startTime } = value as Partial<Record<keyof Writer, unknown>>;
  return Number.isSafeInteger(pid) && typeof startTime === 'string';
}

/**
 * The state file of a node. Nothing is touched before `open` or `write`.
 *
 * It is replaced whole: written beside it under a name of its own, flushed, renamed, and the directory
 * flushed. Links are not followed, but for the directory itself, which is the administrator's to place.
 */
export function stateFile(inputs: StateFileInputs): StateFile {
  const { directory, node, writer } = inputs;
  const file = path.join(directory, stateFileName(node, inputs.dryRun));
  let rival: Writer | undefined;
  let last: Promise<void> = Promise.resolve();
  return {
    path: file,
    open: async () => {
      await prepareDirectory(directory);
      const found = await readState(file, node);
      if (found === undefined) return { kind: 'none' };
      if ('fault' in found) {
        return { kind: 'setAside', reason: found.fault, file: await setAside(file) };
      }
      if (inputs.lives(found.writer)) {
        rival = found.writer;
        throw new Error(takenBy(rival));
      }
      return { kind: 'state', snapshot: found.snapshot };
    },
    write: (snapshot) => {
      const next = async (): Promise<void> => {
        if (rival !== undefined && inputs.lives(rival)) throw new Error(takenBy(rival));
        rival = undefined;
        await prepareDirectory(directory);
        await replace(directory, file, encodeState(node, writer, snapshot));
      };
      // One after the other, whether the one before failed or not.
      const written = last.then(next, next);
      last = written.catch(() => undefined);
      return written;
    },
  };
}

function takenBy({ pid }: Writer): string {
  return `another evictd for this node, process ${pid}, keeps its state there`;
}

/** Makes the directory, for its owner alone; one in which others could exchange the file is refused. */
async function prepareDirectory(directory: string): Promise<void> {
  await mkdir(path.dirname(directory), { recursive: true, mode: PARENT_MODE });
  await mkdir(directory, { mode: DIRECTORY_MODE }).catch(unless('EEXIST'));
  const found = await stat(directory);
  if (!found.isDirectory()) throw new Error(`${directory} is no directory`);
  if (found.uid !== 0 && found.uid !== process.geteuid?.())
    throw new Error(`${directory} belongs to another user, ${found.uid}`);
  if ((found.mode & OTHERS_WRITE) !== 0 && (found.mode & STICKY) === 0)
    throw new Error(`${directory} can be written by others`);
}

/** The content, or why it is none; undefined where there is no file. */
async function readState(
  file: string,
  node: string,
): Promise<ReturnType<typeof decodeState> | undefined> {
  // Without waiting, should it be a pipe.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  let handle: FileHandle;
  try {
    handle = await open(file, flags);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    if (code === 'ELOOP') return { fault: `a link to ${await readlink(file)}` };
    // A socket, say.
    if (code === 'ENXIO') return { fault: 'no regular file' };
    throw error;
  }
  try {
    const { size, uid } = await handle.stat();
    const isRegular = (await lstat(file)).isFile();
    if (!isRegular) return { fault: 'no regular file' };
    if (uid !== process.geteuid?.()) return { fault: `the file of another user, ${uid}` };
    if (size > LARGEST_STATE_BYTES) return { fault: `larger than ${LARGEST_STATE_BYTES} bytes` };
    return decodeState(await readAtMost(handle, LARGEST_STATE_BYTES), node);
  } finally {
    await handle.close();
  }
}

/** It may have grown since it was looked at: what is beyond the limit is not read, and fails the check. */
async function readAtMost(handle: FileHandle, limit: number): Promise<Buffer> {
  const buffer = Buffer.alloc(limit);
  let length = 0;
  while (length < limit) {
    const { bytesRead } = await handle.read(buffer, length, limit - length, length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return buffer.subarray(0, length);
}

/** Moves what is there out of the way: the newest is `….bad-1`, and there is a limited number of them. */
async function setAside(file: string): Promise<string | undefined> {
  const named = (number: number): string => `${file}.bad-${number}`;
  try {
    for (let number = SET_ASIDE; number > 1; number -= 1) {
      await rename(named(number - 1), named(number)).catch(unless('ENOENT'));
    }
    await rename(file, named(1));
    return named(1);
  } catch {
    return undefined;
  }
}

async function replace(directory: string, file: string, bytes: Buffer): Promise<void> {
  const temporary = `${file}.new`;
  // Left by one that was killed in between.
  await unlink(temporary).catch(unless('ENOENT'));
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  try {
    const handle = await open(temporary, flags, FILE_MODE);
    try {
      await handle.writeFile(bytes);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, file);
  } catch (error) {
    // What is half written would only take up room on a disk that has none.
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
  const parent = await open(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    // Not every filesystem can flush a directory.
    await parent.sync().catch(unless('EINVAL'));
  } finally {
    await parent.close();
  }
}

/** Takes an error for none where it has this code. */
function unless(code: string): (error: NodeJS.ErrnoException) => void {
  return (error) => {
    if (error.code !== code) throw error;
  };
}

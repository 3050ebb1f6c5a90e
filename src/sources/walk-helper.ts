/** One helper process (`native/disk_walk.cc`) and its frames: decision 0013. */
import type { Place } from '../ports/disk-usage.ts';
import { errorText, type HelperProcess, helperPath, startProcess } from './helper-process.ts';

/** Where `npm install` builds the helper. */
export const WALK_HELPER_PATH = helperPath('evictd-walk');

/** How much is looked at at most for one answer. */
export interface WalkLimits {
  readonly entries: number;
  /** Of processor time, 65,535 at most. */
  readonly cpuMs: number;
  readonly ms: number;
}

/** What is not looked at any further, and why: then figures are the least that there is. */
export type Cut = 'entries' | 'moved' | 'time';

export type WalkAnswer =
  | {
      readonly kind: 'walked';
      /** `major:minor` of `st_dev`. */
      readonly device: string;
      /** `f_type`. */
      readonly type: number;
      readonly bytes: number;
      readonly inodes: number;
      readonly cut: Cut | undefined;
      /** Of files that are deleted and still open: who keeps them, the most bytes first. */
      readonly holders: readonly Holder[];
    }
  | { readonly kind: 'refused'; readonly error: string };

/** A process that keeps deleted files open. */
export interface Holder {
  readonly pid: number;
  /** `major:minor` of the files' `st_dev`. */
  readonly device: string;
  readonly bytes: number;
}

export type WalkEvent =
  | { readonly kind: 'answer'; readonly answer: WalkAnswer }
  | { readonly kind: 'ended'; readonly reason: string };

/** Starts a helper that is asked one thing at a time. */
export type StartWalk = (tell: (event: WalkEvent) => void) => HelperProcess;

/** PATH_MAX without the NUL. */
const PATH_BYTES_MAX = 4095;

const HEADER_BYTES = 16;
const ANSWER_BYTES = 44;
const RECORD_BYTES = 24;
const RECORDS_MAX = 1000;
/** By their numbers in an answer. */
const CALLS = ['', 'open', 'fstat', 'fstatfs', 'read'];
const CUTS = [undefined, 'entries', 'moved', 'time'] as const;

export function walkProcess(file: string = WALK_HELPER_PATH): StartWalk {
  return (tell) => startProcess(file, walkAnswerReader(), tell);
}

/** Why a place cannot be asked about; undefined where it can. */
export function refusalOf({ root, below }: Place): string | undefined {
  const isTooLong = [root, below].some((text) => Buffer.byteLength(text) > PATH_BYTES_MAX);
  if (isTooLong) return 'ENAMETOOLONG: name too long';
  const hasNul = root.includes('\0') || below.includes('\0');
  return hasNul || !root.startsWith('/') || !isBelow(below)
    ? `EINVAL: no place below a root, ${JSON.stringify(below)}`
    : undefined;
}

/** Whether a path leads nowhere else: relative, each part a name; or it is empty. */
function isBelow(path: string): boolean {
  return path === '' || path.split('/').every((part) => !['', '.', '..'].includes(part));
}

/** The frame of a request for what lies below a place, as `native/disk_walk.cc` describes it. */
export function encodeWalk({ root, below }: Place, limits: WalkLimits): Buffer {
  const [first, second] = [Buffer.from(root), Buffer.from(below)];
  const header = headerOf(0, limits);
  header.writeUInt16LE(first.length, 12);
  header.writeUInt16LE(second.length, 14);
  return Buffer.concat([header, first, second]);
}

/** The same for what is deleted and still open. */
export function encodeDeleted(limits: WalkLimits): Buffer {
  return headerOf(1, limits);
}

function headerOf(kind: number, { entries, cpuMs, ms }: WalkLimits): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt16LE(kind, 0);
  header.writeUInt16LE(cpuMs, 2);
  header.writeUInt32LE(entries, 4);
  header.writeUInt32LE(ms, 8);
  return header;
}

/** Cuts what a helper writes into answers. */
export function walkAnswerReader(): (bytes: Buffer) => readonly WalkAnswer[] | undefined {
  let rest = Buffer.alloc(0);
  return (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    const answers: WalkAnswer[] = [];
    while (rest.length >= ANSWER_BYTES) {
      const recordBytes = rest.readUInt32LE(40);
      const isAnswer =
        recordBytes % RECORD_BYTES === 0 &&
        recordBytes <= RECORDS_MAX * RECORD_BYTES &&
        rest.readUInt32LE(4) < CALLS.length &&
        rest.readUInt32LE(8) < CUTS.length;
      if (!isAnswer) return undefined;
      const end = ANSWER_BYTES + recordBytes;
      if (rest.length < end) break;
      answers.push(decode(rest.subarray(0, end)));
      rest = rest.subarray(end);
    }
    return answers;
  };
}

function decode(frame: Buffer): WalkAnswer {
  const errorNumber = frame.readUInt32LE(0);
  if (errorNumber !== 0) {
    const call = CALLS[frame.readUInt32LE(4)];
    return { kind: 'refused', error: `${errorText(errorNumber)}, ${call}` };
  }
  const holders: Holder[] = [];
  for (let offset = ANSWER_BYTES; offset < frame.length; offset += RECORD_BYTES) {
    holders.push({
      pid: frame.readUInt32LE(offset),
      device: deviceAt(frame, offset + 4),
      bytes: numberAt(frame, offset + 16),
    });
  }
  return {
    kind: 'walked',
    device: deviceAt(frame, 12),
    type: frame.readUInt32LE(20),
    bytes: numberAt(frame, 24),
    inodes: numberAt(frame, 32),
    cut: CUTS[frame.readUInt32LE(8)],
    holders,
  };
}

function deviceAt(frame: Buffer, offset: number): string {
  return `${frame.readUInt32LE(offset)}:${frame.readUInt32LE(offset + 4)}`;
}

/** What a number does not hold is as much as it holds. */
function numberAt(frame: Buffer, offset: number): number {
  return Math.min(Number(frame.readBigUInt64LE(offset)), Number.MAX_SAFE_INTEGER);
}

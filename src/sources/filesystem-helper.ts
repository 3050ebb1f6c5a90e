/** One helper process (`native/filesystem_helper.cc`) and its frames: decision 0007. */
import { errorText, helperPath, startProcess } from './helper-process.ts';

/** What the kernel says of a filesystem, as it says it. */
export interface FilesystemFigures {
  /** `major:minor` of `st_dev`. */
  readonly device: string;
  /** `f_frsize`: the bytes of a block. */
  readonly blockBytes: bigint;
  readonly blocks: bigint;
  /** `f_bfree`: the reserve for root is among them. */
  readonly blocksFree: bigint;
  /** `f_bavail`. */
  readonly blocksAvailable: bigint;
  /** `f_files`. */
  readonly inodes: bigint;
  /** `f_ffree`. */
  readonly inodesFree: bigint;
  /** The mount's line of `/proc/self/mountinfo`; empty where there is none. */
  readonly mountLine: string;
}

/** A helper's answer: figures, or the call that failed, as Node would say it without the path. */
export type HelperAnswer =
  | { readonly kind: 'figures'; readonly figures: FilesystemFigures }
  | { readonly kind: 'refused'; readonly error: string };

export type HelperEvent =
  | HelperAnswer
  /** It is gone, or could not be started. The last event. */
  | { readonly kind: 'ended'; readonly reason: string };

/** A helper that is asked about one path at a time. */
export interface FilesystemHelper {
  /** NaN when it could not be started. */
  readonly pid: number;
  /** Sends a path of 1 to 4,095 bytes without NUL. One answer follows, or the end. */
  ask(path: string): void;
  /**
   * Kills it and lets go of it: it holds up nothing from then on, and no answer comes any more. Its end
   * is told when the kernel has it.
   */
  end(): void;
}

/** Starts a helper. Never throws, and never tells anything before it has returned. */
export type StartHelper = (tell: (event: HelperEvent) => void) => FilesystemHelper;

/** Where `npm install` builds the helper. */
export const FILESYSTEM_HELPER_PATH = helperPath('evictd-fs');

/** PATH_MAX without the NUL. */
export const PATH_BYTES_MAX = 4095;

const HEADER_BYTES = 68;
const MOUNT_LINE_BYTES_MAX = 64 * 1024;
/** By their numbers in an answer. */
const CALLS = ['', 'open', 'fstat', 'fstatfs'];

/**
 * Starts helpers from an executable. A helper keeps no event loop alive. It has no environment, and
 * the root as its directory, so that it pins no mount.
 */
export function helperProcess(file: string): StartHelper {
  return (tell) => {
    const { pid, send, end } = startProcess(file, answerReader(), (event) =>
      tell(event.kind === 'ended' ? event : event.answer),
    );
    return { pid, ask: (asked) => send(encodeRequest(asked)), end };
  };
}

/** The frame of a request, as `native/filesystem_helper.cc` describes it. */
export function encodeRequest(asked: string): Buffer {
  const bytes = Buffer.from(asked, 'utf8');
  const frame = Buffer.allocUnsafe(2 + bytes.length);
  frame.writeUInt16LE(bytes.length, 0);
  bytes.copy(frame, 2);
  return frame;
}

/**
 * Cuts what a helper writes into answers. The function takes the next bytes and gives the answers that
 * are whole by now; undefined when these are no answers.
 */
export function answerReader(): (bytes: Buffer) => readonly HelperAnswer[] | undefined {
  let rest = Buffer.alloc(0);
  return (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    const answers: HelperAnswer[] = [];
    while (rest.length >= HEADER_BYTES) {
      const end = HEADER_BYTES + rest.readUInt32LE(64);
      const call = rest.readUInt32LE(4);
      if (end > HEADER_BYTES + MOUNT_LINE_BYTES_MAX || call >= CALLS.length) return undefined;
      if (rest.length < end) break;
      answers.push(decodeAnswer(rest.subarray(0, end)));
      rest = rest.subarray(end);
    }
    return answers;
  };
}

function decodeAnswer(frame: Buffer): HelperAnswer {
  const errorNumber = frame.readUInt32LE(0);
  if (errorNumber !== 0) {
    const call = CALLS[frame.readUInt32LE(4)];
    return { kind: 'refused', error: `${errorText(errorNumber)}, ${call}` };
  }
  return {
    kind: 'figures',
    figures: {
      device: `${frame.readUInt32LE(8)}:${frame.readUInt32LE(12)}`,
      blockBytes: frame.readBigUInt64LE(16),
      blocks: frame.readBigUInt64LE(24),
      blocksFree: frame.readBigUInt64LE(32),
      blocksAvailable: frame.readBigUInt64LE(40),
      inodes: frame.readBigUInt64LE(48),
      inodesFree: frame.readBigUInt64LE(56),
      mountLine: frame.toString('utf8', HEADER_BYTES),
    },
  };
}

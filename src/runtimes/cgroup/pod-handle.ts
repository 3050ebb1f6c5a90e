import { closeSync, fstatSync, statSync } from 'node:fs';
import { asPath, type BytePath, toText } from '../../kernel/byte-path.ts';
import { type ControlFile, openControlFile, readControlFile } from '../../kernel/control-file.ts';
import { heldPath, openDirectory } from '../../kernel/directory.ts';
import { numberField, wholeNumber } from '../../kernel/fields.ts';
import { kubepodsIn, type OomScoreAdjOf, sparedBecause } from './spared.ts';
import { processesBelow } from './subtree.ts';

/**
 * A pod's directory, held open: a cgroup that is made again under the same name is another
 * directory, and cannot be mistaken for this one.
 */
export interface PodHandle {
  readonly name: BytePath;
  /** Where it lies as long as it is that directory, as text. */
  readonly path: string;
  /** The name and the inode number, which cgroupfs never gives twice. */
  readonly id: string;
  /** A path to the held directory itself, whatever has become of its name. */
  readonly held: string;
  /** Usage less inactive file, bytes, read afresh. Throws ENODEV once the cgroup is gone. */
  workingSetBytes(): number;
  /**
   * `memory.soft_limit_in_bytes`, not older than {@link LIMIT_AGE_MS}: limits change seldom, and
   * each costs as much to read as all else between an event and its kill.
   */
  softLimitBytes(nowMs: number): number;
  /** `memory.limit_in_bytes`, not older than {@link LIMIT_AGE_MS}. */
  limitBytes(nowMs: number): number;
  /**
   * Whether an eviction found no process, or left none, and still none is there. Looked up only
   * then: reading the processes of every pod would cost as much as all else.
   */
  isKnownEmpty(): boolean;
  noteEmpty(): void;
  /** Looks whether a process is there; what it finds is known from then on. */
  checkEmpty(): boolean;
  /** Why what is in it spares it, as of the last look; undefined where nothing does. */
  sparedBecause(): string | undefined;
  /** When that was, ms; negative infinity while nobody has looked. */
  lookedAtMs(): number;
  /** Looks afresh what is in it; where that cannot be read, what was known stays. */
  look(nowMs: number, oomScoreAdjOf: OomScoreAdjOf): void;
  /** What is charged to the cgroup, bytes; undefined once it is gone. */
  chargedBytes(): number | undefined;
  /** Whether the name still leads to this directory: 'same', to another, or nowhere. */
  identity(): 'same' | 'replaced' | 'gone';
  /**
   * Keeps the descriptors open until what is returned is called, whatever `close()` says meanwhile:
   * a number that is closed under an eviction would become another pod's.
   */
  pin(): () => void;
  close(): void;
}

/** How old a limit may be, ms: less than the shortest usual poll interval. */
export const LIMIT_AGE_MS = 5000;

/** Holds the pod `name` below `directory` open. Throws what open(2) gives. */
export function openPod(directory: BytePath, name: BytePath): PodHandle {
  const path = `${directory}/${name}`;
  const fd = openDirectory(path);
  const held = heldPath(fd);
  const opened: ControlFile[] = [];
  const open = (file: string): ControlFile => {
    const control = openControlFile(`${held}/${file}`);
    opened.push(control);
    return control;
  };
  const release = (): void => {
    for (const file of opened.splice(0)) file.close();
    closeSync(fd);
  };
  let pins = 0;
  let isClosed = false;
  try {
    const inode = fstatSync(fd, { bigint: true }).ino;
    let knownEmpty = false;
    // All pods of a kubelet are too much to lose to a cgroup that nobody has looked into yet.
    let spared = kubepodsIn(held, name);
    let lookedAtMs = Number.NEGATIVE_INFINITY;
    const usage = open('memory.usage_in_bytes');
    const stat = open('memory.stat');
    return {
      name,
      path: toText(path),
      id: `${name}@${inode}`,
      held,
      workingSetBytes: () => {
        const inactiveFileBytes = numberField(stat.readRecord(), 'total_inactive_file ') ?? 0;
        return Math.max(0, wholeNumber(usage.readRecord()) - inactiveFileBytes);
      },
      softLimitBytes: limitReader(`${held}/memory.soft_limit_in_bytes`),
      limitBytes: limitReader(`${held}/memory.limit_in_bytes`),
      isKnownEmpty: () => {
        knownEmpty &&= isEmpty(held);
        return knownEmpty;
      },
      noteEmpty: () => {
        knownEmpty = true;
      },
      checkEmpty: () => {
        knownEmpty = isEmpty(held);
        return knownEmpty;
      },
      sparedBecause: () => spared,
      lookedAtMs: () => lookedAtMs,
      look: (nowMs, oomScoreAdjOf) => {
        try {
          spared = sparedBecause(held, name, oomScoreAdjOf);
          lookedAtMs = nowMs;
        } catch {
          // Looked again at the next listing.
        }
      },
      chargedBytes: () => valueOrUndefined(() => wholeNumber(usage.readRecord())),
      identity: () => identity(path, inode),
      pin: () => {
        pins += 1;
        return () => {
          pins -= 1;
          if (pins === 0 && isClosed) release();
        };
      },
      close: () => {
        if (isClosed) return;
        isClosed = true;
        if (pins === 0) release();
      },
    };
  } catch (error) {
    release();
    throw error;
  }
}

/** A list that cannot be read is not empty. */
function isEmpty(held: string): boolean {
  return valueOrUndefined(() => processesBelow(held))?.length === 0;
}

function limitReader(file: string): (nowMs: number) => number {
  let bytes = 0;
  let readAtMs = Number.NEGATIVE_INFINITY;
  return (nowMs) => {
    if (nowMs - readAtMs >= LIMIT_AGE_MS) {
      bytes = wholeNumber(readControlFile(file));
      readAtMs = nowMs;
    }
    return bytes;
  };
}

function identity(path: BytePath, inode: bigint): 'same' | 'replaced' | 'gone' {
  const now = statSync(asPath(path), { bigint: true, throwIfNoEntry: false });
  if (now === undefined) return 'gone';
  return now.ino === inode ? 'same' : 'replaced';
}

function valueOrUndefined<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

import { createHash } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { KeptEviction, Snapshot } from '../../src/core/snapshot.ts';
import {
  decodeState,
  encodeState,
  LARGEST_STATE_BYTES,
  SET_ASIDE,
  STATE_VERSION,
  type StateFileInputs,
  stateFile,
  stateFileName,
  type Writer,
} from '../../src/state/file.ts';
import { describeWith } from '../support/skip.ts';

const NODE = '/sys/fs/cgroup/memory/node';
const WRITER: Writer = { pid: 4711, startTime: '12345' };

const SNAPSHOT: Snapshot = {
  bootId: 'boot',
  savedAtMs: 1000,
  unsavedMs: 0,
  thresholds: [],
  conditions: [{ type: 'MemoryPressure', lastObservedAtMs: 900, held: true, caused: false }],
  evictions: [],
};

const eviction = (message: string): KeptEviction => ({
  podId: 'a',
  podName: 'a',
  hard: true,
  gracePeriodMs: 0,
  message,
  decidedAtMs: 0,
  decidedWallMs: 0,
});

function temporaryDirectory(): string {
  const directory = mkdtempSync(path.join(tmpdir(), 'evictd-state-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

const inputs = (directory: string, overrides: Partial<StateFileInputs> = {}): StateFileInputs => ({
  directory,
  node: NODE,
  dryRun: false,
  writer: WRITER,
  lives: () => false,
  ...overrides,
});

/** A file with a good checksum around this text. */
function sealed(text: string, version: number | string = STATE_VERSION): Buffer {
  const sum = createHash('sha256').update(`${version}\n`).update(text).digest('hex');
  return Buffer.from(`evictd-state ${version} ${sum}\n${text}`);
}

describe('stateFileName', () => {
  it('has nothing of the node’s path in it, and is another for each', () => {
    const nodes = [NODE, `${NODE}/`, '/', '../../etc/passwd', '/a\0b', 'ä'];
    const names = nodes.flatMap((node) => [stateFileName(node, false), stateFileName(node, true)]);
    for (const name of names) expect(name).toMatch(/^state-[0-9a-f]{16}(\.dry-run)?$/);
    expect(new Set(names).size).toBe(names.length);
  });
});

describe('the format', () => {
  const bytes = encodeState(NODE, WRITER, SNAPSHOT);

  it('gives back what was written', () => {
    expect(decodeState(bytes, NODE)).toStrictEqual({ snapshot: SNAPSHOT, writer: WRITER });
    expect(bytes.toString()).toMatch(/^evictd-state 1 [0-9a-f]{64}\n\{.*\}\n$/);
  });

  it('sees every truncation', () => {
    for (let length = 0; length < bytes.length; length += 1) {
      expect(decodeState(bytes.subarray(0, length), NODE), `${length}`).toHaveProperty('fault');
    }
  });

  it('sees every flipped bit', () => {
    for (let at = 0; at < bytes.length; at += 1) {
      for (let bit = 0; bit < 8; bit += 1) {
        const flipped = Buffer.from(bytes);
        flipped[at] = (flipped[at] as number) ^ (1 << bit);
        expect(decodeState(flipped, NODE), `${at}.${bit}`).toHaveProperty('fault');
      }
    }
  });

  it('sees what was added', () => {
    expect(decodeState(Buffer.concat([bytes, Buffer.from('\n')]), NODE)).toHaveProperty('fault');
  });

  it.each<[string, Buffer, string]>([
    ['nothing', Buffer.alloc(0), 'damaged, or no state of evictd'],
    ['another format', Buffer.from('{"version":1}\n'), 'damaged, or no state of evictd'],
    ['zeros, as after a power cut', Buffer.alloc(4096), 'damaged, or no state of evictd'],
    ['a future version', sealed('{}\n', 2), 'of version 2: this evictd knows version 1'],
    ['a version of old', sealed('{}\n', 0), 'of version 0: this evictd knows version 1'],
    ['an absurd version', sealed('{}\n', '9'.repeat(10)), 'damaged, or no state of evictd'],
    ['no JSON', sealed('{\n'), 'no JSON'],
    ['a number', sealed('1\n'), 'no JSON'],
    ['null', sealed('null\n'), 'no JSON'],
    ['another node', encodeState('/other', WRITER, SNAPSHOT), 'of another node: "/other"'],
    ['no node', sealed('{}\n'), 'of another node: undefined'],
    ['no writer', sealed(`{"node":"${NODE}"}\n`), 'without its writer'],
    ['a writer without a number', sealed(`{"node":"${NODE}","writer":{}}\n`), 'without its writer'],
    [
      'no snapshot',
      sealed(`{"node":"${NODE}","writer":{"pid":1,"startTime":"1"}}\n`),
      'state is no object',
    ],
  ])('refuses %s', (_, content, fault) => {
    expect(decodeState(content, NODE)).toEqual({ fault });
  });

  it('is never larger than what is read: the oldest evictions go', () => {
    const large = Array.from({ length: 100 }, (_, at) => eviction(`${at} ${'ä'.repeat(9000)}`));
    const cut = encodeState(NODE, WRITER, { ...SNAPSHOT, evictions: large });
    expect(cut.length).toBeLessThanOrEqual(LARGEST_STATE_BYTES);
    const decoded = decodeState(cut, NODE);
    const kept = 'snapshot' in decoded ? decoded.snapshot.evictions : [];
    expect(kept).toStrictEqual(large.slice(-kept.length));
    expect(kept).toHaveLength(50);
  });
});

describe('stateFile', () => {
  it('keeps what is written, for its owner alone', async () => {
    const directory = path.join(temporaryDirectory(), 'var/lib/evictd');
    const store = stateFile(inputs(directory));
    expect(store.path).toBe(path.join(directory, stateFileName(NODE, false)));
    expect(await store.open()).toEqual({ kind: 'none' });
    await store.write(SNAPSHOT);
    await store.write({ ...SNAPSHOT, savedAtMs: 2000 });
    expect(readdirSync(directory)).toEqual([path.basename(store.path)]);
    const modes = [directory, path.dirname(directory), store.path].map(
      (file) => statSync(file).mode & 0o777,
    );
    expect(modes).toEqual([0o700, 0o755, 0o600]);
    expect(await stateFile(inputs(directory)).open()).toEqual({
      kind: 'state',
      snapshot: { ...SNAPSHOT, savedAtMs: 2000 },
    });
  });

  it('writes in order, whatever comes at once, and whether one fails', async () => {
    const directory = path.join(temporaryDirectory(), 'state');
    const store = stateFile(inputs(directory));
    writeFileSync(directory, 'in the way');
    const failed = store.write(SNAPSHOT);
    const rest = [2, 3, 4].map(async (savedAtMs) => {
      await failed.catch(() => rmSync(directory, { force: true }));
      return store.write({ ...SNAPSHOT, savedAtMs: savedAtMs * 1000 });
    });
    await expect(failed).rejects.toThrow('no directory');
    await Promise.all(rest);
    expect(await store.open()).toMatchObject({ snapshot: { savedAtMs: 4000 } });
  });

  it('makes its directory again', async () => {
    const directory = path.join(temporaryDirectory(), 'state');
    const store = stateFile(inputs(directory));
    await store.open();
    rmSync(directory, { recursive: true });
    await store.write(SNAPSHOT);
    expect(await store.open()).toMatchObject({ kind: 'state' });
  });

  it('does without what was left half written', async () => {
    const directory = temporaryDirectory();
    const store = stateFile(inputs(directory));
    writeFileSync(`${store.path}.new`, 'half');
    await store.write(SNAPSHOT);
    expect(readdirSync(directory)).toEqual([path.basename(store.path)]);
  });

  it('follows no link that it writes or reads', async () => {
    const directory = temporaryDirectory();
    const treasure = path.join(temporaryDirectory(), 'treasure');
    writeFileSync(treasure, 'gold');
    const store = stateFile(inputs(directory));
    symlinkSync(treasure, `${store.path}.new`);
    symlinkSync(treasure, store.path);
    expect(await store.open()).toEqual({
      kind: 'setAside',
      reason: `a link to ${treasure}`,
      file: `${store.path}.bad-1`,
    });
    await store.write(SNAPSHOT);
    expect(readFileSync(treasure, 'utf8')).toBe('gold');
    expect(statSync(store.path).isFile()).toBe(true);
  });

  it('is in a directory that may be a link', async () => {
    const real = path.join(temporaryDirectory(), 'private');
    mkdirSync(real);
    const link = path.join(temporaryDirectory(), 'evictd');
    symlinkSync(real, link);
    await stateFile(inputs(link)).write(SNAPSHOT);
    expect(readdirSync(real)).toEqual([stateFileName(NODE, false)]);
  });

  it.each<[string, (file: string) => void, string]>([
    ['damaged', (file) => writeFileSync(file, 'x'), 'damaged, or no state of evictd'],
    ['a directory', (file) => mkdirSync(file), 'no regular file'],
    [
      'too large',
      (file) => writeFileSync(file, Buffer.alloc(LARGEST_STATE_BYTES + 1)),
      `larger than ${LARGEST_STATE_BYTES} bytes`,
    ],
    [
      'as large as may be, and nothing',
      (file) => writeFileSync(file, Buffer.alloc(LARGEST_STATE_BYTES)),
      'damaged, or no state of evictd',
    ],
  ])('sets a file aside that is %s', async (_, make, reason) => {
    const store = stateFile(inputs(temporaryDirectory()));
    make(store.path);
    expect(await store.open()).toEqual({
      kind: 'setAside',
      reason,
      file: `${store.path}.bad-1`,
    });
    expect(existsSync(store.path)).toBe(false);
    expect(await store.open()).toEqual({ kind: 'none' });
  });

  it('keeps the newest of what was set aside', async () => {
    const directory = temporaryDirectory();
    const store = stateFile(inputs(directory));
    for (let round = 1; round <= SET_ASIDE + 2; round += 1) {
      writeFileSync(store.path, `${round}`);
      await store.open();
    }
    const names = readdirSync(directory).sort();
    expect(names.map((name) => readFileSync(path.join(directory, name), 'utf8'))).toEqual([
      '5',
      '4',
      '3',
    ]);
  });

  it.each([
    [0o777, 'can be written by others'],
    [0o770, 'can be written by others'],
    [0o1777, undefined],
    [0o755, undefined],
  ])('a directory of mode %o: %s', async (mode, refusal) => {
    const directory = temporaryDirectory();
    chmodSync(directory, mode);
    const store = stateFile(inputs(directory));
    if (refusal === undefined) {
      await store.write(SNAPSHOT);
      expect(await store.open()).toMatchObject({ kind: 'state' });
    } else {
      await expect(store.open()).rejects.toThrow(refusal);
      await expect(store.write(SNAPSHOT)).rejects.toThrow(refusal);
    }
  });

  it('leaves the file of one that lives alone, and takes it over once that has ended', async () => {
    const directory = temporaryDirectory();
    await stateFile(inputs(directory)).write(SNAPSHOT);
    let alive = true;
    const writer = { pid: 4712, startTime: '1' };
    const lives = (one: Writer) => alive && one.pid === WRITER.pid && one.startTime === '12345';
    const second = stateFile(inputs(directory, { writer, lives }));
    await expect(second.open()).rejects.toThrow('process 4711, keeps its state there');
    await expect(second.write(SNAPSHOT)).rejects.toThrow('process 4711');
    alive = false;
    await second.write({ ...SNAPSHOT, savedAtMs: 7 * 1000 });
    expect(await second.open()).toMatchObject({ snapshot: { savedAtMs: 7000 } });
  });
});

describeWith({ root: true }, 'the directory of another user', () => {
  it('is refused', async () => {
    const directory = temporaryDirectory();
    chownSync(directory, 12_345, 12_345);
    const store = stateFile(inputs(directory));
    await expect(store.open()).rejects.toThrow('belongs to another user, 12345');
    await expect(store.write(SNAPSHOT)).rejects.toThrow('belongs to another user');
  });
});

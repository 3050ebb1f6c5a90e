import { describe, expect, it, onTestFinished } from 'vitest';
import {
  encodeDeleted,
  encodeWalk,
  refusalOf,
  WALK_HELPER_PATH,
  type WalkEvent,
  walkAnswerReader,
  walkProcess,
} from '../../src/sources/walk-helper.ts';
import { until } from '../support/wait.ts';

const LIMITS = { entries: 1_000_000, cpuMs: 256, ms: 10_000 };

interface Fields {
  readonly error?: number;
  readonly call?: number;
  readonly cut?: number;
  readonly bytes?: bigint;
  readonly records?: readonly (readonly [pid: number, bytes: bigint])[];
  readonly recordBytes?: number;
}

function answer(fields: Fields = {}): Buffer {
  const { error = 0, call = 0, cut = 0, bytes = 4096n, records = [] } = fields;
  const frame = Buffer.alloc(44 + 24 * records.length);
  for (const [index, value] of [error, call, cut, 8, 1, 0xef53].entries()) {
    frame.writeUInt32LE(value, 4 * index);
  }
  frame.writeBigUInt64LE(bytes, 24);
  frame.writeBigUInt64LE(3n, 32);
  frame.writeUInt32LE(fields.recordBytes ?? 24 * records.length, 40);
  for (const [index, [pid, held]] of records.entries()) {
    const offset = 44 + 24 * index;
    frame.writeUInt32LE(pid, offset);
    frame.writeUInt32LE(0, offset + 4);
    frame.writeUInt32LE(57, offset + 8);
    frame.writeBigUInt64LE(held, offset + 16);
  }
  return frame;
}

describe('a request', () => {
  it('has its limits, the root and what is below', () => {
    const frame = encodeWalk({ root: '/r', below: 'a/ö' }, LIMITS);
    expect(frame.toString('hex')).toBe(
      ['0000', '0001', '40420f00', '10270000', '0200', '0400', '2f72', '612fc3b6'].join(''),
    );
  });

  it('for what is deleted has no path', () => {
    expect(encodeDeleted({ entries: 5, cpuMs: 0, ms: 7 }).toString('hex')).toBe(
      ['0100', '0000', '05000000', '07000000', '0000', '0000'].join(''),
    );
  });
});

describe('refusalOf', () => {
  it.each([
    ['/var', ''],
    ['/var', 'a'],
    ['/', 'a/b c/..d/\n'],
  ])('%j and %j may be asked about', (root, below) => {
    expect(refusalOf({ root, below })).toBeUndefined();
  });

  it.each([
    ['var', 'a'],
    ['', 'a'],
    ['/var', '..'],
    ['/var', 'a/../b'],
    ['/var', './a'],
    ['/var', '/etc'],
    ['/var', 'a//b'],
    ['/var', 'a/'],
    ['/var', 'a\0b'],
    ['/v\0ar', 'a'],
  ])('%j and %j may not', (root, below) => {
    expect(refusalOf({ root, below })).toMatch(/^EINVAL: no place below a root, /);
  });

  it('nor may what is too long, in bytes', () => {
    expect(refusalOf({ root: '/', below: 'ö'.repeat(2047) })).toBeUndefined();
    expect(refusalOf({ root: '/', below: 'ö'.repeat(2048) })).toMatch(/^ENAMETOOLONG/);
    expect(refusalOf({ root: `/${'a'.repeat(4095)}`, below: '' })).toMatch(/^ENAMETOOLONG/);
  });
});

describe('answers', () => {
  const WALKED = { kind: 'walked', device: '8:1', type: 0xef53, bytes: 4096, inodes: 3 };

  it('are read byte by byte, several of them', () => {
    const reader = walkAnswerReader();
    const both = Buffer.concat([
      answer({ records: [[7, 100n]] }),
      answer({ cut: 3, bytes: 2n ** 63n }),
    ]);
    const answers = [...both].flatMap(
      (byte): readonly unknown[] => reader(Buffer.of(byte)) ?? ['none'],
    );
    expect(answers).toStrictEqual([
      { ...WALKED, cut: undefined, holders: [{ pid: 7, device: '0:57', bytes: 100 }] },
      { ...WALKED, bytes: Number.MAX_SAFE_INTEGER, cut: 'time', holders: [] },
    ]);
  });

  it.each([
    [{ error: 2, call: 1 }, 'ENOENT: no such file or directory, open'],
    [{ error: 40, call: 1 }, 'ELOOP: too many symbolic links encountered, open'],
    [{ error: 13, call: 4 }, 'EACCES: permission denied, read'],
  ])('%o is an error', (fields, error) => {
    expect(walkAnswerReader()(answer(fields))).toStrictEqual([{ kind: 'refused', error }]);
  });

  it.each([
    ['an unknown call', { call: 5 }],
    ['an unknown cut', { cut: 4 }],
    ['half a record', { recordBytes: 12 }],
    ['too many records', { recordBytes: 24 * 1001 }],
  ])('%s: these are none', (_, fields) => {
    expect(walkAnswerReader()(answer(fields))).toBeUndefined();
  });
});

describe('walkProcess', () => {
  it('is answered by the helper', async () => {
    const events: WalkEvent[] = [];
    const helper = walkProcess(WALK_HELPER_PATH)((event) => events.push(event));
    onTestFinished(() => helper.end());
    helper.send(encodeWalk({ root: '/proc', below: 'self/status' }, LIMITS));
    await until('an answer', () => events.length > 0, { limitMs: 10_000 });
    // `self` is a link.
    expect(events).toMatchObject([{ kind: 'answer', answer: { kind: 'refused' } }]);
  });
});

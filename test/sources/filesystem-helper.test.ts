import { describe, expect, it, onTestFinished } from 'vitest';
import {
  answerReader,
  encodeRequest,
  FILESYSTEM_HELPER_PATH,
  type HelperEvent,
  helperProcess,
} from '../../src/sources/filesystem-helper.ts';
import { until } from '../support/wait.ts';

const LIMIT_MS = 5000;

interface Fields {
  readonly error?: number;
  readonly call?: number;
  readonly lineBytes?: number;
  readonly line?: string;
}

function answer({ error = 0, call = 0, line = '', lineBytes }: Fields = {}): Buffer {
  const text = Buffer.from(line);
  const header = Buffer.alloc(68);
  header.writeUInt32LE(error, 0);
  header.writeUInt32LE(call, 4);
  header.writeUInt32LE(254, 8);
  header.writeUInt32LE(1_048_575, 12);
  for (const [index, value] of [4096n, 2n ** 60n, 4n, 3n, 2n ** 64n - 1n, 5n].entries()) {
    header.writeBigUInt64LE(value, 16 + 8 * index);
  }
  header.writeUInt32LE(lineBytes ?? text.length, 64);
  return Buffer.concat([header, text]);
}

const FIGURES = {
  device: '254:1048575',
  blockBytes: 4096n,
  blocks: 2n ** 60n,
  blocksFree: 4n,
  blocksAvailable: 3n,
  inodes: 2n ** 64n - 1n,
  inodesFree: 5n,
};

describe('a request', () => {
  it.each([
    ['/', '0100 2f'],
    ['/größe\n', '0900 2f6772c3b6c39f650a'],
  ])('%j is its length and its bytes', (path, hex) => {
    expect(encodeRequest(path).toString('hex')).toBe(hex.replace(' ', ''));
  });

  it('of 4,095 bytes fits the length', () => {
    const frame = encodeRequest(`/${'n'.repeat(4094)}`);
    expect([frame[0], frame[1], frame.length]).toEqual([0xff, 0x0f, 4097]);
  });
});

describe('answers', () => {
  it('are read whole, several at once', () => {
    const two = Buffer.concat([answer({ line: '1 0 8:1 / /größe' }), answer()]);
    expect(answerReader()(two)).toStrictEqual([
      { kind: 'figures', figures: { ...FIGURES, mountLine: '1 0 8:1 / /größe' } },
      { kind: 'figures', figures: { ...FIGURES, mountLine: '' } },
    ]);
  });

  it('are read byte by byte', () => {
    const reader = answerReader();
    const answers = [...answer({ line: 'ö' })].map((byte) => reader(Buffer.of(byte)));
    expect(answers.slice(0, -1).every((some) => some?.length === 0)).toBe(true);
    expect(answers.at(-1)).toMatchObject([{ figures: { mountLine: 'ö' } }]);
  });

  it.each([
    [{ error: 2, call: 1 }, 'ENOENT: no such file or directory, open'],
    [{ error: 5, call: 2 }, 'EIO: i/o error, fstat'],
    [{ error: 13, call: 3 }, 'EACCES: permission denied, fstatfs'],
    [{ error: 116, call: 3 }, 'error 116, fstatfs'],
  ])('%o is an error', (fields, error) => {
    expect(answerReader()(answer(fields))).toStrictEqual([{ kind: 'refused', error }]);
  });

  it.each([
    ['an unknown call', { call: 4 }],
    ['a line that is too long', { lineBytes: 65_537 }],
    ['a line of 4 GiB', { lineBytes: 0xffff_ffff }],
  ])('%s: these are none', (_, fields) => {
    expect(answerReader()(answer(fields))).toBeUndefined();
  });

  it('a line of 64 KiB is one', () => {
    const line = 'x'.repeat(65_536);
    expect(answerReader()(answer({ line }))).toMatchObject([{ figures: { mountLine: line } }]);
  });
});

/** A helper of an executable, with what it tells. */
function start(file: string) {
  const events: HelperEvent[] = [];
  const helper = helperProcess(file)((event) => events.push(event));
  onTestFinished(() => helper.end());
  expect(events).toEqual([]);
  const ended = () =>
    until(`${file} has ended`, () => events.at(-1)?.kind === 'ended', {
      limitMs: LIMIT_MS,
      describe: () => JSON.stringify(events.map(({ kind }) => kind)),
    });
  return { helper, events, ended };
}

describe('helperProcess', () => {
  it('asks the helper and is answered', async () => {
    const { helper, events } = start(FILESYSTEM_HELPER_PATH);
    expect(helper.pid).toBeGreaterThan(0);
    helper.ask('/proc');
    await until('an answer', () => events.length > 0, { limitMs: LIMIT_MS });
    expect(events).toMatchObject([{ kind: 'figures', figures: { blocks: 0n } }]);
  });

  it('is ended: told once, and nothing else', async () => {
    const { helper, events, ended } = start(FILESYSTEM_HELPER_PATH);
    helper.ask('/proc');
    helper.end();
    helper.end();
    helper.ask('/proc');
    await ended();
    expect(events).toEqual([{ kind: 'ended', reason: 'evictd-fs ended by SIGKILL' }]);
  });

  it.each([
    ['is missing', '/nowhere/evictd-fs', /^spawn \/nowhere\/evictd-fs ENOENT$/],
    ['is a directory', '/tmp', /^spawn \/tmp EACCES$/],
    ['may not be run', '/etc/passwd', /^spawn \/etc\/passwd EACCES$/],
    ['has a name with NUL', '/a\0b', /null bytes/],
    ['ends at once', '/bin/false', /^false ended with status 1$/],
    ['says what is no answer', '/usr/bin/yes', /^yes does not answer as it should$/],
  ])('an executable that %s', async (_, file, reason) => {
    const { helper, events, ended } = start(file);
    helper.ask('/');
    await ended();
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({ reason: expect.stringMatching(reason) });
    helper.end();
    helper.ask('/');
  });
});

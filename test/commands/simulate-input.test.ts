import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decode, type Line, linesOf, textOf } from '../../src/commands/simulate/input.ts';
import { describeError, type EvictdError } from '../../src/core/errors.ts';

async function* chunked(chunks: readonly (string | Buffer)[]): AsyncGenerator<Buffer> {
  for (const chunk of chunks) yield Buffer.from(chunk);
}

async function linesIn(chunks: readonly (string | Buffer)[], limitBytes?: number) {
  const batches: (readonly string[])[] = [];
  const shown = (line: Line): string => (line === 'tooLong' ? '(too long)' : String(line));
  for await (const lines of linesOf(chunked(chunks), limitBytes)) batches.push(lines.map(shown));
  return batches;
}

describe('linesOf', () => {
  it.each<[readonly string[], readonly (readonly string[])[]]>([
    [[], []],
    [[''], []],
    [['a'], [['a']]],
    [['a\n'], [['a']]],
    [['a\nb'], [['a'], ['b']]],
    [['\n\n'], [['', '']]],
    [
      ['a', 'b', '\nc\nd', 'e'],
      [['ab', 'c'], ['de']],
    ],
    [['a\r\n'], [['a\r']]],
  ])('%j', async (chunks, batches) => {
    expect(await linesIn(chunks)).toEqual(batches);
  });

  it('keeps nothing of a line that is too long, and goes on', async () => {
    expect(await linesIn(['abcd\nabcde\nab', 'cdef', 'gh\nx\nabcde'], 4)).toEqual([
      ['abcd', '(too long)'],
      ['(too long)', 'x'],
      ['(too long)'],
    ]);
  });

  it('finds the same lines however they are cut', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.stringMatching(/^[ab\n]{0,5}$/)), async (chunks) => {
        const text = chunks.join('');
        const expected = (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n');
        const found = (await linesIn(chunks)).flat();
        expect(found).toEqual(text === '' ? [] : expected);
      }),
    );
  });
});

describe('decode', () => {
  it.each([
    [Buffer.from('ä'), 'ä'],
    [Buffer.from('\ufeffa'), 'a'],
    [Buffer.from([0xff]), undefined],
    [Buffer.alloc(0), ''],
  ])('%j is %j', (bytes, text) => {
    expect(decode(bytes)).toBe(text);
  });
});

describe('textOf', () => {
  let directory: string;
  beforeAll(() => {
    directory = mkdtempSync(path.join(tmpdir(), 'evictd-simulate-'));
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  it('is the text of a file', async () => {
    const file = path.join(directory, 'file');
    writeFileSync(file, 'x'.repeat(1_000_000));
    expect(await textOf(file)).toBe('x'.repeat(1_000_000));
  });

  it.each<[string, () => string, string]>([
    ['missing', () => path.join(directory, 'missing'), 'missing: no such file'],
    ['a directory', () => directory, ': is a directory'],
    ['below a file', () => '/etc/passwd/x', '/etc/passwd/x: a part of its path is no directory'],
    ['an empty path', () => '', 'no path'],
    ['a path with NUL', () => 'a\0b', 'a\\u0000b: no path'],
    [
      'no text',
      () => {
        const file = path.join(directory, 'binary');
        writeFileSync(file, Buffer.from([0xc3, 0x28]));
        return file;
      },
      'binary: no UTF-8 text',
    ],
    ['endless', () => '/dev/zero', '/dev/zero: larger than 67108864 bytes'],
  ])('refuses what is %s', async (_, file, said) => {
    const error: unknown = await textOf(file()).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'EVICTD_SCENARIO', exitStatus: 2 });
    expect(describeError(error as EvictdError)).toContain(said);
  });
});

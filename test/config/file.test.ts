import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MAX_FILE_BYTES, readConfigFile } from '../../src/config/file.ts';
import { describeError, type EvictdError } from '../../src/core/errors.ts';

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'evictd-config-'));
});
afterAll(() => {
  rmSync(directory, { recursive: true, force: true });
});

function written(name: string, content: string | Buffer): string {
  const file = path.join(directory, name);
  writeFileSync(file, content);
  return file;
}

function refusal(file: string): EvictdError {
  try {
    readConfigFile(file);
  } catch (error) {
    return error as EvictdError;
  }
  throw new Error(`not refused: ${file}`);
}

describe('readConfigFile', () => {
  it('reads UTF-8, without its mark, and follows links', () => {
    const file = written('a.yaml', Buffer.from('\uFEFFä: ö\n'));
    expect(readConfigFile(file)).toBe('ä: ö\n');
    symlinkSync(file, path.join(directory, 'link.yaml'));
    expect(readConfigFile(path.join(directory, 'link.yaml'))).toBe('ä: ö\n');
    expect(readConfigFile(written('empty.yaml', ''))).toBe('');
  });

  it('reads up to 256 KiB', () => {
    expect(readConfigFile(written('most.yaml', 'x'.repeat(MAX_FILE_BYTES)))).toHaveLength(
      MAX_FILE_BYTES,
    );
    const file = written('more.yaml', 'x'.repeat(MAX_FILE_BYTES + 1));
    expect(describeError(refusal(file))).toBe(`${file}: larger than 262144 bytes`);
  });

  it('refuses what is no readable regular file, and waits for nothing', () => {
    const fifo = path.join(directory, 'fifo');
    expect(spawnSync('mkfifo', [fifo]).status).toBe(0);
    const missing = path.join(directory, 'missing.yaml');
    const messages = [
      [fifo, `${fifo}: no regular file`],
      [directory, `${directory}: is a directory`],
      ['/dev/zero', '/dev/zero: no regular file'],
      [missing, `${missing}: no such file`],
      [`${missing}/x`, `${missing}/x: no such file`],
      ['/etc/passwd/x', '/etc/passwd/x: a part of its path is no directory'],
      ['', '--config "": an empty path'],
      ['a\0b', '--config "a\\u0000b": a path has no NUL'],
    ] as const;
    for (const [file, message] of messages) {
      const error = refusal(file);
      expect(describeError(error)).toBe(message);
      expect(error).toMatchObject({ code: 'EVICTD_CONFIG_FILE', exitStatus: 2 });
    }
  });

  it('refuses what is no UTF-8', () => {
    const file = written('latin1.yaml', Buffer.from([0x61, 0xe4]));
    expect(describeError(refusal(file))).toBe(`${file}: no UTF-8 text`);
  });
});

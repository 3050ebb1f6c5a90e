import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  LARGEST_FILE_BYTES,
  openControlFile,
  readControlFile,
} from '../../../src/kernel/control-file.ts';
import { openDescriptors, temporaryDirectory } from '../support.ts';

const lines = (bytes: number) =>
  `${'0123456789abcde\n'.repeat(Math.ceil(bytes / 16))}`.slice(0, bytes);

function fileOf(text: string): string {
  const file = path.join(temporaryDirectory(), 'file');
  writeFileSync(file, text);
  return file;
}

describe('a control file', () => {
  it.each([0, 1, 4096, 16_384, 16_385, 100_000])(
    'of %d bytes is read whole, both ways',
    (bytes) => {
      const file = fileOf(lines(bytes));
      const opened = openControlFile(file);
      expect(opened.read()).toBe(lines(bytes));
      expect(opened.readRecord()).toBe(lines(bytes));
      opened.close();
      expect(readControlFile(file)).toBe(lines(bytes));
    },
  );

  it('is read afresh each time', () => {
    const file = fileOf('one\n');
    const opened = openControlFile(file);
    expect(opened.readRecord()).toBe('one\n');
    writeFileSync(file, 'fourteen\n');
    expect([opened.read(), opened.readRecord()]).toEqual(['fourteen\n', 'fourteen\n']);
    writeFileSync(file, '1\n');
    expect([opened.read(), opened.readRecord()]).toEqual(['1\n', '1\n']);
    opened.close();
  });

  it('of the kernel, longer than a page, is read whole', () => {
    // As many lines as the kernel gives in many reads.
    const text = readControlFile('/proc/self/smaps');
    expect(text.length).toBeGreaterThan(4096);
    expect(text).toMatch(/VmFlags:[^\n]*\n$/);
    expect(text.split('\n').length).toBeGreaterThan(100);
  });

  it('has a limit, and is closed beyond it', () => {
    const fits = fileOf(lines(LARGEST_FILE_BYTES - 1));
    expect(readControlFile(fits)).toHaveLength(LARGEST_FILE_BYTES - 1);
    const beyond = fileOf(lines(LARGEST_FILE_BYTES + 1));
    const before = openDescriptors();
    for (let n = 0; n < 10; n += 1) expect(() => readControlFile(beyond)).toThrow(RangeError);
    expect(openDescriptors()).toBe(before);
    // The next one is not worse off.
    expect(readControlFile('/proc/version')).toBe(readFileSync('/proc/version', 'latin1'));
  });

  it('that cannot be read throws what the kernel says', () => {
    expect(() => openControlFile('/no/such')).toThrow(expect.objectContaining({ code: 'ENOENT' }));
    expect(() => readControlFile('/proc')).toThrow(expect.objectContaining({ code: 'EISDIR' }));
  });
});

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { descriptorLimit, isOutOfDescriptors } from '../../../src/kernel/descriptors.ts';
import { handleLimit } from '../../../src/runtimes/cgroup/handle-cache.ts';
import { temporaryDirectory } from '../support.ts';

/** A `/proc/PID/limits` with this line. */
function limitsWith(line: string): string {
  const file = path.join(temporaryDirectory(), 'limits');
  writeFileSync(file, `Limit Soft Limit Hard Limit Units\nMax cpu time unlimited 1 s\n${line}\n`);
  return file;
}

describe('descriptorLimit', () => {
  it.each([
    ['Max open files            1024                 4096                 files', 1024],
    ['Max open files            unlimited            unlimited            files', Infinity],
    ['Max processes             1024                 4096                 processes', Infinity],
  ])('%s', (line, expected) => {
    expect(descriptorLimit(limitsWith(line))).toBe(expected);
  });

  it('is none where procfs does not say', () => {
    expect(descriptorLimit('/no/such')).toBe(Number.POSITIVE_INFINITY);
  });

  it('is what the shell says of this process', () => {
    const said = execFileSync('bash', ['-c', 'ulimit -Sn'], { encoding: 'utf8' }).trim();
    expect(String(descriptorLimit())).toBe(said.replace('unlimited', 'Infinity'));
  });
});

describe('isOutOfDescriptors', () => {
  it.each([
    ['EMFILE', true],
    ['ENFILE', true],
    ['ENOENT', false],
  ])('%s: %j', (code, expected) => {
    expect(isOutOfDescriptors(Object.assign(new Error(code), { code }))).toBe(expected);
  });
});

describe('handleLimit', () => {
  it.each([
    [Number.POSITIVE_INFINITY, 1024],
    [3200, 1024],
    [3199, 1023],
    [1024, 298],
    [134, 2],
    [133, 1],
    [40, 1],
  ])('with %d descriptors: %i pods', (descriptors, pods) => {
    expect(handleLimit(descriptors)).toBe(pods);
  });
});

import { describe, expect, it } from 'vitest';
import { placeBelow } from '../../../src/runtimes/shared/place.ts';

describe('placeBelow', () => {
  it.each([
    ['/var/log/pods', '/var/log/pods/a/b.log', 'a/b.log'],
    ['/var/log/pods/', '/var/log/pods//a///b.log/', 'a/b.log'],
    ['/', '/a', 'a'],
    ['/r', '/r/..a/ö\n', '..a/ö\n'],
  ])('of %j, %j is %j', (root, text, below) => {
    expect(placeBelow(root, text)).toStrictEqual({ root, below });
  });

  it.each([
    ['/r', '/r'],
    ['/r', '/r/'],
    ['/r', '/rest/a'],
    ['/r', '/etc/passwd'],
    ['/r', 'r/a'],
    ['/r', ''],
    ['/r', '/r/../etc'],
    ['/r', '/r/a/..'],
    ['/r', '/r/./a'],
    ['/r', '/r/a\0b'],
    ['/r', `/r/${'a'.repeat(4093)}`],
  ])('of %j, %j is none', (root, text) => {
    expect(placeBelow(root, text)).toBeUndefined();
  });

  it('one of 4,095 bytes is', () => {
    expect(placeBelow('/r', `/r/${'a'.repeat(4092)}`)?.below).toHaveLength(4092);
  });
});

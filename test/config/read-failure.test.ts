import { describe, expect, it } from 'vitest';
import { readFailure } from '../../src/config/read-failure.ts';

describe('readFailure', () => {
  it.each<[unknown, string]>([
    [{ code: 'ENOENT' }, 'no such file'],
    [{ code: 'EISDIR' }, 'is a directory'],
    [{ code: 'EACCES' }, 'may not be read: permission denied'],
    [{ code: 'EPERM' }, 'may not be read: operation not permitted'],
    [{ code: 'ENOTDIR' }, 'a part of its path is no directory'],
    [{ code: 'ELOOP' }, 'its symbolic links lead in a circle, or are too many'],
    [{ code: 'ENAMETOOLONG' }, 'its path is too long'],
    [{ code: 'EIO' }, 'cannot be read: EIO'],
    [{ code: 'toString' }, 'cannot be read: toString'],
    [new Error('so'), 'cannot be read: Error: so'],
  ])('of %o is %j', (error, words) => {
    expect(readFailure(error)).toBe(words);
  });
});

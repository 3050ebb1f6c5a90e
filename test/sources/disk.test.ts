import { describe, expect, it } from 'vitest';
import { POLL_PACES } from '../../src/core/polling.ts';
import type { FilesystemReading } from '../../src/ports/filesystem.ts';
import {
  diskObservations,
  diskPollMs,
  unreadFilesystems,
  updateFilesystems,
} from '../../src/sources/disk.ts';
import { GI, MI, threshold, value } from '../support/builders.ts';

const PATHS = { nodefs: '/var/lib', imagefs: '/images', containerfs: '/var/lib' };

/** A reading of 100Gi with 40Gi free, a million inodes with half of them free. */
function reading(overrides: Partial<FilesystemReading> = {}): FilesystemReading {
  return {
    path: '/var/lib',
    atMs: 0,
    capacityBytes: 100 * GI,
    availableBytes: 40 * GI,
    usedBytes: 60 * GI,
    inodes: 1_000_000,
    inodesFree: 500_000,
    device: '8:1',
    mountDevice: '8:1',
    source: '/dev/sda1',
    type: 'ext4',
    mountPoint: '/',
    ...overrides,
  };
}

describe('filesystem states', () => {
  it('are those that have a path', () => {
    expect(
      unreadFilesystems({ ...PATHS, imagefs: undefined }).map(({ name }) => name),
    ).toStrictEqual(['nodefs', 'containerfs']);
  });

  it('take in a reading wherever its path is', () => {
    const seen = updateFilesystems(unreadFilesystems(PATHS), { kind: 'read', reading: reading() });
    expect(seen.map(({ name, reading: one }) => [name, one?.availableBytes])).toStrictEqual([
      ['nodefs', 40 * GI],
      ['imagefs', undefined],
      ['containerfs', 40 * GI],
    ]);
  });

  it('keep the last reading when one fails, and forget the failure with the next', () => {
    const read = { kind: 'read', reading: reading() } as const;
    const failed = {
      kind: 'failed',
      path: '/var/lib',
      atMs: 9,
      error: 'no answer',
      stale: true,
    } as const;
    const stale = [read, failed].reduce(updateFilesystems, unreadFilesystems(PATHS));
    expect(stale[0]).toMatchObject({ reading: reading(), error: 'no answer', stale: true });
    expect(stale[1]).toMatchObject({ reading: undefined, error: undefined, stale: false });
    const fresh = updateFilesystems(stale, { kind: 'read', reading: reading({ atMs: 20 }) });
    expect(fresh[0]).toMatchObject({ reading: { atMs: 20 }, error: undefined, stale: false });
  });
});

describe('diskObservations', () => {
  it('are bytes and inodes', () => {
    expect(diskObservations('imagefs', reading({ atMs: 5 }))).toStrictEqual([
      { signal: 'imagefs.available', capacity: 100 * GI, available: 40 * GI, atMs: 5 },
      { signal: 'imagefs.inodesFree', capacity: 1_000_000, available: 500_000, atMs: 5 },
    ]);
  });

  it('have no inodes where the filesystem counts none', () => {
    expect(
      diskObservations('nodefs', reading({ inodes: 0, inodesFree: 0 })).map(({ signal }) => signal),
    ).toStrictEqual(['nodefs.available']);
  });

  it('are never more than there is, nor less than nothing', () => {
    const odd = reading({ availableBytes: 200 * GI, inodesFree: -1 });
    expect(diskObservations('nodefs', odd).map(({ available }) => available)).toStrictEqual([
      100 * GI,
      0,
    ]);
  });
});

describe('diskPollMs', () => {
  const hard = (
    signal: 'nodefs.available' | 'nodefs.inodesFree' | 'imagefs.available',
    text: string,
  ) => threshold({ signal, value: value(text) });
  const pollMs = (
    thresholds: readonly ReturnType<typeof threshold>[],
    now: FilesystemReading | undefined,
    before?: FilesystemReading,
  ) =>
    diskPollMs(
      { paths: PATHS, thresholds, polling: POLL_PACES, pollIntervalMs: 10_000 },
      '/var/lib',
      before,
      now,
    );

  it.each([
    ['nothing is about it', [], reading(), 10_000],
    ['what is about another path', [hard('imagefs.available', '39Gi')], reading(), 10_000],
    [
      'bytes at 1 GB/s',
      [hard('nodefs.available', '40000000000')],
      reading({ availableBytes: 43e9 }),
      3000,
    ],
    ['inodes at 100,000/s', [hard('nodefs.inodesFree', '100k')], reading(), 4000],
    [
      'the sooner of both',
      [hard('nodefs.available', '40000000000'), hard('nodefs.inodesFree', '300k')],
      reading({ availableBytes: 43e9 }),
      2000,
    ],
    ['the floor', [hard('nodefs.available', '41Gi')], reading(), 1000],
    [
      'no inodes are counted: no threshold of them is near',
      [hard('nodefs.inodesFree', '1')],
      reading({ inodes: 0, inodesFree: 0 }),
      10_000,
    ],
    ['it could not be read', [hard('nodefs.available', '1Gi')], undefined, 1000],
  ] as const)('%s', (_, thresholds, now, expected) => {
    expect(pollMs(thresholds, now)).toBe(expected);
  });

  it('goes by a faster fall that was seen', () => {
    const before = reading({ availableBytes: 40 * GI + 4000 * MI, atMs: 0 });
    const now = reading({ availableBytes: 40 * GI, atMs: 1000 });
    // 8,000 MiB above the threshold, at 4,000 MiB a second.
    const poll = pollMs([hard('nodefs.available', `${40 * 1024 - 8000}Mi`)], now, before);
    expect(poll).toBeCloseTo(2000, 6);
  });
});

import { describe, expect, it, onTestFinished } from 'vitest';
import type { FilesystemReading } from '../../src/ports/filesystem.ts';
import { type NodeInputs, nodeView } from '../../src/sources/node.ts';
import { fixture } from '../runtimes/support.ts';
import { GI } from '../support/builders.ts';

const READING: FilesystemReading = {
  path: '/disk',
  atMs: 1,
  capacityBytes: 10 * GI,
  availableBytes: GI,
  usedBytes: 9 * GI,
  inodes: 0,
  inodesFree: 0,
  device: '8:1',
  mountDevice: '8:1',
  source: '/dev/sda1',
  type: 'btrfs',
  mountPoint: '/',
};

function viewOf(overrides: Partial<NodeInputs> = {}) {
  const view = nodeView(
    {
      directory: fixture('cgroup-v1', 'node'),
      isRoot: false,
      podsParent: undefined,
      compatibility: 'evictd',
      memorySource: 'workingset',
      pidsDirectory: undefined,
      readsPids: false,
      filesystems: { nodefs: '/disk', imagefs: '/disk', containerfs: undefined },
      ...overrides,
    },
    () => 42,
  );
  onTestFinished(() => view.close());
  return view;
}

const signalsOf = (view: ReturnType<typeof viewOf>) => view.read().map(({ signal }) => signal);

describe('nodeView', () => {
  it('reads memory each time, and what was measured of a filesystem once', () => {
    const view = viewOf();
    expect(signalsOf(view)).toStrictEqual(['memory.available']);
    view.note({ kind: 'read', reading: READING });
    expect(view.readCounters().map(({ signal }) => signal)).toStrictEqual(['memory.available']);
    expect(signalsOf(view)).toStrictEqual([
      'memory.available',
      'nodefs.available',
      'imagefs.available',
    ]);
    expect(signalsOf(view)).toStrictEqual(['memory.available']);
  });

  it('a failed measuring is no sample, and says why; the figures stay', () => {
    const view = viewOf();
    view.note({ kind: 'read', reading: READING });
    view.read();
    view.note({ kind: 'failed', path: '/disk', atMs: 9, error: 'no answer', stale: true });
    expect(signalsOf(view)).toStrictEqual(['memory.available']);
    expect(view.troubles().get('nodefs')).toBe('/disk: no answer');
    expect(view.readAvailable('nodefs.available')).toBe(GI);
    expect(view.readAvailable('nodefs.inodesFree')).toBeUndefined();
    expect(view.filesystems()[0]).toMatchObject({ name: 'nodefs', stale: true });
  });

  it('goes on from what was known of a path, by whatever name, and decides nothing by it', () => {
    const before = viewOf();
    before.note({ kind: 'read', reading: READING });
    const view = viewOf({
      before: before.filesystems(),
      filesystems: { nodefs: '/other', imagefs: undefined, containerfs: '/disk' },
    });
    expect(view.filesystems().map(({ name, reading }) => [name, reading])).toStrictEqual([
      ['nodefs', undefined],
      ['containerfs', READING],
    ]);
    expect(signalsOf(view)).toStrictEqual(['memory.available']);
  });

  it('reads PIDs where a threshold is about them, afresh each time', () => {
    expect(viewOf().readAvailable('pid.available')).toBeUndefined();
    const view = viewOf({ readsPids: true });
    expect(signalsOf(view)).toStrictEqual(['memory.available', 'pid.available']);
    expect(view.readAvailable('pid.available')).toBeGreaterThan(0);
  });

  it('says of each part why it cannot be read', () => {
    const view = viewOf({
      directory: '/no/such/cgroup',
      readsPids: true,
      pidsDirectory: '/nor/this',
    });
    expect(view.read()).toStrictEqual([]);
    expect(view.troubles().get('memory.available')).toContain('ENOENT');
    expect(view.troubles().get('pid.available')).toContain('ENOENT');
    expect(view.readAvailable('memory.available')).toBeUndefined();
    expect(view.readAvailable('pid.available')).toBeUndefined();
  });
});

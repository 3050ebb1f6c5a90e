import { type Logger, pino } from 'pino';
import { describe, expect, it } from 'vitest';
import type {
  Collected,
  CollectionEvent,
  CollectionNotice,
  CollectionPurpose,
} from '../../src/ports/collection.ts';
import type { FilesystemReading } from '../../src/ports/filesystem.ts';
import { collectionLog, freedBy, reportRemains } from '../../src/surfaces/collections.ts';

/** A log at `debug`, as its lines. */
function logged(...events: readonly CollectionEvent[]): readonly Record<string, unknown>[] {
  return linesOf((logger) => {
    const log = collectionLog(logger);
    for (const event of events) log(event);
  });
}

function linesOf(act: (logger: Logger) => void): readonly Record<string, unknown>[] {
  const lines: string[] = [];
  const logger: Logger = pino(
    { level: 'debug', base: {}, timestamp: false, formatters: { level: (level) => ({ level }) } },
    { write: (line: string) => lines.push(line) },
  );
  act(logger);
  for (const line of lines) expect(line.trimEnd()).not.toContain('\n');
  return lines.map((line) => JSON.parse(line));
}

const notice = (
  of: CollectionNotice,
  purpose: CollectionPurpose = 'pressure',
): CollectionEvent => ({ kind: 'notice', purpose, notice: of });

const IMAGE = { what: 'image', id: 'sha256:1', name: 'example/a:1\n{"level":"error"}' } as const;

const READING: FilesystemReading = {
  path: '/images',
  atMs: 0,
  capacityBytes: 1000,
  availableBytes: 100,
  usedBytes: 900,
  inodes: 50,
  inodesFree: 5,
  device: '8:1',
  mountDevice: '',
  source: '',
  type: 'ext4',
  mountPoint: '/',
};

const NOTHING: Collected = {
  because: 'exhausted',
  removed: { container: 0, sandbox: 0, image: 0 },
  inUse: 0,
  failed: 0,
  wouldRemove: 0,
  first: READING,
  last: { ...READING, availableBytes: 400, inodesFree: 4 },
  tookMs: 12.6,
};

describe('collectionLog', () => {
  it('has a line for each thing, with what it is called as data', () => {
    const lines = logged(
      notice({ ...IMAGE, kind: 'removed' }),
      notice({ ...IMAGE, kind: 'gone' }),
      notice({ ...IMAGE, kind: 'inUse', detail: 'used by c1' }),
      notice({ ...IMAGE, kind: 'failed', detail: 'EIO' }),
      notice({ ...IMAGE, kind: 'kept', why: 'pinned' }),
    );
    expect(lines.map(({ level, msg, reason }) => [level, msg, reason])).toStrictEqual([
      ['info', 'removed', undefined],
      ['debug', 'gone already', undefined],
      ['info', 'in use after all: it stays', 'used by c1'],
      ['warn', 'not removed', 'EIO'],
      ['debug', 'kept', 'pinned'],
    ]);
    expect(lines[0]).toMatchObject({ what: 'image', id: 'sha256:1', name: IMAGE.name });
  });

  it('has one for each thing that an evicted pod left, with the pod', () => {
    const lines = linesOf((logger) =>
      reportRemains(logger, { podName: 'shop/web', thing: { ...IMAGE, what: 'container' } }),
    );
    const { id, name } = IMAGE;
    expect(lines).toStrictEqual([
      { level: 'info', what: 'container', name, id, pod: 'shop/web', msg: 'removed' },
    ]);
  });

  it('names once what a dry run would remove', () => {
    const would = notice({ ...IMAGE, kind: 'wouldRemove' }, 'periodic');
    const other = notice({ ...IMAGE, id: 'sha256:2', kind: 'wouldRemove' }, 'periodic');
    expect(logged(would, other, would, other).map(({ msg, id }) => [msg, id])).toStrictEqual([
      ['dry run: would have removed', 'sha256:1'],
      ['dry run: would have removed', 'sha256:2'],
    ]);
  });

  it('tells the end with what was measured', () => {
    const collected = { ...NOTHING, removed: { container: 1, sandbox: 2, image: 3 }, inUse: 5 };
    expect(logged(notice({ kind: 'ended', collected }))).toStrictEqual([
      {
        level: 'info',
        purpose: 'pressure',
        because: 'exhausted',
        containers: 1,
        sandboxes: 2,
        images: 3,
        inUse: 5,
        failed: 0,
        freedBytes: 300,
        freedInodes: 0,
        tookMs: 13,
        msg: 'collected what nobody uses',
      },
    ]);
  });

  it.each<[CollectionPurpose, Partial<Collected>, string]>([
    ['pressure', {}, 'info'],
    ['periodic', {}, 'debug'],
    ['periodic', { removed: { container: 0, sandbox: 0, image: 1 } }, 'info'],
    ['periodic', { inUse: 1 }, 'info'],
    ['periodic', { failed: 1 }, 'info'],
    ['periodic', { wouldRemove: 1 }, 'info'],
  ])('of %s, with %j, at %s', (purpose, fields, level) => {
    const collected = { ...NOTHING, ...fields };
    const [line] = logged(notice({ kind: 'ended', collected }, purpose));
    expect(line).toMatchObject({ level, purpose });
  });

  it('tells that the runtime cannot be asked, without pressure at debug', () => {
    const fault: CollectionNotice = { kind: 'fault', detail: 'away' };
    const lines = logged(notice(fault), notice(fault, 'periodic'));
    expect(lines.map(({ level, reason }) => [level, reason])).toStrictEqual([
      ['warn', 'away'],
      ['debug', 'away'],
    ]);
  });

  it('tells that there are other images, at debug', () => {
    const [line] = logged({ kind: 'images', images: new Map() });
    expect(line).toMatchObject({ level: 'debug', images: 0 });
  });
});

describe('freedBy', () => {
  it('is nothing where it could not be measured, and never less than none', () => {
    expect(freedBy({ first: undefined, last: READING })).toStrictEqual({});
    expect(freedBy({ first: READING, last: undefined })).toStrictEqual({});
    const less = { ...READING, availableBytes: 0, inodesFree: 0 };
    expect(freedBy({ first: READING, last: less })).toStrictEqual({
      freedBytes: 0,
      freedInodes: 0,
    });
  });
});

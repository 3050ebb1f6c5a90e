import { firstValueFrom, take, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { FILESYSTEM_DEADLINE_MS, filesystems } from '../../src/sources/filesystem.ts';
import { liveScheduler, monotonicMs } from '../../src/sources/live-scheduler.ts';
import { within } from '../support/wait.ts';

const LIMIT_MS = 10_000;

/** On the helper that was built and the live clock. */
const measured = (paths: readonly string[], deadlineMs = FILESYSTEM_DEADLINE_MS) =>
  filesystems({ paths, scheduler: liveScheduler, deadlineMs, pollAfterMs: () => 1000 });

describe('filesystems, on a real helper', () => {
  it('reads several', async () => {
    const startedMs = monotonicMs();
    const notices$ = measured(['/', '/nowhere', '/proc']).pipe(take(3), toArray());
    const notices = await within(firstValueFrom(notices$), LIMIT_MS, 'three notices');
    expect(notices).toMatchObject([
      { kind: 'read', reading: { path: '/', mountPoint: '/' } },
      { kind: 'failed', path: '/nowhere', stale: false },
      { kind: 'failed', path: '/proc', error: "a capacity of 0 '/proc'", stale: false },
    ]);
    const [first] = notices;
    if (first?.kind !== 'read') throw new Error('unread');
    expect(first.reading.atMs).toBeGreaterThanOrEqual(startedMs);
    expect(first.reading.atMs).toBeLessThanOrEqual(monotonicMs());
  });

  it('where evictd itself was held up beyond the deadline, an answer in the pipe counts', async () => {
    const notices$ = measured(['/'], 50).pipe(take(1));
    const notice = firstValueFrom(notices$);
    const endMs = monotonicMs() + 300;
    while (monotonicMs() < endMs);
    expect(await within(notice, LIMIT_MS, 'a notice')).toMatchObject({ kind: 'read' });
  });
});

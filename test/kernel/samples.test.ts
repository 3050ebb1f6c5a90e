import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { report } from '../support/counts.ts';
import { describeWith } from '../support/skip.ts';
import { privateDirectory, startDaemon } from './support/daemon.ts';
import { MI, makeNode } from './support/node.ts';

/** A command line that runs what follows it with `file` in the place of another, seen by it alone. */
function withInPlace(replacements: ReadonlyMap<string, string>): readonly string[] {
  const mounts = [...replacements].flatMap(([target, file]) => [file, target]);
  const script =
    'while [ "$1" != -- ]; do mount --bind "$1" "$2" || exit 9; shift 2; done; shift; exec "$@"';
  return ['unshare', '--mount', 'bash', '-c', script, 'bash', ...mounts, '--'];
}

describeWith({ root: true, cgroupV1: true }, 'samples that lie', () => {
  it('case C12: usage far above the capacity is refused once said, and evicts nobody', async () => {
    const node = makeNode(512 * MI);
    const web = await node.bystander();
    const directory = privateDirectory();
    const usage = path.join(directory, 'usage');
    writeFileSync(usage, '80342220800\n');
    const daemon = await startDaemon({
      node: node.path,
      args: ['--eviction-hard', 'memory.available<100Mi', '--poll-interval', '50ms'],
      // What stands in for a control file gives no events.
      notify: false,
      wrapper: withInPlace(new Map([[`${node.path}/memory.usage_in_bytes`, usage]])),
    });
    const status = await daemon.statusWhen(
      'several samples were refused',
      ({ counters }) => counters.refusedSamples > 5,
    );
    expect(status.node).toMatchObject({ figures: 'memory.stat' });
    const [signal] = status.signals;
    expect(signal?.available).toBeGreaterThan(400 * MI);
    expect(signal?.available).toBeLessThanOrEqual(512 * MI);
    expect(status.evictions).toEqual([]);
    expect(status.degraded).toEqual([
      { part: 'memory.available', reason: expect.stringContaining('80342220800') },
    ]);
    expect(daemon.said().filter((msg) => msg === 'degraded')).toHaveLength(1);

    writeFileSync(usage, `${64 * MI}\n`);
    await daemon.line('read again as it should be');
    expect((await daemon.status()).node.figures).toBe('counters');
    web.expectAlive();
    await daemon.stop();
  });

  it('case C14: page cache in use is available by memavailable, not by the working set', async () => {
    const node = makeNode(512 * MI);
    const web = await node.bystander();
    const file = path.join(privateDirectory('/var/tmp'), 'cache');
    writeFileSync(file, Buffer.alloc(320 * MI));
    execFileSync('dd', [`of=${file}`, 'oflag=nocache', 'conv=notrunc,fdatasync', 'count=0'], {
      stdio: 'ignore',
    });
    // Read twice, so that it moves to the active list.
    const cache = node
      .pod('cache')
      .shell('cat "$1" "$1" "$1" > /dev/null && echo done && sleep 1000', [file]);
    expect(await cache.said).toBe('done');
    const args = ['--eviction-hard', 'memory.available<256Mi', '--poll-interval', '50ms'];
    const daemon = await startDaemon({
      node: node.path,
      args: [...args, '--memory-source', 'memavailable'],
    });
    const { node: seen, thresholds, signals, evictions } = await daemon.status();
    const available = seen.availableBytes ?? { workingset: Number.NaN, memavailable: Number.NaN };
    report(
      `working set: ${Math.round(available.workingset / MI)}Mi available, memavailable: ` +
        `${Math.round(available.memavailable / MI)}Mi`,
    );
    expect(available.workingset).toBeLessThan(256 * MI);
    expect(available.memavailable).toBeGreaterThan(400 * MI);
    expect(signals[0]?.available).toBe(available.memavailable);
    expect(thresholds[0]).toMatchObject({ met: false });
    expect(evictions).toEqual([]);

    // The same node by the working set: the cache's pod would go.
    const other = await startDaemon({ node: node.path, args: [...args, '--dry-run'] });
    const [decided] = await other.ended(1);
    expect(decided).toMatchObject({ pod: 'cache', outcome: 'refused', reason: 'dryRun' });
    web.expectAlive();
    await other.stop();
    await daemon.stop();
  });
});

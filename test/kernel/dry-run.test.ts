import { chmodSync, chownSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { describeWith } from '../support/skip.ts';
import { privateDirectory, startDaemon } from './support/daemon.ts';
import { fill, isAlive, MI, makeNode } from './support/node.ts';

const HARD_64 = ['--eviction-hard', 'memory.available<64Mi'];
const NOBODY = 65_534;
const SAID = 'dry run: would have evicted';

const NEEDS = { root: true, cgroupV1: true, programs: ['unshare', 'setpriv'] } as const;

describeWith(NEEDS, 'a dry run', () => {
  it('says once per burst whom it would evict, and kills nothing', async () => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const leak = await node.pod('leak').spawn({ onTerm: 'ignore' });
    const daemon = await startDaemon({ node: node.path, args: [...HARD_64, '--dry-run'] });
    let termed = false;
    void leak.terminated.then(() => {
      termed = true;
    });
    for (const burst of [1, 2]) {
      await fill(node.cgroup, leak, 210 * MI);
      const met = await daemon.statusWhen('it has been said', ({ evictions, thresholds }) => {
        return thresholds[0]?.met === true && evictions.length >= burst;
      });
      // Polled at the floor meanwhile, and no second word.
      const { samples } = met.counters;
      const later = await daemon.statusWhen('ten samples on', ({ counters }) => {
        return counters.samples >= samples + 10;
      });
      expect(later.evictions.length).toBeGreaterThanOrEqual(burst);
      expect(later.evictions.at(-1)).toMatchObject({
        pod: 'leak',
        outcome: 'refused',
        reason: 'dryRun',
        timing: { firstSignalMs: null, killedMs: null },
      });
      expect(later.conditions[0]?.status).toBe(true);
      await leak.shrink();
      const calm = await daemon.statusWhen(
        'calm',
        ({ thresholds }) => thresholds[0]?.met === false,
      );
      // What is met again within a second is the same burst.
      await daemon.statusWhen('a second later', ({ evictd }) => {
        return evictd.uptimeMs >= calm.evictd.uptimeMs + 1100;
      });
    }
    expect(isAlive(leak.pid)).toBe(true);
    expect(termed).toBe(false);
    web.expectAlive();
    await daemon.stop();
    // The kernel's counter wavers by its batches of 64 pages: a crossing may be met twice.
    expect(daemon.said().filter((msg) => msg === SAID)).toHaveLength(2);
    expect(daemon.said()).not.toContain('evicting');
    expect(daemon.said()).not.toContain('eviction not carried out');
  });

  it('needs no root: what it may not arm it polls, and it says so', async () => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const leak = await node.pod('leak').spawn();
    const directory = privateDirectory();
    chownSync(directory, NOBODY, NOBODY);
    chmodSync(directory, 0o700);
    const daemon = await startDaemon({
      node: node.path,
      uid: NOBODY,
      socket: path.join(directory, 'evictd.sock'),
      args: [...HARD_64, '--dry-run'],
    });
    const { thresholds, degraded } = await daemon.status();
    expect(thresholds[0]?.notification.path).toBe('polling');
    const parts = degraded.filter(({ part }) => part.startsWith('notification'));
    expect(parts).toHaveLength(1);
    expect(parts[0]?.reason).toContain('EACCES');
    expect(thresholds[0]?.notification.detail).toContain('EACCES');

    await fill(node.cgroup, leak, 210 * MI);
    expect((await daemon.ended(1))[0]).toMatchObject({ pod: 'leak', reason: 'dryRun' });
    expect(isAlive(leak.pid)).toBe(true);
    web.expectAlive();
    await daemon.stop();
    expect(daemon.said().filter((msg) => msg.includes('polling takes over'))).toHaveLength(1);
  });

  it('leaves a default socket and a default state directory out that cannot be made', async () => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const leak = await node.pod('leak').spawn();
    // A /run of its own: what another evictd does on this machine is not to be met here.
    const asNobody =
      'mount -t tmpfs -o mode=755 tmpfs /run && mount -t tmpfs -o mode=755 tmpfs /var/lib && ' +
      'exec setpriv --reuid "$0" --regid "$0"';
    const daemon = await startDaemon({
      node: node.path,
      wrapper: ['unshare', '-m', 'sh', '-c', `${asNobody} --clear-groups "$@"`, String(NOBODY)],
      socket: 'default',
      stateDir: 'default',
      args: [...HARD_64, '--dry-run'],
    });
    const degraded = daemon.lines.filter(({ msg }) => msg === 'degraded');
    expect(degraded.filter(({ part }) => part === 'socket')).toEqual([
      expect.objectContaining({ reason: expect.stringContaining('no status socket') }),
    ]);
    expect(degraded.filter(({ part }) => part === 'state')).toEqual([
      expect.objectContaining({
        reason: expect.stringContaining('nothing is kept over a restart'),
      }),
    ]);
    // Nor may it raise its priority, which has a reason too.
    expect(degraded.filter(({ part }) => part === 'scheduling')).toEqual([
      expect.objectContaining({ reason: expect.stringMatching(/refused: E(ACCES|PERM)$/) }),
    ]);
    await fill(node.cgroup, leak, 210 * MI);
    expect(await daemon.line(SAID)).toMatchObject({ pod: 'leak' });
    expect(isAlive(leak.pid)).toBe(true);
    web.expectAlive();
    await daemon.stop();
  });
});

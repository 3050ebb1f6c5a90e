import { expect, it } from 'vitest';
import { count, report } from '../support/counts.ts';
import { describeWith } from '../support/skip.ts';
import { runEvictd, startDaemon } from './support/daemon.ts';
import { death, MI, makeNode, oomKills } from './support/node.ts';

const FIRST = 'the kernel’s OOM killer was first';

describeWith({ root: true, cgroupV1: true }, 'kills of the kernel’s OOM killer', () => {
  it('in a pod that meets its own limit are noticed, logged and counted', async () => {
    const node = makeNode(1024 * MI);
    const web = await node.bystander();
    const db = node.pod('db', { limitBytes: 96 * MI });
    const inner = db.cgroup.child('main');
    // What was killed before is not told again.
    const early = await db.spawn({ below: inner });
    await early.grow(200 * MI).catch(() => undefined);
    expect(await death(early)).toMatchObject({ signal: 'SIGKILL' });

    const daemon = await startDaemon({
      node: node.path,
      args: ['--eviction-hard', 'memory.available<64Mi', '--poll-interval', '1s'],
    });
    const rounds = count(2, 10);
    for (let round = 1; round <= rounds; round += 1) {
      const leak = await db.spawn({ below: inner });
      await leak.grow(200 * MI).catch(() => undefined);
      const { atMs } = await death(leak);
      const { lostRaces } = await daemon.statusWhen(
        `${round} lost races are counted`,
        ({ counters }) => counters.lostRaces === round,
      );
      report(`noticed after ${(performance.now() - atMs).toFixed(0)} ms`);
      expect(lostRaces).toHaveLength(round);
      expect(lostRaces.at(-1)).toMatchObject({ pod: 'db', cgroup: inner.path, kills: 1 });
    }
    expect(oomKills(inner)).toBe(rounds + 1);
    expect(oomKills(db.cgroup)).toBe(0);
    expect(daemon.lines.filter(({ msg }) => msg === FIRST)).toHaveLength(rounds);
    expect(await daemon.line(FIRST)).toMatchObject({
      level: 'warn',
      pod: 'db',
      cgroup: inner.path,
      kills: 1,
    });
    const { stdout } = await runEvictd(['status', '--socket', daemon.socketPath]);
    expect(stdout).toMatch(/LOST RACES\nat +pod +kills +cgroup\n\S+ +db +1 +\S+\/db\/main\n/);
    const { evictions, degraded } = await daemon.status();
    expect(evictions).toEqual([]);
    expect(degraded).toEqual([]);
    web.expectAlive();
    await daemon.stop();
  });

  it('on a node that runs out are noticed at once, while it would else be polled hourly', async () => {
    const node = makeNode(128 * MI);
    const leak = await node.pod('leak').spawn();
    const daemon = await startDaemon({
      node: node.path,
      // Nothing is ever evicted, and nothing else wakes it up.
      args: ['--eviction-hard', '', '--poll-interval', '1h'],
    });
    await leak.grow(256 * MI).catch(() => undefined);
    expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
    expect(await daemon.line(FIRST)).toMatchObject({ pod: 'leak', kills: 1 });
    expect((await daemon.status()).counters.lostRaces).toBe(1);
    await daemon.stop();
  });

  it('outside of the pods are said, and are no lost race', async () => {
    const node = makeNode(1024 * MI);
    const other = makeNode(96 * MI);
    const web = await node.bystander();
    const daemon = await startDaemon({
      node: node.path,
      args: ['--eviction-hard', 'memory.available<64Mi', '--poll-interval', '1s'],
    });
    const leak = await other.pod('leak').spawn();
    await leak.grow(200 * MI).catch(() => undefined);
    expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
    await daemon.line('the kernel’s OOM killer struck outside of the pods');
    expect((await daemon.status()).counters.lostRaces).toBe(0);
    web.expectAlive();
    await daemon.stop();
  });
});

import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { describeWith } from '../support/skip.ts';
import { privateDirectory, startDaemon } from './support/daemon.ts';
import { death, fill, MI, makeNode, oomKills, podOf } from './support/node.ts';

/** A configuration with these rules, in a file of its own. */
function configuration(...pods: readonly object[]): string {
  const file = path.join(privateDirectory(), 'evictd.yaml');
  const header = { apiVersion: 'evictd.dev/v1alpha1', kind: 'EvictdConfiguration' };
  const evictionHard = { 'memory.available': '64Mi' };
  writeFileSync(file, JSON.stringify({ ...header, evictionHard, pods }));
  return file;
}

describeWith({ root: true, cgroupV1: true }, 'rules of a configuration file', () => {
  it('say what is evictable and what of it goes first; what keeps the host going is never named', async () => {
    const node = makeNode(512 * MI);
    const slice = node.cgroup.child('system.slice');
    const service = (name: string) => podOf(slice.child(`${name}.service`));
    // The largest of all, and no wildcard names it.
    const sshd = await service('sshd').spawn();
    const beside = await node.pod('beside').spawn();
    const db = await service('db').spawn();
    const web = await service('web').spawn();
    const batch = await service('batch').spawn();
    await sshd.grow(120 * MI);
    await beside.grow(100 * MI);
    await db.grow(60 * MI);
    await web.grow(50 * MI);
    await batch.grow(16 * MI);
    const daemon = await startDaemon({
      node: node.path,
      args: [
        '--config',
        configuration(
          { cgroup: 'system.slice/db.service', protected: true },
          { cgroup: 'system.slice/web.service', name: 'website', priority: 10 },
          { cgroup: 'system.slice/*.service', memoryRequest: '1Mi' },
        ),
      ],
    });
    const { pods } = await daemon.status();
    expect(pods.map(({ name }) => name)).toEqual([
      'system.slice/db.service',
      'system.slice/batch.service',
      'website',
    ]);
    expect(pods[0]?.protected).toBe('configured');
    expect(pods[1]).toMatchObject({ requestBytes: MI, qosClass: 'Burstable' });
    expect(pods[2]).toMatchObject({ priority: 10, protected: null });

    await fill(node.cgroup, batch, 460 * MI);
    expect(await death(batch)).toMatchObject({ signal: 'SIGKILL' });
    expect((await daemon.ended(1))[0]).toMatchObject({ pod: 'system.slice/batch.service' });
    await fill(node.cgroup, web, 460 * MI);
    expect(await death(web)).toMatchObject({ signal: 'SIGKILL' });
    expect((await daemon.ended(2))[1]).toMatchObject({ pod: 'website', outcome: 'evicted' });
    // Nobody else is evictable, whatever they take.
    await fill(node.cgroup, sshd, 455 * MI);
    await daemon.line('pressure, but no pod may be evicted');
    for (const { pid } of [sshd, beside, db]) process.kill(pid, 0);
    expect(oomKills(node.cgroup)).toBe(0);
    await daemon.stop();
  });
});

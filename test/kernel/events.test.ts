import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { describeWith } from '../support/skip.ts';
import { privateDirectory, runEvictd, startDaemon } from './support/daemon.ts';
import { death, fill, MI, makeNode } from './support/node.ts';

const ARGS = ['--eviction-hard', 'memory.available<64Mi', '--node-name', 'node-1.example'];

describeWith({ root: true, cgroupV1: true }, 'the daemon’s events', () => {
  it('are lines of the log and records of the status; its conditions keep pods out', async () => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const leak = await node.pod('leak').spawn();
    const daemon = await startDaemon({ node: node.path, args: ARGS });
    const pods = path.join(privateDirectory(), 'pods.yaml');
    writeFileSync(pods, '[{kind: Pod, metadata: {name: new}, spec: {}}]');
    const admit = () => runEvictd(['admit', pods, '--socket', daemon.socketPath]);
    expect(await admit()).toMatchObject({ code: 0, stdout: 'default/new: admitted\n' });
    expect((await daemon.status()).events).toEqual([]);

    await fill(node.cgroup, leak, 210 * MI);
    expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
    await daemon.ended(1);

    const { node: named, events, evictions } = await daemon.status();
    expect(named.name).toBe('node-1.example');
    const isEvicted = ({ reason }: { readonly reason?: unknown }) => reason === 'Evicted';
    expect(events.filter((event) => !isEvicted(event))).toMatchObject([
      {
        type: 'Warning',
        reason: 'EvictionThresholdMet',
        object: 'node-1.example',
        message: 'Attempting to reclaim memory',
        count: 1,
      },
    ]);
    const { message } = evictions.at(-1) ?? {};
    expect(events.filter(isEvicted).at(-1)).toMatchObject({ object: 'leak', message });
    expect(await daemon.line('event', (line) => line['reason'] === 'Evicted')).toMatchObject({
      level: 'warn',
      object: 'leak',
    });
    expect(await admit()).toMatchObject({
      code: 3,
      stdout: 'default/new: refused: Evicted: The node had condition: [MemoryPressure]. \n',
      stderr: '',
    });
    const { stdout } = await runEvictd(['status', '--socket', daemon.socketPath]);
    expect(stdout).toMatch(/EVENTS\n.*\n\S+ +Warning +EvictionThresholdMet +node-1\.example +1 /);
    web.expectAlive();
  });
});

import { randomUUID } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { askDaemon } from '../../src/commands/ask.ts';
import type { Summary } from '../../src/core/kubernetes.ts';
import { MI } from '../kernel/support/node.ts';
import { askedRuntimeContract, runtimeContract } from '../runtimes/contract.ts';
import { describeWith } from '../support/skip.ts';
import { costStory } from './cost-story.ts';
import { faultRounds } from './fault-rounds.ts';
import { isAlive, isGone, leakStories, stage } from './leak-stories.ts';
import { softStories } from './soft-stories.ts';
import { stuckShim } from './stuck-shim.ts';
import { startContainerd } from './support/containerd.ts';
import { contractHost } from './support/contract-host.ts';
import { criHost } from './support/cri-host.ts';
import type { RuntimeHost } from './support/runtime-host.ts';

const NEEDS = {
  root: true,
  cgroupV1: true,
  programs: ['containerd', 'runc', 'ctr', 'busybox', 'tar'],
} as const;

describeWith(NEEDS, 'containerd', () => {
  let host: RuntimeHost;

  beforeAll(async () => {
    host = criHost(await startContainerd(mkdtempSync('/tmp/ec-')));
  });
  afterAll(() => host.remove());

  runtimeContract(() => contractHost(host));
  askedRuntimeContract(() => contractHost(host));
  leakStories(() => host);

  it('evicts the one of two pods that leaks, where both have one cgroup for parent', async () => {
    const { holds, leaks, watch, knows } = stage(host);
    const sharedCgroup = 'shared';
    const web = await holds('web', 40, { sharedCgroup });
    const leak = await leaks('leak', { mib: 600, sharedCgroup });
    const daemon = await watch();
    await knows(daemon, [web, leak]);
    leak.begin();
    expect(await daemon.ended(1)).toMatchObject([{ pod: leak.name, outcome: 'evicted' }]);
    await isGone(host, leak);
    await isAlive(host, web);
  });

  it('tells the memory of each container, and names the one that a pod was evicted for', async () => {
    const { holds, leaks, watch, knows } = stage(host);
    const web = await holds('web', 40);
    const uid = randomUUID();
    // BestEffort, whatever the OOM killer is told of it: it asks for nothing.
    const podCgroup = `kubepods/besteffort/pod${uid}`;
    const leak = await leaks('leak', { mib: 600, pauseSeconds: 0.05, uid, podCgroup });
    const daemon = await watch();
    await knows(daemon, [web, leak]);
    const { pods } = JSON.parse(await askDaemon(daemon.socketPath, '/stats/summary')) as Summary;
    const stats = pods?.find(({ podRef }) => `${podRef.namespace}/${podRef.name}` === web.name);
    const [whole = 0, main = 0] = [stats?.memory, stats?.containers?.[0]?.memory].map(
      (memory) => memory?.workingSetBytes ?? 0,
    );
    expect(stats?.containers?.map(({ name }) => name)).toEqual(['main']);
    expect(main).toBeGreaterThan(40 * MI);
    // The rest is the sandbox's own.
    expect(main).toBeLessThanOrEqual(whole);
    expect((await daemon.status()).pods.map(({ name }) => name).sort()).toEqual(
      [web.name, leak.name].sort(),
    );
    leak.begin();
    const [eviction] = await daemon.ended(1);
    expect(eviction).toMatchObject({
      pod: leak.name,
      outcome: 'evicted',
      annotations: { offending_containers: 'main', starved_resource: 'memory' },
    });
    const [, usedKi] =
      /Container main was using (\d+)Ki, request is 0, /.exec(eviction?.message ?? '') ?? [];
    expect(Number(usedKi)).toBeGreaterThan(200 * 1024);
    await isAlive(host, web);
  });
  softStories(() => host);
  faultRounds('containerd', () => host);
  stuckShim(() => host);
  costStory('containerd', () => host);
});

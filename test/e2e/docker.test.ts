import { mkdtempSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { askedRuntimeContract, runtimeContract } from '../runtimes/contract.ts';
import { report } from '../support/counts.ts';
import { describeWith } from '../support/skip.ts';
import { until } from '../support/wait.ts';
import { costStory } from './cost-story.ts';
import { faultRounds } from './fault-rounds.ts';
import { isAlive, isGone, leakStories, stage } from './leak-stories.ts';
import { softStories } from './soft-stories.ts';
import { stuckShim } from './stuck-shim.ts';
import { contractHost } from './support/contract-host.ts';
import { type Dockerd, startDockerd } from './support/dockerd.ts';
import { engineHost } from './support/engine-host.ts';
import { end, isRunning, pidsBelow } from './support/left-over.ts';
import type { RuntimeHost } from './support/runtime-host.ts';

const LIMIT_MS = 60_000;

const NEEDS = {
  root: true,
  cgroupV1: true,
  programs: ['dockerd', 'containerd', 'runc', 'busybox', 'tar'],
} as const;

describeWith(NEEDS, 'Docker Engine', () => {
  let dockerd: Dockerd;
  let host: RuntimeHost;

  beforeAll(async () => {
    dockerd = await startDockerd(mkdtempSync('/tmp/ed-'), { liveRestore: true });
    host = engineHost(dockerd);
  });
  afterAll(() => host.remove());

  runtimeContract(() => contractHost(host));
  askedRuntimeContract(() => contractHost(host));
  leakStories(() => host);
  softStories(() => host);
  faultRounds('dockerd', () => host);
  // An engine that waits for a shim keeps whatever is asked about its container waiting too.
  stuckShim(
    () => host,
    async ({ id }) => {
      const container = dockerd.docker.getContainer(id);
      await container.pause();
      await container.unpause();
    },
  );
  costStory('dockerd', () => host);

  it('keeps a container from coming back that is always restarted', async () => {
    const { holds, leaks, watch, knows } = stage(host);
    const web = await holds('web', 40);
    const leak = await leaks('leak', { mib: 600, pauseSeconds: 0.02, restart: 'always' });
    const daemon = await watch();
    await knows(daemon, [web, leak]);
    leak.begin();
    const evictions = await daemon.ended(1, LIMIT_MS);
    expect(evictions.map(({ pod, outcome }) => [pod, outcome])).toEqual([['leak', 'evicted']]);
    await isGone(host, leak);
    const { State, RestartCount } = await dockerd.docker.getContainer(leak.id).inspect();
    // The engine is done with it: it is neither running nor about to be.
    expect([State.Status, State.Restarting]).toEqual(['exited', false]);
    report(`started again ${RestartCount} times before the engine was told`);
    await knows(daemon, [web]);
    await isAlive(host, web);
  });
});

describeWith(NEEDS, 'Docker Engine without live restore', () => {
  let host: RuntimeHost;

  beforeAll(async () => {
    host = engineHost(await startDockerd(mkdtempSync('/tmp/ed-'), { liveRestore: false }));
  });
  afterAll(() => host.remove());

  it('has its own shutdown of its containers told as none of evictd’s', async () => {
    const { holds, leaks, watch, knows, node } = stage(host);
    const pods = [await holds('web', 40), await leaks('full', { mib: 300 })];
    const daemon = await watch();
    await knows(daemon, pods);
    (pods[1] as Awaited<ReturnType<typeof leaks>>).begin();
    const isFull = () => node.cgroup.usageBytes() > 330 * 2 ** 20;
    await until('there is pressure', isFull, { limitMs: LIMIT_MS });
    end(host.pid(), 'SIGTERM');
    const isOver = () => !isRunning(host.pid());
    await until('dockerd has ended', isOver, { limitMs: LIMIT_MS });
    for (const { cgroup } of pods) expect(pidsBelow(cgroup)).toEqual([]);
    await daemon.line('degraded', ({ part }) => part === 'runtime');
    await host.start();
    await daemon.line('the runtime answers', ({ pods: listed }) => listed === 0);
    await knows(daemon, []);
    const { evictions, lostRaces, degraded } = await daemon.status();
    expect({ evictions, lostRaces, degraded }).toEqual({
      evictions: [],
      lostRaces: [],
      degraded: [],
    });
  });
});

import { mkdtempSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { askedRuntimeContract, runtimeContract } from '../runtimes/contract.ts';
import { describeWith } from '../support/skip.ts';
import { costStory } from './cost-story.ts';
import { faultRounds } from './fault-rounds.ts';
import { isAlive, isGone, leakStories, stage } from './leak-stories.ts';
import { softStories } from './soft-stories.ts';
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
  softStories(() => host);
  faultRounds('containerd', () => host);
  costStory('containerd', () => host);
});

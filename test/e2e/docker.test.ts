import { mkdtempSync } from 'node:fs';
import { afterAll, beforeAll } from 'vitest';
import { describeWith } from '../support/skip.ts';
import { faultRounds } from './fault-rounds.ts';
import { leakStories } from './leak-stories.ts';
import { softStories } from './soft-stories.ts';
import { startDockerd } from './support/dockerd.ts';
import { engineHost } from './support/engine-host.ts';
import type { RuntimeHost } from './support/runtime-host.ts';

const NEEDS = {
  root: true,
  cgroupV1: true,
  programs: ['dockerd', 'containerd', 'runc', 'busybox', 'tar'],
} as const;

describeWith(NEEDS, 'Docker Engine', () => {
  let host: RuntimeHost;

  beforeAll(async () => {
    host = engineHost(await startDockerd(mkdtempSync('/tmp/ed-'), { liveRestore: true }));
  });
  afterAll(() => host.remove());

  leakStories(() => host);
  softStories(() => host);
  faultRounds('dockerd', () => host);
});

import { mkdtempSync } from 'node:fs';
import { afterAll, beforeAll } from 'vitest';
import { describeWith } from '../support/skip.ts';
import { faultRounds } from './fault-rounds.ts';
import { leakStories } from './leak-stories.ts';
import { startContainerd } from './support/containerd.ts';
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

  leakStories(() => host);
  faultRounds('containerd', () => host);
});

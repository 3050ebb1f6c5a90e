import { mkdtempSync } from 'node:fs';
import { afterAll, beforeAll } from 'vitest';
import { askedRuntimeContract, runtimeContract } from '../runtimes/contract.ts';
import { describeWith } from '../support/skip.ts';
import { leakStories } from './leak-stories.ts';
import { softStories } from './soft-stories.ts';
import { contractHost } from './support/contract-host.ts';
import { engineHost } from './support/engine-host.ts';
import { startPodman } from './support/podman.ts';
import type { RuntimeHost } from './support/runtime-host.ts';

const NEEDS = {
  root: true,
  cgroupV1: true,
  programs: ['podman', 'conmon', 'runc', 'busybox', 'tar'],
} as const;

describeWith(NEEDS, 'Podman', () => {
  let host: RuntimeHost;

  beforeAll(async () => {
    host = engineHost(await startPodman(mkdtempSync('/tmp/ep-')));
  });
  afterAll(() => host.remove());

  runtimeContract(() => contractHost(host));
  askedRuntimeContract(() => contractHost(host));
  leakStories(() => host);
  softStories(() => host, { hasShims: false });
});

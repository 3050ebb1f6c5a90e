import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { NEVER, startWith } from 'rxjs';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { summaryCommand } from '../../src/commands/summary.ts';
import { recordSettings } from '../../src/config/record-flags.ts';
import { simulate } from '../../src/simulation/engine.ts';
import type { Scenario } from '../../src/simulation/scenario.ts';
import { askKubelet } from '../../src/sources/kubelet.ts';
import type { SampleLine } from '../../src/surfaces/samples.ts';
import { type Documents, serveStatus } from '../../src/surfaces/socket.ts';
import { MI } from '../support/builders.ts';

const fs = (availableMi: number) => ({
  availableBytes: availableMi * MI,
  capacityBytes: 1000 * MI,
  usedBytes: (1000 - availableMi) * MI,
});
const stats = (name: string, usedMi: number) => ({
  podRef: { name, namespace: 'default', uid: name },
  containers: [{ name: 'main', rootfs: { usedBytes: usedMi * MI }, logs: { usedBytes: 0 } }],
  volume: [],
});
const SUMMARY = {
  node: { nodeName: 'n', fs: fs(900), runtime: { imageFs: fs(50), containerFs: fs(50) } },
  pods: [stats('web', 20), stats('fat', 700)],
};
const PODS = {
  kind: 'PodList',
  items: ['web', 'fat'].map((name) => ({
    metadata: { name, namespace: 'default', uid: name },
    spec: { containers: [{ name: 'main' }], volumes: [], priority: 0 },
    status: { qosClass: 'BestEffort' },
  })),
};
const HEAD: SampleLine = {
  apiVersion: 'evictd.dev/v1alpha1',
  kind: 'Samples',
  version: '1.2.3',
  nodeCgroup: '/node',
  startedAt: '2026-01-01T12:00:00.000Z',
  config: { evictionHard: { 'imagefs.available': '100Mi' } },
  dedicatedImageFs: true,
  splitImageFs: false,
  pods: [],
  evicting: false,
  pressure: false,
};

/** A daemon's socket that answers so. */
async function served(documents: Documents): Promise<string> {
  const directory = mkdtempSync(path.join(tmpdir(), 'evictd-summary-'));
  const socketPath = path.join(directory, 's');
  const socket = await serveStatus(
    socketPath,
    async () => ({}),
    () => NEVER.pipe(startWith(HEAD)),
    documents,
  );
  onTestFinished(() => {
    socket.close();
    rmSync(directory, { recursive: true });
  });
  return socketPath;
}

const BOTH: Documents = {
  '/stats/summary': async () => SUMMARY,
  '/pods': async () => PODS,
};

/** What the command prints. */
async function printed(socketPath: string, scenario: boolean): Promise<string> {
  const write = vi.spyOn(process.stdout, 'write').mockImplementation(() => true);
  expect(await summaryCommand({ socketPath, scenario })).toBe(0);
  return write.mock.calls.map(([text]) => String(text)).join('');
}

afterEach(() => {
  vi.restoreAllMocks();
});

describe('evictd summary', () => {
  it('prints what the daemon answers', async () => {
    expect(JSON.parse(await printed(await served(BOTH), false))).toEqual(SUMMARY);
  });

  it('as a scenario, is run by simulate: who fills the disk goes', async () => {
    const scenario = JSON.parse(await printed(await served(BOTH), true)) as Scenario;
    expect(scenario.node).toEqual({ dedicatedImageFs: true, splitImageFs: false });
    const { ticks, error } = simulate(scenario);
    expect(error).toBeUndefined();
    expect(ticks.map(({ evicted }) => evicted.map(({ pod }) => pod))).toEqual([['default/fat']]);
    expect(ticks[0]?.nodeConditions).toEqual(['DiskPressure']);
  });

  it.each([
    ['another document', { '/stats/summary': async () => ({ kind: 'Status' }) }],
    ['a list', { '/stats/summary': async () => [] }],
    ['nothing', {}],
  ])('%s is no summary', async (_, documents) => {
    const socketPath = await served(documents);
    await expect(summaryCommand({ socketPath, scenario: false })).rejects.toMatchObject({
      code: 'EVICTD_UNREACHABLE',
    });
  });

  it('says that no daemon runs', async () => {
    const socketPath = path.join(tmpdir(), 'evictd-nobody');
    await expect(summaryCommand({ socketPath, scenario: false })).rejects.toMatchObject({
      code: 'EVICTD_NOT_RUNNING',
    });
  });
});

describe('evictd record --kubelet unix://', () => {
  it('asks a socket as it asks a kubelet', async () => {
    const socketPath = await served(BOTH);
    const { source } = recordSettings({ '--kubelet': [`unix://${socketPath}`] });
    if (source.kind !== 'kubelet') throw new Error('not a kubelet');
    const { summary, pods } = await askKubelet(source);
    expect(summary.node).toEqual(SUMMARY.node);
    expect(pods).toEqual(PODS.items);
  });

  it.each(['unix:', 'unix://host/run/x', 'unix:///run/x?y', 'unix:relative'])(
    '%s is no address',
    (address) => {
      expect(() => recordSettings({ '--kubelet': [address] })).toThrow(
        expect.objectContaining({ code: 'EVICTD_USAGE' }),
      );
    },
  );

  it('says so where nobody listens', async () => {
    const { source } = recordSettings({ '--kubelet': ['unix:///nowhere/evictd.sock'] });
    if (source.kind !== 'kubelet') throw new Error('not a kubelet');
    await expect(askKubelet(source)).rejects.toMatchObject({ code: 'EVICTD_KUBELET' });
  });
});

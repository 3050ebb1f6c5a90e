/** The hosts of these suites as the contract of runtimes sees them. */
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { pino } from 'pino';
import { firstValueFrom } from 'rxjs';
import { onTestFinished } from 'vitest';
import { openDirectory } from '../../../src/commands/runtime-choice.ts';
import { loadSettings } from '../../../src/config/load.ts';
import { runtimeOf } from '../../../src/daemon/runtime.ts';
import { resolveNodeCgroup } from '../../../src/kernel/node-cgroup.ts';
import type { Runtime } from '../../../src/ports/runtime.ts';
import { liveScheduler } from '../../../src/sources/live-scheduler.ts';
import type { TestNode } from '../../kernel/support/node.ts';
import type { ContractHost } from '../../runtimes/contract.ts';
import { requireAddon } from '../../support/native.ts';
import { end } from './left-over.ts';
import type { RuntimeHost } from './runtime-host.ts';

export function contractHost(host: RuntimeHost): ContractHost {
  const openParts = async ({ path: directory }: TestNode, socketPath: string) => {
    const node = resolveNodeCgroup(directory);
    const { settings } = loadSettings({
      '--node-cgroup': [directory],
      '--runtime': [host.kind],
      '--runtime-endpoint': [`unix://${socketPath}`],
    });
    const opened = await openDirectory(settings, node, pino({ enabled: false }));
    if (opened === undefined) throw new Error('no runtime is asked');
    return { node, settings, directory: opened };
  };
  /** As the daemon has it, by the default settings. */
  const open = async (on: TestNode, socketPath: string): Promise<Runtime> => {
    const parts = await openParts(on, socketPath);
    const runtime = runtimeOf(
      { ...parts, native: requireAddon(), scheduler: liveScheduler },
      () => undefined,
    );
    onTestFinished(() => runtime.close());
    return runtime;
  };
  return {
    open: (node) => open(node, host.socketPath),
    run: (node, name, script) => host.run(node, name, ['sh', '-c', script]),
    clear: (node) => host.clear(node),
    openReclaimer: async (node) => {
      const { directory } = await openParts(node, host.socketPath);
      onTestFinished(() => directory.close());
      const { reclaimer } = directory;
      if (reclaimer === undefined) return undefined;
      return {
        reclaimer,
        containersOf: async ({ name }) => {
          const listing = await firstValueFrom(directory.listings$);
          const pods = listing.kind === 'listed' ? listing.pods : [];
          const pod = pods.find((one) => one.name === name);
          return pod?.containers.map(({ id }) => id) ?? [];
        },
      };
    },
    daemon: {
      pause: () => end(host.pid(), 'SIGSTOP'),
      resume: () => end(host.pid(), 'SIGCONT'),
      openAbsent: async (node) => {
        const directory = mkdtempSync('/tmp/ea-');
        onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
        const socketPath = path.join(directory, 's');
        return {
          runtime: await open(node, socketPath),
          appear: () => symlinkSync(host.socketPath, socketPath),
        };
      },
    },
  };
}

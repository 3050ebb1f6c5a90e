/** The hosts of these suites as the contract of runtimes sees them. */
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { pino } from 'pino';
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
  /** As the daemon has it, by the default settings. */
  const open = async ({ path: directory }: TestNode, socketPath: string): Promise<Runtime> => {
    const node = resolveNodeCgroup(directory);
    const { settings } = loadSettings({
      '--node-cgroup': [directory],
      '--runtime': [host.kind],
      '--runtime-endpoint': [`unix://${socketPath}`],
    });
    const inputs = {
      settings,
      node,
      native: requireAddon(),
      scheduler: liveScheduler,
      directory: await openDirectory(settings, node, pino({ enabled: false })),
    };
    const runtime = runtimeOf(inputs, () => undefined);
    onTestFinished(() => runtime.close());
    return runtime;
  };
  return {
    open: (node) => open(node, host.socketPath),
    run: (node, name, script) => host.run(node, name, ['sh', '-c', script]),
    clear: (node) => host.clear(node),
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

/** The host of these suites that speaks CRI. */
import { mkdtempSync, rmSync } from 'node:fs';
import path from 'node:path';
import { criClient } from '../../../src/runtimes/cri/client.ts';
import { MEMORY_HIERARCHY } from '../../support/cgroup.ts';
import type { Containerd } from './containerd.ts';
import { type PodMaker, podMaker } from './cri-pods.ts';
import { removeGroups } from './left-over.ts';
import type { MadePod, RuntimeHost } from './runtime-host.ts';
import { untilAnswer } from './until-answer.ts';

/** How long a call of the tests' own may take, ms. */
const CALL_LIMIT_MS = 30_000;

interface Listed<State extends string> {
  readonly id: string;
  readonly state: State;
}

export function criHost(containerd: Containerd): RuntimeHost {
  const client = criClient(`unix://${containerd.socketPath}`, () => Date.now());
  const call = <T>(method: string, request: object = {}): Promise<T> =>
    client.call<T>(method, request, CALL_LIMIT_MS);
  const logs = mkdtempSync('/tmp/ecp-');
  const maker: PodMaker = podMaker(containerd.socketPath, logs);
  const made = new Map<string, string[]>();
  const containers = new Map<string, string>();
  const stop = ({ id }: Pick<MadePod, 'id'>): Promise<void> =>
    call('StopPodSandbox', { podSandboxId: id });
  return {
    kind: 'cri',
    socketPath: containerd.socketPath,
    flags: [`--pod-logs-dir=${logs}/pods`],
    pid: () => containerd.pid(),
    start: () => containerd.start(),
    remove: async () => {
      client.close();
      maker.close();
      rmSync(logs, { recursive: true, force: true });
      await containerd.remove();
    },
    run: async (node, name, command, options = {}) => {
      const parent = path.relative(MEMORY_HIERARCHY, node.path);
      const { sandboxId, containerId, cgroup } = await maker.run(parent, name, command, options);
      made.set(node.path, [...(made.get(node.path) ?? []), sandboxId]);
      containers.set(sandboxId, containerId);
      return { name: `${options.namespace ?? 'default'}/${name}`, id: sandboxId, cgroup };
    },
    isUp: async ({ id }) => {
      const { items } = await call<{ readonly items: readonly Listed<string>[] }>('ListPodSandbox');
      return items.some((one) => one.id === id && one.state === 'SANDBOX_READY');
    },
    exitCode: async ({ id }) => {
      const { status } = await call<{
        readonly status: { readonly state: string; readonly exitCode: number };
      }>('ContainerStatus', { containerId: containers.get(id) });
      return status.state === 'CONTAINER_EXITED' ? status.exitCode : undefined;
    },
    stop: async ({ id }) => {
      await call('StopContainer', { containerId: containers.get(id), timeout: 0 });
      await stop({ id });
    },
    clear: async (node) => {
      const { items } = await call<{ readonly items: readonly Listed<string>[] }>('ListPodSandbox');
      const isThere = (id: string) => items.some((one) => one.id === id);
      for (const id of (made.get(node.path) ?? []).filter(isThere)) {
        // Refused as long as it has not heard of the end of a container.
        const remove = async (): Promise<true> => {
          await stop({ id });
          await call('RemovePodSandbox', { podSandboxId: id });
          return true;
        };
        await untilAnswer('the pod is removed', remove, CALL_LIMIT_MS);
      }
      made.delete(node.path);
      await removeGroups(path.relative(MEMORY_HIERARCHY, node.path));
    },
  };
}

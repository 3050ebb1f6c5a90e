/** What a dead pod leaves with a runtime that speaks CRI v1. */
import type { Remains } from '../../ports/pod-directory.ts';
import type { CriClient } from './client.ts';

/** How long a removal may take, ms: large layers are deleted while it is waited for. */
const REMOVE_DEADLINE_MS = 30_000;

interface Listed {
  readonly items: readonly { readonly id: string }[];
}

interface Containers {
  readonly containers: readonly {
    readonly id: string;
    readonly metadata: { readonly name: string } | null;
    readonly podSandboxId: string;
    readonly state: string;
  }[];
}

/** gRPC's number for what is not there. */
const NOT_FOUND = 5;

/** A sandbox goes with its containers. */
export function criRemains(client: CriClient): Remains {
  return {
    remove: async ({ id: podSandboxId, name }, removed) => {
      const { containers } = await client.call<Containers>('ListContainers');
      try {
        await client.call('RemovePodSandbox', { podSandboxId }, REMOVE_DEADLINE_MS);
        for (const one of containers.filter((own) => own.podSandboxId === podSandboxId)) {
          const own = one.metadata?.name ?? '';
          removed({ what: 'container', id: one.id, name: `${name}/${own}` });
        }
        removed({ what: 'sandbox', id: podSandboxId, name });
      } catch (error) {
        if ((error as { readonly code?: number }).code !== NOT_FOUND) throw error;
      }
    },
    stateOf: async ({ id }) => {
      const [{ items }, { containers }] = await Promise.all([
        client.call<Listed>('ListPodSandbox'),
        client.call<Containers>('ListContainers'),
      ]);
      if (!items.some((one) => one.id === id)) return 'gone';
      const isRunning = containers.some(
        ({ podSandboxId, state }) => podSandboxId === id && state === 'CONTAINER_RUNNING',
      );
      return isRunning ? 'running' : 'dead';
    },
  };
}

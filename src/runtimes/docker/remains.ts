/** What a dead pod leaves with a Docker Engine, or with what speaks its API. */
import type { Remains, RemainsState } from '../../ports/pod-directory.ts';
import { engineAt } from './engine.ts';

/** How long a request may take, and a removal, ms: large layers are deleted while it is waited for. */
const REQUEST_DEADLINE_MS = 2000;
const REMOVE_DEADLINE_MS = 30_000;

/** HTTP's numbers for what is not there, and for what is being removed already. */
const GONE: readonly (number | undefined)[] = [404, 409];
const NOT_FOUND = 404;

/** With a container go the volumes that have no name of their own. */
export function dockerRemains(socketPath: string): Remains {
  const docker = engineAt(socketPath);
  const stateOf = async (id: string): Promise<RemainsState> => {
    try {
      const abortSignal = AbortSignal.timeout(REQUEST_DEADLINE_MS);
      const { State } = await docker.getContainer(id).inspect({ abortSignal });
      return State.Running ? 'running' : 'dead';
    } catch (error) {
      if (statusOf(error) === NOT_FOUND) return 'gone';
      throw error;
    }
  };
  return {
    remove: async ({ containers }, removed) => {
      for (const { id, name } of containers) {
        const abortSignal = AbortSignal.timeout(REMOVE_DEADLINE_MS);
        const options = { v: true, abortSignal };
        try {
          // Without force: what runs again is left alone.
          await docker.getContainer(id).remove(options);
          removed({ what: 'container', id, name });
        } catch (error) {
          if (!GONE.includes(statusOf(error))) throw error;
        }
      }
    },
    stateOf: async ({ containers }) => {
      const states = await Promise.all(containers.map(({ id }) => stateOf(id)));
      if (states.includes('running')) return 'running';
      return states.includes('dead') ? 'dead' : 'gone';
    },
  };
}

function statusOf(error: unknown): number | undefined {
  return (error as { readonly statusCode?: number }).statusCode;
}

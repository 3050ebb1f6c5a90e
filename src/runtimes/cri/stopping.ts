/** How a runtime that speaks CRI v1 is told of the end of a pod, and has one stopped. */
import { catchError, defer, EMPTY, from, ignoreElements, Observable, throwError } from 'rxjs';
import type { PodDirectory } from '../../ports/pod-directory.ts';
import type { CriClient } from './client.ts';

/** How long the runtime may take to note that a pod was ended, ms: it is told again after that. */
const SETTLE_DEADLINE_MS = 10_000;

/** How long it may take to say that it is there, ms. */
const ANSWER_DEADLINE_MS = 1000;

/** What a stop may take beside its grace, ms. */
const STOP_MARGIN_MS = 2000;

/**
 * When the runtime's own KILL would come, s: ten years, so that it never does. evictd's clock sends KILL, and
 * nothing if the eviction ends before: a shorter time would go on by itself where a cancelled call is not.
 */
export const NEVER_KILLED_S = 315_360_000;

/** gRPC's numbers. */
const DEADLINE_EXCEEDED = 4;
const NOT_FOUND = 5;
const UNAVAILABLE = 14;

interface Container {
  readonly id: string;
  readonly podSandboxId: string;
  readonly state: string;
}

/** The part of a directory that ends pods. */
export function criStopping(client: CriClient): Pick<PodDirectory, 'settle' | 'stop' | 'answers'> {
  return {
    settle: ({ id }) =>
      defer(() =>
        from(client.call('StopPodSandbox', { podSandboxId: id }, SETTLE_DEADLINE_MS)),
      ).pipe(ignoreElements()),
    stop: ({ id }, gracePeriodMs) =>
      new Observable((subscriber) => {
        const withdrawal = new AbortController();
        stopContainers(client, id, gracePeriodMs, withdrawal.signal).then(
          () => subscriber.complete(),
          (error: unknown) => subscriber.error(error),
        );
        return () => withdrawal.abort();
      }),
    // What is read of a container comes through its shim, as signals do: one that hangs delivers none.
    answers: ({ id }) =>
      defer(() =>
        from(
          client.call('ListContainerStats', { filter: { podSandboxId: id } }, ANSWER_DEADLINE_MS),
        ),
      ).pipe(
        ignoreElements(),
        catchError((error: { readonly code?: number }) =>
          error.code === DEADLINE_EXCEEDED || error.code === UNAVAILABLE
            ? throwError(() => error)
            : EMPTY,
        ),
      ),
  };
}

/** All containers at once, as the kubelet does. Not the sandbox: that is stopped with a KILL. */
async function stopContainers(
  client: CriClient,
  podSandboxId: string,
  graceMs: number,
  withdrawn: AbortSignal,
): Promise<void> {
  const { containers } = await client.call<{ readonly containers: readonly Container[] }>(
    'ListContainers',
  );
  if (withdrawn.aborted) return;
  const own = containers.filter(
    (one) => one.podSandboxId === podSandboxId && one.state === 'CONTAINER_RUNNING',
  );
  const deadlineMs = graceMs + STOP_MARGIN_MS;
  await Promise.all(
    own.map(({ id }) =>
      client
        .call('StopContainer', { containerId: id, timeout: NEVER_KILLED_S }, deadlineMs, withdrawn)
        .catch(unlessGone),
    ),
  );
}

function unlessGone(error: { readonly code?: number }): void {
  if (error.code !== NOT_FOUND) throw error;
}

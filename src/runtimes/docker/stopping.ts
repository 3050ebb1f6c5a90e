/** How a Docker Engine, or what speaks its API, is told of the end of a pod, and has one stopped. */
import type Docker from 'dockerode';
import { defer, from, ignoreElements, Observable } from 'rxjs';
import type { PodDirectory, RuntimeContainer, RuntimePod } from '../../ports/pod-directory.ts';
import { StartedSince } from '../shared/started-since.ts';

/** How long a request may take, ms. */
const REQUEST_DEADLINE_MS = 2000;

/** How long it may take to say that it is there, ms. */
const ANSWER_DEADLINE_MS = 1000;

/** What a stop may take beside its grace, ms. */
const STOP_MARGIN_MS = 10_000;

/**
 * When the engine's own KILL would come, s: ten years, so that it never does. evictd's clock sends KILL, and nothing
 * if the eviction ends before; an engine goes on with a stop whose request was aborted. Podman knows no -1.
 */
export const NEVER_KILLED_S = 315_360_000;

/** HTTP's number for what is as it was asked to be: a container that has stopped already. */
const NOT_MODIFIED = 304;
const NOT_FOUND = 404;

/**
 * The part of a directory that ends pods.
 *
 * @param wallClock ms since 1970: engines tell times of day
 */
export function dockerStopping(
  docker: Docker,
  wallClock: () => number,
): Pick<PodDirectory, 'settle' | 'stop' | 'answers'> {
  return {
    settle: (pod) => {
      const endedAtMs = wallClock();
      let tries = 0;
      return defer(() => {
        tries += 1;
        return from(settled(docker, pod, tries === 1 ? undefined : endedAtMs));
      }).pipe(ignoreElements());
    },
    stop: (pod, gracePeriodMs) =>
      new Observable((subscriber) => {
        const withdrawal = new AbortController();
        const over = AbortSignal.timeout(gracePeriodMs + STOP_MARGIN_MS);
        const signal = AbortSignal.any([withdrawal.signal, over]);
        stopped(docker, pod, NEVER_KILLED_S, signal).then(
          () => subscriber.complete(),
          (error: unknown) => subscriber.error(error),
        );
        return () => withdrawal.abort();
      }),
    // Its processes are asked for of its shim, through which signals go as well: one that hangs delivers none.
    answers: ({ name, containers }) =>
      defer(() => {
        const signal = AbortSignal.timeout(ANSWER_DEADLINE_MS);
        const answers = containers.map(({ id }) => answered(docker, id, signal));
        return from(Promise.all(answers).catch(saying(signal, name)));
      }).pipe(ignoreElements()),
  };
}

/**
 * Stops what has ended. Of a later try nobody knows how much later it is: who runs by then may have been started by
 * somebody who wants just that, and only what a restart policy has brought back is stopped.
 *
 * @param endedAtMs when it ended, ms since 1970; undefined where that was now
 */
async function settled(
  docker: Docker,
  pod: RuntimePod,
  endedAtMs: number | undefined,
): Promise<void> {
  const since =
    endedAtMs === undefined
      ? []
      : await Promise.all(pod.containers.map((one) => startedSince(docker, one, endedAtMs)));
  const left = pod.containers.filter((_, index) => since[index] === true);
  const containers = pod.containers.filter((_, index) => since[index] !== true);
  await stopped(docker, { containers }, 0, AbortSignal.timeout(STOP_MARGIN_MS));
  if (left.length === 0) return;
  throw new StartedSince(`started again since its end: ${left.map(({ name }) => name).join(', ')}`);
}

/** Whether it was started after that time, by no restart policy of its own. */
async function startedSince(
  docker: Docker,
  { id }: RuntimeContainer,
  endedAtMs: number,
): Promise<boolean> {
  try {
    const abortSignal = AbortSignal.timeout(REQUEST_DEADLINE_MS);
    const { State, HostConfig } = await docker.getContainer(id).inspect({ abortSignal });
    // Podman leaves out what it does not have.
    const policy: string = HostConfig.RestartPolicy?.Name ?? '';
    const isRestarted = policy !== '' && policy !== 'no';
    return State.Running && !isRestarted && Date.parse(State.StartedAt) > endedAtMs;
  } catch (error) {
    if ((error as { readonly statusCode?: number }).statusCode === NOT_FOUND) return false;
    throw error;
  }
}

/**
 * A stop ends what its restart policy would bring back, also where the process is dead already: the engine
 * notes that somebody wanted it to end.
 */
async function stopped(
  docker: Docker,
  { containers }: Pick<RuntimePod, 'containers'>,
  killedAfterS: number,
  abortSignal: AbortSignal,
): Promise<void> {
  const stops = await Promise.allSettled(
    containers.map(({ id }) =>
      docker.getContainer(id).stop({ t: killedAfterS, abortSignal }).catch(unlessStopped),
    ),
  );
  for (const stop of stops) if (stop.status === 'rejected') throw stop.reason;
}

function unlessStopped(error: { readonly statusCode?: number }): void {
  const { statusCode } = error;
  if (statusCode !== NOT_MODIFIED && statusCode !== NOT_FOUND) throw error;
}

function saying(deadline: AbortSignal, name: string): (error: Error) => never {
  return (error) => {
    if (!deadline.aborted) throw error;
    throw new Error(`no answer about ${name} in ${ANSWER_DEADLINE_MS} ms`, { cause: error });
  };
}

/** Any answer will do: one that has ended has no processes. */
async function answered(docker: Docker, id: string, abortSignal: AbortSignal): Promise<void> {
  try {
    await docker.getContainer(id).top({ ps_args: '-opid', abortSignal });
  } catch (error) {
    if ((error as { readonly statusCode?: number }).statusCode === undefined) throw error;
  }
}

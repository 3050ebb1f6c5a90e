import path from 'node:path';
import { firstValueFrom, type NEVER } from 'rxjs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { criClient } from '../../../src/runtimes/cri/client.ts';
import { criStopping, NEVER_KILLED_S } from '../../../src/runtimes/cri/stopping.ts';
import { type Answer, startScriptedCri } from '../../e2e/support/scripted-cri.ts';
import { privateDirectory } from '../../kernel/support/daemon.ts';
import { runtimePod } from '../../support/runtime-pods.ts';
import { until } from '../../support/wait.ts';

const LIMIT_MS = 5000;
const POD = runtimePod('web');

const container = (id: string, podSandboxId = 'web', state = 'CONTAINER_RUNNING') => ({
  id,
  podSandboxId,
  state,
});

/** A runtime of those containers; says what it was asked for. */
async function runtime(answers: Readonly<Record<string, Answer>> = {}) {
  const socketPath = path.join(privateDirectory(), 'c.sock');
  const asked: (readonly [string, object])[] = [];
  const containers = [
    container('app'),
    container('side'),
    container('init', 'web', 'CONTAINER_EXITED'),
    container('other', 'else'),
  ];
  const all: Readonly<Record<string, Answer>> = {
    ListContainers: () => ({ containers }),
    StopContainer: () => ({}),
    StopPodSandbox: () => ({}),
    ListContainerStats: () => ({ stats: [] }),
    ...answers,
  };
  const server = await startScriptedCri(
    socketPath,
    Object.fromEntries(
      Object.entries(all).map(([name, answer]) => [
        name,
        (request, cancelled) => {
          asked.push([name, request]);
          return answer(request, cancelled);
        },
      ]),
    ),
  );
  const client = criClient(`unix://${socketPath}`, () => Date.now());
  onTestFinished(() => {
    client.close();
    server.close();
  });
  const of = (method: string) => asked.filter(([name]) => name === method).map(([, one]) => one);
  return { stopping: criStopping(client), of };
}

const ended = (work$: typeof NEVER): Promise<unknown> =>
  firstValueFrom(work$, { defaultValue: 'done' }).catch((error: Error) => error.message);

const forever = () => new Promise<object>(() => undefined);

describe('criStopping: a stop', () => {
  it('sends the signal of the image to what runs, and neither KILL nor the end of the sandbox', async () => {
    const { stopping, of } = await runtime();
    expect(await ended(stopping.stop(POD, 1000))).toBe('done');
    expect(of('StopContainer')).toEqual([
      { containerId: 'app', timeout: String(NEVER_KILLED_S) },
      { containerId: 'side', timeout: String(NEVER_KILLED_S) },
    ]);
    expect(of('StopPodSandbox')).toEqual([]);
  });

  it('is cancelled where it is withdrawn, and nothing follows', async () => {
    const cancelled: unknown[] = [];
    const { stopping, of } = await runtime({
      StopContainer: ({ containerId }, signal) => {
        signal?.addEventListener('abort', () => cancelled.push(containerId));
        return forever();
      },
    });
    const subscription = stopping.stop(POD, 60_000).subscribe();
    await until('it is asked', () => of('StopContainer').length === 2, { limitMs: LIMIT_MS });
    subscription.unsubscribe();
    await until('both are cancelled', () => cancelled.length === 2, { limitMs: LIMIT_MS });
    expect(of('StopPodSandbox')).toEqual([]);
  });

  it('is not begun where it is withdrawn before the containers are known', async () => {
    let list: (value: object) => void = () => undefined;
    const { stopping, of } = await runtime({
      ListContainers: () => new Promise((resolve) => (list = resolve)),
    });
    const subscription = stopping.stop(POD, 60_000).subscribe();
    await until('it is asked', () => of('ListContainers').length === 1, { limitMs: LIMIT_MS });
    subscription.unsubscribe();
    list({ containers: [container('app')] });
    // What is asked after it is answered after it.
    await ended(stopping.settle(POD));
    expect(of('StopContainer')).toEqual([]);
  });

  it('passes over a container that has gone', async () => {
    const gone = Object.assign(new Error('no such container'), { code: 5 });
    const { stopping } = await runtime({ StopContainer: () => Promise.reject(gone) });
    expect(await ended(stopping.stop(POD, 1000))).toBe('done');
  });

  it('fails as the runtime does', async () => {
    const { stopping } = await runtime({ StopContainer: () => Promise.reject(new Error('no')) });
    expect(await ended(stopping.stop(POD, 1000))).toMatch(/no$/);
  });
});

describe('criStopping: whether what signals a pod answers', () => {
  it('it does, and is asked about that pod alone', async () => {
    const { stopping, of } = await runtime();
    expect(await ended(stopping.answers(POD))).toBe('done');
    expect(of('ListContainerStats')).toEqual([{ filter: { podSandboxId: 'web' } }]);
  });

  it('its shim hangs, while the runtime itself answers', async () => {
    const { stopping, of } = await runtime({ ListContainerStats: forever });
    expect(await ended(stopping.answers(POD))).toMatch(
      /no answer to ListContainerStats in 1000 ms/,
    );
    expect(of('ListContainerStats')).toHaveLength(1);
  });

  it('a refusal is an answer', async () => {
    const { stopping } = await runtime({
      ListContainerStats: () => Promise.reject(new Error('no metrics for it')),
    });
    expect(await ended(stopping.answers(POD))).toBe('done');
  });
});

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import path from 'node:path';
import Docker from 'dockerode';
import { firstValueFrom, type NEVER } from 'rxjs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { dockerStopping, NEVER_KILLED_S } from '../../../src/runtimes/docker/stopping.ts';
import { privateDirectory } from '../../kernel/support/daemon.ts';
import { runtimeContainer, runtimePod } from '../../support/runtime-pods.ts';
import { until } from '../../support/wait.ts';

const LIMIT_MS = 5000;
const POD = runtimePod('web', { containers: [runtimeContainer('app'), runtimeContainer('side')] });

/** When a pod ended, and what an engine says of one that was started a little before and after. */
const ENDED_AT_MS = Date.parse('2026-01-01T00:00:10Z');
const BEFORE = '2026-01-01T00:00:09.999999999Z';
const AFTER = '2026-01-01T00:00:10.002000001Z';

/** A status, what it says with 200, or nothing at all. */
type Answer = number | object | 'none';

/** An engine that answers so by method and path, 204 to all else; says what it was asked for, and what was given up. */
async function engine(answers: Readonly<Record<string, Answer | (() => Answer)>> = {}) {
  const socketPath = path.join(privateDirectory(), 'd.sock');
  const asked: string[] = [];
  const aborted: string[] = [];
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    const url = new URL(request.url ?? '', 'http://engine');
    const what = `${request.method} ${url.pathname}`;
    const seconds = url.searchParams.get('t');
    asked.push(seconds === null ? what : `${what} ${seconds}`);
    const scripted = answers[what] ?? 204;
    const answer = typeof scripted === 'function' ? scripted() : scripted;
    response.on('close', () => {
      if (!response.writableEnded) aborted.push(what);
    });
    if (answer === 'none') return;
    response.statusCode = typeof answer === 'number' ? answer : 200;
    response.setHeader('content-type', 'application/json');
    response.end(typeof answer === 'object' ? JSON.stringify(answer) : undefined);
  };
  const server = createServer(handle);
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return {
    stopping: dockerStopping(new Docker({ socketPath }), () => ENDED_AT_MS),
    asked,
    aborted,
  };
}

const ended = (work$: typeof NEVER): Promise<unknown> =>
  firstValueFrom(work$, { defaultValue: 'done' }).catch((error: Error) => error.message);

describe('dockerStopping: a stop', () => {
  it('sends the signal of the image, and no KILL after the grace', async () => {
    const { stopping, asked } = await engine();
    expect(await ended(stopping.stop(POD, 1000))).toBe('done');
    expect(asked).toEqual([
      `POST /containers/app/stop ${NEVER_KILLED_S}`,
      `POST /containers/side/stop ${NEVER_KILLED_S}`,
    ]);
  });

  it('is given up where it is withdrawn', async () => {
    const { stopping, asked, aborted } = await engine({
      'POST /containers/app/stop': 'none',
      'POST /containers/side/stop': 'none',
    });
    const subscription = stopping.stop(POD, 60_000).subscribe();
    await until('it is asked', () => asked.length === 2, { limitMs: LIMIT_MS });
    subscription.unsubscribe();
    await until('both are given up', () => aborted.length === 2, { limitMs: LIMIT_MS });
    expect(asked).toHaveLength(2);
  });

  it.each([304, 404])('takes %i for what was wanted', async (status) => {
    const { stopping } = await engine({ 'POST /containers/app/stop': status });
    expect(await ended(stopping.stop(POD, 1000))).toBe('done');
  });

  it('fails as the engine does', async () => {
    const { stopping } = await engine({ 'POST /containers/app/stop': 500 });
    expect(await ended(stopping.stop(POD, 1000))).toMatch(/HTTP code 500/);
  });
});

describe('dockerStopping: the end of a pod', () => {
  const inspected = (StartedAt: string, policy: string, Running = true) => ({
    State: { Running, StartedAt },
    HostConfig: { RestartPolicy: { Name: policy } },
  });

  it('is told at once, and asks nothing before', async () => {
    const { stopping, asked } = await engine();
    expect(await ended(stopping.settle(POD))).toBe('done');
    expect(asked).toEqual(['POST /containers/app/stop 0', 'POST /containers/side/stop 0']);
  });

  it.each<[string, Answer, string, boolean]>([
    ['what somebody has started since', inspected(AFTER, 'no'), 'is left alone', false],
    [
      'the same with Podman, which has no word for it',
      inspected(AFTER, ''),
      'is left alone',
      false,
    ],
    ['what a restart policy has brought back', inspected(AFTER, 'always'), 'is stopped', true],
    ['what was not started since', inspected(BEFORE, 'no'), 'is stopped', true],
    ['what does not run', inspected(AFTER, 'no', false), 'is stopped', true],
    ['what is no more', 404, 'is passed over', true],
  ])('in a later try: %s %s', async (_, app, _what, isStopped) => {
    let tries = 0;
    const { stopping, asked } = await engine({
      'POST /containers/side/stop': () => {
        tries += 1;
        return tries === 1 ? 500 : 204;
      },
      'GET /containers/app/json': app,
      'GET /containers/side/json': inspected(BEFORE, 'no', false),
    });
    const settle$ = stopping.settle(POD);
    expect(await ended(settle$)).toMatch(/HTTP code 500/);
    asked.length = 0;
    const how = await ended(settle$);
    expect(how).toBe(isStopped ? 'done' : 'started again since its end: app');
    expect(asked.filter((one) => one.startsWith('POST'))).toEqual([
      ...(isStopped ? ['POST /containers/app/stop 0'] : []),
      'POST /containers/side/stop 0',
    ]);
  });
});

describe('dockerStopping: whether what signals a pod answers', () => {
  it('it does: each container is asked for its processes', async () => {
    const { stopping, asked } = await engine({ 'GET /containers/app/top': { Processes: [] } });
    expect(await ended(stopping.answers(POD))).toBe('done');
    expect(asked).toEqual(['GET /containers/app/top', 'GET /containers/side/top']);
  });

  it('the shim of one hangs, while the engine itself answers', async () => {
    const { stopping } = await engine({ 'GET /containers/side/top': 'none' });
    expect(await ended(stopping.answers(POD))).toBe('no answer about web in 1000 ms');
  });

  it.each([404, 409, 500])('%i is an answer', async (status) => {
    const { stopping } = await engine({ 'GET /containers/side/top': status });
    expect(await ended(stopping.answers(POD))).toBe('done');
  });
});

import { createServer as createHttpServer } from 'node:http';
import { createServer, type Server } from 'node:net';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { criClient } from '../../../src/runtimes/cri/client.ts';
import { startScriptedCri } from '../../e2e/support/scripted-cri.ts';
import { privateDirectory } from '../../kernel/support/daemon.ts';

function clientOf(socketPath: string) {
  const client = criClient(`unix://${socketPath}`, () => Date.now());
  onTestFinished(() => client.close());
  return client;
}

async function listening(server: Server, socketPath: string): Promise<void> {
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  onTestFinished(() => void server.close());
}

const messageOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'an answer',
    (error: Error) => error.message,
  );

describe('criClient says what is wrong, in the same words each time', () => {
  it('where nothing is', async () => {
    const socketPath = path.join(privateDirectory(), 'none.sock');
    const client = clientOf(socketPath);
    const tries = [
      await messageOf(client.call('ListPodSandbox')),
      await messageOf(client.call('ListPodSandbox')),
    ];
    expect(new Set(tries)).toEqual(new Set([`${socketPath}: connect ENOENT ${socketPath}`]));
  });

  it('where something else listens', async () => {
    const socketPath = path.join(privateDirectory(), 'http.sock');
    await listening(
      createHttpServer((_request, response) => response.end('{}')),
      socketPath,
    );
    expect(await messageOf(clientOf(socketPath).call('ListPodSandbox'))).toBe(
      `${socketPath}: what listens there does not speak CRI`,
    );
  });

  it('where nobody answers', async () => {
    const socketPath = path.join(privateDirectory(), 'hung.sock');
    await listening(
      createServer((socket) => {
        onTestFinished(() => void socket.destroy());
      }),
      socketPath,
    );
    expect(await messageOf(clientOf(socketPath).call('ListPodSandbox', {}, 200))).toBe(
      `${socketPath}: no answer to ListPodSandbox in 200 ms`,
    );
  });

  it('where the answer is a refusal', async () => {
    const server = await startScriptedCri(path.join(privateDirectory(), 'cri.sock'), {
      ListPodSandbox: () => {
        throw Object.assign(new Error('not now'), { code: 13 });
      },
    });
    onTestFinished(() => server.close());
    expect(await messageOf(clientOf(server.socketPath).call('ListPodSandbox'))).toBe(
      `${server.socketPath}: 13 INTERNAL: not now`,
    );
  });
});

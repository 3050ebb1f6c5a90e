/** A runtime that is not there, or is another: the node is watched meanwhile. */
import { mkdirSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type Server } from 'node:net';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { describeWith } from '../support/skip.ts';
import { until } from '../support/wait.ts';
import { type Daemon, privateDirectory, startDaemon } from './support/daemon.ts';
import { MI, makeNode } from './support/node.ts';

async function listening(server: Server, socketPath: string): Promise<void> {
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  onTestFinished(() => void server.close());
}

const TRIES_LIMIT_MS = 15_000;

function degradations(daemon: Daemon): readonly unknown[] {
  return daemon.lines.filter(({ msg, level }) => msg === 'degraded' && level === 'warn');
}

describeWith({ root: true, cgroupV1: true }, 'a runtime that is away', () => {
  it.each(['cri', 'docker', 'auto'])(
    'from the start (%s) leaves the node watched, and is said once',
    async (kind) => {
      const { path: node } = makeNode(512 * MI);
      const socketPath = path.join(privateDirectory(), 'none.sock');
      const daemon = await startDaemon({
        node,
        args: [`--runtime=${kind}`, `--runtime-endpoint=unix://${socketPath}`, '--log-level=debug'],
      });
      const { degraded, thresholds } = await daemon.status();
      expect(degraded).toMatchObject([
        { part: 'runtime', reason: expect.stringContaining(socketPath) },
      ]);
      expect(thresholds).not.toEqual([]);
      expect(degradations(daemon)).toMatchObject([{ part: 'runtime' }]);
      await daemon.stop();
    },
  );

  it('leaves no pod evictable before it has answered, also of those that the settings name', async () => {
    const { path: node } = makeNode(512 * MI);
    mkdirSync(path.join(node, 'docker/one'), { recursive: true });
    const podsOf = async (...args: readonly string[]): Promise<number> => {
      const daemon = await startDaemon({ node, args: ['--pod-parent=docker', ...args] });
      const { pods } = await daemon.status();
      await daemon.stop();
      return pods.length;
    };
    const endpoint = `unix://${path.join(privateDirectory(), 'none.sock')}`;
    expect(await podsOf()).toBe(1);
    expect(await podsOf('--runtime=docker', `--runtime-endpoint=${endpoint}`)).toBe(0);
  });

  it.each([
    ['cri', 'what listens there does not speak CRI', () => createHttpServer()],
    [
      'docker',
      'what listens there does not speak HTTP',
      () => createServer((socket) => void socket.end('SSH-2.0-other\r\n')),
    ],
  ] as const)(
    'that is none (%s) is said once, however often it is tried',
    async (kind, reason, make) => {
      const { path: node } = makeNode(512 * MI);
      const socketPath = path.join(privateDirectory(), 'other.sock');
      const server = make();
      let tries = 0;
      server.on('connection', () => {
        tries += 1;
      });
      await listening(server, socketPath);
      const daemon = await startDaemon({
        node,
        args: [`--runtime=${kind}`, `--runtime-endpoint=unix://${socketPath}`],
      });
      await until('it is tried again and again', () => tries > 5, { limitMs: TRIES_LIMIT_MS });
      expect(degradations(daemon)).toMatchObject([
        { part: 'runtime', reason: `${socketPath}: ${reason}` },
      ]);
      await daemon.stop();
    },
  );
});

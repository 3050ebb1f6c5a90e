import { spawn } from 'node:child_process';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { EvictdError } from '../../src/core/errors.ts';
import type { StatusDocument } from '../../src/surfaces/status.ts';
import { describeWith } from '../support/skip.ts';
import { within } from '../support/wait.ts';
import { privateDirectory, runArguments, runEvictd, startDaemon } from './support/daemon.ts';
import { isAlive, MI, makeNode } from './support/node.ts';

const statusOf = (code: ConstructorParameters<typeof EvictdError>[0]) =>
  new EvictdError(code, '').exitStatus;

/** A socket whose maker is dead. */
async function deadSocket(socketPath: string): Promise<void> {
  const program = `require('net').createServer().listen(${JSON.stringify(socketPath)}, () => {
    process.kill(process.pid, 'SIGKILL');
  })`;
  const child = spawn(process.execPath, ['-e', program], { stdio: 'ignore' });
  onTestFinished(() => void child.kill('SIGKILL'));
  const ended = new Promise((resolve) => child.once('exit', resolve));
  await within(ended, 10_000, 'the maker of the socket dies');
  expect(statSync(socketPath).isSocket()).toBe(true);
}

/** Sends bytes to the socket; what comes back until it is closed. */
function send(socketPath: string, bytes: string | Buffer): Promise<string> {
  const client = connect(socketPath);
  const answered = new Promise<string>((resolve) => {
    let text = '';
    client.on('data', (chunk) => {
      text += chunk.toString();
    });
    client.on('error', () => resolve(text));
    client.on('close', () => resolve(text));
  });
  client.write(bytes);
  return within(answered, 10_000, 'the connection ends');
}

describeWith({ root: true, cgroupV1: true }, 'the status socket', () => {
  it('is of mode 0660, answers several clients, and goes with the daemon', async () => {
    const node = makeNode(256 * MI);
    const daemon = await startDaemon({ node: node.path });
    expect(statSync(daemon.socketPath).mode & 0o777).toBe(0o660);

    const documents = await Promise.all([daemon.status(), daemon.status(), daemon.status()]);
    expect(documents.map(({ evictd }) => evictd.pid)).toEqual(Array(3).fill(daemon.pid));

    const json = await runEvictd(['status', '--json', '--socket', daemon.socketPath]);
    expect(json).toMatchObject({ code: 0, stderr: '' });
    const document = JSON.parse(json.stdout) as StatusDocument;
    expect(document).toMatchObject({
      apiVersion: 'evictd.dev/v1alpha1',
      kind: 'Status',
      node: { cgroup: node.path },
      signals: expect.any(Array),
    });
    expect(document.signals[0]).toMatchObject({
      signal: 'memory.available',
      unit: 'bytes',
      capacity: 256 * MI,
    });
    expect(Number.isInteger(document.signals[0]?.available)).toBe(true);
    const text = await runEvictd(['status', '--socket', daemon.socketPath]);
    expect(text.code).toBe(0);
    expect(text.stdout).toContain('memory.available<100Mi');

    await daemon.stop();
    expect(existsSync(daemon.socketPath)).toBe(false);
    const gone = await runEvictd(['status', '--json', '--socket', daemon.socketPath]);
    expect(gone).toMatchObject({ code: statusOf('EVICTD_NOT_RUNNING'), stdout: '' });
    expect(gone.code).toBe(6);
  });

  it('takes no harm from garbage', async () => {
    const daemon = await startDaemon({ node: makeNode(256 * MI).path });
    const noise = Buffer.from(Array.from({ length: 4096 }, (_, at) => (at * 7919) % 256));
    await send(daemon.socketPath, noise);
    await send(daemon.socketPath, `GET /${'x'.repeat(100_000)} HTTP/1.1\r\n\r\n`);
    const unknown = await send(daemon.socketPath, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(unknown).toMatch(/^HTTP\/1\.1 404 /);
    const post = await send(
      daemon.socketPath,
      'POST /v1/status HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n',
    );
    expect(post).toMatch(/^HTTP\/1\.1 404 /);
    // One that says nothing holds nobody up, not even the end.
    const silent = connect(daemon.socketPath);
    silent.on('error', () => undefined);
    onTestFinished(() => void silent.destroy());
    expect((await daemon.status()).kind).toBe('Status');
    expect(await daemon.stop()).toBeLessThan(3000);
  });

  it('of a live daemon is an error of its own, and the daemon goes on', async () => {
    const node = makeNode(256 * MI);
    const daemon = await startDaemon({ node: node.path });
    const second = await runEvictd(runArguments({ node: node.path }, daemon.socketPath).slice(1));
    expect(second.code).toBe(statusOf('EVICTD_SOCKET_IN_USE'));
    expect(second.code).toBe(5);
    expect(second.stderr).toContain('EVICTD_SOCKET_IN_USE');
    expect((await daemon.status()).evictd.pid).toBe(daemon.pid);
    await daemon.stop();
  });

  it('of a dead daemon is replaced', async () => {
    const socket = path.join(privateDirectory(), 'evictd.sock');
    await deadSocket(socket);
    const daemon = await startDaemon({ node: makeNode(256 * MI).path, socket });
    expect((await daemon.status()).evictd.pid).toBe(daemon.pid);
    await daemon.stop();
    expect(existsSync(socket)).toBe(false);
  });

  it('of a dead daemon goes to one of several that start at once, and the others are told', async () => {
    const node = makeNode(256 * MI);
    const socket = path.join(privateDirectory(), 'evictd.sock');
    await deadSocket(socket);
    const starts = [1, 2, 3].map(() => startDaemon({ node: node.path, socket }));
    const results = await Promise.allSettled(starts);
    const served = results.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    const refused = results.flatMap((one) => (one.status === 'rejected' ? [`${one.reason}`] : []));
    expect(served).toHaveLength(1);
    expect(refused).toHaveLength(2);
    for (const reason of refused) expect(reason).toContain('EVICTD_SOCKET_IN_USE');
    expect((await served[0]?.status())?.evictd.pid).toBe(served[0]?.pid);
    await served[0]?.stop();
  });

  it('leaves any other file in its place alone', async () => {
    const node = makeNode(256 * MI);
    const file = path.join(privateDirectory(), 'evictd.sock');
    writeFileSync(file, 'precious');
    const refused = await runEvictd(runArguments({ node: node.path }, file).slice(1));
    expect(refused.code).toBe(statusOf('EVICTD_SOCKET'));
    expect(refused.code).toBe(4);
    expect(readFileSync(file, 'utf8')).toBe('precious');
  });

  it.each(['SIGTERM', 'SIGINT'] as const)('%s ends the daemon with 0', async (signal) => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const daemon = await startDaemon({ node: node.path });
    expect(await daemon.stop(signal)).toBeLessThan(3000);
    expect(await daemon.line('stopped')).toMatchObject({ signal, droppedLogLines: 0 });
    expect(existsSync(daemon.socketPath)).toBe(false);
    expect(isAlive(web.child.pid)).toBe(true);
  });
});

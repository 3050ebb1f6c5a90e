import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type StatusSocket, serveStatus } from '../../src/surfaces/socket.ts';
import { within } from '../support/wait.ts';

function directory(): string {
  const made = mkdtempSync(path.join(tmpdir(), 'evictd-socket-'));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

async function serve(file: string, status: () => Promise<unknown>): Promise<StatusSocket> {
  const socket = await serveStatus(file, status);
  onTestFinished(() => socket.close());
  return socket;
}

interface Answer {
  readonly status: number | undefined;
  readonly type: string | undefined;
  readonly text: string;
}

function ask(socketPath: string, url = '/v1/status', method = 'GET'): Promise<Answer> {
  const answered = new Promise<Answer>((resolve, reject) => {
    const asked = request({ socketPath, path: url, method, agent: false }, (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => {
        text += chunk.toString();
      });
      response.on('end', () =>
        resolve({ status: response.statusCode, type: response.headers['content-type'], text }),
      );
    });
    asked.on('error', reject);
    asked.end();
  });
  return within(answered, 5000, 'it answers');
}

describe('serveStatus', () => {
  it('answers with the status of the moment, as JSON', async () => {
    const file = path.join(directory(), 'evictd.sock');
    let n = 0;
    await serve(file, async () => {
      n += 1;
      return { n };
    });
    const first = await ask(file);
    expect(first).toEqual({ status: 200, type: 'application/json', text: '{"n":1}\n' });
    expect((await ask(file)).text).toBe('{"n":2}\n');
    expect(statSync(file).mode & 0o777).toBe(0o660);
  });

  it.each([
    ['/', 'GET'],
    ['/v1/status/', 'GET'],
    ['/v1/status?x', 'GET'],
    ['/v1/status', 'POST'],
    ['/v1/status', 'DELETE'],
  ])('has nothing at %s for %s', async (url, method) => {
    const file = path.join(directory(), 'evictd.sock');
    await serve(file, () => Promise.reject(new Error('not asked')));
    expect(await ask(file, url, method)).toMatchObject({ status: 404 });
  });

  it('answers 500 when there is no status, without the reason', async () => {
    const file = path.join(directory(), 'evictd.sock');
    await serve(file, () => Promise.reject(new Error('secret')));
    expect(await ask(file)).toMatchObject({ status: 500, text: '{"error":"no status"}\n' });
  });

  it('makes the directory, and leaves nothing else in it', async () => {
    const file = path.join(directory(), 'run', 'evictd', 'evictd.sock');
    const socket = await serve(file, async () => ({}));
    expect(readdirSync(path.dirname(file))).toEqual(['evictd.sock']);
    socket.close();
    expect(readdirSync(path.dirname(file))).toEqual([]);
  });

  it('is closed twice without harm', async () => {
    const file = path.join(directory(), 'evictd.sock');
    const socket = await serve(file, async () => ({}));
    socket.close();
    socket.close();
    expect(existsSync(file)).toBe(false);
  });

  it('takes the place of a socket whose maker is dead', async () => {
    const file = path.join(directory(), 'evictd.sock');
    const program = `require('net').createServer().listen(process.argv[1], () => {
      process.kill(process.pid, 'SIGKILL');
    })`;
    expect(() => execFileSync(process.execPath, ['-e', program, file])).toThrow();
    expect(statSync(file).isSocket()).toBe(true);
    await serve(file, async () => ({ alive: true }));
    expect((await ask(file)).text).toBe('{"alive":true}\n');
  });

  it('leaves a live one alone: EVICTD_SOCKET_IN_USE', async () => {
    const file = path.join(directory(), 'evictd.sock');
    await serve(file, async () => ({ first: true }));
    await expect(serveStatus(file, async () => ({}))).rejects.toMatchObject({
      code: 'EVICTD_SOCKET_IN_USE',
      place: { value: file },
    });
    expect((await ask(file)).text).toBe('{"first":true}\n');
  });

  it('counts whatever listens as alive, even if it says nothing', async () => {
    const file = path.join(directory(), 'evictd.sock');
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(file, resolve));
    onTestFinished(() => void server.close());
    await expect(serveStatus(file, async () => ({}))).rejects.toMatchObject({
      code: 'EVICTD_SOCKET_IN_USE',
    });
  });

  it.each<[string, (file: string) => void]>([
    ['a file', (file) => writeFileSync(file, '')],
    ['a directory', (file) => mkdirSync(file)],
    ['a link', (file) => symlinkSync('/no/such', file)],
    ['a place below a file', (file) => writeFileSync(path.dirname(file), '')],
  ])('does not take the place of %s: EVICTD_SOCKET', async (what, make) => {
    const below = what.startsWith('a place');
    const file = path.join(directory(), ...(below ? ['x', 'evictd.sock'] : ['evictd.sock']));
    make(file);
    await expect(serveStatus(file, async () => ({}))).rejects.toMatchObject({
      code: 'EVICTD_SOCKET',
    });
  });

  it('does not remove what another has put in its place since', async () => {
    const file = path.join(directory(), 'evictd.sock');
    const socket = await serve(file, async () => ({}));
    rmSync(file);
    writeFileSync(file, 'another');
    socket.close();
    expect(existsSync(file)).toBe(true);
  });
});

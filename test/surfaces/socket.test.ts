import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
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
import { type IncomingMessage, request } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { concat, EMPTY, finalize, NEVER, of, Subject, startWith } from 'rxjs';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { SampleLine } from '../../src/surfaces/samples.ts';
import { type StatusSocket, serveStatus } from '../../src/surfaces/socket.ts';
import { until, within } from '../support/wait.ts';

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

const DROPPED = { kind: 'dropped' as const, count: 1 };

/** A client that asked for samples; reads nothing until it is told to. */
async function askSamples(socketPath: string, query = ''): Promise<IncomingMessage> {
  const asked = request({ socketPath, path: `/v1/samples${query}`, agent: false });
  onTestFinished(() => void asked.destroy());
  asked.end();
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    asked.once('response', resolve);
    asked.once('error', reject);
  });
  return within(answered, 5000, 'it answers');
}

describe('streams of samples', () => {
  it('give what they are asked for until the client goes', async () => {
    const file = path.join(directory(), 'evictd.sock');
    const intervals: number[] = [];
    let isOver = false;
    const socket = await serveStatus(
      file,
      async () => ({}),
      (intervalMs) => {
        intervals.push(intervalMs);
        return concat(of(DROPPED), NEVER).pipe(
          finalize(() => {
            isOver = true;
          }),
        );
      },
    );
    onTestFinished(() => socket.close());
    const response = await askSamples(file, '?interval=250ms');
    const [text] = (await within(once(response, 'data'), 5000, 'a line')) as [Buffer];
    expect(text.toString()).toBe(`${JSON.stringify(DROPPED)}\n`);
    expect(intervals).toEqual([250]);
    response.destroy();
    await until('the stream is over', () => isOver, { limitMs: 5000 });
  });

  it('drop what a client does not take, and say how much that was', async () => {
    const file = path.join(directory(), 'evictd.sock');
    const lines$ = new Subject<SampleLine>();
    const socket = await serveStatus(
      file,
      async () => ({}),
      () => lines$.pipe(startWith(DROPPED)),
    );
    onTestFinished(() => socket.close());
    const response = await askSamples(file);
    const long: SampleLine = { kind: 'config', config: { compatibility: 'x'.repeat(2 ** 20) } };
    for (let line = 0; line < 50; line += 1) lines$.next(long);
    let text = '';
    response.on('data', (part: Buffer) => {
      text += part.toString();
    });
    const read = () =>
      text
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as SampleLine);
    const isTaken = () => {
      lines$.next(DROPPED);
      return read().length > 2 && read().some(({ kind }, at) => at > 0 && kind === 'dropped');
    };
    await until('the client has caught up', isTaken, { limitMs: 5000 });
    const taken = read().filter(({ kind }) => kind === 'config').length;
    expect(taken).toBeLessThan(20);
    const notice = read().find((line, at) => at > 0 && line.kind === 'dropped');
    expect(notice).toMatchObject({ count: expect.any(Number) });
    const { count } = notice as typeof DROPPED;
    expect(taken + count).toBeGreaterThanOrEqual(50);
  });

  it('are refused beyond four, with a wrong interval, and where there are none', async () => {
    const [file, other] = [directory(), directory()].map((one) => path.join(one, 'evictd.sock'));
    const socket = await serveStatus(
      file ?? '',
      async () => ({}),
      () => NEVER.pipe(startWith(DROPPED)),
    );
    onTestFinished(() => socket.close());
    for (let stream = 0; stream < 4; stream += 1) await askSamples(file ?? '');
    expect(await ask(file ?? '', '/v1/samples')).toMatchObject({ status: 503 });
    expect(await ask(file ?? '')).toMatchObject({ status: 200 });
    await serve(other ?? '', async () => ({}));
    expect(await ask(other ?? '', '/v1/samples')).toMatchObject({ status: 404 });
    const third = path.join(directory(), 'evictd.sock');
    const served = await serveStatus(
      third,
      async () => ({}),
      () => EMPTY,
    );
    onTestFinished(() => served.close());
    for (const query of ['?interval=1ms', '?interval=x', '?interval=2h']) {
      expect(await ask(third, `/v1/samples${query}`)).toMatchObject({ status: 400 });
    }
  });
});

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
    expect(await ask(file)).toMatchObject({ status: 500, text: '{"error":"no answer"}\n' });
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

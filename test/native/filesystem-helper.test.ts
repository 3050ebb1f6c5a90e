import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statfsSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parseMount } from '../../src/kernel/mountinfo.ts';
import {
  answerReader,
  encodeRequest,
  FILESYSTEM_HELPER_PATH,
  type HelperAnswer,
} from '../../src/sources/filesystem-helper.ts';
import { until } from '../support/wait.ts';
import { killAndReap, MEBIBYTE, withLimit } from './support.ts';

const ADDON = process.env['EVICTD_NATIVE_PATH'];
const IS_SANITIZED = ADDON !== undefined;

/** Built beside the addon that is tested. */
const HELPER = IS_SANITIZED ? path.join(path.dirname(ADDON), 'evictd-fs') : FILESYSTEM_HELPER_PATH;

const WAIT_MS_MAX = 4_000;

/** The helper as a child of the test, with all that it answers. */
function start(options: { readonly extra?: number } = {}) {
  const child = spawn(HELPER, [], {
    stdio: ['pipe', 'pipe', 'inherit', ...(options.extra === undefined ? [] : [options.extra])],
  });
  onTestFinished(() => killAndReap(child));
  const { stdin, stdout, pid } = child;
  if (stdin === null || stdout === null || pid === undefined) throw new Error('no helper');
  stdin.on('error', () => undefined);
  const answers: HelperAnswer[] = [];
  const reader = answerReader();
  stdout.on('data', (bytes: Buffer) => answers.push(...(reader(bytes) ?? [])));
  const answered = (count: number) =>
    until(`${count} answers`, () => answers.length >= count, {
      limitMs: WAIT_MS_MAX,
      intervalMs: 1,
    });
  const ask = async (asked: string): Promise<HelperAnswer> => {
    const count = answers.length + 1;
    stdin.write(encodeRequest(asked));
    await answered(count);
    return answers[count - 1] as HelperAnswer;
  };
  return { child, pid, stdin, stdout, answers, answered, ask };
}

const exitOf = async (child: ChildProcess) => {
  const [status, signal] = await withLimit(once(child, 'exit'), 'the helper ends');
  return signal ?? status;
};

function figuresOf(answer: HelperAnswer) {
  if (answer.kind !== 'figures') throw new Error(answer.error);
  return answer.figures;
}

function temporaryDirectory(): string {
  const directory = mkdtempSync(path.join(tmpdir(), 'evictd-native-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return directory;
}

/** `major:minor` of `st_dev`, as glibc has it. */
function deviceOf(file: string): string {
  const dev = statSync(file, { bigint: true }).dev;
  const major = ((dev >> 8n) & 0xfffn) | ((dev >> 32n) & ~0xfffn);
  const minor = (dev & 0xffn) | ((dev >> 12n) & ~0xffn);
  return `${major}:${minor}`;
}

const openDescriptors = (pid: number) => readdirSync(`/proc/${pid}/fd`).length;

describe('evictd-fs', () => {
  it.each(['/', '/proc', '/dev/shm', tmpdir(), '/sys/fs/cgroup/memory', '/etc/passwd'])(
    '%s: has the figures of the kernel',
    async (asked) => {
      const figures = figuresOf(await start().ask(asked));
      const expected = statfsSync(asked, { bigint: true });
      expect(figures.blocks).toBe(expected.blocks);
      expect(figures.inodes).toBe(expected.files);
      expect(figures.blocksFree).toBeGreaterThanOrEqual(figures.blocksAvailable);
      // Others write at the same time.
      const nearFree = Number(figures.blocksFree - expected.bfree) * Number(expected.bsize);
      expect(Math.abs(nearFree)).toBeLessThan(512 * MEBIBYTE);
      const nearBytes = Math.abs(
        Number(figures.blocksAvailable - expected.bavail) * Number(expected.bsize),
      );
      expect(nearBytes).toBeLessThan(512 * MEBIBYTE);
      expect(Math.abs(Number(figures.inodesFree - expected.ffree))).toBeLessThan(100_000);
      expect(figures.device).toBe(deviceOf(asked));
      const mount = parseMount(figures.mountLine);
      expect(mount?.device).toBe(figures.device);
      expect(asked.startsWith(mount?.mountPoint ?? 'none')).toBe(true);
    },
  );

  it('tells the mount as it is, however often mounts come and go at one place', async () => {
    const directory = temporaryDirectory();
    const helper = start();
    const sourceOf = async () =>
      parseMount(figuresOf(await helper.ask(directory)).mountLine)?.source;
    const run = (...[file = '', ...args]: readonly string[]) =>
      expect(spawnSync(file, args).status).toBe(0);
    const before = await sourceOf();
    for (let round = 0; round < 20; round += 1) {
      run('mount', '-t', 'tmpfs', `evictd-test-${round}`, directory);
      try {
        // The kernel gives the numbers of the mount and of the device out again.
        expect([await sourceOf(), await sourceOf()]).toEqual(Array(2).fill(`evictd-test-${round}`));
      } finally {
        run('umount', directory);
      }
    }
    expect(await sourceOf()).toBe(before);
  });

  it.each([
    ['is missing', '/nowhere/at/all', 'ENOENT'],
    ['goes through a file', '/etc/passwd/x', 'ENOTDIR'],
    ['has a name of 256 bytes', `/${'n'.repeat(256)}`, 'ENAMETOOLONG'],
    ['has 4,095 bytes', `/${'n/'.repeat(2047)}`, 'ENOENT'],
  ])('a path that %s', async (_, asked, code) => {
    const helper = start();
    const answer = await helper.ask(asked);
    expect(answer).toStrictEqual({
      kind: 'refused',
      error: expect.stringMatching(new RegExp(`^${code}: .+, open$`)),
    });
    expect((await helper.ask('/proc')).kind).toBe('figures');
  });

  it('a loop of symbolic links fails, one link is followed', async () => {
    const directory = temporaryDirectory();
    symlinkSync('loop', path.join(directory, 'loop'));
    symlinkSync('/proc', path.join(directory, 'proc'));
    const helper = start();
    expect(await helper.ask(path.join(directory, 'loop'))).toMatchObject({
      error: expect.stringMatching(/^ELOOP/),
    });
    expect(figuresOf(await helper.ask(path.join(directory, 'proc'))).device).toBe(
      deviceOf('/proc'),
    );
  });

  it.each([
    ['a space and a newline', Buffer.from('odd \nname')],
    ['255 bytes', Buffer.from('n'.repeat(255))],
    ['what a shell would take', Buffer.from('$(id);`id`\'"*?')],
    ['no UTF-8', Buffer.from([0xff, 0xfe, 0x80, 0x09])],
    [
      'every byte but NUL and the slash',
      Buffer.from([...Array(254).keys()].map((at) => at + (at < 46 ? 1 : 2))),
    ],
  ])('a name with %s is only a name', async (_, name) => {
    const directory = temporaryDirectory();
    const asked = Buffer.concat([Buffer.from(`${directory}/`), name]);
    mkdirSync(asked);
    const helper = start();
    const prefix = Buffer.alloc(2);
    prefix.writeUInt16LE(asked.length);
    helper.stdin.write(Buffer.concat([prefix, asked]));
    await helper.answered(1);
    expect(figuresOf(helper.answers[0] as HelperAnswer).device).toBe(deviceOf(directory));
  });

  it('answers in order, whatever pieces the requests come in', async () => {
    const helper = start();
    const asked = ['/proc', '/nowhere', '/'];
    const bytes = Buffer.concat([...Array(50)].flatMap(() => asked.map(encodeRequest)));
    helper.stdin.write(bytes.subarray(0, 700));
    for (const byte of bytes.subarray(700, 720)) helper.stdin.write(Buffer.of(byte));
    helper.stdin.write(bytes.subarray(720));
    await helper.answered(150);
    const told = helper.answers.map((answer) =>
      answer.kind === 'figures' ? answer.figures.device : 'refused',
    );
    const once = [deviceOf('/proc'), 'refused', deviceOf('/')];
    expect(told).toEqual([...Array(50)].flatMap(() => once));
  });

  it.each([
    ['a length of 0', Buffer.of(0, 0)],
    ['a length of 4,096', Buffer.concat([Buffer.of(0, 0x10), Buffer.alloc(4096, '/')])],
    ['the greatest length', Buffer.of(0xff, 0xff)],
    ['NUL within a path', Buffer.of(3, 0, 0x2f, 0, 0x2f)],
    ['NUL alone', Buffer.of(1, 0, 0)],
  ])('%s: ends with 2, without an answer', async (_, bytes) => {
    const helper = start();
    helper.stdin.write(bytes);
    expect(await exitOf(helper.child)).toBe(2);
    expect(helper.answers).toEqual([]);
  });

  it.each([
    ['half a length', Buffer.of(1), 2],
    ['half a path', Buffer.of(5, 0, 0x2f, 0x61), 2],
    ['nothing', Buffer.alloc(0), 0],
    ['a whole request', encodeRequest('/'), 0],
  ])('the end of input after %s', async (_, bytes, status) => {
    const helper = start();
    helper.stdin.end(bytes);
    expect(await exitOf(helper.child)).toBe(status);
  });

  it('ends when nobody reads its answers', async () => {
    const helper = start();
    await helper.ask('/');
    helper.stdout.destroy();
    helper.stdin.write(encodeRequest('/'));
    expect(await exitOf(helper.child)).toBe('SIGPIPE');
  });

  it('goes on when a terminal interrupts the job, and ends by SIGTERM', async () => {
    const helper = start();
    await helper.ask('/');
    helper.child.kill('SIGINT');
    helper.child.kill('SIGHUP');
    expect((await helper.ask('/')).kind).toBe('figures');
    helper.child.kill('SIGTERM');
    expect(await exitOf(helper.child)).toBe('SIGTERM');
  });

  it('ends with who started it, also while its input stays open', async () => {
    const script = `require('node:child_process')
      .spawn(process.argv[1], { stdio: 'inherit' }).on('spawn', function () { console.error(this.pid) })`;
    // Standard input and output are this test's own pipes, which stay open.
    const parent = spawn(process.execPath, ['-e', script, HELPER], {
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    onTestFinished(() => killAndReap(parent));
    const [line] = await once(parent.stderr, 'data');
    const pid = Number(line);
    parent.stdin.write(encodeRequest('/'));
    await withLimit(once(parent.stdout, 'data'), 'an answer');
    expect(readFileSync(`/proc/${pid}/comm`, 'utf8')).toBe('evictd-fs\n');
    parent.kill('SIGKILL');
    const isGone = () => {
      try {
        return / [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
      } catch {
        return true;
      }
    };
    await until('the helper is gone', isGone, { limitMs: WAIT_MS_MAX });
  });

  it('keeps nothing open that it was started with', async () => {
    const file = path.join(temporaryDirectory(), randomUUID());
    writeFileSync(file, '');
    const fd = openSync(file, 'r');
    onTestFinished(() => closeSync(fd));
    const helper = start({ extra: fd });
    await helper.ask('/');
    const open = readdirSync(`/proc/${helper.pid}/fd`).toSorted();
    expect(open).toEqual(['0', '1', '2', '3']);
    expect(readlinkSync(`/proc/${helper.pid}/fd/3`)).toMatch(/^\/proc\/\d+\/mountinfo$/);
  });

  it('2,000 requests later it holds no more, and is small', async () => {
    const helper = start();
    await helper.ask('/');
    expect(openDescriptors(helper.pid)).toBe(4);
    helper.stdin.write(
      Buffer.concat(
        [...Array(1000)].flatMap(() => [encodeRequest('/'), encodeRequest('/nowhere')]),
      ),
    );
    await helper.answered(2001);
    expect(openDescriptors(helper.pid)).toBe(4);
    const status = readFileSync(`/proc/${helper.pid}/status`, 'utf8');
    const residentKibibytes = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]);
    if (!IS_SANITIZED) expect(residentKibibytes).toBeLessThan(2048);
  });
});

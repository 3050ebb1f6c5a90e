import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  encodeDeleted,
  encodeWalk,
  WALK_HELPER_PATH,
  type WalkAnswer,
  type WalkLimits,
  walkAnswerReader,
} from '../../src/sources/walk-helper.ts';
import { until } from '../support/wait.ts';
import { killAndReap, withLimit } from './support.ts';

const ADDON = process.env['EVICTD_NATIVE_PATH'];

/** Built beside the addon that is tested. */
const HELPER =
  ADDON === undefined ? WALK_HELPER_PATH : path.join(path.dirname(ADDON), 'evictd-walk');

const LIMITS: WalkLimits = { entries: 100_000, cpuMs: 5000, ms: 10_000 };
const WAIT_MS_MAX = 15_000;

/** The helper as a child of the test. */
function start() {
  const child = spawn(HELPER, [], { stdio: ['pipe', 'pipe', 'inherit'] });
  onTestFinished(() => killAndReap(child));
  const { stdin, stdout, pid } = child;
  if (stdin === null || stdout === null || pid === undefined) throw new Error('no helper');
  stdin.on('error', () => undefined);
  const answers: WalkAnswer[] = [];
  const reader = walkAnswerReader();
  stdout.on('data', (bytes: Buffer) => answers.push(...(reader(bytes) ?? [])));
  const send = async (frame: Buffer): Promise<WalkAnswer> => {
    const count = answers.length + 1;
    stdin.write(frame);
    await until('an answer', () => answers.length >= count, {
      limitMs: WAIT_MS_MAX,
      intervalMs: 1,
    });
    return answers[count - 1] as WalkAnswer;
  };
  const walk = (root: string, below = '', limits: Partial<WalkLimits> = {}) =>
    send(encodeWalk({ root, below }, { ...LIMITS, ...limits }));
  return { child, pid, stdin, answers, send, walk };
}

function walked(answer: WalkAnswer) {
  if (answer.kind !== 'walked') throw new Error(answer.error);
  return answer;
}

function temporaryDirectory(): string {
  const directory = mkdtempSync(path.join(tmpdir(), 'evictd-walk-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** What `du` says of the same: blocks, each inode once, no other filesystem. */
function du(directory: string) {
  const run = (...args: readonly string[]) =>
    Number(spawnSync('du', [...args, directory], { encoding: 'utf8' }).stdout.split('\t')[0]);
  return { bytes: run('-xs', '-B1'), inodes: run('-xs', '--inodes') };
}

const exitOf = async (child: ChildProcess) => {
  const [status, signal] = await withLimit(once(child, 'exit'), 'the helper ends');
  return signal ?? status;
};

describe('evictd-walk', () => {
  it('adds up what du does: holes are none, names of one inode count once', async () => {
    const directory = temporaryDirectory();
    mkdirSync(path.join(directory, 'a/b'), { recursive: true });
    writeFileSync(path.join(directory, 'a/whole'), Buffer.alloc(300_000, 1));
    linkSync(path.join(directory, 'a/whole'), path.join(directory, 'a/b/again'));
    spawnSync('truncate', ['-s', '1G', path.join(directory, 'a/hole')]);
    symlinkSync('/usr', path.join(directory, 'a/b/usr'));
    for (let count = 0; count < 500; count += 1) {
      writeFileSync(path.join(directory, 'a/b', `file ${count}\n`), 'x');
    }
    const answer = walked(await start().walk(directory));
    const { bytes, inodes } = du(directory);
    expect(answer).toMatchObject({ bytes, inodes, cut: undefined, holders: [] });
    expect(answer.inodes).toBe(506);
    expect(answer.bytes).toBeLessThan(4_000_000);
  });

  it('a file is what it is itself', async () => {
    const directory = temporaryDirectory();
    writeFileSync(path.join(directory, 'log'), Buffer.alloc(10_000, 1));
    const answer = walked(await start().walk(directory, 'log'));
    const { blocks } = statSync(path.join(directory, 'log'));
    expect(answer).toMatchObject({ bytes: blocks * 512, inodes: 1 });
  });

  it('no link leads away from the root, not even by the last name', async () => {
    const directory = temporaryDirectory();
    mkdirSync(path.join(directory, 'real'));
    writeFileSync(path.join(directory, 'real/file'), Buffer.alloc(100_000, 1));
    symlinkSync('real', path.join(directory, 'link'));
    symlinkSync('/etc', path.join(directory, 'etc'));
    symlinkSync('/etc/passwd', path.join(directory, 'passwd'));
    const helper = start();
    const below = await Promise.all(
      ['link', 'etc', 'passwd', 'link/file', 'etc/passwd'].map((name, index) =>
        index === 0 ? helper.walk(directory, name) : start().walk(directory, name),
      ),
    );
    expect(below.map(({ kind }) => kind)).toEqual(Array(5).fill('refused'));
    // Whoever gives the root knows it.
    expect(walked(await helper.walk(path.join(directory, 'link'))).inodes).toBe(2);
  });

  it('leaves out what is mounted below, and says where it lies', async () => {
    const directory = temporaryDirectory();
    mkdirSync(path.join(directory, 'mount'));
    const helper = start();
    const before = walked(await helper.walk(directory));
    const mount = path.join(directory, 'mount');
    expect(spawnSync('mount', ['-t', 'tmpfs', 'evictd-test', mount]).status).toBe(0);
    try {
      writeFileSync(path.join(mount, 'file'), Buffer.alloc(1_000_000, 1));
      const over = walked(await helper.walk(directory));
      expect(over.inodes).toBe(1);
      expect(over.bytes).toBeLessThan(before.bytes + 1);
      const inside = walked(await helper.walk(directory, 'mount'));
      expect(inside.device).not.toBe(over.device);
      expect(inside.type).toBe(0x0102_1994);
      expect(inside.bytes).toBeGreaterThanOrEqual(1_000_000);
    } finally {
      spawnSync('umount', [mount]);
    }
  });

  it.each([
    ['entries', { entries: 10 }, 'entries'],
    ['processor time', { cpuMs: 0 }, 'time'],
    ['time', { ms: 0 }, 'time'],
  ] as const)('%s have a limit, and what was found by then is told', async (_, limits, cut) => {
    const directory = temporaryDirectory();
    mkdirSync(path.join(directory, 'a/b/c/d'), { recursive: true });
    for (let count = 0; count < 50; count += 1) {
      writeFileSync(path.join(directory, `${count}`), '');
    }
    const helper = start();
    const answer = walked(await helper.walk(directory, '', limits));
    expect(answer.cut).toBe(cut);
    expect(answer.inodes).toBeGreaterThan(0);
    expect(answer.inodes).toBeLessThan(55);
    expect(walked(await helper.walk(directory))).toMatchObject({ cut: undefined, inodes: 55 });
  });

  it('no tree is too deep: what lies below 6000 levels is found, with few descriptors', async () => {
    // Where it is made in no time.
    const directory = mkdtempSync('/dev/shm/evictd-walk-');
    // Deeper than a path can be.
    const [levels, times] = [1000, 6];
    const below = Array(levels).fill('d').join('/');
    const make = `for i in $(seq ${times}); do mkdir -p ${below} && cd -P ${below} || exit 1; done
      head -c 5000000 /dev/zero > file`;
    const made = spawnSync('bash', ['-c', make], { cwd: directory, encoding: 'utf8' });
    onTestFinished(() => void spawnSync('rm', ['-rf', directory]));
    expect(made.stderr).toBe('');
    const helper = start();
    spawnSync('prlimit', ['--pid', String(helper.pid), '--nofile=8']);
    const files = path.join(directory, 'beside');
    writeFileSync(files, Buffer.alloc(1_000_000, 1));
    const answer = walked(await helper.walk(directory));
    expect(answer).toMatchObject({ inodes: levels * times + 3, cut: undefined });
    expect(answer.bytes).toBeGreaterThan(6_000_000);
  });

  describe('where directories are moved while they are read', () => {
    const FILES = 500;
    const scene = () => {
      const directory = mkdtempSync('/dev/shm/evictd-walk-');
      onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
      const at = (name: string) => path.join(directory, name);
      mkdirSync(at('one/two/moving'), { recursive: true });
      mkdirSync(at('other'));
      for (let count = 0; count < FILES; count += 1)
        writeFileSync(at(`one/two/moving/${count}`), '');
      return { directory, at, helper: start() };
    };
    /** What the walks tell while others go on, until `isEnough`. */
    const cutsOf = async (
      { directory, helper }: ReturnType<typeof scene>,
      turns: readonly (() => void)[],
      isEnough: (cuts: ReadonlySet<string | undefined>) => boolean,
    ) => {
      const cuts = new Set<string | undefined>();
      for (let round = 0; round < 500 && !isEnough(cuts); round += 1) {
        let answer: WalkAnswer | undefined;
        void helper.walk(directory).then((told) => {
          answer = told;
        });
        for (let turn = 0; answer === undefined || turn % turns.length > 0; turn += 1) {
          turns[turn % turns.length]?.();
          await new Promise((resolve) => setImmediate(resolve));
        }
        cuts.add(walked(answer).cut);
      }
      return cuts;
    };

    it('the way back is found where only the one that was read has gone', async () => {
      const one = scene();
      const [here, there] = [one.at('one/two/moving'), one.at('other/moving')];
      const turns = [() => renameSync(here, there), () => renameSync(there, here)];
      let rounds = 0;
      const cuts = await cutsOf(one, turns, () => {
        rounds += 1;
        return rounds > 10;
      });
      expect([...cuts]).toEqual([undefined]);
    });
  });

  it('names are bytes: one that changes while it is read breaks nothing', async () => {
    const directory = temporaryDirectory();
    for (let count = 0; count < 200; count += 1) {
      writeFileSync(Buffer.concat([Buffer.from(`${directory}/`), Buffer.of(0xff, 48 + count)]), '');
    }
    const helper = start();
    const answer = helper.walk(directory);
    renameSync(
      Buffer.concat([Buffer.from(`${directory}/`), Buffer.of(0xff, 48)]),
      `${directory}/other`,
    );
    expect(walked(await answer).inodes).toBeGreaterThanOrEqual(200);
  });

  it('finds what is deleted and still open, with its process', async () => {
    const directory = temporaryDirectory();
    const file = path.join(directory, 'gone');
    const fd = openSync(file, 'w');
    onTestFinished(() => closeSync(fd));
    writeSync(fd, Buffer.alloc(2_000_000, 1));
    const { blocks, dev } = statSync(file);
    const helper = start();
    const mine = async () =>
      walked(await helper.send(encodeDeleted(LIMITS)))
        .holders.filter(({ pid }) => pid === process.pid)
        .reduce((sum, { bytes }) => sum + bytes, 0);
    const before = await mine();
    unlinkSync(file);
    const answer = walked(await helper.send(encodeDeleted(LIMITS)));
    const holder = answer.holders.find(({ pid }) => pid === process.pid);
    expect((await mine()) - before).toBe(blocks * 512);
    expect(holder?.device).toBe(`${(dev >> 8) & 0xfff}:${dev & 0xff}`);
  });

  it('memory is no disk: a deleted file of tmpfs is none', async () => {
    const file = path.join('/dev/shm', `evictd-walk-${process.pid}`);
    const fd = openSync(file, 'w');
    onTestFinished(() => closeSync(fd));
    writeSync(fd, Buffer.alloc(1_000_000, 1));
    const { dev } = statSync(file);
    unlinkSync(file);
    const { holders } = walked(await start().send(encodeDeleted(LIMITS)));
    const device = `${(dev >> 8) & 0xfff}:${dev & 0xff}`;
    expect(holders.filter((one) => one.device === device)).toEqual([]);
  });

  it('is behind everybody else for the processor and the disk', async () => {
    const helper = start();
    await helper.walk(temporaryDirectory());
    const fields = readFileSync(`/proc/${helper.pid}/stat`, 'utf8').split(') ')[1]?.split(' ');
    // Counted from the third field of stat: nice is the 19th, the policy the 41st (5: SCHED_IDLE).
    expect([fields?.[16], fields?.[38]]).toEqual(['19', '5']);
    const { stdout } = spawnSync('ionice', ['-p', String(helper.pid)], { encoding: 'utf8' });
    expect(stdout.trim()).toBe('idle');
  });

  const header = (fields: readonly number[], ...texts: readonly string[]) => {
    const bytes = Buffer.alloc(16);
    const [kind = 0, cpuMs = 1, root = 0, below = 0] = fields;
    bytes.writeUInt16LE(kind, 0);
    bytes.writeUInt16LE(cpuMs, 2);
    bytes.writeUInt32LE(10, 4);
    bytes.writeUInt32LE(10, 8);
    bytes.writeUInt16LE(root, 12);
    bytes.writeUInt16LE(below, 14);
    return Buffer.concat([bytes, ...texts.map((text) => Buffer.from(text))]);
  };
  it.each([
    ['an unknown kind', header([2, 1, 1, 0], '/')],
    ['no root', header([0, 1, 0, 1], 'a')],
    ['a relative root', header([0, 1, 1, 0], 'a')],
    ['.. below', header([0, 1, 1, 2], '/', '..')],
    ['.. between', header([0, 1, 1, 6], '/', 'a/../b')],
    ['an absolute path below', header([0, 1, 1, 4], '/', '/etc')],
    ['an empty part', header([0, 1, 1, 4], '/', 'a//b')],
    ['a slash at the end', header([0, 1, 1, 2], '/', 'a/')],
    ['NUL below', header([0, 1, 1, 3], '/', 'a\0b')],
    ['a root with the scan of processes', header([1, 0, 1, 0], '/')],
    ['a root that is too long', header([0, 1, 4096, 0], `/${'a'.repeat(4095)}`)],
    ['half a header', Buffer.of(0, 0, 1)],
    ['half a path', header([0, 1, 5, 0], '/a')],
  ])('%s: ends with 2, without an answer', async (_, bytes) => {
    const helper = start();
    helper.stdin.end(bytes);
    expect(await exitOf(helper.child)).toBe(2);
    expect(helper.answers).toEqual([]);
  });

  it('what is not there is refused, and the next one served', async () => {
    const helper = start();
    expect(await helper.walk('/nowhere')).toStrictEqual({
      kind: 'refused',
      error: 'ENOENT: no such file or directory, open',
    });
    expect(await helper.walk('/proc', 'self/nothing')).toMatchObject({ kind: 'refused' });
    expect((await helper.walk(temporaryDirectory())).kind).toBe('walked');
  });
});

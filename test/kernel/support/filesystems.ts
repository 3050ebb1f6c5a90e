import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { readFileSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished } from 'vitest';
import type { FilesystemNotice } from '../../../src/ports/filesystem.ts';
import { until, within } from '../../support/wait.ts';
import { MAIN, privateDirectory } from './daemon.ts';

export const LIMIT_MS = 15_000;

const supportFile = (name: string) => fileURLToPath(new URL(name, import.meta.url));

function mount(args: readonly string[], directory: string): void {
  const { status, stderr } = spawnSync('mount', [...args, directory], { encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  onTestFinished(() => unmount(directory));
}

/** Takes away what is mounted there, in use or not; nothing where nothing is. */
export function unmount(directory: string): void {
  spawnSync('umount', ['-l', directory], { stdio: 'ignore' });
}

/** Mounts a tmpfs, on a directory of its own unless one is given; it goes with the test. */
export function mountTmpfs(options: string, directory: string = privateDirectory()): string {
  mount(['-t', 'tmpfs', '-o', options, 'evictd-test'], directory);
  return directory;
}

/** Shows a directory at another place as well. */
export function mountBind(shown: string, directory: string = privateDirectory()): string {
  mount(['--bind', shown], directory);
  return directory;
}

/** Mounts an ext4 in a file. */
export function mountExt4(mebibytes: number, directory: string = privateDirectory()): string {
  const image = path.join(privateDirectory('/var/tmp'), 'image');
  writeFileSync(image, '');
  truncateSync(image, mebibytes * 2 ** 20);
  const made = spawnSync('mkfs.ext4', ['-q', '-F', '-m', '5', image], { encoding: 'utf8' });
  expect(made.stderr).toBe('');
  mount(['-t', 'ext4', '-o', 'loop', image], directory);
  return directory;
}

/** A FUSE server: `support/stuck-file.py`. */
export interface FuseServer {
  readonly directory: string;
  says(word: string): Promise<number>;
  /** Has it answer what it has taken, and all that comes. */
  answer(): void;
}

export async function mountFuse(how: 'statfs' | 'unread' | 'nothing'): Promise<FuseServer> {
  const directory = privateDirectory();
  const child = spawn('python3', [supportFile('stuck-file.py'), directory, how], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const said = new Set<string>();
  createInterface({ input: child.stdout }).on('line', (line) => said.add(line));
  const exited = new Promise((resolve) => child.once('exit', resolve));
  onTestFinished(async () => {
    child.stdin.end();
    await within(exited, LIMIT_MS, 'the FUSE server ends');
    unmount(directory);
  });
  const says = (word: string) =>
    until(`the FUSE server says ${word}`, () => said.has(word), { limitMs: LIMIT_MS });
  await says('mounted');
  return { directory, says, answer: () => child.stdin.write('answer\n') };
}

/** A process that measures filesystems: `support/filesystems.mjs`. */
export interface Measuring {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly notices: readonly FilesystemNotice[];
  /** Waits for a notice that holds, among those from `from` on. */
  notice<T extends FilesystemNotice['kind']>(
    kind: T,
    path: string,
    holds?: (notice: Extract<FilesystemNotice, { kind: T }>) => boolean,
    from?: number,
  ): Promise<Extract<FilesystemNotice, { kind: T }>>;
  send(command: 'unsubscribe' | 'exit' | 'rest'): void;
  /** Resolves at its end with the time from now, ms. Fails when it takes long or ends badly. */
  exits(): Promise<number>;
  /** Its children that live, or are in state D: pids. */
  helpers(): readonly number[];
}

export const pathOf = (notice: FilesystemNotice): string =>
  notice.kind === 'read' ? notice.reading.path : notice.path;

export interface MeasuringInputs {
  readonly paths: readonly string[];
  readonly pollMs?: number;
  readonly deadlineMs?: number;
  readonly helperPath?: string;
}

export function measure(inputs: MeasuringInputs): Measuring {
  const child = spawn(
    process.execPath,
    [
      supportFile('filesystems.mjs'),
      path.dirname(MAIN),
      JSON.stringify({ pollMs: 100, ...inputs }),
    ],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  );
  const exited = new Promise<unknown>((resolve) =>
    child.once('exit', (code, signal) => resolve(signal ?? code)),
  );
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await within(exited, LIMIT_MS, 'the measuring process ends');
  });
  const notices: FilesystemNotice[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => notices.push(JSON.parse(line)));
  const { pid } = child;
  if (pid === undefined) throw new Error('no process');
  return {
    child,
    pid,
    notices,
    notice: async (kind, of, holds = () => true, from = 0) => {
      type Wanted = Extract<FilesystemNotice, { kind: typeof kind }>;
      const find = () =>
        notices
          .slice(from)
          .find(
            (one): one is Wanted => one.kind === kind && pathOf(one) === of && holds(one as Wanted),
          );
      await until(`${kind} ${of}`, () => find() !== undefined, {
        limitMs: LIMIT_MS,
        describe: () => JSON.stringify(notices.slice(-3)),
      });
      return find() as Wanted;
    },
    send: (command) => child.stdin.write(`${command}\n`),
    exits: async () => {
      const startedMs = performance.now();
      expect(await within(exited, LIMIT_MS, 'the measuring process ends')).toBe(0);
      return performance.now() - startedMs;
    },
    helpers: () => childrenOf(pid),
  };
}

function childrenOf(pid: number): readonly number[] {
  const pids = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
  return pids.map(Number).filter((child) => !['Z', 'X', undefined].includes(stateOf(child)));
}

/** The letter of `/proc/PID/stat`; undefined when the process is gone. */
export function stateOf(pid: number): string | undefined {
  try {
    return /\) (\w) /.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.[1];
  } catch {
    return undefined;
  }
}

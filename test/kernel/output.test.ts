/** evictd evicts whatever becomes of its log. */
import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, constants, mkdirSync, openSync, renameSync, writeSync } from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { describeWith } from '../support/skip.ts';
import { privateDirectory, startDaemon } from './support/daemon.ts';
import { death, fill, MI, makeNode, type TestNode } from './support/node.ts';

const ARGS = [
  ...['--eviction-hard', 'memory.available<64Mi', '--log-level', 'trace'],
  ...['web', 'ballast', 'swing', 'guarded'].flatMap((pod) => ['--pod', `${pod}=protected`]),
];
/** How long the end may take: half a second for the lines that are left, and a margin. */
const PROMPTLY_MS = 3000;

/**
 * Fills and empties a file on tmpfs, across the threshold and all its rungs, until it is killed: no
 * victim, but some thousand lines a second at the most talkative level.
 */
const SWING = `
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
block = bytes(12 << 20)
print("swinging", flush=True)
while True:
    os.pwrite(fd, block, 0)
    os.ftruncate(fd, 0)
`;

/** Swings around the threshold of 64Mi in a node of 256Mi. */
async function swing(node: TestNode): Promise<void> {
  const ballast = await node.pod('ballast').spawn();
  await fill(node.cgroup, ballast, 178 * MI);
  const file = path.join(privateDirectory('/dev/shm'), 'swing');
  const shell = node.pod('swing').shell(`exec python3 -c '${SWING}' "$1"`, [file]);
  expect(await shell.said).toBe('swinging');
}

/** A FIFO that is held open and not read; the end that the daemon gets. */
function unreadPipe(): number {
  const fifo = path.join(privateDirectory(), 'stdout');
  execFileSync('mkfifo', [fifo]);
  const reader = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = openSync(fifo, constants.O_WRONLY);
  onTestFinished(() => closeSync(reader));
  return writer;
}

describeWith(
  { root: true, cgroupV1: true, programs: ['mkfifo', 'python3'] },
  'evictd evicts',
  () => {
    it.each<[string, (() => number) | undefined]>([
      ['a pipe', unreadPipe],
      ['a socket', undefined],
    ])('while nobody reads its log, %s, and counts the lines that it drops', async (_, open) => {
      const node = makeNode(256 * MI);
      const web = await node.bystander();
      const stdout = open?.();
      const daemon = await startDaemon({
        node: node.path,
        args: ARGS,
        ...(stdout === undefined ? { reads: false } : { stdout }),
      });
      if (stdout !== undefined) closeSync(stdout);
      const guarded = node.pod('guarded');
      const leak = await guarded.spawn();
      await swing(node);
      const full = await daemon.statusWhen(
        'lines are dropped',
        ({ counters }) => counters.droppedLogLines > 0,
        60_000,
      );
      expect(full.counters.samples).toBeGreaterThan(100);

      // Under another name it is no longer protected: a candidate that has a process from the start.
      renameSync(guarded.cgroup.path, path.join(node.path, 'leak'));
      await leak.grow(8 * MI).catch(() => undefined);
      expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
      const evictions = await daemon.ended(1);
      expect(evictions.at(0)).toMatchObject({ pod: 'leak', outcome: 'evicted' });
      web.expectAlive();
      expect(await daemon.stop()).toBeLessThan(PROMPTLY_MS);
    });

    it('while its log is on a disk that is full', async () => {
      const node = makeNode(256 * MI);
      const web = await node.bystander();
      const disk = path.join(privateDirectory(), 'disk');
      mkdirSync(disk);
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', disk]);
      onTestFinished(() => void spawnSync('umount', [disk]));
      const stdout = openSync(path.join(disk, 'log'), 'a');
      fillDisk(path.join(disk, 'filler'));
      const daemon = await startDaemon({ node: node.path, stdout, args: ARGS });
      closeSync(stdout);
      const leak = await node.pod('leak').spawn();
      await fill(node.cgroup, leak, 210 * MI);
      expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
      expect((await daemon.ended(1))[0]).toMatchObject({ pod: 'leak', outcome: 'evicted' });
      web.expectAlive();
      expect(await daemon.stop()).toBeLessThan(PROMPTLY_MS);
    });

    it('once the reader of its log has gone', async () => {
      const node = makeNode(256 * MI);
      const web = await node.bystander();
      const daemon = await startDaemon({ node: node.path, args: ARGS });
      daemon.child.stdout?.destroy();
      const leak = await node.pod('leak').spawn();
      await fill(node.cgroup, leak, 210 * MI);
      expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
      expect((await daemon.ended(1))[0]).toMatchObject({ pod: 'leak', outcome: 'evicted' });
      const { counters } = await daemon.status();
      expect(counters.droppedLogLines).toBeGreaterThan(0);
      web.expectAlive();
      expect(await daemon.stop()).toBeLessThan(PROMPTLY_MS);
    });
  },
);

/** Leaves no byte free. */
function fillDisk(file: string): void {
  const fd = openSync(file, 'w');
  try {
    for (;;) writeSync(fd, Buffer.alloc(4096));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  } finally {
    closeSync(fd);
  }
}

import { execFileSync } from 'node:child_process';
import {
  closeSync,
  constants,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { liveScheduler } from '../../src/sources/live-scheduler.ts';
import { openSink } from '../../src/surfaces/sink.ts';
import { describeWith } from '../support/skip.ts';
import { until, within } from '../support/wait.ts';

const LINE = `${'x'.repeat(99)}\n`;
const LIMIT_BYTES = 64 * 1024;
const FLUSH_MS = 300;

function directory(): string {
  const made = mkdtempSync(path.join(tmpdir(), 'evictd-sink-'));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** A FIFO's two ends; the reading one is read only when a test does so. */
function fifo() {
  const file = path.join(directory(), 'fifo');
  execFileSync('mkfifo', [file]);
  const reader = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = openSync(file, constants.O_WRONLY);
  let open = true;
  const closeReader = () => {
    if (open) closeSync(reader);
    open = false;
  };
  onTestFinished(closeReader);
  onTestFinished(() => closeSync(writer));
  const drain = (): string => {
    const chunk = Buffer.alloc(1 << 20);
    try {
      return chunk.toString('utf8', 0, readSync(reader, chunk));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return '';
      throw error;
    }
  };
  return { writer, drain, closeReader };
}

const sinkOn = (fd: number, limitBytes = LIMIT_BYTES) => openSink(fd, liveScheduler, limitBytes);

const flagsOf = (fd: number) =>
  Number.parseInt(
    /^flags:\s+(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1] ?? '',
    8,
  );

describeWith({ programs: ['mkfifo'] }, 'a sink on a pipe', () => {
  it('hands on every line in order while it is read', async () => {
    const { writer, drain } = fifo();
    const sink = sinkOn(writer);
    const lines = Array.from({ length: 2000 }, (_, n) => `{"n":${n},"text":"käse ☃"}\n`);
    let seen = '';
    for (const line of lines) {
      sink.write(line);
      seen += drain();
    }
    await until(
      'all have come',
      () => {
        seen += drain();
        return seen.length >= lines.join('').length;
      },
      { limitMs: 5000 },
    );
    expect(seen).toBe(lines.join(''));
    expect(sink.dropped).toBe(0);
    await sink.flush(FLUSH_MS);
  });

  it('drops and counts whole lines when nobody reads, and waits for nothing', async () => {
    const { writer, drain } = fifo();
    const sink = sinkOn(writer);
    const startedMs = performance.now();
    for (let n = 0; n < 5000; n += 1) sink.write(LINE);
    expect(sink.dropped).toBeGreaterThan(0);
    // The pipe itself holds 64 KiB as well.
    expect(sink.dropped).toBeGreaterThanOrEqual(5000 - (2 * LIMIT_BYTES) / LINE.length - 1);
    await sink.flush(FLUSH_MS);
    expect(performance.now() - startedMs).toBeLessThan(FLUSH_MS + 3000);

    // Once it is read again, lines get through again.
    const droppedBefore = sink.dropped;
    let seen = '';
    const kept = (5000 - droppedBefore) * LINE.length;
    const all = () => {
      seen += drain();
      return seen.length >= kept;
    };
    await until('what was kept has come', all, { limitMs: 5000 });
    expect(seen).toBe(LINE.repeat(5000 - droppedBefore));
    await until(
      'a new line comes through',
      () => {
        sink.write('again\n');
        return drain().includes('again');
      },
      { limitMs: 5000 },
    );
    expect(sink.dropped).toBe(droppedBefore);
  });

  it('goes on when the reader has gone, and counts', async () => {
    const { writer, closeReader } = fifo();
    const sink = sinkOn(writer);
    sink.write(LINE);
    closeReader();
    await until(
      'lines are dropped',
      () => {
        sink.write(LINE);
        return sink.dropped > 0;
      },
      { limitMs: 5000 },
    );
    await within(sink.flush(FLUSH_MS), FLUSH_MS + 3000, 'the flush ends');
  });

  it('flushes what it has, and takes no longer than that', async () => {
    const { writer, drain } = fifo();
    const sink = sinkOn(writer);
    await within(sink.flush(60_000), 2000, 'an empty one is flushed');
    for (let n = 0; n < 10; n += 1) sink.write(LINE);
    await within(sink.flush(60_000), 2000, 'the flush ends');
    expect(drain()).toBe(LINE.repeat(10));
  });

  it('leaves the flags of the inherited descriptor alone', () => {
    const { writer } = fifo();
    const before = flagsOf(writer);
    sinkOn(writer).write(LINE);
    expect(flagsOf(writer)).toBe(before);
    expect(before & constants.O_NONBLOCK).toBe(0);
  });
});

describe('a sink on a file', () => {
  it('appends every line, behind what others wrote', async () => {
    const file = path.join(directory(), 'log');
    const fd = openSync(file, 'w');
    onTestFinished(() => closeSync(fd));
    writeFileSync(fd, 'before\n');
    const sink = sinkOn(fd, 1 << 20);
    for (let n = 0; n < 1000; n += 1) sink.write(`${n}\n`);
    await within(sink.flush(60_000), 5000, 'the flush ends');
    const expected = Array.from({ length: 1000 }, (_, n) => `${n}\n`).join('');
    expect(readFileSync(file, 'utf8')).toBe(`before\n${expected}`);
    expect(sink.dropped).toBe(0);
  });

  it('drops and counts what has no place on a full disk', async () => {
    const fd = openSync('/dev/full', 'w');
    onTestFinished(() => closeSync(fd));
    const sink = sinkOn(fd);
    for (let n = 0; n < 5000; n += 1) {
      sink.write(LINE);
      // The failing writes come back in between.
      if (n % 500 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    expect(sink.dropped).toBeGreaterThan(0);
    await within(sink.flush(FLUSH_MS), FLUSH_MS + 3000, 'the flush ends');
  });

  it('on /dev/null takes everything', async () => {
    const fd = openSync('/dev/null', 'w');
    onTestFinished(() => closeSync(fd));
    const sink = sinkOn(fd);
    for (let n = 0; n < 100; n += 1) sink.write(LINE);
    await within(sink.flush(FLUSH_MS), FLUSH_MS + 3000, 'the flush ends');
    expect(sink.dropped).toBe(0);
  });
});

describeWith({ root: true, programs: ['mount'] }, 'a sink on a disk that was full', () => {
  it('writes again once there is room, even when its buffer was full', async () => {
    const disk = directory();
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', disk]);
    onTestFinished(() => void execFileSync('umount', [disk]));
    const log = path.join(disk, 'log');
    const fd = openSync(log, 'a');
    onTestFinished(() => closeSync(fd));
    const filler = path.join(disk, 'filler');
    expect(() => writeFileSync(filler, Buffer.alloc(1 << 20))).toThrow('ENOSPC');
    const sink = sinkOn(fd, 16 * 1024);
    for (let n = 0; n < 1000; n += 1) {
      sink.write(LINE);
      if (n % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await sink.flush(FLUSH_MS);
    expect(readFileSync(log, 'utf8')).toBe('');
    rmSync(filler);
    await until(
      'lines are written again',
      () => {
        sink.write(LINE);
        return readFileSync(log, 'utf8').startsWith(LINE);
      },
      { limitMs: 5000 },
    );
  });
});

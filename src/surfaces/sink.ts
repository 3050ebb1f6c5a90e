import { constants, fstatSync, openSync, type Stats } from 'node:fs';
import { Socket } from 'node:net';
import type { SchedulerLike } from 'rxjs';
import sonicBoom from 'sonic-boom';

/** What is kept for a reader that does not keep up, in bytes; beyond it lines are dropped. */
export const SINK_LIMIT_BYTES = 1 << 20;

/** Where log lines go. Writing never waits, whatever the reader or the disk does. */
export interface Sink {
  write(line: string): void;
  /** How many lines were dropped because the buffer was full or the other end is gone. */
  readonly dropped: number;
  /** Gives what is buffered `limitMs` to get out; resolves in any case. */
  flush(limitMs: number): Promise<void>;
}

/**
 * A sink on an inherited descriptor. Node's own standard output writes synchronously to pipes,
 * terminals and files, so that a reader that stops would stop evictd. Pipes and terminals are
 * opened anew through /proc, so that being non-blocking stays evictd's own affair; files are
 * written on libuv's pool, one write at a time.
 */
export function openSink(
  fd: number,
  scheduler: SchedulerLike,
  limitBytes: number = SINK_LIMIT_BYTES,
): Sink {
  const stat = fstatSync(fd);
  if (stat.isSocket())
    return socketSink(new Socket({ fd, readable: false, writable: true }), scheduler, limitBytes);
  if (stat.isFIFO()) {
    const own = openAnew(fd, stat);
    return socketSink(
      new Socket({ fd: own ?? fd, readable: false, writable: true }),
      scheduler,
      limitBytes,
    );
  }
  return fileSink(openAnew(fd, stat) ?? fd, scheduler, limitBytes);
}

/** Regular files keep the inherited descriptor: its offset is shared with whoever redirected it. */
function openAnew(fd: number, stat: Stats): number | undefined {
  if (stat.isFile()) return undefined;
  try {
    return openSync(
      `/proc/self/fd/${fd}`,
      constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY,
    );
  } catch {
    return undefined;
  }
}

function socketSink(socket: Socket, scheduler: SchedulerLike, limitBytes: number): Sink {
  let dropped = 0;
  let gone = false;
  socket.on('error', () => {
    gone = true;
  });
  socket.unref();
  return {
    get dropped() {
      return dropped;
    },
    write: (line) => {
      if (gone || socket.writableLength + line.length > limitBytes) dropped += 1;
      else socket.write(line);
    },
    flush: (limitMs) =>
      withinLimit(scheduler, limitMs, (done) => {
        if (gone || socket.writableLength === 0) done();
        // 'drain' comes only after a full buffer: this is called when all before it is written.
        else socket.write('', () => done());
      }),
  };
}

function fileSink(fd: number, scheduler: SchedulerLike, limitBytes: number): Sink {
  let dropped = 0;
  let writing = false;
  // minLength 1: each line is written as it comes, as with 0, where flush() would do nothing.
  const options = { fd, sync: false, minLength: 1, maxLength: limitBytes };
  const stream = new sonicBoom.SonicBoom(options);
  // A full disk: what is buffered is tried again with the next line.
  stream.on('error', () => {
    writing = false;
  });
  stream.on('drain', () => {
    writing = false;
  });
  stream.on('drop', () => {
    dropped += 1;
    // A full buffer takes no line, so that none would have it tried again.
    stream.flush();
  });
  return {
    get dropped() {
      return dropped;
    },
    write: (line) => {
      writing = true;
      stream.write(line);
    },
    flush: (limitMs) =>
      withinLimit(scheduler, limitMs, (done) => {
        if (!writing) done();
        stream.once('drain', done);
        stream.once('error', done);
      }),
  };
}

function withinLimit(
  scheduler: SchedulerLike,
  limitMs: number,
  start: (done: () => void) => void,
): Promise<void> {
  return new Promise((resolve) => {
    const timer = scheduler.schedule(() => resolve(), limitMs);
    start(() => {
      timer.unsubscribe();
      resolve();
    });
  });
}

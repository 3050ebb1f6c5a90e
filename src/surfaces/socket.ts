import { chmodSync, linkSync, lstatSync, mkdirSync, renameSync, rmSync, unlinkSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import path from 'node:path';
import type { Observable } from 'rxjs';
import { durationWithin } from '../config/ranges.ts';
import { EvictdError } from '../core/errors.ts';
import type { SampleLine } from './samples.ts';

/** How long another daemon is given to answer on its socket, ms. */
const PROBE_LIMIT_MS = 1000;
const SOCKET_MODE = 0o660;
/** How often Node looks whether a client takes too long, ms; its own default is half a minute. */
const SERVER_OPTIONS = { connectionsCheckingInterval: 1000 };
/** What fits into a `sockaddr_un`, without the NUL at its end. */
const SOCKET_PATH_LIMIT_BYTES = 107;
/** Connections at a time; more are refused. */
const CONNECTION_LIMIT = 32;
/** How long a client may take over its request, ms. */
const REQUEST_LIMIT_MS = 5000;
/** Streams of samples at a time; more are refused. */
const STREAM_LIMIT = 4;
/** What waits for a client of a stream, bytes; lines beyond it are dropped and counted. */
const STREAM_BUFFER_BYTES = 4 * 2 ** 20;
/** How long nothing at all may go over a stream, ms; twice its interval, where that is longer. */
const STREAM_IDLE_MS = 60_000;

/** How far apart the samples of a stream may be asked for, ms. */
export const SAMPLES_INTERVAL_MS = { min: 100, max: 3_600_000 } as const;
const parseInterval = durationWithin(SAMPLES_INTERVAL_MS);

export interface StatusSocket {
  readonly path: string;
  /** Stops serving and removes the socket, if it is still the one that was made here. */
  close(): void;
}

/** Other documents that are served, by their paths. */
export type Documents = Readonly<Record<string, () => Promise<unknown>>>;

/** Lines for a client that asked for samples at least each `intervalMs`. Cold. */
export type Samples = (intervalMs: number) => Observable<SampleLine>;

/**
 * Serves `GET /v1/status` as JSON on a unix socket of mode 0660, other documents in the same way, and
 * `GET /v1/samples?interval=DURATION` as lines of JSON until the client goes.
 *
 * Throws EVICTD_SOCKET_IN_USE when a live daemon answers there, EVICTD_SOCKET when the socket
 * cannot be made; a dead one's socket is replaced, any other file is left alone.
 */
export async function serveStatus(
  socketPath: string,
  status: () => Promise<unknown>,
  samples?: Samples,
  others: Documents = {},
): Promise<StatusSocket> {
  await clearTheWay(socketPath);
  const streams = new Set<ServerResponse>();
  const server = createServer(SERVER_OPTIONS, (request, response) => {
    response.setHeader('content-type', 'application/json');
    response.setHeader('connection', 'close');
    const asked = request.method === 'GET' ? (request.url ?? '') : '';
    const document = asked === '/v1/status' ? status : ownValue(others, asked);
    if (document !== undefined) {
      document().then(
        (document) => response.end(`${JSON.stringify(document)}\n`),
        () => refuse(response, 500, 'no answer'),
      );
    } else if (samples !== undefined && /^\/v1\/samples(\?|$)/.test(asked)) {
      serveSamples(request, response, streams, samples);
    } else {
      refuse(response, 404, 'not found');
    }
  });
  server.maxConnections = CONNECTION_LIMIT;
  server.requestTimeout = REQUEST_LIMIT_MS;
  server.headersTimeout = REQUEST_LIMIT_MS;
  // A client that does not read its answer.
  server.setTimeout(REQUEST_LIMIT_MS, (socket) => socket.destroy());
  server.on('clientError', (_error, socket) => socket.destroy());
  const inode = await listen(server, socketPath);
  server.unref();
  return {
    path: socketPath,
    close: () => {
      server.close();
      server.closeAllConnections();
      if (inodeOf(socketPath) === inode) unlinkSync(socketPath);
    },
  };
}

function ownValue(documents: Documents, key: string): Documents[string] | undefined {
  return Object.hasOwn(documents, key) ? documents[key] : undefined;
}

function refuse(response: ServerResponse, statusCode: number, error: string): void {
  response.statusCode = statusCode;
  response.end(`${JSON.stringify({ error })}\n`);
}

/**
 * Serves a stream of samples. Whoever writes the lines never waits: what a client does not take in time is
 * dropped, and the client told how much that was.
 */
function serveSamples(
  request: IncomingMessage,
  response: ServerResponse,
  streams: Set<ServerResponse>,
  samples: Samples,
): void {
  if (streams.size >= STREAM_LIMIT) {
    refuse(response, 503, `${STREAM_LIMIT} streams of samples are served already`);
    return;
  }
  const { searchParams } = new URL(request.url ?? '', 'http://evictd');
  let intervalMs: number;
  try {
    intervalMs = parseInterval(searchParams.get('interval') ?? '1s');
  } catch (error) {
    refuse(response, 400, `interval: ${error instanceof Error ? error.message : String(error)}`);
    return;
  }
  streams.add(response);
  response.setHeader('content-type', 'application/x-ndjson');
  request.socket.setTimeout(Math.max(STREAM_IDLE_MS, 2 * intervalMs));
  let dropped = 0;
  const write = (line: SampleLine): void => void response.write(`${JSON.stringify(line)}\n`);
  const lines = samples(intervalMs).subscribe({
    next: (line) => {
      if (response.writableLength > STREAM_BUFFER_BYTES) {
        dropped += 1;
        return;
      }
      if (dropped > 0) write({ kind: 'dropped', count: dropped });
      dropped = 0;
      write(line);
    },
    complete: () => response.end(),
    error: () => response.destroy(),
  });
  response.once('close', () => {
    streams.delete(response);
    lines.unsubscribe();
  });
}

/**
 * Listens under a name of its own and links it to the path once it has its mode: nobody ever meets
 * another mode, who loses a race for the path is told so, and libuv, which removes at the end
 * whatever has the name that it bound, removes nobody else's.
 */
async function listen(server: Server, socketPath: string): Promise<bigint | undefined> {
  const own = path.join(path.dirname(socketPath), `.${process.pid}`);
  // The kernel would cut it, and another file be meant.
  if (Buffer.byteLength(own) > SOCKET_PATH_LIMIT_BYTES) {
    throw cannotMake(socketPath, new Error('the path of its directory is too long'));
  }
  try {
    // Left by one that had this number before and was killed between two lines of this.
    rmSync(own, { force: true });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(own, () => {
        server.off('error', reject);
        resolve();
      });
    });
    chmodSync(own, SOCKET_MODE);
    linkSync(own, socketPath);
    return inodeOf(socketPath);
  } catch (error) {
    server.close();
    throw (error as NodeJS.ErrnoException).code === 'EEXIST'
      ? inUse(socketPath)
      : cannotMake(socketPath, error);
  } finally {
    rmSync(own, { force: true });
  }
}

async function clearTheWay(socketPath: string): Promise<void> {
  try {
    mkdirSync(path.dirname(socketPath), { recursive: true, mode: 0o755 });
  } catch (error) {
    throw cannotMake(socketPath, error);
  }
  const found = lstatSync(socketPath, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isSocket())
    throw cannotMake(socketPath, new Error('a file that is no socket is in its place'));
  if (await isAnswering(socketPath)) throw inUse(socketPath);
  await removeDead(socketPath);
}

/**
 * Takes a dead socket out of the way under a name of its own and looks once more: another daemon may
 * have taken the place since.
 */
async function removeDead(socketPath: string): Promise<void> {
  const aside = path.join(path.dirname(socketPath), `.${process.pid}`);
  try {
    renameSync(socketPath, aside);
    const isAlive = await isAnswering(aside);
    if (isAlive) linkSync(aside, socketPath);
    rmSync(aside, { force: true });
    if (!isAlive) return;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw cannotMake(socketPath, error);
  }
  throw inUse(socketPath);
}

/** Anything but a refused connection counts as alive: EACCES or a full backlog are no proof of death. */
function isAnswering(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const client = connect(socketPath);
    client.setTimeout(PROBE_LIMIT_MS, () => {
      client.destroy();
      resolve(true);
    });
    client.once('connect', () => {
      client.destroy();
      resolve(true);
    });
    client.once('error', (error: NodeJS.ErrnoException) =>
      resolve(error.code !== 'ECONNREFUSED' && error.code !== 'ENOENT'),
    );
  });
}

function inodeOf(file: string): bigint | undefined {
  return lstatSync(file, { bigint: true, throwIfNoEntry: false })?.ino;
}

function inUse(socketPath: string): EvictdError {
  return new EvictdError('EVICTD_SOCKET_IN_USE', 'another evictd answers on this socket', {
    source: '--socket',
    value: socketPath,
  });
}

function cannotMake(socketPath: string, cause: unknown): EvictdError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new EvictdError(
    'EVICTD_SOCKET',
    `the status socket cannot be made: ${why}`,
    { source: '--socket', value: socketPath },
    cause,
  );
}

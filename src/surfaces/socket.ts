import { chmodSync, linkSync, lstatSync, mkdirSync, renameSync, rmSync, unlinkSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { connect } from 'node:net';
import path from 'node:path';
import { EvictdError } from '../core/errors.ts';

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

export interface StatusSocket {
  readonly path: string;
  /** Stops serving and removes the socket, if it is still the one that was made here. */
  close(): void;
}

/**
 * Serves `GET /v1/status` as JSON on a unix socket of mode 0660.
 *
 * Throws EVICTD_SOCKET_IN_USE when a live daemon answers there, EVICTD_SOCKET when the socket
 * cannot be made; a dead one's socket is replaced, any other file is left alone.
 */
export async function serveStatus(
  socketPath: string,
  status: () => Promise<unknown>,
): Promise<StatusSocket> {
  await clearTheWay(socketPath);
  const server = createServer(SERVER_OPTIONS, (request, response) => {
    const isStatus = request.method === 'GET' && request.url === '/v1/status';
    response.setHeader('content-type', 'application/json');
    response.setHeader('connection', 'close');
    if (!isStatus) {
      response.statusCode = 404;
      response.end('{"error":"not found"}\n');
      return;
    }
    status().then(
      (document) => response.end(`${JSON.stringify(document)}\n`),
      () => {
        response.statusCode = 500;
        response.end('{"error":"no status"}\n');
      },
    );
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

/** Requests to a Docker Engine, with a limit for what it answers. */
import { Agent, type ClientRequestArgs } from 'node:http';
import { createConnection, type Socket } from 'node:net';
import Docker from 'dockerode';

/** How long an answer may be, bytes: twice what a runtime that speaks CRI may send, in fewer words. */
export const MOST_RECEIVED_BYTES = 32 * 2 ** 20;

/**
 * An engine to be asked for what it answers at once: not for a stream. Each request has a connection of its own, on
 * which it fails once it has brought more than the limit.
 */
export function engineAt(socketPath: string): Docker {
  const options: Docker.DockerOptions & { readonly agent: Agent } = {
    socketPath,
    agent: new LimitedAgent(),
  };
  return new Docker(options);
}

class LimitedAgent extends Agent {
  override createConnection({ socketPath }: ClientRequestArgs): Socket {
    const socket = createConnection({ path: socketPath ?? '' });
    socket.prependListener('data', () => {
      if (socket.bytesRead <= MOST_RECEIVED_BYTES) return;
      socket.destroy(new Error(`an answer is longer than ${MOST_RECEIVED_BYTES / 2 ** 20} MiB`));
    });
    return socket;
  }
}

/** Calls of CRI v1 with a deadline each. */
import { fileURLToPath } from 'node:url';
import {
  type CallOptions,
  type ChannelCredentials,
  type ClientUnaryCall,
  credentials,
  loadPackageDefinition,
  type ServiceError,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';

/** How long a call may take, ms: a list takes some 60 at most, and a stop has its own grace on top. */
export const CALL_DEADLINE_MS = 2000;

/** How soon a socket that did not answer is tried again, ms: twice as late each time. */
const RECONNECT_MS = { first: 200, most: 5000 } as const;

/** The same as containerd sends at most. */
const MOST_RECEIVED_BYTES = 16 * 2 ** 20;

/** Times and sizes are of 64 bits, which a number does not hold: they come as texts. */
const LOADING = { longs: String, enums: String, defaults: true, oneofs: true } as const;

/** A call that has failed. */
export interface CallFailure {
  /** As gRPC numbers them: 4 for a deadline, 5 for what is not there, 14 for a runtime that is away. */
  readonly code: number;
  readonly message: string;
}

/** One runtime's services behind its socket. */
export interface CriClient {
  /**
   * @param request as the protocol has it, in camel case
   * @param withdrawn cancels the call once it is aborted
   * @returns rejects with {@link CallFailure} as the error's `code` and `message`
   */
  call<Response>(
    method: string,
    request?: object,
    deadlineMs?: number,
    withdrawn?: AbortSignal,
  ): Promise<Response>;
  close(): void;
}

type Method = (
  request: object,
  options: CallOptions,
  callback: (error: ServiceError | null, response: unknown) => void,
) => Pick<ClientUnaryCall, 'cancel'>;

interface Service {
  readonly close: () => void;
  readonly [method: string]: Method | (() => void);
}

type ServiceConstructor = new (
  address: string,
  credentials: ChannelCredentials,
  options: object,
) => Service;

/**
 * @param endpoint `unix:///…`
 * @param wallClock milliseconds since 1970: gRPC has deadlines by the wall clock
 */
export function criClient(endpoint: string, wallClock: () => number): CriClient {
  const definition = loadPackageDefinition(loadSync(PROTO_FILE, LOADING)) as unknown as {
    readonly runtime: {
      readonly v1: Readonly<Record<'RuntimeService' | 'ImageService', ServiceConstructor>>;
    };
  };
  const { RuntimeService, ImageService } = definition.runtime.v1;
  const options = {
    // A server on a socket refuses an authority that is a path.
    'grpc.default_authority': 'localhost',
    // gRPC's own limit is two minutes, in which a runtime that is back would go unseen.
    'grpc.initial_reconnect_backoff_ms': RECONNECT_MS.first,
    'grpc.max_reconnect_backoff_ms': RECONNECT_MS.most,
    // Labels are text from outside: some are long.
    'grpc.max_receive_message_length': MOST_RECEIVED_BYTES,
  };
  const services = [RuntimeService, ImageService].map(
    (Constructor) => new Constructor(endpoint, credentials.createInsecure(), options),
  );
  return {
    call: (method, request = {}, deadlineMs = CALL_DEADLINE_MS, withdrawn) =>
      new Promise((resolve, reject) => {
        const service = services.find((one) => typeof one[method] === 'function');
        if (service === undefined) throw new Error(`no call of CRI: ${method}`);
        const deadline = new Date(wallClock() + deadlineMs);
        const act = service[method] as Method;
        const withdraw = (): void => asked.cancel();
        const asked = act.call(service, request, { deadline }, (error, response) => {
          withdrawn?.removeEventListener('abort', withdraw);
          if (error === null) resolve(response as never);
          else reject(Object.assign(error, { message: told(error, endpoint, method, deadlineMs) }));
        });
        withdrawn?.addEventListener('abort', withdraw, { once: true });
      }),
    close: () => {
      for (const service of services) service.close();
    },
  };
}

const DEADLINE_EXCEEDED = 4;
const UNAVAILABLE = 14;

/** What keeps a connection from being made, without the time of the try that gRPC puts there. */
const LAST_ERROR = /Last error: (?:Error: )?(.*?)(?: \(\d{4}-[^)]*\))?\. Resolution note/;

/** In words that are the same each time that the same is wrong. */
function told(
  { code, message }: CallFailure,
  endpoint: string,
  method: string,
  deadlineMs: number,
): string {
  const socketPath = endpoint.replace(/^unix:\/\//, '');
  if (code === DEADLINE_EXCEEDED)
    return `${socketPath}: no answer to ${method} in ${deadlineMs} ms`;
  if (code !== UNAVAILABLE) return `${socketPath}: ${message}`;
  const why = LAST_ERROR.exec(message)?.[1] ?? message;
  if (/protocol error/i.test(why)) return `${socketPath}: what listens there does not speak CRI`;
  return `${socketPath}: ${why === 'null' ? 'no connection' : why}`;
}

/** Beside the sources as beside what is built of them. */
const PROTO_FILE = fileURLToPath(new URL('../../../data/cri.proto', import.meta.url));

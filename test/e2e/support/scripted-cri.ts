/** A runtime that speaks CRI v1 and answers as a test says: what real ones do rarely, or not on demand. */
import { fileURLToPath } from 'node:url';
import {
  loadPackageDefinition,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServiceDefinition,
  type sendUnaryData,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';

const PROTO = fileURLToPath(new URL('../../../data/cri.proto', import.meta.url));
const LOADING = { longs: String, enums: String, defaults: true, oneofs: true } as const;

/** gRPC's number for a failure of which no other tells. */
const UNKNOWN = 2;

/**
 * Answers a call; what it throws is the answer's failure, and what never resolves is none.
 *
 * @param cancelled is aborted when whoever called wants no answer any more
 */
export type Answer = (
  request: Readonly<Record<string, unknown>>,
  cancelled?: AbortSignal,
) => object | Promise<object>;

export interface ScriptedCri {
  readonly socketPath: string;
  close(): void;
}

/** @param answers by the call's name; all others are not implemented */
export async function startScriptedCri(
  socketPath: string,
  answers: Readonly<Record<string, Answer>>,
): Promise<ScriptedCri> {
  const definition = loadPackageDefinition(loadSync(PROTO, LOADING)) as unknown as {
    readonly runtime: {
      readonly v1: Readonly<
        Record<'RuntimeService' | 'ImageService', { readonly service: ServiceDefinition }>
      >;
    };
  };
  const server = new Server();
  for (const { service } of Object.values(definition.runtime.v1).filter(isService)) {
    const own = Object.entries(answers).filter(([name]) => Object.hasOwn(service, name));
    server.addService(
      service,
      Object.fromEntries(own.map(([name, answer]) => [name, handle(answer)])),
    );
  }
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix://${socketPath}`, ServerCredentials.createInsecure(), (error) => {
      if (error === null) resolve();
      else reject(error);
    });
  });
  return { socketPath, close: () => server.forceShutdown() };
}

function isService(value: { readonly service?: unknown }): boolean {
  return value.service !== undefined;
}

function handle(answer: Answer) {
  return (
    call: ServerUnaryCall<Readonly<Record<string, unknown>>, object>,
    callback: sendUnaryData<object>,
  ): void => {
    const cancelled = new AbortController();
    call.on('cancelled', () => cancelled.abort());
    Promise.resolve()
      .then(() => answer(call.request, cancelled.signal))
      .then(
        (response) => callback(null, response),
        (error: { readonly code?: number; readonly message: string }) =>
          callback({ code: error.code ?? UNKNOWN, details: error.message }),
      );
  };
}

/** Pods that the tests make through CRI, as a kubelet would. */
import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { credentials, loadPackageDefinition, type ServiceError } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { BUSYBOX_IMAGE } from './image.ts';

const PROTO = fileURLToPath(new URL('./making.proto', import.meta.url));
const CALL_DEADLINE_MS = 30_000;
const LOADING = { longs: String, enums: String, defaults: true, oneofs: true } as const;

/** As a kubelet has them, but for the network: that would take a plugin. */
const NAMESPACES = { network: 'NODE', pid: 'CONTAINER', ipc: 'POD' } as const;

export interface Made {
  readonly sandboxId: string;
  readonly containerId: string;
  readonly uid: string;
  /** Relative to the root of each hierarchy. */
  readonly cgroup: string;
}

export interface PodMaker {
  /**
   * Runs a pod of one container.
   *
   * @param parent a cgroup, relative to the root of each hierarchy, below which the pod's is made
   */
  run(
    parent: string,
    name: string,
    command: readonly string[],
    options?: PodOptions,
  ): Promise<Made>;
  close(): void;
}

export interface PodOptions {
  readonly namespace?: string;
  /** Below the parent; by default one that is called after the uid. */
  readonly podCgroup?: string;
  readonly uid?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** The cgroup below the parent in which its containers are made, others' too; by default one of its own. */
  readonly sharedCgroup?: string;
  /** By default busybox. */
  readonly image?: string;
}

type Call = (
  request: object,
  options: { readonly deadline: Date },
  callback: (error: ServiceError | null, response: unknown) => void,
) => void;

/** @param directory for logs */
export function podMaker(socketPath: string, directory: string): PodMaker {
  const definition = loadPackageDefinition(loadSync(PROTO, LOADING)) as unknown as {
    readonly runtime: {
      readonly v1: { readonly RuntimeService: new (...args: unknown[]) => object };
    };
  };
  const service = new definition.runtime.v1.RuntimeService(
    `unix://${socketPath}`,
    credentials.createInsecure(),
    { 'grpc.default_authority': 'localhost' },
  ) as Readonly<Record<string, Call>> & { readonly close: () => void };
  const call = <T>(method: string, request: object): Promise<T> =>
    new Promise((resolve, reject) => {
      const deadline = new Date(Date.now() + CALL_DEADLINE_MS);
      service[method]?.(request, { deadline }, (error, response) => {
        if (error === null) resolve(response as T);
        else reject(error);
      });
    });
  return {
    run: async (parent, name, command, options = {}) => {
      const {
        namespace = 'default',
        uid = randomUUID(),
        image = BUSYBOX_IMAGE,
        ...texts
      } = options;
      const { sharedCgroup, podCgroup } = options;
      const cgroup = `${parent}/${sharedCgroup ?? podCgroup ?? `kubepods/burstable/pod${uid}`}`;
      const logDirectory = path.join(directory, 'pods', uid);
      mkdirSync(logDirectory, { recursive: true });
      const sandboxConfig = {
        metadata: { name, namespace, uid, attempt: 0 },
        logDirectory,
        labels: texts.labels ?? {},
        annotations: texts.annotations ?? {},
        linux: {
          cgroupParent: `/${cgroup}`,
          securityContext: { namespaceOptions: NAMESPACES },
        },
      };
      const { podSandboxId } = await call<{ readonly podSandboxId: string }>('RunPodSandbox', {
        config: sandboxConfig,
      });
      const { containerId } = await call<{ readonly containerId: string }>('CreateContainer', {
        podSandboxId,
        sandboxConfig,
        config: {
          metadata: { name: 'main', attempt: 0 },
          image: { image },
          command,
          logPath: 'main.log',
          linux: {
            resources: { oomScoreAdj: 900 },
            securityContext: { namespaceOptions: NAMESPACES },
          },
        },
      });
      await call('StartContainer', { containerId });
      const own = sharedCgroup === undefined ? cgroup : `${cgroup}/${containerId}`;
      return { sandboxId: podSandboxId, containerId, uid, cgroup: own };
    },
    close: () => service.close(),
  };
}

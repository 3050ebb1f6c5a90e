import type {
  ContainerStats,
  KubernetesContainer,
  KubernetesPod,
  PodStats,
  Summary,
} from '../../src/core/kubernetes.ts';
import { GI } from './builders.ts';

/** The pod `default/NAME`, whose uid is `uid-of-NAME`, with one container `main` that asks for nothing. */
export function kubernetesPod(
  name: string,
  spec: KubernetesPod['spec'] = {},
  rest: {
    readonly annotations?: Readonly<Record<string, string>>;
    readonly status?: KubernetesPod['status'];
  } = {},
): KubernetesPod {
  const { annotations, status } = rest;
  return {
    metadata: {
      name,
      namespace: 'default',
      uid: `uid-of-${name}`,
      ...(annotations === undefined ? {} : { annotations }),
    },
    spec: { containers: [{ name: 'main' }], ...spec },
    ...(status === undefined ? {} : { status }),
  };
}

type Amounts = Readonly<Record<string, string | number>>;

/** A container with its requests and limits. */
export function container(
  name: string,
  requests: Amounts = {},
  limits: Amounts = {},
): KubernetesContainer {
  return { name, resources: { requests, limits } };
}

/** What a summary says of the pod `default/NAME`. */
export function podStats(name: string, stats: Omit<PodStats, 'podRef'> = {}): PodStats {
  return { podRef: { name, namespace: 'default', uid: `uid-of-${name}` }, ...stats };
}

/** The stats of a container by what it uses, bytes; what is left out is not told. */
export function containerStats(
  name: string,
  { memory, rootfs, logs }: { memory?: number; rootfs?: number; logs?: number },
): ContainerStats {
  return {
    name,
    ...(memory === undefined ? {} : { memory: { workingSetBytes: memory } }),
    ...(rootfs === undefined ? {} : { rootfs: { usedBytes: rootfs } }),
    ...(logs === undefined ? {} : { logs: { usedBytes: logs } }),
  };
}

/** A node of 1Gi of memory of which so many bytes are available, and its pods. */
export function memorySummary(
  availableBytes: number,
  pods: readonly PodStats[] = [],
  time?: string,
): Summary {
  const workingSetBytes = GI - availableBytes;
  return {
    node: { memory: { availableBytes, workingSetBytes, ...(time === undefined ? {} : { time }) } },
    pods,
  };
}

/** A node with a nodefs of 100Gi of which so many bytes are available, and its pods. */
export function diskSummary(
  availableBytes: number,
  pods: readonly PodStats[] = [],
  time?: string,
): Summary {
  const fs = { availableBytes, capacityBytes: 100 * GI, ...(time === undefined ? {} : { time }) };
  return { node: { fs }, pods };
}

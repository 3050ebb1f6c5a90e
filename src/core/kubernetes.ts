/**
 * The objects of Kubernetes that the policy looks at, with only the fields that it looks at. They come
 * from outside, so any of them may be null where it may be missing.
 *
 * Source: kubernetes/api `core/v1`, kubernetes/kubelet `pkg/apis/stats/v1alpha1`.
 */

type Maybe<T> = T | null | undefined;

/** A resource quantity, as text (`100Mi`) or as a bare number. */
export type QuantityText = string | number;

export type ResourceList = Readonly<Record<string, QuantityText>>;

export interface KubernetesContainer {
  readonly name: string;
  readonly resources?: Maybe<{
    readonly requests?: Maybe<ResourceList>;
    readonly limits?: Maybe<ResourceList>;
  }>;
  /** `Always` for an init container that goes on beside the others. */
  readonly restartPolicy?: Maybe<string>;
}

export interface KubernetesVolume {
  readonly name: string;
  readonly emptyDir?: Maybe<{
    readonly medium?: Maybe<string>;
    readonly sizeLimit?: Maybe<QuantityText>;
  }>;
  readonly hostPath?: unknown;
  readonly configMap?: unknown;
  readonly gitRepo?: unknown;
}

export interface Toleration {
  readonly key?: Maybe<string>;
  readonly operator?: Maybe<string>;
  readonly value?: Maybe<string>;
  readonly effect?: Maybe<string>;
}

export interface KubernetesPod {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly annotations?: Maybe<Readonly<Record<string, string>>>;
  };
  readonly spec: {
    readonly containers?: Maybe<readonly KubernetesContainer[]>;
    readonly initContainers?: Maybe<readonly KubernetesContainer[]>;
    readonly volumes?: Maybe<readonly KubernetesVolume[]>;
    readonly priority?: Maybe<number>;
    readonly tolerations?: Maybe<readonly Toleration[]>;
    readonly terminationGracePeriodSeconds?: Maybe<number>;
    readonly overhead?: Maybe<ResourceList>;
  };
  readonly status?: Maybe<{ readonly qosClass?: Maybe<string> }>;
}

/** Whole bytes; `time` in RFC 3339. */
export interface MemoryStats {
  readonly time?: Maybe<string>;
  readonly availableBytes?: Maybe<number>;
  readonly workingSetBytes?: Maybe<number>;
}

export interface FilesystemStats {
  readonly time?: Maybe<string>;
  readonly availableBytes?: Maybe<number>;
  readonly capacityBytes?: Maybe<number>;
  readonly usedBytes?: Maybe<number>;
  readonly inodesFree?: Maybe<number>;
  readonly inodes?: Maybe<number>;
  readonly inodesUsed?: Maybe<number>;
}

export interface ContainerStats {
  readonly name: string;
  readonly memory?: Maybe<MemoryStats>;
  readonly rootfs?: Maybe<FilesystemStats>;
  readonly logs?: Maybe<FilesystemStats>;
}

export interface PodStats {
  readonly podRef: { readonly name: string; readonly namespace: string; readonly uid: string };
  readonly memory?: Maybe<MemoryStats>;
  readonly containers?: Maybe<readonly ContainerStats[]>;
  readonly volume?: Maybe<readonly (FilesystemStats & { readonly name: string })[]>;
  readonly 'ephemeral-storage'?: Maybe<FilesystemStats>;
  readonly process_stats?: Maybe<{ readonly process_count?: Maybe<number> }>;
}

/** What the kubelet's `/stats/summary` answers. */
export interface Summary {
  readonly node?: Maybe<{
    readonly memory?: Maybe<MemoryStats>;
    readonly fs?: Maybe<FilesystemStats>;
    readonly runtime?: Maybe<{
      readonly imageFs?: Maybe<FilesystemStats>;
      readonly containerFs?: Maybe<FilesystemStats>;
    }>;
    readonly rlimit?: Maybe<{
      readonly time?: Maybe<string>;
      readonly maxpid?: Maybe<number>;
      readonly curproc?: Maybe<number>;
    }>;
    readonly systemContainers?: Maybe<
      readonly { readonly name: string; readonly memory?: Maybe<MemoryStats> }[]
    >;
  }>;
  readonly pods?: Maybe<readonly PodStats[]>;
}

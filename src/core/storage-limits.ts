import type { ContainerStats, FilesystemStats, PodStats } from './kubernetes.ts';
import type { FilesystemLayout } from './layout.ts';
import type { PodSpec, StorageLimit, StorageLimits } from './pod-spec.ts';
import { canonicalQuantity } from './quantity.ts';
import type { Rules } from './rules.ts';

/**
 * Why a pod exceeds a limit of its own local storage, in the kubelet's words; undefined where it does
 * not. Checked are its emptyDir volumes, then all of it, then each container. What is not known does
 * not exceed anything.
 *
 * It is asked of every pod at every reading, so that these are plain loops over few numbers.
 *
 * Source: kubelet `eviction_manager.go`, `localStorageEviction`.
 */
export function exceededStorageLimit(
  { storageLimits }: PodSpec,
  stats: PodStats | undefined,
  layout: FilesystemLayout,
  rules: Rules,
): string | undefined {
  if (storageLimits === undefined || stats === undefined) return undefined;
  return (
    exceededEmptyDir(storageLimits, stats) ??
    exceededPod(storageLimits, stats) ??
    exceededContainer(storageLimits, stats, countsRootfs(layout, rules))
  );
}

function exceededEmptyDir({ emptyDirs }: StorageLimits, { volume }: PodStats): string | undefined {
  if (volume === undefined || volume === null) return undefined;
  for (let index = 0; index < emptyDirs.length; index += 1) {
    const limit = emptyDirs[index] as StorageLimit;
    if (usedBytes(lastNamed(volume, limit.name)) > limit.mostBytes) {
      return `Usage of EmptyDir volume ${quoted(limit.name)} exceeds the limit ${quotedLimit(limit)}. `;
    }
  }
  return undefined;
}

/** Of two of one name the last counts. */
function lastNamed(
  volumes: NonNullable<PodStats['volume']>,
  name: string,
): FilesystemStats | undefined {
  for (let index = volumes.length - 1; index >= 0; index -= 1) {
    const volume = volumes[index];
    if (volume?.name === name) return volume;
  }
  return undefined;
}

function exceededPod({ pod: limit }: StorageLimits, stats: PodStats): string | undefined {
  if (limit === undefined || usedBytes(stats['ephemeral-storage']) <= limit.mostBytes) {
    return undefined;
  }
  const text = canonicalQuantity(limit.quantity);
  return `Pod ephemeral local storage usage exceeds the total limit of containers ${text}. `;
}

function exceededContainer(
  { containers: limits }: StorageLimits,
  { containers }: PodStats,
  withRootfs: boolean,
): string | undefined {
  if (limits.length === 0 || containers === undefined || containers === null) return undefined;
  for (let index = 0; index < containers.length; index += 1) {
    const container = containers[index] as ContainerStats;
    const limit = limitNamed(limits, container.name);
    if (limit === undefined) continue;
    const used = usedBytes(container.logs) + (withRootfs ? usedBytes(container.rootfs) : 0);
    if (used > limit.mostBytes) {
      const text = quotedLimit(limit);
      return `Container ${container.name} exceeded its local ephemeral storage limit ${text}. `;
    }
  }
  return undefined;
}

function limitNamed(limits: readonly StorageLimit[], name: string): StorageLimit | undefined {
  for (let index = 0; index < limits.length; index += 1) {
    const limit = limits[index];
    if (limit?.name === name) return limit;
  }
  return undefined;
}

function usedBytes(stats: FilesystemStats | null | undefined): number {
  return stats?.usedBytes ?? 0;
}

/** Whether the writable layers count: to the kubelet only those on nodefs. */
function countsRootfs(layout: FilesystemLayout, rules: Rules): boolean {
  return rules.rootfsLimit === 'evictd' || layout === 'single';
}

function quotedLimit({ quantity }: StorageLimit): string {
  return quoted(canonicalQuantity(quantity));
}

/** As Go quotes a text; names and quantities hold nothing that it would escape otherwise. */
function quoted(text: string): string {
  return JSON.stringify(text);
}

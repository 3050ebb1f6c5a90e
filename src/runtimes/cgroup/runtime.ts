import { defer, finalize, type Observable, of, type SchedulerLike, tap } from 'rxjs';
import { ancestry } from '../../kernel/ancestry.ts';
import { type BytePath, fromText } from '../../kernel/byte-path.ts';
import { cgroupOf, type Hierarchy } from '../../kernel/hierarchy.ts';
import type { NativeAddon } from '../../native/types.ts';
import type { EvictProgress, EvictRequest, Runtime } from '../../ports/runtime.ts';
import { evictPod } from './evict.ts';
import { type HandleCache, handleCache } from './handle-cache.ts';
import { observePods, type PodFields } from './observe.ts';
import { oomKillsOf } from './oom-kills.ts';
import type { PodHandle } from './pod-handle.ts';

export interface CgroupRuntimeInputs {
  /** The node's cgroup directory (v1 memory hierarchy). */
  readonly directory: string;
  /** Whether it is the root of the hierarchy. */
  readonly isRoot: boolean;
  /** Cgroups whose children are the pods, relative to the node's; none for that itself. */
  readonly parents: readonly string[];
  readonly hierarchy: Hierarchy;
  /** What a cgroup has no field for, by pod name. */
  readonly fields: ReadonlyMap<string, PodFields>;
  /** Undefined where the addon is missing: then nothing can be evicted. */
  readonly native: NativeAddon | undefined;
  readonly scheduler: SchedulerLike;
  /** evictd's own pid; it and its ancestors are never signalled. */
  readonly pid: number;
}

/** How old the knowledge of evictd's own ancestors may be, ms: a parent may end and be replaced. */
const ANCESTRY_AGE_MS = 10_000;

/** Pods as plain cgroups of a v1 memory hierarchy. */
export function cgroupRuntime(inputs: CgroupRuntimeInputs): Runtime {
  const { native, scheduler } = inputs;
  const directory = fromText(inputs.directory);
  const places = {
    directory,
    isRoot: inputs.isRoot,
    parents: inputs.parents.map(fromText),
    named: [...inputs.fields.keys()].map(fromText),
  };
  const handles = handleCache(directory);
  const nowMs = (): number => scheduler.now();
  const own = ownProcesses(inputs.pid, inputs.hierarchy, nowMs);
  const missing =
    native === undefined
      ? 'the native addon is missing: there is no pidfd'
      : native.capabilities().pidfd;
  const capabilities = {
    evict: missing,
    reap: native === undefined ? missing : native.capabilities().processMrelease,
  };
  // One empty cgroup that ranked first is seldom alone: the next listing looks at all of them.
  let isEmptySuspected = false;
  return {
    capabilities,
    observePods: () => {
      const checkEmpty = isEmptySuspected;
      isEmptySuspected = false;
      const { fields } = inputs;
      return observePods({
        places,
        handles,
        fields,
        ownDirectories: own.directories,
        nowMs,
        checkEmpty,
      });
    },
    oomKills: () => oomKillsOf(places),
    evict: (request) =>
      defer(() => {
        if (native === undefined || missing !== null) {
          return of<EvictProgress>({
            kind: 'refused',
            reason: 'unsupported',
            detail: missing ?? '',
          });
        }
        return evictHeld(handles, request, {
          native,
          scheduler,
          isOwn: own.isOwn,
        }).pipe(
          tap((progress) => {
            if (isNothingToKill(progress)) isEmptySuspected = true;
          }),
        );
      }),
    close: () => handles.close(),
  };
}

function evictHeld(
  handles: HandleCache,
  request: EvictRequest,
  dependencies: Parameters<typeof evictPod>[2],
): Observable<EvictProgress> {
  try {
    const handle = handles.get(nameIn(request.podId));
    if (handle.id === request.podId) {
      const unpin = handle.pin();
      return evictPod(handle, request, dependencies).pipe(
        tap((progress) => noteEmpty(handle, progress)),
        finalize(unpin),
      );
    }
    return of({ kind: 'refused', reason: 'podReplaced' });
  } catch {
    return of({ kind: 'refused', reason: 'podGone' });
  }
}

function isNothingToKill(progress: EvictProgress): boolean {
  return progress.kind === 'refused' && progress.reason === 'nothingToKill';
}

/** A pod's id is its directory's name and inode number: see PodHandle. */
function nameIn(podId: string): BytePath {
  return podId.slice(0, podId.lastIndexOf('@'));
}

/** An empty cgroup that stays is no candidate until a process joins it. */
function noteEmpty(handle: PodHandle, progress: EvictProgress): void {
  if (progress.kind === 'empty' || isNothingToKill(progress)) handle.noteEmpty();
}

/** evictd and its ancestors: their pids, and the cgroups that hold them. */
function ownProcesses(
  pid: number,
  hierarchy: Hierarchy,
  nowMs: () => number,
): { readonly isOwn: (pid: number) => boolean; readonly directories: () => readonly string[] } {
  let readAtMs = Number.NEGATIVE_INFINITY;
  let pids: ReadonlySet<number> = new Set();
  let directories: readonly string[] = [];
  const refresh = (): void => {
    if (nowMs() - readAtMs < ANCESTRY_AGE_MS) return;
    const chain = ancestry(pid);
    pids = new Set(chain);
    directories = chain
      .map((one) => cgroupOf(one, 'memory', hierarchy))
      .filter((one) => one !== undefined);
    readAtMs = nowMs();
  };
  refresh();
  return {
    isOwn: (one) => pids.has(one),
    directories: () => {
      refresh();
      return directories;
    },
  };
}

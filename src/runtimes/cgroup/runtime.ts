import { defer, finalize, type Observable, of, type SchedulerLike, tap, throwError } from 'rxjs';
import { ancestry } from '../../kernel/ancestry.ts';
import { type BytePath, fromText } from '../../kernel/byte-path.ts';
import {
  cgroupOf,
  findHierarchy,
  findUnified,
  type Hierarchy,
  isInCgroup,
  pathIn,
  sameGroupIn,
} from '../../kernel/hierarchy.ts';
import { oomScoreAdj as readOomScoreAdj } from '../../kernel/oom-score-adj.ts';
import type { NativeAddon, Pidfd } from '../../native/types.ts';
import type { EvictProgress, EvictRequest, Runtime } from '../../ports/runtime.ts';
import { evictPod } from './evict.ts';
import { type HandleCache, handleCache } from './handle-cache.ts';
import { killingOf } from './killing.ts';
import { observePods, type PodFields } from './observe.ts';
import { oomKillsOf } from './oom-kills.ts';
import { processByPid } from './pid-kill.ts';
import type { PodHandle } from './pod-handle.ts';
import type { Means } from './victim.ts';

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
  /** Undefined where the addon is missing: then `cgroup.kill` is what is left, where it is safe. */
  readonly native: NativeAddon | undefined;
  /** Whether a pid may be signalled where there is neither pidfd nor a safe `cgroup.kill`. */
  readonly allowPidKill: boolean;
  /** `oom_score_adj` of a process; undefined when it is gone. By default what procfs says. */
  readonly oomScoreAdj?: (pid: number) => number | undefined;
  readonly scheduler: SchedulerLike;
  /** evictd's own pid; it and its ancestors are never signalled. */
  readonly pid: number;
  /** The processes that evictd has started, which are spared as it is; none by default. */
  readonly helpers?: (pid: number) => readonly number[];
}

/**
 * How old the knowledge of evictd's own processes may be, ms: a parent may end and be replaced, a
 * helper be started.
 */
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
  const own = ownProcesses(inputs, nowMs);
  const unified = findUnified();
  const killing = killingOf({ native, allowPidKill: inputs.allowPidKill, unified });
  const capabilities = {
    evict: killing.by === 'nothing' ? killing.detail : null,
    killing,
    reap:
      native === undefined
        ? 'the native addon is missing'
        : (native.capabilities().pidfd ?? native.capabilities().processMrelease),
  };
  const meansFor = meansOf(inputs, { unified, hasPidfd: killing.by === 'pidfd', isOwn: own.isOwn });
  // One empty cgroup that ranked first is seldom alone: the next listing looks at all of them.
  let isEmptySuspected = false;
  let trouble: string | undefined;
  const noteTrouble = (said: string | undefined): void => {
    trouble = said;
  };
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
        noteTrouble,
      });
    },
    podsTrouble: () => trouble,
    oomKills: () => oomKillsOf(places),
    evict: (request) =>
      defer(() => {
        if (capabilities.evict !== null) {
          return of<EvictProgress>({
            kind: 'refused',
            reason: 'unsupported',
            detail: capabilities.evict,
          });
        }
        return evictHeld(handles, request, (handle) => ({
          means: meansFor(handle),
          scheduler,
        })).pipe(
          tap((progress) => {
            if (isNothingToKill(progress)) isEmptySuspected = true;
          }),
        );
      }),
    close: () => handles.close(),
  };
}

/** By what the processes of a pod are reached: all that depends on no pod is looked up once. */
function meansOf(
  inputs: CgroupRuntimeInputs,
  known: Pick<Means, 'hasPidfd' | 'isOwn'> & { readonly unified: Hierarchy | undefined },
): (handle: PodHandle) => Means {
  const { native, hierarchy, oomScoreAdj = readOomScoreAdj } = inputs;
  const { unified, hasPidfd, isOwn } = known;
  const directory = fromText(inputs.directory);
  const pids = findHierarchy('pids');
  const openPidfd = (pid: number): Pidfd => (native as NativeAddon).openPidfd(pid);
  return ({ name }) => {
    const pod = `${directory}/${name}`;
    const path = pathIn(hierarchy, pod);
    const isMember = (pid: number): boolean => isInCgroup(pid, 'memory', path);
    const byPid = inputs.allowPidKill ? (pid: number) => processByPid(pid, path) : undefined;
    return {
      open: hasPidfd ? openPidfd : byPid,
      hasPidfd,
      twin: unified && sameGroupIn(unified, hierarchy, pod),
      pidsTwin: pids && sameGroupIn(pids, hierarchy, pod),
      isOwn,
      isMember,
      oomScoreAdj,
    };
  };
}

function evictHeld(
  handles: HandleCache,
  request: EvictRequest,
  dependenciesFor: (handle: PodHandle) => Parameters<typeof evictPod>[2],
): Observable<EvictProgress> {
  try {
    const handle = handles.get(nameIn(request.podId));
    if (handle.id === request.podId) {
      const unpin = handle.pin();
      return evictPod(handle, request, dependenciesFor(handle)).pipe(
        tap((progress) => noteEmpty(handle, progress)),
        finalize(unpin),
      );
    }
    return of({ kind: 'refused', reason: 'podReplaced' });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' || code === 'ENODEV'
      ? of({ kind: 'refused', reason: 'podGone' })
      : throwError(() => error);
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

/**
 * evictd, its ancestors and its helpers: their pids, and the cgroups that hold them. Where one of
 * them cannot be found any more it is gone.
 */
function ownProcesses(
  { pid, hierarchy, helpers = () => [] }: CgroupRuntimeInputs,
  nowMs: () => number,
): { readonly isOwn: (pid: number) => boolean; readonly directories: () => readonly string[] } {
  let readAtMs = Number.NEGATIVE_INFINITY;
  let pids: ReadonlySet<number> = new Set();
  let directories: readonly string[] = [];
  const refresh = (): void => {
    if (nowMs() - readAtMs < ANCESTRY_AGE_MS) return;
    pids = new Set([...ancestry(pid), ...helpers(pid)]);
    const theirs = [...pids].map((one) => cgroupOf(one, 'memory', hierarchy));
    directories = [...new Set(theirs)].filter((one) => one !== undefined);
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

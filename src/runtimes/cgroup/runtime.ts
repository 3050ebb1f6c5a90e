import { defer, finalize, type Observable, of, type SchedulerLike, tap, throwError } from 'rxjs';
import { ancestry } from '../../kernel/ancestry.ts';
import { asPath, type BytePath, fromText, toText } from '../../kernel/byte-path.ts';
import { readControlFile } from '../../kernel/control-file.ts';
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
import type { PodPlaces } from './discovery.ts';
import { evictPod } from './evict.ts';
import { type HandleCache, handleCache } from './handle-cache.ts';
import { killingOf } from './killing.ts';
import { observePods, type PodFields, type RuleFields } from './observe.ts';
import { oomKillsOf } from './oom-kills.ts';
import { processByPid } from './pid-kill.ts';
import type { PodHandle } from './pod-handle.ts';
import { countBelow, type PidKind, processesBelow } from './subtree.ts';
import type { Means } from './victim.ts';

/** Which cgroups are pods, and what they have no field for. */
export interface PodSelection {
  /** Cgroups whose children are the pods, relative to the node's; none for that itself. */
  readonly parents: readonly string[];
  /** What a cgroup has no field for, by pod name. */
  readonly fields: ReadonlyMap<string, PodFields>;
  /** What else the rules of a configuration make pods, and what they say of them. */
  readonly rules?: PodRules;
  /** Counts processes where PIDs are short, as the kubelet does; by default tasks. */
  readonly countProcesses?: boolean;
}

/** The rules of a configuration; paths are texts relative to the node's cgroup. */
export interface PodRules {
  /** Cgroups that are pods themselves. */
  readonly named: readonly string[];
  /** Cgroups whose children are pods. */
  readonly parents: readonly string[];
  /** Whether all that the kubelet keeps are pods. */
  readonly kubepods: boolean;
  /** Cgroups, `.` for the node's own, so many levels below which there may be pods. */
  readonly globs: readonly { readonly below: string; readonly levels: number }[];
  /** The rule of a cgroup; undefined where none makes it a pod. */
  readonly match: (path: string) => RuleFields | undefined;
  /** Whether the host itself, or what runs it, is there: no wildcard takes it along. */
  readonly holdsHost: (path: string) => boolean;
}

/** For how many cgroups it is remembered what the rules say of them. */
const REMEMBERED_MATCHES = 20_000;

/** The same, asked once for each cgroup. */
function remembered(match: PodRules['match']): PodRules['match'] {
  const known = new Map<string, RuleFields | undefined>();
  return (path) => {
    if (known.has(path)) return known.get(path);
    if (known.size >= REMEMBERED_MATCHES) known.clear();
    const found = match(path);
    known.set(path, found);
    return found;
  };
}

export interface CgroupRuntimeInputs extends PodSelection {
  /** The node's cgroup directory (v1 memory hierarchy). */
  readonly directory: string;
  /** Whether it is the root of the hierarchy. */
  readonly isRoot: boolean;
  readonly hierarchy: Hierarchy;
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

/** A runtime whose pods can be told anew. */
export interface CgroupRuntime extends Runtime {
  /** Other cgroups are the pods from the next listing on; an eviction that runs goes on. */
  select(selection: PodSelection): void;
}

/** Pods as plain cgroups of a v1 memory hierarchy. */
export function cgroupRuntime(inputs: CgroupRuntimeInputs): CgroupRuntime {
  const { native, scheduler } = inputs;
  const directory = fromText(inputs.directory);
  const nowMs = (): number => scheduler.now();
  let selection: PodSelection = inputs;
  let ruleOf: PodRules['match'] = () => undefined;
  let places: PodPlaces = { directory, isRoot: inputs.isRoot, parents: [], named: [] };
  const select = (selected: PodSelection): void => {
    const { parents, fields, rules } = selected;
    selection = selected;
    const match = remembered(rules?.match ?? (() => undefined));
    ruleOf = match;
    places = {
      directory,
      isRoot: inputs.isRoot,
      parents: [...parents, ...(rules?.parents ?? [])].map(fromText),
      named: [...fields.keys(), ...(rules?.named ?? [])].map(fromText),
      ...(rules === undefined
        ? {}
        : {
            rules: {
              kubepods: rules.kubepods,
              globs: rules.globs.map(({ below, levels }) => ({ below: fromText(below), levels })),
              isPod: (name) => match(toText(name)) !== undefined,
              isSpared: (name) => {
                const text = toText(name);
                return rules.holdsHost(text) || match(text)?.protected === true;
              },
              nowMs,
            },
          }),
    };
  };
  select(inputs);
  const inNode = pidsInNode(inputs);
  const countPids = (handle: PodHandle): number | undefined =>
    inNode(handle, selection.countProcesses === true ? 'cgroup.procs' : 'tasks');
  const handles = handleCache(directory);
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
    observePods: (counts) => {
      const checkEmpty = isEmptySuspected;
      isEmptySuspected = false;
      const { fields } = selection;
      return observePods({
        places,
        handles,
        fields,
        ruleOf,
        ownDirectories: own.directories,
        nowMs,
        checkEmpty,
        noteTrouble,
        ...(counts?.pids === true ? { countPids } : {}),
        countsProcesses: selection.countProcesses === true,
      });
    },
    select,
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

/** How many processes of a pod without a group of its own among the node's PIDs are looked up. */
const LOOKED_UP_PROCESSES = 1024;

/**
 * Counts what a pod has of the PIDs that its node may have. Where those are limited by the node's own
 * group in the pids hierarchy, only what lies in that counts: the end of anybody else frees none.
 */
function pidsInNode({
  directory,
  isRoot,
  hierarchy,
}: CgroupRuntimeInputs): (handle: PodHandle, what: PidKind) => number | undefined {
  const pids = isRoot ? undefined : findHierarchy('pids');
  const node = pids && sameGroupIn(pids, hierarchy, fromText(directory));
  return ({ held, name }, what) => {
    const all = countBelow(held, what);
    if (pids === undefined || node === undefined || all === undefined || !hasPidLimit(node))
      return all;
    const inTwin = countBelow(`${node}/${name}`, what) ?? 0;
    if (inTwin > 0) return Math.min(all, inTwin);
    const path = pathIn(pids, node);
    return processesBelow(held, LOOKED_UP_PROCESSES).filter((pid) => isInCgroup(pid, 'pids', path))
      .length;
  };
}

function hasPidLimit(group: BytePath): boolean {
  try {
    return readControlFile(asPath(`${group}/pids.max`)).trim() !== 'max';
  } catch {
    return false;
  }
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

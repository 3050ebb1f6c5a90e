/** What containers use of the disks, and where the runtime keeps them: found out in the background. */
import {
  catchError,
  concatMap,
  defer,
  EMPTY,
  exhaustMap,
  filter,
  finalize,
  from,
  map,
  type Observable,
  of,
  repeat,
  type SchedulerLike,
  switchMap,
  timer,
} from 'rxjs';
import type {
  ContainerDisk,
  ContainerUse,
  DiskTeller,
  DiskUseNotice,
  PartUse,
  Place,
  RuntimeFilesystems,
} from '../ports/disk-usage.ts';
import type { WalkAnswer } from './walk-helper.ts';
import type { Walker } from './walker.ts';

/** How often the runtime is asked where it keeps things, ms. */
export const FILESYSTEMS_EACH_MS = 10_000;

/** How much of the time is spent on finding out what containers use: one part in so many. */
export const USAGE_SHARE = 5;

/** How long one round may take, ms: what was not reached by then stays as it was, and comes first the next time. */
export const ROUND_LIMIT_MS = 60_000;

/** How often it is looked for deleted files that are still open, ms. */
export const DELETED_EACH_MS = 10_000;

export interface DiskUsageInputs {
  readonly teller: DiskTeller;
  readonly walker: Walker;
  readonly scheduler: SchedulerLike;
  /** At each it is seen whether the next round is due. */
  readonly ticks$: Observable<unknown>;
  /** How long after the last round the next one is wanted, ms; asked at each tick. */
  readonly afterMs: () => number;
}

/** So much older than it is wanted may be what a runtime tells of a layer before that is added up, ms. */
export const TOLD_LATE_MS = 1000;

/**
 * What containers use of the disks, in rounds. Of a round that fails the figures stay as they were. Cold;
 * completes with the ticks, never errors. Holds one helper while a round is on.
 */
export function diskUsage(inputs: DiskUsageInputs): Observable<DiskUseNotice> {
  const { walker, scheduler, ticks$, afterMs } = inputs;
  return defer(() => {
    let before: ReadonlyMap<string, ContainerUse> = new Map();
    let last: { readonly endedAtMs: number; readonly tookMs: number } | undefined;
    let deletedAtMs = Number.NEGATIVE_INFINITY;
    const isDue = (): boolean =>
      last === undefined ||
      scheduler.now() - last.endedAtMs >= Math.max(afterMs(), last.tookMs * (USAGE_SHARE - 1));
    const round = async (): Promise<readonly DiskUseNotice[]> => {
      const atMs = scheduler.now();
      const notices: DiskUseNotice[] = [];
      try {
        before = await usedBy(inputs, before);
        notices.push({ kind: 'used', atMs, tookMs: scheduler.now() - atMs, containers: before });
      } catch (error) {
        notices.push({ kind: 'failed', atMs, reason: reasonOf(error) });
      }
      if (atMs - deletedAtMs >= DELETED_EACH_MS) {
        deletedAtMs = atMs;
        notices.push(...deletedFiles(await walker.deleted(), atMs));
      }
      walker.close();
      last = { endedAtMs: scheduler.now(), tookMs: scheduler.now() - atMs };
      return notices;
    };
    return ticks$.pipe(
      filter(isDue),
      exhaustMap(() => from(round())),
      concatMap((notices) => notices),
      finalize(() => walker.close()),
    );
  });
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function deletedFiles(answer: WalkAnswer, atMs: number): readonly DiskUseNotice[] {
  if (answer.kind === 'refused') return [];
  return [{ kind: 'deleted', atMs, files: answer.holders, isCut: answer.cut !== undefined }];
}

/** One round: what was found longest ago first. */
async function usedBy(
  { teller, walker, scheduler, afterMs }: DiskUsageInputs,
  before: ReadonlyMap<string, ContainerUse>,
): Promise<ReadonlyMap<string, ContainerUse>> {
  const untilMs = scheduler.now() + ROUND_LIMIT_MS;
  const oldestMs = afterMs() + TOLD_LATE_MS;
  const containers = await teller.containers();
  // Two containers of a pod may have one volume.
  const walked = new Map<string, Promise<WalkAnswer>>();
  const walk = (place: Place): Promise<WalkAnswer> => {
    const key = JSON.stringify([place.root, place.below]);
    const answer = walked.get(key) ?? walker.walk(place);
    walked.set(key, answer);
    return answer;
  };
  const found = new Map<string, ContainerUse>();
  for (const container of oldestFirst(containers, before)) {
    const known = before.get(container.id);
    const isLate = scheduler.now() >= untilMs;
    if (isLate && known === undefined) continue;
    found.set(
      container.id,
      isLate && known !== undefined
        ? known
        : await useOf(container, known, { walk, scheduler, oldestMs }),
    );
  }
  return found;
}

function oldestFirst(
  containers: readonly ContainerDisk[],
  before: ReadonlyMap<string, ContainerUse>,
): readonly ContainerDisk[] {
  const atMs = ({ id }: ContainerDisk): number => {
    const known = before.get(id);
    return known?.layer?.atMs ?? known?.logs?.atMs ?? Number.NEGATIVE_INFINITY;
  };
  return [...containers].sort((one, other) => compare(atMs(one), atMs(other)));
}

function compare(one: number, other: number): number {
  return one < other ? -1 : Number(one > other);
}

/** How a container is looked at. */
interface Means {
  readonly walk: (place: Place) => Promise<WalkAnswer>;
  readonly scheduler: SchedulerLike;
  /** How old what the runtime tells may be, ms. */
  readonly oldestMs: number;
}

async function useOf(
  { layer, logs, volumes, isUntold }: ContainerDisk,
  before: ContainerUse | undefined,
  { walk, scheduler, oldestMs }: Means,
): Promise<ContainerUse> {
  const troubles: string[] = [];
  /** What could not be looked at is as it was. */
  const partAt = async (place: Place, known: PartUse | undefined): Promise<PartUse | undefined> => {
    const atMs = scheduler.now();
    const answer = await walk(place);
    if (answer.kind === 'walked') {
      const { bytes, inodes, device, type, cut } = answer;
      return { bytes, inodes, atMs, device, type, cut };
    }
    // Nothing has been written there yet.
    if (answer.error.startsWith('ENOENT')) return { ...NOTHING, atMs };
    troubles.push(`${place.below}: ${answer.error}`);
    return known;
  };
  const ofLayer = async (): Promise<PartUse | undefined> => {
    if (layer === undefined) return before?.layer;
    if (layer.kind === 'at') return partAt(layer.place, before?.layer);
    const { bytes, inodes, ageMs, place } = layer;
    const told = { ...NOTHING, bytes, inodes, atMs: scheduler.now() - ageMs };
    if (place === undefined || ageMs <= oldestMs) return told;
    const found = await partAt(place, told);
    // The runtime has no limits, and what it told is the whole as it was.
    return found?.cut === undefined ? found : { ...told, bytes: Math.max(bytes, found.bytes) };
  };
  const found = new Map<string, PartUse>();
  const use = {
    layer: await ofLayer(),
    logs: logs === undefined ? undefined : await partAt(logs, before?.logs),
  };
  for (const { name, place } of volumes) {
    const part = await partAt(place, before?.volumes.get(name));
    if (part !== undefined) found.set(name, part);
  }
  const known = { ...use, volumes: found, trouble: troubles[0] };
  return isUntold === true ? { ...known, isUntold } : known;
}

const NOTHING = { bytes: 0, inodes: 0, device: undefined, type: undefined, cut: undefined };

/** Where the runtime keeps things, or why that is not known. */
export type FilesystemsNotice =
  | { readonly kind: 'found'; readonly filesystems: RuntimeFilesystems }
  | { readonly kind: 'unknown'; readonly reason: string };

/**
 * Where the runtime keeps things, asked again and again while that is wanted. Cold; completes with `wanted$`,
 * never errors.
 */
export function runtimeFilesystems(
  teller: DiskTeller,
  wanted$: Observable<boolean>,
  scheduler: SchedulerLike,
): Observable<FilesystemsNotice> {
  const asked$ = defer(() => from(teller.filesystems())).pipe(
    map((filesystems): FilesystemsNotice => ({ kind: 'found', filesystems })),
    catchError((error: unknown) => of({ kind: 'unknown', reason: reasonOf(error) } as const)),
    repeat({ delay: () => timer(FILESYSTEMS_EACH_MS, scheduler) }),
  );
  return wanted$.pipe(switchMap((isWanted) => (isWanted ? asked$ : EMPTY)));
}

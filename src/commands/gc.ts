import { concatMap, firstValueFrom, from, lastValueFrom } from 'rxjs';
import { type CollectionRequest, collect } from '../actions/reclaim.ts';
import { settingsFromFlags } from '../config/check.ts';
import { parseChoice } from '../config/choice.ts';
import type { FlagValues } from '../config/flags.ts';
import { placed } from '../config/place.ts';
import { RUNTIMES, type Settings } from '../config/settings.ts';
import { EvictdError, escapeControl } from '../core/errors.ts';
import { RECLAIM_FUNCTIONS, type ReclaimFunction } from '../core/reclaim.ts';
import { dependenciesOf, ImageBook, measured } from '../daemon/reclaim.ts';
import type {
  Collected,
  CollectedKind,
  CollectionEnd,
  CollectionNotice,
} from '../ports/collection.ts';
import type { FilesystemReading } from '../ports/filesystem.ts';
import { liveScheduler } from '../sources/live-scheduler.ts';
import { freedBy } from '../surfaces/collections.ts';
import { writeOut } from './output.ts';
import { type KnownSocket, type OpenedReclaimer, openReclaimers } from './runtime-choice.ts';

/** How long it may take with each runtime, ms. */
const LIMIT_MS = 600_000;

/**
 * `evictd gc`: removes dead containers and unused images of the runtimes that answer, once, or lists them. Since when
 * an image is there is not known: none counts as fresh.
 *
 * @param sockets where to look in place of the usual sockets
 * @returns the exit status
 * @throws EvictdError EVICTD_RUNTIME where none answers, or one does not to the end; EVICTD_UNSUPPORTED where the
 * filesystem cannot be measured; what is wrong with a flag
 */
export async function gcCommand(
  values: FlagValues,
  sockets?: readonly KnownSocket[],
): Promise<number> {
  const functions = functionsOf(values);
  checkRuntime(values);
  const { settings } = settingsFromFlags({ ...DEFAULTS, ...values });
  const { opened, silent } = await openReclaimers(settings, sockets);
  try {
    for (const text of silent) process.stderr.write(`evictd: not asked: ${escapeControl(text)}\n`);
    for (const one of opened) await collectFrom(one, settings, functions);
  } finally {
    for (const one of opened) one.close();
  }
  return 0;
}

/** What holds here where nothing is said. */
const DEFAULTS: FlagValues = { '--runtime': ['auto'], '--container-gc-max-per-pod': ['0'] };

/** Those of the daemon's that run pods. */
function checkRuntime(values: FlagValues): void {
  const source = '--runtime';
  const kinds = RUNTIMES.filter((kind) => kind !== 'cgroup');
  for (const text of values[source] ?? []) placed({ source }, () => parseChoice(text, kinds));
}

function functionsOf(values: FlagValues): readonly ReclaimFunction[] {
  const source = '--only';
  const only = (values[source] ?? []).map((text) =>
    placed({ source }, () => parseChoice(text, RECLAIM_FUNCTIONS)),
  );
  return only.length === 0 ? RECLAIM_FUNCTIONS : only.slice(-1);
}

async function collectFrom(
  opened: OpenedReclaimer,
  settings: Settings,
  functions: readonly ReclaimFunction[],
): Promise<void> {
  const ends: Collected[] = [];
  for (const part of await partsOf(opened, settings, functions)) {
    const collected = await collectAt(part, opened, settings);
    ends.push(collected);
    if (isCutShort(collected.because)) break;
  }
  await conclude(opened.name, ends, settings.dryRun);
}

/** What is collected in one go: what comes back of it is on one filesystem. */
interface Part {
  readonly functions: readonly ReclaimFunction[];
  readonly path: string;
}

/** By the filesystems that the runtime tells, unless one is given; containers' layers may have one of their own. */
async function partsOf(
  opened: OpenedReclaimer,
  { filesystems: given }: Settings,
  functions: readonly ReclaimFunction[],
): Promise<readonly Part[]> {
  const otherwise = given.nodefs ?? '/';
  if (given.imagefs !== undefined) return [{ functions, path: given.imagefs }];
  // What does not say it is measured where the node's files are.
  const told = await opened.filesystems().catch(() => undefined);
  const containers = await firstMeasured(told?.containerfs ?? []);
  const images = await firstMeasured(told?.imagefs ?? []);
  const pathOf = { containers: containers?.path ?? otherwise, images: images?.path ?? otherwise };
  const isOne =
    containers?.device === images?.device ||
    pathOf.containers === pathOf.images ||
    functions.length < 2;
  const [first = 'images'] = functions;
  if (isOne) return [{ functions, path: pathOf[first] }];
  return functions.map((one) => ({ functions: [one], path: pathOf[one] }));
}

/** As for the daemon, the first one counts that can be measured. */
async function firstMeasured(paths: readonly string[]): Promise<FilesystemReading | undefined> {
  for (const path of paths) {
    const notice = await firstValueFrom(measured(path, liveScheduler));
    if (notice.kind === 'read') return notice.reading;
  }
  return undefined;
}

function isCutShort(because: CollectionEnd): boolean {
  return because === 'away' || because === 'limit' || because === 'unmeasured';
}

async function collectAt(
  { functions, path }: Part,
  { reclaimer }: OpenedReclaimer,
  { garbage, dryRun }: Settings,
): Promise<Collected> {
  const request: CollectionRequest = {
    functions,
    containers: garbage.containerPolicy,
    images: { minimumAgeMs: 0, maximumAgeMs: 0, endsFruitless: false },
    isEnough: undefined,
    availableIn: ({ availableBytes }) => availableBytes,
    limitMs: LIMIT_MS,
  };
  const book = new ImageBook(liveScheduler, () => undefined);
  const wiring = { scheduler: liveScheduler };
  const notices$ = collect(request, dependenciesOf(wiring, reclaimer, book, path, dryRun));
  // One line after the other, however slow their reader is.
  return lastValueFrom(
    notices$.pipe(
      concatMap((notice) => from(tell(notice, dryRun)).pipe(concatMap(() => endOf(notice)))),
    ),
  );
}

function endOf(notice: CollectionNotice): readonly Collected[] {
  return notice.kind === 'ended' ? [notice.collected] : [];
}

async function tell(notice: CollectionNotice, dryRun: boolean): Promise<void> {
  const line = lineOf(notice, dryRun);
  if (line !== undefined) await writeOut(`${escapeControl(line)}\n`);
}

const VERBS = {
  removed: 'removed',
  gone: 'gone already:',
  wouldRemove: 'would remove',
  inUse: 'in use, kept:',
  failed: 'not removed:',
  kept: 'keeps',
} as const;

/** What stays is listed in a dry run alone. */
function lineOf(notice: CollectionNotice, dryRun: boolean): string | undefined {
  if (notice.kind === 'ended' || (notice.kind === 'kept' && !dryRun)) return undefined;
  if (notice.kind === 'fault') return `cannot be asked: ${notice.detail}`;
  const { kind, what, id, name } = notice;
  const because = 'detail' in notice ? notice.detail : 'why' in notice ? notice.why : undefined;
  const thing = name === id ? `${what} ${id}` : `${what} ${name} (${id})`;
  return `${VERBS[kind]} ${thing}${because === undefined ? '' : `: ${because}`}`;
}

async function conclude(name: string, ends: readonly Collected[], dryRun: boolean): Promise<void> {
  const sumOf = (count: (collected: Collected) => number): number =>
    ends.reduce((sum, one) => sum + count(one), 0);
  const removed = (what: CollectedKind): number => sumOf((one) => one.removed[what]);
  const sum = dryRun
    ? `${sumOf(({ wouldRemove }) => wouldRemove)} would be removed`
    : `${removed('container')} containers, ${removed('sandbox')} sandboxes and ${removed('image')} images removed, ` +
      `${sumOf(({ inUse }) => inUse)} in use after all, ${sumOf(({ failed }) => failed)} not removed; ` +
      `${sumOf((one) => freedBy(one).freedBytes ?? 0)} bytes came back`;
  await writeOut(`${escapeControl(name)}: ${sum}\n`);
  const because = ends.at(-1)?.because;
  if (because === 'away' || because === 'limit') {
    throw new EvictdError('EVICTD_RUNTIME', `${name} did not answer to the end`);
  }
  if (because === 'unmeasured') {
    throw new EvictdError('EVICTD_UNSUPPORTED', 'the filesystem of the images cannot be measured');
  }
}

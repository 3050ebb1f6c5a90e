import { concatMap, from, lastValueFrom, toArray } from 'rxjs';
import { type CollectionRequest, collect } from '../actions/reclaim.ts';
import { settingsFromFlags } from '../config/check.ts';
import { parseChoice } from '../config/choice.ts';
import type { FlagValues } from '../config/flags.ts';
import { placed } from '../config/place.ts';
import type { Settings } from '../config/settings.ts';
import { EvictdError, escapeControl } from '../core/errors.ts';
import { RECLAIM_FUNCTIONS, type ReclaimFunction } from '../core/reclaim.ts';
import { dependenciesOf, ImageBook } from '../daemon/reclaim.ts';
import type { Collected, CollectionNotice } from '../ports/collection.ts';
import { liveScheduler } from '../sources/live-scheduler.ts';
import { freedBy } from '../surfaces/collections.ts';
import { writeOut } from './output.ts';
import { type OpenedReclaimer, openReclaimers } from './runtime-choice.ts';

/** How long it may take with each runtime, ms. */
const LIMIT_MS = 600_000;

/**
 * `evictd gc`: removes dead containers and unused images of the runtimes that answer, once, or lists them. Since when
 * an image is there is not known: none counts as fresh.
 *
 * @returns the exit status
 * @throws EvictdError EVICTD_RUNTIME where none answers, or one does not to the end; EVICTD_UNSUPPORTED where the
 * filesystem cannot be measured; what is wrong with a flag
 */
export async function gcCommand(values: FlagValues): Promise<number> {
  const { settings } = settingsFromFlags({ ...DEFAULTS, ...values });
  const functions = functionsOf(values);
  if (settings.runtime.kind === 'cgroup') {
    const place = { source: '--runtime', value: settings.runtime.kind };
    throw new EvictdError('EVICTD_CHOICE', 'none of cri, docker, auto', place);
  }
  const opened = await openReclaimers(settings);
  try {
    for (const one of opened) await collectFrom(one, settings, functions);
  } finally {
    for (const one of opened) one.close();
  }
  return 0;
}

/** What holds here where nothing is said. */
const DEFAULTS: FlagValues = { '--runtime': ['auto'], '--container-gc-max-per-pod': ['0'] };

function functionsOf(values: FlagValues): readonly ReclaimFunction[] {
  const source = '--only';
  const only = (values[source] ?? []).map((text) =>
    placed({ source }, () => parseChoice(text, RECLAIM_FUNCTIONS)),
  );
  return only.length === 0 ? RECLAIM_FUNCTIONS : only.slice(-1);
}

async function collectFrom(
  { name, reclaimer }: OpenedReclaimer,
  { garbage, filesystems, dryRun }: Settings,
  functions: readonly ReclaimFunction[],
): Promise<void> {
  const request: CollectionRequest = {
    functions,
    containers: garbage.containerPolicy,
    images: { minimumAgeMs: 0, maximumAgeMs: 0, endsFruitless: false },
    isEnough: undefined,
    availableIn: ({ availableBytes }) => availableBytes,
    limitMs: LIMIT_MS,
  };
  const book = new ImageBook(liveScheduler, () => undefined);
  const path = filesystems.imagefs ?? filesystems.nodefs ?? '/';
  const wiring = { scheduler: liveScheduler };
  const notices$ = collect(request, dependenciesOf(wiring, reclaimer, book, path, dryRun));
  // One line after the other, however slow their reader is.
  const ends = await lastValueFrom(
    notices$.pipe(
      concatMap((notice) => from(tell(notice, dryRun)).pipe(concatMap(() => endOf(notice)))),
      toArray(),
    ),
  );
  for (const collected of ends) await conclude(name, collected, dryRun);
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

async function conclude(name: string, collected: Collected, dryRun: boolean): Promise<void> {
  const { because, removed, wouldRemove, inUse, failed } = collected;
  const { container, sandbox, image } = removed;
  const { freedBytes = 0 } = freedBy(collected);
  const sum = dryRun
    ? `${wouldRemove} would be removed`
    : `${container} containers, ${sandbox} sandboxes and ${image} images removed, ${inUse} in use after all, ` +
      `${failed} not removed; ${freedBytes} bytes came back`;
  await writeOut(`${escapeControl(name)}: ${sum}\n`);
  if (because === 'away' || because === 'limit') {
    throw new EvictdError('EVICTD_RUNTIME', `${name} did not answer to the end`);
  }
  if (because === 'unmeasured') {
    throw new EvictdError('EVICTD_UNSUPPORTED', 'the filesystem of the images cannot be measured');
  }
}

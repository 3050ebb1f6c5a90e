/** What the log says of collections. */
import type {
  Collected,
  CollectionEvent,
  CollectionNotice,
  CollectionPurpose,
  NamedThing,
} from '../ports/collection.ts';
import type { Logger } from './log.ts';

/** How many things a dry run remembers to have named. */
const NAMED_LIMIT = 10_000;

/** Logs collections; what a dry run would remove is named once. */
export function collectionLog(logger: Logger): (event: CollectionEvent) => void {
  const named = new Set<string>();
  return (event) => {
    if (event.kind === 'images') {
      logger.debug({ images: event.images.size }, 'other images, or used otherwise');
      return;
    }
    const { notice, purpose } = event;
    if (notice.kind === 'wouldRemove') {
      if (named.has(notice.id)) return;
      if (named.size >= NAMED_LIMIT) named.clear();
      named.add(notice.id);
    }
    reportNotice(logger, purpose, notice);
  };
}

function reportNotice(logger: Logger, purpose: CollectionPurpose, notice: CollectionNotice): void {
  if (notice.kind === 'ended') {
    reportEnd(logger, purpose, notice.collected);
    return;
  }
  if (notice.kind === 'fault') {
    // Without pressure it is no more than what the listing of the pods says.
    const level = purpose === 'periodic' ? 'debug' : 'warn';
    logger[level]({ reason: notice.detail }, 'the runtime cannot say what nobody uses');
    return;
  }
  const { what, id, name } = notice;
  const { level, text } = LINES[notice.kind];
  logger[level]({ what, name, id, ...reasonOf(notice) }, text);
}

/** What an evicted pod left, and was removed with it. */
export function reportRemains(
  logger: Logger,
  {
    podName: pod,
    thing: { what, name, id },
  }: { readonly podName: string; readonly thing: NamedThing },
): void {
  logger.info({ what, name, id, pod }, LINES.removed.text);
}

const LINES = {
  removed: { level: 'info', text: 'removed' },
  gone: { level: 'debug', text: 'gone already' },
  wouldRemove: { level: 'info', text: 'dry run: would have removed' },
  inUse: { level: 'info', text: 'in use after all: it stays' },
  failed: { level: 'warn', text: 'not removed' },
  kept: { level: 'debug', text: 'kept' },
} as const;

function reasonOf(notice: CollectionNotice): { readonly reason?: string } {
  if ('detail' in notice) return { reason: notice.detail };
  return 'why' in notice ? { reason: notice.why } : {};
}

function reportEnd(logger: Logger, purpose: CollectionPurpose, collected: Collected): void {
  const { because, removed, inUse, failed, wouldRemove, tookMs } = collected;
  const { container, sandbox, image } = removed;
  const isNothing = container + sandbox + image + inUse + failed + wouldRemove === 0;
  const level = purpose === 'periodic' && isNothing ? 'debug' : 'info';
  logger[level](
    {
      purpose,
      because,
      containers: container,
      sandboxes: sandbox,
      images: image,
      inUse,
      failed,
      ...(wouldRemove === 0 ? {} : { wouldRemove }),
      ...freedBy(collected),
      tookMs: Math.round(tookMs),
    },
    'collected what nobody uses',
  );
}

/** What came back while it ran, as it was measured; nothing where it could not be. */
export function freedBy({ first, last }: Pick<Collected, 'first' | 'last'>): {
  readonly freedBytes?: number;
  readonly freedInodes?: number;
} {
  if (first === undefined || last === undefined) return {};
  return {
    freedBytes: Math.max(0, last.availableBytes - first.availableBytes),
    freedInodes: Math.max(0, last.inodesFree - first.inodesFree),
  };
}

/** A directory that is found among sockets at which one may be asked. */
import {
  catchError,
  defer,
  first,
  forkJoin,
  map,
  mergeMap,
  type Observable,
  type ObservableInput,
  of,
  repeat,
  type SchedulerLike,
  switchMap,
  takeWhile,
  tap,
  throwError,
  timeout,
  timer,
} from 'rxjs';
import type { DiskTeller } from '../../ports/disk-usage.ts';
import type { PodDirectory, PodListing, Remains } from '../../ports/pod-directory.ts';
import type { Reclaimer } from '../../ports/reclaimer.ts';

const NO_RUNTIME = 'no runtime was found yet';

/** How long a candidate may take to list its pods, ms. */
export const LOOK_LIMIT_MS = 10_000;

/** How soon it is looked again where nobody answers: twice as late each time, up to the second, ms. */
export const FIRST_LOOK_MS = 1000;
export const LAST_LOOK_MS = 10_000;

/** How soon where somebody answers who has no pods, ms. */
export const LOOK_EACH_MS = 1000;

/** A socket at which pods may be asked for. */
export interface Candidate {
  /** What it is known as, for a person. */
  readonly name: string;
  readonly socketPath: string;
  /** Whether something is at that path; cheap. */
  readonly isThere: () => boolean;
  /** Called at the first look at which it is there. */
  readonly open: () => ObservableInput<PodDirectory>;
}

/** Which of them it is, and why. */
export interface Choice {
  readonly name: string;
  readonly socketPath: string;
  readonly reason: string;
}

export interface FoundDirectoryInputs {
  /** The one to be preferred first. */
  readonly candidates: readonly Candidate[];
  readonly scheduler: SchedulerLike;
  /** Told once. */
  readonly onChoice: (choice: Choice) => void;
}

/** What a look at a candidate came to. */
type Look = { readonly candidate: Candidate } & (
  | { readonly pods: number; readonly directory: PodDirectory }
  | { readonly away: string }
);

type Answer = Look & { readonly pods: number; readonly directory: PodDirectory };

/**
 * Looks at all candidates until one has pods: of several the first. That one it is from then on. Until then it
 * lists no pods where any answers, and where none does it is away.
 */
export function foundDirectory({
  candidates,
  scheduler,
  onChoice,
}: FoundDirectoryInputs): PodDirectory {
  const opened = new Map<Candidate, PodDirectory>();
  let chosen: PodDirectory | undefined;
  let failures = 0;
  let isOver = false;
  const openedOf = (candidate: Candidate): Observable<PodDirectory> => {
    const known = opened.get(candidate);
    if (known !== undefined) return of(known);
    return defer(() => candidate.open()).pipe(
      tap((directory) => {
        if (isOver) directory.close();
        else opened.set(candidate, directory);
      }),
    );
  };
  /** What is still being opened is closed as soon as it is open. */
  const closeAllBut = (kept: PodDirectory | undefined): void => {
    isOver = true;
    for (const directory of opened.values()) if (directory !== kept) directory.close();
    opened.clear();
  };
  const lookAt = (candidate: Candidate): Observable<Look> => {
    if (!candidate.isThere()) return of({ candidate, away: 'is not there' });
    return openedOf(candidate).pipe(
      mergeMap((directory) =>
        directory.listings$.pipe(
          first(),
          map((listing) => lookOf(candidate, directory, listing)),
        ),
      ),
      timeout({ first: LOOK_LIMIT_MS, scheduler }),
      catchError((error: Error) => of({ candidate, away: error.message })),
    );
  };
  const looks$ = defer(() => forkJoin(candidates.map(lookAt))).pipe(
    tap((looks) => {
      failures = looks.some((look) => 'pods' in look) ? 0 : failures + 1;
    }),
  );
  const delayMs = (): number =>
    failures === 0 ? LOOK_EACH_MS : Math.min(LAST_LOOK_MS, FIRST_LOOK_MS * 2 ** (failures - 1));
  const choose = (answer: Answer, looks: readonly Look[]): Observable<PodListing> => {
    chosen = answer.directory;
    closeAllBut(chosen);
    onChoice(choiceOf(answer, looks));
    return chosen.listings$;
  };
  const search$ = looks$.pipe(
    repeat({ delay: () => timer(delayMs(), scheduler) }),
    map((looks) => ({ looks, answer: looks.find(hasPods) })),
    takeWhile(({ answer }) => answer === undefined, true),
    switchMap(({ looks, answer }) =>
      answer === undefined ? of(listingOf(looks, scheduler.now())) : choose(answer, looks),
    ),
  );
  const toChosen = (act: (directory: PodDirectory) => Observable<never>): Observable<never> =>
    defer(() => {
      if (chosen !== undefined) return act(chosen);
      return throwError(() => new Error(NO_RUNTIME));
    });
  return {
    listings$: defer(() => chosen?.listings$ ?? search$),
    settle: (pod) => toChosen((directory) => directory.settle(pod)),
    stop: (pod, gracePeriodMs) => toChosen((directory) => directory.stop(pod, gracePeriodMs)),
    answers: (pod) => toChosen((directory) => directory.answers(pod)),
    disks: {
      filesystems: () => disksOf(chosen).filesystems(),
      containers: () => disksOf(chosen).containers(),
    },
    remains: {
      stateOf: (pod) => remainsOf(chosen).stateOf(pod),
      remove: (pod, removed) => remainsOf(chosen).remove(pod, removed),
    },
    close: () => {
      closeAllBut(chosen);
      chosen?.close();
    },
    reclaimer: reclaimerOf(() => chosen?.reclaimer),
  };
}

/** That of the one that was found; until then nothing is removed. */
function reclaimerOf(found: () => Reclaimer | undefined): Reclaimer {
  const detail = 'no runtime was found yet';
  const missing: Reclaimer = {
    listDead: () => Promise.reject(new Error(detail)),
    listImages: () => Promise.reject(new Error(detail)),
    removeContainer: async () => ({ kind: 'failed', detail, isAway: true }),
    removeSandbox: async () => ({ kind: 'failed', detail, isAway: true }),
    removeImage: async () => ({ kind: 'failed', detail, isAway: true }),
  };
  const current = (): Reclaimer => found() ?? missing;
  return {
    listDead: () => current().listDead(),
    listImages: () => current().listImages(),
    removeContainer: (id) => current().removeContainer(id),
    removeSandbox: (id) => current().removeSandbox(id),
    removeImage: (image) => current().removeImage(image),
  };
}

const NOT_TOLD: DiskTeller = {
  filesystems: () => Promise.reject(new Error(NO_RUNTIME)),
  containers: () => Promise.reject(new Error(NO_RUNTIME)),
};

const NOTHING_LEFT: Remains = {
  stateOf: () => Promise.reject(new Error(NO_RUNTIME)),
  remove: () => Promise.reject(new Error(NO_RUNTIME)),
};

function disksOf(directory: PodDirectory | undefined): DiskTeller {
  return directory?.disks ?? NOT_TOLD;
}

function remainsOf(directory: PodDirectory | undefined): Remains {
  return directory?.remains ?? NOTHING_LEFT;
}

function lookOf(candidate: Candidate, directory: PodDirectory, listing: PodListing): Look {
  return listing.kind === 'away'
    ? { candidate, away: listing.reason }
    : { candidate, directory, pods: listing.pods.length };
}

function hasPods(look: Look): look is Answer {
  return 'pods' in look && look.pods > 0;
}

function listingOf(looks: readonly Look[], atMs: number): PodListing {
  if (looks.some((look) => 'pods' in look)) return { kind: 'listed', pods: [], atMs };
  return { kind: 'away', reason: `no runtime answers: ${looks.map(saidOf).join('; ')}`, atMs };
}

function choiceOf({ candidate, pods }: Answer, looks: readonly Look[]): Choice {
  const { name, socketPath } = candidate;
  const others = looks.filter((look) => look.candidate !== candidate).map(saidOf);
  return { name, socketPath, reason: [`has ${pods} pods`, ...others].join('; ') };
}

function saidOf(look: Look): string {
  const { name, socketPath } = look.candidate;
  return `${name} at ${socketPath} ${'pods' in look ? `has ${look.pods} pods` : look.away}`;
}

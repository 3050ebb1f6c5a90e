/** What a Docker Engine tells of its containers by itself. */
import type Docker from 'dockerode';
import { catchError, EMPTY, Observable, repeat, type SchedulerLike, tap, timer } from 'rxjs';
import { FIRST_RETRY_MS, LAST_RETRY_MS } from '../shared/listings.ts';

/** What changes which pods there are, or what they ask for. */
const EVENTS = ['start', 'die', 'rename', 'update'];

/** How much of a line is kept until its end comes, characters: labels may be long. */
const MOST_KEPT = 4 * 2 ** 20;

/**
 * The id of each container that has changed, and undefined where others may have, unheard: when the engine
 * begins to tell, and when it breaks off. Cold, without end; never errors. An engine that is away is asked
 * again, twice as late each time, up to the 5 s.
 */
export function changesOf(
  docker: Docker,
  scheduler: SchedulerLike,
): Observable<string | undefined> {
  return new Observable<string | undefined>((subscriber) => {
    let failures = 0;
    const told$ = toldBy(docker).pipe(
      tap(() => {
        failures = 0;
      }),
      catchError(() => EMPTY),
      repeat({
        delay: () => {
          failures += 1;
          return timer(Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** (failures - 1)), scheduler);
        },
      }),
    );
    return told$.subscribe(subscriber);
  });
}

/** The same of one connection; ends or errors with it. */
function toldBy(docker: Docker): Observable<string | undefined> {
  return new Observable((subscriber) => {
    const abort = new AbortController();
    const filters = JSON.stringify({ type: ['container'], event: EVENTS });
    docker
      .getEvents({ filters, abortSignal: abort.signal })
      .then((stream) => {
        subscriber.next(undefined);
        let rest = '';
        stream.setEncoding('utf8');
        stream.on('data', (text: string) => {
          const lines = (rest + text).split('\n');
          rest = lines.pop() ?? '';
          if (rest.length > MOST_KEPT) rest = '';
          for (const line of lines) subscriber.next(containerIn(line));
        });
        // Its end follows.
        stream.on('error', () => undefined);
        stream.on('close', () => {
          subscriber.next(undefined);
          subscriber.complete();
        });
      })
      .catch((error: unknown) => subscriber.error(error));
    return () => abort.abort();
  });
}

/** The container that a line is about; undefined where it does not say so. */
function containerIn(line: string): string | undefined {
  try {
    const { id } = JSON.parse(line) as { readonly id?: unknown };
    return typeof id === 'string' ? id : undefined;
  } catch {
    return undefined;
  }
}

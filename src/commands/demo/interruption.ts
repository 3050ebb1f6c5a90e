import { fromEvent, map, merge, type Observable, Subscription, shareReplay, take } from 'rxjs';

/** Exit statuses of what a signal ended, as shells have them: 128 and its number. */
export const SIGNAL_STATUS = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

export type EndSignal = keyof typeof SIGNAL_STATUS;

/** What ends the demo early. */
export type Interruption =
  | { readonly kind: 'signal'; readonly signal: EndSignal }
  | { readonly kind: 'error'; readonly error: unknown };

/** Thrown by whatever step is interrupted. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
  readonly interruption: Interruption;

  constructor(interruption: Interruption) {
    super(`interrupted by ${interruption.kind === 'signal' ? interruption.signal : 'an error'}`);
    this.interruption = interruption;
  }
}

/**
 * Catches the signals that ask for an end, and errors that nobody caught, so that the demo can
 * tidy up first. A terminal that has gone away counts as SIGHUP: writing to it gives EIO.
 *
 * @returns the first of them, replayed; all of them stay caught until `release`
 */
export function catchInterruptions(): {
  readonly first$: Observable<Interruption>;
  release(): void;
} {
  const signals = Object.keys(SIGNAL_STATUS) as EndSignal[];
  const all$ = merge(
    ...signals.map((signal) =>
      fromEvent(process, signal).pipe(map((): Interruption => ({ kind: 'signal', signal }))),
    ),
    fromEvent(process, 'uncaughtException', (error: unknown) => error).pipe(map(fromError)),
  );
  const caught = new Subscription();
  caught.add(all$.subscribe());
  const first$ = all$.pipe(take(1), shareReplay(1));
  caught.add(first$.subscribe());
  return { first$, release: () => caught.unsubscribe() };
}

function fromError(error: unknown): Interruption {
  const isGone = error instanceof Error && (error as NodeJS.ErrnoException).code === 'EIO';
  return isGone ? { kind: 'signal', signal: 'SIGHUP' } : { kind: 'error', error };
}

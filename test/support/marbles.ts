import { type RunHelpers, TestScheduler } from 'rxjs/testing';
import { expect } from 'vitest';

/** The helpers of `TestScheduler.run`, and the scheduler to inject: its `now()` starts at 0 ms. */
export interface Marbles extends RunHelpers {
  readonly scheduler: TestScheduler;
}

/**
 * Runs `body` in virtual time. In a diagram each value takes 1 ms, and so does each `-`; `9ms`,
 * `2s` and `1m` are times. A source that never ends needs unsubscription marbles.
 */
export function marbles(body: (helpers: Marbles) => void): void {
  const scheduler = new TestScheduler((actual, expected) => {
    expect(actual).toStrictEqual(expected);
  });
  scheduler.run((helpers) => body({ ...helpers, scheduler }));
}

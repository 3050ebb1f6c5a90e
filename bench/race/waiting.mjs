// @ts-check
// Waiting, always with a limit, and undoing, always to the end.
import { setTimeout as delay } from 'node:timers/promises';

/** How often a condition is looked at again; nothing that is waited for is itself measured. */
const POLL_MS = 10;

/**
 * Whether `promise` settles within `limitMs`. Rejects as it does, or when `signal` aborts.
 * @param {Promise<unknown>} promise
 * @param {number} limitMs
 * @param {AbortSignal} [signal]
 * @returns {Promise<boolean>}
 */
export async function settlesWithin(promise, limitMs, signal) {
  const timer = new AbortController();
  const either = signal ? AbortSignal.any([signal, timer.signal]) : timer.signal;
  try {
    const settled = promise.then(() => true);
    return await Promise.race([settled, delay(limitMs, false, { signal: either })]);
  } finally {
    timer.abort();
  }
}

/**
 * Waits until `condition` holds; rejects after `limitMs`, naming `what` was waited for.
 * @param {() => boolean | Promise<boolean>} condition
 * @param {string} what
 * @param {number} limitMs
 * @param {AbortSignal} [signal]
 * @returns {Promise<void>}
 */
export async function waitUntil(condition, what, limitMs, signal) {
  let given = true;
  const poll = async () => {
    while (given && !(await condition())) await delay(POLL_MS);
  };
  try {
    if (await settlesWithin(poll(), limitMs, signal)) return;
    throw new Error(`race: ${what}: not within ${limitMs} ms`);
  } finally {
    given = false;
  }
}

/** @typedef {() => void | Promise<void>} Undo */

/**
 * Runs `body` and then, however it ended, everything it handed to `defer`, last first. One failing
 * step does not keep the others from being undone; no error is lost.
 * @template T
 * @param {(defer: (undo: Undo) => void) => Promise<T>} body
 * @returns {Promise<T>}
 */
export async function withCleanup(body) {
  /** @type {Undo[]} */
  const undos = [];
  /** @type {unknown[]} */
  const errors = [];
  const [outcome] = await Promise.allSettled([body((undo) => undos.push(undo))]);
  if (outcome.status === 'rejected') errors.push(outcome.reason);
  for (const undo of undos.reverse()) {
    try {
      await undo();
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 1) throw new AggregateError(errors, errors.map(String).join('; also '));
  if (outcome.status === 'rejected' || errors.length === 1) throw errors[0];
  return outcome.value;
}

/**
 * Runs `body` with a signal that aborts on SIGINT, SIGTERM or SIGHUP, so that an interrupted race
 * still removes its cgroups. The handlers are gone when the promise settles.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} body
 * @returns {Promise<T>}
 */
export async function withInterrupts(body) {
  const controller = new AbortController();
  /** @param {NodeJS.Signals} name */
  const abort = (name) => controller.abort(new Error(`race: interrupted by ${name}`));
  const names = /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']);
  for (const name of names) process.on(name, abort);
  try {
    return await body(controller.signal);
  } catch (error) {
    // Timers reject with an AbortError that does not say why; the reason does.
    throw controller.signal.aborted ? controller.signal.reason : error;
  } finally {
    for (const name of names) process.off(name, abort);
  }
}

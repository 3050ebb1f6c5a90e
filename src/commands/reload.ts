import { Worker } from 'node:worker_threads';
import type { FlagValues } from '../config/flags.ts';
import type { CheckedSettings } from '../config/settings.ts';

/** The settings as they stand now, or why there are none, for a person. */
export type Reloaded = { readonly checked: CheckedSettings } | { readonly refusal: string };

/** How long reading the settings again may take, ms. */
const RELOAD_LIMIT_MS = 10_000;

/**
 * Reads the settings again, in a thread of its own: a parser of YAML takes seconds over the worst of
 * texts, in which the daemon would evict nobody. Never rejects.
 */
export function loadAgain(values: FlagValues): Promise<Reloaded> {
  return new Promise((resolve) => {
    let worker: Worker;
    try {
      worker = new Worker(new URL('./reload-worker.js', import.meta.url), { workerData: values });
    } catch (error) {
      resolve({ refusal: String(error) });
      return;
    }
    const limit = setTimeout(() => end({ refusal: 'it took too long to read' }), RELOAD_LIMIT_MS);
    const end = (reloaded: Reloaded): void => {
      clearTimeout(limit);
      resolve(reloaded);
      void worker.terminate();
    };
    worker.once('message', end);
    worker.once('error', (error) => end({ refusal: String(error) }));
    worker.once('exit', () => end({ refusal: 'its thread ended without an answer' }));
  });
}

/** Has each SIGHUP told from now on; returns what ends that. */
export type TellHangups = (tell: () => void) => () => void;

/**
 * Each SIGHUP, those included that come before anybody asks for them: without a listener the first one
 * would end the process. It stands before the daemon's libraries are loaded, and needs none.
 */
export function noteHangups(): TellHangups {
  let isMissed = false;
  const note = (): void => {
    isMissed = true;
  };
  process.on('SIGHUP', note);
  return (tell) => {
    process.on('SIGHUP', tell);
    process.off('SIGHUP', note);
    if (isMissed) tell();
    return () => process.off('SIGHUP', tell);
  };
}

/** Reads the settings again beside the daemon's thread, which a large file would hold up. */
import { parentPort, workerData } from 'node:worker_threads';
import type { FlagValues } from '../config/flags.ts';
import { settingsLoader } from '../config/loader.ts';
import { describeError, EvictdError } from '../core/errors.ts';
import type { Reloaded } from './reload.ts';

async function load(values: FlagValues): Promise<Reloaded> {
  try {
    const again = await settingsLoader(values);
    return { checked: again() };
  } catch (error) {
    return { refusal: error instanceof EvictdError ? describeError(error) : String(error) };
  }
}

parentPort?.postMessage(await load(workerData as FlagValues));

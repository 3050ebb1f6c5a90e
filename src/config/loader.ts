import { settingsFromFlags } from './check.ts';
import type { FlagValues } from './flags.ts';
import type { CheckedSettings } from './settings.ts';

/**
 * How `evictd run` gets its settings, at the start and at each reload. A parser of YAML takes 9 MiB and
 * 40 ms: it is imported where there is a file to be read, and before anything depends on time.
 *
 * @throws EvictdError (the function) what `loadSettings` throws
 */
export async function settingsLoader(values: FlagValues): Promise<() => CheckedSettings> {
  if (values['--config'] === undefined) return () => settingsFromFlags(values);
  const { loadSettings } = await import('./load.ts');
  return () => loadSettings(values);
}

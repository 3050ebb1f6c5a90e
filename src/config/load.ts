import { type Checked, checkGiven, settingsFromFlags } from './check.ts';
import { readConfigFile } from './file.ts';
import { type FlagValues, givenFromFlags } from './flags.ts';
import { mergeGiven } from './given.ts';
import { readConfiguration } from './kinds.ts';
import { placed } from './place.ts';
import type { CheckedSettings } from './settings.ts';

/** What loading needs of the host. */
export interface LoadIo {
  /** @throws EvictdError EVICTD_CONFIG_FILE */
  readonly readConfigFile: (file: string) => string;
}

/**
 * The settings of `evictd run`: flags, over the file of `--config` key by key, over the defaults. Reads
 * that file and looks at nothing else, so that it may be called again for a reload.
 *
 * @throws EvictdError with the flag or `FILE:LINE` as its place's source, always of exit status 2: what
 * `readConfigFile`, `readConfiguration`, `givenFromFlags` and `checkGiven` throw
 */
export function loadSettings(values: FlagValues, io?: LoadIo): CheckedSettings {
  const { settings, warnings, notes } = loadChecked(values, io);
  return { settings, warnings, notes };
}

/** {@link loadSettings}, with what the settings were made of, to be printed. */
export function loadChecked(values: FlagValues, io: LoadIo = { readConfigFile }): Checked {
  const path = values['--config']?.at(-1);
  if (path === undefined) return settingsFromFlags(values);
  const flags = givenFromFlags(values);
  const text = placed({ source: path }, () => io.readConfigFile(path));
  const configuration = readConfiguration(text, path);
  return checkGiven({
    given: mergeGiven(flags, configuration.given),
    file: { path, configuration },
  });
}

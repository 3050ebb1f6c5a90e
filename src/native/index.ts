/**
 * Loads the native addon. The only file that does, so that there is one place to say where it was
 * looked for, and why it is missing.
 */
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import type { NativeAddon } from './types.ts';

export type * from './types.ts';

/** The addon, or why there is none; without it evictd polls and holds no pidfd. */
export type LoadedNative =
  | { readonly addon: NativeAddon }
  | { readonly addon: undefined; readonly reason: string; readonly tried: readonly string[] };

/** Two levels up from src/native and from dist/native alike. */
const BUILT_PATH = fileURLToPath(new URL('../../build/Release/evictd.node', import.meta.url));

let loaded: LoadedNative | undefined;

/**
 * Loads the addon at the first call and gives the same answer ever after. Never throws: every
 * path that was tried is in `tried`, and `reason` names each with its failure.
 *
 * The environment variable `EVICTD_NATIVE_PATH` names another file (an absolute path that ends in
 * `.node`), which is then the only one tried; `none` stands for no addon at all.
 */
export function loadNative(): LoadedNative {
  loaded ??= load(process.env['EVICTD_NATIVE_PATH']);
  return loaded;
}

function load(override: string | undefined): LoadedNative {
  if (override === 'none') return missing('EVICTD_NATIVE_PATH is "none"', []);
  // Any other extension would be run as JavaScript.
  if (override !== undefined && !(path.isAbsolute(override) && override.endsWith('.node'))) {
    return missing(`EVICTD_NATIVE_PATH is neither "none" nor an absolute *.node: ${override}`, []);
  }
  const file = override ?? BUILT_PATH;
  try {
    // The one cast: types.ts describes what native/addon.cc registers, and test/native holds the
    // two together.
    return { addon: createRequire(import.meta.url)(file) as NativeAddon };
  } catch (error) {
    return missing(`${file}: ${firstLine(error)}`, [file]);
  }
}

function missing(reason: string, tried: readonly string[]): LoadedNative {
  return { addon: undefined, reason, tried };
}

/** Without the list of requiring modules that Node appends to "Cannot find module". */
function firstLine(error: unknown): string {
  return String(error instanceof Error ? error.message : error).split('\n', 1)[0] ?? '';
}

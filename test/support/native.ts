import { loadNative, type NativeAddon } from '../../src/native/index.ts';

/** The native addon; a test that needs it fails without. */
export function requireAddon(): NativeAddon {
  const loaded = loadNative();
  if (loaded.addon === undefined) throw new Error(`the native addon is missing: ${loaded.reason}`);
  return loaded.addon;
}
